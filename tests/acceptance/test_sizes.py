"""Councils of 2, 4 and 8 members by `-m`, for every protocol, with and without an absent seat; and the flags on the
command line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Json, Terminal
from tests.fake_provider import FakeProvider, Reply, Seen
from tests.trusted_project import trust_project, write_user_file

GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
GENERALS = ("generalist", "skeptic", "domain_expert", *GREEK[3:])
JUDGES = tuple(f"judge-{n}" for n in range(1, 9))
SEATS = {
    "collaborative": GREEK, "triad": GREEK, "adversarial": GREEK, "ranking": GREEK, "general": GENERALS, "judges": JUDGES,
}  # fmt: skip
CALLS = {  # requests of n seats
    "collaborative": lambda n: 2 * n + 1, "triad": lambda n: n + 1, "adversarial": lambda n: 2 * n + 1, "ranking": lambda n: 2 * n + 1,
    "general": lambda n: n + 2, "judges": lambda n: n,
}  # fmt: skip
RESPONSE = re.compile(r"<<<Response ([A-Z]) \w+\n[^\n]*says m(\d)\.")
TRUST = {"general": "MEDIUM"}  # no source supports the answer
NAMES = re.compile(r"Name them only as (.*?)\. Use")


def members(count: int) -> list[str]:
    """Return members of three vendors: sim:m1, simb:m2, simc:m3, sim:m4 …"""
    return [f"{('sim', 'simb', 'simc')[n % 3]}:m{n + 1}" for n in range(count)]


def flags(count: int) -> list[str]:
    return [part for member in members(count) for part in ("-m", member)]


class Voices:
    """Fake endpoint: each model answers every kind of request. Absent models fail."""

    def __init__(self) -> None:
        self.absent: set[str] = set()

    def __call__(self, seen: Seen) -> Reply:
        if seen.model in self.absent:
            return Reply(status=401)
        return Reply(text=json.dumps(typed(seen)) if seen.schema else free(seen))


def free(seen: Seen) -> str:
    notes = NAMES.search(seen.prompt)
    if not notes:
        return f"Move the files that are read less than once a year, says {seen.model}."
    agreed = {"agreed": ["It is cheaper."], "recommendation_shared_by": notes[1].split(", ")}
    return f"Move the unread files.\n\n```council-notes\n{json.dumps(agreed)}\n```"


def typed(seen: Seen) -> Json:
    assert seen.schema
    fields = seen.schema["properties"]
    if "order" in fields:
        shown = sorted(
            RESPONSE.findall(seen.prompt), key=lambda found: int(found[1])
        )  # all readers prefer the first models
        return {"dispute": "", "reasons": [], "order": [label for label, _ in shown]}
    if "leader" in fields:
        return {"agreed": ["cost"], "contested": ["when"], "reason": "it is complete", "leader": fields["leader"]["enum"][0], "same_as_leader": fields["leader"]["enum"]} | dict.fromkeys(
            ("same_conclusion", "no_critical_flag", "no_contradiction", "mostly_high"), False
        )  # fmt: skip
    if "issues" in fields:
        issue = {
            "severity": "MINOR",
            "hits": "the cost",
            "flaw": f"{seen.model} misses a number",
            "correction": "count it",
        }
        return {"issues": [issue], "case": "", "verdict": "STAND"}
    if "points" in fields:
        issues = fields["points"]["items"]["properties"]["issue"].get("enum", [])
        points = [{"issue": one, "landed": False, "why": "it is counted", "same_as": "none"} for one in issues]
        return {
            "points": points,
            "outcome": "SURVIVED",
            "answer": "Move the unread files.",
            "assessment": "Little is open.",
        }
    if "claims" in fields:
        claim = {
            "question": "Is it cheaper?",
            "answer": "yes",
            "text": "It is cheaper.",
            "holds_when": "",
            "confidence": 0.9,
            "sources": [],
        }
        return {"response": "Move it.", "claims": [claim], "sources": [], "confidence": 0.9, "areasOfUncertainty": []}
    if "groups" in fields:
        return {"groups": []}
    if "disagreements" in fields:
        return {"answer": "Move the unread files.", "disagreements": [], "added_disagreements": []}
    if "perspectives" in fields:
        view = [{"advisor": name, "view": "It says: move it."} for name in ("pragmatist", "visionary", "skeptic")]
        return {"perspectives": view, "tensions": [], "decision": "Move it.", "shared_by": [one["advisor"] for one in view], "next_steps": ["Move it."], "wrong_if": ""}  # fmt: skip
    return {
        "verdict": "PASS", "confidence": "HIGH", "key_insight": "It holds.", "findings": [], "recommendation": "Merge it.",
        "schema_version": 2,
    }  # fmt: skip


@pytest.fixture
def voices(provider: FakeProvider) -> Voices:
    lines = [
        f'[providers.{name}]\nbase_url = "{provider.base_url}"\nbackoff = 0.01' for name in ("sim", "simb", "simc")
    ]
    Path("council.toml").write_text("\n".join(lines), encoding="utf-8")
    trust_project()
    Path("notes.md").write_text("# Notes\n\nMove the archive.\n", encoding="utf-8")
    answers = Voices()
    provider.answer = answers
    return answers


def ask(protocol: str) -> list[str]:
    extra = {"general": ["--no-search", QUESTION], "judges": ["validate", "notes.md"]}
    return ["--protocol", protocol, *extra.get(protocol, [QUESTION])]


@pytest.mark.behaviour("13-other-sizes")
@pytest.mark.parametrize("protocol", list(SEATS))
def test_a_council_of_any_size_answers(
    voices: Voices, council: Terminal, provider: FakeProvider, protocol: str
) -> None:
    for size in (2, 4, 8):
        before = len(provider.log)
        done = council("--json", *flags(size), *ask(protocol))
        report = done.json
        assert (done.code, report["status"]) == (0, "complete"), report
        assert [seat["name"] for seat in report["seats"]] == list(SEATS[protocol][:size])
        assert [seat["model"] for seat in report["seats"]] == members(size)
        assert report["quorum"] == {"needed": report["quorum"]["needed"], "ok": size, "asked": size}
        assert [row for row in report["degraded"] if row["state"] != "notice"] == []
        assert report["calls"]["made"] == CALLS[protocol](size)
        assert len(provider.log) - before == CALLS[protocol](size)
        assert report["trust"]["level"] == TRUST.get(protocol, "HIGH"), report["trust"]


@pytest.mark.behaviour("13-other-sizes")
@pytest.mark.parametrize("protocol", list(SEATS))
def test_an_absent_seat_of_any_council_is_listed_and_not_counted(
    voices: Voices, council: Terminal, protocol: str
) -> None:
    for size in (4, 8):
        voices.absent = {f"m{size}"}
        name = SEATS[protocol][size - 1]
        done = council("--json", *flags(size), *ask(protocol))
        report = done.json
        assert (done.code, report["status"], report["quorum"]["ok"], report["quorum"]["asked"]) == (
            0,
            "complete",
            size - 1,
            size,
        )
        assert report["trust"]["level"] == "MEDIUM"
        assert f"{name} did not answer ({size - 1} of {size} seats did)" in report["trust"]["because"]
        assert {row["seat"] for row in report["degraded"] if row["state"] != "notice"} == {name}


@pytest.mark.behaviour("13-other-sizes")
@pytest.mark.parametrize("protocol", list(SEATS))
def test_one_answer_of_two_is_used_and_trusted_little(voices: Voices, council: Terminal, protocol: str) -> None:
    voices.absent = {"m2"}
    done = council("--json", *flags(2), *ask(protocol))
    report = done.json
    ended = {"ranking": (3, "incomplete"), "adversarial": (3, "incomplete")}.get(protocol, (0, "complete"))
    assert (done.code, report["status"]) == ended, report
    assert report["trust"]["level"] == "LOW"
    assert re.match(r"only [\w-]+ answered", report["trust"]["because"][0])


@pytest.mark.behaviour("13-other-sizes")
def test_verbose_output_and_report_show_every_seat(voices: Voices, council: Terminal) -> None:
    for protocol in ("collaborative", "triad", "adversarial", "ranking"):
        shown = council("--verbose", *flags(5), *ask(protocol))
        assert shown.code == 0
        assert not re.search(r"\(\)|None\b", shown.out), shown.out
        for n, name in enumerate(GREEK[:5], 1):
            assert name.capitalize() in shown.out
            assert f"m{n}." in shown.out
        if protocol == "adversarial":
            assert shown.out.count("attacks Alpha:") == 4


@pytest.mark.behaviour("13-other-sizes")
def test_the_headline_of_judges_counts_the_seats(voices: Voices, council: Terminal) -> None:
    assert "5 of 5 seats" in council(*flags(5), *ask("judges")).out
    voices.absent = {"m5"}
    assert "4 of 5 seats" in council(*flags(5), *ask("judges")).out


@pytest.mark.behaviour("13-model-flag")
def test_advisors_take_the_named_members_in_order(voices: Voices, council: Terminal) -> None:
    report = council("--json", *flags(2), *ask("advisors")).json
    assert [seat["model"] for seat in report["seats"]] == ["sim:m1", "simb:m2", "sim:m1"]
    assert (report["status"], report["calls"]["made"]) == ("complete", 4)


@pytest.mark.behaviour("13-other-sizes")
def test_the_leader_does_not_attack_and_every_other_seat_does(
    voices: Voices, council: Terminal, provider: FakeProvider
) -> None:
    council("--json", *flags(5), *ask("adversarial"))
    attackers = [seen.model for seen in provider.log if seen.schema and "issues" in seen.schema["properties"]]
    assert sorted(attackers) == ["m2", "m3", "m4", "m5"]
    (verdict,) = [seen for seen in provider.log if seen.schema and "points" in seen.schema["properties"]]
    issues = verdict.schema["properties"]["points"]["items"]["properties"]["issue"]["enum"] if verdict.schema else []
    assert issues == ["issue-1", "issue-2", "issue-3", "issue-4"]


@pytest.mark.behaviour("13-other-sizes")
def test_requests_that_list_something_of_every_seat_may_be_longer_in_a_larger_council(
    voices: Voices, council: Terminal, provider: FakeProvider
) -> None:
    for size in (3, 8):
        council("--json", *flags(size), *ask("general"))
    limits = [seen.body["max_tokens"] for seen in provider.log if seen.schema and "groups" in seen.schema["properties"]]
    assert limits == [1600, 4100]


@pytest.mark.behaviour("13-other-sizes")
def test_a_larger_council_is_resumed_and_forked_without_repeating_answers(
    voices: Voices, council: Terminal, provider: FakeProvider
) -> None:
    with Path("council.toml").open("a", encoding="utf-8") as file:
        file.write('\n[chair]\nmodel = "sim:boss"\nfallback = []\n')
    trust_project()
    voices.absent = {"boss"}
    stopped = council("--json", *flags(5), *ask("collaborative"))
    assert (stopped.code, stopped.json["status"]) == (3, "incomplete")
    voices.absent, asked = set(), len(provider.log)
    done = council("resume", "--json", stopped.json["run"])
    assert (done.code, done.json["quorum"]["ok"], [seen.model for seen in provider.log[asked:]]) == (0, 5, ["boss"])
    asked = len(provider.log)
    forked = council("fork", done.json["run"], "--from", "improve", "--seat", "delta=simb:other", "--json")
    assert (forked.code, forked.json["seats"][3]["model"]) == (0, "simb:other")
    assert sorted(seen.model for seen in provider.log[asked:]) == ["boss", "other"]


# The flags on the command line


@pytest.mark.behaviour("13-model-flag")
def test_members_are_named_by_m_or_by_members(voices: Voices, council: Terminal) -> None:
    by_m = council("--dry-run", "--json", "-m", "sim:m1", "Which", "one?", "--model", "simb:m2").json
    by_members = council("--dry-run", "--json", "--members", "sim:m1, simb:m2", "Which", "one?").json
    assert by_m["question"] == "Which one?"
    assert [seat["model"] for seat in by_m["seats"]] == ["sim:m1", "simb:m2"]
    assert (by_m["seats"], by_m["chair"]) == (by_members["seats"], by_members["chair"])


@pytest.mark.behaviour("13-model-flag")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-m", "sim:a"] * 9, "-m names 9 members, but a council has at most 8 seats: drop 1"),
        (["-m", "sim:a", "--members", "sim:b"], '-m "sim:a" and --members "sim:b" both name the members: use one of the two'),
        (["--members", "sim:a,"], '--members "sim:a," has an empty name'),
        (["--members", ""], '--members "" has an empty name'),
        (["-m", ""], '-m "" names no member'),
        (["-m", "sim:m1,sim:m2"], '-m "sim:m1,sim:m2" has a comma: name the members one by one'),
        (["-m", "gtp-5.2"], 'unknown model "gtp-5.2": did you mean "gpt-5.2"'),
        (["-m", "sim:a", "-m", "sim:b", "--seat", "gamma=sim:c"], '--seat sets "gamma", but the seats of this council are alpha, beta, chair'),
        (["--protocol", "adversial"], 'unknown protocol "adversial": did you mean "adversarial"? known are collaborative, adversarial,'),
    ],
)  # fmt: skip
def test_a_wrong_list_of_members_is_one_line(
    voices: Voices, council: Terminal, provider: FakeProvider, arguments: list[str], line: str
) -> None:
    for more in ([], ["--dry-run"]):
        done = council(*arguments, *more, QUESTION)
        assert (done.code, done.out, len(done.err.strip().splitlines())) == (2, "", 1)
        assert line in done.err
    assert provider.log == []


# A dry run and a run agree


@pytest.mark.behaviour("13-dry-run-agrees")
def test_a_dry_run_is_refused_where_the_run_is(voices: Voices, council: Terminal, provider: FakeProvider) -> None:
    setting = "AWS_SECRET_ACCESS_KEY=" + "".join(["wJalrXUtnFEMI", "K7MDENGbPxRfiCYzzzzzzKEY1"])
    Path("key.txt").write_text(f"{setting}\n", encoding="utf-8")
    cases = {
        ("--max-cost", "1", "-m", "sim:m1", QUESTION): (2, 'no price for "sim:m1"'),
        ("--seat", "alpha=local:/nope.gguf", "--seat", "beta=sim:m1", QUESTION): (
            2,
            'cannot read the model file "/nope.gguf"',
        ),
        ("-m", "local:/nope.gguf", QUESTION): (2, 'cannot read the model file "/nope.gguf"'),
        ("-m", "sim:m1", "--seat", "beta=human", QUESTION): (2, 'seat "beta" is a person, but there is no terminal'),
        ("-m", "sim:m1", "--protocol", "general", QUESTION): (4, "General Council is not enabled"),
        ("-m", "sim:m1", "validate", "key.txt"): (2, "key.txt:1"),
        ("-m", "sim:m1", "--fail-on", "warn", QUESTION): (2, "--fail-on warn needs a review"),
    }
    for arguments, (code, line) in cases.items():
        run, dry = council(*arguments), council("--dry-run", *arguments)
        assert (run.code, run.out) == (code, ""), run
        assert line in run.err
        assert (dry.code, dry.out, dry.err) == (run.code, run.out, run.err)
        as_json = [council("--json", *more, *arguments).json for more in ([], ["--dry-run"])]
        assert as_json[0] == as_json[1]
    assert provider.log == []


@pytest.mark.behaviour("13-dry-run-agrees")
def test_a_dry_run_refuses_a_cap_as_the_run_would(voices: Voices, council: Terminal) -> None:
    write_user_file('[prices."sim:*"]\ninput = 1\noutput = 10\n')
    low = council("--dry-run", "--max-cost", "0.0001", "-m", "sim:m1", QUESTION)
    assert (low.code, "does not cover this council" in low.err) == (2, True)
    assert council("--dry-run", "--max-cost", "50", "-m", "sim:m1", QUESTION).code == 0
