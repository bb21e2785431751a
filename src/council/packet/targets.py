"""What the words mean as material: which files, which changes. Chosen here, let in by the gate."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError
from council.packet import git
from council.packet.changes import Selection, Wanted, between, recent, repo_of, since, staged, within, work_tree
from council.packet.git import Repo
from council.packet.names import is_private, shown
from council.packet.reading import inside, link_target
from council.packet.trees import globbed, is_glob, listing, meant
from council.types import Skipped

RANGE = re.compile(r"(?![./])(?P<one>\S*?)(?P<dots>\.{2,3})(?!/)(?P<other>\S*)")
PATHLIKE = re.compile(r"[^\s/]*/\S*|\S+\.[A-Za-z]\w{0,5}|\S*[*?\[]\S*")


class Words(NamedTuple):
    """What select was asked, so that its parts need not be handed on one by one."""

    text: str
    tokens: tuple[str, ...]
    exact: bool  # the tokens are paths as they stand
    root: Path
    task: str

    @property
    def judging(self) -> bool:
        return self.task != "ask"


def select(
    words: str | Sequence[str],
    root: Path,
    *,
    task: str,
    base: str | None = None,
    stdin: str | None = None,
    match: bool = True,
) -> Selection:
    """The material that words name. A string is read for what it names; of a sequence each item is a path or a glob."""
    exact = not isinstance(words, str)
    text = words.strip() if isinstance(words, str) else " ".join(words)
    asked = Words(text, tuple(text.split() if isinstance(words, str) else words), exact, root, task)
    chosen = _chosen(asked, base, match, stdin is not None)
    if stdin is None and _asks_for_stdin(asked):
        raise UsageError('"-" means standard input, and nothing came from there: pipe something in, or name a file')
    return replace(chosen, target=text, stdin=stdin)


def changed(root: Path) -> bool:
    """Whether the work tree has changes that could be reviewed; a folder that is in no repository has none."""
    repo = git.find(root)
    return bool(repo) and not work_tree(root).empty


def _asks_for_stdin(asked: Words) -> bool:
    return "-" in asked.tokens[:1] + asked.tokens[-1:]


def _chosen(asked: Words, base: str | None, match: bool, piped: bool) -> Selection:
    if base is not None:
        return within(since(repo_of(asked.root, "--base"), base), [path for path, _ in _paths(asked)])
    if asked.judging and not asked.exact and (special := _special(asked, piped)):
        return special
    paths = list(_paths(asked))
    if paths or asked.exact or not asked.judging:
        return _files(asked, paths)
    _refuse_missing(asked)
    return _meant(asked) if match and not piped else Selection()


def _special(asked: Words, piped: bool) -> Selection | None:
    """The targets that are words of their own: nothing at all, recent, staged, a range."""
    name = asked.text.lower()
    if not name:
        return None if piped else work_tree(asked.root)
    if name == "recent":
        return recent(repo_of(asked.root, "recent"))
    if name == "staged":
        return staged(repo_of(asked.root, "staged"))
    span = RANGE.fullmatch(asked.text)
    if span and (span["one"] or span["other"]) and not _exists(asked.root, asked.text):
        return between(repo_of(asked.root, "a revision range"), span)
    return None


# Files that were named.


def _files(asked: Words, paths: Sequence[tuple[str, bool]]) -> Selection:
    repo = git.find(asked.root) if any(is_folder for _, is_folder in paths) else None
    wanted: dict[str, Wanted] = {}
    skipped = []
    for path, is_folder in paths:
        if is_private(path):
            skipped.append(Skipped(shown(path), "kept out of every packet"))
        for found in _below_named(repo, asked.root, path) if is_folder else [Wanted(path, named=True)]:
            wanted.setdefault(found.path, found)
    kept = [found for found in wanted.values() if not is_private(found.path)]
    return Selection("", tuple(kept), skipped=tuple(skipped))


def _below_named(repo: Repo | None, root: Path, path: str) -> list[Wanted]:
    if (root / path).is_dir():
        return [Wanted(name) for name in listing(repo, root, "" if path == "." else path)]
    return [Wanted(name) for name in _glob(repo, root, path)]


def _glob(repo: Repo | None, root: Path, pattern: str) -> list[str]:
    return globbed(pattern, listing(repo, root)) or globbed(pattern, listing(None, root))


def _paths(asked: Words) -> Iterator[tuple[str, bool]]:
    """What exists under the root and is named as such, and whether it stands for many files."""
    whole = not asked.exact and asked.judging and _exists(asked.root, asked.text)
    for token in [asked.text] if whole else asked.tokens:
        path = token if whole or asked.exact else _bare(asked.root, token)
        if path is None or path == "-":
            continue
        if found := _as_path(asked, path):
            yield found
        elif asked.exact:
            raise UsageError(f'there is no "{_said(path)}" here: check the name')


def _as_path(asked: Words, path: str) -> tuple[str, bool] | None:
    if not _exists(asked.root, path):
        return (path, True) if is_glob(path) and _globs_here(asked, path) else None
    try:
        inner = inside(asked.root, path)
        inner = link_target(asked.root, inner) or inner
    except UsageError:
        if asked.judging or asked.exact:
            raise
        return None  # a question may speak of any file; it is not given, and only spoken of
    return inner, (asked.root / inner).is_dir()


def _globs_here(asked: Words, pattern: str) -> bool:
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise UsageError(f'"{_said(pattern)}" leads out of the folder council was started in: write it relative to it')
    return bool(_glob(git.find(asked.root), asked.root, pattern))


def _bare(root: Path, token: str) -> str | None:
    """A path among other words must look like one: `docs` in a sentence is a word, `docs/` and `Makefile` are paths."""
    bare = token if _exists(root, token) else token.strip("\"'`()[]<>").rstrip(".,;:!?\"'`)")
    if not re.search(r"\w", bare):
        return None
    if is_glob(bare) or not _exists(root, bare):
        return bare if is_glob(bare) else None
    if (root / bare).is_dir():
        return bare if "/" in bare and not Path(bare).is_absolute() else None
    return bare if re.search(r"[/.\\]", bare) or bare != bare.lower() else None


def _exists(root: Path, path: str) -> bool:
    try:
        return bool(path) and path != "-" and os.path.lexists(root / path)
    except ValueError:
        return False


def _refuse_missing(asked: Words) -> None:
    """One word that can only be a path, and is none: rather an error than a verdict on nothing."""
    if asked.task == "validate" and len(asked.tokens) == 1 and PATHLIKE.fullmatch(asked.text):
        raise UsageError(f'there is no "{_said(asked.text)}" here: check the name, or ask in more than one word')


def _said(path: str) -> str:
    return shown(path)[:200]


# Words that mean a place.


def _meant(asked: Words) -> Selection:
    repo = git.find(asked.root)
    found = meant(asked.text, listing(repo, asked.root)) if asked.text else {}
    places = [(place.rstrip("/"), place.endswith("/")) for places in found.values() for place in places]
    told = [f"{word} → {', '.join(map(_said, places))}" for word, places in found.items()]
    return replace(_files(asked, places), matched=tuple(told))
