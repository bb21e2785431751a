"""Advice: which protocol and how many rounds are worth their price for a question. No model is asked.

It follows from results of `council eval` with the same members, and else from published results: see docs/evidence.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.planning.facts import CALCULATION, has_checkable_answer
from council.planning.intent import ChosenBy, Intent
from council.planning.plan import Plan, asks_short_fact
from council.runs.eval_object import EvalArm, EvalObject, HistoryEvalObject, StoredEval, StoredHistoryEval
from council.settings.config_files import data_folder, write_private
from council.types import Json

INDEPENDENT = "triad"  # independent drafts, merged once: the council with the fewest calls
ONE_MODEL = "quick"
SELF_REVIEW = "solo"
CHECKED = "refine"
STOPPING = "adaptive"
WITH_EXCHANGE = ("collaborative", "adversarial")  # their seats read each other
MAX_EXTRA_COST = 1.6  # of the advised protocol for an open question, relative to the one that the words choose
SCHEMAS = ("council.eval/1", "council.history-eval/1")  # of the results that are kept
SELF_CONSISTENCY = "self-consistency="  # start of the name of the arm that a council has to beat
COPIES = (
    "all seats have one member, and one member that attacks and rewrites its own answer costs less than an exchange "
    "between copies; in a trial with copies, readers preferred refine to it in 56 % of the comparisons, at twice the tokens"
)
ONE_ANSWER = "a question with one short right answer, where independent answers bring most of the gain of a council"
SHORT_FACT = "a question with one short factual answer, for which one model is enough"
CHECKABLE = (
    "the answer can be checked: two members of different vendors answer, and if they agree a check ends it after 3 calls; "
    "else only what is disputed is argued"
)
OPEN_QUESTION = "an open question; more than one round is rarely worth its price"
OPEN_WITH_VENDORS = (
    "an open question and members of several vendors: each reworks its own answer, and the text that is built on the "
    "best one is checked; in a trial with copies of one model, readers preferred it to collaborative in 60 % of the "
    "comparisons and to one model in 56 %; several vendors were not tested"
)
DECISION = re.compile(r"\b(?:should|ought|recommend|suggest|better|worth|we|our)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Advice:
    """The advised protocol with its options, and the reason."""

    protocol: str
    why: str
    options: Json = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The protocol as an arm of an evaluation: `advisors:rounds=3`."""
        return ":".join([self.protocol, *(f"{name}={value}" for name, value in self.options.items())])


async def plan_by_advice(intent: Intent, make: Callable[[Intent], Awaitable[Plan]], env: Mapping[str, str]) -> Plan:
    """Return the plan of the advised protocol, or the default, which names the advice, if it costs less."""
    default = await make(intent)
    advice = advise(intent, default, list_results(env))
    if advice.protocol == intent.protocol and not advice.options:
        return replace(default, why=advice.why)
    try:
        advised = await make(replace(intent, protocol=advice.protocol, options=intent.options | advice.options))
    except UsageError:  # a flag of this run, such as several -m, does not fit the advised protocol
        problem = "does not fit the flags"
    else:
        if not costs_more(advised, default, MAX_EXTRA_COST if advice.protocol == CHECKED else 1.0):
            return replace(advised, why=advice.why)
        problem = "costs more: choose it by its name"
    return replace(default, why=f"{intent.why}; {advice.name} is advised ({advice.why}), but it {problem}")


def costs_more(plan: Plan, default: Plan, factor: float) -> bool:
    """Compare by the expected cost, and if a price is unknown or nothing costs anything, by the number of calls."""
    costs = [0.0 if one.cost is None else float(one.cost["expected"]) for one in (plan, default)]
    if all(costs):
        return costs[0] > factor * costs[1]
    return factor == 1.0 and plan.calls[1] > default.calls[1]


