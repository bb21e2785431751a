"""The general protocol's verdict: consensus, open disputes and cited sources, computed without a model call."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from council.protocols.general.claims import (
    Dispute,
    Move,
    SeatAnswer,
    claim_ledger,
    compute_general_confidence,
    find_consensus,
    resolve_disputes,
    topic_key,
)
from council.protocols.general.replies import Position, Reconsidered, SpecSynthesis, Synthesis
from council.protocols.general.research import Research
from council.protocols.general.synthesis import find_citations, find_problems, format_disagreement, number_disputes
from council.search.queries import is_time_sensitive
from council.types import Json, Question, Round, Seat, Statement, Verdict

MEMBER_ID_FORMAT = "council_{}"


@dataclass(slots=True)
class Deliberation:
    """Both rounds of statements, and what the rules derive from them."""

    research: Research
    first: Round[Position]
    second: Round[Reconsidered]
    initial_answers: list[SeatAnswer]
    disputes: list[Dispute]
    overflow_disputes: list[Dispute]  # over the limit: reported, but no seat is asked about them
    moves: list[Move] = field(init=False)
    resolved: list[Dispute] = field(init=False)
    persisting: list[Dispute] = field(init=False)
    final_answers: list[SeatAnswer] = field(init=False)

    def __post_init__(self) -> None:
        self.moves = self._collect_moves()
        self.resolved, self.persisting = resolve_disputes([*self.disputes, *self.overflow_disputes], self.moves)
        self.final_answers = [self._after_second_round(answer) for answer in self.initial_answers]

    @property
    def disputes_by_name(self) -> dict[str, Dispute]:
        return number_disputes(self.disputes)

    @property
    def persisting_by_name(self) -> dict[str, Dispute]:
        """The open disputes the synthesis must report, by their second-round names."""
        return {name: one for name, one in self.disputes_by_name.items() if one in self.persisting}

    @property
    def unnumbered_disputes(self) -> list[Dispute]:
        """The open disputes the code reports itself: those over the limit, and possible ones."""
        return [one for one in self.persisting if one not in self.persisting_by_name.values()]

    @property
    def resolved_by_name(self) -> dict[str, Dispute]:
        return {name: one for name, one in self.disputes_by_name.items() if one in self.resolved}

    @property
    def consensus(self) -> list[Json]:
        """Points of consensus; an open dispute is never one, however many seats are on one side."""
        disputed = {topic_key(one.topic) for one in self.persisting if not one.is_possible}
        points = find_consensus(self.final_answers, len(self.first))
        return [point for point in points if topic_key(point["topic"]) not in disputed]

    def _collect_moves(self) -> list[Move]:
        put = self.disputes_by_name
        return [
            Move(name, put[one.topic].topic, one.word, one.paragraph, one.confidence)
            for name, said in self.second.items()
            for one in said.reply.answers
            if name in put[one.topic].seats
        ]

    def changed_moves(self) -> list[tuple[str, Move]]:
        """Return the second-round answers other than MAINTAIN, each with its dispute's name."""
        names = {one.topic: name for name, one in self.disputes_by_name.items()}
        return [(names[move.topic], move) for move in self.moves if move.word != "MAINTAIN"]

    def _after_second_round(self, answer: SeatAnswer) -> SeatAnswer:
        """Apply the second round: drop conceded claims and use the later confidence."""
        moves = {move.topic: move for move in self.moves if move.seat == answer.seat}
        claims = tuple(
            replace(claim, confidence=moves[claim.topic].confidence) if claim.topic in moves else claim
            for claim in answer.claims
            if claim.topic not in moves or moves[claim.topic].word != "CONCEDE"
        )
        return replace(answer, claims=claims)

    def find_problems(self, reply: Synthesis) -> list[str]:
        told = {one.disagreement: [side.case or side.position for side in one.sides] for one in reply.disagreements}
        changes = reply.changes if isinstance(reply, SpecSynthesis) and reply.answer.strip() else []
        answer = "\n\n".join([reply.answer, *changes])
        return find_problems(answer, told, self.research.sources_by_number, self.persisting_by_name)

    @property
    def answers_for_chair(self) -> list[Statement[Position]]:
        """The first answers without sources that are not in the research context."""
        return [self.research.remove_unknown_sources(said) for said in self.first.values()]

    def unknown_citations(self) -> dict[str, list[str]]:
        strange = {name: self.research.unknown_citations(said.reply) for name, said in self.first.items()}
        return {name: what for name, what in strange.items() if what}


