"""`council eval`: answer a data set with several arms at equal cost, and compare them.

With --replay, compare recorded answers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from council import protocols
from council.doors.cli.ask import build_request, question_options
from council.doors.cli.batch_command import (
    COMMAND_FLAGS,
    check_limits,
    concurrency_option,
)
from council.doors.cli.eval_runner import ROW_FLAGS, EvalRunner, choose_folder, read_row_defaults
from council.doors.cli.params import (
    INTEGER,
    NUMBER,
    common_options,
    complete_file,
    make_flag,
)
from council.doors.cli.review_eval import HISTORY_PREFIX, make_bench, make_history
from council.doors.cli.runner import (
    Runner,
    make_plain_command,
    make_plan,
    price_advice,
    price_protocol,
)
from council.engine.plan_object import PlanAdvice, PricedProtocol
from council.errors import UsageError
from council.evals import blind, sampling
from council.evals.dataset import BLIND, GRADERS, load_dataset, load_open_questions
from council.evals.evaluation import (
    DEFAULT_ARMS,
    EQUAL_BY,
    Evaluation,
    choose_base,
    parse_arms,
)
from council.evals.matrix import read_matrix
from council.evals.replay import format_replay, replay
from council.evals.review_bench import (
    BENCH,
)
from council.flags import AUTO_PROTOCOL
from council.render.terminal import format_advised_price
from council.runs.service import Convener
from council.text_cleanup import clean
from council.types import Json

ADVISE_FLAGS = (
    *("models", "members", "cheap", "seat_count", "exclude_family", "seat"),
    *("spec", "decision", "base", "no_match", "no_stdin", "config", "trust", "json"),
)


def eval_command() -> click.Command:
    own = [
        click.Argument(["dataset"], nargs=-1, metavar="DATASET", shell_complete=complete_file),
        click.Option(
            ["--arms"],
            metavar="A,B,…",
            help=f"What to compare: single, self-consistency:samples=N, solo, and other protocols with options, as in advisors:rounds=3 (default {DEFAULT_ARMS}). Each council gets a self-consistency arm of equal use. Of history:PATH: judges and quick (default judges,quick).",
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
            help="The arm that --grader blind and history:PATH compare all others with (default solo, or one judge, else the first).",
        ),
        click.Option(
            ["--limit"],
            type=INTEGER,
            metavar="N",
            help="Use only the first N questions; of gym:NAME, generate N (default 30); of history:PATH, review N commits with a bug, and as many without (default 30).",
        ),
        click.Option(
            ["--since"],
            metavar="WHEN",
            help="Of history:PATH: use fixes since this day or period, such as 2025-01-31 or 6mo (default 1y).",
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
        return runner.with_convener(make_bench(runner, params).run)
    if dataset[0].startswith(HISTORY_PREFIX):
        return runner.with_convener(make_history(runner, dataset[0], params).run)
    if params["since"] is not None:
        raise UsageError(
            f'--since "{params["since"]}" belongs to history:PATH, nothing was sent: name a repository, or drop this flag'
        )
    evaluation = _make_evaluation(dataset[0], params)
    evaluating = EvalRunner(runner, evaluation, choose_folder(dataset[0], params["output"]), params)
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
        read_row_defaults(params),
        judges,
        params["equal"],
        params["seed"],
        dataset,
        against=against,
        left_out=left_out,
    )


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
