"""The advisors protocol: opening, rebuttal and final rounds, then a referee's verdict."""

from __future__ import annotations

from typing import Any

from council.engine.agreement import compute_agreement, join_sides, keep_known, list_shared_voices, round_voices
from council.engine.council import Council
from council.engine.records import Shift
from council.protocols.advisors.options import AdvisorsOptions, Flow
from council.protocols.advisors.replies import Refereed, RefereedRounds, Stand
from council.protocols.advisors.rules import (
    cites_evidence,
    describe_stances,
    is_long,
    names_figure,
    stage,
    stance_changes,
    word_limits,
)
from council.protocols.common.lengths import find_word_limit
from council.protocols.common.sections import dump_sections
from council.protocols.common.stances import Stance, describe_vendor, is_unanimous
from council.types import STATES_OUT_FOR_RUN, Difference, Round, TrustFact, Verdict

MIN_VERDICT_WORDS = 250


async def advisors(council: Council, **options: Any) -> Verdict:
    """Run the rounds, in parallel or in turn, and ask the referee for the verdict."""
    chosen = AdvisorsOptions.model_construct(**options)  # validated by the caller
    speak = council.relay if chosen.flow == "sequential" else council.poll
    transcript: list[Round[Any]] = []
    for n in range(1, chosen.rounds + 1):
        least, most = word_limits(n, chosen.rounds)
        async with council.phase(f"r{n}"):
            said = await speak(
                council.members,
                f"advisors/{stage(n, chosen.rounds)}",
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
        council.state.stances.update(describe_stances(_latest_stances(transcript)))
        _note_long_statements(council, said, n, most)
        _note_changes(council, transcript)
        if n < chosen.rounds and _should_stop(council, chosen, transcript):
            break
    return await _referee(council, transcript, chosen.flow)


def _note_long_statements(council: Council, said: Round[Any], n: int, max_words: int) -> None:
    for name, one in said.items():
        if is_long(one.said, max_words):
            words = len(one.said.split())
            council.note(f"{name} wrote {words} words in round {n}", why=f"over twice its limit of {max_words}")


def _note_changes(council: Council, transcript: list[Round[Any]]) -> None:
    """Note each change of a stance, those of earlier rounds too: an equal note is recorded once."""
    for one in _declared_changes(transcript):
        why = one["reason"] if not one["weak"] else "a weak flip: it cites nothing that changed its mind"
        council.note(f"{one['seat']} went from {one['from']} to {one['to']} in round {one['round']}", why=why)


def _should_stop(council: Council, chosen: AdvisorsOptions, transcript: list[Round[Any]]) -> bool:
    """Return whether to skip the remaining rounds, and note why."""
    left = range(len(transcript) + 1, chosen.rounds + 1)
    why = _stop_reason(chosen, transcript, len(left), council.question.text)
    if why:
        phases = [f"r{n}" for n in left]
        council.note(f"{', '.join(phases)} skipped", why=why, skipped=phases, by_absence=len(transcript[-1]) < 2)
    return bool(why)


def _stop_reason(chosen: AdvisorsOptions, transcript: list[Round[Any]], left: int, question: str) -> str:
    """Return why no further round is needed, or an empty string."""
    if len(transcript[-1]) < 2:
        return "only one advisor is left"
    stances = _latest_stances(transcript)
    awaited = [one for one in transcript[-1].absent.values() if one.state not in STATES_OUT_FOR_RUN]
    if any(
        one.seat.name not in stances for one in awaited
    ):  # has not answered yet and is asked again in the next round
        return ""
    if not chosen.early_stop or not is_unanimous(list(stances.values()), question):
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
    replies = {name: one.reply for name, one in said.items() if isinstance(one.reply, Stand)}
    return {
        name: Stance(name, reply.stance, reply.choice, reply.confidence, reply.evidence)
        for name, reply in replies.items()
    }


def _declared_changes(transcript: list[Round[Any]]) -> list[Shift]:
    return stance_changes([_round_stances(said) for said in transcript])


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
    moved = {one["seat"] for one in shifts if one["changed"]}
    shared_by = keep_known(reply.known_shared_by, heard)
    first_holders = None if shared_by is None else tuple(name for name in shared_by if name not in moved)
    later = reply.joined if isinstance(reply, RefereedRounds) else []
    in_turn = [TrustFact("in_turn")] if flow == "sequential" and len(heard) > 1 else []
    contested = [TrustFact("contested_points", tensions[0], count=len(tensions))] if tensions else []
    sections = reply.build_sections(heard, {one["seat"] for one in shifts if one["weak"]}, council.question.text)
    return Verdict(
        reply.format_answer(sections),
        disagreements=tuple({"issue": tension} for tension in reply.tensions),
        shifts=tuple(shifts),
        details={"rounds": len(transcript), "referee": reply.model_dump(), "sections": dump_sections(sections)},
        agreement=compute_agreement(first_holders, bool(tensions), voices),
        shared_by=first_holders,
        joined=tuple(name for name in later if name in heard and name not in (first_holders or ())),
        differences=tuple(_list_differences(reply, tensions)),
        trust_facts=(*in_turn, *contested, *list_shared_voices(voices)),
    )


def _list_differences(reply: Refereed, tensions: list[str]) -> list[Difference]:
    """Return the tensions; the sides are known for the first."""
    sides = join_sides((side.advisor, side.position, side.assumes) for side in reply.sides)
    return [Difference(point, sides if n == 0 and len(sides) > 1 else ()) for n, point in enumerate(tensions)]


def _combine_shifts(reply: Refereed, declared: list[Shift]) -> list[Shift]:
    """Return the declared changes, plus the referee's account of the other advisors; a change without evidence is a
    weak flip.
    """
    moved = {one["seat"] for one in declared}
    positions = reply.changes_by_advisor if isinstance(reply, RefereedRounds) else {}
    told: list[Shift] = [
        {
            "seat": name,
            "from": one.opened_with,
            "to": one.ended_with,
            "changed": one.moved,
            "reason": one.why,
            "weak": one.moved and not cites_evidence(one.evidence) and not names_figure(one.why),
        }
        for name, one in positions.items()
        if name not in moved
    ]
    return declared + told