def build_verdict(
    table: Deliberation, reply: Synthesis, problems: list[str], *, asked: int, question: Question
) -> Verdict:
    told, changes = [reply.answer.strip(), *_format_disagreements(table, reply)], _format_spec_changes(reply)
    numbers = [
        n
        for n in find_citations("\n\n".join((*told, *changes)), table.research.sources_by_number)
        if n in table.research.sources_by_number
    ]
    return replace(
        _base_verdict(table, numbers, problems),
        answer="\n\n".join((_format_participants(table), *told, *_format_sources(table, numbers), *changes)),
        confidence=compute_general_confidence(
            table.consensus, table.persisting, len(table.first), asked, bool(numbers)
        ),
        caveats=tuple(_list_caveats(table, problems, numbers, question)),
    )


def build_verdict_without_chair(table: Deliberation) -> Verdict:
    """Build the verdict of a council whose chair failed; it still reports every disagreement."""
    told = _format_disagreements(table, Synthesis(answer="", disagreements=[]))
    said = [one.said for one in table.answers_for_chair]
    numbers = [
        n
        for n in find_citations("\n\n".join((*said, *told)), table.research.sources_by_number)
        if n in table.research.sources_by_number
    ]
    made_out = _base_verdict(table, numbers, [])
    return replace(
        made_out,
        answer="\n\n".join((*told, *_format_sources(table, numbers))),
        caveats=tuple(_unknown_citation_caveats(table)),
    )


def _base_verdict(table: Deliberation, numbers: list[int], problems: list[str]) -> Verdict:
    return Verdict(
        "",
        consensus=tuple(table.consensus),
        disagreements=tuple(_dispute_json(table, one) for one in table.persisting),
        blind_spots=tuple(_uncertainties_json(table)),
        dissent=tuple(_dissent_json(table)),
        shifts=tuple(_shifts_json(table)),
        sources=tuple(_sources_json(table, numbers)),
        claims=tuple(claim_ledger(table.initial_answers, [*table.disputes, *table.overflow_disputes], [one.topic for one in table.resolved], table.moves)),
        details={
            "round1Responses": [_response_json(said, 1) for said in table.first.values()],
            "round2Responses": [_response_json(said, 2) for said in table.second.values()],
            "resolved": [_dispute_json(table, one) for one in table.resolved],
            "struck": table.unknown_citations(), "problems": problems, "queries_failed": list(table.research.failed),
        },
    )  # fmt: skip


# Sections of the answer that must not depend on the chair


def _format_spec_changes(reply: Synthesis) -> list[str]:
    return [f"## Proposed Spec Changes\n\n{reply.format_changes()}"] if isinstance(reply, SpecSynthesis) else []


def _format_participants(table: Deliberation) -> str:
    who = [
        f"{said.outcome.served_by or said.seat.member} as {_role_in_sentence(said.seat)}"
        for said in table.first.values()
    ]
    return f"Participating models: {', '.join(who)}."


def _role_in_sentence(seat: Seat) -> str:
    """Return the role in lower case, unless it contains a name or an abbreviation."""
    return seat.role if any(map(str.isupper, seat.role[1:])) else seat.role.lower()


def _format_disagreements(table: Deliberation, reply: Synthesis) -> list[str]:
    told = {one.disagreement: one for one in reply.disagreements}
    texts = []
    for name, dispute in table.persisting_by_name.items():
        one = told.get(name)
        sides = [(side.position.strip(), side.case.strip()) for side in one.sides if side.case.strip()] if one else []
        texts.append(format_disagreement(dispute, one.because if one else "", sides if len(sides) > 1 else []))
    texts += [format_disagreement(one, "", []) for one in table.unnumbered_disputes]
    return ["## Where Experts Disagree", *texts] if texts else []


