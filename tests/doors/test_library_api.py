"""The Python API: explicit arguments, the typed report, exceptions by cause, and the client."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import subprocess
import sys
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import council
from council import events as ev
from council.doors.library import ProtocolOptions
from council.errors import UsageError
from council.flags import flag_table
from council.members.scripted import Scripted
from council.store.interface import list_fields
from tests.fake_provider import FakeProvider, Reply
from tests.trusted_project import trust_project

SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
FUNCTIONS = (
    council.convene,
    council.convene_sync,
    council.stream,
    council.Client,
    council.Client.convene,
    council.Client.plan,
)


def convene(question: str = "Tabs or spaces?", script: Any = None, **options: Any) -> council.Report:
    members = [Scripted(script=script)] if script else [Scripted()]
    return council.convene_sync(question, **{"protocol": "triad", "members": members, "seats": SEATS} | options)


# Arguments


@pytest.mark.behaviour("issue-13-explicit-arguments")
def test_the_keyword_arguments_are_explicit() -> None:
    for function in FUNCTIONS:
        names = inspect.signature(function).parameters
        assert {"protocol", "rounds", "config", "options", "models", "cheap", "max_cost"} <= names.keys()
        assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in names.values())


@pytest.mark.behaviour("issue-13-explicit-arguments")
def test_arguments_of_the_wrong_type_are_named() -> None:
    with pytest.raises(
        TypeError, match=r'members has "haiku", which is not a Member: name models with models=\["haiku"\]'
    ):
        council.convene_sync("Tabs or spaces?", members=["haiku"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="the question is 5: it must be text"):
        council.convene_sync(5)  # type: ignore[arg-type]


@pytest.mark.behaviour("13-library-empty-question")
@pytest.mark.parametrize("question", ["", "  ", None])
def test_an_empty_question_never_sends_the_changes_of_the_work_tree(question: Any, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "draft.py").write_text("x = 1\n")
    member = Scripted()
    with pytest.raises(UsageError, match="the question is empty, nothing was sent"):
        council.convene_sync(question, folder=tmp_path, members=[member], models=["scripted:"])
    assert council.convene_sync(question, material="Tabs or spaces?", members=[member], models=["scripted:"]).question


@pytest.mark.behaviour("issue-13-explicit-arguments")
def test_the_arguments_of_protocols_are_their_flags() -> None:
    rows = {row["name"]: row for row in flag_table().rows}
    hints = get_type_hints(ProtocolOptions)
    assert hints.keys() == rows.keys()
    for name, row in rows.items():
        parts = {hints[name], *get_args(hints[name])}
        choices = next((get_args(part) for part in parts if get_origin(part) is Literal), ())
        assert list(choices) == row["choices"]
        assert row["kind"] not in ("int", "bool") or {"int": int, "bool": bool}[row["kind"]] in parts


@pytest.mark.behaviour("issue-13-explicit-arguments")
def test_a_misspelt_argument_is_an_error_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r'convene_sync\(\) has no argument "roundz": did you mean "rounds"'):
        council.convene_sync("Tabs?", roundz=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match='did you mean "max_cost"'):
        council.Client(maxcost=2)  # type: ignore[call-arg]


def test_false_and_none_are_the_same_as_not_given() -> None:
    report = convene("How should we start?", protocol=None, quick=False, rounds=None, timeout=None, seats=SEATS)
    assert report.protocol == "collaborative"


def test_models_fill_the_seats_and_cheap_takes_the_fast_ones() -> None:
    members = [Scripted(f"own:m{n}", {}) for n in (1, 2, 3, 4)]
    one = convene(models=["own:m1"], seats={}, members=members)
    assert {seat.model for seat in [*one.seats, *filter(None, [one.chair])]} == {"own:m1"}
    four = convene(models=[member.name for member in members], seats={}, members=members)
    assert [seat.model for seat in four.seats] == [member.name for member in members]
    Path("council.toml").write_text('[models]\nfast = "own:m2"\ndefault = "own:m1"\n')
    cheap = convene(cheap=True, seats={}, members=members)
    assert {seat.model for seat in cheap.seats} == {"own:m2"}
    with pytest.raises(council.UsageError, match="nowhere") as caught:
        convene(models=["nowhere:m"], seats={})
    assert "--" not in str(caught.value) and "-m" not in str(caught.value)


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"protocol": "advisors", "flow": "debate", "rounds": 1}, 'flow="debate" needs at least 2 rounds'),
    ({"protocol": "advisors", "early_stop": True, "rounds": 1}, "early_stop=True needs at least 2 rounds"),
    ({"protocol": "advisors", "rounds": 9}, 'rounds "9" cannot be used'),
    ({"protocol": "triad", "rounds": 2}, "rounds belongs to advisors, but protocol chose triad"),
    ({"protocol": None, "rounds": 2, "deep": True}, "rounds belongs to advisors and deep=True to judges"),
    ({"protocol": "judges", "quick": True, "debate": True}, "quick=True and debate=True are incompatible"),
    ({"protocol": "judges", "count": 50}, "count=50 makes 50 judges"),
    ({"protocol": "judges", "debate": True, "count": 1}, "but count=1 seats one"),
    ({"protocol": "judges", "perspectives": ["a", "a"]}, "perspectives contains the same name twice"),
    ({"protocol": "general", "search": "tavily", "no_search": True}, "search and no_search=True cannot be combined"),
    ({"protocol": "general", "search": "gogle"}, 'search "gogle" is not a known search provider'),
    ({"redact": True, "skip_secrets": True}, "redact=True masks secrets and skip_secrets=True"),
    ({"spec": "missing.md"}, 'spec "missing.md" does not exist'),
    ({"config": "missing.toml"}, "pass another with config or COUNCIL_CONFIG"),
    ({"seats": {**SEATS, "omega": "scripted:"}}, 'seats sets "omega", but no protocol has such a seat'),
    ({"max_cost": -1}, "argument max_cost"),
    ({"timeout": 0}, "argument timeout"),
    ({"continues": "r23456"}, "`client.runs()` lists them"),
]


@pytest.mark.behaviour("issue-13-python-terms")
@pytest.mark.parametrize(("options", "message"), INVALID)
def test_messages_use_python_terms(options: dict[str, Any], message: str) -> None:
    with pytest.raises(council.CouncilError) as caught:
        convene(**options)
    assert message in str(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.behaviour("issue-13-python-terms")
def test_a_missing_search_is_told_in_python_terms() -> None:
    with pytest.raises(council.SearchNotEnabled, match='search="files:FOLDER", or skip research with no_search=True'):
        convene(protocol="general")


# Material


def test_material_goes_into_the_packet() -> None:
    member = Scripted()
    convene(material="The plan: tabs everywhere.", decisions=["No spaces."], members=[member])
    sent = json.dumps(member.calls[0]["messages"])
    assert "tabs everywhere" in sent and "No spaces." in sent


def test_a_run_continues_another() -> None:
    first = convene()
    member = Scripted()
    second = convene("And for YAML?", continues=first.run, members=[member])
    assert second.continues == first.run
    assert first.answer in json.dumps(member.calls[0]["messages"])


# Report


@pytest.mark.behaviour("issue-13-typed-report")
@pytest.mark.parametrize("protocol", ["collaborative", "adversarial", "advisors", "ranking", "judges", "general"])
def test_a_report_survives_the_way_to_json_and_back(protocol: str) -> None:
    seats = {} if protocol == "judges" else SEATS
    options: dict[str, Any] = {"no_search": True} if protocol == "general" else {}
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n[chair]\nmodel = "scripted:"\n')
    Path("plan.md").write_text("Tabs everywhere.")
    report = convene("plan.md", protocol=protocol, seats=seats if protocol != "advisors" else {}, **options)
    data = report.to_dict()
    again = council.Report.from_dict(json.loads(json.dumps(data)))
    assert again == report
    assert again.to_dict() == data == json.loads(json.dumps(data))
    assert report.seats[0].name == data["seats"][0]["name"]
    assert (report.tokens.input, report.cost.usd, report.trust.level) == (data["tokens"]["in"], data["cost"]["usd"], data["trust"]["level"])  # fmt: skip


@pytest.mark.behaviour("issue-13-typed-report")
def test_a_report_keeps_fields_and_values_that_it_does_not_know() -> None:
    data = convene().to_dict() | {"verdict": "MAYBE", "acme": {"votes": 3}, "findings": ["in words"]}
    del data["trust"]  # as in a report of version 0.1
    report = council.Report.from_dict(data)
    assert report.to_dict() == data
    assert (report.verdict, report["acme"], report.findings, report.trust.level) == (
        "MAYBE",
        {"votes": 3},
        ["in words"],
        "LOW",
    )
    assert "- in words" in str(report)


def test_something_else_is_not_a_report() -> None:
    with pytest.raises(council.UsageError, match=r'not a report, "schema" is wrong'):
        council.Report.from_dict({"answer": "yes"})


HOSTILE = "Yes. <script>alert(1)</script> ![pixel](http://x.example/p.png) [x](javascript:alert(1))\n\n| a | b |\n|---|---|\n| 1 | 2 |"


@pytest.mark.behaviour("issue-13-notebook")
def test_a_notebook_shows_the_answer_with_its_trust_and_loads_nothing() -> None:
    report = convene(script={"draft/beta": {"fail": "auth"}, "merge/chair": {"text": HOSTILE}})
    text, html = report._repr_markdown_(), report._repr_html_()
    for shown in (text, html):
        assert "beta" in shown and "Trust: " in shown and "2 of 3 seats" in shown and report.run in shown
    assert "<td>1</td>" in html and "&lt;script&gt;" in html
    assert not any(part in html for part in ("<script", "<img", 'href="javascript'))
    assert "![" not in text


def test_printing_a_report_shows_the_answer_and_its_repr_is_short() -> None:
    report = convene(script={"merge/chair": {"text": "Spaces."}})
    assert "Spaces." in str(report) and "Trust: " in str(report)
    assert repr(report) == f"<Report {report.run} complete triad trust {report.trust.level}>"


@pytest.mark.behaviour("issue-13-notebook")
def test_a_review_shows_verdict_and_findings() -> None:
    finding = {"severity": "critical", "description": "It leaks.", "location": "a.py:3"}
    report = council.Report.from_dict(convene().to_dict() | {"verdict": "FAIL", "findings": [finding]})
    assert "**FAIL**" in report._repr_markdown_()
    assert "**critical** `a.py:3` It leaks." in report._repr_markdown_()


# Status


def test_a_complete_run_returns_itself() -> None:
    report = convene(script={"draft/beta": {"fail": "auth"}})
    assert report.raise_for_status() is report


@pytest.mark.behaviour("issue-13-raise-for-status")
def test_refused_keys_raise_with_the_names_of_the_vendors(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.answer = lambda seen: Reply(status=401)
    lines = [f'[providers.{name}]\nbase_url = "{provider.base_url}"\nvendor = "{vendor}"\nbackoff = 0.01\n' for name, vendor in (("a", "acme"), ("b", "bolt"))]  # fmt: skip
    Path("council.toml").write_text("\n".join(lines))
    trust_project()
    seats = {"alpha": "a:m1", "beta": "b:m1", "gamma": "a:m2", "chair": "a:m1"}
    report = council.convene_sync("Tabs or spaces?", protocol="triad", seats=seats)
    assert (report.status, report.answer) == ("failed", "")
    with pytest.raises(
        council.AuthError, match=r"acme refused its key or login, bolt refused its key or login"
    ) as caught:
        report.raise_for_status()
    assert caught.value.report is report
    assert caught.value.exit_code == 4


@pytest.mark.behaviour("issue-13-raise-for-status")
@pytest.mark.parametrize(
    ("script", "kind", "exit_code"),
    [
        ({f"draft/{seat}": {"fail": "quota"} for seat in SEATS}, council.QuotaError, 4),
        ({"draft/alpha": {"fail": "auth"}, "draft/beta": {"fail": "quota"}, "draft/gamma": {"fail": "auth"}}, council.AccessError, 4),
        ({"draft/alpha": {"fail": "model"}, "draft/beta": {"fail": "quota"}, "draft/gamma": {"fail": "auth"}}, council.RunFailed, 1),
        ({"merge/chair": {"fail": "auth"}}, council.ChairAbsent, 3),
    ],
)  # fmt: skip
def test_each_cause_has_its_exception(script: Any, kind: type[council.CouncilError], exit_code: int) -> None:
    report = convene(script=script)
    with pytest.raises(council.CouncilError) as caught:
        report.raise_for_status()
    assert (type(caught.value), caught.value.exit_code) == (kind, exit_code)
    assert report.run in str(caught.value)


@pytest.mark.behaviour("issue-13-raise-for-status")
@pytest.mark.parametrize(
    ("state", "kind", "exit_code"),
    [("quorum", council.QuorumLost, 3), ("cancelled", council.RunInterrupted, 130), ("incomplete", council.RunIncomplete, 3)],
)  # fmt: skip
def test_an_incomplete_run_raises_what_stopped_it(state: str, kind: type[council.CouncilError], exit_code: int) -> None:
    row = {"seat": None, "phase": "merge", "state": state, "reason": "it was too much"}
    report = council.Report.from_dict(convene().to_dict() | {"status": "incomplete", "degraded": [row]})
    with pytest.raises(council.RunIncomplete, match="it was too much") as caught:
        report.raise_for_status()
    assert (type(caught.value), caught.value.exit_code) == (kind, exit_code)


class Priced(Scripted):
    """A member that costs a dollar per thousand tokens."""

    vendor, free, price = "acme", False, {"input": 1000.0, "output": 1000.0}


@pytest.mark.anyio
@pytest.mark.behaviour("issue-13-raise-for-status")
async def test_a_cap_that_does_not_cover_a_run_raises_with_what_it_needs() -> None:
    seats = dict.fromkeys(SEATS, "acme:m")
    async with council.Client(protocol="triad", members=[Priced("acme:m", {})], seats=seats) as client:
        with pytest.raises(council.CapTooLow, match=r"the cap of \$0.0010 does not cover.*max_cost=") as refused:
            await client.convene("Tabs or spaces?", max_cost=0.001)
        assert (refused.value.scope, refused.value.cap) == ("run", 0.001)
        assert await client.runs() == []
        report = await client.convene("Tabs or spaces?", max_cost=refused.value.needed)
        assert report.raise_for_status().answer
        assert report.cost.usd is not None and report.cost.usd <= refused.value.needed


class Careless(Scripted):
    """A member whose code raises an exception in one of its methods."""

    vendor = "acme"

    def __init__(self, place: str, error: Any) -> None:
        super().__init__("acme:m", {})
        self.place, self.error = place, error

    def fail_in(self, place: str) -> None:
        if self.place == place:
            raise self.error

    def prepare(self, ask: council.Ask) -> bytes:
        self.fail_in("prepare")
        return super().prepare(ask)

    async def ready(self, progress: Any) -> None:
        self.fail_in("ready")

    async def send(self, body: bytes, on_delta: Any) -> council.Answer:
        self.fail_in("send")
        return self.error if self.place == "answer" else await super().send(body, on_delta)

    async def close(self) -> None:
        self.fail_in("close")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class OddEnd(BaseException):
    pass


RAISED: list[tuple[Any, str]] = [
    (ConnectionError("the line\n is dead"), "ConnectionError: the line is dead"), (KeyError("model"), "KeyError: 'model'"),
    (SystemExit(3), "SystemExit: 3"), (KeyboardInterrupt(), "KeyboardInterrupt"), (GeneratorExit(), "GeneratorExit"),
    (OddEnd("odd"), "OddEnd: odd"), (Unspeakable(), "Unspeakable"), (MemoryError(), "MemoryError"),
    (ExceptionGroup("several", [ValueError("a")]), "ExceptionGroup: several (1 sub-exception)"),
    (BaseExceptionGroup("several", [SystemExit(1)]), "BaseExceptionGroup: several (1 sub-exception)"),
    (asyncio.CancelledError("its own"), "CancelledError: its own"), (council.Fault("nonsense", "x"), 'Fault: unknown kind "nonsense": x'),
    (council.Fault(["odd"], "5"), "Fault: unknown kind \"['odd']\": 5"),  # type: ignore[arg-type]
]  # fmt: skip
COUNCIL_ERRORS: list[tuple[Any, str]] = [
    (council.BudgetSpent("no money"), "BudgetSpent: no money"), (council.QuorumLost("alone"), "QuorumLost: alone"),
    (council.StoreError("no disk"), "StoreError: no disk"), (council.ConfigError("wrong"), "ConfigError: wrong"),
]  # fmt: skip


def convene_careless(careless: Careless) -> council.Report:
    """Run a triad with the member in one seat, as a program does: with the signal handlers of asyncio.run."""
    seats = {**SEATS, "beta": "acme:m"}
    return council.convene_sync("Tabs or spaces?", protocol="triad", members=[Scripted(), careless], seats=seats)


@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize("place", ["send", "prepare", "ready"])
def test_a_member_that_raises_is_an_absent_seat_with_the_name_of_the_exception(place: str) -> None:
    for error, reason in RAISED if place == "ready" else [*RAISED, *COUNCIL_ERRORS]:
        report = convene_careless(Careless(place, error))
        (missing,) = (row for row in report.degraded if row.seat == "beta")
        assert (report.status, missing.state, missing.reason) == ("complete", "failed(member)", reason)


@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize("answer", [
    None, "text", council.Answer(5), council.Answer("text", usage=None),  # type: ignore[arg-type]
])  # fmt: skip
def test_a_member_that_returns_no_answer_is_an_absent_seat(answer: Any) -> None:
    report = convene_careless(Careless("answer", answer))
    (missing,) = (row for row in report.degraded if row.seat == "beta")
    assert (report.status, missing.state) == ("complete", "failed(member)")
    assert missing.reason.startswith("TypeError: ")


@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize("fields", [{"model": None}, {"model": b"m"}, {"id": 5}, {"finish": None}], ids=repr)
def test_an_answer_with_odd_metadata_counts(fields: Any) -> None:
    """It is paid for, and `model=response.get("model")` is None where the endpoint does not name the model."""
    report = convene_careless(Careless("answer", council.Answer("I advise spaces.", **fields)))
    assert (report.status, [row for row in report.degraded if row.seat == "beta"]) == ("complete", [])


async def fail() -> None:
    raise ConnectionError("aborted")


class FailingGroup(Careless):
    async def send(self, body: bytes, on_delta: Any) -> council.Answer:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(asyncio.sleep(3600))
        raise AssertionError


class ErrorAfterFailedGroup(Careless):
    async def send(self, body: bytes, on_delta: Any) -> council.Answer:
        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        raise ConnectionError("aborted")


class OwnCancellation(Careless):
    async def send(self, body: bytes, on_delta: Any) -> council.Answer:
        task = asyncio.current_task()
        assert task
        task.cancel()
        await asyncio.sleep(0)
        raise AssertionError


class UnreadableAnswer(council.Answer):
    def __getattribute__(self, name: str) -> Any:
        if name == "text":
            raise ConnectionError("aborted")
        return super().__getattribute__(name)


@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (FailingGroup("", None), "ExceptionGroup: "),
        (ErrorAfterFailedGroup("", None), "ConnectionError: aborted"),
        (OwnCancellation("", None), "CancelledError"),
        (Careless("answer", UnreadableAnswer("Tabs.")), "ConnectionError: aborted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_member_whose_own_tasks_fail_is_an_absent_seat(member: Careless, reason: str) -> None:
    report = convene_careless(member)
    (missing,) = (row for row in report.degraded if row.seat == "beta")
    assert (report.status, missing.state) == ("complete", "failed(member)")
    assert missing.reason.startswith(reason)


@pytest.mark.behaviour("30-member-raises")
def test_a_member_may_handle_the_failure_of_its_own_tasks() -> None:
    class Recovering(Careless):
        async def send(self, body: bytes, on_delta: Any) -> council.Answer:
            with suppress(ExceptionGroup):
                async with asyncio.TaskGroup() as group:
                    group.create_task(fail())
            await asyncio.sleep(0)
            return await super().send(body, on_delta)

    report = convene_careless(Recovering("", None))
    assert (report.status, [row for row in report.degraded if row.seat == "beta"]) == ("complete", [])


@pytest.mark.behaviour("30-member-raises")
def test_a_member_that_streams_no_text_is_an_absent_seat() -> None:
    class Streaming(Careless):
        async def send(self, body: bytes, on_delta: Any) -> council.Answer:
            on_delta(b"text")
            return await super().send(body, on_delta)

    report = convene_careless(Streaming("", None))
    (missing,) = (row for row in report.degraded if row.seat == "beta")
    assert (report.status, missing.reason) == ("complete", "TypeError: on_delta got bytes, not str")


@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize("fields", [{"retry_after": "1"}, {"retry_after": math.nan}, {"said": None}], ids=repr)
def test_a_fault_with_fields_of_other_types_is_a_fault_of_its_kind(fields: Any) -> None:
    report = convene_careless(Careless("send", council.Fault("refused", "no", **fields)))
    (missing,) = (row for row in report.degraded if row.seat == "beta")
    assert (report.status, missing.state) == ("complete", "refused")


@pytest.mark.behaviour("30-member-raises")
def test_characters_that_cannot_be_stored_are_replaced_in_all_fields_of_an_answer() -> None:
    report = convene_careless(Careless("answer", council.Answer("I advise spaces.", model="m\ud800", id="\udfff")))
    assert (report.status, [row for row in report.degraded if row.seat == "beta"]) == ("complete", [])


@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize("error", [ValueError("open"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_a_member_that_cannot_be_closed_changes_nothing(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    report = convene_careless(Careless("close", error))
    council.close()
    assert (report.status, [row for row in report.degraded if row.seat == "beta"]) == ("complete", [])
    assert f"the member acme:m could not be closed: {type(error).__name__}" in caplog.text


@pytest.mark.behaviour("30-member-raises")
def test_a_member_whose_attributes_raise_is_refused_with_its_name() -> None:
    class Unpriced(Scripted):
        @property
        def price(self) -> dict[str, float]:
            raise LookupError("no list")

    with pytest.raises(council.ConfigError, match=r"the member Unpriced cannot be used \(LookupError: no list\)"):
        council.convene_sync("Tabs or spaces?", members=[Unpriced()], seats=SEATS)


@pytest.mark.anyio
@pytest.mark.behaviour("30-member-raises")
async def test_a_cancelled_program_ends_although_its_members_are_guarded() -> None:
    """The task is cancelled while all seats wait; the run can be resumed."""
    waiting = Scripted(script={f"draft/{seat}": {"stall": True} for seat in SEATS})
    asking = asyncio.ensure_future(council.convene("Tabs or spaces?", protocol="triad", members=[waiting], seats=SEATS))
    while len(waiting.calls) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with council.Client(members=[Scripted()]) as client:
        (row,) = await client.runs()
        assert row["status"] == "incomplete"
        assert (await client.resume()).status == "complete"


@pytest.mark.anyio
@pytest.mark.behaviour("13-one-run-row")
async def test_a_listed_run_has_the_declared_fields_and_types() -> None:
    from council.doors.web.models import RunRow

    async with council.Client(members=[Scripted()]) as client:
        report = await client.convene("Tabs or spaces?", seats=SEATS)
        (row,) = await client.runs()
    assert list(row) == [field.name for field in list_fields(council.RunRow)]
    assert (row["run"], row["question"], row["unfinished"]) == (report.run, "Tabs or spaces?", False)
    assert row["trust"] == report.trust.level
    RunRow.model_validate({"id": row["run"], **row}, strict=True)


@pytest.mark.anyio
@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize(
    "error", [ConnectionError("aborted"), TimeoutError("aborted"), council.Fault("net", "aborted")]
)
async def test_a_cancelled_program_ends_although_a_member_makes_an_error_of_it(error: Exception) -> None:
    class Aborting(Scripted):
        async def send(self, body: bytes, on_delta: Any) -> council.Answer:
            self.calls.append(body)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise error from None
            raise AssertionError

    member = Aborting()
    asking = asyncio.ensure_future(council.convene("Tabs or spaces?", protocol="triad", members=[member], seats=SEATS))
    while len(member.calls) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert len(member.calls) == 3


TERMINATED = """
import asyncio, os, signal, sys
import council
from council.members.scripted import Scripted

