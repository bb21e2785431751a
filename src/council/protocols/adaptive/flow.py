"""Adaptive protocol: two sealed answers and a check; if they do not agree, only what is disputed is argued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from council.answer_filter import clean_answer
from council.engine.agreement import NotedAgreement, assess_notes, round_voices
from council.engine.council import Council
from council.engine.notes import parse_notes, seat_names
from council.errors import QuorumLost, SeatAbsent
from council.final_answers.comparison import Comparison, compare_all
from council.protocols.adaptive import rules as rule
from council.protocols.adaptive.replies import Answer, Arguments, Confirmation
from council.protocols.adaptive.rules import AdaptiveDetails, DecisionRow, Decisions
from council.protocols.common.check import FoundError, list_check_facts, make_open_error, number_errors
from council.protocols.common.conclusions import LEVELS
from council.protocols.common.issues import SEVERE
from council.protocols.common.lengths import find_word_limit
from council.protocols.common.points import assess_points, compare_answers, is_dispute
from council.types import CheckFacts, Difference, OutcomeFacts, Round, Seat, Statement, TrustFact, Verdict

NO_PRICES: Mapping[str, float] = {}


@dataclass(slots=True)
class Progress:
    """The answers so far, the calls that were made for them, and every decision to stop or to go on."""

    answers: Round[Answer]
    asked: int
    decisions: Decisions


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one answer by the author of another one."""

    author: Statement[Answer]
    own: Statement[Answer]  # the reader's own answer
    said: Statement[Confirmation] | None  # None if the reader did not answer

    @property
    def reader(self) -> Seat:
        return self.own.seat

    @property
    def errors(self) -> dict[str, FoundError]:
        return number_errors({self.reader.name: self.said} if self.said else {})

    @property
    def facts(self) -> CheckFacts:
        """Return the check for the report. Small errors stay as remarks."""
        readers = (self.reader.name,) if self.said else ()
        rows = tuple(make_open_error(name, error) for name, error in self.errors.items())
        return CheckFacts(readers, self.author.seat.name, rows, last_readers=readers)

    @property
    def objections(self) -> list[Difference]:
        """Return the severe errors as points of author and reader; without one, their conclusions if they differ."""
        if self.said is None:
            return []
        severe = [error for error in self.errors.values() if error.severity in SEVERE]
        conclusions = rule.join_conclusions([self.author, self.own], missing="none stated")
        points = [conclusions] if is_dispute(conclusions) else []
        return rule.list_objections(self.author.seat.name, self.reader.name, severe) or points

    def list_apart(self, arguments: Round[Arguments]) -> tuple[str, ...]:
        """Return the author if it concedes to another conclusion: its own answer does not recommend that one."""
        author = self.author.seat.name
        is_different = self.said is not None and self.said.reply.same_conclusion is False
        has_conceded = author in arguments and any(row.stance == "concedes" for row in arguments[author].reply.points)
        return (author,) if is_different and has_conceded else ()

    def settle(self, arguments: Round[Arguments]) -> CheckFacts | None:
        """Return the check with what the author said about its errors; None if it found none."""
        said = arguments.get(self.author.seat.name)
        errors = rule.settle_errors(self.facts.errors, said.reply.points if said else ())
        return replace(self.facts, errors=errors) if errors else None


async def adaptive(council: Council, cheap_first: bool = False, prices: Mapping[str, float] = NO_PRICES) -> Verdict:
    """Ask two seats, stop if they agree and a check confirms it; else ask the others and argue what is disputed."""
    order = rule.order_seats(council.members, prices, cheap_first=cheap_first)
    progress = await ask_first_seats(council, order)
    opening = rule.compare_first_answers(progress.answers, council.question.text)
    check = None
    if opening.reason == "agreed":
        check = await check_answer(council, progress, rule.choose_author(progress.answers, prices))
        if decide_after_check(council, progress, check, rule.SKIPPED_BY_AGREEMENT):
            noted = assess_notes(None, round_voices(progress.answers))
            noted = noted._replace(agreement="full", shared_by=tuple(progress.answers))
            return return_checked_answer(progress, check, opening.comparison, noted)
    else:
        why = rule.describe_reason(opening.reason, opening.seats)
        progress.decisions["continued"].append({"after": "answer", "reason": opening.reason, "why": why})
        council.note("did not stop after the first answers", why=why)
    await ask_other_seats(council, progress, order)
    # The check, or a difference between the only two answers, names the points without the clerk.
    if check and check.said:
        return await argue_and_write(council, progress, check.objections, check)
    if len(order) == 2 and opening.comparison == "different":
        return await argue_and_write(council, progress, [rule.join_conclusions(progress.answers.values())])
    points = await compare_answers(council, progress.answers, "points")
    progress.asked += points.state in ("answered", "absent")
    comparison = compare_all([said.reply.conclusion for said in progress.answers.values()], council.question.text)
    disputed = list(points.disputed)
    if points.state == "answered" and not disputed and comparison == "different":  # code knows better than the clerk
        disputed = [rule.join_conclusions(progress.answers.values())]
    # An absent check is not asked again: with its calls the run would make more than collaborative.
    is_shared = len(progress.answers) > 1 and set(points.shared_by or ()) == set(progress.answers)
    if check is None and is_shared and not disputed:
        author = rule.choose_supported(progress.answers, prices)
        check = await check_answer(council, progress, author)
        if decide_after_check(council, progress, check, rule.SKIPPED_BY_POINTS):
            noted = assess_points(points, progress.answers)
            verdict = return_checked_answer(progress, check, "same", noted)
            return replace(verdict, notes=points.as_notes())
        return await argue_and_write(council, progress, check.objections, check)
    is_compared = points.state in ("answered", "unneeded")
    return await argue_and_write(council, progress, disputed, is_compared=is_compared)


