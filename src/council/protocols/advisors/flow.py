"""The advisors protocol: opening, rebuttal and final rounds, then a referee's verdict."""

from __future__ import annotations

from typing import Any

from council.engine.agreement import compute_agreement, join_sides, keep_known, list_shared_voices, round_voices
from council.engine.council import Council
from council.engine.records import Shift
from council.protocols.advisors import rules as rule
from council.protocols.advisors.options import AdvisorsOptions, Flow
from council.protocols.advisors.replies import Refereed, RefereedRounds, Stand
from council.protocols.common.lengths import find_word_limit
from council.protocols.common.points import list_differences
from council.protocols.common.sections import dump_sections
from council.protocols.common.stances import Stance, describe_vendor, is_unanimous
from council.types import STATES_OUT_FOR_RUN, Round, TrustFact, Verdict

MIN_VERDICT_WORDS = 250


async def advisors(council: Council, **options: Any) -> Verdict:
    """Run the rounds, in parallel or in turn, and ask the referee for the verdict."""
    chosen = AdvisorsOptions.model_construct(**options)  # validated by the caller
    speak = council.relay if chosen.flow == "sequential" else council.poll
    transcript: list[Round[Any]] = []
    for n in range(1, chosen.rounds + 1):
        least, most = rule.word_limits(n, chosen.rounds)
        async with council.phase(f"r{n}"):
            said = await speak(
                council.members,
                f"advisors/{rule.stage(n, chosen.rounds)}",
                reply=Stand if chosen.early_stop else None,
                flow=chosen.flow,
                round=n,
                rounds=chosen.rounds,
                transcript=list(transcript),
                least=least,
                words=most,
                heard=[],
            )
        transcript.append(said)
        council.state.stances.update(rule.describe_stances(_latest_stances(transcript)))
        for name, one in said.items():
            if rule.is_long(one.said, most):
                words = len(one.said.split())
                council.note(f"{name} wrote {words} words in round {n}", why=f"over twice its limit of {most}")
        for shift in _declared_changes(transcript):  # those of earlier rounds too: an equal note is recorded once
            why = "a weak flip: it cites nothing that changed its mind" if shift["weak"] else shift["reason"]
            moved = f"{shift['seat']} went from {shift['from']} to {shift['to']}"
            council.note(f"{moved} in round {shift['round']}", why=why)
        left = [f"r{later}" for later in range(n + 1, chosen.rounds + 1)]
        if left and (why := _stop_reason(chosen, transcript, len(left), council.question.text)):
            council.note(f"{', '.join(left)} skipped", why=why, skipped=left, by_absence=len(said) < 2)
            break
    return await _referee(council, transcript, chosen.flow)


def _stop_reason(chosen: AdvisorsOptions, transcript: list[Round[Any]], left: int, question: str) -> str:
    """Return why no further round is needed, or an empty string."""
    if len(transcript[-1]) < 2:
        return "only one advisor is left"
    stances = _latest_stances(transcript)
    absent = transcript[-1].absent.values()
    # A seat that has not answered yet is asked again in the next round.
    is_awaited = any(one.seat.name not in stances and one.state not in STATES_OUT_FOR_RUN for one in absent)
    if is_awaited or not chosen.early_stop or not is_unanimous(list(stances.values()), question):
        return ""
    latest = _latest_statements(transcript)
    if len(set(round_voices(latest).values())) < 2:  # by fallback one member answered for all of them
        return ""
    who = "both" if len(stances) == 2 else f"all {len(stances)}"
    vendor = describe_vendor(latest.values())
    agreed = f"{who} agree with HIGH confidence after round {len(transcript)}{vendor}"
    return f"the debate ended early: {agreed}; {left * len(transcript[-1])} calls saved"


def _latest_statements(transcript: list[Round[Any]]) -> Round[Any]:
    """Return the last statement of each advisor that has spoken."""
    return Round(list({name: one for said in transcript for name, one in said.items()}.values()))


def _latest_stances(transcript: list[Round[Any]]) -> dict[str, Stance]:
    return {name: one for said in transcript for name, one in _round_stances(said).items()}


def _round_stances(said: Round[Any]) -> dict[str, Stance]:
    return {
        name: Stance(name, reply.stance, reply.choice, reply.confidence, reply.evidence)
        for name, one in said.items()
        if isinstance(reply := one.reply, Stand)
    }


def _declared_changes(transcript: list[Round[Any]]) -> list[Shift]:
    return rule.stance_changes([_round_stances(said) for said in transcript])


async def _referee(council: Council, transcript: list[Round[Any]], flow: Flow) -> Verdict:
    heard = {seat.name: seat.role for seat in council.members if any(seat.name in said for said in transcript)}
    several = len(transcript) > 1
    council.so_far(Verdict("", shifts=tuple(_declared_changes(transcript))))  # declared changes need no referee
    async with council.phase("referee"):
        ruling = await council.ask(
            council.chair,
            "advisors/referee",
            reply=RefereedRounds if several else Refereed,
            choices={name: list(heard) for name in ("advisor", "shared_by", "joined")},
            transcript=transcript,
            several=several,
            limit=find_word_limit((said.said for spoken in transcript for said in spoken.values()), MIN_VERDICT_WORDS),
        )
    reply = ruling.reply
    shifts = _combine_shifts(reply, _declared_changes(transcript))
    voices = round_voices(_latest_statements(transcript))
    tensions = reply.tensions
    sides = join_sides((side.advisor, side.position, side.assumes) for side in reply.sides)
    moved = {one["seat"] for one in shifts if one["changed"]}
    shared_by = keep_known(reply.known_shared_by, heard)
    first_holders = None if shared_by is None else tuple(name for name in shared_by if name not in moved)
    later = reply.joined if isinstance(reply, RefereedRounds) else []
    in_turn = [TrustFact("in_turn")] if flow == "sequential" and len(heard) > 1 else []
    contested = [TrustFact("contested_points", tensions[0], count=len(tensions))] if tensions else []
    sections = reply.build_sections(heard, {one["seat"] for one in shifts if one["weak"]}, council.question.text)
    return Verdict(
        reply.format_answer(sections),
        disagreements=tuple({"issue": tension} for tension in tensions),
        shifts=tuple(shifts),
        details={"rounds": len(transcript), "referee": reply.model_dump(), "sections": dump_sections(sections)},
        agreement=compute_agreement(first_holders, bool(tensions), voices),
        shared_by=first_holders,
        joined=tuple(name for name in later if name in heard and name not in (first_holders or ())),
        differences=list_differences(tensions, sides),
        trust_facts=(*in_turn, *contested, *list_shared_voices(voices)),
    )


def _combine_shifts(reply: Refereed, declared: list[Shift]) -> list[Shift]:
    """Return the declared changes and the referee's account of the others; without evidence a change is a weak flip."""
    moved = {one["seat"] for one in declared}
    positions = reply.changes_by_advisor if isinstance(reply, RefereedRounds) else {}
    told: list[Shift] = [
        {
            "seat": name,
            "from": one.opened_with,
            "to": one.ended_with,
            "changed": one.moved,
            "reason": one.why,
            # A figure, such as a bill of 900 euros, is evidence too.
            "weak": one.moved and not rule.cites_evidence(one.evidence) and not any(map(str.isdigit, one.why)),
        }
        for name, one in positions.items()
        if name not in moved
    ]
    return declared + told