class Blocking(Scripted):
    async def send(self, body, on_delta):
        os.kill(os.getpid(), signal.SIGTERM)
        return await super().send(body, on_delta)

seats = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
council.convene_sync("Tabs or spaces?", protocol="triad", members=[Blocking()], seats=seats)
"""


@pytest.mark.behaviour("30-member-raises")
def test_a_signal_handler_of_the_program_ends_it_while_a_member_works() -> None:
    done = subprocess.run([sys.executable, "-c", TERMINATED], capture_output=True, text=True, check=False)
    assert done.returncode == 143, done.stderr


INTERRUPTED = """
import asyncio, os, signal, sys
import council
from council.members.scripted import Scripted

class Interrupted(Scripted):
    async def send(self, body, on_delta):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

seats = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
question = council.convene("Tabs or spaces?", protocol="triad", members=[Interrupted()], seats=seats)
try:
    if sys.argv[1] == "runner":
        asyncio.run(question)
    else:
        asyncio.new_event_loop().run_until_complete(question)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize("way", ["runner", "loop"])
def test_ctrl_c_ends_a_program_while_a_member_works(way: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, way], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


# Client


@pytest.mark.anyio
@pytest.mark.behaviour("issue-13-client")
async def test_a_client_keeps_its_settings_and_one_store() -> None:
    member = Scripted()
    async with council.Client(protocol="triad", members=[member], seats=SEATS, max_cost=1.0) as client:
        plan = await client.plan("Tabs or spaces?")
        assert (plan["protocol"], plan["calls"]["max"], member.calls) == ("triad", 4, [])
        with pytest.raises(council.SearchNotEnabled):
            await client.plan("Tabs or spaces?", protocol="general")
        first = await client.convene("Tabs or spaces?")
        second = await client.convene("Why?", protocol="adversarial", continues=first.run)
        assert (first.protocol, second.protocol, second.continues) == ("triad", "adversarial", first.run)
        assert first.cost.cap == second.cost.cap == 1.0
        assert {row["run"] for row in await client.runs()} == {first.run, second.run}
        assert (await client.report()).run == second.run
        assert (await client.report(first.run)).answer == first.answer
        kinds = [entry.event.type async for entry in client.follow(first.run)]
        assert (kinds[0], kinds[-1]) == ("convened", "closed")
        assert await client.cancel(first.run) is False


