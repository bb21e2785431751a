"""Follow-up runs: the packet of a new run includes the question and the answer of an earlier one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from council.errors import UsageError
from council.intent import ChosenBy, Intent
from council.minutes import Minutes
from council.record import Record
from council.render.report import answer_text


def format_prior_run(record: Record) -> tuple[str, str]:
    """Return the name and the text with which an earlier run is added to the next packet."""
    minutes = Minutes.fold(record.entries)
    answer = answer_text(minutes).strip()
    if minutes.status == "running" or not answer:
        raise UsageError(
            f"run {record.run} has no answer to continue from yet: finish it with `council resume {record.run}`"
        )
    ruled = [str(minutes.verdict[name]) for name in ("verdict", "outcome", "confidence") if minutes.verdict.get(name)]
    state = "" if minutes.status == "complete" else f"{minutes.status}, "
    head = f"Answer of the council ({state}{', '.join([str(minutes.plan.get('protocol')), *ruled])})"
    return f"council {record.run}", f"# Question\n\n{minutes.plan.get('question')}\n\n# {head}\n\n{answer}\n"


def continue_protocol(intent: Intent, record: Record, known: Collection[str]) -> Intent:
    """Use the protocol of the earlier run, unless words or flags chose another."""
    setup = record.setup
    if intent.chosen_by != ChosenBy.DEFAULT or setup["protocol"] not in known:
        return intent
    return replace(
        intent, protocol=setup["protocol"], task=setup["question"]["task"], options=dict(setup.get("given") or {}),
        why=f"same as {record.run}, which it continues",
    )  # fmt: skip
