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
from council.packet.changes import (
    Selection,
    WantedFile,
    filter_paths,
    require_repo,
    select_range,
    select_recent,
    select_since,
    select_staged,
    select_work_tree,
)
from council.packet.files import (
    format_path,
    has_known_suffix,
    is_glob,
    is_private,
    list_files,
    match_glob,
    match_words,
    relative_to_root,
    resolve_link,
)
from council.packet.git import Repo
from council.types import Skipped

MAX_NAME_WORDS = 6  # words
MAX_MISSING_LISTED = 20
EMPTY_STDIN = "standard input is empty"
REVISION_RANGE = re.compile(r"(?![./])(?P<one>\S*?)(?P<dots>\.{2,3})(?!/)(?P<other>\S*)")
FILE_WITH_LINE = re.compile(r"(?P<path>.+?):\d+(?:[:-]\d+)?:?")
HEX_WORD = re.compile(r"[a-f]{4,}")  # `facade` is more likely a word than a commit id
PATHLIKE = re.compile(r"[^\s/]*/\S*|\S+\.[A-Za-z]\w{0,5}|\S*[*?\[]\S*")


class TargetRequest(NamedTuple):
    """The arguments of `select`, bundled."""

    text: str
    tokens: tuple[str, ...]
    exact: bool  # the tokens are literal paths
    root: Path
    task: str
    full_text: str = ""  # the user's full text, if `text` is only a part of it

    @property
    def is_review(self) -> bool:
        return self.task != "ask"


def select(
    words: str | Sequence[str],
    root: Path,
    *,
    task: str,
    base: str | None = None,
    full_text: str = "",
    stdin: str | None = None,
    match: bool = True,
) -> Selection:
    """Return the material that words name. A string is parsed; in a sequence each item is a path or a glob."""
    exact = not isinstance(words, str)
    text = words.strip() if isinstance(words, str) else " ".join(words)
    tokens = tuple(words) if exact else tuple(_split_words(root, text))
    asked = TargetRequest(text, tokens, exact, root, task, full_text.strip() or text)
    chosen = _select_material(asked, base, match, stdin is not None)
    if stdin is not None and not stdin.strip():
        return replace(_note_empty_stdin(chosen), target=text)
    if stdin is None and _wants_stdin(asked):
        raise UsageError('"-" means standard input, but nothing was piped in: pipe something in, or name a file')
    return replace(chosen, target=text, stdin=stdin)


def _note_empty_stdin(chosen: Selection) -> Selection:
    alone = not (chosen.files or chosen.changes)
    skipped = () if alone else (Skipped("stdin", "empty"),)
    return replace(chosen, skipped=(*chosen.skipped, *skipped), note=EMPTY_STDIN if alone else chosen.note)


def _split_words(root: Path, text: str) -> list[str]:
    """Split text into words, keeping the name of an existing file together: `my notes.md`."""
    words = text.split()
    found, at = [], 0
    while at < len(words):
        runs = (" ".join(words[at:end]) for end in range(min(at + MAX_NAME_WORDS, len(words)), at + 1, -1))
        found.append(next((run for run in runs if "." in run and _exists(root, run)), words[at]))
        at += found[-1].count(" ") + 1
    return found


def has_changes(root: Path) -> bool:
    """Return whether the work tree has changes to review; False outside a repository."""
    repo = git.find_repo(root)
    return bool(repo) and not select_work_tree(root).empty


def _wants_stdin(asked: TargetRequest) -> bool:
    return "-" in asked.tokens[:1] + asked.tokens[-1:]


def _select_material(asked: TargetRequest, base: str | None, match: bool, piped: bool) -> Selection:
    if base is not None:
        return _select_since_base(asked, select_since(require_repo(asked.root, "--base"), base))
    if asked.is_review and not asked.exact and (special := _select_keyword(asked, piped)):
        return special
    paths = list(_find_paths(asked))
    missing = _find_missing(asked)
    if asked.task == "validate" and missing and (paths or all(_looks_like_path(asked, word) for word in asked.tokens)):
        raise _missing_file_error(missing[0])
    if paths or asked.exact or not asked.is_review:
        chosen = _select_files(asked, paths)
    else:
        _reject_missing(asked)
        chosen = _select_matching(asked) if match and not piped else Selection()
    spoken_of = [Skipped(_format_word(word), "no such file", asked.task == "validate") for word in missing]
    return replace(chosen, skipped=(*chosen.skipped, *spoken_of))


