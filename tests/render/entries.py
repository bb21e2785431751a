"""Hand-made runs: a story is told event by event and folded to minutes."""

from __future__ import annotations

from typing import Any

from council import events as ev
from council.events import Entry, Event
from council.minutes import Minutes

ROLES = {
    "collaborative": ("Deep Explorer", "Practical Builder", "Elegant Minimalist"),
    "adversarial": ("Drafter & Red Teamer", "Fact-Checker & Validator", "Optimizer & Devil's Advocate"),
}
PHASES = {
    "collaborative": [("draft", 3), ("improve", 3), ("synthesise", 1)],
    "adversarial": [("draft", 3), ("triage", 1), ("attack", 2), ("verdict", 1)],
    "triad": [("draft", 3), ("merge", 1)],
    "advisors": [("r1", 3), ("r2", 3), ("referee", 1)],
}
NAMES = ("alpha", "beta", "gamma")


def seat(name: str, role: str = "", model: str = "scripted:m1", **more: Any) -> dict[str, Any]:
    vendor = model.partition(":")[0]
    return {"name": name, "role": role, "perspective": None, "model": model, "vendor": vendor, "fallbacks": []} | more


def plan(protocol: str = "collaborative", names: tuple[str, ...] = NAMES, **more: Any) -> dict[str, Any]:
    roles = ROLES.get(protocol, ROLES["adversarial"])
    seats = [seat(name, roles[i] if i < len(roles) else "") for i, name in enumerate(names)]
    phases = [{"name": name, "calls": calls, "parallel": calls > 1} for name, calls in PHASES.get(protocol, [])]
    calls = sum(calls for _, calls in PHASES.get(protocol, []))
    return {
        "schema": "council.plan/1", "task": "ask", "protocol": protocol, "why": "nothing in the words asks for another",
        "question": "Tabs or spaces?", "target": None, "options": {}, "seats": seats, "chair": seat("chair", "Orchestrator"),
        "phases": phases, "calls": {"min": calls, "max": calls}, "agents": len(seats),
        "packet": {"files": [], "bytes": 0, "tokens": 0, "skipped": []}, "cost": None, "warnings": [], "notices": [],
    } | more  # fmt: skip


