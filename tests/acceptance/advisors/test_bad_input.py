"""Bad input: a one-line error, exit 2, no calls and no recorded run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Result, Terminal, Workspace


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("issue-4-advisors-bad-input", "10-advisors-bounds", "10-early-stop-needs-rounds")
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--rounds", "0"), 'council: --rounds "0" cannot be used: give a whole number from 1 to 5\n'),
        (("--rounds", "6"), 'council: --rounds "6" cannot be used: give a whole number from 1 to 5\n'),
        (("--rounds", "two"), 'council: --rounds "two" is not a whole number, nothing was spent: use for example --rounds 2\n'),
        (("--flow", "debate", "--rounds", "1"), "council: --flow debate needs at least 2 rounds: set --rounds 2 to 5\n"),
        (("--flow", "debat"), 'council: unknown flow "debat": did you mean "debate"? known are parallel, sequential, debate\n'),
        (("--flow", "zigzag"), 'council: unknown flow "zigzag": known are parallel, sequential, debate\n'),
        (("--tier", "heavier"), 'council: unknown tier "heavier": did you mean "heavy"? known are light, medium, heavy\n'),
        (("--early-stop", "--protocol", "advisors"), "council: --early-stop needs at least 2 rounds: set --rounds 2 to 5 (judges: --debate), or drop it\n"),
        (("--early-stop", "--flow", "sequential"), "council: --early-stop needs at least 2 rounds: set --rounds 2 to 5 (judges: --debate), or drop it\n"),
        (("--early-stop", "--deep"), "council: --early-stop needs --debate: add it, or drop --early-stop\n"),
        (("--early-stop", "--protocol", "triad"), "council: --early-stop belongs to collaborative, but --protocol chose triad: drop one of the two\n"),
    ],
)  # fmt: skip
def test_wrong_flags_give_a_one_line_error(
    workspace: Workspace, council: Terminal, flags: tuple[str, ...], sentence: str
) -> None:
    done = council(*flags, QUESTION)
    assert (done.code, done.out, done.err) == (2, "", sentence)
    assert (workspace.provider.log, workspace.runs(), workspace.reports()) == ([], [], [])


def seats(*rows: str) -> str:
    return "seats = [" + ", ".join(f"{{{row}}}" for row in rows) + "]"


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("issue-4-advisors-bad-input", "10-advisors-roster-refused")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (seats('name = "solo"'), "has 1 seat, but at least 2 are needed: add 1"),
        (seats(*(f'name = "voice {chr(97 + n)}"' for n in range(10))), "has 10 seats, but at most 9 are allowed: remove 1"),
        (seats('name = "CFO"', 'name = "cfo"'), 'names "cfo" twice'),
        (seats('name = "cfo"', 'lens = "people"'), "seat 2 has no name with a letter"),
        (seats('name = "cfo"', 'name = "42"'), "seat 2 has no name with a letter"),
        (seats('name = "cfo"', 'name = "referee"'), 'calls a seat "referee"'),
        (seats('name = "cfo"', 'name = "coo", lense = "people"'), '"seats.lens"'),
        (seats('name = "cfo"', 'name = "coo", model = "nowhere:m"'), '"nowhere"'),
        ("about = 3", '"about" is "3"'),
        ("seats = 3", "a list of tables"),
        ("", "has 0 seats"),
        ("seats = [", "is not valid TOML"),
        (b"\xff\xfe\x00", "cannot read the configuration file"),
        ("folder", "is not a file"),
        (None, "does not exist"),
    ],
)  # fmt: skip
def test_an_invalid_roster_gives_a_one_line_error(
    workspace: Workspace, council: Terminal, content: str | bytes | None, said: str
) -> None:
    path = Path("mine.toml")
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    done: Result = council("--roster", "mine.toml", QUESTION)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert said in done.err
    assert (workspace.provider.log, workspace.runs(), workspace.reports()) == ([], [], [])


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-advisors-roster-refused")
@pytest.mark.parametrize(("name", "said"), [("executive", 'did you mean "executives"?'), ("", 'unknown roster ""')])
def test_an_unknown_roster_error_lists_the_known_ones(
    workspace: Workspace, council: Terminal, name: str, said: str
) -> None:
    done = council("--roster", name, QUESTION)
    assert (done.code, done.err.count("\n"), workspace.provider.log) == (2, 1, [])
    assert said in done.err and "known are advisors, executives, generals" in done.err
