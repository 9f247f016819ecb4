"""A machine with Rubezh installed as docs/operators.md has it, from the environment of the tests.

Wherever this checkout and its environment lie, also where no service may look, they are shown to the machine
at one place; the installed environment holds a copy of the project and links to the libraries.
"""

import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.systemd.private import PrivateSystemd, cannot_run, private_systemd

ROOT: Final = Path(__file__).parents[2]
CHECKOUT: Final = "/usr/lib/rubezh/checkout"
VENV: Final = "/usr/lib/rubezh/venv"
PROGRAM: Final = f"{VENV}/bin/rubezh"
_LIBRARIES: Final = "/usr/lib/rubezh/libraries"
_PYTHON: Final = "/usr/lib/rubezh/python"
_EVERYWHERE: Final = ("/usr", "/opt")  # what every machine shows to every service

_INSTALL: Final = f"""
{{python}} -m venv --without-pip {VENV}
site=$({VENV}/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for each in {_LIBRARIES}/*; do
    case $each in *.pth | */__pycache__) ;; *) ln -s "$each" "$site" ;; esac
done
cp -r {CHECKOUT}/daemon {CHECKOUT}/stages {CHECKOUT}/storage "$site"
cat > {PROGRAM} <<'END'
#!{VENV}/bin/python
import sys
from daemon.cli import main
sys.exit(main())
END
chmod 755 {PROGRAM}
cd {CHECKOUT}/systemd
install -D -m 644 -t /usr/lib/systemd/system rubezh.service rubezh.socket
install -D -m 644 rubezh.sysusers /usr/lib/sysusers.d/rubezh.conf
install -D -m 644 rubezh.tmpfiles /usr/lib/tmpfiles.d/rubezh.conf
install -D -m 644 rubezh.preset /usr/lib/systemd/system-preset/80-rubezh.preset
install -D -m 644 {CHECKOUT}/docs/operators.md /usr/share/doc/rubezh/operators.md
systemd-sysusers
systemd-tmpfiles --create rubezh.conf
systemctl daemon-reload
"""


@contextmanager
def installed() -> Iterator[PrivateSystemd]:
    """Boot a machine and install; nothing is started."""
    if not (Path(sys.prefix) / "bin" / "rubezh").is_file():
        cannot_run("needs Rubezh installed in the environment that runs the tests")
    libraries, interpreter = Path(sysconfig.get_path("purelib")), Path(sys.executable).resolve()
    shown = {CHECKOUT: ROOT, _LIBRARIES: libraries}
    python = str(interpreter)
    if not python.startswith(_EVERYWHERE):
        shown[_PYTHON] = Path(sys.base_prefix)
        python = f"{_PYTHON}/{interpreter.relative_to(Path(sys.base_prefix).resolve())}"
    with private_systemd(shown) as machine:
        machine.run("sh", "-euc", _INSTALL.format(python=python))
        yield machine
