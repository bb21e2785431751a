"""Builders of judges runs, with the verdict that the rules would produce."""

from __future__ import annotations

from typing import Any

from council import events as ev
from tests.render.runs import RunBuilder, plan, seat

OPTIONS = {"quick": False, "mixed": False, "debate": False, "profile": None, "rule": "consensus"}
PACKET = {"files": ["src/auth.py"], "bytes": 2_000, "tokens": 700, "skipped": [], "holes": []}


def bench_plan(*seats: Any, task: str = "validate", packet: Any = None, options: Any = None, **more: Any) -> Any:
    judges = list(seats) or [seat("judge-1", "Judge"), seat("judge-2", "Judge")]
    chair = None if task == "validate" else seat("chair", "Lead")
    fields = {"task": task, "question": "recent", "target": "recent", "seats": judges, "chair": chair} | more
    fields |= {"options": OPTIONS | (options or {}), "packet": PACKET | (packet or {}), "phases": []}
    return plan("judges", **fields)


def red_and_blue() -> list[Any]:
    """Two families, each with an attacker and a defender."""
    lenses = (("Red", "attacker"), ("Blue", "defender"))
    return [
        seat(f"{name}-judge-{lens}", persona, f"{vendor}:m", perspective=lens)
        for name, vendor in (("claude", "anthropic"), ("codex", "openai"))
        for persona, lens in lenses
    ]


def opinion(verdict: str, confidence: str = "HIGH", why: str = "So it seems.", *findings: Any, **more: Any) -> Any:
    reply = {"verdict": verdict, "confidence": confidence, "key_insight": why, "findings": list(findings)}
    return reply | {"recommendation": "Do it.", "schema_version": 2} | more


def finding(description: str = "tokens never expire", *found_by: str, **more: Any) -> Any:
    return {
        "severity": "critical", "category": "security", "description": description, "location": "src/auth.py:2",
        "fix": "compare exp", "why": "forgotten", "ref": "src/auth.py:2", "recommendation": "check it",
        "found_by": list(found_by or ("judge-1",)), "of": 2, "verified": True, "fingerprint": "f", "disputed": False,
    } | more  # fmt: skip


def details(**more: Any) -> Any:
    return {
        "verdicts": {}, "families": {"scripted": "WARN"}, "n_eff": 1.25, "rule": "consensus", "weakened": [], "inconsistent": [],
        "dropped": [], "converged": False, "r2_missing": [], "rounds": 1, "fidelity": "full", "notes": {}, "quick": False,
        "profile": None, "mixed": False, "holes": [], "empty": False,
    } | more  # fmt: skip


def judged(the_plan: Any = None, phase: str = "judge", **replies: Any) -> RunBuilder:
    """Let every judge of the plan answer (keyword: its name with underscores, default PASS) and end the round."""
    builder = RunBuilder(the_plan or bench_plan()).phase(phase)
    for one in builder.minutes.planned_seats:
        reply = replies.get(one.name.replace("-", "_")) or opinion("PASS")
        builder.answer(one.name, f"{one.name} says {reply['verdict']}.", reply=reply, served_by=one.model)
    return builder.end_phase()


def validated(**verdict: Any) -> RunBuilder:
    """Two judges, a WARN, one shared and one single-judge finding."""
    builder = judged(judge_1=opinion("WARN", "MEDIUM", "Tokens live on."), judge_2=opinion("PASS", "HIGH", "Fine."))
    for name in ("judge-1", "judge-2"):
        builder.add(ev.Voted(name, "judge", "WARN", "HIGH", f".agents/council/2027-01-15-recent-{name}.md"))
    shared = finding("tokens never expire", "judge-1", "judge-2")
    single = finding("no docstring", "judge-1", severity="minor", location="src/no.py:9", ref="PEP 257", verified=False)
    positions = [
        {"seat": "judge-1", "family": "scripted", "verdict": "WARN", "why": "Tokens live on."},
        {"seat": "judge-2", "family": "scripted", "verdict": "PASS", "why": "Fine."},
    ]
    fields = {
        "verdict": "WARN", "confidence": "MEDIUM", "findings": [shared, single], "details": details(),
        "disagreements": [{"issue": "the verdict", "positions": positions}],
    }  # fmt: skip
    return builder.close("Compare exp.", made=2, **(fields | verdict))