def _select_since_base(asked: TargetRequest, changes: Selection) -> Selection:
    """Return the changes below the named paths; a deleted file can be named too."""
    paths = [path for path, _ in _find_paths(asked)]
    for word in _find_missing(asked):
        gone = filter_paths(changes, [word])
        if asked.task == "validate" and not (gone.files or gone.changes):
            raise _missing_file_error(word)
        paths.append(word)
    return filter_paths(changes, paths)


def _select_keyword(asked: TargetRequest, piped: bool) -> Selection | None:
    """Return the selection for a keyword target: empty, recent, staged, a range or a revision."""
    name = asked.text.lower()
    if not name:
        return None if piped else select_work_tree(asked.root)
    if len(asked.tokens) > 1 and set(name.split()) <= {"recent", "staged"}:
        raise UsageError('"recent" and "staged" are two targets: say "recent" or "staged", not both')
    if name == "recent":
        return select_recent(require_repo(asked.root, "recent"))
    if name == "staged":
        return select_staged(require_repo(asked.root, "staged"))
    span = REVISION_RANGE.fullmatch(asked.text)
    if span and (span["one"] or span["other"]) and not _exists(asked.root, asked.text):
        return select_range(require_repo(asked.root, "a revision range"), span)
    return _select_revision(asked) if asked.task == "validate" and len(asked.tokens) == 1 else None


def _select_revision(asked: TargetRequest) -> Selection | None:
    """Return the changes since a single word that is a commit and not a path."""
    word = asked.text
    repo = None if word == "-" or _exists(asked.root, word) or HEX_WORD.fullmatch(word) else git.find_repo(asked.root)
    try:
        chosen = select_since(repo, word) if repo and repo.resolve_commit(word) else None
    except UsageError:
        return None
    return replace(chosen, matched=(f"{_format_word(word)} → changes since {_format_word(word)}",)) if chosen else None


# Named files.


def _select_files(asked: TargetRequest, paths: Sequence[tuple[str, bool]]) -> Selection:
    repo = git.find_repo(asked.root) if any(is_folder for _, is_folder in paths) else None
    wanted: dict[str, WantedFile] = {}
    skipped = []
    for path, is_folder in paths:
        if is_private(path):
            skipped.append(Skipped(format_path(path), "never included in a packet"))
        for found in _expand_path(repo, asked.root, path) if is_folder else [WantedFile(path, named=True)]:
            wanted.setdefault(found.path, found)
    kept = [found for found in wanted.values() if not is_private(found.path)]
    return Selection("", tuple(kept), skipped=tuple(skipped))


def _expand_path(repo: Repo | None, root: Path, path: str) -> list[WantedFile]:
    if (root / path).is_dir():
        return [WantedFile(name) for name in list_files(repo, root, "" if path == "." else path)]
    return [WantedFile(name) for name in _expand_glob(repo, root, path)]


def _expand_glob(repo: Repo | None, root: Path, pattern: str) -> list[str]:
    return match_glob(pattern, list_files(repo, root)) or match_glob(pattern, list_files(None, root))


def _find_paths(asked: TargetRequest) -> Iterator[tuple[str, bool]]:
    """Yield each existing path that is named, and whether it is a folder or a glob."""
    whole = not asked.exact and asked.is_review and _exists(asked.root, asked.text)
    for token in [asked.text] if whole else asked.tokens:
        path = token if whole or asked.exact else _parse_path_word(asked.root, token)
        if path is None or path == "-":
            continue
        if found := _resolve_path(asked, path):
            yield found
        elif asked.exact:
            raise UsageError(f'there is no "{_format_word(path)}" here: check the name')


def _resolve_path(asked: TargetRequest, path: str) -> tuple[str, bool] | None:
    if not _exists(asked.root, path):
        return (path, True) if is_glob(path) and _has_glob_match(asked, path) else None
    try:
        inner = relative_to_root(asked.root, path)
        inner = resolve_link(asked.root, inner) or inner
    except UsageError:
        if asked.is_review or asked.exact:
            raise
        return None  # a question may mention any file; one outside the root is not included
    return inner, (asked.root / inner).is_dir()


