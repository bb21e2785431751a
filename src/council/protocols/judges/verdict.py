"""Build the verdict of a review from the statements: votes, findings, shifts, disagreements. No model call."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from council.engine.agreement import list_shared_voices, round_voices
from council.engine.council import Council
from council.engine.records import Disagreement, Dissent, SeatPosition, SeatText, Shift
from council.protocols.judges import findings as finding_rules
from council.protocols.judges import rules as consensus_rules
from council.protocols.judges.clerk import REASONS, Clerking
from council.protocols.judges.details import (
    ChangedFinding,
    DebateNotesRow,
    OpinionRow,
    ReviewDetails,
    SingleFamilyFinding,
    VerdictHistory,
)
from council.protocols.judges.findings import Finding, StandingFindings, list_judge_names
from council.protocols.judges.groups import (
    FindingGroup,
    build_rows,
    find_uncounted,
    group_findings,
    list_split_groups,
    sort_groups,
)
from council.protocols.judges.locations import Material
from council.protocols.judges.options import JudgesOptions
from council.protocols.judges.parts import list_unanswered
from council.protocols.judges.replies import Opinion, SecondOpinion
from council.protocols.judges.rules import ConfidenceLevel, Consensus, Vote
from council.text_cleanup import cut_words, first_sentence, single_line, squash
from council.types import (
    VERDICT_ORDER,
    Agreement,
    Difference,
    OutcomeFacts,
    Packet,
    Round,
    Side,
    Statement,
    TrustFact,
    Verdict,
)

NOT_CONFIRMED = "the findings have no line, definition or support in common"
CODE = re.compile(r"[={};]|\n|\w\(|`|^\W|->|:$")  # signs of code in a fix
MIN_SENTENCE_WORDS = 3
MAX_NAME_CHARS = 90  # of a finding that is named in a sentence
MAX_STEP_CHARS = 200  # of the words in the next step; the finding has the whole text


def build_verdict(
    council: Council,
    options: JudgesOptions,
    r1: Round[Opinion],
    r2: Round[SecondOpinion],
    standing: StandingFindings,
    clerking: Clerking,
) -> Verdict:
    """Build the verdict.

    Second-round verdicts replace first-round verdicts; findings stand unless they are withdrawn.
    """
    packet = council.packet
    final: dict[str, Statement[Opinion]] = {name: r2.get(name, statement) for name, statement in r1.items()}  # type: ignore[misc]
    votes = _list_votes(final)
    withdrawn = {finding.id: why for finding, why in standing.withdrawn}
    held = [one for one in standing.findings if one.id not in withdrawn]  # by their own judges; others may support more
    challenges = _collect_challenges(r1, r2)
    results = _apply_rules(options, votes, held, finding_rules.find_survivors(held, challenges, r2))
    result = results[options.rule]
    voices, voice_count = _find_voices(r1, r2)
    groups = [
        replace(one, disputed=bool(against), disputes=against, uncounted=find_uncounted(one, withdrawn, voices))
        for one in group_findings(standing.findings, voice_count, standing.supporters, clerking.groups)
        for against in [_list_opponents(one, challenges, withdrawn)]
    ]
    groups = sort_groups(groups, [vote.seat for vote in votes if vote.verdict == "FAIL"])
    clerk_problems = _check_clerk(council, clerking, groups)
    rounds: tuple[Round[Any], ...] = (r1, r2)
    cut_material = [cut for one in rounds for said in one.values() for cut in said.outcome.cut_material]
    holes = [*packet.holes, *dict.fromkeys(cut_material), *list_unanswered(r1)]
    critical = any(one.severity == "critical" for one in groups)
    verdict = consensus_rules.cap_verdict(result.verdict, holes, packet.empty, critical)
    by_rule: dict[str, str | None] = {
        rule: consensus_rules.cap_verdict(one.verdict, holes, packet.empty, critical) for rule, one in results.items()
    }
    supported = [replace(one, seat=seat) for one in standing.findings for seat in standing.supporters.get(one.id, ())]
    inconsistent = finding_rules.find_inconsistent_judges(votes, [*held, *supported])
    shifts = _list_shifts(r1, r2)
    first = _list_votes(r1)
    joined = [vote.seat for vote in first if vote.verdict != final[vote.seat].reply.verdict]
    single = len(votes) > 1 and len({vote.voice for vote in votes}) < 2  # one model answered for all judges
    limited = options.quick or single or bool(r2.absent) or (critical and result.verdict == "PASS")
    confidence: ConfidenceLevel | None = "MEDIUM" if limited and result.confidence == "HIGH" else result.confidence
    rows = build_rows(groups)
    agreement, shared_by = _compare_first_votes(first, verdict)
    details: ReviewDetails = {
        "verdicts": {name: _build_verdict_history(name, r1, r2) for name in r1},
        "families": dict(result.families),
        "n_eff": consensus_rules.count_effective_votes(consensus_rules.merge_voices(votes)),
        "rule": options.rule,
        "by_rule": by_rule,
        "uncorroborated": list(results["corroborated"].weakened),
        "weakened": list(result.weakened),
        "inconsistent": list(inconsistent),
        "critical": critical,
        "opinions": [_build_opinion(r1, statement) for statement in final.values()],
        "withdrawn": [_change_row(finding, why) for finding, why in standing.withdrawn],
        "settled": [_change_row(finding, why) for finding, why in standing.settled],
        "problems": [*standing.problems, *clerk_problems],
        "grouping": {
            "by": "clerk" if clerking.state == "answered" else "rule",
            "clerk": clerking.state,
            "why": REASONS[clerking.state],
        },
        "converged": bool(r2) and consensus_rules.has_converged(_list_verdicts(r1), _list_verdicts(final)),
        "r2_missing": list(r2.absent),
        "rounds": 2 if r2 else 1,
        "fidelity": "full",
        "notes": {
            name: cast("DebateNotesRow", statement.reply.debate_notes.model_dump()) for name, statement in r2.items()
        },
        "quick": options.quick,
        "profile": options.profile,
        "mixed": options.mixed,
        "holes": holes,
        "empty": packet.empty,
    }
    return Verdict(
        _choose_recommendation(r1, final, groups),
        verdict=verdict,
        confidence=confidence,
        findings=tuple(rows),
        consensus=tuple(row for row in rows if len(row["held_by"]) > 1),
        disagreements=tuple(_list_disagreements(r1, final, verdict)),
        insights=tuple(_list_single_family_findings(groups, r1)),
        shifts=tuple(shifts),
        dissent=tuple(_list_dissent(r1, final, result)),
        blind_spots=tuple(_list_blind_spots(r2)),
        details=dict(details),
        agreement=agreement,
        shared_by=shared_by,
        joined=tuple(name for name in joined if verdict == final[name].reply.verdict),
        common=tuple(_name_finding(row["description"], row["defect"]) for row in rows if len(row["held_by"]) > 1),
        differences=tuple(_list_differences(r1, final, groups)),
        result=_describe_outcome(verdict, result.verdict, votes),
        caveats=(f"{packet.substitution[0].upper()}{packet.substitution[1:]}.",) if packet.substitution else (),
        trust_facts=(
            *([TrustFact("disagree")] if verdict == "DISAGREE" else []),
            *_list_trust_facts(packet, rounds, standing.findings, inconsistent, shifts),
            *_list_dispute_facts(groups),
            *_list_support_facts((first, votes), standing.findings),
        ),
    )


def collect_standing(r1: Round[Opinion], r2: Round[SecondOpinion], material: Material) -> StandingFindings:
    """Return the findings that stand after the last round, each checked against the packet."""
    first = [one for name in r1 for one in read_findings(name, r1[name].reply, material)]
    added = [
        one
        for name, said in r2.items()
        for one in read_findings(name, said.reply, material, after=len(r1[name].reply.findings))
    ]
    return finding_rules.apply_changes(
        first, added, {name: said.reply for name, said in r2.items()}, list_judge_names(r1.seats)
    )


def read_findings(seat: str, reply: Opinion, material: Material, after: int = 0) -> list[Finding]:
    """Return the checked findings of a reply; `after` is the number of earlier findings of the judge."""
    rows = enumerate(reply.findings, after + 1)
    found = (finding_rules.parse_finding(seat, row.model_dump(), f"{seat}.F{n}") for n, row in rows)
    return [finding_rules.verify_finding(one, material) for one in found]


def _change_row(finding: Finding, why: str) -> ChangedFinding:
    row: ChangedFinding = {
        "seat": finding.seat,
        "id": finding.id,
        "finding": finding.description,
        "severity": finding.severity,
        "why": why,
    }
    if finding.first_severity:
        row["first_severity"] = finding.first_severity
    return row


def _list_votes(final: Mapping[str, Statement[Opinion]]) -> list[Vote]:
    voices = round_voices(Round(list(final.values())))
    return [
        Vote(name, said.seat.vendor, said.reply.verdict, said.reply.confidence, said.outcome.state, voices[name])
        for name, said in final.items()
    ]


def _list_trust_facts(
    packet: Packet,
    rounds: Sequence[Round[Any]],
    findings: Sequence[Finding],
    inconsistent: Sequence[str],
    shifts: Sequence[Shift],
) -> list[TrustFact]:
    facts = [TrustFact("no_material")] if packet.empty else []
    facts += [TrustFact("substituted")] if packet.substitution else []
    facts += dict.fromkeys(fact for one in rounds for fact in list_shared_voices(round_voices(one)))
    severe = [one for one in findings if one.severity != "minor"]
    if severe and not any(one.is_verified for one in severe):
        facts.append(TrustFact("no_quote", count=len(severe)))
    if weak := tuple(one["seat"] for one in shifts if one["weak"]):
        facts.append(TrustFact("weak_flip", seats=weak, count=len(weak)))
    if inconsistent:
        facts.append(TrustFact("inconsistent", seats=tuple(inconsistent), count=len(inconsistent)))
    return facts


def _compare_first_votes(first: Sequence[Vote], verdict: str | None) -> tuple[Agreement, tuple[str, ...] | None]:
    """Return whether the first votes agree, and who gave the verdict at once. DISAGREE says that they do not."""
    if verdict == "DISAGREE":
        return "none", None
    agreement = consensus_rules.measure_agreement([vote.verdict for vote in consensus_rules.merge_voices(first)])
    return agreement, tuple(vote.seat for vote in first if vote.verdict == verdict)


def _list_dispute_facts(groups: Sequence[FindingGroup]) -> list[TrustFact]:
    disputed = [group for group in groups if group.disputes]
    return [TrustFact("contested_points", _name_group(disputed[0]), count=len(disputed))] if disputed else []


def _name_group(one: FindingGroup) -> str:
    return _name_finding(one.lead.description, one.defect)


def _name_finding(description: str, defect: str) -> str:
    """Return a finding in a few words: its first sentence or the clerk's, the one that fits; else the shorter one,
    cut.
    """
    names = [name for name in (first_sentence(description), defect.rstrip(".")) if name]
    shortest = min(names, key=len, default="")
    return next((name for name in names if len(name) <= MAX_NAME_CHARS), cut_words(shortest, MAX_NAME_CHARS))


def _list_support_facts(rounds: Sequence[Sequence[Vote]], findings: Sequence[Finding]) -> list[TrustFact]:
    """Return what speaks for the verdict. `rounds` are the first and the last votes: a changed one is no agreement."""
    verdicts = {vote.verdict for votes in rounds for vote in votes}
    voices = min(len({vote.voice or vote.seat for vote in votes}) for votes in rounds)
    is_same = voices > 1 and len(verdicts) == 1
    facts = [TrustFact("same_verdict", verdicts.pop(), count=len(rounds[0]))] if is_same else []
    if verified := sum(one.is_verified for one in findings):
        facts.append(TrustFact("verified_findings", count=verified, total=len(findings)))
    return facts


def _describe_outcome(verdict: str | None, voted: str | None, votes: Sequence[Vote]) -> OutcomeFacts | None:
    """Return how the judges voted; `voted` is the verdict before it was capped."""
    if verdict is None:
        return None
    if verdict == "DISAGREE":
        return OutcomeFacts("split", word=verdict, total=len(votes))
    count = sum(vote.verdict == voted for vote in votes)
    return OutcomeFacts("votes" if verdict == voted else "capped", word=verdict, count=count, total=len(votes))


def _list_differences(
    r1: Round[Opinion], final: Mapping[str, Statement[Opinion]], groups: Sequence[FindingGroup]
) -> list[Difference]:
    """Return the verdicts that differ, each with a reason, then the findings that are disputed."""
    found = []
    by_verdict: dict[str, list[Statement[Opinion]]] = {}
    for said in final.values():
        by_verdict.setdefault(said.reply.verdict, []).append(said)
    if len(by_verdict) > 1:
        sides = (
            Side(tuple(said.seat.name for said in group), f"{word}: {_last_words(r1, group[0], 'key_insight')}")
            for word, group in by_verdict.items()
        )
        found.append(Difference("", tuple(sides)))
    for group in groups:
        if group.disputes:
            against = (Side((seat,), why) for seat, why in group.disputes)
            found.append(Difference("", (Side(group.held_by, _name_group(group)), *against)))
    return found


def _list_verdicts(statements: Mapping[str, Statement[Opinion]]) -> list[str]:
    return [one.reply.verdict for one in statements.values()]


def _collect_challenges(r1: Round[Opinion], r2: Round[SecondOpinion]) -> list[finding_rules.Challenge]:
    names = list_judge_names(r1.seats)

    def resolve(name: str) -> str:
        """Return the seat that a judge names by its perspective or role; a name that fits several or none stays."""
        seats = names.get(squash(name), ())
        return seats[0] if len(seats) == 1 else name

    return [
        finding_rules.Challenge(resolve(one.target_judge), one.claim, name, one.response, one.finding)
        for name, statement in r2.items()
        for one in statement.reply.debate_notes.challenges
    ]


def _list_blind_spots(r2: Round[SecondOpinion]) -> list[SeatText]:
    return [
        {"seat": name, "text": text.strip()}
        for name, statement in r2.items()
        for text in statement.reply.blind_spots
        if text.strip()
    ]


def _apply_rules(
    options: JudgesOptions, votes: list[Vote], findings: list[Finding], survived: frozenset[str]
) -> dict[str, Consensus]:
    """Return the result of each rule; the gate may use another one than the run."""
    several = may_disagree(options, votes)
    verified = {finding.seat for finding in findings if finding.is_verified}
    corroborated = consensus_rules.decide_by_corroboration(votes, mixed=several, verified=verified, survived=survived)
    return {"consensus": consensus_rules.decide_by_consensus(votes, mixed=several), "corroborated": corroborated}


def _check_clerk(council: Council, clerking: Clerking, groups: list[FindingGroup]) -> list[str]:
    """Record the groups that the check did not confirm; return what a reader must know of a wrong clerk."""
    split = list_split_groups(groups, clerking.groups)
    for one, rows in split:
        council.note(f"a group of the clerk became {rows} rows: {', '.join(one.findings)}", why=NOT_CONFIRMED)
    problems = []
    if clerking.unknown:
        listed = ", ".join(f'"{single_line(label, 40)}"' for label in clerking.unknown[:5])
        problems.append(f"The clerk named {listed}, which {'is' if len(clerking.unknown) == 1 else 'are'} no finding.")
    if wild := sum(rows > 2 for _, rows in split):
        many = "a group" if wild == 1 else f"{wild} groups"
        problems.append(f"The clerk's word for {many} was not followed: {NOT_CONFIRMED}.")
    return problems


def may_disagree(options: JudgesOptions, votes: list[Vote]) -> bool:
    """Return whether PASS of one vendor family and FAIL of another is DISAGREE: the user chose the families.

    Plans of earlier versions do not say so; their judges had several vendors only if the user chose them.
    """
    several = bool(options.mixed) or len({vote.vendor for vote in votes}) > 1
    return several if options.may_disagree is None else options.may_disagree


def _find_voices(r1: Round[Opinion], r2: Round[SecondOpinion]) -> tuple[dict[str, str], int]:
    """Return the voice behind each finding id and, under its name, behind the second round of each seat; and their
    number.

    A model that answered for several judges by fallback, in either round, is one voice and cannot confirm itself.
    """
    said = [(statement, name) for one in (r1, r2) for name, statement in one.items()]
    served = {(statement.outcome.served_by, name) for statement, name in said}
    sharing = Counter(member for member, _ in served if member)
    replaced = {one.outcome.served_by for one, _ in said if one.outcome.served_by != one.seat.member}
    shared = {member for member in replaced if sharing[member] > 1}
    voices: dict[str, str] = {}
    for statement, name in said:
        member = statement.outcome.served_by
        voices[name] = member if member in shared else name
        after = len(r1[name].reply.findings) if statement is r2.get(name) else 0
        numbers = range(after + 1, after + len(statement.reply.findings) + 1)
        voices |= {f"{name}.F{n}": voices[name] for n in numbers}
    return voices, len({member if member in shared else name for member, name in served})


def _list_opponents(
    one: FindingGroup, challenges: Sequence[finding_rules.Challenge], withdrawn: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the judges that challenged a finding of the group or withdrew their own, each with its first reason."""
    found: dict[str, str] = {}
    for member in one.members:
        if member.id in withdrawn:
            found.setdefault(member.seat, withdrawn[member.id])
        for challenge in finding_rules.find_challenges(member, challenges):
            found.setdefault(challenge.seat, challenge.response or challenge.claim)
    return tuple(found.items())


