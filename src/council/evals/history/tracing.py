"""Tracing of fixes: which earlier commit wrote the lines of code that a fix changed.

A line counts for the commit that wrote the words that the fix changed in it. Commits that only moved, reformatted or
otherwise touched the line are looked through, and so are reverts, which restore what an older commit wrote.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from council.errors import UsageError
from council.evals.history.cases import FixedLine, Reason
from council.evals.history.changed_lines import (
    MIN_MOVED_CHARS,
    Block,
    find_changed_tokens,
    find_moved,
    find_partner,
    keep_words,
    list_blocks,
    map_tokens,
    read_old_lines,
    split_tokens,
    squeeze,
)
from council.evals.history.messages import Message, read_message
from council.evals.history.repository import MAX_DIFF_FILES, ChangedFile, Commit, Origin, Repository
from council.evals.history.source_lines import find_code_lines
from council.unified_diff import DiffLine, FileDiff

MAX_FIX_FILES = 5  # source files
MAX_FIX_LINES = 60  # added and removed lines of source code
MAX_INSERTED = 15  # lines of a fix that only adds
MAX_LOOKS = 6  # commits of one line that are looked through
MAX_AGE_S = (
    3 * 365 * 86_400
)  # of the commit at the fix; later, what surrounds a line has changed more often than the line was wrong
MIN_SHARE = 0.6  # of the lines that a fix changed
MIN_ALIKE = 0.7  # of two lines at different places of a diff, of which one replaces the other
MIN_WRITTEN = 0.5  # of the words of a line that a fix removed
MIN_REVIEWED, MAX_REVIEWED = 5, 400  # changed lines of source code of a commit that is reviewed
MAX_REVIEWED_FILES = 40
DEFINITION = re.compile(
    r"(?:(?:export|default|public|private|protected|internal|static|async|abstract|final|override|inline|pub(?:\(\w+\))?|unsafe|virtual|const)\s+)*"
    r"(?:def|class|func|function\*?|fn|fun|interface|struct|enum|trait|impl|module|type|namespace)\b|@\w|\w+\s*=\s*(?:async\s*)?(?:function|\()"
)


class TracedLine(NamedTuple):
    """A line of code that a fix changed, with the commit that wrote it, or the reason why none is known."""

    commit: str = ""
    line: FixedLine | None = None
    reason: Reason = "no_lines"


@dataclass(frozen=True, slots=True)
class Trace:
    """The commit whose bug a commit fixes with the lines it wrote, or the reason why it is unknown."""

    commit: str = ""
    lines: tuple[FixedLine, ...] = ()
    reason: Reason | None = None


class _Line(NamedTuple):
    """A line on the way to its origin."""

    revision: str
    path: str
    number: int
    text: str
    tokens: frozenset[int]  # that the fix changed
    is_removed: bool = False  # as a whole
    is_extended: bool = False  # the fix only adds words to the line
    group: int = 0  # lines of one insertion


def trace_fix(repository: Repository, fix: Commit, message: Message) -> Trace:
    """Return the commit that introduced the bug that a commit fixes."""
    try:
        if message.kind == "revert":
            return _trace_revert(repository, fix, message)
        return _trace_lines(repository, fix, message)
    except UsageError:  # the output is too large, or git failed
        return Trace(reason="git_failed")


def is_reviewable(commit: Commit) -> bool:
    """Return whether a commit has a size that a person reviews."""
    is_sized = MIN_REVIEWED <= commit.changed_lines <= MAX_REVIEWED
    return is_sized and commit.file_count <= MAX_REVIEWED_FILES and len(commit.parents) == 1


def touches_lines(repository: Repository, later: Commit, commit: Commit, lines: Sequence[FixedLine]) -> bool:
    """Return whether a later commit changed one of the lines that a commit added, or added lines beside one."""
    paths = {file.change.path for file in commit.sources}
    texts = {squeeze(line.text) for line in lines}
    files = [file for file in later.sources if file.change.old_path in paths and file.change.status != "A"]
    if sum(file.added + file.removed for file in files) > MAX_REVIEWED:
        return True
    for file, diff in _pair_diffs(repository, later, files):
        shown = read_old_lines(diff)
        touched = {line.number for block in list_blocks(diff) for line in block.removed}
        firsts = [block.added[0] for block in list_blocks(diff) if block.added and not block.removed]
        touched |= {at for line in firsts for at in _find_neighbours(diff, line)}
        suspects = [at for at in touched if at in shown and squeeze(shown[at]) in texts]
        if not suspects:
            continue
        origins = repository.blame(later.parents[0], file.change.old_path, suspects, after=commit.parents[0])
        if any(origin.commit == commit.id for origin in origins.values()):
            return True
    return False


def find_added_lines(repository: Repository, commit: Commit) -> tuple[FixedLine, ...]:
    """Return the lines of code that a commit added."""
    found = list[FixedLine]()
    for file, diff in _pair_diffs(repository, commit, commit.sources):
        code = find_code_lines(file.change.path, repository.read_text(file.change.oid))
        added = (line for block in list_blocks(diff) for line in block.added if line.number in code)
        found += (FixedLine(file.change.path, line.number, line.text) for line in added)
    return tuple(found)


def _trace_revert(repository: Repository, fix: Commit, message: Message) -> Trace:
    target = find_reverted(repository, fix, message)
    if target is None:
        return Trace(reason="unclear_revert")
    reverted = repository.read_commit(target)
    if not is_reviewable(reverted):
        return Trace(reason="merge" if len(reverted.parents) > 1 else "reviewable")
    lines = find_added_lines(repository, reverted)
    return Trace(target, lines) if lines else Trace(reason="no_source")


def find_reverted(repository: Repository, revert: Commit, message: Message) -> str | None:
    """Return the commit that a revert names by its id or its subject."""
    if message.reverted:
        return repository.find_ancestor(message.reverted, revert.id)
    return repository.find_subject(message.reverted_subject, revert.id) if message.reverted_subject else None


def _trace_lines(repository: Repository, fix: Commit, message: Message) -> Trace:
    if len(fix.parents) != 1:
        return Trace(reason="too_old")
    files = [file for file in fix.sources if file.added or file.removed]
    if not files:
        return Trace(reason="no_source")
    if len(files) > MAX_FIX_FILES or fix.changed_lines > MAX_FIX_LINES:
        return Trace(reason="size")
    diffs = [(file, diff) for file, diff in _pair_diffs(repository, fix, files) if file.change.status in "MR"]
    lines = _find_changed_lines(repository, fix, diffs)
    is_insertion = not lines
    if is_insertion:
        lines = _find_insertions(repository, fix, diffs)
    if not lines:
        has_code = any(_find_code(repository, file, diff) for file, diff in _pair_diffs(repository, fix, files))
        return Trace(reason="no_lines" if has_code else "no_source")
    since = None if message.blamed else fix.time - MAX_AGE_S
    traced = _trace(repository, lines, since)
    return _choose(repository, fix, message, traced, is_insertion=is_insertion)


def _choose(
    repository: Repository,
    fix: Commit,
    message: Message,
    traced: Sequence[tuple[_Line, TracedLine]],
    *,
    is_insertion: bool,
) -> Trace:
    """Return the commit that wrote a clear share of the lines."""
    counts = Counter[str]()
    groups = Counter(line.group for line, _ in traced)
    for line, found in traced:
        if found.commit and (not is_insertion or _is_one_commit(traced, line.group)):
            counts[found.commit] += 1
    named = [commit for name in message.blamed if (commit := _find_named(repository, name, fix))]
    if not counts:
        reasons = Counter(found.reason for _, found in traced if not found.commit)
        return Trace(reason=reasons.most_common(1)[0][0] if reasons else "scattered")
    total = sum(groups.values())
    commit, count = max(counts.items(), key=lambda item: (item[0] in named, item[1], item[0]))
    if named and commit not in named:
        return Trace(reason="other_named")
    if not named and count < MIN_SHARE * total:
        return Trace(reason="scattered")
    introduced = repository.read_commit(commit)
    if not is_reviewable(introduced):
        return Trace(reason="reviewable")
    if not named and fix.time - introduced.time > MAX_AGE_S:
        return Trace(reason="long_ago")
    lines = {found.line for _, found in traced if found.commit == commit and found.line}
    return Trace(commit, tuple(sorted(lines, key=lambda line: (line.path, line.line))))


def _find_named(repository: Repository, name: str, fix: Commit) -> str | None:
    if name.startswith("#"):
        return repository.find_number(name, fix.id)
    return repository.find_ancestor(name, fix.id)


def _is_one_commit(traced: Sequence[tuple[_Line, TracedLine]], group: int) -> bool:
    return len({found.commit for line, found in traced if line.group == group}) == 1


def _pair_diffs(
    repository: Repository, commit: Commit, files: Sequence[ChangedFile]
) -> Iterator[tuple[ChangedFile, FileDiff]]:
    diffs = {diff.path: diff for diff in repository.read_diff(commit.id)}
    for file in files:
        if file.change.path in diffs:
            yield file, diffs[file.change.path]


def _find_code(repository: Repository, file: ChangedFile, diff: FileDiff) -> bool:
    """Return whether a diff adds or removes a line of code."""
    old = find_code_lines(file.change.old_path, repository.read_text(file.change.old_oid))
    new = find_code_lines(file.change.path, repository.read_text(file.change.oid))
    blocks = list(list_blocks(diff))
    return any(line.number in old for block in blocks for line in block.removed) or any(
        line.number in new for block in blocks for line in block.added
    )


def _find_changed_lines(
    repository: Repository, fix: Commit, diffs: Sequence[tuple[ChangedFile, FileDiff]]
) -> list[_Line]:
    """Return the lines of code that a fix removes or changes. A line that it only moves or reformats is left out."""
    blocks = {file: list(list_blocks(diff)) for file, diff in diffs}
    added = [line for parts in blocks.values() for block in parts for line in block.added]
    removed = (line for parts in blocks.values() for block in parts for line in block.removed)
    moved = find_moved(removed, added)
    found = list[_Line]()
    for file, parts in blocks.items():
        code = find_code_lines(file.change.old_path, repository.read_text(file.change.old_oid))
        for block in parts:
            same = {squeeze(line.text) for line in block.added}
            for line in () if block.is_reformatted else block.removed:
                if line.number not in code or squeeze(line.text) in same | moved:
                    continue
                changed = find_changed_tokens(line.text, block.added)
                if changed.is_whole and find_partner(line.text, added, MIN_ALIKE):
                    continue
                found.append(
                    _Line(
                        revision=fix.parents[0],
                        path=file.change.old_path,
                        number=line.number,
                        text=line.text,
                        tokens=changed.positions,
                        is_removed=changed.is_whole,
                        is_extended=changed.is_insertion,
                    )
                )
    return found


def _find_insertions(repository: Repository, fix: Commit, diffs: Sequence[tuple[ChangedFile, FileDiff]]) -> list[_Line]:
    """Return the lines of code around the lines that a fix inserts into a function."""
    found, group, inserted = list[_Line](), 0, 0
    for file, diff in diffs:
        text = repository.read_text(file.change.old_oid)
        rows = text.split("\n")
        old = find_code_lines(file.change.old_path, text)
        new = find_code_lines(file.change.path, repository.read_text(file.change.oid))
        for block in list_blocks(diff):
            code = [line for line in block.added if line.number in new]
            if block.removed or not code:
                continue
            inserted += len(code)
            before, after = _find_neighbours(diff, block.added[0])
            if not _is_inside(code, rows, before, after, old):
                continue
            group += 1
            for number in (before, after):
                every = frozenset(range(len(split_tokens(rows[number - 1]))))
                found.append(
                    _Line(
                        fix.parents[0],
                        file.change.old_path,
                        number,
                        rows[number - 1],
                        every,
                        is_removed=True,
                        group=group,
                    )
                )
    return found if inserted <= MAX_INSERTED else []


def _find_neighbours(diff: FileDiff, line: DiffLine) -> tuple[int, int]:
    """Return the numbers of the old lines before and after an added line."""
    shift = 0
    for hunk in diff.hunks:
        for row in hunk.list_lines():
            if row.sign == "+" and row.number == line.number:
                return line.number - shift - 1, line.number - shift
            shift += (row.sign == "+") - (row.sign == "-")
    return 0, 0


def _is_inside(code: Sequence[DiffLine], rows: Sequence[str], before: int, after: int, old: frozenset[int]) -> bool:
    """Return whether lines are inserted between two lines of code of one function."""
    if before not in old or after not in old or DEFINITION.match(code[0].text.strip()):
        return False
    if DEFINITION.match(rows[after - 1].strip()):
        return False
    indent = min(_find_indent(line.text) for line in code)
    return indent > 0 and (_find_indent(rows[before - 1]) >= indent or _find_indent(rows[after - 1]) >= indent)


def _find_indent(text: str) -> int:
    expanded = text.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _trace(repository: Repository, lines: Sequence[_Line], since: int | None) -> list[tuple[_Line, TracedLine]]:
    """Return the origin of each line, in their order."""
    found = dict[int, TracedLine]()
    pending = dict(enumerate(lines))
    for _ in range(MAX_LOOKS):
        groups = dict[tuple[str, str], list[int]]()
        for key, line in pending.items():
            groups.setdefault((line.revision, line.path), []).append(key)
        following = dict[int, _Line]()
        for (revision, path), keys in groups.items():
            origins = repository.blame(revision, path, [pending[key].number for key in keys], since=since)
            for key in keys:
                step = _read_origin(repository, pending[key], origins[pending[key].number])
                if isinstance(step, TracedLine):
                    found[key] = step
                else:
                    following[key] = step
        pending = following
        if not pending:
            break
    return [(line, found.get(key, TracedLine())) for key, line in enumerate(lines)]


def _read_origin(repository: Repository, line: _Line, origin: Origin) -> TracedLine | _Line:
    """Return the commit that wrote a line, or the line as it was before a commit that did not write it."""
    if origin.is_boundary:
        return TracedLine(reason="long_ago" if repository.read_commit(origin.commit).parents else "too_old")
    if origin.commit in repository.ignored:
        return TracedLine()
    commit = repository.read_commit(origin.commit)
    if len(commit.parents) != 1:
        return TracedLine(reason="merge" if commit.parents else "too_old")
    restored = _look_through_revert(repository, line, origin, commit)
    if restored:
        return restored
    diff = repository.read_file_diff(commit, origin.path)
    blocks = list(list_blocks(diff)) if diff else []
    place = next(((block, row) for block in blocks for row in block.added if row.number == origin.line), None)
    if place is None:
        return TracedLine()
    block, row = place
    tokens = map_tokens(line.tokens, line.text, row.text)
    if not tokens:
        return TracedLine()
    moved = _find_moved_line(repository, commit, origin.path, block, row)
    if moved:
        return line._replace(revision=commit.parents[0], path=moved[0], number=moved[1])
    written = find_changed_tokens(row.text, block.removed)
    path, earlier = origin.path, find_partner(row.text, block.removed, least=0.0)
    if written.is_whole and (alike := _find_alike(repository, commit, origin.path, row)):
        path, earlier = alike
        written = find_changed_tokens(row.text, [earlier])
    if _is_written(row.text, written.positions, tokens, line):
        return TracedLine(commit.id, FixedLine(origin.path, origin.line, row.text))
    if earlier is None or (line.is_extended and keep_words(written.positions, row.text)):
        return TracedLine()  # what the line lacks may be due to this commit or to an older one
    return line._replace(revision=commit.parents[0], path=_find_old_path(commit, path), number=earlier.number)


def _find_old_path(commit: Commit, path: str) -> str:
    return next((file.change.old_path for file in commit.sources if file.change.path == path), path)


def _find_moved_line(
    repository: Repository, commit: Commit, path: str, block: Block, row: DiffLine
) -> tuple[str, int] | None:
    """Return the path and the number before a commit of a line that it only moved or reformatted, or None."""
    squeezed = squeeze(row.text)
    same = next((other for other in block.removed if squeeze(other.text) == squeezed), None)
    if same is None and block.is_reformatted:
        same = find_partner(row.text, block.removed, least=0.0)
    if same:
        return _find_old_path(commit, path), same.number
    if len(squeezed) < MIN_MOVED_CHARS or len(commit.sources) > MAX_DIFF_FILES:
        return None
    for diff in sorted(repository.read_diff(commit.id), key=lambda diff: diff.path != path):
        for part in list_blocks(diff):
            for other in part.removed:
                if squeeze(other.text) == squeezed:
                    return _find_old_path(commit, diff.path), other.number
    return None


def _find_alike(repository: Repository, commit: Commit, path: str, row: DiffLine) -> tuple[str, DiffLine] | None:
    """Return the path and the line that a commit removed elsewhere and wrote again with few changes, or None."""
    if len(commit.sources) > MAX_DIFF_FILES or commit.changed_lines > MAX_REVIEWED:
        return None
    for diff in sorted(repository.read_diff(commit.id), key=lambda diff: diff.path != path):
        removed = [line for block in list_blocks(diff) for line in block.removed]
        if found := find_partner(row.text, removed, MIN_ALIKE):
            return diff.path, found
    return None


def _is_written(text: str, written: frozenset[int], changed: frozenset[int], line: _Line) -> bool:
    """Return whether a commit wrote the words of a line that the fix changed, or most of them."""
    if line.is_removed:
        every = range(len(split_tokens(text)))
        words = keep_words(every, text) or frozenset(every)
        return len(written & words) >= MIN_WRITTEN * len(words)
    words = keep_words(changed, text) or changed
    return bool(written & words) if line.is_extended else 2 * len(written & words) > len(words)


def _look_through_revert(repository: Repository, line: _Line, origin: Origin, commit: Commit) -> _Line | None:
    """Return the line before the commit that a revert undoes; None if the commit is no revert."""
    message = read_message(commit.subject, commit.body)
    if message.kind != "revert":
        return None
    target = find_reverted(repository, commit, message)
    reverted = repository.read_commit(target) if target else None
    if reverted is None or len(reverted.parents) != 1:
        return None
    number = repository.map_line(commit.id, reverted.parents[0], origin.path, origin.line)
    return line._replace(revision=reverted.parents[0], path=origin.path, number=number) if number else None
