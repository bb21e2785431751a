"""The tail: at most three lines after every answer that say the outcome, who differs, and how far to trust it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from council.engine.minutes import Minutes
from council.engine.records import CheckRow, DifferenceRow, OutcomeRow, SideRow, VerdictObject
from council.engine.trust import Trust
from council.language import LANGUAGES
from council.text_cleanup import single_line
from council.types import CONCLUSIONS
from council.wording import Wording, load_wording

MAX_REASONS = 3
MAX_SIDES = 4
MAX_POINT_CHARS = 160
MAX_TOPIC_CHARS = 90  # of a point whose sides are told
MAX_SIDE_CHARS = 90
MAX_LINES = 3
RULE = "---"
TOPIC_END = re.compile(r"[:：;；]|(?<=\?) |(?<=？)| \(|（")


def build_tail(minutes: Minutes, trust: Trust, wording: Wording) -> list[str]:
    """Return the lines of the tail: outcome, agreement or difference, trust."""
    if minutes.is_empty_run:
        return []
    verdict = minutes.verdict
    complete = minutes.status == "complete"
    lines = [
        _format_outcome(verdict, wording) if complete or verdict.get("incomplete") else "",
        _format_positions(minutes, trust, wording) if complete else "",
        _format_trust(trust, wording),
    ]
    return [line for line in lines if line]


def format_tail(lines: Sequence[str]) -> str:
    """Return the tail as Markdown that follows an answer: a rule, then one line each."""
    return "\n".join([RULE, "", *(f"{line}  " for line in lines[:-1]), lines[-1]]) if lines else ""


def add_tail(answer: str, lines: Sequence[str]) -> str:
    """Return an answer with its tail."""
    return f"{answer.rstrip()}\n\n{format_tail(lines)}\n" if lines else answer


def strip_tail(text: str) -> str:
    """Return a text without the tail at its end, in any language."""
    body, found, end = text.rpartition(f"\n{RULE}\n")
    lines = [_normalize_spaces(line) for line in end.splitlines() if line.strip()]
    if not found or not 0 < len(lines) <= MAX_LINES or not all(line.startswith(list_labels()) for line in lines):
        return text
    return body.rstrip()


@cache
def list_labels() -> tuple[str, ...]:
    """Return how lines of a tail begin, in all languages."""
    wordings = map(load_wording, LANGUAGES)
    return tuple(
        _normalize_spaces(f"{wording.say('tail', label)}{wording.colon}")
        for wording in wordings
        for label in ("outcome", "differ", "agree", "trust")
    )


def _normalize_spaces(line: str) -> str:
    """Return a line with plain spaces: some programs replace the space before a French colon."""
    return " ".join(line.split())


def _format_line(label: str, text: str, wording: Wording) -> str:
    return f"{wording.say('tail', label)}{wording.colon}{text}"


# Outcome


def _format_outcome(verdict: VerdictObject, wording: Wording) -> str:
    parts = [_describe_result(verdict.get("result"), wording), _describe_check(verdict.get("check"), wording)]
    text = wording.semicolon.join(filter(None, parts))
    return _format_line("outcome", text, wording) if text else ""


def _describe_result(result: OutcomeRow | None, wording: Wording) -> str:
    if not result:
        return ""
    key, number = _choose_outcome(result)
    return wording.say("outcomes", key, number=number, by=result["replaced_by"], **result)


def _describe_check(check: CheckRow | None, wording: Wording) -> str:
    """Return who checked the text, how many errors they found, and what became of them."""
    if not check or not check["readers"]:
        return ""
    states = [error["state"] for error in check["errors"] if not error["same_as"]]
    corrected = states.count("corrected")
    key = "checked" if states else "checked_clean"
    readers = wording.join(check["readers"])
    text = wording.say("outcomes", key, number=len(states), seats=readers, count=corrected, total=len(states))
    left = states.count("open")
    still_open = [wording.say("outcomes", "check_open", number=left, count=left)] if left else []
    return wording.comma.join([text, *still_open])


def _choose_outcome(result: OutcomeRow) -> tuple[str, int]:
    """Return the row of the sentence, and the number that chooses between one and many."""
    kind, count, total = str(result["kind"]), result["count"], result["total"]
    if kind == "overturned" and not result["replaced_by"]:
        return "overturned_unnamed", count
    if kind == "votes" and total == 1:
        return "votes_single", 1
    if kind in ("consensus", "settled") and total == 2:
        return f"{kind}_both", total
    if kind == "stopped":
        return "stopped_all" if total > 2 else "stopped", count
    if kind == "survived" and not count:
        return "survived_all_failed", total
    if kind in ("survived", "modified") and count == total == 1:
        return f"{kind}_single", 1
    if kind == "modified" and result["changes"]:
        return "modified_counted", result["changes"]
    return kind, count


# Agreement and differences


def _format_positions(minutes: Minutes, trust: Trust, wording: Wording) -> str:
    verdict = minutes.verdict
    differences = verdict.get("differences") or []
    everyone = next((fact.count for fact in trust.supports if fact.kind == "all_hold"), 0)
    row = "same_conclusion" if verdict.get("agreement_on") == CONCLUSIONS else "all_hold"
    if differences and everyone:
        all_hold = _format_all_hold(everyone, wording, row)
        but_differ = wording.say("tail", "but_differ", detail=_format_difference(differences, wording))
        return _format_line("agree", wording.semicolon.join([all_hold, but_differ]), wording)
    if differences:
        return _format_line("differ", _format_difference(differences, wording), wording)
    if verdict.get("agreement") not in ("full", "partial"):
        return ""
    parts = []
    common = [text for text in verdict.get("common") or [] if text]
    answered = [seat.name for seat in minutes.planned_seats if seat.statements]
    if common:
        parts.append(single_line(common[0], MAX_POINT_CHARS).rstrip(" .。"))
        if more := len(common) - 1:
            parts.append(wording.say("tail", "more", number=more, count=more))
    elif _is_unanimous(verdict, len(answered)) and not _tells_agreement(verdict.get("result")):
        parts.append(_format_all_hold(len(answered), wording, row))
    if joined := verdict.get("joined"):
        parts.append(wording.say("tail", "joined", number=len(joined), seats=wording.join(joined)))
    return _format_line("agree", wording.semicolon.join(parts), wording) if parts else ""


def _format_all_hold(count: int, wording: Wording, row: str) -> str:
    return wording.say("tail", f"{row}_both" if count == 2 else row, count=count)


def _is_unanimous(verdict: VerdictObject, answered: int) -> bool:
    holders = verdict.get("shared_by")
    return verdict.get("agreement") == "full" and (holders is None or len(holders) == answered)


def _tells_agreement(result: OutcomeRow | None) -> bool:
    """Return whether the outcome line says already that all agree, by votes or as the reason for a stop."""
    return result is not None and result["kind"] in ("votes", "consensus", "settled", "stopped")


def _format_difference(differences: Sequence[DifferenceRow], wording: Wording) -> str:
    first = differences[0]
    sides = [_format_side(side, wording) for side in first["sides"] if side["position"]]
    held = wording.join_alternatives(sides[:MAX_SIDES]) if len(sides) > 1 else ""
    point = _shorten_topic(first["point"]) if held else single_line(first["point"], MAX_POINT_CHARS).rstrip(" .。")
    mark = "" if point.endswith("？") else " " if point.endswith("?") else wording.colon
    text = mark.join(filter(None, (point, held)))
    more = len(differences) - 1
    rest = [wording.say("tail", "more", number=more, count=more)] if more else []
    return wording.semicolon.join([text, *rest])


def _shorten_topic(point: str) -> str:
    """Return the topic of a point, without the positions after it, which have their seats; empty if long."""
    line = single_line(point, 4 * MAX_POINT_CHARS).rstrip(" .。")
    if len(line) <= MAX_TOPIC_CHARS:
        return line
    topic = TOPIC_END.split(line, maxsplit=1)[0].rstrip()
    return topic if len(topic) <= MAX_TOPIC_CHARS else ""


def _format_side(side: SideRow, wording: Wording) -> str:
    position = single_line(side["position"], MAX_SIDE_CHARS).rstrip(" .。")
    assumes = single_line(side["assumes"], MAX_SIDE_CHARS).rstrip(" .。")
    who = wording.join(side["seats"])
    notes = [who, wording.say("tail", "assuming", detail=assumes)] if assumes else [who]
    return f"{position}{wording.enclose(wording.comma.join(notes))}"


# Trust


def _format_trust(trust: Trust, wording: Wording) -> str:
    reasons = wording.list_reasons(trust.limits)
    if not reasons or trust.level == "HIGH":  # of HIGH only decisions that turned out wrong are among the limits
        reasons += wording.list_supports(trust.level, trust.supports)
    limit = reasons[-1:] if trust.level == "HIGH" else []  # HIGH never hides its limit
    shown = [*reasons[: MAX_REASONS - len(limit)], *limit] if len(reasons) > MAX_REASONS else reasons[:]
    more = len(reasons) - len(shown)
    if more:
        shown.append(wording.say("tail", "more_reasons", number=more, count=more))
    level = wording.format_level(trust.level)
    return _format_line("trust", wording.dash.join(filter(None, (level, wording.semicolon.join(shown)))), wording)