# Answers


async def ask_first_seats(council: Council, order: Sequence[Seat]) -> Progress:
    """Ask two seats of different vendors; the next seat of another vendor takes the place of one that is absent."""
    asked = rule.choose_first_seats(order)
    async with council.phase("answer"):
        answers = await council.poll(asked, "adaptive/answer", quorum=0, reply=Answer)
    number = 0
    while len(answers) < 2 and (seat := rule.choose_stand_in(order, answers, [one.name for one in asked])):
        number += 1
        gone = [one.name for one in asked if one.name not in answers][number - 1]
        council.note(f"{seat.name} answers first in place of {gone}", why=f"{gone} did not answer")
        asked = [*asked, seat]
        async with council.phase(f"draft/{number}"):  # after `answer` has ended: its absences are final on a resume
            later = await council.poll([seat], "adaptive/answer", quorum=0, reply=Answer)
        answers = join_rounds(council.members, answers, later)
    return Progress(answers, len(asked), {"stopped": None, "continued": []})


async def ask_other_seats(council: Council, progress: Progress, order: Sequence[Seat]) -> None:
    known = {*progress.answers, *progress.answers.absent}
    others = [seat for seat in council.members if seat.name not in known]
    if others:
        async with council.phase("draft"):
            drafts = await council.poll(others, "adaptive/answer", quorum=0, reply=Answer)
        progress.answers = join_rounds(council.members, progress.answers, drafts)
        progress.asked += len(others)
    if not progress.answers:
        reasons = "; ".join(f"{name}: {gone.state}" for name, gone in progress.answers.absent.items())
        raise QuorumLost(f"0 of {len(order)} seats answered ({reasons})")


def join_rounds(seats: Sequence[Seat], *rounds: Round[Answer]) -> Round[Answer]:
    """Return the statements and absences of several rounds in seating order."""
    said = {name: one for round_ in rounds for name, one in round_.items()}
    gone = {name: one for round_ in rounds for name, one in round_.absent.items()}
    names = [seat.name for seat in seats]
    return Round([said[name] for name in names if name in said], [gone[name] for name in names if name in gone])


# Check


async def check_answer(council: Council, progress: Progress, author: Statement[Answer]) -> Check:
    """Have the author of another answer check this one, of another vendor where there is one."""
    own = rule.choose_reader(progress.answers, author)
    reader = own.seat
    progress.asked += 1
    text = Statement(
        author.seat, author.key, author.reply.answer, None, author.outcome
    )  # without its confidence and doubts
    try:
        async with council.phase("check"):
            said = await council.ask(reader, "adaptive/check", reply=Confirmation, said=text, own=own)
    except SeatAbsent:
        return Check(author, own, None)
    return Check(author, own, said)


def decide_after_check(council: Council, progress: Progress, check: Check, skipped: Sequence[str]) -> bool:
    """Record whether the check allows a stop, and why."""
    reason = rule.judge_check(check.said.reply if check.said else None)
    why = rule.describe_reason(reason, list(progress.answers), check.author.seat.name, check.reader.name)
    decision: DecisionRow = {"after": "check", "reason": reason, "why": why}
    if reason != "confirmed":
        progress.decisions["continued"].append(decision)
        council.note("did not stop after the check", why=why)
        return False
    is_asked = {*progress.answers, *progress.answers.absent} >= {seat.name for seat in council.members}
    decision["skipped"] = [name for name in skipped if not (name == "draft" and is_asked)]
    progress.decisions["stopped"] = decision
    council.note("stopped after the check", why=why, skipped=decision["skipped"])
    return True


