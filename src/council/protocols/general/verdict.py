"""The general protocol's verdict: consensus, open disputes and cited sources, computed without a model call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypedDict
from urllib.parse import quote

from council.engine.agreement import join_sides, list_shared_voices, round_voices
from council.engine.records import Disagreement, Dissent, SectionRow, Shift
from council.language import detect_language
from council.protocols.common.sections import Section, dump_sections
from council.protocols.general import claims as rule
from council.protocols.general import synthesis
from council.protocols.general.claims import Claim, ConsensusPoint, Dispute, Move, SeatAnswer, Side
from council.protocols.general.comparison import MAX_DISPUTES, Comparison, has_unlike_names
from council.protocols.general.origins import Material, find_foreign, mark_foreign
from council.protocols.general.replies import DisagreementSummary, Position, Reconsidered, SpecSynthesis, Synthesis
from council.protocols.general.research import SEARCH_SKIPPED, Research, SourceRow
from council.search.queries import is_time_sensitive
from council.text_cleanup import truncate
from council.types import Agreement, Difference, Json, Question, Round, Statement, TrustFact, Verdict
from council.wording import Wording, load_wording

MEMBER_ID_FORMAT = "council_{}"
MAX_FOREIGN_LISTED = 10
MAX_FACT_CHARS = 120  # of a question in the reasons for a trust level
UNSAFE_IN_LINK = re.compile(r"[\s()<>\[\]\\]")  # would end the target of a Markdown link


class QualifiedAnswer(TypedDict):
    seat: str
    answer: str
    claim: str
    holds_when: str


class QualifiedRow(TypedDict):
    question: str
    positions: list[QualifiedAnswer]


class CitedSource(SourceRow):
    cited: bool  # by the answer
    cited_by: list[str]


class GeneralDetails(TypedDict, total=False):
    round1Responses: list[Json]  # the replies of the members, with their id, role and round
    round2Responses: list[Json]
    resolved: list[Disagreement]
    qualified: list[QualifiedRow]
    overrides: list[str]
    not_from_council: list[str]  # what the synthesis mentions and no member and no source does
    struck: dict[str, list[str]]  # by member: citations of sources that are not in the context
    problems: list[str]
    queries_failed: list[str]
    sections: list[SectionRow]  # of the answer of a chair


@dataclass
class Deliberation:
    """Both rounds of statements, the comparison of the claims, and what the rules derive from them."""

    research: Research
    first: Round[Position]
    answers: list[SeatAnswer]
    comparison: Comparison
    remarks: tuple[str, ...] = ()  # about the comparison, shown above the answer
    given: tuple[str, ...] = ()  # the question, and the texts of the packet
    foreign: tuple[str, ...] = ()  # what stays in the synthesis and is not from the council
    second: Round[Reconsidered] = field(default_factory=Round)
    disputes: dict[str, Dispute] = field(init=False)  # put to the members, by their names
    overflow_disputes: list[Dispute] = field(init=False)  # over the limit: reported, but no seat is asked about them
    possible_disputes: list[Dispute] = field(init=False)
    moves: list[Move] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        real = [one for one in self.comparison.disputes if not one.is_possible]
        self.disputes = synthesis.number_disputes(real[:MAX_DISPUTES])
        self.overflow_disputes = real[MAX_DISPUTES:]
        self.possible_disputes = [one for one in self.comparison.disputes if one.is_possible][:MAX_DISPUTES]

    def hear(self, second: Round[Reconsidered]) -> None:
        """Take in the second round; its confidence replaces that of the first."""
        self.second = second
        self.moves = [
            Move(name, one.topic, one.word, one.paragraph, one.confidence)
            for name, said in second.items()
            for one in said.reply.answers
            if one.topic in self.disputes and name in self.disputes[one.topic].seats
        ]

    @property
    def persisting_by_name(self) -> dict[str, Dispute]:
        """The open disputes the synthesis must report, by their second-round names."""
        return {name: one for name, one in self.disputes.items() if name not in self.resolved_by_name}

    @property
    def resolved_by_name(self) -> dict[str, Dispute]:
        return {
            name: one
            for name, one in self.disputes.items()
            if rule.is_resolved(one, rule.words_by_seat(self.moves, name))
        }

    @property
    def persisting(self) -> list[Dispute]:
        """All open disputes, the possible ones last."""
        return [*self.persisting_by_name.values(), *self.reported_by_code]

    @property
    def reported_by_code(self) -> list[Dispute]:
        """The open disputes that the chair does not report: those over the limit, and possible ones."""
        return [*self.overflow_disputes, *self.possible_disputes]

    def own_words(self, point: ConsensusPoint) -> list[str]:
        """Return each member's own sentence on a point of consensus."""
        claims = {claim.id: claim for answer in self.answers for claim in answer.claims}
        return [claims[one["id"]].own_words for one in point["statements"]]

    @property
    def words(self) -> dict[str, str]:
        """The second-round words by the ids of the claims that they are about."""
        return {
            side.id: words[side.seat]
            for name, dispute in self.disputes.items()
            if (words := rule.words_by_seat(self.moves, name))
            for side in dispute.positions
            if side.seat in words
        }

    @property
    def consensus(self) -> list[ConsensusPoint]:
        """Points of consensus; an open dispute is never one, however many seats are on one side."""
        later = {
            side.id: move.confidence
            for move in self.moves
            for side in self.disputes[move.dispute].positions
            if side.seat == move.seat
        }
        groups = []
        for group in self.comparison.groups:
            claims = tuple(replace(one, confidence=later.get(one.id, one.confidence)) for one in group.claims)
            groups.append(replace(group, claims=claims))
        return rule.find_consensus(groups, self.words, self.comparison.contested)

    @property
    def has_common_claim(self) -> bool:
        return rule.has_common_claim(self.comparison.groups, self.words)

    def is_sourced(self, numbers: list[int]) -> bool:
        """Return whether the answer or a claim cites a source that was found."""
        return bool(numbers) or any(claim.sources for answer in self.answers for claim in answer.claims)

    @property
    def qualified(self) -> list[tuple[str, list[Claim]]]:
        """The questions whose answers depend on a condition, with the claims on each."""
        found = []
        for group in self.comparison.groups:
            if pairs := group.pairs("depends"):
                ids = frozenset[str]().union(*pairs)
                found.append((group.question, [one for one in group.claims if one.id in ids]))
        return found

    @property
    def agreement(self) -> Agreement:
        """Whether the members agree: full if all share a point and nothing is open; empty if nothing was compared.

        It is not full if most claims have no counterpart, or if the members give unlike names: then only the clerk says
        so.
        """
        points = self.consensus
        if not points:
            is_open = any(not one.is_possible for one in self.persisting)
            is_partial = self.has_common_claim and not is_open
            return "partial" if is_partial else "none" if self.persisting or self.comparison.groups else ""
        claims = {claim.id: claim for answer in self.answers for claim in answer.claims}
        shared = any(
            set(point["seats"]) >= set(self.first)
            and not has_unlike_names([claims[one["id"]] for one in point["statements"]])
            for point in points
        )
        agreed = {one["id"] for point in points for one in point["statements"]}
        mostly = 2 * len(agreed) >= len(claims)  # a trivial point that all share says little about the rest
        return "full" if shared and mostly and not self.persisting and not self.disputes else "partial"

    def find_problems(self, reply: Synthesis) -> list[str]:
        told = {one.disagreement: [side.case or side.position for side in one.sides] for one in reply.disagreements}
        changes = reply.changes if isinstance(reply, SpecSynthesis) and reply.answer.strip() else []
        answer = "\n\n".join([reply.answer, *changes])
        return synthesis.find_problems(answer, told, self.research.sources_by_number, self.persisting_by_name)

    @cached_property
    def material(self) -> Material:
        """What the synthesis may use: statements and sources, the question, and the files of the packet."""
        said = [*(one.said for one in self.first.values()), *(one.said for one in self.second.values())]
        entries = [f"{one['title']}\n{one['snippet']}\n{one['url']}" for one in self.research.sources]
        names = [f"{one.seat.role} {one.seat.name} {one.outcome.served_by}" for one in self.first.values()]
        return Material([*said, *entries, *self.given[:1]], [*names, *self.given[1:]])

    def find_foreign(self, reply: Synthesis) -> list[str]:
        """Return the figures, dates and names of the reply that no member and no source mentions."""
        return list(dict.fromkeys(one.text for text in reply.texts for one in find_foreign(text, self.material)))

    def mark_foreign(self, reply: Synthesis) -> Synthesis:
        """Mark what is not from the council where it first occurs in the answer."""
        mark = load_wording(detect_language(reply.answer)).heading("not_from_council")
        marked = mark_foreign(reply.answer, find_foreign(reply.answer, self.material), mark)
        return reply.model_copy(update={"answer": marked})

    def remove_failures(self, reply: Synthesis) -> Synthesis:
        """Remove unknown sources and raw JSON from the chair's text."""
        return reply.edit(lambda text: synthesis.remove_failures(text, self.research.sources_by_number))

    def describe_removed(self, reply: Synthesis) -> str:
        """Return what `remove_failures` removes: unknown sources, raw JSON, or both."""
        bare = reply.edit(synthesis.remove_json)
        removed = {
            "unknown sources": self.remove_failures(bare).texts != bare.texts,
            "raw JSON": bare.texts != reply.texts,
        }
        return " and ".join(what for what, was_removed in removed.items() if was_removed)

    @property
    def answers_for_chair(self) -> list[Statement[Position]]:
        """The first answers without sources that are not in the research context."""
        return [self.research.remove_unknown_sources(said) for said in self.first.values()]

    def added_disputes(self, reply: Synthesis) -> list[Dispute]:
        """Return the disagreements that the chair added, with at least two sides."""
        names = {
            label.casefold(): said.seat.name
            for said in self.first.values()
            for label in (said.seat.name, said.seat.role)
        }
        found = []
        for one in reply.added_disagreements:
            told = ((side.member.strip().casefold(), side.position.strip()) for side in one.sides)
            sides = tuple(Side(names.get(member, ""), position) for member, position in told if position)
            if one.question.strip() and len({side.claim for side in sides}) > 1:
                found.append(Dispute(one.question.strip(), sides, "chair"))
        return found[:MAX_DISPUTES]

    def unknown_citations(self) -> dict[str, list[str]]:
        """The sources that members cite and the context does not have, by member."""
        strange = {name: self.research.unknown_citations(said.reply) for name, said in self.first.items()}
        return {name: what for name, what in strange.items() if what}


