"""Rules of the adversarial protocol: contradictions of a ruling, and the confidence, which no model states."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from council.protocols.adversarial.replies import Triage
from council.protocols.common.issues import SEVERE, Rulings, format_unknown
from council.types import TrustFact


def list_contradictions(outcome: str | None, rulings: Rulings) -> list[str]:
    """Return what makes a ruling contradict itself; such a ruling is CONTESTED after its repair turn."""
    found = [f"{name} is ruled both ways" for name in rulings.contradictory]
    fatal = [row.id for row in rulings.landed if row.severity == "FATAL"]
    if outcome in ("SURVIVED", "MODIFIED") and fatal:
        found.append(f"the outcome is {outcome} although {', '.join(fatal)} is FATAL and landed")
    if outcome == "OVERTURNED" and not any(row.severity in SEVERE for row in rulings.landed):
        found.append("the outcome is OVERTURNED although no FATAL or MAJOR issue landed")
    return found


def list_defects(outcome: str | None, rulings: Rulings) -> list[str]:
    """Return everything that earns a ruling its repair turn, worded for the model."""
    found = list_contradictions(outcome, rulings)
    if outcome is None:
        found.append("the outcome is missing")
    if missing := [row.id for row in rulings.rows if row.landed is None and row.id not in rulings.contradictory]:
        found.append(f"there is no ruling on {', '.join(missing)}: rule on every listed issue by its id")
    if rulings.unknown:
        listed = ", ".join(row.id for row in rulings.rows) or "none"
        found.append(f"{format_unknown(rulings)} is not a listed issue; listed are {listed}")
    return found


# Confidence and trust


def compute_confidence(
    outcome: str | None,
    landed: Collection[str],
    stances: Collection[str],
    *,
    open_issues: Collection[str] = (),
    contradictory: bool = False,
    unclear: bool = False,
) -> str:
    """Return the confidence of an attacked answer. `unclear`: part of the ruling or of an attack could not be used."""
    is_fatal = "FATAL" in open_issues or ("FATAL" in landed and "REJECTED" in stances)
    if contradictory or outcome == "OVERTURNED" or is_fatal:
        return "CONTESTED"
    if outcome != "SURVIVED" or not set(SEVERE).isdisjoint(landed) or open_issues or unclear:
        return "MEDIUM"
    return "HIGH"


def find_first_holders(
    triage: Triage, drafts: Iterable[str], outcome: str | None, replaced_by: str
) -> tuple[str, ...] | None:
    """Return the seats whose own draft reaches the conclusion of the answer; None if the triage does not say.

    The triage compares the drafts with the leading one only. After it was overturned, one seat alone is known to hold
    the answer if all others reach the conclusion of the leading draft.
    """
    names = tuple(drafts)
    leading = triage.holders or (names if triage.same_conclusion else ())
    if outcome == "OVERTURNED":
        return (replaced_by,) if replaced_by and {*leading, replaced_by} == set(names) else None
    return tuple(name for name in names if name in leading) or None


def is_settled(outcome: str | None, stances: Collection[str]) -> bool:
    """Return whether the attack settled the contested points: every attacker let the leading draft stand."""
    return bool(stances) and outcome == "SURVIVED" and all(stance == "STAND" for stance in stances)


def list_trust_facts(
    outcome: str | None, rulings: Rulings, stances: Mapping[str, str], contested: Sequence[str], *, contradictory: bool
) -> list[TrustFact]:
    """Return the facts of an attack for and against trust. `stances` are the attackers' by seat."""
    landed = [row for row in rulings.landed if row.severity in SEVERE]
    fatal = [row for row in rulings.rows if row.severity == "FATAL"]
    fatal_by = {row.id.rpartition("-")[0] for row in fatal if row.landed}
    rejecting = tuple(name for name, stance in stances.items() if stance == "REJECTED")
    open_fatal = [row for row in rulings.unruled if row.severity == "FATAL"]
    open_others = [row for row in rulings.unruled if row.severity != "FATAL"]
    dismissed = [row for row in rulings.distinct if row.landed is False]
    total = len(rulings.distinct)
    rejected_by_all = bool(stances) and len(rejecting) == len(stances) and outcome == "SURVIVED"
    is_all_rejected = rejected_by_all and all(row.landed is False for row in fatal)
    is_contested = bool(contested) and not is_settled(outcome, stances.values())
    facts = [
        (contradictory, TrustFact("contradictory_ruling")),
        (outcome == "OVERTURNED", TrustFact("overturned")),
        (fatal_by, TrustFact("fatal_landed", seats=tuple(filter(fatal_by.__contains__, stances)))),
        (open_fatal, TrustFact("open_fatal", count=len(open_fatal))),
        (is_all_rejected, TrustFact("all_rejected", seats=rejecting, count=len(rejecting))),
        (outcome == "MODIFIED", TrustFact("modified", count=len(rulings.landed), total=total)),
        (landed, TrustFact("landed", count=len(landed), total=total)),
        (open_others, TrustFact("unruled", count=len(open_others), total=total)),
        (rulings.unknown or outcome is None, TrustFact("unclear_ruling")),
        (dismissed, TrustFact("dismissed", count=len(dismissed), total=total)),
        (is_contested, TrustFact("contested_points", "".join(contested[:1]), count=len(contested))),
    ]
    return [fact for holds, fact in facts if holds]