def _has_glob_match(asked: TargetRequest, pattern: str) -> bool:
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise UsageError(
            f'"{_format_word(pattern)}" is outside the folder council was started in: use a relative path inside it'
        )
    return bool(_expand_glob(git.find_repo(asked.root), asked.root, pattern))


def _parse_path_word(root: Path, token: str) -> str | None:
    """Return a word as a path if it looks like one: `docs/` and `Makefile` do, `docs` in a sentence does not."""
    bare = token if _exists(root, token) else _strip_punctuation(root, token)
    if not re.search(r"\w", bare):
        return None
    if is_glob(bare) or not _exists(root, bare):
        return bare if is_glob(bare) else None
    if (root / bare).is_dir():
        return bare if "/" in bare and not Path(bare).is_absolute() else None
    return bare if re.search(r"[/.\\]", bare) or bare != bare.lower() else None


def _strip_punctuation(root: Path, token: str) -> str:
    """Return a word without surrounding punctuation, and a file name without its `:line` suffix."""
    bare = token.strip("\"'`()[]<>").rstrip(".,;:!?\"'`)")
    line = FILE_WITH_LINE.fullmatch(bare)
    return line["path"] if line and _exists(root, line["path"]) else bare


def _find_missing(asked: TargetRequest) -> list[str]:
    """Return the words that look like a path but do not exist."""
    if asked.exact or _exists(asked.root, asked.full_text):
        return []  # missing ones already raised an error
    tokens = _split_words(asked.root, asked.full_text)
    words = dict.fromkeys(_strip_punctuation(asked.root, token) for token in tokens if not _exists(asked.root, token))
    return list(islice((word for word in words if _is_missing(asked, word)), MAX_MISSING_LISTED))


def _is_missing(asked: TargetRequest, word: str) -> bool:
    if _exists(asked.root, word) or not _is_pathlike(asked.root, word):
        return False
    return not (is_glob(word) and _expand_glob(git.find_repo(asked.root), asked.root, word))


def _is_pathlike(root: Path, word: str) -> bool:
    """Return whether a word looks like a path: `core.py`, `src/nope`, `docs/`, `./x`, `*.rs`; not `and/or`, `Node.js` or a URL."""
    if "://" in word or not re.search(r"\w", word) or Path(word).is_absolute() or ".." in Path(word).parts:
        return False
    begins = word.split("/")[0]
    slashed = "/" in word and (word.endswith("/") or begins == "." or _exists(root, begins) or is_glob(word))
    return slashed or (has_known_suffix(word) and not re.search(r"[(){}=,;|&]", word))


def _looks_like_path(asked: TargetRequest, token: str) -> bool:
    return _exists(asked.root, token) or _is_pathlike(asked.root, _strip_punctuation(asked.root, token))


def _missing_file_error(path: str) -> UsageError:
    return UsageError(f'there is no "{_format_word(path)}" here: check the name')


def _exists(root: Path, path: str) -> bool:
    try:
        return bool(path) and path != "-" and os.path.lexists(root / path)
    except ValueError:
        return False


def _reject_missing(asked: TargetRequest) -> None:
    """Raise UsageError if the target is a single word that looks like a path but does not exist."""
    if asked.task == "validate" and len(asked.tokens) == 1 and PATHLIKE.fullmatch(asked.text):
        raise UsageError(f'there is no "{_format_word(asked.text)}" here: check the name, or write a longer question')


def _format_word(path: str) -> str:
    return format_path(path)[:200]


# Words that match a path.


def _select_matching(asked: TargetRequest) -> Selection:
    repo = git.find_repo(asked.root)
    found = match_words(asked.text, list_files(repo, asked.root)) if asked.text else {}
    places = [(place.rstrip("/"), place.endswith("/")) for places in found.values() for place in places]
    told = [f"{word} → {', '.join(map(_format_word, places))}" for word, places in found.items()]
    return replace(_select_files(asked, places), matched=tuple(told))