class Story:
    """Entries in order, a second apart unless told otherwise."""

    def __init__(self, the_plan: dict[str, Any] | None = None, run: str = "r7k2") -> None:
        self.entries: list[Entry] = []
        self.at = 1_800_000_000.0
        self.now = ""
        self.tell(ev.Convened(run, "council-20270115-tabs", the_plan or plan()))

    @property
    def minutes(self) -> Minutes:
        return Minutes.fold(self.entries)

    def tell(self, event: Event, after: float = 1.0) -> Story:
        self.at += after
        seq = 0 if isinstance(event, ev.PASSING) else sum(1 for entry in self.entries if entry.seq) + 1
        self.entries.append(Entry(seq, self.at, event))
        return self

    def phase(self, name: str) -> Story:
        self.now = name
        return self.tell(ev.PhaseStarted(name))

    def ended(self) -> Story:
        return self.tell(ev.PhaseEnded(self.now))

    def key(self, name: str) -> str:
        return f"{self.now}/{name}"

    def asked(self, *names: str, member: str = "scripted:m1") -> Story:
        for name in names:
            words = [
                {"role": "system", "content": "You sit."},
                {"role": "user", "content": f"Speak, {name}.\n```\nx\n```"},
            ]
            self.tell(ev.Asked(self.key(name), self.now, name, member, words), after=0)
            self.tell(ev.Attempted(self.key(name), name, 1, member), after=0)
        return self

    def said(self, name: str, text: str, **more: Any) -> Story:
        if name not in (
            entry.event.seat
            for entry in self.entries
            if isinstance(entry.event, ev.Asked) and entry.event.phase == self.now
        ):
            self.asked(name)
        fields = {
            "state": "ok", "reply": None, "served_by": "scripted:m1", "usage": {"in": 100, "out": 20, "cached": 5},
            "attempts": 1, "seconds": 3.2,
        } | more  # fmt: skip
        return self.tell(ev.Stated(self.key(name), self.now, name, said=text, **fields))

    def streamed(self, name: str, text: str) -> Story:
        return self.tell(ev.Delta(self.key(name), name, text))

    def faulted(
        self, name: str, kind: str, detail: str, n: int = 1, member: str = "scripted:m1", wait: float | None = None
    ) -> Story:
        return self.tell(ev.Faulted(self.key(name), name, n, member, kind, detail, wait))

    def again(self, name: str, n: int, why: str, member: str = "scripted:m1") -> Story:
        return self.tell(ev.Attempted(self.key(name), name, n, member, why))

    def absent(
        self, name: str, state: str = "failed(server)", reason: str = "500 from the server", attempts: int = 3
    ) -> Story:
        return self.tell(ev.WasAbsent(self.key(name), self.now, name, state, reason, attempts))

    def noted(self, what: str, why: str) -> Story:
        return self.tell(ev.Noted(what, why))

    def closed(
        self,
        answer: str = "Spaces.",
        status: str = "complete",
        stopped: str = "",
        reason: str = "",
        made: int = 7,
        **verdict: Any,
    ) -> Story:
        fields = {"answer": answer, "verdict": None, "outcome": None, "confidence": None, "incomplete": ""} | verdict
        calls = {"made": made, "replayed": 0, "in_doubt": 0}
        return self.tell(
            ev.Closed(status, fields, calls, stopped, ".agents/council/2027-01-15-collaborative-tabs.md", reason)
        )


def collaborative(the_plan: dict[str, Any] | None = None) -> Story:
    """The default council, undisturbed."""
    story = Story(the_plan or plan()).phase("draft").asked(*NAMES)
    for name in NAMES:
        story.said(name, f"{name} drafts this.")
    story.ended().phase("improve").asked(*NAMES)
    for name in NAMES:
        story.said(name, f"{name} improves that.")
    return story.ended().phase("synthesise").said("chair", "Spaces.").ended().closed()


def triage(story: Story, leader: str = "alpha") -> Story:
    reply = {"leader": leader, "reason": "best evidence", "agreed": [], "contested": ["width"]}
    return story.phase("triage").said("chair", "alpha leads", reply=reply).ended()


def drafts(story: Story) -> Story:
    story.phase("draft").asked(*NAMES)
    for name in NAMES:
        story.said(name, f"{name} drafts this.")
    return story.ended()


def adversarial() -> Story:
    """Drafts, a leader, two attacks, a ruling."""
    story = triage(drafts(Story(plan("adversarial"))))
    story.phase("attack").said("beta", "beta hits hard.").said("gamma", "gamma hits harder.").ended()
    story.phase("verdict").said("chair", "ruled").ended()
    return story.closed("Mostly spaces.", outcome="MODIFIED", confidence="MEDIUM")


def consensus() -> Story:
    story = triage(drafts(Story(plan("adversarial")))).noted("attack skipped", "consensus detected")
    story.phase("verdict").said("chair", "ruled").ended()
    return story.closed("Spaces.", made=5, outcome="SURVIVED", confidence="HIGH")


def one_absent() -> Story:
    """Beta fails in the draft; the other two go on to the end."""
    story = Story().phase("draft").asked(*NAMES).said("alpha", "alpha drafts this.")
    story.faulted("beta", "server", "500 from the server", wait=2.0).again("beta", 2, "after server: 500")
    story.absent("beta").said("gamma", "gamma drafts this.").ended().phase("improve")
    story.said("alpha", "alpha improves that.").said("gamma", "gamma improves that.").ended()
    return story.phase("synthesise").said("chair", "Spaces.").ended().closed()
