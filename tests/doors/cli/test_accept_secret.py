"""`council packet --accept-secret`: which secrets are accepted, and what is said about them."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from council.doors.cli import run as command
from council.packet.accepted_secrets import BASELINE_NAME
from tests.packet.test_accepted_secrets import SETTING, VALUE

MODEL = '[models]\ndefault = "scripted:"\n'
ROW = '  - 1 accepted secret in app.yaml ("a test")'


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


# Trust


@pytest.fixture
def foreign(project: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a project whose accepted secrets were accepted on another machine."""
    assert run(capsys, "packet", "--accept-secret", "a test", "validate", "app.yaml")[0] == 0
    (Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "trust.json").unlink()
    return project


@pytest.mark.behaviour("packet-baseline-trust")
def test_what_the_command_accepts_is_trusted_and_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "packet", "--accept-secret", "a test", "validate", "app.yaml")
    assert (code, "app.yaml:1 (" in out, "accepted 1 in " in err) == (0, True, True)
    code, out, err = run(capsys, "packet", "validate", "app.yaml")
    assert code == 0, err
    assert "1 accepted secret in app.yaml is sent (line 1)" in err
    code, out, _ = run(capsys, "packet", "--json", "validate", "app.yaml")
    assert json.loads(out)["receipt"]["remarks"] == ["1 accepted secret in app.yaml is sent (line 1)"]
    code, out, _ = run(capsys, "--dry-run", "--json", "validate", "app.yaml")
    plan = json.loads(out)
    assert plan["packet"]["remarks"] == ["1 accepted secret in app.yaml is sent (line 1)"]
    assert plan["packet"]["remarks"][0] in plan["notices"]


@pytest.mark.behaviour("packet-accepted-named")
def test_the_report_names_accepted_secrets(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "packet", "--accept-secret", "a test", "ask", "Is this fine?", "app.yaml")[0] == 0
    assert run(capsys, "--protocol", "solo", "ask", "Is this fine?", "app.yaml")[0] == 0
    assert "1 accepted secret in app.yaml is sent (line 1)" in run(capsys, "report")[1]
    degraded = json.loads(run(capsys, "report", "--json")[1])["degraded"]
    assert "1 accepted secret in app.yaml is sent (line 1)" in [row["reason"] for row in degraded]


