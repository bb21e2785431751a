"""Builders of runs for the render tests, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from council import events as ev
from council.engine.minutes import Minutes
from council.events import Entry, Event
from council.types import FinalState

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


def plan(protocol: str = "collaborative", names: tuple[str, ...] = NAMES, **more: Any) -> Any:
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


class RunBuilder:
    """Entries in order, one second apart by default."""

    def __init__(self, the_plan: dict[str, Any] | None = None, run: str = "r7k2") -> None:
        self.entries: list[Entry] = []
        self.at = 1_800_000_000.0
        self.now = ""
        self.add(ev.Convened(run, "council-20270115-tabs", the_plan or plan()))

    @property
    def minutes(self) -> Minutes:
        return Minutes.fold(self.entries)

    def add(self, event: Event, after: float = 1.0) -> RunBuilder:
        self.at += after
        seq = 0 if isinstance(event, ev.TRANSIENT_EVENTS) else sum(1 for entry in self.entries if entry.seq) + 1
        self.entries.append(Entry(seq, self.at, event))
        return self

    def phase(self, name: str) -> RunBuilder:
        self.now = name
        return self.add(ev.PhaseStarted(name))

    def end_phase(self) -> RunBuilder:
        return self.add(ev.PhaseEnded(self.now))

    def key(self, name: str) -> str:
        return f"{self.now}/{name}"

    def ask(self, *names: str, member: str = "scripted:m1", seconds: float | None = None) -> RunBuilder:
        for name in names:
            words = [
                {"role": "system", "content": "You sit."},
                {"role": "user", "content": f"Speak, {name}.\n```\nx\n```"},
            ]
            self.add(ev.Asked(self.key(name), self.now, name, member, words), after=0)
            self.add(ev.Attempted(self.key(name), name, 1, member, seconds=seconds), after=0)
        return self

    def answer(self, name: str, text: str, **more: Any) -> RunBuilder:
        if name not in (
            entry.event.seat
            for entry in self.entries
            if isinstance(entry.event, ev.Asked) and entry.event.phase == self.now
        ):
            self.ask(name)
        fields = {
            "state": "ok", "reply": None, "served_by": "scripted:m1", "usage": {"in": 100, "out": 20, "cached": 5},
            "attempts": 1, "seconds": 3.2,
        } | more  # fmt: skip
        return self.add(ev.Stated(self.key(name), self.now, name, said=text, **fields))

    def stream(self, name: str, text: str) -> RunBuilder:
        return self.add(ev.Delta(self.key(name), name, text))

    def fault(
        self, name: str, kind: str, detail: str, n: int = 1, member: str = "scripted:m1", wait: float | None = None
    ) -> RunBuilder:
        return self.add(ev.Faulted(self.key(name), name, n, member, kind, detail, wait))

    def retry(self, name: str, n: int, why: str, member: str = "scripted:m1", **fallback: Any) -> RunBuilder:
        return self.add(ev.Attempted(self.key(name), name, n, member, why, **fallback))

    def mark_absent(
        self, name: str, state: FinalState = "failed(server)", reason: str = "500 from the server", attempts: int = 3,
        since: str = "",
    ) -> RunBuilder:  # fmt: skip
        return self.add(ev.WasAbsent(self.key(name), self.now, name, state, reason, attempts, since=since))

    def note(self, what: str, why: str, skipped: Sequence[str] = ()) -> RunBuilder:
        return self.add(ev.Noted(what, why, list(skipped)))

    def close(
        self,
        answer: str = "Spaces.",
        status: str = "complete",
        stopped: str = "",
        reason: str = "",
        made: int = 7,
        **verdict: Any,
    ) -> RunBuilder:
        fields = {"answer": answer, "verdict": None, "outcome": None, "confidence": None, "incomplete": ""} | verdict
        calls = {"made": made, "replayed": 0, "in_doubt": 0}
        return self.add(
            ev.Closed(status, fields, calls, stopped, ".agents/council/2027-01-15-collaborative-tabs.md", reason)
        )


def collaborative(the_plan: dict[str, Any] | None = None) -> RunBuilder:
    """A collaborative run without faults."""
    builder = RunBuilder(the_plan or plan()).phase("draft").ask(*NAMES)
    for name in NAMES:
        builder.answer(name, f"{name} drafts this.")
    builder.end_phase().phase("improve").ask(*NAMES)
    for name in NAMES:
        builder.answer(name, f"{name} improves that.")
    return builder.end_phase().phase("synthesise").answer("chair", "Spaces.").end_phase().close()


def triage(builder: RunBuilder, leader: str = "alpha") -> RunBuilder:
    reply = {"leader": leader, "reason": "best evidence", "agreed": [], "contested": ["width"]}
    return builder.phase("triage").answer("chair", "alpha leads", reply=reply).end_phase()


def drafts(builder: RunBuilder) -> RunBuilder:
    builder.phase("draft").ask(*NAMES)
    for name in NAMES:
        builder.answer(name, f"{name} drafts this.")
    return builder.end_phase()


def adversarial() -> RunBuilder:
    """Drafts, a leader, two attacks and a ruling."""
    builder = triage(drafts(RunBuilder(plan("adversarial"))))
    builder.phase("attack").answer("beta", "beta hits hard.").answer("gamma", "gamma hits harder.").end_phase()
    builder.phase("verdict").answer("chair", "ruled").end_phase()
    return builder.close("Mostly spaces.", outcome="MODIFIED", confidence="MEDIUM")


def consensus() -> RunBuilder:
    builder = triage(drafts(RunBuilder(plan("adversarial")))).note("attack skipped", "consensus detected", ["attack"])
    builder.phase("verdict").answer("chair", "ruled").end_phase()
    return builder.close("Spaces.", made=5, outcome="SURVIVED", confidence="HIGH")


def one_absent() -> RunBuilder:
    """Beta fails in the draft; the other two finish."""
    builder = RunBuilder().phase("draft").ask(*NAMES).answer("alpha", "alpha drafts this.")
    builder.fault("beta", "server", "500 from the server", wait=2.0).retry("beta", 2, "after server: 500")
    builder.mark_absent("beta").answer("gamma", "gamma drafts this.").end_phase().phase("improve")
    builder.answer("alpha", "alpha improves that.").answer("gamma", "gamma improves that.").end_phase()
    return builder.phase("synthesise").answer("chair", "Spaces.").end_phase().close()