def return_checked_answer(progress: Progress, check: Check, comparison: Comparison, noted: NotedAgreement) -> Verdict:
    """Return the answer that was checked, with the facts that limit the trust in it."""
    answers, author = progress.answers, check.author.seat.name
    facts: list[TrustFact] = [*noted.trust_facts, *list_check_facts(check.facts)]
    if comparison != "same":
        facts.append(TrustFact("confirmed_by_reader", seats=(check.reader.name,), count=1))
    doubting = tuple(name for name, said in answers.items() if said.reply.doubts)
    if doubting:
        facts.append(TrustFact("doubts", seats=doubting, count=len(doubting)))
    result = OutcomeFacts("stopped", author, check.reader.name, count=progress.asked, total=len(answers))
    return Verdict(
        clean_answer(check.author.reply.answer),
        confidence=max((said.reply.confidence or "MEDIUM" for said in answers.values()), key=LEVELS.index),
        result=result,
        check=check.facts,
        details=dict(progress.decisions),
        **noted._replace(trust_facts=tuple(facts))._asdict(),
    )


# Arguments and answer


async def argue_and_write(
    council: Council,
    progress: Progress,
    disputed: Sequence[Difference],
    check: Check | None = None,
    *,
    is_compared: bool = True,
) -> Verdict:
    """Have the seats argue what is disputed, and the chair write the answer.

    After a `check` the reader has stated its objections, so only the author answers. `is_compared`: the points are
    known.
    """
    points = {f"p{n}": point for n, point in enumerate(disputed, 1)}
    room = rule.count_room(len(council.members), progress.asked)
    speakers = rule.choose_speakers(disputed, room, author=check.author.seat.name if check else "")
    arguments = await argue(council, progress.answers, points, speakers)
    if not speakers and len(progress.answers) > 1:
        why = "another call would cost more than collaborative" if disputed else "no point is disputed"
        if not is_compared:
            why = "the clerk did not compare the answers, so the disputed points are not known"
        # After a check that was asked for and is absent, a phase that is skipped saves nothing.
        has_absent_check = any(row["reason"] == "not_checked" for row in progress.decisions["continued"])
        is_unneeded = is_compared and not disputed and not has_absent_check
        council.note("argue skipped", why=why, skipped=["argue"], by_absence=not is_unneeded)
    verdict = await write(council, progress, points, arguments, check.list_apart(arguments) if check else ())
    if check and (facts := check.settle(arguments)):
        verdict = replace(verdict, check=facts, trust_facts=(*verdict.trust_facts, *list_check_facts(facts)))
    # A check that names no error and does not confirm the answer leaves open what differs.
    has_objection = bool(disputed) or (check is not None and check.said is not None)
    is_open = not is_compared or (has_objection and not arguments)
    if is_open and len(progress.answers) > 1:
        return replace(verdict, trust_facts=(*verdict.trust_facts, TrustFact("not_argued")))
    return verdict


async def argue(
    council: Council, answers: Round[Answer], points: Mapping[str, Difference], speakers: Sequence[str]
) -> Round[Arguments]:
    """Ask each speaker about the points on which it holds a side."""
    seats = [seat for seat in answers.seats if seat.name in speakers]
    if not seats:
        return Round()

    async def speak(apart: Council, seat: Seat) -> Statement[Arguments]:
        rows = rule.select_points(seat.name, points)
        return await apart.ask(
            seat,
            "adaptive/argue",
            reply=Arguments,
            choices={"point": [row["id"] for row in rows]},
            own=answers[seat.name],
            points=rows,
        )

    async with council.phase("argue"):
        return await council.gather(seats, speak, quorum=0)


async def write(
    council: Council,
    progress: Progress,
    points: Mapping[str, Difference],
    arguments: Round[Arguments],
    apart: Sequence[str] = (),
) -> Verdict:
    """Have the chair write the answer. The seats `apart` did not recommend it at first, whatever the chair says."""
    answers = progress.answers
    async with council.phase("write"):
        written = await council.ask(
            council.chair,
            "adaptive/write",
            drafts=answers,
            points=rule.describe_points(points),
            arguments=arguments,
            limit=find_word_limit(said.reply.answer for said in answers.values()),
        )
    notes = parse_notes(written.outcome.text, seat_names(answers.seats))
    base = notes["closest_draft"] if notes else None
    conclusions = {name: said.reply.conclusion for name, said in answers.items()}
    rows = {name: said.reply.points for name, said in arguments.items()}
    noted = rule.limit_agreement(
        assess_notes(notes, round_voices(answers)),
        round_voices(answers),
        conclusions,
        base,
        rule.list_open_points(points, rows),
        apart,
        council.question.text,
    )
    details: AdaptiveDetails = {**progress.decisions, "argued": rule.list_argued_points(points, arguments)}
    result = OutcomeFacts("built_on", base) if base and len(answers) > 1 else None
    return Verdict(written.text, notes=notes, result=result, details=dict(details), **noted._asdict())
