"""Selection of material from the words of a target: files and git changes. The gate checks the result."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError
from council.packet import git
from council.packet.changes import Selection, Wanted, between, recent, repo_of, since, staged, within, work_tree
from council.packet.git import Repo
from council.packet.names import has_known_suffix, is_private, shown
from council.packet.reading import inside, link_target
from council.packet.trees import globbed, is_glob, listing, meant
from council.types import Skipped

LONGEST_NAME = 6  # words
MISSING_TOLD = 20
NOTHING_PIPED = "standard input is empty"
RANGE = re.compile(r"(?![./])(?P<one>\S*?)(?P<dots>\.{2,3})(?!/)(?P<other>\S*)")
LINE = re.compile(r"(?P<path>.+?):\d+(?:[:-]\d+)?:?")
HEX_WORD = re.compile(r"[a-f]{4,}")  # `facade` is more likely a word than a commit id
PATHLIKE = re.compile(r"[^\s/]*/\S*|\S+\.[A-Za-z]\w{0,5}|\S*[*?\[]\S*")


class Words(NamedTuple):
    """The arguments of `select`, bundled."""

    text: str
    tokens: tuple[str, ...]
    exact: bool  # the tokens are literal paths
    root: Path
    task: str
    said: str = ""  # the user's full text, if `text` is only a part of it

    @property
    def judging(self) -> bool:
        return self.task != "ask"


def select(
    words: str | Sequence[str],
    root: Path,
    *,
    task: str,
    base: str | None = None,
    said: str = "",
    stdin: str | None = None,
    match: bool = True,
) -> Selection:
    """Return the material that words name. A string is parsed; in a sequence each item is a path or a glob."""
    exact = not isinstance(words, str)
    text = words.strip() if isinstance(words, str) else " ".join(words)
    tokens = tuple(words) if exact else tuple(_tokens(root, text))
    asked = Words(text, tokens, exact, root, task, said.strip() or text)
    chosen = _chosen(asked, base, match, stdin is not None)
    if stdin is not None and not stdin.strip():
        return replace(_with_nothing_piped(chosen), target=text)
    if stdin is None and _asks_for_stdin(asked):
        raise UsageError('"-" means standard input, but nothing was piped in: pipe something in, or name a file')
    return replace(chosen, target=text, stdin=stdin)


def _with_nothing_piped(chosen: Selection) -> Selection:
    alone = not (chosen.files or chosen.changes)
    skipped = () if alone else (Skipped("stdin", "empty"),)
    return replace(chosen, skipped=(*chosen.skipped, *skipped), note=NOTHING_PIPED if alone else chosen.note)


def _tokens(root: Path, text: str) -> list[str]:
    """Split text into words, keeping the name of an existing file together: `my notes.md`."""
    words = text.split()
    found, at = [], 0
    while at < len(words):
        runs = (" ".join(words[at:end]) for end in range(min(at + LONGEST_NAME, len(words)), at + 1, -1))
        found.append(next((run for run in runs if "." in run and _exists(root, run)), words[at]))
        at += found[-1].count(" ") + 1
    return found


def changed(root: Path) -> bool:
    """Return whether the work tree has changes to review; False outside a repository."""
    repo = git.find(root)
    return bool(repo) and not work_tree(root).empty


def _asks_for_stdin(asked: Words) -> bool:
    return "-" in asked.tokens[:1] + asked.tokens[-1:]


def _chosen(asked: Words, base: str | None, match: bool, piped: bool) -> Selection:
    if base is not None:
        return _since_base(asked, since(repo_of(asked.root, "--base"), base))
    if asked.judging and not asked.exact and (special := _special(asked, piped)):
        return special
    paths = list(_paths(asked))
    missing = _missing(asked)
    if asked.task == "validate" and missing and (paths or all(_looks_like_one(asked, word) for word in asked.tokens)):
        raise _no_such(missing[0])
    if paths or asked.exact or not asked.judging:
        chosen = _files(asked, paths)
    else:
        _refuse_missing(asked)
        chosen = _meant(asked) if match and not piped else Selection()
    spoken_of = [Skipped(_said(word), "no such file", asked.task == "validate") for word in missing]
    return replace(chosen, skipped=(*chosen.skipped, *spoken_of))


def _since_base(asked: Words, changes: Selection) -> Selection:
    """Return the changes below the named paths; a deleted file can be named too."""
    paths = [path for path, _ in _paths(asked)]
    for word in _missing(asked):
        gone = within(changes, [word])
        if asked.task == "validate" and not (gone.files or gone.changes):
            raise _no_such(word)
        paths.append(word)
    return within(changes, paths)


def _special(asked: Words, piped: bool) -> Selection | None:
    """Return the selection for a keyword target: empty, recent, staged, a range or a revision."""
    name = asked.text.lower()
    if not name:
        return None if piped else work_tree(asked.root)
    if len(asked.tokens) > 1 and set(name.split()) <= {"recent", "staged"}:
        raise UsageError('"recent" and "staged" are two targets: say "recent" or "staged", not both')
    if name == "recent":
        return recent(repo_of(asked.root, "recent"))
    if name == "staged":
        return staged(repo_of(asked.root, "staged"))
    span = RANGE.fullmatch(asked.text)
    if span and (span["one"] or span["other"]) and not _exists(asked.root, asked.text):
        return between(repo_of(asked.root, "a revision range"), span)
    return _revision(asked) if asked.task == "validate" and len(asked.tokens) == 1 else None


def _revision(asked: Words) -> Selection | None:
    """Return the changes since a single word that is a commit and not a path."""
    word = asked.text
    repo = None if word == "-" or _exists(asked.root, word) or HEX_WORD.fullmatch(word) else git.find(asked.root)
    try:
        chosen = since(repo, word) if repo and repo.commit(word) else None
    except UsageError:
        return None
    return replace(chosen, matched=(f"{_said(word)} → changes since {_said(word)}",)) if chosen else None


# Named files.


def _files(asked: Words, paths: Sequence[tuple[str, bool]]) -> Selection:
    repo = git.find(asked.root) if any(is_folder for _, is_folder in paths) else None
    wanted: dict[str, Wanted] = {}
    skipped = []
    for path, is_folder in paths:
        if is_private(path):
            skipped.append(Skipped(shown(path), "never included in a packet"))
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
    """Yield each existing path that is named, and whether it is a folder or a glob."""
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
        return None  # a question may mention any file; one outside the root is not included
    return inner, (asked.root / inner).is_dir()


def _globs_here(asked: Words, pattern: str) -> bool:
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise UsageError(
            f'"{_said(pattern)}" is outside the folder council was started in: use a relative path inside it'
        )
    return bool(_glob(git.find(asked.root), asked.root, pattern))


def _bare(root: Path, token: str) -> str | None:
    """Return a word as a path if it looks like one: `docs/` and `Makefile` do, `docs` in a sentence does not."""
    bare = token if _exists(root, token) else _unquoted(root, token)
    if not re.search(r"\w", bare):
        return None
    if is_glob(bare) or not _exists(root, bare):
        return bare if is_glob(bare) else None
    if (root / bare).is_dir():
        return bare if "/" in bare and not Path(bare).is_absolute() else None
    return bare if re.search(r"[/.\\]", bare) or bare != bare.lower() else None


def _unquoted(root: Path, token: str) -> str:
    """Return a word without surrounding punctuation, and a file name without its `:line` suffix."""
    bare = token.strip("\"'`()[]<>").rstrip(".,;:!?\"'`)")
    line = LINE.fullmatch(bare)
    return line["path"] if line and _exists(root, line["path"]) else bare


def _missing(asked: Words) -> list[str]:
    """Return the words that look like a path but do not exist."""
    if asked.exact or _exists(asked.root, asked.said):
        return []  # missing ones already raised an error
    tokens = _tokens(asked.root, asked.said)
    words = dict.fromkeys(_unquoted(asked.root, token) for token in tokens if not _exists(asked.root, token))
    return list(islice((word for word in words if _is_missing(asked, word)), MISSING_TOLD))


def _is_missing(asked: Words, word: str) -> bool:
    if _exists(asked.root, word) or not _is_pathlike(asked.root, word):
        return False
    return not (is_glob(word) and _glob(git.find(asked.root), asked.root, word))


def _is_pathlike(root: Path, word: str) -> bool:
    """Return whether a word looks like a path: `core.py`, `src/nope`, `docs/`, `./x`, `*.rs`; not `and/or`, `Node.js` or a URL."""
    if "://" in word or not re.search(r"\w", word) or Path(word).is_absolute() or ".." in Path(word).parts:
        return False
    begins = word.split("/")[0]
    slashed = "/" in word and (word.endswith("/") or begins == "." or _exists(root, begins) or is_glob(word))
    return slashed or (has_known_suffix(word) and not re.search(r"[(){}=,;|&]", word))


def _looks_like_one(asked: Words, token: str) -> bool:
    return _exists(asked.root, token) or _is_pathlike(asked.root, _unquoted(asked.root, token))


def _no_such(path: str) -> UsageError:
    return UsageError(f'there is no "{_said(path)}" here: check the name')


def _exists(root: Path, path: str) -> bool:
    try:
        return bool(path) and path != "-" and os.path.lexists(root / path)
    except ValueError:
        return False


def _refuse_missing(asked: Words) -> None:
    """Raise UsageError if the target is a single word that looks like a path but does not exist."""
    if asked.task == "validate" and len(asked.tokens) == 1 and PATHLIKE.fullmatch(asked.text):
        raise UsageError(f'there is no "{_said(asked.text)}" here: check the name, or write a longer question')


def _said(path: str) -> str:
    return shown(path)[:200]


# Words that match a path.


def _meant(asked: Words) -> Selection:
    repo = git.find(asked.root)
    found = meant(asked.text, listing(repo, asked.root)) if asked.text else {}
    places = [(place.rstrip("/"), place.endswith("/")) for places in found.values() for place in places]
    told = [f"{word} → {', '.join(map(_said, places))}" for word, places in found.items()]
    return replace(_files(asked, places), matched=tuple(told))