def build_verdict(
    table: Deliberation, reply: Synthesis, problems: list[str], *, asked: int, question: Question
) -> Verdict:
    """Build the verdict from the chair's checked reply; `problems` are the checks that it still fails."""
    wording = load_wording(detect_language(reply.answer, question.text))
    decision = reply.answer.strip()
    told, changes = _build_disagreements(table, reply, wording), _build_spec_changes(reply, wording)
    numbers = _cited_numbers(table, (decision, *(section.text for section in (*told, *changes))))
    added = table.added_disputes(reply)
    verdict = _base_verdict(table, numbers, problems, added)
    models = _format_participants(table, wording)
    parts = [*told, *_build_sources(table, numbers, wording), *changes]
    sections = [
        Section("decision", wording.heading("answer"), decision),
        *parts,
        Section("models", wording.heading("participating_models"), models),
    ]
    return replace(
        verdict,
        answer="\n\n".join((models, decision, *(part.format() for part in parts))),
        details={**verdict.details, "sections": dump_sections(sections)},
        confidence=rule.compute_general_confidence(
            table.consensus,
            table.persisting,
            len(table.first),
            asked,
            table.is_sourced(numbers),
            has_common_claim=table.has_common_claim,
        ),
        caveats=tuple(_list_caveats(table, problems, numbers, question)),
    )


