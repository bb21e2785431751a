"""The run of an evaluation: its batches, its folder and its results."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from council.doors.cli.batch_command import BatchRunner, format_estimate, format_summary, read_defaults
from council.doors.cli.help import FLAG_GROUPS
from council.doors.cli.params import COMMON_FLAGS, protocol_flags
from council.doors.cli.runner import Runner
from council.engine.layout import format_count
from council.engine.records import ReportObject
from council.errors import ConfigError, UsageError
from council.evals import blind, sampling
from council.evals.dataset import GYM_PREFIX
from council.evals.evaluation import (
    SINGLE,
    SOLO,
    Arm,
    ArmResults,
    EvalTable,
    Evaluation,
    Result,
    apply_grades,
    format_table,
    grade_run,
    make_row_id,
    split_arm,
)
from council.evals.plots import write_plots
from council.evals.review_bench import BenchObject
from council.money import format_usd
from council.planning.plan import Material, Plan
from council.runs.advice import save_result
from council.runs.batch import BatchSettings, select_protocol_options, select_settings
from council.runs.batch_output import CompleteRow, Estimate, Summary
from council.runs.batch_rows import InputRow, RowErrors, make_row
from council.runs.eval_object import EvalObject, HistoryEvalObject, JudgeUse
from council.runs.outcome import EXIT_COMPLETE, EXIT_INTERRUPTED, EXIT_PARTIAL
from council.runs.service import Convener
from council.settings import SettingFlags
from council.settings.member_lookup import LOCAL_CANDIDATE, available_members, fast_members
from council.settings.private_files import make_named_folder, open_named_file
from council.store.interface import RunStatus
from council.text_cleanup import clean
from council.types import Json

ANSWERS, GRADES, RESULT, TABLE = "answers.jsonl", "grades.jsonl", "result.json", "table.txt"
COMPARISONS = "comparisons.jsonl"
ENDED_CODES = (EXIT_COMPLETE, EXIT_PARTIAL)  # all rows ended; some may have failed
# Flags of a question that set an option of every run.
GROUPS = ("Protocol and members", "Cost and time")
OTHER_USE = ("protocol", "mode", "strict", "max_cost", "yes")  # of the arms, or of the whole evaluation
ROW_FLAGS = tuple(name for group in GROUPS for name in FLAG_GROUPS[group] if name not in OTHER_USE)


def read_row_defaults(params: Json) -> Json:
    names = {flag["name"]: None for flag in protocol_flags()}
    many = {flag["name"]: () for flag in COMMON_FLAGS if flag["kind"] == "many"}
    common = {flag["name"]: None for flag in COMMON_FLAGS}
    return read_defaults(names | common | many | {name: params[name] for name in ROW_FLAGS})


def put_aside(path: Path) -> None:
    """Rename a file of an earlier evaluation to `NAME.old`, if it exists."""
    with suppress(FileNotFoundError):
        path.replace(path.with_name(f"{path.name}.old"))


def choose_folder(dataset: str, output: str | None) -> Path:
    name = dataset.removeprefix(GYM_PREFIX) if dataset.startswith(GYM_PREFIX) else Path(dataset).stem
    folder = Path(output or f"{name}.eval")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f'"{folder}" is a file, nothing was sent: name a folder with -o')
    return folder


class EvalRunner:
    """One `council eval` command: up to three batches, then the table."""

    def __init__(self, runner: Runner, evaluation: Evaluation, folder: Path, params: Json) -> None:
        self.runner, self.evaluation, self.folder, self.params = runner, evaluation, folder, params
        self.spent = 0.0
        self.folders: Mapping[str, Path] = {}  # of the files of a row, by its id
        self.flags: SettingFlags = {"trust": True} if params["trust"] else {}  # of every run

    async def run(self, convener: Convener) -> int:
        await self._find_prices(convener)
        await self._choose_judges(convener)
        if any(arm.equals for arm in self.evaluation.arms):
            self.runner.print_status(
                ["each self-consistency arm uses about as much again as its council, which is not included below"]
            )
        first = self.evaluation.first_rows()
        if self.params["dry_run"]:
            rows = [*first, *self.evaluation.planned_compare_rows()]
            return await self.run_batch(convener, rows, ANSWERS)
        self.open_folder()
        self._check_seed()
        if self.params["fresh"]:
            self.forget()
        code = await self.run_batch(convener, first, ANSWERS)
        results = await self._read_results(convener, (ANSWERS,))
        equal = self.evaluation.equal_rows(results)
        equal_file = f"equal-{self.evaluation.equal}.jsonl"
        if equal and code in ENDED_CODES:
            plan = f"{format_count(len(equal), 'row')}: self-consistency, each with the {self.evaluation.equal} of its council"
            code = max(code, await self.run_batch(convener, equal, equal_file, plan))
            results = await self._read_results(convener, (ANSWERS, equal_file))
        comparing = self.evaluation.compare_rows(results)
        if comparing and code in ENDED_CODES:
            code = max(code, await self.run_batch(convener, comparing, COMPARISONS))
        if code == EXIT_INTERRUPTED:
            return code
        results = await self._grade(convener, results)
        arms = [ArmResults(arm, results.get(arm.name, {})) for arm in self.evaluation.arms]
        wanted = len(self.evaluation.arms) * len(self.evaluation.items)
        missing = wanted - sum(map(len, results.values()))
        self._show(EvalTable(self.evaluation, arms, missing, await self._read_comparisons(convener, arms)))
        return code

    async def _find_prices(self, convener: Convener) -> None:
        """Find the prices of the members of the self-consistency arms, if they are to be equal in cost."""
        if self.evaluation.equal != "cost":
            return
        prices = {}
        equal = [arm for arm in self.evaluation.arms if arm.equals]
        one_model = Arm(SINGLE, sampling.NAME, {"samples": 1})
        for protocol, arm in (("", one_model), (SOLO, Arm(SOLO, SOLO))):
            if any((split_arm(one.equals)[0] == SOLO) == (protocol == SOLO) for one in equal):
                plan = await self._plan_row(convener, self.evaluation.sample_row(arm))
                member = plan.roster.seats[0].member
                prices[protocol] = (member, convener.price(member))
        self.evaluation = replace(self.evaluation, prices=prices)
        for arm in equal:
            self.evaluation.weigh_use(arm)

    async def _choose_judges(self, convener: Convener) -> None:
        """Choose the judges of blind comparisons, check that they are available, and print what they will do."""
        if not self.evaluation.is_blind:
            return
        if not self.evaluation.judges:
            self.evaluation = replace(self.evaluation, judges=tuple(await self._find_judges(convener)))
        rows = self.evaluation.planned_compare_rows()
        try:
            plan = await self._plan_row(convener, rows[0])
        except ConfigError as error:
            raise UsageError(f"--judges: {error}; nothing was sent") from None
        convener.check_plan(plan)
        if not self.params["dry_run"]:
            cost = "" if plan.cost is None else f", about {format_usd(plan.cost['expected'] * len(rows))}"
            judges = ", ".join(seat.member for seat in plan.roster.seats)
            what = f"{format_count(len(rows), 'blind comparison')} by {judges} follow"
            self.runner.print_status([f"{what}, {plan.calls[1]} calls each{cost}, which is not included below"])

    async def _find_judges(self, convener: Convener) -> list[str]:
        """Return available members that sit in no arm, else any that are available."""
        members: set[str] = set()
        for arm in self.evaluation.arms:
            plan = await self._plan_row(convener, self.evaluation.sample_row(arm))
            members |= {seat.member for seat in plan.roster.all_seats}
        is_cheap = bool(self.evaluation.defaults.get("cheap"))
        find = fast_members if is_cheap else available_members
        return blind.choose_judges(find(convener.settings, convener.env) or [LOCAL_CANDIDATE], members)

    async def _plan_row(self, convener: Convener, row: InputRow) -> Plan:
        """Return the plan of a row as its batch makes it."""
        options = make_row(row, 1).options
        flags = select_settings(options) | self.flags
        other = Convener(convener.folder, flags=flags, config=self.runner.config, store=convener.store, keeps_open=True)
        try:
            given = select_protocol_options(options)
            return await other.plan(
                [row["question"]], given, protocol=options["protocol"], material=Material(match=False)
            )
        finally:
            await other.close()

    def open_folder(self) -> None:
        try:
            make_named_folder(self.folder)
        except OSError as error:
            raise UsageError(
                f'the folder "{self.folder}" cannot be made ({error.strerror}), nothing was sent: name another one with -o'
            ) from None
        if not os.access(self.folder, os.W_OK):
            raise UsageError(f'the folder "{self.folder}" is not writable, nothing was sent: name another one with -o')

    def _check_seed(self) -> None:
        """Refuse to show answers of one seed as those of another."""
        before: Any = None
        with suppress(OSError, ValueError):
            before = json.loads((self.folder / RESULT).read_text(encoding="utf-8"))
        seed = self.evaluation.seed
        earlier = before.get("seed", seed) if isinstance(before, dict) else seed
        if earlier != seed and not self.params["fresh"]:
            raise UsageError(
                f'the answers in "{self.folder}" have the seed {earlier}, not {seed}, nothing was sent: use --seed {earlier}, --fresh to start over, or -o with another folder'
            )

    def forget(self) -> None:
        """Put the earlier answers aside as `NAME.old`; they were paid for."""
        for path in (*self.folder.glob("*.jsonl"), *self.folder.glob("*.jsonl.batch")):
            if path.name.startswith(("answers.", "equal-", "grades.", "comparisons.")):
                put_aside(path)

    async def run_batch(self, convener: Convener, rows: list[InputRow], file: str, plan: str = "") -> int:
        """Run the rows of one file. `plan` replaces the estimate, which does not know how often a budget is used up."""
        cap = self.params["max_cost"]
        settings = BatchSettings(
            {},
            self.flags,
            None if cap is None else max(0.0, cap - self.spent),
            self.params["concurrency"],
            self.runner.config,
            {**os.environ, "COUNCIL_LOCAL_SEED": str(self.evaluation.seed)},
            seed=f"eval {self.evaluation.seed}",
            is_evaluation=True,
            folders=self.folders,
        )
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path = self.folder / file
        if self.params["dry_run"] and not self.folder.is_dir():
            path = Path(file)
        batch = EvalBatch(
            self.runner,
            settings,
            "the evaluation",
            io.BytesIO(text.encode("utf-8", "surrogatepass")),
            path,
            None,
            self.params["dry_run"],
        )
        batch.plan, batch.describe = plan, self.describe_plan
        code = await batch.run(convener)
        if batch.summary:
            now = batch.summary.progress
            self.spent += now.usd_before + now.usd
        return code

    async def _grade(
        self, convener: Convener, results: Mapping[str, Mapping[str, Result]]
    ) -> dict[str, dict[str, Result]]:
        """Let the panel grade the items of the grader "judges"."""
        rows = self.evaluation.grade_rows(results)
        grades: dict[str, bool] = {}
        if rows:
            await self.run_batch(convener, rows, GRADES)
            for row in self.read_rows(GRADES):
                votes = (await convener.minutes(row["run"])).verdict.get("details") or {}
                if votes.get("answer") in ("A", "B"):
                    grades[row["id"]] = votes["answer"] == "A"
        items = {item.id: item for item in self.evaluation.items}
        graded = {
            arm: {item: apply_grades(items[item], one, grades) for item, one in done.items()}
            for arm, done in results.items()
        }
        return {arm: {item: one for item, one in done.items() if one is not None} for arm, done in graded.items()}

    async def _read_comparisons(self, convener: Convener, arms: Sequence[ArmResults]) -> blind.BlindTable | None:
        """Return the comparisons of the judges; None for another grader."""
        chosen = self.evaluation
        if not chosen.is_blind:
            return None
        rows = {row["id"]: row for row in self.read_rows(COMPARISONS)}
        results = {one.arm.name: one.results for one in arms}
        pairs: dict[str, dict[str, blind.Pair]] = {arm.name: {} for arm in chosen.compared_arms()}
        reports = []
        for arm, found in pairs.items():
            for item in chosen.items:
                mine, base = results[arm].get(item.id), results[chosen.against].get(item.id)
                if not (mine and base):
                    continue
                if row := rows.get(chosen.make_compare_id(arm, item, mine.text, base.text)):
                    minutes = await convener.minutes(row["run"])
                    found[item.id] = blind.read_pair(row["run"], minutes, mine.text, base.text)
                    reports.append(row["report"])
        unfinished = len(pairs) * len(chosen.items) - len(reports)
        members = {one.arm.name: one.members for one in arms}
        return blind.BlindTable(chosen.against, pairs, members, unfinished, _sum_use(reports))

    # Results

    def read_rows(self, *files: str) -> list[CompleteRow]:
        """Return the complete rows of the output files."""
        rows: list[CompleteRow] = []
        for file in files:
            with suppress(FileNotFoundError):
                lines = (self.folder / file).read_text(encoding="utf-8").split("\n")  # a text may hold other line ends
                rows += [row for line in lines if line and (row := json.loads(line))["status"] == RunStatus.COMPLETE]
        return rows

    async def _read_results(self, convener: Convener, files: tuple[str, ...]) -> dict[str, dict[str, Result]]:
        rows = {row["id"]: row for row in self.read_rows(*files)}
        found: dict[str, dict[str, Result]] = {}
        for arm in self.evaluation.arms:
            for item in self.evaluation.items:
                if row := rows.get(make_row_id(arm.name, item.id)):
                    minutes = await convener.minutes(row["run"])
                    found.setdefault(arm.name, {})[item.id] = grade_run(item, row["report"], minutes)
        return found

    def _show(self, table: EvalTable) -> None:
        result = table.as_json()
        save_result(os.environ, result, self.folder, time.time())
        files = []
        if not self.params["no_plots"]:
            try:
                files = write_plots(result, self.folder)
            except UsageError as error:
                self.runner.print_status([str(error)])
        self.write(result, format_table(table), files)

    def describe_plan(self, estimate: Estimate, lines: list[str]) -> tuple[object, list[str]]:
        """Return the plan of a dry run as JSON and as lines."""
        return estimate.as_json(), lines

    def write(self, result: EvalObject | BenchObject | HistoryEvalObject, text: str, files: list[Path]) -> None:
        """Write the result and the table, and print one of them."""
        with open_named_file(self.folder / RESULT, encoding="utf-8") as file:
            file.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
        with open_named_file(self.folder / TABLE, encoding="utf-8") as file:
            file.write(text + "\n")
        names = ", ".join([RESULT, TABLE, *(path.name for path in files)])
        self.runner.print_lines(result, [clean(text), "", f"files: {self.folder}: {names}"])


def _sum_use(reports: Sequence[ReportObject]) -> JudgeUse:
    """Return the tokens, the calls and the dollars of runs; None for dollars if a price is unknown."""
    costs = [usd for report in reports if (usd := report["cost"]["usd"]) is not None]
    return {
        "tokens": sum(report["tokens"]["in"] + report["tokens"]["out"] for report in reports),
        "calls": sum(report["calls"]["made"] for report in reports),
        "usd": None if len(costs) < len(reports) else round(sum(costs), 9),
    }


class EvalBatch(BatchRunner):
    """A batch of an evaluation. It keeps its summary instead of printing it."""

    summary: Summary | None = None
    plan = ""
    describe: Callable[[Estimate, list[str]], tuple[object, list[str]]]

    def _show_plan(self, estimate: Estimate) -> int:
        return self.runner.print_lines(*self.describe(estimate, format_estimate(estimate)))

    async def _confirm(self, estimate: Estimate, convener: Convener) -> bool:
        if not self.plan:
            return await super()._confirm(estimate, convener)
        self.runner.print_status([self.plan])
        return True

    def _explain(self, error: RowErrors) -> UsageError:
        fix = ": use --fresh to start over, or -o with another folder, if the data set, the members or the arms are others"
        return UsageError(f"{error.template}{fix if 'changed since' in error.template else ''}")

    def _show_summary(self, summary: Summary) -> None:
        self.summary = summary
        if summary.stopped or summary.progress.failures:
            self.runner.print_status([clean(line) for line in format_summary(summary)])
