"""`council eval` of reviewers: on planted bugs, and on bugs that a repository really had."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

from council.doors.cli.batch_command import check_limits
from council.doors.cli.eval_runner import ANSWERS, EvalRunner, choose_folder, put_aside, read_row_defaults
from council.doors.cli.runner import Runner
from council.engine.layout import format_count
from council.errors import UsageError
from council.evals.evaluation import Arm, Evaluation, make_row_id, split_arm
from council.evals.history.case_file import CASES, CaseRequest, ChosenCases, read_cases, write_cases
from council.evals.history.cases import HistoryCase
from council.evals.history.labels import LABELS, CaseLabels, Labels, fix_id, read_labels, write_labels
from council.evals.history.mining import find_cases
from council.evals.history.page import PAGE, PageCase, render_cases
from council.evals.history.snapshot import (
    PARENT,
    TARGET,
    build_packet,
    list_changed_lines,
    read_change,
    read_fix,
    read_remote,
    require_store,
    write_snapshots,
)
from council.evals.history.summary import HistoryArmReviews, format_result, read_case, summarize
from council.evals.review_bench import (
    BENCH,
    format_bench,
    make_bench_row,
    make_cases,
    read_review,
    summarize_bench,
    write_repositories,
)
from council.runs.advice import save_result
from council.runs.batch_output import Estimate
from council.runs.batch_rows import InputRow
from council.runs.eval_object import HistoryEvalObject
from council.runs.outcome import EXIT_INTERRUPTED
from council.runs.service import Convener
from council.settings import SettingFlags
from council.settings.private_files import open_named_file
from council.text_cleanup import clean
from council.types import Json

HISTORY_PREFIX = "history:"
DEFAULT_REVIEW_ARMS = "judges,quick"
REVIEWERS = ("judges", "quick")  # the protocols that return findings
DEFAULT_BUGS = 30
DEFAULT_SINCE = "1 year ago"
REVIEW_QUESTION = f"validate {TARGET}"
SNAPSHOTS, REPORTS = "snapshots", "reports"
PROGRESS_S = 5.0  # seconds between the lines about the search for cases
MAX_LISTED_LINES = 5


# Planted bugs


def make_bench(runner: Runner, params: Json) -> BenchRunner:
    name, options = split_arm(params["arms"] or "judges")
    if name != "judges" or "," in (params["arms"] or ""):
        raise UsageError(
            f'the review bench measures judges, not "{params["arms"]}": use --arms judges:count=3, or leave it out'
        )
    evaluation = Evaluation((), (), read_row_defaults(params) | options, seed=params["seed"], dataset=BENCH)
    return BenchRunner(runner, evaluation, choose_folder("review-bench", params["output"]), params)


class BenchRunner(EvalRunner):
    """`council eval bench:review`: one batch of reviews of programs with planted bugs, then the table by support."""

    async def run(self, convener: Convener) -> int:
        cases = make_cases(self.evaluation.seed, self.params["limit"])
        rows = [make_bench_row(case, self.evaluation.defaults) for case in cases]
        if not self.params["dry_run"]:
            self.open_folder()
            write_repositories(cases, self.folder / "repositories")
            if self.params["fresh"]:
                self.forget()
        code = await self.run_batch(convener, rows, ANSWERS)
        if self.params["dry_run"] or code == EXIT_INTERRUPTED:
            return code
        reports = {row["id"]: row["report"] for row in self.read_rows(ANSWERS)}
        result = summarize_bench([read_review(case, reports[case.id]) for case in cases if case.id in reports])
        self.write(result, format_bench(result), [])
        return code


# Bugs of a history


def make_history(runner: Runner, dataset: str, params: Json) -> HistoryRunner:
    path = dataset.removeprefix(HISTORY_PREFIX)
    if not path:
        raise UsageError("history: names no repository, nothing was sent: use council eval history:PATH")
    repository = Path(path).expanduser()
    store = require_store(repository)
    arms = tuple(parse_review_arms(params["arms"] or DEFAULT_REVIEW_ARMS))
    if (against := params["against"]) is not None and against not in [arm.name for arm in arms]:
        names = ", ".join(arm.name for arm in arms)
        raise UsageError(f'--against "{against}" is none of the arms, nothing was sent: use one of {names}')
    limit = params["limit"] or DEFAULT_BUGS
    check_limits(None, limit=limit)
    request: CaseRequest = {
        "repository": str(repository.resolve()),
        "since": params["since"] or DEFAULT_SINCE,
        "limit": limit,
        "seed": params["seed"],
    }
    evaluation = Evaluation((), arms, read_row_defaults(params), seed=params["seed"], dataset=dataset)
    name = repository.resolve().name.removesuffix(".git") or store.parent.name
    folder = choose_folder(f"{name}.history", params["output"])
    return HistoryRunner(runner, evaluation, folder, params, request, store)


def parse_review_arms(text: str) -> list[Arm]:
    """Return the arms of `judges:count=3,judges:models=a+b,quick`."""
    arms: list[Arm] = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, options = split_arm(part)
        if name not in REVIEWERS:
            known = " and ".join(REVIEWERS)
            raise UsageError(
                f'the arm "{part}" returns no findings that could be measured, nothing was sent: '
                f"use {known}, with options as in judges:count=3"
            )
        if part in [arm.name for arm in arms]:
            raise UsageError(f'the arm "{part}" is named twice, nothing was sent: name it once')
        arms.append(Arm(part, name, options))
    if not arms:
        raise UsageError(f'no arm is named in "{text}", nothing was sent: use for example --arms {DEFAULT_REVIEW_ARMS}')
    return arms


class HistoryRunner(EvalRunner):
    """`council eval history:PATH`: reviews of old commits as if they were new, then what they found."""

    def __init__(
        self, runner: Runner, evaluation: Evaluation, folder: Path, params: Json, request: CaseRequest, store: Path
    ) -> None:
        super().__init__(runner, evaluation, folder, params)
        self.request, self.store = request, store
        self.chosen: ChosenCases | None = None

    async def run(self, convener: Convener) -> int:
        with ExitStack() as stack:
            folder = self.folder
            if self.params["dry_run"]:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="council-history-")))
            else:
                self.open_folder()
                if self.params["fresh"]:
                    self.forget()
            chosen, places = await asyncio.to_thread(self._prepare, folder)
            self.chosen, names = chosen, [arm.name for arm in self.evaluation.arms]
            is_fresh = self.params["fresh"] and self.params["dry_run"]
            labels = {} if is_fresh else read_labels(self.folder / LABELS, chosen.cases, names)
            rows = [self._make_row(arm, case) for arm in self.evaluation.arms for case in chosen.cases]
            self.folders = {make_row_id(arm, case.id): places[case.id] for arm in names for case in chosen.cases}
            self.flags = cast("SettingFlags", {**self.flags, "report_dir": str((folder / REPORTS).resolve())})
            code = await self.run_batch(convener, rows, ANSWERS)
            if self.params["dry_run"] or code == EXIT_INTERRUPTED:
                return code
            write_labels(self.folder / LABELS, chosen.cases, names)
            await asyncio.to_thread(self._show_result, chosen, places, labels)
            return code

    def _show_result(self, chosen: ChosenCases, places: Mapping[str, Path], labels: Labels) -> None:
        reports = {row["id"]: row["report"] for row in self.read_rows(ANSWERS)}
        changed = {case.id: list_changed_lines(places[case.id]) for case in chosen.cases}
        arms = [
            HistoryArmReviews(
                arm,
                {
                    case.id: read_case(case, arm.name, report, labels, changed[case.id])
                    for case in chosen.cases
                    if (report := reports.get(make_row_id(arm.name, case.id)))
                },
            )
            for arm in self.evaluation.arms
        ]
        result = summarize(chosen, arms, labels, self.params["against"])
        save_result(os.environ, result, self.folder, time.time())
        page = self._write_page(chosen, places, arms, result, labels)
        self.write(result, format_result(result), [page, self.folder / LABELS, self.folder / CASES])

    def _prepare(self, folder: Path) -> tuple[ChosenCases, Mapping[str, Path]]:
        """Return the cases and the folders of their snapshots, which are written below the folder."""
        is_new = self.params["fresh"] and self.params["dry_run"]
        chosen = None if is_new else read_cases(self.folder, self.request)
        is_new = chosen is None
        chosen = chosen or self._find_cases()
        looks = any(arm.options.get(name) for arm in self.evaluation.arms for name in ("look", "explorers"))
        places = write_snapshots(self.store, chosen.cases, folder / SNAPSHOTS, with_files=looks)
        if is_new:
            chosen = self._leave_out_unreadable(chosen, places)
        if not chosen.cases:
            raise UsageError(
                f'no fix since {self.request["since"]} in "{self.request["repository"]}" leads to a commit that can be '
                "reviewed, nothing was sent: use an earlier --since"
            )
        if is_new and not self.params["dry_run"]:
            write_cases(self.folder, chosen)
        return chosen, places

    def _leave_out_unreadable(self, chosen: ChosenCases, places: Mapping[str, Path]) -> ChosenCases:
        """Return the cases without commits of which nothing can be reviewed."""
        cases = tuple(case for case in chosen.cases if _is_readable(places[case.id]))
        if missing := len(chosen.cases) - len(cases):
            what = f"{format_count(missing, 'commit')} left out: nothing in it can be reviewed"
            self.runner.print_status([what])
        return replace(chosen, mined=replace(chosen.mined, cases=cases))

    def _find_cases(self) -> ChosenCases:
        last = time.monotonic()

        def show_progress(bugs: int, commits: int) -> None:
            nonlocal last
            if time.monotonic() - last >= PROGRESS_S:
                last = time.monotonic()
                self.runner.print_status([f"{commits:,} commits read, {format_count(bugs, 'bug')} found"])

        mined = find_cases(
            Path(self.request["repository"]),
            since=self.request["since"],
            limit=self.request["limit"],
            seed=self.request["seed"],
            on_progress=show_progress,
        )
        return ChosenCases(self.request, mined)

    def _make_row(self, arm: Arm, case: HistoryCase) -> InputRow:
        defaults = dict(self.evaluation.defaults)
        if arm.protocol == "quick":  # one judge
            defaults.pop("seat_count", None)
            if models := defaults.get("models"):
                defaults["models"] = models[:1]
        masked: Json = {} if arm.options.get("skip_secrets") else {"redact": True}  # an old secret stops no review
        options = defaults | masked | arm.options | {"protocol": arm.protocol}
        return {"id": make_row_id(arm.name, case.id), "question": REVIEW_QUESTION, "options": options}

    def forget(self) -> None:
        super().forget()
        for name in (CASES, LABELS):
            put_aside(self.folder / name)

    def describe_plan(self, estimate: Estimate, lines: list[str]) -> tuple[object, list[str]]:
        """Return the plan of a dry run with the list of the cases."""
        assert self.chosen
        cases = self.chosen.cases
        listed = [clean(line) for case in cases for line in _describe_case(case)]
        return {**estimate.as_json(), "cases": [_list_case(case) for case in cases]}, [*listed, "", *lines]

    def _write_page(
        self,
        chosen: ChosenCases,
        places: Mapping[str, Path],
        arms: Sequence[HistoryArmReviews],
        result: HistoryEvalObject,
        labels: Labels,
    ) -> Path:
        """Write the page with all cases and return its path."""
        cases = [
            PageCase(
                case,
                read_change(places[case.id], PARENT, "HEAD"),
                {fix.commit: read_fix(places[case.id], fix) for fix in case.fixes},
                {one.arm.name: one.reviews[case.id] for one in arms if case.id in one.reviews},
                labels.get(case.id, CaseLabels()),
            )
            for case in chosen.cases
        ]
        remote = read_remote(self.store, places[chosen.cases[0].id])
        path = self.folder / PAGE
        with open_named_file(path, encoding="utf-8", errors="replace") as file:
            file.writelines(render_cases(result, cases, remote))
        return path


def _is_readable(folder: Path) -> bool:
    try:
        packet = build_packet(folder)
    except UsageError:  # a partial clone does not have all objects
        return False
    return not (packet.refusal or packet.empty)


def _describe_case(case: HistoryCase) -> Iterator[str]:
    kind = "" if case.fixes else ", a control"
    yield f"{case.id} {case.subject} ({case.date}, {format_count(case.changed_lines, 'changed line')}{kind})"
    for fix in case.fixes:
        places = [f"{line.path}:{line.line}" for line in fix.lines]
        more = f" and {len(places) - MAX_LISTED_LINES} more" if len(places) > MAX_LISTED_LINES else ""
        yield f"  fixed by {fix_id(fix)} {fix.subject} ({fix.date}): {', '.join(places[:MAX_LISTED_LINES])}{more}"


def _list_case(case: HistoryCase) -> Json:
    return json.loads(json.dumps(asdict(case)))  # type: ignore[no-any-return]