def _format_sources(table: Deliberation, numbers: list[int]) -> list[str]:
    if not table.research.sources:
        return []
    known = {one["n"]: one for one in table.research.sources}
    rows = [f"[{n}] [{_replace_brackets(known[n]['title'])}]({_escape_url(known[n]['url'])})" for n in numbers]
    return ["## Sources\n\n" + ("\n".join(f"- {row}" for row in rows) or "None of the sources found was cited.")]


def _replace_brackets(title: str) -> str:
    return title.replace("[", "(").replace("]", ")")


def _escape_url(url: str) -> str:
    """Escape whitespace and brackets, which would end a Markdown link target."""
    return re.sub(r"[\s()<>\[\]\\]", lambda odd: quote(odd[0], safe=""), url)


# Other parts of the report


def _list_caveats(table: Deliberation, problems: list[str], numbers: list[int], question: Question) -> list[str]:
    lines = [f"The synthesis was sent back once and still fails a check: {problem}." for problem in problems]
    if table.overflow_disputes:
        more = (
            f"{len(table.overflow_disputes)} more were found"
            if len(table.overflow_disputes) > 1
            else "1 more was found"
        )
        lines.append(
            f"The members answered ten disagreements, and {more}: the answer lists them without a second round."
        )
    lines += _unknown_citation_caveats(table)
    if not table.research.sources:
        lines.append(f"No source supports this answer: {'; '.join((table.research.missing, *table.research.remarks))}.")
        if is_time_sensitive(question.text):
            lines.append("The question asks for current information, and none was found: check before you act.")
    elif not numbers and not any(one["cited_by"] for one in _sources_json(table, numbers)):
        lines.append("No source was cited: the answer rests on what the members know.")
    return lines


def _unknown_citation_caveats(table: Deliberation) -> list[str]:
    return [
        f"{name} cited sources that are not in the research context; they were removed: {', '.join(what)}."
        for name, what in table.unknown_citations().items()
    ]


def _dispute_json(table: Deliberation, one: Dispute) -> Json:
    words = {move.seat: move.word for move in table.moves if move.topic == one.topic}
    return {
        "issue": one.topic, "topic": one.topic, "how": one.how,
        "positions": [
            {"seat": side.seat, "stance": side.stance, "claim": side.claim, "evidence": list(side.evidence), "round2": words.get(side.seat)}
            for side in one.positions
        ],
    }  # fmt: skip


def _uncertainties_json(table: Deliberation) -> list[Json]:
    return [
        {"seat": name, "text": line} for name, said in table.first.items() for line in said.reply.areasOfUncertainty
    ]


def _dissent_json(table: Deliberation) -> list[Json]:
    """Return the seats that are alone with their stance in an open dispute."""
    return [
        {"seat": side.seat, "position": side.stance, "text": side.claim}
        for one in table.persisting
        for side in one.positions
        if len(one.positions) > 2 and [other.stance for other in one.positions].count(side.stance) == 1
    ]


def _shifts_json(table: Deliberation) -> list[Json]:
    """Return the second-round answers; a concession without grounds is a weak flip."""
    held = {(claim.seat, claim.topic): claim.text for answer in table.initial_answers for claim in answer.claims}
    return [
        {
            "seat": move.seat, "topic": move.topic, "from": held.get((move.seat, move.topic), ""), "to": move.word,
            "changed": move.word != "MAINTAIN", "reason": move.text, "weak": move.is_weak,
        }
        for move in table.moves
    ]  # fmt: skip


def _sources_json(table: Deliberation, numbers: list[int]) -> list[Json]:
    return [
        {
            **one,
            "cited": one["n"] in numbers,
            "cited_by": [name for name, said in table.first.items() if _cites_source(said, one)],
        }
        for one in table.research.sources
    ]


def _cites_source(said: Statement[Position], source: Json) -> bool:
    reply = said.reply
    numbers = {n for claim in reply.claims for n in claim.sources} | set(
        find_citations(reply.response, {source["n"]: source})
    )
    return source["n"] in numbers or any(one.url == source["url"] for one in reply.sources)


def _response_json(said: Statement[Position] | Statement[Reconsidered], n: int) -> Json:
    """Return a member's reply; its id, role and round are set here rather than by the model."""
    seat = said.seat.name
    return {"memberId": MEMBER_ID_FORMAT.format(seat), "role": seat, "round": n, **said.reply.model_dump()}