# Recommendation


def _choose_recommendation(
    r1: Round[Opinion], final: Mapping[str, Statement[Opinion]], groups: list[FindingGroup]
) -> str:
    """Return what to do about the most severe verified finding, else the strictest judge's recommendation, with the
    source.
    """
    for one in groups:
        if one.location_member.is_verified and one.severity != "minor":
            return format_next_step(one)
    strictest = max(final.values(), key=lambda said: VERDICT_ORDER.index(said.reply.verdict))
    advice, insight = (_last_words(r1, strictest, name) for name in ("recommendation", "key_insight"))
    what = f"Resolve this: {insight}" if insight and is_bare_code(advice) else advice
    return f"{what} ({strictest.seat.name})"


def format_next_step(one: FindingGroup) -> str:
    """Format the first thing to do as sentences: where, what is wrong or what to do, and who found it."""
    place, lead = one.location_member.place, one.lead
    advice = next(filter(None, map(_shorten_advice, (lead.recommendation, lead.fix))), "")
    problem = first_sentence(lead.description)
    named = (
        f"Resolve this: {problem}" if len(problem) <= MAX_STEP_CHARS else f"Resolve the {one.severity} finding there"
    )
    what = advice or named
    return f"Start at {place.path}:{place.line}. {_end_sentence(what)} ({one.severity}, {one.support}: {', '.join(one.held_by)})"


