"""Write the store of version 0.2.0: README.md says how to run this. Needs the package and the tests of that version."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.fake_provider import FakeProvider, Reply, Seen

from council.runs.service import Convener
from council.version import __version__

VERSION = "0.2.0"
TARGET = Path(__file__).resolve().parent / VERSION
PROJECT, DATA, USER = Path("/tmp/project"), Path("/tmp/council-data"), Path("/tmp/council-user")
PORT = 8765
SEATS = ("alpha", "beta", "gamma")
VENDORS = {"alpha": "north", "beta": "east", "gamma": "south", "chair": "west"}
CALC = "def mean(values):\n    return sum(values) / len(values)\n"
ENV = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": os.environ["PYTHONPATH"],
    "HOME": str(USER),
    "COUNCIL_DATA": str(DATA),
    "COUNCIL_MODEL_LISTS": "off",
    "XDG_CONFIG_HOME": str(USER),
    "XDG_CACHE_HOME": str(USER / "cache"),
    "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
}
Script = dict[str, dict[str, Any]]
made: dict[str, dict[str, str]] = {"finished": {}, "unfinished": {}, "failed": {}}


# Answers


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def reply(**fields: Any) -> dict[str, Any]:
    return {"reply": fields}


def draft(choice: str, why: str, level: str = "HIGH", flag: str = "") -> dict[str, Any]:
    flags = f"\n\n**Flags:** {flag}" if flag else ""
    return text(f"## Recommendation\n\n{choice}\n\n{why}\n\n**Confidence:** {level}{flags}")


def notes(words: str) -> dict[str, Any]:
    """Return a synthesis with its notes, after which gamma keeps another view."""
    sides = [
        {"seat": "Alpha", "position": "Audits read little", "assumes": "one audit a year"},
        {"seat": "Gamma", "position": "Audits read all", "assumes": "audits stay complete"},
    ]
    told = {
        "agreed": ["The archive is read less than once a month."],
        "contested": [{"point": "How much an audit reads", "sides": sides}],
        "unique": [{"seat": "Gamma", "point": "Audits read the whole archive."}],
        "taken_from": [{"seat": "Beta", "point": "Reads take 5 hours."}],
        "closest_draft": "Alpha",
        "recommendation_shared_by": ["Alpha", "Beta"],
        "joined": ["Gamma"],
    }
    return text(f"{words}\n\n```council-notes\n{json.dumps(told)}\n```")


MOVE = "Move the archive to cold storage."
DRAFTS = {
    "draft/alpha": draft(MOVE, "It costs 4 dollars per terabyte instead of 23, and is read once a month."),
    "draft/beta": draft(MOVE, "Reads take 5 hours, which no reader notices.", "MEDIUM"),
    "draft/gamma": draft("Keep the archive on disk.", "Every audit reads all of it.", "MEDIUM", "CRITICAL: audits"),
}
IMPROVED = {f"improve/{seat}": draft(MOVE, f"Keep the last year on disk for audits ({seat}).") for seat in SEATS}
SYNTHESIS = notes("Move the archive to cold storage, and keep the last year on disk.")
ATTACKED = DRAFTS | {
    "triage/chair": reply(
        agreed=["Reads are rare."],
        contested=["How much an audit reads"],
        same_conclusion=False,
        no_critical_flag=False,
        no_contradiction=False,
        mostly_high=False,
        reason="Alpha's draft has the figures.",
        leader="alpha",
        same_as_leader=["beta"],
        sides=[{"seat": "gamma", "position": "Audits read all", "assumes": "audits stay complete"}],
    ),
    "attack/gamma": reply(
        issues=[
            {
                "severity": "MAJOR",
                "hits": "read once a month",
                "flaw": "An audit reads all of it.",
                "correction": "Keep the last year on disk.",
                "harm": "The audit takes weeks.",
            }
        ],
        case="Audits are not rare.",
        concedes=["It is cheaper."],
        verdict="MODIFIED",
    ),
}
CHECKED = {
    f"check/{seat}": reply(
        errors=[
            {
                "severity": "MAJOR",
                "hits": "keep the last year on disk",
                "flaw": "Audits ask for two years.",
                "correction": "keep the last two years on disk",
                "harm": "An audit waits for a year of data.",
            }
        ]
    )
    for seat in SEATS
}
RESEARCHED = {
    "research/chair": reply(queries=["cold storage archive dollars"]),
    **{
        f"r1/{seat}": reply(
            response=f"Cold storage costs {price} dollars per terabyte and month [1].",
            claims=[
                {
                    "question": "What does cold storage cost per terabyte and month?",
                    "answer": f"{price} dollars",
                    "text": f"It costs {price} dollars.",
                    "holds_when": "",
                    "confidence": 0.9,
                    "sources": [1],
                }
            ],
            sources=[1],
            confidence=0.8,
            areasOfUncertainty=["The price of reads."],
        )
        for seat, price in (("generalist", 4), ("skeptic", 4), ("domain_expert", 23))
    },
}


def finding(severity: str, words: str, quote: str) -> dict[str, str]:
    return {
        "severity": severity,
        "category": "correctness",
        "description": words,
        "location": "calc.py:2",
        "quote": quote,
        "recommendation": "Refuse an empty list.",
        "fix": "if not values:\n    raise ValueError('no values')",
        "why": "An empty list has no mean.",
        "ref": "",
    }


DIVISION = "return sum(values) / len(values)"
FAIL = reply(
    verdict="FAIL",
    confidence="HIGH",
    key_insight="An empty list divides by zero.",
    findings=[finding("critical", "An empty list raises ZeroDivisionError.", DIVISION)],
    recommendation="Refuse an empty list.",
)
WARN = reply(
    verdict="WARN",
    confidence="MEDIUM",
    key_insight="The division by zero is not handled.",
    findings=[
        finding("significant", "mean([]) divides by zero.", DIVISION),
        finding("minor", "The function has no type hints.", "def mean(values):"),
    ],
    recommendation="Handle the empty list.",
)
JUDGES = {"r1/judge-1": FAIL, "r1/judge-2": WARN, "judge/judge-1": FAIL, "judge/judge-2": WARN}
GROUPED = reply(groups=[{"findings": ["judge-1.F1", "judge-2.F1"], "defect": "An empty list divides by zero."}])
DEBATE = {
    "r2/judge-1": reply(
        verdict="FAIL", confidence="HIGH", key_insight="It divides by zero.", findings=[], reason="", supports=[]
    ),
    "r2/judge-2": reply(
        verdict="FAIL",
        confidence="HIGH",
        key_insight="It divides by zero.",
        findings=[],
        reason="I missed that calc.py:2 raises for an empty list.",
        supports=["judge-1.F1"],
        debate_notes={"revised_from": "WARN"},
    ),
}
SEEN = {f"draft/{seat}/look-1/{seat}": reply(files=["calc.py"], names=[], patterns=[]) for seat in SEATS}


# The command


def in_toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(name)} = {in_toml(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(in_toml, value)) + "]"
    return json.dumps(value)


def write_answers(script: Script) -> None:
    lines = ["# every other step is answered plausibly"]
    for key, line in script.items():
        lines += [f"[{json.dumps(key)}]", *(f"{name} = {in_toml(value)}" for name, value in line.items())]
    (PROJECT / "answers.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")


def start(arguments: tuple[str, ...]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "council", *arguments],
        cwd=PROJECT,
        env=ENV,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(DATA / "council.db")) as db:
        return db.execute(query).fetchall()


def last_run() -> str:
    return str(rows("SELECT id FROM runs ORDER BY created DESC LIMIT 1")[0][0])


def finish(name: str, script: Script, *arguments: str, status: str = "complete") -> None:
    """Make a finished run with these answers."""
    write_answers(script)
    out, err = start((*arguments, "--trust", "--json")).communicate(timeout=60)
    told = json.loads(out)
    if told.get("status") != status:
        raise SystemExit(f"{name}: not {status}: {err or out}")
    made["finished" if status == "complete" else "failed"][name] = told["run"]
    print(f"{name}: {status}", flush=True)


def interrupt(name: str, script: Script, held: str, *arguments: str, how: signal.Signals = signal.SIGKILL) -> None:
    """Make an unfinished run: end its process while the step is asked and all others of its phase have answered."""
    write_answers(script | {held: {"stall": True}})  # members over endpoints do not read it
    before = last_run()
    process = start((*arguments, "--trust"))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.2)
        run = last_run()
        open_steps = rows(
            f"SELECT key FROM intents WHERE run = '{run}' AND key NOT IN (SELECT key FROM results WHERE run = '{run}')"
        )
        if run != before and open_steps == [(held,)]:
            break
    else:
        raise SystemExit(f"{name}: no run that waits for {held} alone")
    process.send_signal(how)
    process.communicate(timeout=60)
    made["unfinished"][name] = run
    print(f"{name}: stopped at {held}", flush=True)


# Runs


def make_finished_runs() -> None:
    cold = "Should the archive move to cold storage"
    mixed = DRAFTS | IMPROVED | {"synthesise/chair": SYNTHESIS, "merge/chair": SYNTHESIS}
    finish("collaborative", mixed, "--protocol", "collaborative", f"{cold}?")
    finish("adversarial", ATTACKED, "--protocol", "adversarial", f"{cold} against all doubts?")
    finish("triad", mixed, "--protocol", "triad", f"{cold} in one round?")
    finish("triad, checked", mixed | CHECKED, "--protocol", "triad", "--check", f"{cold} after a check?")
    finish("triad, looked", mixed | SEEN, "--protocol", "triad", "--look", "Is calc.py correct?")
    finish("advisors", {}, "--protocol", "advisors", f"{cold} by advice?")
    for flow in ("sequential", "debate"):
        finish(
            f"advisors, two rounds, {flow}",
            {},
            *("--protocol", "advisors", "--rounds", "2", "--flow", flow, f"{cold} by {flow} advice?"),
        )
    finish(
        "general",
        RESEARCHED,
        *("--protocol", "general", "--search", "files:notes", "What does cold storage of the archive cost?"),
    )
    finish("ranking", mixed, "--protocol", "ranking", f"{cold} by ballot?")
    finish("refine", mixed | CHECKED, "--protocol", "refine", f"{cold} after a rewrite?")
    finish("solo", mixed, "--protocol", "solo", f"{cold} by one member?")
    finish("adaptive", mixed, "--protocol", "adaptive", "How much does cold storage of 10 TB cost in a year?")
    finish("panel", mixed, "--protocol", "panel", f"{cold} by panel?")
    finish("quick", {}, "--protocol", "quick", "What is the capital of Mongolia?")
    finish("judges", JUDGES | {"grouping/clerk": GROUPED}, "validate", "calc.py")
    finish("judges, quick", JUDGES, "validate", "calc.py", "--quick")
    finish("judges, debate", JUDGES | DEBATE | {"grouping/clerk": GROUPED}, "validate", "calc.py", "--debate")
    finish("judges, brainstorm", {}, "brainstorm", "Ways to shrink the archive")
    finish("judges, research", {}, "research", "How do others store archives?")


def make_unfinished_runs() -> None:
    mixed = DRAFTS | IMPROVED
    collaborative = ("--protocol", "collaborative", "Keep the interrupted run?")
    interrupt("collaborative", mixed, "improve/gamma", *collaborative, how=signal.SIGINT)
    interrupt("adversarial", ATTACKED, "attack/gamma", "--protocol", "adversarial", "Keep the killed run?")
    interrupt("triad, checked", DRAFTS, "check/beta", "--protocol", "triad", "--check", "Keep the checked run?")
    interrupt(
        "advisors, two rounds, sequential",
        {},
        "r2/skeptic",
        *("--protocol", "advisors", "--rounds", "2", "--flow", "sequential", "Keep the advice?"),
    )
    interrupt("refine", DRAFTS, "rewrite/gamma/gamma", "--protocol", "refine", "Keep the versions?")
    interrupt("adaptive", {}, "draft/gamma", "--protocol", "adaptive", "Keep the answers?")
    interrupt("judges, debate", JUDGES, "r2/judge-2", "validate", "calc.py", "--debate")


def answer_over_endpoints(seen: Seen) -> Reply | None:
    """Agree, as members of several vendors that cost money."""
    name = (seen.body.get("response_format") or {}).get("json_schema", {}).get("name", "")
    match name:
        case "Answer":
            fields = {"answer": "It is 408.", "conclusion": "408", "confidence": "HIGH", "doubts": []}
            return Reply(text=json.dumps(fields))
        case "Draft":
            said = "Both vendors charge the same. " + "Their price lists have the same figures. " * 5
            return Reply(text=json.dumps({"draft": said, "conclusion": "Yes", "confidence": "HIGH", "doubts": []}))
        case "Confirmation":
            return Reply(text=json.dumps({"same_conclusion": True, "errors": []}))
        case _ if seen.model == "gamma" and "Keep the paid run" in seen.prompt and "draft" in seen.prompt.lower():
            return Reply(hang=True) if seen.nth > 1 else None
    return None


def make_paid_runs() -> None:
    seats = [part for seat, vendor in VENDORS.items() for part in ("--seat", f"{seat}={vendor}:{seat}")]
    with FakeProvider(port=PORT, models=tuple(VENDORS)) as provider:
        provider.answer = answer_over_endpoints
        finish("adaptive, stopped, paid", {}, "--protocol", "adaptive", *seats, "What is 17 * 24?")
        capped = ("--max-cost", "0.50", "Do both vendors charge the same?")
        finish(
            "collaborative, stopped, paid, with a cap",
            {},
            "--protocol",
            "collaborative",
            "--early-stop",
            *seats,
            *capped,
        )
        paid = ("--protocol", "collaborative", *seats, "Keep the paid run?")
        interrupt("collaborative, paid", {}, "improve/gamma", *paid)


def label_a_run() -> None:
    run = made["finished"]["collaborative"]
    subprocess.run(
        [sys.executable, "-m", "council", "outcome", run, "right", "--note", "The bill fell by 80 %."],
        cwd=PROJECT,
        env=ENV,
        check=True,
    )
    os.environ.update(ENV)
    asyncio.run(rename(run, "Cold storage for the archive"))


async def rename(run: str, title: str) -> None:
    convener = Convener(PROJECT)
    try:
        await convener.rename(run, title)
    finally:
        await convener.close()


# Files


def write_project() -> None:
    for folder in (PROJECT, DATA, USER):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
    (PROJECT / "notes").mkdir()
    (PROJECT / "notes" / "prices.md").write_text(
        "# Prices\n\nCold storage of the archive costs 4 dollars per terabyte and month, disks cost 23 dollars.\n",
        encoding="utf-8",
    )
    (PROJECT / "calc.py").write_text(CALC, encoding="utf-8")
    lines = []
    for table in ("models", *(f"seats.{seat}" for seat in SEATS), "chair"):
        names = ("default", "strong", "fast") if table == "models" else ("model",)
        lines += [f"[{table}]", *(f'{name} = "scripted:answers.toml"' for name in names)]
    (PROJECT / "council.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")
    lines = []
    for vendor in VENDORS.values():
        lines += [f"[providers.{vendor}]", 'wire = "openai"', f'base_url = "http://127.0.0.1:{PORT}/v1"']
        lines += [f'[prices."{vendor}:*"]', "input = 1.0", "output = 4.0"]
    (USER / "council").mkdir()
    (USER / "council" / "config.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")


def pack() -> None:
    """Write the store, the project and the list of its runs."""
    write_answers({})
    with closing(sqlite3.connect(DATA / "council.db")) as db:
        db.execute("UPDATE runs SET setup = json_set(setup, '$.owner', 'reader@desk')")  # not this machine's
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("VACUUM")
        db.execute("PRAGMA journal_mode = DELETE")
    TARGET.mkdir(exist_ok=True)

    def neutral(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        return info

    with tarfile.open(TARGET / "store.tar.xz", "w:xz", preset=9) as packed:
        packed.add(DATA / "council.db", "council.db", filter=neutral)
        packed.add(DATA / "reports", "reports", filter=neutral)
        packed.add(PROJECT, "project", filter=neutral)
        packed.add(USER / "council" / "config.toml", "config.toml", filter=neutral)
    lines = [f"# The runs of store.tar.xz, version {VERSION}"]
    for kind, runs in made.items():
        lines += ["", f"[{kind}]", *(f'{json.dumps(name)} = "{run}"' for name, run in runs.items())]
    (TARGET / "runs.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> None:
    if __version__ != VERSION:
        raise SystemExit(f"council {__version__} is on the path: see README.md")
    write_project()
    make_finished_runs()
    make_unfinished_runs()
    make_paid_runs()
    broken = {f"draft/{seat}": {"fail": "auth"} for seat in SEATS}
    finish("triad", broken, "--protocol", "triad", "Does a refused key end the run?", status="failed")
    label_a_run()
    pack()


if __name__ == "__main__":
    main()
