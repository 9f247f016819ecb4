"""The routes of resumable uploads, declared."""

from daemon.intake.operations import Answer, Content, Operation
from daemon.intake.queries import Parameter
from daemon.intake.submitting import BODY_PROBLEMS
from daemon.intake.tus import begin, continue_
from daemon.intake.tus_headers import CONTENT_TYPE, VERSION

_UPLOADS, _UPLOAD = "/v1/uploads", "/v1/uploads/{id}"
_BYTES = (Content(media=CONTENT_TYPE, shape={"type": "string", "format": "binary"}),)
_OFFSET = {
    "Upload-Offset": "How many bytes are safe.",
    "Upload-Expires": "Until when it may be gone on with.",
}
_SPOKEN = ((412, "unsupported_version"),)
_KNOWN = ((404, "not_found"), (503, "elsewhere"), (423, "locked"))
_PARTS = (
    (400, "invalid_header"),
    (400, "invalid_checksum"),
    (408, "too_slow"),
    (409, "wrong_offset"),
    (409, "taken_over"),
    (410, "upload_gone"),
    (413, "too_large"),
    (423, "locked"),
    (429, "too_many_uploads"),
    (460, "checksum_mismatch"),
    (503, "busy"),
    (503, "stopping"),
    (507, "no_space"),
)


def _header(name: str, says: str) -> Parameter:
    return Parameter(name=name, place="header", says=says, schema={"type": "string"})


_VERSION = _header("Tus-Resumable", f"`{VERSION}`.")
_CHECKSUM = _header("Upload-Checksum", "Of the bytes of this request: an algorithm and the digest in base64.")

OPERATIONS = (
    Operation(
        method="OPTIONS",
        path=_UPLOADS,
        name="showUploadTerms",
        says="tus: what is spoken here.",
        raw=begin,
        answers={
            204: Answer(
                says="The terms.", headers={"Tus-Version": "The version.", "Tus-Extension": "The extensions."}
            )
        },
        tag="uploads",
    ),
    Operation(
        method="POST",
        path=_UPLOADS,
        name="beginUpload",
        says="tus: begin an upload, perhaps with its first bytes.",
        raw=begin,
        parameters=(
            _VERSION,
            _CHECKSUM,
            _header("Upload-Length", "How many bytes it will have."),
            _header("Upload-Metadata", "The options of the submission, as tus writes them."),
        ),
        body=_BYTES,
        body_required=False,
        answers={201: Answer(says="It has begun.", headers={"Location": "Where it goes on.", **_OFFSET})},
        problems=(
            *_SPOKEN,
            *dict.fromkeys(
                (
                    *BODY_PROBLEMS,
                    *_PARTS,
                    (400, "length_required"),
                    (400, "invalid_metadata"),
                    (429, "too_many_unfinished"),
                )
            ),
        ),
        tag="uploads",
    ),
    Operation(
        method="HEAD",
        path=_UPLOAD,
        name="showUpload",
        says="tus: how far an upload is.",
        raw=continue_,
        parameters=(_VERSION,),
        answers={200: Answer(says="So far.", headers={"Upload-Length": "Of the whole.", **_OFFSET})},
        problems=(*_SPOKEN, *_KNOWN),
        tag="uploads",
    ),
    Operation(
        method="PATCH",
        path=_UPLOAD,
        name="continueUpload",
        says="tus: go on with an upload; the last bytes make the record.",
        raw=continue_,
        parameters=(_VERSION, _CHECKSUM, _header("Upload-Offset", "Where the bytes of this request belong.")),
        body=_BYTES,
        answers={
            204: Answer(
                says="They are safe.",
                headers={"Rubezh-Record": "The record's id, once the upload is whole.", **_OFFSET},
            )
        },
        problems=(
            *_SPOKEN,
            *dict.fromkeys(
                (
                    *_KNOWN,
                    *_PARTS,
                    (415, "unsupported_media_type"),
                    (422, "invalid_options"),
                    (429, "queue_full"),
                )
            ),
        ),
        tag="uploads",
    ),
    Operation(
        method="DELETE",
        path=_UPLOAD,
        name="giveUpUpload",
        says="tus: give an upload up.",
        raw=continue_,
        parameters=(_VERSION,),
        answers={204: Answer(says="It is forgotten.")},
        problems=(*_SPOKEN, *_KNOWN, (409, "finished")),
        tag="uploads",
    ),
    Operation(
        method="POST",
        path=_UPLOAD,
        name="overrideUploadMethod",
        says="tus: any of the others, named by X-HTTP-Method-Override, from where they do not get through.",
        raw=continue_,
        parameters=(_VERSION, _header("X-HTTP-Method-Override", "`HEAD`, `PATCH` or `DELETE`.")),
        body=_BYTES,
        body_required=False,
        answers={200: Answer(says="As HEAD."), 204: Answer(says="As PATCH or DELETE.")},
        problems=(
            *_SPOKEN,
            *dict.fromkeys(
                (
                    *_KNOWN,
                    *_PARTS,
                    (405, "method_not_allowed"),
                    (409, "finished"),
                    (415, "unsupported_media_type"),
                    (422, "invalid_options"),
                    (429, "queue_full"),
                )
            ),
        ),
        tag="uploads",
    ),
)