def build_verdict_without_chair(table: Deliberation) -> Verdict:
    """Build the verdict of a council whose chair failed; it still reports every disagreement."""
    statements = [one.said for one in table.answers_for_chair]
    wording = load_wording(detect_language("\n".join(statements)))
    told = _build_disagreements(table, Synthesis(answer="", disagreements=[]), wording)
    numbers = _cited_numbers(table, (*statements, *(section.text for section in told)))
    return replace(
        _base_verdict(table, numbers, []),
        answer="\n\n".join(section.format() for section in (*told, *_build_sources(table, numbers, wording))),
        caveats=(*table.remarks, *_unknown_citation_caveats(table)),
    )


def _cited_numbers(table: Deliberation, texts: Iterable[str]) -> list[int]:
    known = table.research.sources_by_number
    return [n for n in synthesis.find_citations("\n\n".join(texts), known) if n in known]


def _base_verdict(
    table: Deliberation, numbers: list[int], problems: list[str], added: Sequence[Dispute] = ()
) -> Verdict:
    told = [*table.persisting, *added]
    details: GeneralDetails = {
        "round1Responses": [_response_json(table, said, 1) for said in table.first.values()],
        "round2Responses": [_response_json(table, said, 2) for said in table.second.values()],
        "resolved": [_dispute_json(table, one) for one in table.resolved_by_name.values()],
        "qualified": [
            {
                "question": question,
                "positions": [
                    {"seat": one.seat, "answer": one.answer, "claim": one.text, "holds_when": one.holds_when}
                    for one in claims
                ],
            }
            for question, claims in table.qualified
        ],
        "overrides": list(table.comparison.overrides),
    }
    if table.foreign:
        details["not_from_council"] = list(table.foreign)
    details["struck"] = table.unknown_citations()
    details["problems"] = problems
    details["queries_failed"] = list(table.research.failed)
    return Verdict(
        "",
        consensus=tuple(table.consensus),
        disagreements=tuple(_dispute_json(table, one) for one in told),
        blind_spots=tuple(
            {"seat": name, "text": line} for name, said in table.first.items() for line in said.reply.areasOfUncertainty
        ),
        dissent=tuple(_dissent_json(table)),
        shifts=tuple(_shifts_json(table)),
        sources=tuple(_sources_json(table, numbers)),
        claims=tuple(
            rule.claim_ledger(table.answers, table.comparison.groups, table.words, table.resolved_by_name.values())
        ),
        agreement=table.agreement if not added or table.agreement != "full" else "partial",
        # The question with its short answer, else the first member's sentence.
        common=tuple(
            f"{point['question']} {first['answer']}" if first["answer"] else first["text"]
            for point in table.consensus
            for first in point["statements"][:1]
        ),
        differences=tuple(
            Difference(one.question, join_sides((side.seat, side.answer or side.claim, "") for side in one.positions))
            for one in told
        ),
        trust_facts=tuple(_trust_facts(table, numbers, added)),
        details=dict(details),
    )


