"""Output without a terminal: one line per phase or per event, a heartbeat, and the lines before and after a run."""

from __future__ import annotations

from io import StringIO

import pytest

from council import events as ev
from council.doors.cli.history_commands import _list_run_parts
from council.events import Entry
from council.render.plain import PlainView
from council.render.report import build_report
from council.render.terminal import (
    format_footer,
    format_plan,
    format_seconds,
    format_summary,
    list_hints,
    list_warnings,
)
from council.store.interface import RunStatus
from council.types import Json
from tests.render.runs import RunBuilder, collaborative, consensus, one_absent, plan, seat


def plain_lines(builder: RunBuilder, *, every_event: bool = True) -> list[str]:
    stream = StringIO()
    view = PlainView(stream, every_event=every_event)
    for entry in builder.entries:
        view.on_event(entry)
    view.close()
    return stream.getvalue().splitlines()


@pytest.mark.behaviour("50-off-terminal-lines")
def test_every_step_of_a_run_is_one_plain_line() -> None:
    assert plain_lines(one_absent())[:12] == [
        "council r7k2 convened: collaborative, 3 seats",
        "council r7k2 draft begins",
        "council r7k2 draft alpha asked scripted:m1",
        "council r7k2 draft beta asked scripted:m1",
        "council r7k2 draft gamma asked scripted:m1",
        "council r7k2 draft alpha ok 3 words 3.2s",
        "council r7k2 draft beta fault on scripted:m1: server: 500 from the server; next try in 2.0s",
        "council r7k2 draft beta attempt 2 on scripted:m1: after server: 500",
        "council r7k2 draft beta absent after 3 attempts: failed(server): 500 from the server",
        "council r7k2 draft gamma ok 3 words 3.2s",
        "council r7k2 draft done: 2 of 3 answered",
        "council r7k2 improve begins",
    ]


@pytest.mark.behaviour("50-quiet", "50-off-terminal-lines")
def test_by_default_each_finished_phase_is_one_line() -> None:
    assert plain_lines(collaborative(), every_event=False) == ["draft 3/3 4 s", "improve 3/3 4 s", "synthesise 1/1 2 s"]
    assert plain_lines(one_absent(), every_event=False)[0] == "draft 2/3 6 s"


