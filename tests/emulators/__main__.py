"""`python -m tests.emulators NAME [CERTIFICATE]`: one emulated service, until our stdin ends.

It listens on a port of its own and tells it on stdout, with the one for tests. CERTIFICATE is a file with a
chain and its key: then the service speaks TLS.
"""

import ssl
import sys

import trio

from tests.emulators.emulator import Emulator, Service
from tests.emulators.house import live
from tests.emulators.openai import OpenAI
from tests.emulators.salute import Salute
from tests.emulators.yandex import Yandex

SERVICES: dict[str, type[Service]] = {"openai": OpenAI, "yandex": Yandex, "salute": Salute}


def main(name: str, certificate: str = "") -> None:
    """Serve."""
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    trio.run(live, Emulator(SERVICES[name]()), tls)


if __name__ == "__main__":
    main(*sys.argv[1:])