def _trust_facts(table: Deliberation, numbers: list[int], added: Sequence[Dispute]) -> Iterator[TrustFact]:
    for one in table.persisting:
        if not one.is_possible:
            yield TrustFact("open_dispute", truncate(one.question, MAX_FACT_CHARS))
    if possible := [*table.possible_disputes, *added]:
        yield TrustFact("contested_points", truncate(possible[0].question, MAX_FACT_CHARS), count=len(possible))
    if not table.consensus and not table.has_common_claim and len(table.first) > 1:
        yield TrustFact("no_common_point")
    if table.consensus:
        yield TrustFact("agreed_points", count=len(table.consensus))
    if numbers:
        yield TrustFact("cited_sources", count=len(numbers))
    yield from list_shared_voices(round_voices(table.first))
    if not table.is_sourced(numbers):
        yield TrustFact("no_sources" if table.research.missing == SEARCH_SKIPPED else "no_evidence")


# Sections of the answer that must not depend on the chair


def _build_spec_changes(reply: Synthesis, wording: Wording) -> list[Section]:
    if not isinstance(reply, SpecSynthesis):
        return []
    changes = reply.format_changes() or wording.heading("none_sentence")
    return [Section("changes", wording.heading("proposed_spec_changes"), changes)]


def _format_participants(table: Deliberation, wording: Wording) -> str:
    who = []
    for said in table.first.values():
        role = said.seat.role
        role = role if any(map(str.isupper, role[1:])) else role.lower()  # a name or an abbreviation stays
        who.append(wording.heading("model_as_role", model=said.outcome.served_by or said.seat.member, role=role))
    listed = wording.comma.join(who)
    return f"{wording.heading('participating_models')}{wording.colon}{listed}{wording.period.rstrip()}"


def _build_disagreements(table: Deliberation, reply: Synthesis, wording: Wording) -> list[Section]:
    told = {one.disagreement: one for one in reply.disagreements}
    texts = []
    for name, dispute in table.persisting_by_name.items():
        one = told.get(name, DisagreementSummary(disagreement=name, because="", sides=[]))
        sides = [(side.position.strip(), side.case.strip()) for side in one.sides if side.case.strip()]
        texts.append(synthesis.format_disagreement(dispute, one.because, sides if len(sides) > 1 else [], wording))
    code = [*table.reported_by_code, *table.added_disputes(reply)]
    texts += [synthesis.format_disagreement(one, "", [], wording) for one in code]
    title = wording.heading("where_experts_disagree")
    return [Section("disagreements", title, "\n\n".join(texts))] if texts else []


def _build_sources(table: Deliberation, numbers: list[int], wording: Wording) -> list[Section]:
    if not table.research.sources:
        return []
    known = {one["n"]: one for one in table.research.sources}
    rows = []
    for n in numbers:
        title = known[n]["title"].replace("[", "(").replace("]", ")")
        url = UNSAFE_IN_LINK.sub(lambda odd: quote(odd[0], safe=""), known[n]["url"])
        rows.append(f"- [{n}] [{title}]({url})")
    text = "\n".join(rows) or wording.heading("no_source_cited")
    return [Section("sources", wording.heading("sources"), text)]


