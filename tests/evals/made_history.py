"""A repository made for tests: commits that each add a file, some with a bug that a later commit fixes."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from council.evals.history.case_file import CaseRequest, ChosenCases, write_cases
from council.evals.history.cases import Fix, FixedLine, HistoryCase, Mined
from tests.fake_provider import Reply, Seen
from tests.packet.conftest import git

LATER = "MARK_OF_LATER_COMMITS"
SINCE = "1 year ago"
LINES = 12  # of a file
BUG_LINE = 9


@dataclass(frozen=True)
class MadeHistory:
    """A repository and the cases in it."""

    root: Path
    cases: tuple[HistoryCase, ...]

    def choose(self, *, limit: int = 30, seed: int = 0) -> ChosenCases:
        request: CaseRequest = {"repository": str(self.root.resolve()), "since": SINCE, "limit": limit, "seed": seed}
        return ChosenCases(request, Mined(self.cases))

    def write_cases(self, folder: Path, **how: int) -> None:
        folder.mkdir(parents=True)
        write_cases(folder, self.choose(**how))


def write_part(n: int) -> str:
    """Return a file whose line 9 is wrong in the commits with a bug."""
    lines = [f"def part_{n}(values):", f'    """Sum the values of part {n}."""', f"    total = {n}"]
    lines += [f"    step_{k} = {k}" for k in range(BUG_LINE - 4)]
    lines += [f"    total -= sum(values) + {n}", "    total += 0", "    helper(total)", "    return total"]
    assert len(lines) == LINES and lines[BUG_LINE - 1].startswith("    total -=")
    return "\n".join(lines) + "\n"


def make_history(root: Path, bugs: int, controls: int, *, bare: bool = False, seed: int = 0) -> MadeHistory:
    """Make a repository in which the commits 1 to `bugs` have a bug, and the others have none."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main", *(["--bare"] if bare else []))
    stream: list[str] = []
    _add_commit(stream, "Begin", {"helper.py": "def helper(value):\n    return value\n"})
    count = bugs + controls
    for n in range(1, count + 1):
        _add_commit(stream, f"Add part {n}", {f"parts/part_{n}.py": write_part(n)})
    for n in range(1, bugs + 1):
        fixed = write_part(n).replace("total -=", "total +=")
        _add_commit(stream, f"Fix the sum of part {n} ({LATER})", {f"parts/part_{n}.py": fixed})
    _add_commit(
        stream,
        f"{LATER}: add rules",
        {"AGENTS.md": f"# {LATER}\n", "helper.py": f"def helper(value):\n    return value  # {LATER}\n"},
    )
    run = ["git", "fast-import", "--quiet", "--date-format=raw"]
    subprocess.run(run, cwd=root, input="".join(stream).encode(), check=True)
    if not bare:
        git(root, "reset", "-q", "--hard", "main")
    commits = git(root, "rev-list", "--reverse", "main").split()
    cases = [_make_case(commits, n, bugs, count) for n in range(1, count + 1)]
    random.Random(seed).shuffle(cases)
    return MadeHistory(root, tuple(cases))


def _make_case(commits: Sequence[str], n: int, bugs: int, count: int) -> HistoryCase:
    fixes: tuple[Fix, ...] = ()
    if n <= bugs:
        line = FixedLine(f"parts/part_{n}.py", BUG_LINE, f"    total -= sum(values) + {n}")
        fixes = (Fix(commits[count + n], f"Fix the sum of part {n} ({LATER})", "2026-02-01", (line,)),)
    return HistoryCase(commits[n][:10], commits[n], commits[n - 1], f"Add part {n}", "2026-01-01", LINES, fixes)


def _add_commit(stream: list[str], message: str, files: dict[str, str]) -> None:
    at = 1_770_000_000 + 60 * len(stream)
    who = f"A Person <person@example.org> {at} +0000"
    stream.append(f"commit refs/heads/main\ncommitter {who}\ndata {len(message.encode())}\n{message}\n")
    for path, text in files.items():
        stream.append(f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n")


# Reviewers


def make_reviewer(recall: dict[str, float], *, seed: int = 0) -> Callable[[Seen], Reply]:
    """Return a fake model that finds the bug of a commit with a known probability, by its name, and says more."""

    def review(seen: Seen) -> Reply:
        n = int(seen.prompt.partition("parts/part_")[2].partition(".py")[0])
        findings = [make_finding(f"parts/part_{n}.py", 1, f"def part_{n}(values):", "minor")]  # no bug
        if finds(seen.model, n, recall, seed):
            findings.append(make_finding(f"parts/part_{n}.py", BUG_LINE, f"    total -= sum(values) + {n}", "critical"))
        return Reply(text=json.dumps(make_opinion(findings)))

    return review


def finds(model: str, n: int, recall: dict[str, float], seed: int = 0) -> bool:
    return random.Random(f"{seed} {model} {n}").random() < recall[model]


def make_finding(path: str, line: int, quote: str, severity: str) -> dict[str, str]:
    return {
        "severity": severity, "category": "correctness", "description": f"Line {line} does not do what its comment says.",
        "location": f"{path}:{line}", "recommendation": "Correct it.", "quote": quote, "fix": "x", "why": "y", "ref": "z",
    }  # fmt: skip


def make_opinion(findings: list[dict[str, str]]) -> dict[str, object]:
    has_critical = any(one["severity"] == "critical" for one in findings)
    return {
        "verdict": "FAIL" if has_critical else "WARN", "confidence": "HIGH", "key_insight": "One bug.",
        "recommendation": "Correct it.", "findings": findings, "schema_version": 3,
    }  # fmt: skip
