"""kill -9 at every event, commit, request and change of a file, of every shape of run and every way to start one.

The quick part has a sample of the points. `pytest -m sweep -n 2 tests/acceptance/test_crash_everywhere.py` tries all of
them and prints the number of kills by starter and by shape, and how often something was lost or bought again; `-k
rejected` selects the runs whose seats give rejected answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from council.errors import UnknownRun
from council.runs.service import Convener
from council.store.sqlite import SqliteStore
from tests.acceptance.broken_stores import (
    AcknowledgesEarly,
    ForgetsRejectedAnswers,
    ForgetsUnfinishedPhase,
    KeepsResultsInMemory,
    RecordsRequestsLate,
)
from tests.acceptance.crash_shapes import HEDGED_SHAPES, REJECTED_SHAPES, SHAPES
from tests.acceptance.crash_trials import (
    Command,
    CrashBench,
    Detached,
    Library,
    Mcp,
    Outcome,
    Starter,
    Web,
    count_points,
    make_reference,
    try_points,
)
from tests.acceptance.helpers import QUESTION, Workspace, kill, wait_for_exit, wait_until
from tests.databases import Server
from tests.fake_provider import FakeProvider

Figures = Callable[..., None]
MakeBench = Callable[[str], CrashBench]
PLAIN_SHAPES = [shape for shape in SHAPES if shape not in {**REJECTED_SHAPES, **HEDGED_SHAPES}]
STARTERS: dict[str, Callable[[], Starter]] = {
    "cli": Command,
    "library": Library,
    "worker": Detached,
    "web": lambda: Web("server"),
    "web-worker": lambda: Web("worker"),
    "mcp": lambda: Mcp("server"),
    "mcp-worker": lambda: Mcp("worker"),
}


@pytest.fixture
def make_bench(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> MakeBench:
    """Return a function that prepares the folder and the endpoint of a shape."""
    monkeypatch.setenv("COUNCIL_CONFIG", "")  # some shapes set it
    monkeypatch.delenv("COUNCIL_CONFIG")
    return lambda shape: CrashBench(SHAPES[shape], Path.cwd(), provider, monkeypatch.setenv)


@pytest.fixture
def make_shared_bench(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, postgres: Server) -> Iterator[MakeBench]:
    """The same with a new PostgreSQL database for each trial."""
    monkeypatch.setenv("COUNCIL_CONFIG", "")
    monkeypatch.delenv("COUNCIL_CONFIG")
    with ExitStack() as databases:

        def make_database() -> str:
            databases.close()  # those of earlier trials
            return databases.enter_context(postgres.database())

        yield lambda shape: CrashBench(SHAPES[shape], Path.cwd(), provider, monkeypatch.setenv, make_database)


# All points


class Part(NamedTuple):
    """Trials of one test: each has a first point of this kind, and further points of these kinds at changing places."""

    starter: str
    shape: str
    kinds: tuple[str, ...]
    first: int = 1
    step: int = 1

    @property
    def name(self) -> str:
        return f"{self.starter}-{self.shape}-{'+'.join(self.kinds)}-{self.first}"

    def points(self) -> Iterator[list[str]]:
        """Yield the points of each trial: first points in order, further ones at their own place or at a changing
        one.
        """
        for n in count(self.first, self.step):
            later = [
                kind if ":" in kind else f"{kind}:{1 + n * (place + 2) % 9}"
                for place, kind in enumerate(self.kinds[1:])
            ]
            yield [f"{self.kinds[0]}:{n}", *later]


def make_params(parts: Iterable[Part], store: str = "") -> list[Any]:
    """Return the parameters of a sweep test. The shape of each part, with its store, is what a recorded run covers."""
    return [pytest.param(part, id=part.name, marks=pytest.mark.covers(f"{store}{part.shape}")) for part in parts]


def list_parts() -> Iterator[Part]:
    """Return all parts of the sweep, each of about the same length."""
    for shape in PLAIN_SHAPES:
        for first in (1, 2):
            yield Part("library", shape, ("emit",), first, 2)
        yield Part("library", shape, ("emit", "emit"), 2, 2)
        yield Part("library", shape, ("emit", "commit", "request"), 3, 4)
        yield Part("cli", shape, ("commit",), 2, 2)
        yield Part("cli", shape, ("committed", "committed"), 1, 2)
        yield Part("cli", shape, ("request", "request"))
    for second in range(1, 9):
        yield Part("library", "triad", ("emit", f"emit:{second}"))
    for shape in ("triad", "judges-explorers", "brainstorm"):
        yield Part("cli", shape, ("file",))
        yield Part("cli", shape, ("filed", "filed"))
    for shape in ("collaborative", "judges-debate", "general"):
        yield Part("worker", shape, ("event",), 1, 2)
        yield Part("worker", shape, ("committed", "event"), 2, 3)
        yield Part("worker", shape, ("request",))
    yield Part("worker", "judges", ("filed",))
    for starter in ("web", "mcp"):
        for kind in ("commit", "committed", "file", "filed"):
            yield Part(starter, "triad", (kind,))
        yield Part(f"{starter}-worker", "adversarial", ("event", "committed"), 1, 3)
        yield Part(f"{starter}-worker", "ranking", ("committed",), 1, 3)


@pytest.mark.sweep
@pytest.mark.behaviour(
    "40-kill-resume-every-boundary", "40-kill-during-resume", "40-resume-byte-identical", "40-committed-never-bought-again",
    "40-fsck", "40-kill-every-starter", "40-kill-while-reports-are-written",
)  # fmt: skip
@pytest.mark.parametrize("part", make_params(list_parts()))
def test_killed_at_every_point(make_bench: MakeBench, sweep_figures: Figures, part: Part) -> None:
    bench = make_bench(part.shape)
    try_part(bench, make_reference(bench), sweep_figures, part)


REJECTED_PARTS = [
    *(Part("library", shape, ("emit",)) for shape in REJECTED_SHAPES),
    *(Part("library", shape, ("emit", "request"), 3, 9) for shape in REJECTED_SHAPES),
    *(Part("cli", shape, ("commit",), 2, 6) for shape in REJECTED_SHAPES),
    Part("worker", "fallbacks-rejected", ("committed", "event"), 2, 3),
]


@pytest.mark.sweep
@pytest.mark.behaviour("40-rejected-answer-never-bought-again", "40-kill-resume-every-boundary")
@pytest.mark.parametrize("part", make_params(REJECTED_PARTS))
def test_killed_at_every_point_with_rejected_answers(make_bench: MakeBench, sweep_figures: Figures, part: Part) -> None:
    bench = make_bench(part.shape)
    try_part(bench, make_reference(bench), sweep_figures, part, "rejected")


HEDGED_PARTS = [
    Part("library", "hedged", ("emit",), 4),
    Part("library", "hedged", ("emit", "request"), 5, 4),
    Part("cli", "hedged", ("commit",)),
]


@pytest.mark.sweep
@pytest.mark.behaviour("15-hedge", "40-kill-resume-every-boundary")
@pytest.mark.parametrize("part", make_params(HEDGED_PARTS))
def test_killed_at_every_point_with_two_members_at_work(
    make_bench: MakeBench, sweep_figures: Figures, part: Part
) -> None:
    bench = make_bench(part.shape)
    try_part(bench, make_reference(bench), sweep_figures, part)


SHARED_REJECTED_PARTS = [Part("library", shape, ("emit",), 2, 2) for shape in ("triad-rejected", "fallbacks-rejected")]


@pytest.mark.sweep
@pytest.mark.behaviour("40-rejected-answer-never-bought-again", "16-both-stores")
@pytest.mark.parametrize("part", make_params(SHARED_REJECTED_PARTS, "postgres/"))
def test_killed_at_every_point_with_rejected_answers_on_postgres(
    make_shared_bench: MakeBench, sweep_figures: Figures, part: Part
) -> None:
    bench = make_shared_bench(part.shape)
    try_part(bench, make_reference(bench), sweep_figures, part, "rejected")


def try_part(bench: CrashBench, reference: Outcome, sweep_figures: Figures, part: Part, sweep: str = "crash") -> None:
    starter = STARTERS[part.starter]()
    failed, figures = {}, {"points": 0, "trials": 0, "lost": 0, "bought_again": 0, "failed": 0}
    for points in part.points():
        trial = try_points(bench, starter, reference, points)
        figures["points"] += trial.kills
        figures["trials"] += 1
        for kind in ("lost", "bought_again"):
            figures[kind] += sum(found == kind for found, _ in trial.problems)
        if trial.problems:
            figures["failed"] += 1
            failed[str(points)] = trial.problems
        if trial.kills == 0:
            break
    sweep_figures(sweep, **figures, **{part.starter: figures["points"], part.shape: figures["points"]})
    assert failed == {}


SHARED_PARTS = [
    *(Part("library", shape, ("emit",), 1, 3) for shape in ("triad", "collaborative", "judges-debate")),
    Part("library", "adversarial", ("emit", "commit", "request"), 2, 4),
    Part("cli", "triad", ("commit",), 1, 1),
    Part("cli", "collaborative", ("committed", "committed"), 1, 2),
    Part("cli", "triad", ("event",), 1, 2),
    Part("worker", "triad", ("committed", "event"), 2, 2),
]


@pytest.mark.sweep
@pytest.mark.behaviour("16-both-stores")
@pytest.mark.parametrize("part", make_params(SHARED_PARTS, "postgres/"))
def test_killed_at_every_point_on_postgres(make_shared_bench: MakeBench, sweep_figures: Figures, part: Part) -> None:
    bench = make_shared_bench(part.shape)
    reference = make_reference(bench, STARTERS[part.starter]())  # a worker of a database writes no report file
    try_part(bench, reference, sweep_figures, part)


# A sample of the points


@pytest.mark.behaviour("16-both-stores")
def test_a_run_on_postgres_killed_at_commits_ends_the_same(make_shared_bench: MakeBench) -> None:
    bench = make_shared_bench("triad")
    reference = make_reference(bench)
    trial = try_points(bench, Command(), reference, ["commit:3", "committed:2"])
    assert (trial.kills, trial.problems) == (2, [])


@pytest.mark.behaviour("40-kill-resume-every-boundary", "40-kill-during-resume", "40-resume-byte-identical", "40-fsck")
@pytest.mark.parametrize("shape", PLAIN_SHAPES)
def test_a_run_killed_and_killed_again_while_it_is_resumed_ends_the_same(make_bench: MakeBench, shape: str) -> None:
    bench = make_bench(shape)
    reference = make_reference(bench)
    trial = try_points(bench, Library(), reference, [f"emit:{reference.events // 2}", "request:1"])
    assert (trial.kills, trial.problems) == (2, [])


@pytest.mark.behaviour("15-hedge", "40-kill-resume-every-boundary", "40-unknown-price-is-unknown")
def test_a_run_killed_while_two_members_work_on_a_step_ends_the_same(make_bench: MakeBench) -> None:
    """The fourth request is that of the member that is asked too. Its notice and the unknown cost are kept."""
    bench = make_bench("hedged")
    reference = make_reference(bench)
    ((first,),) = bench.workspace.rows("SELECT seq FROM events WHERE type = 'hedge'")
    for points in (["request:4", "request:1"], [f"emit:{first}"], [f"emit:{first + 1}"]):
        trial = try_points(bench, Library(), reference, points)
        assert (trial.kills, trial.problems) == (len(points), []), points


QUICK_REJECTED = (
    "triad-rejected",
    "ranking-rejected",
    "judges-rejected",
    "fallbacks-rejected",
    "collaborative-rejected",
)


@pytest.mark.behaviour("40-rejected-answer-never-bought-again", "40-kill-during-resume")
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, marks=() if shape in QUICK_REJECTED else (pytest.mark.sweep, pytest.mark.covers(shape)))
        for shape in REJECTED_SHAPES
    ],
)
def test_answers_that_were_rejected_before_a_kill_are_not_bought_again(make_bench: MakeBench, shape: str) -> None:
    """Killed when the first step has ended without an answer, and again when it is resumed."""
    bench = make_bench(shape)
    reference = make_reference(bench)
    rows = bench.workspace.rows("SELECT seq FROM events WHERE type = 'absence' ORDER BY seq")
    first = rows[0][0] if rows else reference.events // 2
    trial = try_points(bench, Library(), reference, [f"emit:{first + 1}", "request:1"])
    assert (trial.kills > 0, trial.problems) == (True, [])


@pytest.mark.behaviour("40-rejected-answer-never-bought-again", "16-both-stores")
def test_answers_that_were_rejected_before_a_kill_are_not_bought_again_on_postgres(
    make_shared_bench: MakeBench,
) -> None:
    bench = make_shared_bench("triad-rejected")
    reference = make_reference(bench)
    ((first,),) = bench.workspace.rows("SELECT min(seq) FROM events WHERE type = 'absence'")
    trial = try_points(bench, Library(), reference, [f"emit:{first + 1}", "request:1"])
    assert (trial.kills > 0, trial.problems) == (True, [])


@pytest.mark.behaviour("40-kill-while-reports-are-written", "40-report-name-after-a-crash")
def test_a_run_killed_while_its_report_is_written_has_one_report(make_bench: MakeBench) -> None:
    bench = make_bench("judges")
    reference = make_reference(bench)
    changes = count_points(bench, "file")
    for n in range(changes - 5, changes, 2):
        trial = try_points(bench, Command(), reference, [f"file:{n}", "filed:3"])
        assert (trial.kills > 0, trial.problems) == (True, []), n


@pytest.mark.behaviour("40-kill-every-starter")
@pytest.mark.parametrize(
    ("starter", "points"),
    [
        ("worker", ["event:9", "committed:2"]),  # a fast machine needs fewer commits: points that every run reaches
        ("web", ["commit:1"]),
        ("web-worker", ["event:10"]),
        ("mcp", ["committed:1"]),
        ("mcp-worker", ["committed:3"]),
    ],
)
def test_a_run_of_another_starter_is_continued_after_a_kill(
    make_bench: MakeBench, starter: str, points: list[str]
) -> None:
    bench = make_bench("triad")
    trial = try_points(bench, STARTERS[starter](), make_reference(bench), points)
    assert (trial.kills, trial.problems) == (len(points), [])


@pytest.mark.behaviour("40-kill-resume-every-boundary")
def test_killed_before_the_run_was_stored_there_is_no_run(make_bench: MakeBench) -> None:
    bench = make_bench("triad")
    assert Library().start(bench, "emit:1")
    assert (bench.run, bench.provider.log) == ("", [])
    with pytest.raises(UnknownRun):
        asyncio.run(Convener(bench.folder).resume(None, lambda entry: None))


# Negative control


@pytest.mark.behaviour("40-broken-ledgers-caught")
@pytest.mark.parametrize(
    ("store", "kind"),
    [
        (KeepsResultsInMemory, "lost"),
        (RecordsRequestsLate, "unrecorded"),
        (AcknowledgesEarly, "unrecorded"),
        (ForgetsUnfinishedPhase, "bought_again"),
    ],
)
def test_the_trials_notice_a_broken_store(make_bench: MakeBench, store: type[SqliteStore], kind: str) -> None:
    """Without a crash, the run of each of them looks like any other."""
    bench = make_bench("advisors-sequential")
    reference = make_reference(bench)
    broken = Library(store)
    assert try_points(bench, broken, reference, []).problems == []
    found = (try_points(bench, broken, reference, [f"request:{n}"]).kinds for n in (2, 4))
    assert any(kind in kinds for kinds in found)


@pytest.mark.behaviour("40-broken-ledgers-caught")
def test_the_trials_notice_a_store_that_forgets_rejected_answers(make_bench: MakeBench) -> None:
    bench = make_bench("triad-rejected")
    reference = make_reference(bench)
    broken = Library(ForgetsRejectedAnswers)
    assert try_points(bench, broken, reference, []).problems == []
    ((first,),) = bench.workspace.rows("SELECT min(seq) FROM events WHERE type = 'absence'")
    found = (try_points(bench, broken, reference, [f"emit:{n}"]).kinds for n in (first + 1, first + 2, first + 3))
    assert any("bought_again" in kinds for kinds in found)


# Racing resumes


@pytest.mark.behaviour("40-one-owner")
@pytest.mark.parametrize("racing", [2, 8])
def test_of_several_resumes_at_once_one_works_and_the_others_name_it(workspace: Workspace, racing: int) -> None:
    gate = workspace.hold("draft")
    process = workspace.process("--protocol", "triad", QUESTION)
    gate.wait(count=3)
    kill(process)
    (run,) = workspace.runs()
    racers = [workspace.process("resume", "--json", run) for _ in range(racing)]
    gate.wait(count=6)
    wait_until(lambda: sum(racer.poll() is not None for racer in racers) == racing - 1, "the others have ended")
    (owner,) = (racer for racer in racers if racer.poll() is None)
    for racer in racers:
        if racer is not owner:
            done = wait_for_exit(racer)
            assert (done.code, done.json["exit"]) == (1, 1)
            assert f"run {run} is running in another process (process {owner.pid})" in done.json["error"]
    gate.release()
    done = wait_for_exit(owner)
    assert (done.code, done.json["calls"]) == (0, {"made": 7, "replayed": 0, "in_doubt": 3})
    assert workspace.asked().count("merge/chair") == 1
    assert len(workspace.provider.log) == 7
    assert workspace.council("runs", "fsck").code == 0