def _shorten_advice(text: str) -> str:
    """Return advice in words that fits a next step, whole or its first sentence; empty for code and for a long
    sentence.
    """
    shown = text if len(text) <= MAX_STEP_CHARS else first_sentence(text)
    is_sentence = len(shown.split()) >= MIN_SENTENCE_WORDS and shown != finding_rules.NO_FIX and not CODE.search(shown)
    return shown if is_sentence and len(shown) <= MAX_STEP_CHARS else ""


def is_bare_code(text: str) -> bool:
    """Return whether a text is code without a sentence around it; code inside a sentence is between backticks."""
    return "`" not in text and CODE.search(text) is not None


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _last_words(r1: Round[Opinion], said: Statement[Opinion], name: str) -> str:
    """Return a field of a judge's last reply, or of its first if the second round left it empty."""
    return str(getattr(said.reply, name) or getattr(r1[said.seat.name].reply, name))


# Positions


def _build_opinion(r1: Round[Opinion], said: Statement[Opinion]) -> OpinionRow:
    return {
        "seat": said.seat.name,
        "verdict": said.reply.verdict,
        "confidence": said.reply.confidence,
        "key_insight": _last_words(r1, said, "key_insight"),
        "recommendation": _last_words(r1, said, "recommendation"),
    }


def _list_disagreements(
    r1: Round[Opinion], final: Mapping[str, Statement[Opinion]], verdict: str | None
) -> list[Disagreement]:
    """Return the judges' verdicts and reasons if they differ."""
    if len(set(_list_verdicts(final))) < 2:
        return []
    positions: list[SeatPosition] = [
        {
            "seat": name,
            "family": statement.seat.vendor,
            "verdict": statement.reply.verdict,
            "why": _last_words(r1, statement, "key_insight"),
        }
        for name, statement in final.items()
    ]
    issue = "the verdict" if verdict != "DISAGREE" else "the verdict, between families"
    return [{"issue": issue, "positions": positions}]


