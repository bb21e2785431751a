"""Councils for the table of readers: what the seats really said, and the script that makes them say it.

A case states facts about its council: who concluded what, who attacked what, how the chair ruled, who was absent. The
script is made from these facts, and `reader_recount` counts them again. Nothing here reads the code that it tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.acceptance.reader_council import Cut, Json, Setup

QUESTION = "Which queue should the orders use?"
OPTIONS = {"R": "RabbitMQ", "K": "Kafka", "P": "Postgres", "S": "SQS"}
GREEK = ("alpha", "beta", "gamma", "delta")
ADVISORS = ("pragmatist", "visionary", "skeptic")
EXPERTS = ("generalist", "skeptic", "domain_expert")
MARKS = dict(
    zip(GREEK, ("north", "east", "south", "west"), strict=True)
)  # a word of each seat that no other one writes
MEMBERS = ("acme:a", "bolt:b", "core:c", "echo:e")
CHAIR = "dune:d"
VERDICTS = {"P": "PASS", "W": "WARN", "F": "FAIL"}
SEVERITIES = {"F": "FATAL", "M": "MAJOR", "m": "MINOR"}


# Facts


@dataclass(frozen=True)
class Point:
    """A disputed point: what each seat holds on it, and on which assumption."""

    text: str
    sides: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class AttackFacts:
    """An attack: the severities of each attacker's issues, and the chair's ruling.

    `rulings` holds "+" (landed), "-" (dismissed), "both" or "" (not ruled on) by issue. `same_as` joins issues.
    """

    leader: str
    issues: Mapping[str, str]  # attacker → severities, such as "FMm"; only attackers that answered
    words: Mapping[str, str]  # attacker → its own word about the draft
    rulings: Mapping[str, str]
    outcome: str | None
    replaced_by: str = ""
    same_as: Mapping[str, str] = field(default_factory=dict)
    has_unknown: bool = False  # the ruling names an issue that no attacker raised
    is_consensus: bool = False  # nothing was attacked


@dataclass(frozen=True)
class Finding:
    severity: str
    has_quote: bool = True
    text: str = "the limit is never checked"


@dataclass(frozen=True)
class ReviewFacts:
    """A review: first and last votes, confidences, findings, and why a judge changed its vote."""

    verdict: str
    last: Mapping[str, str]
    confidence: Mapping[str, str]
    findings: Mapping[str, Sequence[Finding]]
    reasons: Mapping[str, str] = field(default_factory=dict)
    insights: Mapping[str, str] = field(default_factory=dict)
    disputed: tuple[Finding, str, str] | None = None  # a finding, the judge that opposes it, and why
    weak: tuple[str, ...] = ()  # judges whose reason names nothing
    doubt: str = ""  # the reason that a low confidence of judges is, where nothing worse is known
    has_hole: bool = False
    is_empty: bool = False
    is_substituted: bool = False


@dataclass(frozen=True)
class ClaimFacts:
    """Claims of the general protocol: each seat's answer by question, and its word in the second round."""

    answers: Mapping[str, Mapping[str, str]]  # seat → question → answer
    words: Mapping[str, Mapping[str, str]]  # question → seat → MAINTAIN, CONCEDE, NUANCE
    has_search: bool
    sources: Mapping[str, Sequence[int]]  # seat → sources of its claims
    cited: Sequence[int]  # sources that the answer cites
    added: Point | None = None  # a dispute that only the chair saw


@dataclass(frozen=True)
class CheckRound:
    """One reading of a finished text: the severities of each reader's errors, and what became of them.

    `rulings` holds by error "+" (right and corrected), "=" (right, but nothing changed in the text), "-" (dismissed) or
    "" (not ruled on).
    """

    errors: Mapping[str, str]  # reader → severities, such as "FMm"; only readers that answered
    rulings: Mapping[str, str]
    author: str  # the seat that ruled; empty if none answered


@dataclass(frozen=True)
class Truth:
    """What happened in a council."""

    protocol: str
    seats: tuple[str, ...]
    members: Mapping[str, str]  # the requested member of each seat
    first: Mapping[str, str]  # the conclusion of the first statement of each seat that made one
    first_by: Mapping[str, str]  # the member that made it
    answer: str = ""  # the conclusion of the answer
    last: Mapping[str, str] = field(default_factory=dict)  # the conclusion after reading the others
    speakers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # seat → members that spoke for it
    missed: tuple[tuple[str, str], ...] = ()  # (seat, phase) of seats that spoke in another phase, and of the chair
    stand_ins: tuple[str, ...] = ()  # seats for which a fallback spoke
    is_assessed: bool = True  # the chair said who recommends the answer
    is_in_turn: bool = False  # a seat had read those before it when it spoke first
    points: tuple[Point, ...] = ()
    agreed: tuple[str, ...] = ()
    status: str = "complete"
    attack: AttackFacts | None = None
    review: ReviewFacts | None = None
    claims: ClaimFacts | None = None
    ballots: Mapping[str, tuple[str, ...]] | None = None
    prose: tuple[str, ...] = ()  # seats that answered in prose instead of the typed reply
    truncated: tuple[str, ...] = ()
    prices: Mapping[str, float] = field(default_factory=dict)
    strongest: str = ""  # the seat of the dearest member, if prices tell
    flags: Mapping[str, int] = field(
        default_factory=dict
    )  # critical problems of drafts that the answer does not settle
    low_marks: tuple[str, ...] = ()  # seats that mark most of their claims LOW
    compared: int = 0  # drafts whose flags and marks count
    check: tuple[CheckRound, ...] | None = None  # readings of the finished text; None: none was asked for
    is_settled: bool = False  # a draft is the answer, because all agree and no attack found harm
    self_attacks: tuple[tuple[str, bool], ...] = ()  # severities that the only author found, and whether it rewrote

    @property
    def silent(self) -> tuple[str, ...]:
        """The seats that said nothing."""
        return tuple(seat for seat in self.seats if not self.speakers.get(seat))


@dataclass(frozen=True)
class Case:
    name: str
    level: str
    setup: Setup
    truth: Truth
    outcome: str = ""  # the text of the outcome line
    shows: tuple[str, ...] = ()  # words that standard output has
    hides: tuple[str, ...] = ()  # words that no text has
    quotes: tuple[str, ...] = ()  # lines of models that begin like ours
    language: str = "en"


# Seats and their members


