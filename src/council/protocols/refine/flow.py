"""Refine protocol: every seat reworks its own answer; the best one is chosen blind, checked and corrected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from council.engine.agreement import compute_agreement, list_shared_voices, round_voices
from council.engine.council import Council
from council.errors import ChairAbsent
from council.protocols.common.ballots import ReaderBallot, collect_ballots, seats_by_label
from council.protocols.common.check import (
    Checked,
    FoundError,
    check_text,
    choose_readers,
    correct_text,
    describe_errors,
    has_new_conclusion,
    list_check_facts,
    list_choices,
    list_missing_rulings,
    number_errors,
    rule_errors,
)
from council.protocols.common.tally import RankingTable, reader_agreement, tally
from council.protocols.refine.replies import Attack, Choice, Rewrite
from council.protocols.refine.rules import (
    assign_attackers,
    find_holders,
    list_ballot_facts,
    list_candidates,
    list_differences,
    order_by_rank,
)
from council.types import CheckFacts, Difference, Json, OutcomeFacts, Round, Seat, Statement, TrustFact, Verdict

CHOSEN_BY_RULE = "the ballots tie and the chair did not answer, so the first of the tied seats is taken"
SETTLED = "the drafts agree and no attack found harm"
UNCHECKED_CAVEAT = "No other seat could check the answer below."


@dataclass(frozen=True, slots=True)
class Attacks:
    """The attacks on the drafts."""

    by_attacker: Round[Attack]
    targets: Mapping[str, str]  # attacker → the author of the draft

    def errors_of(self, author: str) -> dict[str, FoundError]:
        """Return the errors that were found in a seat's draft."""
        return number_errors({name: said for name, said in self.by_attacker.items() if self.targets[name] == author})

    @property
    def verdicts(self) -> dict[tuple[str, str], bool | None]:
        """Return for each attacker and author whether their drafts reach the same conclusion."""
        return {
            (name, author): self.by_attacker[name].reply.same_conclusion if name in self.by_attacker else None
            for name, author in self.targets.items()
        }

    @property
    def is_settled(self) -> bool:
        """Return whether every draft was attacked without harm, and all reach the same conclusion."""
        replies = [said.reply for said in self.by_attacker.values()]
        return len(replies) == len(self.targets) > 0 and all(
            reply.same_conclusion and not reply.is_severe for reply in replies
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """The version that was chosen, and how."""

    winner: str
    ballots: Mapping[str, ReaderBallot[Choice]]
    table: RankingTable
    by_chair: bool = False
    labels: Mapping[str, Mapping[str, str]] | None = None  # of the chair's ballot


async def refine(council: Council) -> Verdict:
    """Draft, attack in a ring, rewrite, choose blind, check and correct the text that is chosen."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "refine/draft")
    attacks = await attack_in_ring(council, drafts)
    if attacks.is_settled:
        council.note("rewrite and check skipped", why=SETTLED, skipped=["rewrite", "check", "fix"])
        versions: Round[Any] = drafts
        rewrites: Round[Rewrite] = Round()
    else:
        async with council.phase("rewrite"):
            rewrites = await rewrite_drafts(council, drafts, attacks)
        versions = Round([rewrites.get(name, said) for name, said in drafts.items()])
    selection = await choose_version(council, versions)
    council.so_far(Verdict(versions[selection.winner].said, caveats=(UNCHECKED_CAVEAT,)), is_answer=True)
    if attacks.is_settled:
        checked = await correct_settled_draft(council, drafts, attacks, selection)
    else:
        authors = [versions[name].seat for name in order_by_rank(selection.table, selection.winner)]
        readers = choose_readers(versions.seats, authors[0])
        checked = await check_text(council, versions[selection.winner], authors, readers)
    return build_verdict(drafts, attacks, rewrites, selection, checked)


async def attack_in_ring(council: Council, drafts: Round[None]) -> Attacks:
    """Have every author attack one other draft."""
    if len(drafts) < 2:
        council.note(
            "attack skipped", why="there is only one draft, so no other seat can attack it", skipped=["attack"]
        )
        return Attacks(Round(), {})
    targets = assign_attackers(drafts.seats)

    async def attack(apart: Council, seat: Seat) -> Statement[Attack]:
        target = drafts[targets[seat.name]]
        return await apart.ask(seat, "refine/attack", reply=Attack, draft=target, own=drafts[seat.name])

    async with council.phase("attack"):
        return Attacks(await council.gather(drafts.seats, attack, quorum=0), targets)


async def rewrite_drafts(council: Council, drafts: Round[None], attacks: Attacks) -> Round[Rewrite]:
    """Have every author rule on the errors in its draft and write its answer again."""

    async def rewrite(apart: Council, seat: Seat) -> Statement[Rewrite]:
        errors = attacks.errors_of(seat.name)

        def review(reply: Rewrite) -> str:
            return "; ".join(list_missing_rulings(rule_errors(reply.rulings, errors)))

        return await apart.ask(
            seat,
            "refine/rewrite",
            reply=Rewrite,
            choices=list_choices(errors),
            review=review,
            draft=drafts[seat.name],
            others=drafts.others(seat),
            errors=describe_errors(errors),
        )

    return await council.gather(drafts.seats, rewrite, quorum=0)


async def choose_version(council: Council, versions: Round[Any]) -> Selection:
    """Return the version that the ballots put first. The chair decides between two versions, and after a tie."""
    names = list(versions)
    if len(names) == 1:
        return Selection(names[0], {}, tally({}, names))
    async with council.phase("choose"):
        ballots: dict[str, ReaderBallot[Choice]] = {}
        if len(names) > 2:
            ballots = await collect_ballots(council, versions.seats, versions, "refine/choose", Choice)
        table = tally({reader: slip.order for reader, slip in ballots.items()}, names)
        tied = list_candidates(table, names)
        if len(tied) == 1:
            return Selection(tied[0], ballots, table)
        responses = council.assign_labels([versions[name] for name in tied], council.chair)
        labels = seats_by_label(responses)
        try:
            said = await council.ask(
                council.chair,
                "refine/choose",
                reply=Choice,
                choices={"label": list(responses)},
                responses=responses,
            )
        except ChairAbsent:
            council.note(f"chosen: {tied[0]}", why=CHOSEN_BY_RULE)
            return Selection(tied[0], ballots, table)
    slip = ReaderBallot(council.chair.name, labels, said.reply)
    return Selection(slip.order[0], ballots | {council.chair.name: slip}, table, by_chair=True)


async def correct_settled_draft(
    council: Council, drafts: Round[None], attacks: Attacks, selection: Selection
) -> Checked:
    """Return a draft that its attack found harmless, with the small errors corrected."""
    draft = drafts[selection.winner]
    errors = attacks.errors_of(selection.winner)
    readers = tuple(name for name, author in attacks.targets.items() if author == selection.winner)
    if not errors:
        return Checked(draft, CheckFacts(readers, draft.seat.name, last_readers=readers))
    async with council.phase("fix"):
        said, author, rows = await correct_text(council, draft, [draft.seat], errors)
    return Checked(said, CheckFacts(readers, author or draft.seat.name, tuple(rows), last_readers=readers))


def build_verdict(
    drafts: Round[None], attacks: Attacks, rewrites: Round[Rewrite], selection: Selection, checked: Checked
) -> Verdict:
    """Build the verdict: the text, who shares its conclusion, and what the ballots and the check found."""
    winner = selection.winner
    voices = round_voices(drafts)
    holders = find_holders(winner, attacks.verdicts, drafts)
    is_changed = has_other_conclusion(rewrites, checked, winner)
    shared_by = None if is_changed or len(drafts) < 2 else holders
    differences = list_differences(selection.ballots.values(), winner)
    agreement = compute_agreement(shared_by, bool(differences), voices)
    standing = next((row for row in selection.table.standings if row.seat == winner), None)
    facts = [
        *list_ballot_facts(standing, is_unanimous=agreement == "full"),
        *list_rewrite_facts(rewrites, attacks, winner),
        *list_check_facts(checked.facts),
        *([TrustFact("contested_points", differences[0].point, count=len(differences))] if differences else []),
        *list_shared_voices(voices),
    ]
    return Verdict(
        checked.text,
        caveats=() if checked.facts.readers else (UNCHECKED_CAVEAT,),
        agreement=agreement,
        shared_by=shared_by,
        differences=tuple(differences),
        disagreements=tuple(map(describe_difference, differences)),
        result=describe_choice(selection, standing.firsts if standing else 0, standing.ballots if standing else 0),
        check=checked.facts,
        trust_facts=tuple(facts),
        details=describe_selection(selection) | {"attacks": describe_attacks(attacks, rewrites)},
    )


def has_other_conclusion(rewrites: Round[Rewrite], checked: Checked, winner: str) -> bool:
    """Return whether the text may conclude something else than its author's draft."""
    is_rewritten = winner in rewrites and rewrites[winner].reply.changed_conclusion is not False
    return is_rewritten or has_new_conclusion(checked.facts)


def list_rewrite_facts(rewrites: Round[Rewrite], attacks: Attacks, winner: str) -> list[TrustFact]:
    """Return facts for errors in the chosen draft that its author did not rule on, as when it was not rewritten."""
    if attacks.is_settled:
        return []
    points = rewrites[winner].reply.rulings if winner in rewrites else []
    unruled = rule_errors(points, attacks.errors_of(winner)).unruled
    fatal = [row for row in unruled if row.severity == "FATAL"]
    others = len(unruled) - len(fatal)
    return [
        *([TrustFact("open_fatal", count=len(fatal))] if fatal else []),
        *([TrustFact("unruled", count=others)] if others else []),
    ]


def describe_choice(selection: Selection, firsts: int, ballots: int) -> OutcomeFacts | None:
    if selection.by_chair:
        return OutcomeFacts("chosen_by_chair", selection.winner, count=firsts, total=ballots)
    return OutcomeFacts("chosen", selection.winner, count=firsts, total=ballots) if ballots else None


def describe_difference(difference: Difference) -> Json:
    """Return a difference for the report: who decides what, on which assumption."""
    rows = [
        {"seat": seat, "position": side.position, "why": side.assumes}
        for side in difference.sides
        for seat in side.seats
    ]
    return {"issue": difference.point, "positions": rows}


def describe_selection(selection: Selection) -> Json:
    """Return the ballots and their table for the report."""
    cast = {reader: slip.order for reader, slip in selection.ballots.items()}
    return {
        "winner": selection.winner,
        "table": [row.as_json() for row in selection.table.standings],
        "differ": selection.table.differ,
        "agreement": [pair.as_json() for pair in reader_agreement(cast)],
        "labels": {reader: dict(slip.labels) for reader, slip in selection.ballots.items()},
        "ballots": {reader: describe_ballot(slip) for reader, slip in selection.ballots.items()},
    }


def describe_ballot(slip: ReaderBallot[Choice]) -> Json:
    names = {seat: seat.capitalize() for seat in slip.labels.values()}
    order = [{"seat": seat, "why": slip.reason_for(seat, names)} for seat in slip.order]
    return {"dispute": slip.relabel(slip.ballot.dispute, names), "order": order}


def describe_attacks(attacks: Attacks, rewrites: Round[Rewrite]) -> list[Json]:
    """Return the errors in the drafts, each with its author's ruling."""
    rows = []
    for author in attacks.targets.values():
        errors = attacks.errors_of(author)
        points = rewrites[author].reply.rulings if author in rewrites else []
        for ruling, (name, error) in zip(rule_errors(points, errors).rows, errors.items(), strict=True):
            rows.append(
                {
                    "id": name,
                    "author": author,
                    **error.model_dump(),
                    "landed": ruling.landed,
                    "why": ruling.why,
                }
            )
    return rows
