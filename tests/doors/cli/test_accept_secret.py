"""`council packet --accept-secret`: which secrets are accepted, and what is said about them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from council.doors.cli import run as command
from council.packet.accepted_secrets import BASELINE_NAME
from tests.packet.test_accepted_secrets import SETTING, VALUE

MODEL = '[models]\ndefault = "scripted:"\n'


@pytest.fixture
def project() -> Path:
    folder = Path.cwd()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "app.yaml").write_text(SETTING, encoding="utf-8")
    (folder / "council.toml").write_text(MODEL, encoding="utf-8")
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = command(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.behaviour("packet-accept-files-only")
@pytest.mark.parametrize("words", [("validate", "-"), ("validate", "app.yaml", "-")])
def test_piped_text_is_not_accepted(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SETTING.encode()), encoding="utf-8"))
    code, out, err = run(capsys, "packet", "--accept-secret", "a test", *words)
    assert (code, out) == (2, ""), err
    assert len(err.splitlines()) == 1
    assert 'cannot accept "stdin:1 (' in err and "it accepts values in files of the project only" in err
    assert VALUE not in err
    assert not (project / BASELINE_NAME).exists()


@pytest.mark.behaviour("packet-accept-files-only")
@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("--attach", "{outside}", "ask", "Is this fine?"), "attached/notes.yaml:1 ("),
        (("ask", "Is " + SETTING.strip() + " a good setting?"), "the words:1 ("),
    ],
)  # fmt: skip
def test_attachments_and_words_are_not_accepted(
    project: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], place: str
) -> None:
    outside = tmp_path / "notes.yaml"
    outside.write_text(SETTING, encoding="utf-8")
    code, _, err = run(
        capsys, "packet", "--accept-secret", "a test", *(word.replace("{outside}", str(outside)) for word in words)
    )
    assert code == 2, err
    assert f'cannot accept "{place}' in err
    assert not (project / BASELINE_NAME).exists()


@pytest.mark.behaviour("packet-accept-files-only")
def test_a_row_for_standard_input_accepts_nothing(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, "packet", "--accept-secret", "a test", "validate", "app.yaml")[0] == 0
    file = project / BASELINE_NAME
    file.write_text(file.read_text(encoding="utf-8").replace('"app.yaml"', '"stdin"'), encoding="utf-8")
    assert run(capsys, "trust")[0] == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SETTING.encode()), encoding="utf-8"))
    code, _, err = run(capsys, "packet", "validate", "-")
    assert (code, "secrets found at stdin:1" in err) == (2, True)


@pytest.mark.behaviour("packet-baseline-write")
def test_a_reason_that_is_not_utf8_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "packet", "--accept-secret", os.fsdecode(b"bad \xff"), "validate", "app.yaml")
    assert (code, len(err.splitlines())) == (2, 1)
    assert '"bad \\udcff" is not valid UTF-8, nothing was written' in err
    assert not (project / BASELINE_NAME).exists()
