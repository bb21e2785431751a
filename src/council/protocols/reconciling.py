"""The general protocol's verdict: consensus, open disputes and cited sources, computed without a model call."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from council.protocols.researching import Research
from council.replies import Position, Reconsidered, SpecSynthesis, Synthesis
from council.rules.claims import claim_ledger, consensus_points
from council.rules.confidence import general_confidence
from council.rules.disputes import settle
from council.rules.queries import is_timely
from council.rules.synthesis import cited, disagreement_text, problems_of, put_to_them
from council.rules.topics import topic_key
from council.rules.voices import Dispute, Move, Voice
from council.types import Json, Question, Round, Seat, Statement, Verdict

MEMBER = "council_{}"


@dataclass(slots=True)
class Table:
    """Both rounds of statements, and what the rules derive from them."""

    found: Research
    first: Round[Position]
    second: Round[Reconsidered]
    heard: list[Voice]
    disputes: list[Dispute]
    beyond: list[Dispute]  # over the limit: reported, but no seat is asked about them
    moves: list[Move] = field(init=False)
    resolved: list[Dispute] = field(init=False)
    persisting: list[Dispute] = field(init=False)
    voices: list[Voice] = field(init=False)

    def __post_init__(self) -> None:
        self.moves = self._moves()
        self.resolved, self.persisting = settle([*self.disputes, *self.beyond], self.moves)
        self.voices = [self._now(answer) for answer in self.heard]

    @property
    def put(self) -> dict[str, Dispute]:
        return put_to_them(self.disputes)

    @property
    def numbered(self) -> dict[str, Dispute]:
        """The open disputes the synthesis must report, by their second-round names."""
        return {name: one for name, one in self.put.items() if one in self.persisting}

    @property
    def untold(self) -> list[Dispute]:
        """The open disputes the code reports itself: those over the limit, and possible ones."""
        return [one for one in self.persisting if one not in self.numbered.values()]

    @property
    def settled(self) -> dict[str, Dispute]:
        return {name: one for name, one in self.put.items() if one in self.resolved}

    @property
    def consensus(self) -> list[Json]:
        """Points of consensus; an open dispute is never one, however many seats are on one side."""
        disputed = {topic_key(one.topic) for one in self.persisting if not one.possible}
        points = consensus_points(self.voices, len(self.first))
        return [point for point in points if topic_key(point["topic"]) not in disputed]

    def _moves(self) -> list[Move]:
        put = self.put
        return [
            Move(name, put[one.topic].topic, one.word, one.paragraph, one.confidence)
            for name, said in self.second.items()
            for one in said.reply.answers
            if name in put[one.topic].seats
        ]

    def given_way(self) -> list[tuple[str, Move]]:
        """Return the second-round answers other than MAINTAIN, each with its dispute's name."""
        names = {one.topic: name for name, one in self.put.items()}
        return [(names[move.topic], move) for move in self.moves if move.word != "MAINTAIN"]

    def _now(self, voice: Voice) -> Voice:
        """Apply the second round: drop conceded claims and use the later confidence."""
        moves = {move.topic: move for move in self.moves if move.seat == voice.seat}
        claims = tuple(
            replace(claim, confidence=moves[claim.topic].confidence) if claim.topic in moves else claim
            for claim in voice.claims
            if claim.topic not in moves or moves[claim.topic].word != "CONCEDE"
        )
        return replace(voice, claims=claims)

    def problems(self, reply: Synthesis) -> list[str]:
        told = {one.disagreement: [side.case or side.position for side in one.sides] for one in reply.disagreements}
        changes = reply.changes if isinstance(reply, SpecSynthesis) and reply.answer.strip() else []
        answer = "\n\n".join([reply.answer, *changes])
        return problems_of(answer, told, self.found.numbered, self.numbered)

    @property
    def shown(self) -> list[Statement[Position]]:
        """The first answers without sources that are not in the research context."""
        return [self.found.struck(said) for said in self.first.values()]

    def struck(self) -> dict[str, list[str]]:
        strange = {name: self.found.strange(said.reply) for name, said in self.first.items()}
        return {name: what for name, what in strange.items() if what}


def written(table: Table, reply: Synthesis, problems: list[str], *, asked: int, question: Question) -> Verdict:
    told, changes = [reply.answer.strip(), *_disagreements(table, reply)], _changes(reply)
    numbers = [n for n in cited("\n\n".join((*told, *changes)), table.found.numbered) if n in table.found.numbered]
    return replace(
        _made_out(table, numbers, problems),
        answer="\n\n".join((_preface(table), *told, *_cited_list(table, numbers), *changes)),
        confidence=general_confidence(table.consensus, table.persisting, len(table.first), asked, bool(numbers)),
        caveats=tuple(_caveats(table, problems, numbers, question)),
    )


def unruled(table: Table) -> Verdict:
    """Build the verdict of a council whose chair failed; it still reports every disagreement."""
    told = _disagreements(table, Synthesis(answer="", disagreements=[]))
    said = [one.said for one in table.shown]
    numbers = [n for n in cited("\n\n".join((*said, *told)), table.found.numbered) if n in table.found.numbered]
    made_out = _made_out(table, numbers, [])
    return replace(made_out, answer="\n\n".join((*told, *_cited_list(table, numbers))), caveats=tuple(_struck(table)))


