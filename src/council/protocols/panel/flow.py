"""Panel protocol: every seat answers on its own, and the clerk compares the answers."""

from __future__ import annotations

from typing import TypedDict

from council.engine.council import Council
from council.engine.records import SectionRow
from council.language import detect_language
from council.protocols import PLAIN_SEATS
from council.protocols.common.clerk import build_clerk, list_light_members
from council.protocols.common.points import ComparedAnswers, assess_points, compare_answers
from council.protocols.common.sections import dump_sections
from council.protocols.options import NoOptions
from council.protocols.panel.closings import Closing, read_closing
from council.protocols.panel.rules import (
    add_different_conclusions,
    build_sections,
    describe_points,
    list_confidence_facts,
)
from council.protocols.seats import Panel, PanelContext, resize_seats
from council.types import Round, Verdict
from council.wording import load_wording


def build_panel(task: str, chosen: NoOptions, context: PanelContext) -> Panel:
    """Return three seats without a role, or as many as `-m` or `--seats` says, and the clerk."""
    clerk = build_clerk(list_light_members(context), context)
    return Panel(resize_seats(PLAIN_SEATS, context.settings), chair=None, helpers=(clerk,) if clerk else ())


class ComparisonRow(TypedDict):
    """Whether the clerk compared the answers."""

    state: str  # answered | unneeded | unavailable | absent | stopped
    why: str
    unknown: list[str]  # labels that it named and that are no answers


class PanelDetails(TypedDict, total=False):
    clerk: ComparisonRow
    sections: list[SectionRow]
    closings: dict[str, Closing]  # by seat


CAVEATS: dict[str, str] = {  # by the state of the clerk
    "unneeded": "Only one seat answered, so there is nothing to compare.",
    "unavailable": "The answers below were not compared: there is no member for the clerk.",
    "absent": "The answers below were not compared: the clerk did not answer.",
    "stopped": "The answers below were not compared: the run stopped first.",
}


async def panel(council: Council) -> Verdict:
    """Collect independent answers, and compare them."""
    async with council.phase("answer"):
        answers = await council.poll(council.members, "panel/answer")
    not_compared = ComparedAnswers("stopped" if len(answers) > 1 else "unneeded")
    council.so_far(build_verdict(council, answers, not_compared), is_answer=True)
    points = await compare_answers(council, answers, "compare")
    return build_verdict(council, answers, points)


def build_verdict(council: Council, answers: Round[None], points: ComparedAnswers) -> Verdict:
    """Return the answers and what the clerk found. Code writes the digest; no seat does."""
    texts = {name: said.said for name, said in answers.items()}
    closings = {name: read_closing(text) for name, text in texts.items()}
    wording = load_wording(detect_language("\n".join(texts.values()), council.question.text))
    points = add_different_conclusions(points, closings, council.question.text, wording.heading("the_conclusion"))
    sections = build_sections(points, texts, wording)
    noted = assess_points(points, answers)
    facts = (*noted.trust_facts, *list_confidence_facts(closings))
    details: PanelDetails = {
        "clerk": {"state": points.state, "why": points.reason, "unknown": list(points.unknown)},
        "sections": dump_sections(sections),
        "closings": closings,
    }
    return Verdict(
        "\n\n".join(section.text for section in sections),  # they have their own headings
        caveats=(CAVEATS[points.state],) if points.state in CAVEATS else (),
        consensus=tuple({"point": one.point, "seats": list(one.seats)} for one in points.agreed),
        disagreements=tuple(describe_points(points.disputed)),
        details=dict(details),
        notes=points.as_notes(),
        agreement_on="conclusions",
        **(noted._asdict() | {"trust_facts": facts}),
    )