@pytest.mark.behaviour("50-quiet", "50-plain-words")
def test_a_round_is_named_in_words() -> None:
    builder = RunBuilder(plan("advisors")).phase("r1").answer("alpha", "a").answer("beta", "b").end_phase()
    assert plain_lines(builder, every_event=False) == ["round 1: 2/2 3 s"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0.0 s"), (0.44, "0.4 s"), (1.2, "1 s"), (34.4, "34 s"), (119.0, "119 s"), (125.0, "2 min 5 s")],
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.behaviour("50-off-terminal-lines")
def test_last_line_says_how_the_run_ended() -> None:
    assert plain_lines(collaborative())[-1] == "council r7k2 complete 7 calls 14.0s"


def test_note_is_a_line() -> None:
    assert "council r7k2 note: attack skipped: consensus detected" in plain_lines(consensus())


def test_fallback_that_served_is_shown() -> None:
    line = plain_lines(RunBuilder().phase("draft").answer("alpha", "a b", served_by="sim:m2"))[-1]
    assert line == "council r7k2 draft alpha ok 2 words 3.2s served by sim:m2"


def test_judge_line_shows_its_verdict() -> None:
    reply = {"verdict": "FAIL", "confidence": "HIGH", "findings": [1, 2, 3]}
    line = plain_lines(RunBuilder().phase("r1").answer("codex-1", "long", reply=reply, seconds=41.0))[-1]
    assert line == "council r7k2 r1 codex-1 ok FAIL HIGH 3 findings 41.0s"


def test_streaming_writes_no_lines() -> None:
    builder = RunBuilder().phase("draft").ask("alpha")
    assert plain_lines(builder) == plain_lines(builder.stream("alpha", "words and more words"))


def test_colour_and_control_characters_never_reach_the_stream() -> None:
    builder = RunBuilder().phase("draft").ask("alpha").fault("alpha", "server", "\x1b[31mboom\n\x07second line")
    assert plain_lines(builder)[-1] == "council r7k2 draft alpha fault on scripted:m1: server: boom second line"


def test_download_is_reported_every_tenth() -> None:
    stream = StringIO()
    view = PlainView(stream, every_event=True)
    for done in range(0, 93_000_001, 930_000):
        view.on_event(Entry(0, 1.0, ev.Fetching("SmolLM2", done, 93_000_000)))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[1] == "council fetching SmolLM2 10 % (9 of 93 MB)"


@pytest.mark.behaviour("50-heartbeat")
@pytest.mark.parametrize(("every_event", "start"), [(True, "council r7k2 still"), (False, "still")])
def test_heartbeat_comes_after_sixty_quiet_seconds_and_again_after_sixty_more(every_event: bool, start: str) -> None:
    stream = StringIO()
    view, builder = (
        PlainView(stream, every_event=every_event),
        RunBuilder().phase("draft").ask("alpha").stream("alpha", "one two"),
    )
    for entry in builder.entries:
        view.on_event(entry)
    earlier = len(stream.getvalue().splitlines())
    for second in range(122):
        view.tick(builder.at + second)
    beats = stream.getvalue().splitlines()[earlier:]
    assert beats == [
        f"{start} working: alpha in draft for 61 s, 2 words",
        f"{start} working: alpha in draft for 121 s, 2 words",
    ]


@pytest.mark.behaviour("50-silence-shown")
def test_heartbeat_says_how_long_a_silent_request_may_take() -> None:
    stream = StringIO()
    view, builder = PlainView(stream, every_event=True), RunBuilder().phase("draft").ask("alpha", seconds=300.0)
    for entry in builder.entries:
        view.on_event(entry)
    for second in (0, 70):
        view.tick(builder.at + second)
    last = stream.getvalue().splitlines()[-1]
    assert last == "council r7k2 still working: alpha in draft for 70 s of 300 s, no output yet"


@pytest.mark.behaviour("50-silence-shown")
def test_runs_show_says_how_long_a_silent_request_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = RunBuilder().phase("draft").ask("alpha", seconds=300.0)
    monkeypatch.setattr("time.time", lambda: builder.at + 70)
    running = _list_run_parts(builder.minutes, RunStatus.RUNNING, verbose=False)
    assert "waiting: alpha in draft for 70 s of 300 s, no output yet" in running[0].text.split("\n")
    stopped = _list_run_parts(builder.minutes, RunStatus.STOPPED, verbose=False)
    assert not any("waiting:" in part.text for part in stopped)


def test_line_delays_the_heartbeat() -> None:
    stream = StringIO()
    view = PlainView(stream, every_event=True)
    view.tick(0.0)
    view.tick(59.0)
    view.on_event(RunBuilder().entries[0])
    view.tick(61.0)
    view.tick(119.0)
    assert "still working" not in stream.getvalue()


@pytest.mark.behaviour("50-resume-summary-line")
def test_earlier_entries_of_a_resumed_run_are_one_line() -> None:
    stream = StringIO()
    view = PlainView(stream, every_event=True)
    view.catch_up(one_absent().entries[:-1])
    assert stream.getvalue() == "council r7k2 resuming: 5 statements and 1 absence in the ledger\n"
    assert len(view.minutes.statements) == 5


# Before and after


@pytest.mark.behaviour("00-why-printed-before")
def test_protocol_and_its_reason_are_the_first_line_before_a_run() -> None:
    lines = format_plan(plan("adversarial", why='the words "which is better"', calls={"min": 5, "max": 7}))
    assert lines[0] == 'protocol adversarial: the words "which is better"'
    assert "  alpha  scripted:m1  (Drafter & Red Teamer)" in lines
    assert lines[-1] == "5 to 7 calls"


def test_warnings_and_notices_are_shown_before_a_run() -> None:
    assert format_plan(plan(notices=["one family only"], warnings=["slow"]))[-2:] == ["! slow", "! one family only"]
    assert format_plan(plan(notices=["once"], warnings=["once"])).count("! once") == 1


def test_fallbacks_are_shown_before_a_run() -> None:
    lines = format_plan(plan(seats=[seat("alpha", model="sim:m1", fallbacks=["sim:m2"])]))
    assert "  alpha  sim:m1, then sim:m2" in lines


def test_many_seats_share_lines_by_member() -> None:
    lines = format_plan(plan("judges", tuple(f"judge-{n}" for n in range(1, 7))))
    assert "  judge-1, judge-2, judge-3, judge-4, judge-5, judge-6: scripted:m1" in lines


def test_packet_and_price_of_the_plan_are_shown() -> None:
    packet = {"files": ["a", "b"], "bytes": 38_000, "tokens": 9800, "skipped": [{"path": "x", "why": "binary"}]}
    lines = format_plan(plan(packet=packet, cost={"low": 0.14, "expected": 0.31, "worst": 0.52}))
    assert "packet 2 files, 38 KB, ~9,800 tokens · left out 1 (binary)" in lines
    assert "cost low $0.14 · expected $0.31 · worst $0.52" in lines


@pytest.mark.behaviour("50-after-a-run")
def test_after_a_run_come_report_spending_and_replay() -> None:
    assert format_summary(build_report(collaborative().minutes)) == [
        "report .agents/council/2027-01-15-collaborative-tabs.md",
        "7 calls · 700 tokens in, 140 out · no cost · 14.0 s",
        "replay: council runs replay r7k2",
    ]


@pytest.mark.behaviour("50-after-a-run")
def test_after_an_unfinished_run_comes_resume_and_an_unknown_price_is_called_unknown() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "a", served_by="sim:m1")
    lines = format_summary(build_report(builder.close("", status="incomplete", stopped="interrupted").minutes))
    assert lines[-1] == "resume: council resume r7k2"
    assert "cost unknown (sim:m1 unpriced)" in lines[-2]


