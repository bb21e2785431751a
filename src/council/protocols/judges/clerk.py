"""The clerk: one short call that says which findings of different judges report the same defect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from council.engine.council import Council
from council.errors import BudgetSpent, SeatAbsent
from council.protocols.common.clerk import find_clerk
from council.protocols.judges.findings import Finding
from council.protocols.judges.groups import ClerkGroup, format_place
from council.protocols.judges.replies import DefectGroups
from council.text_cleanup import truncate
from council.types import Packet

PHASE = "grouping"
QUESTION = "Which of these findings report the same defect?"
CLERK_TOKENS, CLERK_TOKENS_PER_FINDING = 400, 60
MAX_DESCRIPTION_CHARS, MAX_QUOTE_CHARS, MAX_DEFECT_CHARS = 1_200, 400, 300
# Why the groups are those of the clerk or of the rule alone.
ClerkState = Literal["answered", "off", "unneeded", "unavailable", "absent"]
REASONS: Mapping[ClerkState, str] = {
    "answered": "grouped by the clerk, and checked by code",
    "off": "grouped by rule, without a clerk",
    "unneeded": "fewer than two judges have findings",
    "unavailable": "grouped by rule: there is no member for the clerk",
    "absent": "grouped by rule: the clerk did not answer",
}


@dataclass(frozen=True, slots=True)
class Clerking:
    """The groups that the clerk named, and whether it answered."""

    state: ClerkState = "unneeded"
    groups: tuple[ClerkGroup, ...] = ()
    unknown: tuple[str, ...] = ()  # ids that it named and that are no findings
    why: str = ""  # why it did not answer


async def ask_clerk(council: Council, findings: Sequence[Finding], *, is_off: bool) -> Clerking:
    """Ask the clerk for the groups of the findings, without the names of the judges.

    A failed clerk is no failure of the run.
    """
    if len({finding.seat for finding in findings}) < 2:
        return Clerking()
    clerk = find_clerk(council.roster.helpers)
    if is_off or clerk is None:
        return Clerking("off" if is_off else "unavailable")
    labelled = {f"F{n}": finding for n, finding in enumerate(council.shuffled(findings, clerk), 1)}
    async with council.phase(PHASE):
        council.record_labels(clerk, {label: finding.id for label, finding in labelled.items()})
        try:
            said = await council.ask(
                clerk,
                "judges/group",
                reply=DefectGroups,
                choices={"findings": list(labelled)},
                findings={label: describe_finding(finding) for label, finding in labelled.items()},
                question=replace(council.question, text=QUESTION),
                packet=Packet(),  # the findings are enough, and the material is long
                judges=len({finding.seat for finding in findings}),
                tokens=CLERK_TOKENS + CLERK_TOKENS_PER_FINDING * len(labelled),
            )
        except (SeatAbsent, BudgetSpent) as gone:
            council.note("findings were grouped by rule alone", why=str(gone))
            return Clerking("absent", why=str(gone))
    return read_groups(said.reply, labelled)


def describe_finding(finding: Finding) -> str:
    """Return a finding as the clerk sees it: without its judge, its severity and its fix."""
    place = format_place(finding) or "no single place"
    scope = f", in {finding.scope.name}" if finding.scope and finding.scope.name else ""
    quote = f"\nQuote: {truncate(finding.quote, MAX_QUOTE_CHARS)}" if finding.quote.strip() else ""
    kind = f"\nCategory: {finding.category}" if finding.category else ""
    return f"Place: {place}{scope}{kind}{quote}\n{truncate(finding.description, MAX_DESCRIPTION_CHARS)}"


def read_groups(reply: DefectGroups, labelled: Mapping[str, Finding]) -> Clerking:
    """Return the groups with the ids of the findings. Unknown ids are kept apart."""
    groups, unknown = [], dict[str, None]()
    for one in reply.groups:
        named = dict.fromkeys(one.findings)
        unknown |= dict.fromkeys(label for label in named if label not in labelled)
        ids = tuple(labelled[label].id for label in named if label in labelled)
        if len({labelled[label].seat for label in named if label in labelled}) > 1:
            groups.append(ClerkGroup(ids, truncate(one.defect.strip(), MAX_DEFECT_CHARS)))
    return Clerking("answered", tuple(groups), tuple(unknown))
