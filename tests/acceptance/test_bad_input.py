"""Bad input: one line on standard error, the right exit code, no request, no stored run, no traceback."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from council.engine.council import Council
from council.errors import EngineError, PromptError
from council.protocols import Protocol, register
from council.protocols.collaborative import SEATS as COLLABORATIVE_SEATS
from council.runs.service import Convener
from council.types import Verdict
from tests.acceptance.helpers import QUESTION, Result, Terminal, Workspace


def check_refused(workspace: Workspace, done: Result, code: int, *words: str) -> None:
    """Check for a one-line error with these words and no other effect."""
    assert (done.code, done.out) == (code, ""), done.err
    assert done.err.count("\n") == 1 and done.err.endswith("\n"), done.err
    assert "Traceback" not in done.err and "internal error" not in done.err
    for word in words:
        assert word in done.err
    assert workspace.provider.log == []
    assert workspace.runs() == []
    assert workspace.reports() == []


@pytest.mark.behaviour("00-exit-usage", "00-bad-input-one-line")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("",), ()),
        (("   ",), ()),
        (("ask",), ()),
        (("adversarial council:",), ()),
        (("--protocol", "triad", "show debate"), ()),
        (("--frobnicate", QUESTION), ("--frobnicate",)),
        (("--protcol", "triad", QUESTION), ("--protcol", "--protocol")),
        (("--protocol", "tribunal", QUESTION), ('"tribunal"', "collaborative")),
        (("--mode", "tribunal", QUESTION), ('"tribunal"',)),
        (("--protocol", "triad", "--mode", "adversarial", QUESTION), ("triad", "adversarial")),
        (("--flow", "debate", "--quick", QUESTION), ("advisors", "judges")),
        (("--protocol", "triad", "--rounds", "2", QUESTION), ("triad", "advisors")),
        (("--timeout", "soon", QUESTION), ("--timeout", "soon")),
        (("--timeout", "-1", QUESTION), ("timeout",)),
        (("--seat", "alpha", QUESTION), ("NAME=MEMBER",)),
        (("--seat", "alpha=nowhere:m1", QUESTION), ('"nowhere"',)),
        (("--seat", "alpha=unheard-of", QUESTION), ('"unheard-of"',)),
        (("--config", "missing.toml", QUESTION), ("missing.toml",)),
        (("resume", "r99999"), ("r99999",)),
        (("resume", "one", "two"), ()),
        (("runs", "frobnicate"), ("frobnicate", "council ask")),
        (("runs", "replay"), ()),
    ],
)
def test_wrong_words_and_flags_are_refused(
    workspace: Workspace, council: Terminal, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    check_refused(workspace, council(*arguments), 2, *words)


@pytest.mark.behaviour("00-config-unknown-key")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[budgt]\nmax_cost = 1", ('"budgt"', '"budget"')),
        ("[budget]\nmax_csot = 1", ('"budget.max_csot"', '"budget.max_cost"')),
        ('[providers.other]\nbase_ulr = "http://127.0.0.1:1/v1"', ("base_ulr", "base_url")),
        ('[providers.other]\napi_key = "sk-1"', ("api_key", "secret")),
        ('[seats.delta]\nmodle = "sim:m"', ("modle", "model")),
        ("timeout = never", ("council.toml",)),
    ],
)
def test_a_misspelt_key_is_refused_with_the_nearest_known_one(
    workspace: Workspace, council: Terminal, more: str, words: tuple[str, ...]
) -> None:
    workspace.configure(more=more)
    check_refused(workspace, council(QUESTION), 2, "council.toml", *words)


@pytest.mark.behaviour("00-unknown-provider")
def test_an_unknown_provider_is_refused(workspace: Workspace, council: Terminal) -> None:
    path = workspace.folder / "council.toml"
    path.write_text(path.read_text().replace('"sim:beta"', '"smi:beta"'))
    check_refused(workspace, council(QUESTION), 2, '"smi"', '"smi:beta"')


@pytest.mark.behaviour("40-unwritable-data-folder")
@pytest.mark.parametrize("where", ["data", "data/deeper"])
def test_an_unusable_data_folder_is_refused(
    workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    (tmp_path / "data").write_text("a file in its place")
    monkeypatch.setenv("COUNCIL_DATA", str(tmp_path / where))
    done = council(QUESTION)
    monkeypatch.setenv("COUNCIL_DATA", str(tmp_path / "elsewhere"))
    check_refused(workspace, done, 1, "COUNCIL_DATA", str(tmp_path / where))


@pytest.mark.behaviour("40-unwritable-report-folder", "40-no-symlinked-agents")
@pytest.mark.parametrize("obstacle", ["file", "link", "inner link", "inner file"])
def test_an_unwritable_report_folder_is_refused_before_any_request(
    workspace: Workspace, council: Terminal, tmp_path: Path, obstacle: str
) -> None:
    agents = workspace.folder / ".agents"
    place = agents / "council" if "inner" in obstacle else agents
    place.parent.mkdir(exist_ok=True)
    if "link" in obstacle:
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.write_text("")
    done = council("--quick", "validate", "council.toml", "--seat", "judge-1=sim:alpha")
    check_refused(workspace, done, 1, ".agents")
    assert not list(tmp_path.glob("elsewhere/*"))


@pytest.mark.behaviour("40-corrupt-database")
@pytest.mark.parametrize("arguments", [(QUESTION,), ("runs",), ("resume",), ("runs", "replay"), ("runs", "fsck")])
def test_a_corrupt_database_is_named(workspace: Workspace, council: Terminal, arguments: tuple[str, ...]) -> None:
    workspace.data.mkdir(mode=0o700)
    rubbish = os.urandom(4096)
    (workspace.data / "council.db").write_bytes(rubbish)
    done = council(*arguments)
    check_refused(workspace, done, 1, "council.db", "damaged", "COUNCIL_DATA")
    assert (workspace.data / "council.db").read_bytes() == rubbish


@pytest.mark.behaviour("40-newer-database")
@pytest.mark.parametrize("arguments", [(QUESTION,), ("runs",), ("resume",)])
def test_a_newer_database_is_left_alone(workspace: Workspace, council: Terminal, arguments: tuple[str, ...]) -> None:
    workspace.data.mkdir(mode=0o700)
    with sqlite3.connect(workspace.data / "council.db") as db:
        for table in ("runs", "settled"):
            db.execute(f"CREATE TABLE {table} (id TEXT)")
        db.execute("PRAGMA user_version = 99")
    db.close()
    done = council(*arguments)
    assert workspace.rows("PRAGMA user_version") == [(99,)]
    assert workspace.rows("SELECT name FROM sqlite_master") == [("runs",), ("settled",)]
    (workspace.data / "council.db").unlink()
    check_refused(workspace, done, 1, "newer", "99", "COUNCIL_DATA")


@pytest.mark.behaviour("10-template-checked-first")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "words"),
    [("Tell {{ question }} of {{ weather }}.", "weather"), ("Tell {{ question.colour }}.", "colour"), ("{% if %}", "late")],
    ids=["a missing variable", "a missing attribute", "broken syntax"],
)  # fmt: skip
async def test_a_broken_template_fails_before_the_first_call(workspace: Workspace, text: str, words: str) -> None:
    async def two_steps(council: Council) -> Verdict:
        async with council.phase("draft"):
            await council.poll(council.members, "late/fine")
        async with council.phase("late"):
            heard = await council.poll(council.members, "late/late")
        return Verdict(", ".join(heard))

    (prompts := workspace.folder / "prompts" / "late").mkdir(parents=True)
    (prompts / "fine.md").write_text("Tell {{ question }}.")
    (prompts / "late.md").write_text(text)
    name = f"late-{words}"
    register(Protocol(name, two_steps, COLLABORATIVE_SEATS, chair=None, prompts=prompts.parent))
    convener = Convener()
    with pytest.raises((PromptError, EngineError), match=words) as raised:
        await convener.plan([QUESTION], protocol=name)
    await convener.close()
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value) and "late.md" in str(raised.value)
    assert (workspace.provider.log, workspace.runs()) == ([], [])


@pytest.mark.behaviour("00-misspelt-never-runs")
@pytest.mark.parametrize(
    "words",
    ["rusn", "runz", "run", "resum", "resume-", "Resume", "replya r2abcd", "reprot", "model", "docter", "confg", "mpc",
     "keyz", "sevre", "gates", "runz show r2abcd", "rnus fsck", "--json runz", "cancell r2abcd", "forkk r2abcd"],
)  # fmt: skip
def test_a_misspelt_command_never_starts_a_run(workspace: Workspace, council: Terminal, words: str) -> None:
    done = council(*words.split())
    assert done.code == 2
    assert "did you mean" in done.out + done.err and "council ask" in done.out + done.err
    assert (workspace.provider.log, workspace.runs()) == ([], [])


@pytest.mark.behaviour("00-misspelt-never-runs")
def test_a_sentence_that_starts_like_a_command_is_a_question(workspace: Workspace, council: Terminal) -> None:
    assert council("models of growth compared", "--dry-run").code == 0
    assert council("reports", "should", "be", "short", "--dry-run").code == 0
    assert council("ask", "runz", "--dry-run").code == 0
    assert workspace.provider.log == []


@pytest.mark.behaviour("00-bad-input-one-line")
def test_a_real_process_shows_no_traceback_either(workspace: Workspace) -> None:
    workspace.data.mkdir(mode=0o700)
    (workspace.data / "council.db").write_bytes(b"rubbish" * 1000)
    done = workspace.council(QUESTION)
    check_refused(workspace, done, 1, "damaged")
    check_refused(workspace, workspace.council("--protocol", "quorate", QUESTION), 2, "unknown protocol")


@pytest.mark.behaviour("00-bare-usage")
def test_bare_council_prints_a_short_usage(workspace: Workspace, council: Terminal) -> None:
    done = council()
    assert (done.code, done.out, workspace.provider.log) == (2, "", [])
    assert "council --help" in done.err