def advise(intent: Intent, default: Plan, results: Sequence[EvalObject]) -> Advice:
    """Return the advice for a request: `default` is the plan that the words choose, `results` of evaluations."""
    if intent.chosen_by not in (ChosenBy.DEFAULT, ChosenBy.TRIGGER):
        return Advice(intent.protocol, intent.why)
    vendors = {seat.vendor for seat in default.roster.seats}
    can_stop = len(vendors) > 1  # seats of one vendor are one voice, so that they cannot confirm each other
    if asks_short_fact(intent, default):
        return Advice(STOPPING, CHECKABLE) if can_stop else Advice(ONE_MODEL, SHORT_FACT)
    members = sorted({seat.member for seat in default.roster.seats})
    arms = [(result, arm) for result in results if result.get("members") == members for arm in _list_decided(result)]
    if better := [(result, arm) for result, arm in arms if _find_gain(arm) > 0]:
        result, arm = max(better, key=lambda pair: _find_gain(pair[1]))
        return Advice(arm["protocol"], _format_gain(result, arm, "more"), dict(arm["options"]))
    if worse := [(result, arm) for result, arm in arms if arm["protocol"] == intent.protocol and not arm["options"]]:
        return Advice(INDEPENDENT, _format_gain(*worse[0], "less"))
    if len(members) == 1 and intent.protocol in WITH_EXCHANGE:
        return Advice(SELF_REVIEW, COPIES)
    if intent.chosen_by is ChosenBy.TRIGGER:
        return Advice(intent.protocol, intent.why)
    if can_stop and asks_checkable(intent, default):
        return Advice(STOPPING, CHECKABLE)
    if CALCULATION.search(intent.question) and not DECISION.search(intent.question):
        return Advice(INDEPENDENT, ONE_ANSWER)
    if intent.protocol == "collaborative" and can_stop:
        return Advice(CHECKED, OPEN_WITH_VENDORS)
    return Advice(intent.protocol, OPEN_QUESTION)


def asks_checkable(intent: Intent, default: Plan) -> bool:
    """Return whether the words choose nothing else and ask for something that can be checked, without material."""
    is_plain = intent.chosen_by is ChosenBy.DEFAULT and intent.task == "ask" and default.packet.empty
    return is_plain and has_checkable_answer(intent.question)


def _list_decided(result: EvalObject) -> list[EvalArm]:
    """Return the council arms whose difference to self-consistency of equal use is decided."""
    return [
        arm
        for arm in result["arms"]
        if (against := arm["against"]) and against["arm"] == f"{SELF_CONSISTENCY}{arm['arm']}" and against["decided"]
    ]


def _find_gain(arm: EvalArm) -> float:
    """Return how much more often an arm is right than the one it is compared with, as a share of the questions."""
    return (arm["against"]["difference"]["mean"] if arm["against"] else None) or 0.0


def _format_gain(result: EvalObject, arm: EvalArm, word: str) -> str:
    points = 100 * abs(_find_gain(arm))
    return (
        f"on {result['dataset']} ({result['questions']} questions) {arm['arm']} with these members was right {points:.0f} points "
        f"{word} often than one model with equal {result['equal']}"
    )


# Stored results of evaluations


def results_folder(env: Mapping[str, str]) -> Path:
    return data_folder(env) / "evals"


def save_result(env: Mapping[str, str], result: EvalObject | HistoryEvalObject, folder: Path, at: float) -> None:
    """Keep the result of an evaluation for advice and for the web page. The same folder of output replaces it."""
    place = str(folder.resolve())
    id_ = hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    path = results_folder(env) / f"{id_}.json"
    stored = {"id": id_, "at": at, "folder": place, **result}
    write_private(path, json.dumps(stored, ensure_ascii=False))


def list_results(env: Mapping[str, str]) -> list[StoredEval]:
    """Return the kept results of evaluations on questions, newest first."""
    return [one for one in list_all_results(env) if one["schema"] == "council.eval/1"]


def list_all_results(env: Mapping[str, str]) -> list[StoredEval | StoredHistoryEval]:
    """Return the kept results of all evaluations, newest first. A file that cannot be read is left out."""
    found: list[StoredEval | StoredHistoryEval] = []
    for path in sorted(results_folder(env).glob("*.json")):
        with suppress(OSError, ValueError):
            value: Any = json.loads(path.read_text(encoding="utf-8"))
            schema, id_ = (value.get("schema"), value.get("id")) if isinstance(value, dict) else ("", "")
            if schema in SCHEMAS and id_ == path.stem:
                found.append(value)
    return sorted(found, key=lambda one: -float(one["at"]))