@pytest.mark.behaviour("50-quiet", "50-after-a-run")
@pytest.mark.parametrize(
    ("changed", "how", "line"),
    [
        ({"cost": {"usd": 0.13, "estimated": False, "unpriced": []}}, {}, '$0.13 · 14 s · r7k2 · council open · council -c "…"'),
        ({"cost": {"usd": 0.13, "estimated": True, "unpriced": []}}, {"hints": False}, "about $0.13 · 14 s · r7k2"),
        ({"cost": {"usd": None, "estimated": False, "unpriced": ["sim:m1"]}}, {"hints": False}, "cost unknown · 14 s · r7k2"),
        ({"calls": {"made": 7, "replayed": 0, "in_doubt": 1}}, {"hints": False}, "no cost · 1 call in doubt · 14 s · r7k2"),
        ({"seconds": 0.3}, {"report_path": ".agents/council/x.md"}, "no cost · 0.3 s · r7k2 · report .agents/council/x.md"),
        ({"status": "incomplete"}, {"report_path": "x.md"}, "no cost · 14 s · r7k2 · resume: council resume r7k2"),
    ],
)  # fmt: skip
def test_the_last_line_has_cost_time_run_and_the_next_step(changed: Json, how: Json, line: str) -> None:
    report = build_report(collaborative().minutes)
    report.update(changed)  # type: ignore[typeddict-item]
    assert format_footer(report, **how) == line


@pytest.mark.behaviour("50-quiet", "50-notices-once-a-day")
def test_only_warnings_that_are_neither_hints_nor_remarks_are_printed_before_every_run() -> None:
    shown = plan(notices=["one family only"], warnings=["one family only", "--seat x has no effect", "try --mixed"])
    shown |= {"hints": ["try --mixed"], "remarks": ["one family only"]}
    assert list_warnings(shown) == ["--seat x has no effect"]
    assert list_hints(shown) == ["try --mixed"]
    assert list_hints(plan()) == [], "a plan of an earlier version has none"


def test_a_phase_of_a_resumed_run_shows_the_time_since_it_was_resumed() -> None:
    builder = RunBuilder().phase("draft").ask("alpha", "beta", "gamma").answer("alpha", "a")
    builder.add(ev.Resumed("r7k2"), after=90_000.0)
    builder.answer("beta", "b").answer("gamma", "c").end_phase().close("Yes.")
    (line,) = [line for line in plain_lines(builder, every_event=False) if line.startswith("draft")]
    assert line.startswith("draft 3/3 ") and "min" not in line


def test_a_statement_of_a_fork_names_its_run_and_a_stopped_run_its_reason() -> None:
    builder = RunBuilder(plan(fork={"run": "r1aa", "from": "improve"})).phase("draft")
    builder.answer("alpha", "alpha drafts this.", attempts=0).end_phase()
    lines = plain_lines(builder.close("", status="incomplete", stopped="budget"))
    assert lines[-1].startswith("council r7k2 incomplete (budget) 7 calls ")
    assert plain_lines(collaborative())[-1].startswith("council r7k2 complete 7 calls ")
    assert "council r7k2 draft alpha ok 3 words 3.2s taken from r1aa" in lines
