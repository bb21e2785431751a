"""Commands about results: report, runs replay and spend, and gate, the old word for report --fail-on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import click

from council.doors.cli.params import (
    LISTED_FORMATS,
    ChoiceParam,
    common_options,
    make_flag,
    print_json,
    print_result,
    run_argument,
)
from council.doors.cli.runner import TEXT_FLAGS, Runner, make_command, with_convener
from council.doors.cli.tables import format_folder, format_table
from council.doors.cli.views import shows_markdown, write_commands, write_document
from council.engine.layout import format_count
from council.engine.minutes import Minutes
from council.errors import UsageError
from council.extensions import FORMATS
from council.money import format_saving, format_usd
from council.render.formats import COMMAND_FORMATS, render_parts_as
from council.render.markdown import TextPart
from council.render.report import build_report, read_report
from council.runs.ci_gate import DEFAULT_RULE, FAIL_ON, RULES, GateDecision, apply_rule, evaluate_gate
from council.runs.service import Convener
from council.runs.spending import (
    ProtocolSpending,
    RunCounts,
    SpendingObject,
    SpendingSum,
    SpendingTotal,
    TodaySpending,
    parse_since,
)

# Replay, report and gate


def replay_command() -> click.Command:
    about = "Playback speed; 0 plays it at once."
    flags = [
        click.Option(["--speed"], type=click.FloatRange(min=0), default=4.0, show_default=True, help=about),
        *common_options("jsonl"),
        make_flag("-v", "--verbose", help="Print every statement in full."),
        *common_options(*TEXT_FLAGS),
    ]

    def replay(run: str | None, speed: float, **params: Any) -> int:
        return Runner.from_flags(params).replay(run, speed)

    return make_command("replay", replay, run_argument(), *flags, uses_config=False)


def report_command() -> click.Command:
    form = click.Option(
        ["--format", "form"],
        type=click.Choice(FORMATS.names),
        default="md",
        show_default=True,
        metavar=LISTED_FORMATS,
        help="Output format; html is one file with every view of the page.",
    )
    fails = "Exit 10 if the review result is this or worse, 3 if it is inconclusive."
    level = click.Option(["--fail-on"], type=click.Choice(FAIL_ON), help=fails)
    about = f"Rule of --fail-on that combines the verdicts; corroborated requires evidence for a FAIL, consensus does not. Default: {DEFAULT_RULE}."
    rule = click.Option(["--rule"], type=click.Choice(RULES, case_sensitive=False), help=about)
    options = (form, level, rule, *common_options(*TEXT_FLAGS))
    return make_command("report", print_report, run_argument(), *options, uses_config=False)


@with_convener
async def print_report(
    convener: Convener, run: str | None, form: str, fail_on: str | None, rule: str | None, **params: Any
) -> int:
    if rule and not fail_on:
        raise UsageError(f"--rule {rule} is a rule of --fail-on, which is missing: add for example --fail-on fail")
    minutes, entries = await convener.load_minutes(run or await convener.newest_run())
    gate = _decide_gate(minutes, fail_on, rule or DEFAULT_RULE) if fail_on else None
    chosen, runner = "json" if params["json"] else form, Runner.from_flags(params)
    if gate and chosen == "json":
        print_json(read_report(minutes) | {"gate": gate})
    else:
        _write_report(runner, chosen, render_parts_as(minutes, chosen, entries))
    if gate is None:
        return 0
    runner.print_status([gate["why"]])
    return gate["exit"]


def _write_report(runner: Runner, form: str, parts: Iterable[str]) -> None:
    if form == "md" and shows_markdown(runner.raw):
        runner.print_parts([TextPart("".join(parts))])
    elif form in COMMAND_FORMATS:
        write_commands("".join(parts))
    else:
        write_document(parts, ascii=form == "md" and runner.ascii)


def _decide_gate(minutes: Minutes, fail_on: str, rule: str) -> GateDecision:
    """Return the decision about a finished run: verdict, exit code and reason, by a rule."""
    report = build_report(minutes)
    code, why = evaluate_gate(report, fail_on, rule)
    verdict = apply_rule(report, rule)[0]["verdict"]
    return {"verdict": verdict, "exit": code, "why": why, "rule": rule, "fail_on": fail_on}


def gate_command() -> click.Command:
    shown: dict[str, Any] = {"show_default": True}
    fails = "Fail on this result or worse."
    level = click.Option(["--fail-on"], type=click.Choice(FAIL_ON), default="fail", help=fails, **shown)
    about = "Rule that combines the verdicts; corroborated requires evidence for a FAIL, consensus does not."
    rules = click.Choice(RULES, case_sensitive=False)
    rule = click.Option(["--rule"], type=rules, default=DEFAULT_RULE, help=about, **shown)
    return make_command("gate", print_gate, run_argument(), level, rule, uses_config=False)


@with_convener
async def print_gate(convener: Convener, run: str | None, fail_on: str, rule: str, json: bool, **params: Any) -> int:
    minutes = await convener.minutes(run or await convener.newest_run())
    gate = _decide_gate(minutes, fail_on, rule)
    named = {name: value for name, value in gate.items() if name != "fail_on"}
    print_result(json, {"run": minutes.run, **named}, [gate["why"]])
    return gate["exit"]


# Spending

SPEND_GROUPS = ("day", "member", "protocol", "folder", "run")
DEFAULT_SPEND_GROUPS = ("day", "member", "protocol", "folder")
MAX_LISTED_MEMBERS = 5
REMOVED_RUNS = "(removed runs)"


def spend_command() -> click.Command:
    first = "First day: a date such as 2026-11-15, today, 7d or all."
    since = click.Option(["--since"], default="30d", show_default=True, metavar="WHEN", help=first)
    groups = "Group by this; repeatable. Default: day, member, protocol and folder."
    by = click.Option(["--by"], multiple=True, type=ChoiceParam(SPEND_GROUPS, case_sensitive=False), help=groups)
    return make_command("spend", print_spending, since, by)


@with_convener
async def print_spending(convener: Convener, since: str, by: tuple[str, ...], json: bool, **params: Any) -> int:
    spent = await convener.spending(parse_since(since, time.time()))
    return print_result(json, spent, format_spending(spent, by or DEFAULT_SPEND_GROUPS))


def format_spending(spent: SpendingObject, by: Sequence[str] = DEFAULT_SPEND_GROUPS) -> list[str]:
    if not spent["total"]["calls"]:
        since = f" since {spent['since']}" if spent["since"] else ""
        return [f"no paid calls{since}", *_format_today(spent["today"])]
    return [
        *(line for group in dict.fromkeys(by) for line in (*_format_groups(group, spent), "")),
        _format_total(spent["total"]),
        *_format_stops(spent["total"]),
        *_format_unpriced(spent["unpriced"]),
        *_format_today(spent["today"]),
    ]


def _format_groups(by: str, spent: SpendingObject) -> list[str]:
    """Return a table of groups. Groups without any price are one row with their number, unless they are protocols."""
    if by == "protocol":
        return _format_protocols(spent["protocols"])
    groups = _label_groups(by, spent)
    rows = [_format_group(label, group) for label, group in groups if group["usd"] is not None]
    unknown = [(label, group) for label, group in groups if group["usd"] is None]
    if len(unknown) == 1:
        rows.append(_format_group(*unknown[0]))
    elif unknown:
        rows.append(_format_group(f"{len(unknown)} {by}s without a price", _merge_groups([row for _, row in unknown])))
    return format_table([f"by {by}", "cost", "calls", "unpriced", "tokens in", "tokens out"], rows, right=range(1, 6))


def _label_groups(by: str, spent: SpendingObject) -> list[tuple[str, SpendingSum]]:
    """Return the groups of a day, a member, a folder or a run, with their labels."""
    match by:
        case "day":
            return [(group["day"], group) for group in spent["days"]]
        case "member":
            return [(group["member"], group) for group in spent["members"]]
        case "folder":
            folders = spent["folders"]
            return [(format_folder(group["folder"]) if group["folder"] else REMOVED_RUNS, group) for group in folders]
        case _:
            return [(f"{group['run']} {group['name'] or '(removed)'}", group) for group in spent["runs"]]


def _format_protocols(groups: list[ProtocolSpending]) -> list[str]:
    columns = ["by protocol", "runs", "calls", "cost", "per complete run", "stops", "stops saved"]
    rows = [
        [
            group["protocol"] or REMOVED_RUNS,
            f"{group['runs']:,}",
            f"{group['calls']:,}",
            _format_usd(group),
            _format_mean(group),
            f"{group['stops']:,}" if group["stops"] else "",
            _format_saved(group) if group["stops"] else "",
        ]
        for group in groups
    ]
    return format_table(columns, rows, right=range(1, len(columns)))


def _format_mean(group: RunCounts) -> str:
    """Return the mean cost of the complete runs; empty if there are none."""
    if not group["complete"]:
        return ""
    return "unknown" if group["mean"] is None else format_usd(group["mean"])


def _format_saved(group: RunCounts) -> str:
    return "unknown" if group["saved"] is None else f"about {format_usd(group['saved'])}"


def _merge_groups(groups: Sequence[SpendingSum]) -> SpendingSum:
    """Return the sum of groups without a price."""
    tokens = [group["tokens"] for group in groups]
    return {
        "usd": None,
        "estimated": 0.0,
        "in_doubt": 0.0,
        "calls": sum(group["calls"] for group in groups),
        "unpriced": sum(group["unpriced"] for group in groups),
        "tokens": {"in": sum(used["in"] for used in tokens), "out": sum(used["out"] for used in tokens)},
        "cached_saving": 0.0,
    }


def _format_group(label: str, group: SpendingSum) -> list[str]:
    counts = [f"{group['calls']:,}", f"{group['unpriced']:,}" if group["unpriced"] else ""]
    return [label, _format_usd(group), *counts, f"{group['tokens']['in']:,}", f"{group['tokens']['out']:,}"]


def _format_usd(group: SpendingSum) -> str:
    return "unknown" if group["usd"] is None or group["unpriced"] == group["calls"] else format_usd(group["usd"])


def _format_unpriced(members: list[str]) -> list[str]:
    more = len(members) - MAX_LISTED_MEMBERS
    rest = f" and {more} more" if more > 0 else ""
    return [f"unpriced: {', '.join(members[:MAX_LISTED_MEMBERS])}{rest}"] if members else []


def _format_total(total: SpendingTotal) -> str:
    parts = [
        *([f"{format_usd(total['estimated'])} of it estimated"] if total["estimated"] else []),
        *([f"at most {format_usd(total['in_doubt'])} more in doubt"] if total["in_doubt"] else []),
        *([f"{total['unpriced']:,} unpriced calls"] if total["unpriced"] else []),
    ]
    return ", ".join([f"total {_format_usd(total)}", *parts]) + format_saving(total["cached_saving"])


def _format_stops(total: RunCounts) -> list[str]:
    """Return one line with what phases would have cost that were not needed; none without stops."""
    if not total["stops"]:
        return []
    stops = format_count(total["stops"], "stop")
    if total["saved"] is None:
        return [f"{stops}; what they saved is unknown, because prices are missing"]
    return [f"{stops} saved {_format_saved(total)}, by the estimates of the plans"]


def _format_today(today: TodaySpending) -> list[str]:
    if today["cap"] is None or today["left"] is None:
        return []
    return [f"today {format_usd(today['usd'])} of {format_usd(today['cap'])}, {format_usd(today['left'])} left"]
