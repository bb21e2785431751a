"""Mining of a history: the commits that introduced bugs which later commits fixed, and controls."""

from __future__ import annotations

import math
import os
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError
from council.evals.history.cases import Fix, HistoryCase, Mined, Reason
from council.evals.history.messages import Message, read_message
from council.evals.history.repository import Commit, Repository, open_repository, read_since
from council.evals.history.tracing import Trace, find_added_lines, is_reviewable, touches_lines, trace_fix

WORKERS = min(4, os.cpu_count() or 1)
AHEAD = 3 * WORKERS  # fixes that are traced before it is known that they are needed
MAX_QUEUE = 300  # commits after a fix that is still traced
MAX_CANDIDATES = 150  # commits before a bug that may be its control
MAX_TRIED = 12  # of these, the most similar ones are checked
MAX_LATER_FIXES = 30  # of the files of a control
SIZE_STEPS = 2  # sizes that differ by less than a factor of 2 ** (1 / SIZE_STEPS) are equal
NO_CONTROL = ("fix", "revert", "docs", "test", "style", "typo")  # kinds of messages

Progress = Callable[[int, int], None]  # number of found bugs, number of commits read


class _Read(NamedTuple):
    commit: Commit
    message: Message
    trace: Future[Trace] | None


def find_cases(
    repository: Path,
    *,
    since: str = "1 year ago",
    limit: int = 30,
    seed: int = 0,
    controls: int | None = None,
    on_progress: Progress | None = None,
) -> Mined:
    """Return the commits of a repository that introduced bugs, and as many controls, in a seeded order.

    The newest fixes since a date are traced until `limit` bugs are found.
    """
    if limit < 1:
        raise UsageError(f'limit is "{limit}": use 1 or more')
    source = open_repository(repository)
    start = read_since(source, since, time.time())
    commits, fixes, reasons = 0, 0, Counter[Reason]()
    bugs = dict[str, list[Fix]]()
    with ThreadPoolExecutor(WORKERS) as pool:
        with closing(_trace_fixes(source, pool, start)) as entries:
            for entry in entries:
                commits += 1
                if entry.trace is not None:
                    fixes += 1
                    _add_fix(bugs, entry.commit, entry.trace.result(), reasons)
                if on_progress:
                    on_progress(len(bugs), commits)
                if len(bugs) >= limit:
                    break
        cases = [_make_case(source.read_commit(commit), found) for commit, found in bugs.items()]
        wanted = len(cases) if controls is None else controls
        generator = random.Random(seed)
        calm = _find_controls(source, pool, cases, wanted, generator)
    mixed = sorted([*cases, *calm], key=lambda case: case.commit)
    generator.shuffle(mixed)
    traced = fixes - sum(reasons.values())
    return Mined(tuple(mixed), commits, fixes, traced, dict(sorted(reasons.items())), source.is_shallow)


def _trace_fixes(source: Repository, pool: ThreadPoolExecutor, start: str) -> Generator[_Read, None, None]:
    """Yield commits, newest first, with the traces of those that fix bugs. A few are traced ahead."""
    queue = deque[_Read]()
    waiting = 0
    with closing(source.list_commits(f"--since={start}", source.head, "--")) as listed:
        try:
            for commit in listed:
                message = read_message(commit.subject, commit.body)
                trace = pool.submit(trace_fix, source, commit, message) if message.is_bug_fix else None
                queue.append(_Read(commit, message, trace))
                waiting += trace is not None
                while queue and (waiting > AHEAD or len(queue) > MAX_QUEUE or queue[0].trace is None):
                    waiting -= queue[0].trace is not None
                    yield queue.popleft()
            yield from queue
        finally:
            for entry in queue:
                if entry.trace:
                    entry.trace.cancel()


def _add_fix(bugs: dict[str, list[Fix]], commit: Commit, trace: Trace, reasons: Counter[Reason]) -> None:
    if trace.reason:
        reasons[trace.reason] += 1
        return
    fixes = bugs.setdefault(trace.commit, [])
    if all((fix.subject, fix.lines) != (commit.subject, trace.lines) for fix in fixes):  # or it was picked to a branch
        fixes.append(Fix(commit.id, commit.subject, commit.date, trace.lines))


def _make_case(commit: Commit, fixes: Iterable[Fix] = ()) -> HistoryCase:
    return HistoryCase(
        id=commit.id[:10],
        commit=commit.id,
        parent=commit.parents[0],
        subject=commit.subject,
        date=commit.date,
        changed_lines=commit.changed_lines,
        fixes=tuple(fixes),
    )


def _find_controls(
    source: Repository, pool: ThreadPoolExecutor, bugs: list[HistoryCase], wanted: int, generator: random.Random
) -> list[HistoryCase]:
    """Return commits that no later fix touched, each as large as a bug and a little older."""
    found = dict[str, HistoryCase]()
    taken = {bug.commit for bug in bugs}
    oldest_first = sorted(bugs, key=lambda bug: (source.read_commit(bug.commit).time, bug.commit))
    rounds = [bug for _ in range(-(-wanted // len(bugs)) if bugs else 0) for bug in oldest_first]
    for bug in rounds:
        if len(found) >= wanted:
            break
        candidates = _list_candidates(source, bug, taken, generator)
        checks = [pool.submit(_is_untouched, source, candidate) for candidate in candidates]
        for candidate, check in zip(candidates, checks, strict=True):
            if check.result():
                found[candidate.id] = _make_case(candidate)
                taken.add(candidate.id)
                break
        for check in checks:
            check.cancel()
    return list(found.values())


def _list_candidates(source: Repository, bug: HistoryCase, taken: set[str], generator: random.Random) -> list[Commit]:
    """Return the commits before a bug that are most similar in size."""
    listed = source.list_commits(f"--max-count={MAX_CANDIDATES}", bug.parent, "--")
    found = [commit for commit in listed if commit.id not in taken and _may_be_control(commit)]
    generator.shuffle(found)
    return sorted(found, key=lambda commit: _compare_sizes(commit.changed_lines, bug.changed_lines))[:MAX_TRIED]


def _may_be_control(commit: Commit) -> bool:
    message = read_message(commit.subject, commit.body)
    return is_reviewable(commit) and not message.is_bug_fix and message.kind not in NO_CONTROL


def _compare_sizes(size: int, other: int) -> int:
    return round(SIZE_STEPS * abs(math.log2(size / other)))


def _is_untouched(source: Repository, commit: Commit) -> bool:
    """Return whether no later commit that looks like a fix touched a line that a commit added."""
    try:
        lines = find_added_lines(source, commit)
        if not lines:
            return False
        paths = [file.change.path for file in commit.sources if file.change.status != "D"]
        if len(source.repo.find_blobs((source.head, source.head), paths)) < len(paths):
            return False  # a later fix has another path
        fixes = 0
        with closing(source.list_commits(f"{commit.id}..{source.head}", "--", *paths)) as later:
            for other in later:
                message = read_message(other.subject, other.body)
                if _names(message, commit):
                    return False
                if not message.is_bug_fix and message.kind != "revert":
                    continue
                fixes += 1
                if fixes > MAX_LATER_FIXES or len(other.parents) != 1 or touches_lines(source, other, commit, lines):
                    return False
    except UsageError:  # the output is too large, or git failed
        return False
    return True


def _names(message: Message, commit: Commit) -> bool:
    """Return whether a message says that a commit was wrong."""
    names = [name for name in (message.reverted, *message.blamed) if name]
    return any(commit.id.startswith(name) or commit.subject.endswith(f"({name})") for name in names)