def _made_out(table: Table, numbers: list[int], problems: list[str]) -> Verdict:
    return Verdict(
        "",
        consensus=tuple(table.consensus),
        disagreements=tuple(_dispute(table, one) for one in table.persisting),
        blind_spots=tuple(_uncertain(table)),
        dissent=tuple(_dissent(table)),
        shifts=tuple(_shifts(table)),
        sources=tuple(_sources(table, numbers)),
        claims=tuple(claim_ledger(table.heard, [*table.disputes, *table.beyond], [one.topic for one in table.resolved], table.moves)),
        details={
            "round1Responses": [_response(said, 1) for said in table.first.values()],
            "round2Responses": [_response(said, 2) for said in table.second.values()],
            "resolved": [_dispute(table, one) for one in table.resolved],
            "struck": table.struck(), "problems": problems, "queries_failed": list(table.found.failed),
        },
    )  # fmt: skip


# Sections of the answer that must not depend on the chair


def _changes(reply: Synthesis) -> list[str]:
    return [f"## Proposed Spec Changes\n\n{reply.listed()}"] if isinstance(reply, SpecSynthesis) else []


def _preface(table: Table) -> str:
    who = [f"{said.outcome.served_by or said.seat.member} as {_called(said.seat)}" for said in table.first.values()]
    return f"Participating models: {', '.join(who)}."


def _called(seat: Seat) -> str:
    """Return the role in lower case, unless it contains a name or an abbreviation."""
    return seat.role if any(map(str.isupper, seat.role[1:])) else seat.role.lower()


def _disagreements(table: Table, reply: Synthesis) -> list[str]:
    told = {one.disagreement: one for one in reply.disagreements}
    texts = []
    for name, dispute in table.numbered.items():
        one = told.get(name)
        sides = [(side.position.strip(), side.case.strip()) for side in one.sides if side.case.strip()] if one else []
        texts.append(disagreement_text(dispute, one.because if one else "", sides if len(sides) > 1 else []))
    texts += [disagreement_text(one, "", []) for one in table.untold]
    return ["## Where Experts Disagree", *texts] if texts else []


def _cited_list(table: Table, numbers: list[int]) -> list[str]:
    if not table.found.sources:
        return []
    known = {one["n"]: one for one in table.found.sources}
    rows = [f"[{n}] [{_bare(known[n]['title'])}]({_linked(known[n]['url'])})" for n in numbers]
    return ["## Sources\n\n" + ("\n".join(f"- {row}" for row in rows) or "None of the sources found was cited.")]


def _bare(title: str) -> str:
    return title.replace("[", "(").replace("]", ")")


def _linked(url: str) -> str:
    """Escape whitespace and brackets, which would end a Markdown link target."""
    return re.sub(r"[\s()<>\[\]\\]", lambda odd: quote(odd[0], safe=""), url)


# Other parts of the report


def _caveats(table: Table, problems: list[str], numbers: list[int], question: Question) -> list[str]:
    lines = [f"The synthesis was sent back once and still fails a check: {problem}." for problem in problems]
    if table.beyond:
        more = f"{len(table.beyond)} more were found" if len(table.beyond) > 1 else "1 more was found"
        lines.append(
            f"The members answered ten disagreements, and {more}: the answer lists them without a second round."
        )
    lines += _struck(table)
    if not table.found.sources:
        lines.append(f"No source supports this answer: {'; '.join((table.found.missing, *table.found.remarks))}.")
        if is_timely(question.text):
            lines.append("The question asks for current information, and none was found: check before you act.")
    elif not numbers and not any(one["cited_by"] for one in _sources(table, numbers)):
        lines.append("No source was cited: the answer rests on what the members know.")
    return lines


def _struck(table: Table) -> list[str]:
    return [
        f"{name} cited sources that are not in the research context; they were removed: {', '.join(what)}."
        for name, what in table.struck().items()
    ]


def _dispute(table: Table, one: Dispute) -> Json:
    words = {move.seat: move.word for move in table.moves if move.topic == one.topic}
    return {
        "issue": one.topic, "topic": one.topic, "how": one.how,
        "positions": [
            {"seat": side.seat, "stance": side.stance, "claim": side.claim, "evidence": list(side.evidence), "round2": words.get(side.seat)}
            for side in one.positions
        ],
    }  # fmt: skip


def _uncertain(table: Table) -> list[Json]:
    return [
        {"seat": name, "text": line} for name, said in table.first.items() for line in said.reply.areasOfUncertainty
    ]


def _dissent(table: Table) -> list[Json]:
    """Return the seats that are alone with their stance in an open dispute."""
    return [
        {"seat": side.seat, "position": side.stance, "text": side.claim}
        for one in table.persisting
        for side in one.positions
        if len(one.positions) > 2 and [other.stance for other in one.positions].count(side.stance) == 1
    ]


def _shifts(table: Table) -> list[Json]:
    """Return the second-round answers; a concession without grounds is a weak flip."""
    held = {(claim.seat, claim.topic): claim.text for answer in table.heard for claim in answer.claims}
    return [
        {
            "seat": move.seat, "topic": move.topic, "from": held.get((move.seat, move.topic), ""), "to": move.word,
            "changed": move.word != "MAINTAIN", "reason": move.text, "weak": move.weak,
        }
        for move in table.moves
    ]  # fmt: skip


def _sources(table: Table, numbers: list[int]) -> list[Json]:
    return [
        {
            **one,
            "cited": one["n"] in numbers,
            "cited_by": [name for name, said in table.first.items() if _cites(said, one)],
        }
        for one in table.found.sources
    ]


def _cites(said: Statement[Position], source: Json) -> bool:
    reply = said.reply
    numbers = {n for claim in reply.claims for n in claim.sources} | set(cited(reply.response, {source["n"]: source}))
    return source["n"] in numbers or any(one.url == source["url"] for one in reply.sources)


def _response(said: Statement[Position] | Statement[Reconsidered], n: int) -> Json:
    """Return a member's reply; its id, role and round are set here rather than by the model."""
    seat = said.seat.name
    return {"memberId": MEMBER.format(seat), "role": seat, "round": n, **said.reply.model_dump()}