def debated(**more: Any) -> RunBuilder:
    """The judges disagree in R1 and agree in R2: judge-2 changes without evidence."""
    r1 = judged(bench_plan(options={"debate": True}), "r1", judge_1=opinion("FAIL"), judge_2=opinion("PASS"))
    notes = {
        "revised_from": None, "steel_man": "It may be meant so.",
        "challenges": [{"target_judge": "judge-2", "claim": "it is safe", "response": "auth.py:2 says no"}],
        "acknowledgments": [{"source_judge": "judge-2", "point": "it is short", "impact": "none"}],
    }  # fmt: skip
    r1.phase("r2").answer("judge-1", "still", reply=opinion("FAIL")).answer(
        "judge-2", "now too", reply=opinion("FAIL")
    ).end_phase()
    shifts = [
        {"seat": "judge-1", "from": "FAIL", "to": "FAIL", "changed": False, "reason": "Not moved.", "weak": False},
        {"seat": "judge-2", "from": "PASS", "to": "FAIL", "changed": True, "reason": "They are many.", "weak": True},
    ]
    dropped = [{"seat": "judge-1", "finding": "no docstring", "severity": "minor"}]
    result = details(rounds=2, notes={"judge-1": notes}, converged=True, dropped=dropped, families={"scripted": "FAIL"})
    return r1.close("Fix it.", verdict="FAIL", confidence="HIGH", shifts=shifts, details=result | more)


def split() -> RunBuilder:
    """Two families, one PASS and one FAIL, and a finding that only one of them saw."""
    judges = red_and_blue()
    builder = judged(
        bench_plan(*judges, options={"mixed": True}),
        codex_judge_attacker=opinion("FAIL", "HIGH", "A bypass."),
        codex_judge_defender=opinion("FAIL", "LOW", "No alarm."),
    )
    positions = [
        {"seat": one["name"], "family": one["vendor"], "verdict": "PASS" if one["vendor"] == "anthropic" else "FAIL", "why": why}
        for one, why in zip(judges, ("All good.", "Guarded.", "A bypass.", "No alarm."), strict=True)
    ]  # fmt: skip
    return builder.close(
        "Close it (src/auth.py:2, codex-judge-attacker)", verdict="DISAGREE", confidence="LOW",
        findings=[finding("a bypass", "codex-judge-attacker", of=4)],
        disagreements=[{"issue": "the verdict, between families", "positions": positions}],
        insights=[{"family": "openai", "finding": "a bypass", "severity": "critical"}],
        details=details(families={"anthropic": "PASS", "openai": "FAIL"}, mixed=True, n_eff=2.5),
    )  # fmt: skip


def nothing_changed() -> RunBuilder:
    return RunBuilder(bench_plan(notices=["one family only"])).close("no changes to review", made=0)


def interrupted() -> RunBuilder:
    builder = RunBuilder(bench_plan()).phase("judge").ask("judge-1", "judge-2")
    row = {"severity": "minor", "category": "", "description": "odd name", "location": "a.py:3", "fix": "", "ref": ""}
    builder.answer("judge-1", "WARN.", reply=opinion("WARN", "LOW", "Odd.", row))
    return builder.close("## Interrupted: digest", status="incomplete", stopped="interrupted")


def failed() -> RunBuilder:
    builder = RunBuilder(bench_plan()).phase("judge")
    for name in ("judge-1", "judge-2"):
        builder.ask(name).mark_absent(name, "failed(auth)", "401")
    return builder.close("", status="failed", stopped="quorum", reason="judge-1: failed(auth)")