# Other parts of the report


def _list_caveats(table: Deliberation, problems: list[str], numbers: list[int], question: Question) -> list[str]:
    lines = [f"The synthesis was sent back once and still fails a check: {problem}." for problem in problems]
    if table.foreign:
        listed = ", ".join(f'"{truncate(one, MAX_FACT_CHARS)}"' for one in table.foreign[:MAX_FOREIGN_LISTED])
        left = len(table.foreign) - MAX_FOREIGN_LISTED
        others = f" and {left} more" if left > 0 else ""
        lines.append(f"Not from the council: {listed}{others}. No member and no source mentions this, so check it.")
    lines += table.remarks
    if table.overflow_disputes:
        number = len(table.overflow_disputes)
        more = f"{number} more {'were' if number > 1 else 'was'} found"
        lines.append(
            f"The members answered ten disagreements, and {more}: the answer lists them without a second round."
        )
    lines += _unknown_citation_caveats(table)
    if table.research.sources:
        lines += [f"Not everything was searched: {remark}." for remark in table.research.remarks]
    else:
        lines.append(f"No source supports this answer: {'; '.join((table.research.missing, *table.research.remarks))}.")
        if is_time_sensitive(question.text):
            lines.append("The question asks for current information, and none was found: check before you act.")
    if table.research.sources and not numbers and not any(one["cited_by"] for one in _sources_json(table, numbers)):
        lines.append("No source was cited: the answer rests on what the members know.")
    return lines


def _unknown_citation_caveats(table: Deliberation) -> list[str]:
    return [
        f"{name} cited sources that are not in the research context; they were removed: {', '.join(what)}."
        for name, what in table.unknown_citations().items()
    ]


def _dispute_json(table: Deliberation, one: Dispute) -> Disagreement:
    name = next((name for name, dispute in table.disputes.items() if dispute is one), "")
    words = rule.words_by_seat(table.moves, name)
    return {
        "issue": one.question,
        "topic": one.question,
        "question": one.question,
        "how": one.how,
        "positions": [
            {
                "seat": side.seat,
                "stance": side.answer,
                "answer": side.answer,
                "claim": side.claim,
                "id": side.id,
                "evidence": list(side.evidence),
                "round2": words.get(side.seat),
                "disputed_by": one.list_opponents(side),
            }
            for side in one.positions
        ],
    }


def _dissent_json(table: Deliberation) -> list[Dissent]:
    """Return the seats that all others contradict in an open dispute of three or more."""
    return [
        {"seat": side.seat, "position": side.answer, "text": side.claim}
        for one in table.persisting
        for side in one.positions
        if len(one.seats) > 2 and {other.seat for other in one.against(side.seat)} == set(one.seats) - {side.seat}
    ]


def _shifts_json(table: Deliberation) -> list[Shift]:
    """Return the second-round answers; a concession without grounds is a weak flip."""
    return [
        {
            "seat": move.seat,
            "topic": one.question,
            "from": next(side.claim for side in one.positions if side.seat == move.seat),
            "to": move.word,
            "changed": move.word != "MAINTAIN",
            "reason": move.text,
            "weak": move.is_weak,
        }
        for move in table.moves
        for one in [table.disputes[move.dispute]]
    ]


def _sources_json(table: Deliberation, numbers: list[int]) -> list[CitedSource]:
    return [
        {
            **one,
            "cited": one["n"] in numbers,
            "cited_by": [name for name, said in table.first.items() if _cites_source(said, one)],
        }
        for one in table.research.sources
    ]


def _cites_source(said: Statement[Position], source: SourceRow) -> bool:
    reply = said.reply
    numbers = {*reply.sources, *(n for claim in reply.claims for n in claim.sources)}
    numbers |= set(synthesis.find_citations(reply.response, {source["n"]: {"url": source["url"]}}))
    return source["n"] in numbers or any(one.url == source["url"] for one in reply.copied_sources)


def _response_json(table: Deliberation, said: Statement[Position] | Statement[Reconsidered], n: int) -> Json:
    """Return a member's reply. Its id, role and round, and the text of its sources, are not set by the model."""
    seat, reply = said.seat.name, said.reply.model_dump(exclude={"copied_sources"})
    if n == 1:
        cited = [one for one in table.research.sources if _cites_source(said, one)]  # type: ignore[arg-type]
        reply["sources"] = [{key: one[key] for key in ("title", "url", "snippet", "query")} for one in cited]
    return {"memberId": MEMBER_ID_FORMAT.format(seat), "role": seat, "round": n, **reply}