@pytest.mark.behaviour("packet-baseline-trust")
def test_the_command_trust_shows_the_accepted_secrets_and_trusts_them(
    foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (("packet", "validate", "app.yaml"), ("--dry-run", "validate", "app.yaml"), ("validate", "app.yaml")):
        code, _, err = run(capsys, *words)
        assert (code, len(err.splitlines())) == (2, 1), err
        assert f"{BASELINE_NAME} accepts it, but you have not trusted that file: `council trust` shows" in err
    code, shown, _ = run(capsys, "trust", "--show")
    file = foreign / BASELINE_NAME
    head, row, state = shown.splitlines()
    assert (code, head, row) == (0, f"{file} accepts values that look like secrets, so that they are sent:", ROW)
    assert re.fullmatch("accepted secrets not trusted: [0-9a-f]{64}", state)
    assert run(capsys, "packet", "validate", "app.yaml")[0] == 2, "showing changes nothing"
    code, out, _ = run(capsys, "trust")
    assert (code, out.splitlines()[-1]) == (
        0,
        f"accepted secrets trusted until these accepted secrets change: {state[-64:]}",
    )
    assert run(capsys, "packet", "validate", "app.yaml")[0] == 0
    assert run(capsys, "trust", "--show")[1].splitlines()[-1] == f"accepted secrets trusted: {state[-64:]}"
    assert run(capsys, "trust")[1].splitlines()[-1] == f"accepted secrets trusted already: {state[-64:]}"
    (stored,) = json.loads(run(capsys, "trust", "--list", "--json")[1])
    assert (stored["file"], stored["hash"], stored["state"]) == (str(file), state[-64:], "")
    assert run(capsys, "trust", "--revoke") == (0, f"no longer trusted: {file}\n", "")
    assert run(capsys, "packet", "validate", "app.yaml")[0] == 2


@pytest.mark.behaviour("packet-baseline-trust")
def test_trust_is_asked_for_accepted_secrets_and_settings_apart(
    foreign: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (foreign / "council.toml").write_text(MODEL + '[search]\nprovider = "files"\n', encoding="utf-8")
    asked: list[tuple[str, str]] = []

    async def answer(lines: list[str], what: str) -> bool:
        asked.append((lines[0].split()[0], what))
        return what == "settings"

    monkeypatch.setattr("council.doors.cli.setup_commands.has_terminal", lambda: True)
    monkeypatch.setattr("council.doors.cli.setup_commands.confirm_trust", answer)
    code, out, err = run(capsys, "trust")
    assert asked == [(str(foreign / BASELINE_NAME), "accepted secrets"), (str(foreign / "council.toml"), "settings")]
    assert (code, err) == (130, "council: not trusted, nothing was changed\n")
    assert out.startswith("trusted until these settings change: ")
    lines = run(capsys, "trust", "--show")[1].splitlines()
    assert [line.rpartition(":")[0] for line in lines if re.search(": [0-9a-f]{64}$", line)] == [
        "accepted secrets not trusted",
        "trusted",
    ]


@pytest.mark.behaviour("packet-baseline-trust")
def test_trust_as_json_has_the_accepted_secrets(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(run(capsys, "trust", "--show", "--json")[1])
    secrets = shown.pop("accepted_secrets")
    assert shown == {"file": None, "hash": None, "trusted": True, "keys": {}, "effects": []}
    assert (secrets["file"], secrets["trusted"]) == (str(foreign / BASELINE_NAME), False)
    assert secrets["secrets"] == [{"path": "app.yaml", "reason": "a test"}]
    assert json.loads(run(capsys, "trust", "--json")[1])["accepted_secrets"] == {**secrets, "trusted": True}
    assert run(capsys, "packet", "validate", "app.yaml")[0] == 0


@pytest.mark.behaviour("packet-baseline-trust")
@pytest.mark.parametrize("way", ["variable", "flag"])
def test_the_variable_and_the_flag_trust_accepted_secrets_too(
    foreign: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "variable":
        monkeypatch.setenv("COUNCIL_TRUST", run(capsys, "trust", "--show")[1].split()[-1])
    flags = ["--trust"] if way == "flag" else []
    assert run(capsys, "packet", *flags, "validate", "app.yaml")[0] == 0
    monkeypatch.delenv("COUNCIL_TRUST", raising=False)
    assert run(capsys, "packet", "validate", "app.yaml")[0] == 2


@pytest.mark.behaviour("packet-baseline-trust")
def test_texts_of_a_foreign_file_cannot_hide_or_add_a_line(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = 'hash = "0"\npath = "a\\u202e\\u001b[2J\\n  - nothing.py"\nreason = "x\\nb\\u001b[2K"\n'
    (foreign / BASELINE_NAME).write_text(f"[[accepted]]\n{row}", encoding="utf-8")
    shown = run(capsys, "trust", "--show")[1]
    assert len(shown.splitlines()) == 3, shown
    assert not {"\x1b", "\u202e"} & set(shown)


@pytest.mark.behaviour("packet-baseline-trust")
def test_rows_that_were_added_later_are_shown_as_new(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "trust")[0] == 0
    with (foreign / BASELINE_NAME).open("a", encoding="utf-8") as file:
        file.write('[[accepted]]\nhash = "0"\npath = "app.yaml"\n[[accepted]]\nhash = "0"\npath = "b.py"\n')
    shown = run(capsys, "trust", "--show")[1].splitlines()
    assert shown[1:3] == [
        '  - 2 accepted secrets in app.yaml, 1 of them not trusted yet ("a test")',
        "  - 1 accepted secret in b.py, not trusted yet",
    ]
    assert shown[3].startswith("accepted secrets not trusted: ")
    assert run(capsys, "packet", "validate", "app.yaml")[0] == 0


@pytest.mark.behaviour("packet-baseline-base")
def test_accepting_with_a_base_says_when_it_counts(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@host.org"]
    subprocess.run([*git, "add", "council.toml"], cwd=project, check=True)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=project, check=True)
    words = ("--base", "HEAD", "validate", "changes")
    code, _, err = run(capsys, "packet", "--accept-secret", "a test", *words)
    assert (code, 'which counts with --base once "HEAD" has it' in err) == (0, True), err
    code, _, err = run(capsys, "packet", *words)
    assert (code, 'which counts with --base once "HEAD" has it' in err) == (2, True), err
    assert run(capsys, "packet", "validate", "app.yaml")[0] == 0
