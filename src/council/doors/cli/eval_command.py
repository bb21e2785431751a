"""`council eval`: answer a data set with several arms at equal cost, and compare them.

With --replay, compare recorded answers.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from council import protocols
from council.doors.cli.ask import build_request, question_options
from council.doors.cli.batch_command import (
    COMMAND_FLAGS,
    BatchRunner,
    check_limits,
    concurrency_option,
    format_summary,
    read_defaults,
)
from council.doors.cli.help import FLAG_GROUPS
from council.doors.cli.params import (
    COMMON_FLAGS,
    INTEGER,
    NUMBER,
    common_options,
    complete_file,
    make_flag,
    protocol_flags,
)
from council.doors.cli.runner import (
    Runner,
    make_plain_command,
    make_plan,
    price_advice,
    price_protocol,
)
from council.engine.layout import format_count
from council.engine.plan_object import PlanAdvice, PricedProtocol
from council.engine.records import ReportObject
from council.errors import ConfigError, UsageError
from council.evals import blind, sampling
from council.evals.dataset import BLIND, GRADERS, GYM_PREFIX, load_dataset, load_open_questions
from council.evals.evaluation import (
    DEFAULT_ARMS,
    EQUAL_BY,
    SINGLE,
    SOLO,
    Arm,
    ArmResults,
    EvalTable,
    Evaluation,
    Result,
    apply_grades,
    choose_base,
    format_table,
    grade_run,
    make_row_id,
    parse_arms,
    split_arm,
)
from council.evals.matrix import read_matrix
from council.evals.plots import write_plots
from council.evals.replay import format_replay, replay
from council.evals.review_bench import (
    BENCH,
    BenchObject,
    format_bench,
    make_bench_row,
    make_cases,
    read_review,
    summarize_bench,
    write_repositories,
)
from council.flags import AUTO_PROTOCOL
from council.money import format_usd
from council.planning.plan import Material, Plan
from council.render.terminal import format_advised_price
from council.runs.advice import save_result
from council.runs.batch import BatchSettings, select_protocol_options, select_settings
from council.runs.batch_output import CompleteRow, Estimate, Summary
from council.runs.batch_rows import InputRow, RowErrors, make_row
from council.runs.eval_object import EvalObject, JudgeUse
from council.runs.outcome import EXIT_COMPLETE, EXIT_INTERRUPTED, EXIT_PARTIAL
from council.runs.service import Convener
from council.settings.member_lookup import LOCAL_CANDIDATE, available_members, fast_members
from council.settings.private_files import make_named_folder, open_named_file
from council.store.interface import RunStatus
from council.text_cleanup import clean
from council.types import Json

# Flags of a question that set an option of every run.
GROUPS = ("Protocol and members", "Cost and time")
OTHER_USE = ("protocol", "mode", "strict", "max_cost", "yes")  # of the arms, or of the whole evaluation
ROW_FLAGS = tuple(name for group in GROUPS for name in FLAG_GROUPS[group] if name not in OTHER_USE)
ADVISE_FLAGS = (
    *("models", "members", "cheap", "seat_count", "exclude_family", "seat"),
    *("spec", "decision", "base", "no_match", "no_stdin", "config", "trust", "json"),
)
ANSWERS, GRADES, RESULT, TABLE = "answers.jsonl", "grades.jsonl", "result.json", "table.txt"
COMPARISONS = "comparisons.jsonl"


def eval_command() -> click.Command:
    own = [
        click.Argument(["dataset"], nargs=-1, metavar="DATASET", shell_complete=complete_file),
        click.Option(
            ["--arms"],
            metavar="A,B,…",
            help=f"What to compare: single, self-consistency:samples=N, solo, and other protocols with options, as in advisors:rounds=3 (default {DEFAULT_ARMS}). Each council gets a self-consistency arm of equal use.",
        ),
        click.Option(
            ["--equal"],
            type=click.Choice(EQUAL_BY),
            default="tokens",
            help="What the self-consistency arm of a council has in common with it.",
        ),
        click.Option(
            ["--grader"],
            type=click.Choice(GRADERS),
            default="auto",
            help="How answers are graded (auto: choice, numeric or exact, by the item; blind: judges compare the texts of open questions).",
        ),
        click.Option(
            ["--judges"],
            multiple=True,
            metavar="A,B,…",
            help=f"Members of the panel of --grader judges and blind; repeatable (default for blind: {blind.DEFAULT_JUDGES} available members that sit in no arm, of different vendors).",
        ),
        click.Option(
            ["--against"],
            metavar="ARM",
            help="The arm that --grader blind compares all others with (default solo, else the first).",
        ),
        click.Option(
            ["--limit"],
            type=INTEGER,
            metavar="N",
            help="Use only the first N questions; of gym:NAME, generate N (default 30).",
        ),
        click.Option(
            ["--seed"],
            type=INTEGER,
            default=0,
            metavar="N",
            help="Seed of generated questions, of the order of labels, of the intervals and of the embedded model.",
        ),
        click.Option(
            ["--output", "-o"],
            metavar="DIR",
            help="Folder of the answers, the table and the plots (default NAME.eval).",
            shell_complete=complete_file,
        ),
        make_flag(
            "--fresh",
            help="Start over: put the answers in the folder aside as *.old. Without it, the same command continues.",
        ),
        make_flag("--no-plots", help="Write no plots."),
        make_flag(
            "--replay",
            help="DATASET holds recorded answers: a CSV file with a column per model, or logs of inspect_ai. No model is asked.",
        ),
        click.Option(["--max-cost"], type=NUMBER, metavar="DOLLARS", help="Cost limit of the whole evaluation."),
        concurrency_option("Questions"),
    ]
    return make_plain_command("eval", run_eval, *own, *common_options(*ROW_FLAGS, *COMMAND_FLAGS))


def run_eval(dataset: tuple[str, ...], **params: Any) -> int:
    if not dataset:
        raise UsageError(
            "no data set was given, nothing was sent: use council eval FILE.jsonl, or council eval gym:NAME"
        )
    runner = Runner.from_flags({name: params[name] for name in COMMAND_FLAGS})
    if params["replay"]:
        return run_replay(runner, dataset, params)
    if len(dataset) > 1:
        raise UsageError(f'"{dataset[1]}" is a second data set, nothing was sent: name one, or use --replay for logs')
    check_limits(params["max_cost"], limit=params["limit"], concurrency=params["concurrency"])
    if dataset[0] == BENCH:
        return runner.with_convener(_make_bench(runner, params).run)
    evaluation = _make_evaluation(dataset[0], params)
    evaluating = EvalRunner(runner, evaluation, _choose_folder(dataset[0], params["output"]), params)
    with protocols.register_for(sampling.PROTOCOL), protocols.register_for(blind.PROTOCOL):
        return runner.with_convener(evaluating.run)


def _make_evaluation(dataset: str, params: Json) -> Evaluation:
    grader = params["grader"]
    arms = parse_arms(params["arms"] or DEFAULT_ARMS, grader)
    against, left_out = "", 0
    if grader == BLIND:
        items, left_out = load_open_questions(dataset, params["limit"])
        against = choose_base(arms, params["against"])
    else:
        items = load_dataset(dataset, grader=grader, limit=params["limit"], seed=params["seed"])
        if params["against"] is not None:
            raise UsageError(
                f'--against "{params["against"]}" belongs to --grader blind, nothing was sent: add it, or drop this flag'
            )
    names = [name.strip() for text in params["judges"] for name in text.split(",")]
    judges = tuple(dict.fromkeys(filter(None, names)))
    if grader == BLIND and len(judges) > blind.MAX_JUDGES:
        raise UsageError(f"--judges names {len(judges)} members, nothing was sent: use at most {blind.MAX_JUDGES}")
    return Evaluation(
        tuple(items),
        tuple(arms),
        _read_row_defaults(params),
        judges,
        params["equal"],
        params["seed"],
        dataset,
        against=against,
        left_out=left_out,
    )


def _read_row_defaults(params: Json) -> Json:
    names = {flag["name"]: None for flag in protocol_flags()}
    many = {flag["name"]: () for flag in COMMON_FLAGS if flag["kind"] == "many"}
    common = {flag["name"]: None for flag in COMMON_FLAGS}
    return read_defaults(names | common | many | {name: params[name] for name in ROW_FLAGS})


def _choose_folder(dataset: str, output: str | None) -> Path:
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
            return await self._run_batch(convener, rows, ANSWERS)
        self._open_folder()
        self._check_seed()
        if self.params["fresh"]:
            self._forget()
        code = await self._run_batch(convener, first, ANSWERS)
        results = await self._read_results(convener, (ANSWERS,))
        equal = self.evaluation.equal_rows(results)
        equal_file = f"equal-{self.evaluation.equal}.jsonl"
        if equal and code in ENDED_CODES:
            plan = f"{format_count(len(equal), 'row')}: self-consistency, each with the {self.evaluation.equal} of its council"
            code = max(code, await self._run_batch(convener, equal, equal_file, plan))
            results = await self._read_results(convener, (ANSWERS, equal_file))
        comparing = self.evaluation.compare_rows(results)
        if comparing and code in ENDED_CODES:
            code = max(code, await self._run_batch(convener, comparing, COMPARISONS))
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
        flags = select_settings(options) | ({"trust": True} if self.params["trust"] else {})
        other = Convener(convener.folder, flags=flags, config=self.runner.config, store=convener.store, keeps_open=True)
        try:
            given = select_protocol_options(options)
            return await other.plan(
                [row["question"]], given, protocol=options["protocol"], material=Material(match=False)
            )
        finally:
            await other.close()

    def _open_folder(self) -> None:
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

    def _forget(self) -> None:
        """Put the earlier answers aside as `NAME.old`; they were paid for."""
        for path in (*self.folder.glob("*.jsonl"), *self.folder.glob("*.jsonl.batch")):
            if path.name.startswith(("answers.", "equal-", "grades.", "comparisons.")):
                path.replace(path.with_name(f"{path.name}.old"))

    async def _run_batch(self, convener: Convener, rows: list[InputRow], file: str, plan: str = "") -> int:
        """Run the rows of one file. `plan` replaces the estimate, which does not know how often a budget is used up."""
        cap = self.params["max_cost"]
        settings = BatchSettings(
            {},
            {"trust": True} if self.params["trust"] else {},
            None if cap is None else max(0.0, cap - self.spent),
            self.params["concurrency"],
            self.runner.config,
            {**os.environ, "COUNCIL_LOCAL_SEED": str(self.evaluation.seed)},
            seed=f"eval {self.evaluation.seed}",
            is_evaluation=True,
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
        batch.plan = plan
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
            await self._run_batch(convener, rows, GRADES)
            for row in self._read_rows(GRADES):
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
        rows = {row["id"]: row for row in self._read_rows(COMPARISONS)}
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

    def _read_rows(self, *files: str) -> list[CompleteRow]:
        """Return the complete rows of the output files."""
        rows: list[CompleteRow] = []
        for file in files:
            with suppress(FileNotFoundError):
                lines = (self.folder / file).read_text(encoding="utf-8").split("\n")  # a text may hold other line ends
                rows += [row for line in lines if line and (row := json.loads(line))["status"] == RunStatus.COMPLETE]
        return rows

    async def _read_results(self, convener: Convener, files: tuple[str, ...]) -> dict[str, dict[str, Result]]:
        rows = {row["id"]: row for row in self._read_rows(*files)}
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
        self._write(result, format_table(table), files)

    def _write(self, result: EvalObject | BenchObject, text: str, files: list[Path]) -> None:
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


def _make_bench(runner: Runner, params: Json) -> BenchRunner:
    name, options = split_arm(params["arms"] or "judges")
    if name != "judges" or "," in (params["arms"] or ""):
        raise UsageError(
            f'the review bench measures judges, not "{params["arms"]}": use --arms judges:count=3, or leave it out'
        )
    evaluation = Evaluation((), (), _read_row_defaults(params) | options, seed=params["seed"], dataset=BENCH)
    return BenchRunner(runner, evaluation, _choose_folder("review-bench", params["output"]), params)


class BenchRunner(EvalRunner):
    """`council eval bench:review`: one batch of reviews of programs with planted bugs, then the table by support."""

    async def run(self, convener: Convener) -> int:
        cases = make_cases(self.evaluation.seed, self.params["limit"])
        rows = [make_bench_row(case, self.evaluation.defaults) for case in cases]
        if not self.params["dry_run"]:
            self._open_folder()
            write_repositories(cases, self.folder / "repositories")
            if self.params["fresh"]:
                self._forget()
        code = await self._run_batch(convener, rows, ANSWERS)
        if self.params["dry_run"] or code == EXIT_INTERRUPTED:
            return code
        reports = {row["id"]: row["report"] for row in self._read_rows(ANSWERS)}
        result = summarize_bench([read_review(case, reports[case.id]) for case in cases if case.id in reports])
        self._write(result, format_bench(result), [])
        return code


ENDED_CODES = (EXIT_COMPLETE, EXIT_PARTIAL)  # all rows ended; some may have failed


class EvalBatch(BatchRunner):
    """A batch of an evaluation. It keeps its summary instead of printing it."""

    summary: Summary | None = None
    plan = ""

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


# Advice


class AdviceObject(PlanAdvice):
    """The object `council.advice/1`."""

    schema: Literal["council.advice/1"]
    question: str
    default: PricedProtocol  # without advice


def advise_command() -> click.Command:
    words = click.Argument(["words"], nargs=-1, metavar="WORDS…")
    return make_plain_command("advise", advise, words, *question_options(ADVISE_FLAGS))


def advise(words: tuple[str, ...], **params: Any) -> int:
    """Print which protocol is worth its price for a question. Nothing is sent."""
    request = build_request(words, params | {"protocol": None, "mode": None})
    runner = Runner.from_flags(params)

    async def job(convener: Convener) -> int:
        default = await make_plan(convener, request)
        advised = await make_plan(convener, replace(request, protocol=AUTO_PROTOCOL))
        row: AdviceObject = {
            "schema": "council.advice/1",
            "question": advised.question.text,
            **price_advice(advised),
            "default": price_protocol(default),
        }
        return runner.print_lines(row, _format_advice(row))

    return runner.with_convener(job)


def _format_advice(row: AdviceObject) -> list[str]:
    default = row["default"]
    is_same = (row["protocol"], row["options"]) == (default["protocol"], default["options"])
    price, usual = (format_advised_price(one["calls"], one["cost"]) for one in (row, default))
    return [
        clean(f"protocol {row['protocol']}: {row['why']}"),
        f"price: {price}" + ("" if is_same else f"; without advice {default['protocol']}, {usual}"),
        "rounds: 1; more rounds cost more and rarely help" if row["rounds"] == 1 else f"rounds: {row['rounds']}",
        "no model was asked; use it with --protocol auto",
    ]


# Recorded answers


def run_replay(runner: Runner, paths: tuple[str, ...], params: Json) -> int:
    """Compare the rules on recorded answers."""
    arms = [arm.strip() for arm in (params["arms"] or "").split(",") if arm.strip()]
    found = replay(read_matrix([Path(path) for path in paths]), arms)
    lines = [clean(format_replay(found, params["seed"]))]
    return runner.print_lines(found.as_json(params["seed"]), lines)