@dataclass(frozen=True)
class Troubles:
    """What goes wrong: seats that never answer, steps without an answer, and steps that a fallback answers."""

    silent: Mapping[str, str] = field(default_factory=dict)  # seat → kind of fault
    missed: Mapping[str, str] = field(default_factory=dict)  # step → kind of fault
    stand_ins: Mapping[str, str] = field(default_factory=dict)  # seat or step → member
    stop_at: str = ""

    def faults(self, steps: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return the fault of each step. `steps` are those of each seat."""
        found = dict(self.missed)
        for seat, kind in self.silent.items():
            found |= dict.fromkeys(steps[seat], kind)
        for name in self.stand_ins:
            found |= dict.fromkeys(steps.get(name, [name]), "server")
        return found

    @property
    def fallbacks(self) -> dict[str, str]:
        return {name.rpartition("/")[2]: member for name, member in self.stand_ins.items()}


NO_TROUBLES = Troubles()


def seat_members(seats: Sequence[str], members: Sequence[str] = MEMBERS) -> dict[str, str]:
    return dict(zip(seats, members, strict=False))


def list_speakers(
    steps: Mapping[str, Sequence[str]], members: Mapping[str, str], troubles: Troubles
) -> dict[str, tuple[str, ...]]:
    """Return the members that spoke for each seat, in order."""
    faults = troubles.faults(steps)
    found = {}
    for seat, keys in steps.items():
        spoke = [
            troubles.fallbacks[seat] if key in faults else members[seat]
            for key in keys
            if key not in faults or seat in troubles.fallbacks
        ]
        found[seat] = tuple(dict.fromkeys(spoke))
    return found


def make_truth(
    protocol: str,
    seats: tuple[str, ...],
    steps: Mapping[str, Sequence[str]],
    conclusions: Sequence[str],
    troubles: Troubles,
    members: Mapping[str, str],
    chair: str = "chair",
    **facts: Any,
) -> Truth:
    """Return the facts that all protocols share. `steps` are those of each seat in the order of the protocol."""
    every = {**steps, chair: facts.pop("chair_steps")}
    everyone = {**members, chair: CHAIR}
    speakers = list_speakers(every, everyone, troubles)
    faults = troubles.faults(every)
    first = dict(zip(seats, conclusions, strict=True))
    spoke_first = [
        seat for seat in seats if speakers[seat] and (steps[seat][0] not in faults or seat in troubles.fallbacks)
    ]
    missed = [
        (seat, key.partition("/")[0])
        for seat, keys in every.items()
        for key in keys
        if key in faults and seat not in troubles.fallbacks and (speakers[seat] or seat == chair)
    ]
    return Truth(
        protocol,
        seats,
        members,
        {seat: first[seat] for seat in spoke_first},
        {seat: troubles.fallbacks[seat] if steps[seat][0] in faults else members[seat] for seat in spoke_first},
        speakers={seat: speakers[seat] for seat in seats},
        missed=tuple(missed),
        stand_ins=tuple(seat for seat in every if seat in troubles.fallbacks),
        **facts,
    )


def recommend(seat: str, option: str, more: str = "") -> str:
    """Return a statement that recommends an option."""
    return f"Use {OPTIONS[option]}. It carries the load that we expect. Reference: {MARKS[seat]}.{more}"


def find_marked(request: Json, label: str) -> dict[str, str]:
    """Return the labels of quoted texts by the seat that wrote them: `<<<Response A …`."""
    words = "\n".join(message["content"] for message in request["messages"])
    found = re.findall(rf"<<<{label} ?([A-Z]+) (\w+)\n(.*?)\n\2>>>", words, re.DOTALL)
    return {seat: letter for letter, _, text in found for seat, mark in MARKS.items() if f"Reference: {mark}." in text}


# Notes of the chair


def build_notes(
    first: Mapping[str, str], last: Mapping[str, str], answer: str, points: Sequence[Point], agreed: Sequence[str]
) -> Json:
    shared = [seat for seat in first if first[seat] == answer]
    return {
        "agreed": list(agreed),
        "contested": [
            {
                "point": point.text,
                "sides": [
                    {"seat": seat, "position": position, "assumes": assumes}
                    for seat, (position, assumes) in point.sides.items()
                ],
            }
            for point in points
        ],
        "unique": [],
        "taken_from": [],
        "closest_draft": next(iter(shared or first), ""),
        "recommendation_shared_by": shared,
        "joined": [seat for seat in last if last[seat] == answer and seat not in shared],
    }


def label_notes(notes: Json, labels: Mapping[str, str]) -> Json:
    """Return notes that name the seats by labels, as a chair does that does not know them."""
    contested = [
        {**row, "sides": [{**side, "seat": labels[side["seat"]]} for side in row["sides"]]}
        for row in notes["contested"]
    ]
    return {
        **notes,
        "contested": contested,
        "closest_draft": labels.get(notes["closest_draft"], ""),
        "recommendation_shared_by": [labels[seat] for seat in notes["recommendation_shared_by"]],
        "joined": [labels[seat] for seat in notes["joined"]],
    }


def write_notes(notes: Json | str | None) -> str:
    if notes is None:
        return ""
    return f"\n\n```council-notes\n{notes if isinstance(notes, str) else json.dumps(notes)}\n```"


# Collaborative and triad


def free_text(
    protocol: str,
    name: str,
    level: str,
    first: str = "RRR",
    last: str = "",
    answer: str = "R",
    *,
    points: Sequence[Point] = (),
    agreed: Sequence[str] = ("a queue is needed",),
    notes: Json | str | None = None,
    is_assessed: bool = True,
    has_notes: bool = True,
    text: str = "",
    drafts: Mapping[str, str] | None = None,
    troubles: Troubles = NO_TROUBLES,
    members: Sequence[str] = MEMBERS,
    status: str = "complete",
    prices: Mapping[str, float] | None = None,
    strongest: str = "",
    truncated: Sequence[str] = (),
    flags: Mapping[str, int] | None = None,
    low_marks: Sequence[str] = (),
    **case: Any,
) -> Case:
    """Return a council whose chair writes freely. `notes` replaces the notes that follow from the facts, or a part."""
    seats = GREEK[: len(first)]
    last = last or first
    is_triad = protocol == "triad"
    phases = ("draft",) if is_triad else ("draft", "improve")
    steps = {seat: [f"{phase}/{seat}" for phase in phases] for seat in seats}
    faults = troubles.faults(steps | {"chair": []})
    for seat in seats:  # a seat without a draft is not asked to improve one
        if not is_triad and f"draft/{seat}" in faults and seat not in troubles.fallbacks:
            steps[seat] = [f"draft/{seat}"]
    drafted = [seat for seat in seats if f"draft/{seat}" not in faults or seat in troubles.fallbacks]
    if not is_triad and len(drafted) < 2:
        steps = {seat: [f"draft/{seat}"] for seat in seats}
    ending = "merge/chair" if is_triad else "synthesise/chair"
    own = seat_members(seats, members)
    truth = make_truth(
        protocol,
        seats,
        steps,
        first,
        troubles,
        own,
        chair_steps=[ending] if status != "failed" else [],
        answer=answer,
        last={seat: last[n] for n, seat in enumerate(seats) if seat in drafted},
        is_assessed=is_assessed and has_notes,
        points=tuple(points),
        agreed=tuple(agreed),
        status=status,
        prices=prices or {},
        strongest=strongest,
        truncated=tuple(truncated),
        flags=flags or {},
        low_marks=tuple(low_marks),
        compared=len(drafted),
    )
    told: Json | str | None = build_notes(truth.first, truth.last, answer, points, agreed)
    if isinstance(notes, dict):
        told = {**build_notes(truth.first, truth.last, answer, points, agreed), **notes}
    elif notes is not None:
        told = notes
    body = text or f"Use {OPTIONS[answer]}, because it carries the load that is expected of it."
    script: dict[str, Any] = {}
    for n, seat in enumerate(seats):
        more = (drafts or {}).get(seat, "")
        said = {"draft": recommend(seat, first[n], more), "improve": recommend(seat, last[n], " It was improved.")}
        script |= {
            f"{phase}/{seat}": Cut(said[phase]) if f"{phase}/{seat}" in truncated else said[phase] for phase in phases
        }
    script[ending] = f"{body}{write_notes(told if has_notes else None)}"
    setup = Setup(
        protocol,
        QUESTION,
        {**own, "chair": CHAIR},
        script,
        options={},
        fallbacks=troubles.fallbacks,
        faults=troubles.faults({**steps, "chair": [ending]}),
        prices=prices or {},
        stop_at=troubles.stop_at,
    )
    if len(seats) != 3:
        setup = replace(setup, models=tuple(own.values()))
    return Case(f"{protocol}: {name}", level, setup, truth, **case)


def collaborative(name: str, level: str, *conclusions: str, **facts: Any) -> Case:
    return free_text("collaborative", name, level, *conclusions, **facts)


def triad(name: str, level: str, *conclusions: str, **facts: Any) -> Case:
    return free_text("triad", name, level, *conclusions, **facts)


# Adversarial


def adversarial(
    name: str,
    level: str,
    outcome_line: str = "",
    first: str = "RRR",
    answer: str = "R",
    *,
    leader: str = "beta",
    criteria: str = "ffff",
    points: Sequence[Point] = (),
    contested: Sequence[str] | None = None,
    agreed: Sequence[str] = ("a queue is needed",),
    same_as_leader: Sequence[str] | None = None,
    is_assessed: bool = True,
    issues: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
    rulings: Mapping[str, str] | None = None,
    same_as: Mapping[str, str] | None = None,
    outcome: str | None = "SURVIVED",
    replaced_by: str = "",
    changes: Sequence[str] = (),
    unknown: str = "",
    raw: Any = None,
    first_raw: Any = None,
    text: str = "",
    assessment: str = "The load was estimated, not measured.",
    drafts: Mapping[str, str] | None = None,
    triage: Any = None,
    troubles: Troubles = NO_TROUBLES,
    members: Sequence[str] = MEMBERS,
    status: str = "complete",
    prose: Sequence[str] = (),
    flags: Mapping[str, int] | None = None,
    low_marks: Sequence[str] = (),
    **case: Any,
) -> Case:
    """Return an adversarial council. `criteria` are the four answers of the triage, t or f."""
    seats = GREEK[: len(first)]
    own = seat_members(seats, members)
    conclusions = dict(zip(seats, first, strict=True))
    is_consensus = criteria == "tttt" and not points and not contested
    steps = {
        seat: [f"draft/{seat}", *([f"attack/{seat}"] if seat != leader and not is_consensus else [])] for seat in seats
    }
    faults = troubles.faults({**steps, "chair": []})
    drafted = [seat for seat in seats if f"draft/{seat}" not in faults or seat in troubles.fallbacks]
    steps = {seat: keys if seat in drafted and len(drafted) > 1 else keys[:1] for seat, keys in steps.items()}
    attackers = [
        seat
        for seat in drafted
        if seat != leader and len(drafted) > 1 and (f"attack/{seat}" not in faults or seat in troubles.fallbacks)
    ]
    issues = {seat: (issues or {}).get(seat, "") for seat in attackers}
    own_words = {seat: (words or {}).get(seat) or word_for(issues[seat]) for seat in attackers}
    attack = AttackFacts(
        leader,
        {} if is_consensus else issues,
        own_words,
        rulings or {},
        outcome,
        replaced_by,
        same_as or {},
        bool(unknown),
        is_consensus,
    )
    chair_steps = ["triage/chair", "verdict/chair"] if len(drafted) > 1 else ["verdict/chair"]
    if troubles.missed.get("triage/chair") == "auth":  # out for the run: there is no attack either
        steps, chair_steps, attackers = {seat: keys[:1] for seat, keys in steps.items()}, ["triage/chair"], []
    truth = make_truth(
        "adversarial",
        seats,
        steps,
        first,
        troubles,
        own,
        chair_steps=chair_steps,
        answer=answer,
        is_assessed=is_assessed,
        points=tuple(points),
        agreed=tuple(agreed),
        status=status,
        attack=attack if attackers or is_consensus else None,
        prose=tuple(prose),
        flags=flags or {},
        low_marks=tuple(low_marks),
        compared=1,
    )
    script: dict[str, Any] = {}
    for seat in seats:
        script[f"draft/{seat}"] = recommend(seat, conclusions[seat], (drafts or {}).get(seat, ""))
        rows = [build_issue(seat, n, SEVERITIES[one]) for n, one in enumerate((issues or {}).get(seat, ""), 1)]
        script[f"attack/{seat}"] = {"issues": rows, "case": "", "concedes": [], "verdict": own_words.get(seat, "STAND")}
    alike = [seat for seat in drafted if conclusions[seat] == conclusions[leader]]
    script["triage/chair"] = triage or {
        "agreed": list(agreed),
        "contested": [point.text for point in points] if contested is None else list(contested),
        **dict(zip(CRITERIA, (one == "t" for one in criteria), strict=True)),
        "reason": "It is the most complete.",
        "leader": leader,
        "same_as_leader": list(same_as_leader if same_as_leader is not None else alike),
        "sides": [
            {"seat": seat, "position": position, "assumes": assumes}
            for point in points[:1]
            for seat, (position, assumes) in point.sides.items()
        ],
    }
    body = text or f"Use {OPTIONS[answer]}, because it carries the load that is expected of it."
    rule = raw or make_ruling(attack, changes, unknown, body, assessment)
    script["verdict/chair"] = [first_raw, rule] if first_raw else rule
    setup = Setup(
        "adversarial",
        QUESTION,
        {**own, "chair": CHAIR},
        script,
        fallbacks=troubles.fallbacks,
        faults=troubles.faults({**steps, "chair": chair_steps}),
        stop_at=troubles.stop_at,
    )
    return Case(f"adversarial: {name}", level, setup, truth, outcome=outcome_line, **case)


CRITERIA = ("same_conclusion", "no_critical_flag", "no_contradiction", "mostly_high")


def word_for(severities: str) -> str:
    return "REJECTED" if "F" in severities else "MODIFIED" if "M" in severities else "STAND"


def build_issue(seat: str, n: int, severity: str) -> Json:
    return {
        "severity": severity,
        "hits": f"claim {n}",
        "flaw": f"The claim is wrong ({MARKS[seat]} {n}).",
        "correction": "Measure it.",
    }


def make_ruling(
    attack: AttackFacts, changes: Sequence[str], unknown: str, body: str, assessment: str
) -> Callable[[Json], Json]:
    """Return a chair that rules by the labels in its prompt."""

    def rule(request: Json) -> Json:
        words = "\n".join(message["content"] for message in request["messages"])
        blocks = re.findall(r"<<<(issue-\d+) (\w+)\n(.*?)\n\2>>>", words, re.DOTALL)
        ids = {f"{seat}-{n}": f"({mark} {n})" for seat, mark in MARKS.items() for n in range(1, 9)}
        labels = {name: label for label, _, text in blocks for name, mark in ids.items() if mark in text}
        points = []
        for name, ruling in attack.rulings.items():
            row = {
                "issue": labels[name],
                "same_as": labels.get(attack.same_as.get(name, ""), "none"),
                "why": "so it is",
            }
            decisions = {"+": [True], "-": [False], "both": [True, False], "": []}[ruling]
            points += [{**row, "landed": landed} for landed in decisions]
        if unknown:
            points.append({"issue": unknown, "same_as": "none", "why": "so it is", "landed": True})
        others = find_marked(request, "Draft")
        return {
            "points": points,
            **({"outcome": attack.outcome} if attack.outcome else {}),
            "replaced_by": others.get(attack.replaced_by, "none"),
            "changes": [{"issue": labels[name], "change": "It names the measured load."} for name in changes],
            "answer": body,
            "assessment": assessment,
        }

    return rule


# Ranking


def ranking(
    name: str,
    level: str,
    outcome_line: str,
    first: str = "RRR",
    answer: str = "R",
    *,
    orders: Mapping[str, str],
    points: Sequence[Point] = (),
    agreed: Sequence[str] = ("a queue is needed",),
    has_notes: bool = True,
    is_assessed: bool = True,
    notes: Json | None = None,
    troubles: Troubles = NO_TROUBLES,
    members: Sequence[str] = MEMBERS,
    status: str = "complete",
    text: str = "",
    **case: Any,
) -> Case:
    """Return a ranking. `orders` holds each reader's ballot by the first letters of the authors: "bg"."""
    seats = GREEK[: len(first)]
    own = seat_members(seats, members)
    letters = {seat[0]: seat for seat in seats}
    steps = {seat: [f"answer/{seat}", f"rank/{seat}/{seat}"] for seat in seats}
    truth = make_truth(
        "ranking",
        seats,
        steps,
        first,
        troubles,
        own,
        chair_steps=["synthesise/chair"],
        answer=answer,
        is_assessed=has_notes and is_assessed,
        points=tuple(points),
        agreed=tuple(agreed),
        status=status,
    )
    faults = troubles.faults({**steps, "chair": ["synthesise/chair"]})
    ballots = {
        reader: tuple(letters[one] for one in order if letters[one] in truth.first)
        for reader, order in orders.items()
        if f"rank/{reader}/{reader}" not in faults or reader in troubles.fallbacks
    }
    truth = replace(truth, ballots=ballots)

    def rank(reader: str) -> Callable[[Json], Json]:
        def answer_ballot(request: Json) -> Json:
            labels = find_marked(request, "Response")
            order = [labels[seat] for seat in ballots[reader]]
            return {"dispute": "", "reasons": [{"label": one, "why": "it is clear"} for one in order], "order": order}

        return answer_ballot

    def synthesise(request: Json) -> str:
        labels = {seat: f"Response {label}" for seat, label in find_marked(request, "Response").items()}
        body = text or f"Use {OPTIONS[answer]}, because it carries the load that is expected of it."
        if not has_notes:
            return body
        told = label_notes(build_notes(truth.first, {}, answer, points, agreed), labels)
        return f"{body}{write_notes({**told, **(notes or {})})}"

    script: dict[str, Any] = {"synthesise/chair": synthesise}
    for n, seat in enumerate(seats):
        script |= {f"answer/{seat}": recommend(seat, first[n]), f"rank/{seat}/{seat}": rank(seat)}
    setup = Setup(
        "ranking",
        QUESTION,
        {**own, "chair": CHAIR},
        script,
        fallbacks=troubles.fallbacks,
        faults=faults,
        stop_at=troubles.stop_at,
        models=tuple(own.values()) if len(seats) != 3 else (),
    )
    return Case(f"ranking: {name}", level, setup, truth, outcome=outcome_line, **case)


# The check of a finished text

PLACES = {  # passages of a text, each with the words that a correction adds
    "Start with one node": "including nightly backups",
    "Measure the load for a week": "under production traffic",
    "Buy the licence in May": "after procurement approval",
    "Train the team of six": "using recorded incidents",
}
FILLER = "That is enough for now."
CHECKED_TEXT = "\n".join(
    ["Use RabbitMQ, because it carries the load that is expected of it.", *(f"{place}.\n{FILLER}" for place in PLACES)]
)
CHECK_PHASES = (("check", "fix"), ("check-again", "fix-again"))


def build_error(seat: str, n: int, severity: str, place: str = "") -> Json:
    return {
        "severity": SEVERITIES[severity],
        "hits": place,
        "flaw": f"The claim is wrong ({MARKS.get(seat, seat)} {n}).",
        "correction": f"{place} {PLACES[place]}." if place else "Measure it.",
        "harm": "The orders are lost.",
    }


def read_labels(request: Json) -> dict[str, str]:
    """Return the labels of the errors in an author's prompt, by their names: alpha-1."""
    words = "\n".join(message["content"] for message in request["messages"])
    blocks = re.findall(r"<<<(error-\d+) (\w+)\n(.*?)\n\2>>>", words, re.DOTALL)
    marks = {**MARKS, **{seat: seat for seat in (*ADVISORS, *EXPERTS)}}
    ids = {f"{seat}-{n}": f"({mark} {n})" for seat, mark in marks.items() for n in range(1, 9)}
    return {name: label for label, _, text in blocks for name, mark in ids.items() if mark in text}


def build_rulings(request: Json, rulings: Mapping[str, str]) -> list[Json]:
    labels = read_labels(request)
    return [
        {"issue": labels[name], "same_as": "none", "why": "so it is", "landed": ruling != "-"}
        for name, ruling in rulings.items()
        if ruling
    ]


def script_check(rounds: Sequence[CheckRound], author: str, others: Sequence[str] = (), changed_to: str = "") -> Json:
    """Return the script of the check: what its readers find, and what the author, or another seat, makes of it."""
    script: Json = {}
    for (reading, fixing), one in zip(CHECK_PHASES, rounds, strict=False):
        names = [f"{reader}-{n}" for reader, said in one.errors.items() for n, _ in enumerate(said, 1)]
        places = dict(zip(names, PLACES, strict=False))
        for reader, severities in one.errors.items():
            rows = [
                build_error(reader, n, severity, places.get(f"{reader}-{n}", ""))
                for n, severity in enumerate(severities, 1)
            ]
            script[f"{reading}/{reader}"] = {"errors": rows}
        for seat in (author, *others):
            script[f"{fixing}/{seat}"] = correct_places(one.rulings, places, changed_to)
    return script


def correct_places(rulings: Mapping[str, str], places: Mapping[str, str], changed_to: str) -> Callable[[Json], Json]:
    """Return an author that corrects the text at the places of the errors that it calls right."""

    def correct(request: Json) -> Json:
        words = "\n".join(message["content"] for message in request["messages"])
        ((_, text),) = re.findall(r"<<<Text (\w+)\n(.*?)\n\1>>>", words, re.DOTALL)[:1]
        rows = build_rulings(request, rulings)
        labels = read_labels(request)
        edits = [
            {"issue": labels[name], "find": places[name], "replace": f"{places[name]} {PLACES[places[name]]}"}
            for name, ruling in rulings.items()
            if ruling == "+"
        ]
        if changed_to:
            first = re.search(r"[^.\n]*RabbitMQ[^.\n]*", text)
            assert first is not None
            change = first[0].replace("RabbitMQ", OPTIONS[changed_to])
            edits.append({"issue": rows[0]["issue"], "find": first[0], "replace": change})
        return {"rulings": rows, "edits": edits}

    return correct


def make_rounds(
    errors: Sequence[Mapping[str, str]], rulings: Sequence[Mapping[str, str]], authors: Sequence[str]
) -> tuple[CheckRound, ...]:
    """Return the readings of a text. Errors without a stated ruling are corrected."""
    found = []
    for n, one in enumerate(errors):
        said = rulings[n] if n < len(rulings) else {}
        names = [f"{reader}-{k}" for reader, severities in one.items() for k, _ in enumerate(severities, 1)]
        found.append(CheckRound(one, {name: said.get(name, "+") for name in names}, authors[n]))
    return tuple(found)


def checked(
    case: Case,
    name: str,
    level: str,
    outcome: str = "",
    *,
    errors: Sequence[Mapping[str, str]],
    rulings: Sequence[Mapping[str, str]] = (),
    missed: Mapping[str, str] | None = None,
    fixed_by: Sequence[str] | None = None,
    changed_to: str = "",
    **facts: Any,
) -> Case:
    """Return a council whose answer is checked. `errors` holds for each reading the readers that answer it."""
    author = case.setup.chair
    authors = fixed_by if fixed_by is not None else [author] * len(errors)
    rounds = make_rounds(errors, rulings, authors)
    late = [(key.rpartition("/")[2], key.partition("/")[0]) for key in missed or ()]
    truth = replace(
        case.truth,
        check=rounds,
        missed=(*case.truth.missed, *late),
        answer=changed_to or case.truth.answer,
        **facts,
    )
    script = {**case.setup.script, **script_check(rounds, author, changed_to=changed_to)}
    setup = replace(case.setup, check=True, script=script, faults={**case.setup.faults, **(missed or {})})
    return replace(case, name=f"{case.name}, {name}", level=level, outcome=outcome, setup=setup, truth=truth)


# Refine


def refine(
    name: str,
    level: str,
    outcome_line: str,
    first: str = "RRR",
    last: str = "",
    answer: str = "R",
    *,
    base: str = "alpha",
    targets: str = "bga",
    attacks: Mapping[str, str] | None = None,
    same: Mapping[str, Any] | None = None,
    rulings: Mapping[str, str] | None = None,
    said: Mapping[str, Any] | None = None,
    points: Sequence[Point] = (),
    agreed: Sequence[str] = ("a queue is needed",),
    errors: Sequence[Mapping[str, str]] | None = None,
    check_rulings: Sequence[Mapping[str, str]] = (),
    fixed_by: Sequence[str] | None = None,
    has_notes: bool = True,
    is_assessed: bool = True,
    is_settled: bool = False,
    troubles: Troubles = NO_TROUBLES,
    members: Sequence[str] = MEMBERS,
    status: str = "complete",
    more: str = "",
    **case: Any,
) -> Case:
    """Return a council that refines its drafts.

    `targets` names by first letters whose draft each seat attacks; `attacks` holds the severities that it finds there,
    `rulings` what each author makes of those in its own draft, `last` the conclusions of the versions. `base` is the
    version on which the chair builds, or the draft that is the answer; `errors` and `check_rulings` are those of the
    check.
    """
    seats = GREEK[: len(first)]
    own = seat_members(seats, members)
    letters = {seat[0]: seat for seat in seats}
    conclusions = dict(zip(seats, first, strict=True))
    versions = dict(zip(seats, last or first, strict=True))
    attacked = {seat: letters[one] for seat, one in zip(seats, targets, strict=True)}
    found = {seat: (attacks or {}).get(seat, "" if is_settled else "M") for seat in seats}
    faults = troubles.faults({seat: [f"draft/{seat}"] for seat in seats} | {"chair": []})
    drafted = [seat for seat in seats if f"draft/{seat}" not in faults or seat in troubles.fallbacks]
    author = base if is_settled else "chair"
    if is_settled:
        attacker = next(seat for seat, target in attacked.items() if target == base)
        errors = [{attacker: found[attacker]}]
    elif errors is None:
        errors = [dict.fromkeys(sorted([*(seat for seat in drafted if seat != base), base][:2]), "")]
    rounds = make_rounds(errors, check_rulings, fixed_by if fixed_by is not None else [author] * len(errors))
    steps = list_refine_steps(seats, drafted, rounds, is_settled=is_settled)
    for key in troubles.missed:
        seat = key.rpartition("/")[2]
        if key not in steps[seat]:
            steps[seat].append(key)
    chair_steps = steps.pop("chair")
    truth = make_truth(
        "refine",
        seats,
        steps,
        first,
        troubles,
        own,
        chair_steps=chair_steps,
        answer=answer,
        last={} if is_settled else {seat: versions[seat] for seat in drafted},
        is_assessed=is_settled or (is_assessed and has_notes),
        points=tuple(points),
        agreed=() if is_settled or not has_notes else tuple(agreed),
        status=status,
        is_settled=is_settled,
        check=rounds,
    )
    places = [f"{place}.\n{FILLER}" for place in PLACES]

    def rewrite(author: str) -> Callable[[Json], Json]:
        def answer_errors(request: Json) -> Json:
            marks = (rulings or {}).get(author)
            decided = dict(zip(read_labels(request), marks, strict=False)) if marks is not None else {}
            rows = build_rulings(
                request, {name: decided.get(name, "+" if marks is None else "") for name in read_labels(request)}
            )
            return {"rulings": rows, "answer": "\n".join([recommend(author, versions[author]), *places])}

        return answer_errors

    def synthesise(request: Json) -> str:
        labels = {seat: f"Response {label}" for seat, label in find_marked(request, "Response").items()}
        body = "\n".join([f"Use {OPTIONS[answer]}, because it carries the load that is expected of it.", *places])
        notes = build_notes(truth.first, truth.last, answer, points, agreed) | {"closest_draft": base}
        told = write_notes(label_notes(notes, labels)) if has_notes and len(labels) > 1 else ""
        return f"{body}{more}{told}"

    script: dict[str, Any] = {"synthesise/chair": synthesise}
    for seat in seats:
        target = attacked[seat]
        rows = [build_error(seat, n, one, list(PLACES)[n - 1]) for n, one in enumerate(found[seat], 1)]
        verdict = conclusions[seat] == conclusions[target]
        script |= {
            f"draft/{seat}": "\n".join([recommend(seat, conclusions[seat]), *places]),
            f"attack/{seat}/{seat}": {"errors": rows, "same_conclusion": (same or {}).get(seat, verdict)},
            f"rewrite/{seat}/{seat}": rewrite(seat),
        }
    script |= script_check(rounds, author, [seat for seat in seats if seat != author])
    script |= said or {}
    setup = Setup(
        "refine",
        QUESTION,
        {**own, "chair": CHAIR},
        script,
        fallbacks=troubles.fallbacks,
        faults=troubles.faults({**steps, "chair": chair_steps}),
        stop_at=troubles.stop_at,
        models=tuple(own.values()) if len(seats) != 3 else (),
    )
    return Case(f"refine: {name}", level, setup, truth, outcome=outcome_line, **case)


def list_refine_steps(
    seats: Sequence[str], drafted: Sequence[str], rounds: Sequence[CheckRound], *, is_settled: bool
) -> dict[str, list[str]]:
    """Return the steps of each seat and of the chair in the order of the protocol."""
    steps = {seat: [f"draft/{seat}"] for seat in seats}
    for seat in drafted:
        steps[seat] += [f"attack/{seat}/{seat}"] if len(drafted) > 1 else []
        steps[seat] += [] if is_settled else [f"rewrite/{seat}/{seat}"]
    steps["chair"] = [] if is_settled else ["synthesise/chair"]
    for (reading, fixing), one in zip(CHECK_PHASES, rounds, strict=False):
        for reader in () if is_settled else one.errors:
            steps[reader].append(f"{reading}/{reader}")
        if one.author and any(one.errors.values()):
            steps[one.author].append(f"{fixing}/{one.author}")
    return steps


# Solo

SOLO_PHASES = (("attack", "rewrite"), ("attack-again", "rewrite-again"))


def solo(
    name: str,
    level: str,
    *,
    errors: Sequence[str] = ("M", "m"),
    missed: Mapping[str, str] | None = None,
    stop_at: str = "",
    status: str = "complete",
    text: str = "",
    prose: bool = False,
    **case: Any,
) -> Case:
    """Return one member that attacks and rewrites its own answer. `errors` are those of each attack."""
    seats = ("alpha",)
    own = seat_members(seats)
    troubles = Troubles(missed=missed or {}, stop_at=stop_at)
    steps, attacks = ["draft/alpha"], list[tuple[str, bool]]()
    script: dict[str, Any] = {"draft/alpha": recommend("alpha", "R")}
    for (attack, rewrite), severities in zip(SOLO_PHASES, errors, strict=False):
        steps.append(f"{attack}/alpha")
        rows = [build_error("alpha", n, one) for n, one in enumerate(severities, 1)]
        script[f"{attack}/alpha"] = PERFECT if prose else {"errors": rows}
        script[f"{rewrite}/alpha"] = text or recommend("alpha", "R", f" Written after the {attack}.")
        if steps[-1] in troubles.missed or prose:
            break
        if severities:
            steps.append(f"{rewrite}/alpha")
        attacks.append((severities, bool(severities) and steps[-1] not in troubles.missed))
        if not attacks[-1][1]:
            break
    truth = make_truth(
        "solo",
        seats,
        {"alpha": steps},
        "R",
        troubles,
        own,
        chair_steps=[],
        answer="R",
        status=status,
        self_attacks=tuple(attacks),
    )
    if prose:
        truth = replace(truth, missed=(("alpha", "attack"),))
    setup = Setup("solo", QUESTION, own, script, faults=troubles.faults({"alpha": steps}), stop_at=stop_at)
    return Case(f"solo: {name}", level, setup, truth, **case)


PERFECT = "It is perfect as it is."


# Advisors


def advisors(
    name: str,
    level: str,
    first: str = "RRR",
    last: str = "",
    answer: str = "R",
    *,
    rounds: int = 1,
    flow: str = "",
    points: Sequence[Point] = (),
    tensions: Sequence[str] | None = None,
    told: Json | None = None,
    raw: Any = None,
    is_assessed: bool = True,
    why: Mapping[str, str] | None = None,
    troubles: Troubles = NO_TROUBLES,
    members: Sequence[str] = MEMBERS,
    status: str = "complete",
    prose: Sequence[str] = (),
    **case: Any,
) -> Case:
    """Return a council of advisors and a referee."""
    seats = ADVISORS
    last = last or first
    own = seat_members(seats, members)
    steps = {seat: [f"r{n}/{seat}" for n in range(1, rounds + 1)] for seat in seats}
    for seat, kind in troubles.silent.items():
        if kind == "auth":  # out for the run
            steps[seat] = steps[seat][:1]
    truth = make_truth(
        "advisors",
        seats,
        steps,
        first,
        troubles,
        own,
        "referee",
        chair_steps=["referee/referee"],
        answer=answer,
        last=dict(zip(seats, last, strict=True)),
        is_assessed=is_assessed,
        is_in_turn=flow == "sequential",
        points=tuple(points),
        status=status,
        prose=tuple(prose),
    )
    spoke = [seat for seat in seats if truth.speakers[seat]]
    truth = replace(truth, last={seat: truth.last[seat] for seat in spoke})
    reply: Json = {
        "perspectives": [{"advisor": seat, "view": f"It favours {OPTIONS[truth.last[seat]]}."} for seat in spoke],
        "tensions": [point.text for point in points] if tensions is None else list(tensions),
        "sides": [
            {"advisor": seat, "position": position, "assumes": assumes}
            for point in points[:1]
            for seat, (position, assumes) in point.sides.items()
        ],
        "decision": f"Use {OPTIONS[answer]}, because it carries the load that is expected of it.",
        "shared_by": [seat for seat in truth.first if truth.first[seat] == answer],
        "next_steps": ["Measure the load."],
        "wrong_if": "The load is a tenth of it.",
    }
    if rounds > 1:
        moved = {seat: truth.first.get(seat, truth.last[seat]) != truth.last[seat] for seat in spoke}
        reply["positions"] = [
            {
                "advisor": seat,
                "opened_with": OPTIONS[truth.first.get(seat, truth.last[seat])],
                "ended_with": OPTIONS[truth.last[seat]],
                "moved": moved[seat],
                "why": (why or {}).get(
                    seat, "the measured load of 900 messages a second" if moved[seat] else "it held"
                ),
                "evidence": "",
            }
            for seat in spoke
        ]
        reply["joined"] = [seat for seat in spoke if moved[seat] and truth.last[seat] == answer]
    script: dict[str, Any] = {"referee/referee": raw or {**reply, **(told or {})}}
    for n, seat in enumerate(seats):
        script[f"r1/{seat}"] = f"Use {OPTIONS[first[n]]}. It carries the load that we expect."
        script |= {
            f"r{r}/{seat}": f"I recommend {OPTIONS[last[n]]} now, for the load that we expect."
            for r in range(2, rounds + 1)
        }
    options: Json = {"rounds": rounds} if not flow else {"flow": flow, "rounds": rounds}
    setup = Setup(
        "advisors",
        QUESTION,
        {**own, "chair": CHAIR},
        script,
        options if rounds > 1 or flow else {},
        troubles.fallbacks,
        troubles.faults({**steps, "referee": ["referee/referee"]}),
        stop_at=troubles.stop_at,
        chair="referee",
    )
    return Case(f"advisors: {name}", level, setup, truth, **case)


# General


DOCUMENTS = {
    "docs/load.md": "# Load of the queue\n\nThe orders reach the queue at 900 messages a second on a busy day.\n",
    "docs/cost.md": "# Cost of the queue\n\nA managed queue for orders costs a fifth of one that we run ourselves.\n",
}
QUESTIONS = {"D": "Is a broker needed?", "L": "Is the load high?", "C": "Is it cheap to run?"}


def general(
    name: str,
    level: str,
    answers: Mapping[str, str],
    *,
    words: Mapping[str, str] | None = None,
    has_search: bool = False,
    sources: Mapping[str, Sequence[int]] | None = None,
    cited: Sequence[int] = (),
    added: Point | None = None,
    options: Json | None = None,
    troubles: Troubles = NO_TROUBLES,
    members: Sequence[str] = MEMBERS,
    status: str = "complete",
    text: str = "",
    grounds: str = "the drill of last month shows that the other side is right",
    **case: Any,
) -> Case:
    """Return a general council. `answers` holds by question what each expert says: y, n, or - for nothing.

    `words` holds by question each expert's word in the second round: M, C, N, or - for no answer.
    """
    seats = EXPERTS
    own = seat_members(seats, members)
    said = {
        seat: {QUESTIONS[letter]: {"y": "yes", "n": "no"}[row[n]] for letter, row in answers.items() if row[n] != "-"}
        for n, seat in enumerate(seats)
    }
    full = {"M": "MAINTAIN", "C": "CONCEDE", "N": "NUANCE"}
    second = {
        QUESTIONS[letter]: {seat: full[row[n]] for n, seat in enumerate(seats) if row[n] != "-"}
        for letter, row in (words or {}).items()
    }
    faults = troubles.faults({seat: [f"r1/{seat}", f"r2/{seat}"] for seat in seats} | {"chair": []})
    answered = [seat for seat in seats if f"r1/{seat}" not in faults or seat in troubles.fallbacks]
    disputes = [
        letter
        for letter, row in answers.items()
        if len({one for one, seat in zip(row, seats, strict=True) if one != "-" and seat in answered}) > 1
    ]
    disputing = [
        seat
        for n, seat in enumerate(seats)
        if seat in answered and any(answers[letter][n] != "-" for letter in disputes)
    ]
    no_second = bool((options or {}).get("no_deliberate"))
    steps = {seat: [f"r1/{seat}", *([f"r2/{seat}"] if seat in disputing and not no_second else [])] for seat in seats}
    claims = ClaimFacts(
        {seat: said[seat] for seat in answered},
        second,
        has_search,
        {seat: tuple((sources or {}).get(seat, ())) for seat in answered},
        tuple(cited),
        added,
    )
    chair_steps = [*(["research/chair"] if has_search else []), "clerk/chair", "synthesise/chair"]
    if len(answered) < 2:
        chair_steps = ["synthesise/chair"]
    truth = make_truth(
        "general",
        seats,
        steps,
        "yyy",
        troubles,
        own,
        chair_steps=chair_steps,
        answer="y",
        status=status,
        claims=claims,
    )
    names = {letter: f"D{n}" for n, letter in enumerate(disputes, 1)}
    cites = "".join(f" [{n}]" for n in cited)
    body = text or f"Use a broker, because it carries the load that is expected of it{cites}."

    def synthesise(request: Json) -> Json:
        prompt = "\n".join(message["content"] for message in request["messages"])
        rows = [
            {
                "disagreement": topic,
                "because": "they expect different loads",
                "sides": [{"position": side, "case": f"The case for {side}."} for side in ("yes", "no")],
            }
            for letter, topic in names.items()
            if re.search(rf"\b{topic}\b", prompt)
        ]
        extra = (
            []
            if added is None
            else [
                {
                    "question": added.text,
                    "sides": [{"member": seat, "position": one} for seat, (one, _) in added.sides.items()],
                }
            ]
        )
        return {"answer": body, "disagreements": rows, "added_disagreements": extra}

    def reconsider(n: int) -> Callable[[Json], Json]:
        def answer_disputes(request: Json) -> Json:
            topics = request["schema"]["properties"]["answers"]["items"]["properties"]["topic"]["enum"]
            rows = []
            for letter, topic in names.items():
                if topic in topics and answers[letter][n] != "-":
                    word = full[(words or {}).get(letter, "MMM")[n]]
                    paragraph = f"{word}: {grounds}."
                    rows.append({"topic": topic, "word": word, "paragraph": paragraph, "confidence": 0.8})
            return {"answers": rows}

        return answer_disputes

    script: dict[str, Any] = {
        "research/chair": {"queries": ["queue load orders", "queue cost orders"]},
        "clerk/chair": {"groups": []},
        "synthesise/chair": synthesise,
        "synthesise/again/chair": synthesise,
    }
    for n, seat in enumerate(seats):
        rows = [
            {
                "question": question,
                "answer": one,
                "text": f"The answer to this is {one}.",
                "holds_when": "",
                "confidence": 0.9,
                "sources": list((sources or {}).get(seat, ())),
            }
            for question, one in said[seat].items()
        ]
        script[f"r1/{seat}"] = {
            "response": "A broker carries the load.",
            "claims": rows,
            "sources": list((sources or {}).get(seat, ())),
            "confidence": 0.9,
            "areasOfUncertainty": [],
        }
        script[f"r2/{seat}"] = reconsider(n)
    search = {"search": "files:docs"} if has_search else {"no_search": True}
    setup = Setup(
        "general",
        "Is a broker needed for the queue of orders?",
        {**own, "chair": CHAIR},
        script,
        {**search, **(options or {})},
        troubles.fallbacks,
        troubles.faults({**steps, "chair": chair_steps}),
        files=DOCUMENTS if has_search else {},
        stop_at=troubles.stop_at,
    )
    return Case(f"general: {name}", level, setup, truth, **case)


# Judges


MATERIAL = "limit = 3\nretries = limit * 2\nprint(retries)\n"


def judges(
    name: str,
    level: str,
    outcome_line: str,
    votes: str = "PP",
    last: str = "",
    *,
    verdict: str,
    confidence: str = "",
    findings: Mapping[str, Sequence[Finding]] | None = None,
    reasons: Mapping[str, str] | None = None,
    weak: Sequence[str] = (),
    doubt: str = "",
    disputed: tuple[str, str] | None = None,
    options: Json | None = None,
    troubles: Troubles = NO_TROUBLES,
    members: Sequence[str] = MEMBERS,
    files: Mapping[str, str] | None = None,
    question: str = "core.py",
    status: str = "complete",
    truncated: Sequence[str] = (),
    has_hole: bool = False,
    is_empty: bool = False,
    is_substituted: bool = False,
    protocol: str = "judges",
    **case: Any,
) -> Case:
    """Return a review. `last` are the votes after a debate; `disputed` is a judge that opposes a finding, and why."""
    seats = tuple(f"judge-{n}" for n in range(1, len(votes) + 1))
    own = seat_members(seats, members)
    has_debate = bool(last)
    last = last or votes
    phases = ("r1", "r2") if has_debate else ("judge",)
    steps = {seat: [f"{phase}/{seat}" for phase in phases] for seat in seats}
    faults = troubles.faults(steps)
    steps = {
        seat: keys if keys[0] not in faults or seat in troubles.fallbacks else keys[:1] for seat, keys in steps.items()
    }
    answered = [seat for seat in seats if steps[seat][0] not in faults or seat in troubles.fallbacks]
    held = {seat: list((findings or {}).get(seat, ())) for seat in answered}
    sure = dict(zip(seats, confidence or "H" * len(seats), strict=True))
    kept = [seat for seat in answered if f"r2/{seat}" in faults and seat not in troubles.fallbacks]
    final = {seat: VERDICTS[votes[n] if seat in kept else last[n]] for n, seat in enumerate(seats) if seat in answered}
    insights = {seat: f"The limit is what decides for {seat}." for seat in seats}
    target = next((one for rows in held.values() for one in rows), None)
    review = ReviewFacts(
        verdict,
        final,
        {seat: {"H": "HIGH", "M": "MEDIUM", "L": "LOW"}[sure[seat]] for seat in answered},
        held,
        reasons or {},
        insights,
        (target, *disputed) if disputed and target else None,
        tuple(weak),
        doubt,
        has_hole,
        is_empty,
        is_substituted,
    )
    truth = make_truth(
        protocol,
        seats,
        steps,
        [VERDICTS[one] for one in votes],
        troubles,
        own,
        chair_steps=[],
        answer=verdict,
        last=final,
        status=status,
        review=review,
        truncated=tuple(truncated),
    )
    script: dict[str, Any] = {}
    for n, seat in enumerate(seats):
        reply = {
            "verdict": VERDICTS[votes[n]],
            "confidence": {"H": "HIGH", "M": "MEDIUM", "L": "LOW"}[sure[seat]],
            "key_insight": insights[seat],
            "findings": [build_finding(one) for one in (findings or {}).get(seat, ())],
            "recommendation": "Check the limit before the release.",
            "schema_version": 2,
        }
        challenges = []
        if disputed and disputed[0] == seat:
            owner = next(one for one, rows in held.items() if rows)
            challenges = [{"target_judge": owner, "claim": f"{owner}.F1", "response": disputed[1]}]
        again = {
            **reply,
            "verdict": VERDICTS[last[n]],
            "findings": [],
            "debate_notes": {"revised_from": None, "steel_man": "", "challenges": challenges, "acknowledgments": []},
            "reason": (reasons or {}).get(seat, "I am not persuaded."),
            "withdrawn": [],
            "supports": [],
            "settled": [],
            "blind_spots": [],
        }
        script |= {f"judge/{seat}": reply, f"r1/{seat}": reply, f"r2/{seat}": again}
        script |= {key: Cut(script[key]) for key in truncated if key in script and key.endswith(f"/{seat}")}
    more: Json = {"debate": True} if has_debate else {}
    more |= {"count": len(seats)} if protocol == "judges" and len(seats) != 2 else {}
    setup = Setup(
        protocol,
        question,
        own,
        script,
        {**more, **(options or {})},
        troubles.fallbacks,
        troubles.faults(steps),
        files={"core.py": MATERIAL} if files is None else files,
        stop_at=troubles.stop_at,
    )
    return Case(f"{protocol}: {name}", level, setup, truth, outcome=outcome_line, **case)


def build_finding(finding: Finding) -> Json:
    return {
        "severity": finding.severity,
        "category": "logic",
        "description": finding.text,
        "location": "core.py:1",
        "quote": "limit = 3" if finding.has_quote else "",
        "recommendation": "Check the limit first.",
        "fix": "Check the limit.",
        "why": "It was left out.",
        "ref": "core.py:1",
    }


def consolidated(
    task: str,
    name: str,
    level: str,
    first: str = "RRR",
    answer: str = "R",
    *,
    told: Json | None = None,
    raw: Any = None,
    is_assessed: bool = True,
    troubles: Troubles = NO_TROUBLES,
    members: Sequence[str] = MEMBERS,
    status: str = "complete",
    prose: Sequence[str] = (),
    **case: Any,
) -> Case:
    """Return a brainstorm or research of judges, which a chair consolidates."""
    seats = tuple(f"judge-{n}" for n in range(1, len(first) + 1))
    own = seat_members(seats, members)
    steps = {seat: [f"judge/{seat}"] for seat in seats}
    truth = make_truth(
        "judges",
        seats,
        steps,
        first,
        troubles,
        own,
        chair_steps=["consolidate/chair"],
        answer=answer,
        status=status,
        is_assessed=is_assessed,
        prose=tuple(prose),
    )
    script: dict[str, Any] = {}
    for n, seat in enumerate(seats):
        choice = f"Take {OPTIONS[first[n]]}, unless the load is a tenth of it."
        option = {
            "name": OPTIONS[first[n]],
            "what": "A queue.",
            "pros": ["fast"],
            "cons": ["new"],
            "assessment": "It is fine.",
        }
        facet = {"name": "load", "findings": ["It is 900 messages a second."]}
        script[f"judge/{seat}"] = (
            {"working": "", "options": [option], "recommendation": choice}
            if task == "brainstorm"
            else {"facets": [facet], "findings": ["The load is high."], "open_questions": [], "recommendation": choice}
        )
    script["consolidate/chair"] = raw or {
        "trade_offs": [{"option": OPTIONS[answer], "buys": "speed", "costs": "money"}] if task == "brainstorm" else [],
        "themes": [{"name": "load", "findings": ["It is high."]}] if task == "research" else [],
        "open_questions": [],
        "recommendation": f"Take {OPTIONS[answer]}, because it carries the load that is expected of it.",
        "shared_by": [seat for seat in truth.first if truth.first[seat] == answer],
        **(told or {}),
    }
    setup = Setup(
        "judges",
        f"{task} {QUESTION}",
        {**own, "chair": CHAIR},
        script,
        {"count": len(seats)},
        troubles.fallbacks,
        troubles.faults({**steps, "chair": ["consolidate/chair"]}),
        stop_at=troubles.stop_at,
    )
    return Case(f"{task}: {name}", level, setup, truth, **case)


def quick_fact(name: str, level: str, text: str, **case: Any) -> Case:
    """Return a short question that one model answers with one call."""
    seats = ("judge-1",)
    own = seat_members(seats)
    truth = make_truth("quick", seats, {"judge-1": ["answer/judge-1"]}, ["fact"], NO_TROUBLES, own, chair_steps=[])
    setup = Setup("quick", "What is the capital of Mongolia?", own, {"answer/judge-1": text})
    return Case(f"quick: {name}", level, setup, truth, **case)