@pytest.mark.anyio
@pytest.mark.behaviour("issue-13-client")
async def test_a_client_resumes_and_forks() -> None:
    stalled = Scripted(script={"merge/chair": {"stall": True}})
    async with council.Client(protocol="triad", members=[stalled], seats=SEATS) as client:
        async with client.stream("Tabs or spaces?") as run:
            async for entry in run:
                if isinstance(entry.event, ev.PhaseEnded):
                    break
            assert (run.report.status, run.report.trust.level, run.report.tail) == (None, None, [])
            with pytest.raises(council.RunIncomplete, match="has not ended"):
                run.report.raise_for_status()
        assert (run.report.status, run.report.trust.level) == ("incomplete", "LOW")
        with pytest.raises(council.RunInterrupted, match=rf'client.resume\("{run.run}"\)'):
            (await client.report()).raise_for_status()
        resumed = await client.resume(members=[Scripted()])
        assert (resumed.run, resumed.status, resumed.calls.replayed) == (run.run, "complete", 3)
        other = Scripted("own:chair", {"merge/chair": {"text": "Tabs."}})
        forked = await client.fork(run.run, seats={"chair": other.name}, members=[Scripted(), other])
        assert (forked.answer, forked.calls.made, forked.fork and forked.fork.run) == ("Tabs.", 1, run.run)
        with pytest.raises(council.UnknownRun, match=r"no unfinished run: `client.runs\(\)` lists all runs"):
            await client.resume()


@pytest.mark.anyio
async def test_a_stream_has_the_report_so_far() -> None:
    stream = council.stream("Tabs or spaces?", protocol="triad", members=[Scripted()], seats=SEATS)
    with pytest.raises(council.UsageError, match="has not started"):
        _ = stream.report
    async with aclosing(stream) as entries:
        seen = [entry async for entry in entries]
    assert all(isinstance(entry, council.Entry) for entry in seen)
    assert (stream.run, stream.report.status) == (seen[0].event.run, "complete")
