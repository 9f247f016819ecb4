"""Uploads one file with tuspy: `python -m tests.acceptance.tuspy_upload URL TOKEN FILE STORAGE`.

It goes on with what STORAGE knows, tells how far it is after each chunk, and in the end the record.
"""

import sys
from typing import Any

from tusclient.client import TusClient
from tusclient.storage.filestorage import FileStorage

CHUNK = 256 * 1024


def main() -> None:
    """Upload, chunk by chunk."""
    url, token, path, storage = sys.argv[1:]
    uploader: Any = TusClient(url, headers={"Authorization": f"Bearer {token}"}).uploader(
        path,
        chunk_size=CHUNK,
        metadata={"filename": "talk.wav", "title": "From Python"},
        store_url=True,
        url_storage=FileStorage(storage),  # type: ignore[no-untyped-call]  # it ships no types
        retries=5,
        retry_delay=1,
        upload_checksum=True,
    )
    if uploader.url is not None:
        sys.stdout.write(f"resuming {uploader.url} at {uploader.offset}\n")
    while uploader.offset < uploader.get_file_size():
        uploader.upload_chunk()
        sys.stdout.write(f"sent {uploader.offset}\n")
        sys.stdout.flush()
    headers = uploader.request.response_headers
    sys.stdout.write(f"record {headers['rubezh-record']}\n")


if __name__ == "__main__":
    main()