def _list_dissent(r1: Round[Opinion], final: Mapping[str, Statement[Opinion]], result: Consensus) -> list[Dissent]:
    return [
        {"seat": name, "position": statement.reply.verdict, "text": _last_words(r1, statement, "key_insight")}
        for name, statement in final.items()
        if result.verdict != "DISAGREE" and statement.reply.verdict != result.verdict
    ]


def _list_single_family_findings(groups: list[FindingGroup], r1: Round[Opinion]) -> list[SingleFamilyFinding]:
    """Return findings that only one vendor family reported."""
    vendors = {seat.name: seat.vendor for seat in r1.seats}
    if len(set(vendors.values())) < 2:
        return []
    by_family = [(one, {vendors[seat] for seat in one.held_by}) for one in groups]
    return [
        {"family": families.pop(), "finding": one.lead.description, "severity": one.severity}
        for one, families in by_family
        if len(families) == 1
    ]


def _build_verdict_history(name: str, r1: Round[Opinion], r2: Round[SecondOpinion]) -> VerdictHistory:
    first, last = r1[name].reply, r2[name].reply if name in r2 else None
    return {"r1": first.verdict, "r2": last.verdict if last else None, "confidence": (last or first).confidence}


def _list_shifts(r1: Round[Opinion], r2: Round[SecondOpinion]) -> list[Shift]:
    """Return each second-round judge's verdicts before and after, its reason, and whether the change is a weak flip."""
    verdicts = [(name, r1[name].reply.verdict, statement.reply) for name, statement in r2.items()]
    return [
        {
            "seat": name,
            "from": first,
            "to": last.verdict,
            "changed": first != last.verdict,
            "reason": last.reason,
            "weak": consensus_rules.is_weak_flip(first, last.verdict, *last.revision_reasons),
        }
        for name, first, last in verdicts
    ]
