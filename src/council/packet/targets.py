"""Selection of material from the words of a target: files and git changes. The gate checks the result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from council.errors import UsageError, option
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
    PATH_WORD,
    FolderNames,
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
from council.types import NO_MATCH, Skipped

MAX_NAME_WORDS = 6  # words
MAX_MISSING_LISTED = 20
EMPTY_STDIN = "standard input is empty"
REVISION_RANGE = re.compile(r"(?![./])(?P<start>\S*?)(?P<dots>\.{2,3})(?!/)(?P<end>\S*)")
FILE_WITH_LINE = re.compile(r"(?P<path>.+?):\d+(?:[:-]\d+)?:?")
HEX_WORD = re.compile(r"[a-f]{4,}")  # `facade` is more likely a word than a commit id
PATHLIKE = re.compile(r"[^\s/]*/\S*|\S+\.[A-Za-z]\w{0,5}|\S*[*?\[]\S*")


class TargetRequest(NamedTuple):
    """The arguments of `select`, bundled."""

    text: str
    tokens: tuple[str, ...]
    exact: bool  # the tokens are literal paths
    names: FolderNames
    task: str
    full_text: str = ""  # the user's full text, if `text` is only a part of it

    @property
    def root(self) -> Path:
        return self.names.root

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
    has_other_material: bool = False,
) -> Selection:
    """Return the material that words name. A string is parsed; in a sequence each item is a path or a glob.

    If the words of a review name nothing, it reviews the changes of the work tree or the recent ones instead."""
    exact = not isinstance(words, str)
    text = words.strip() if isinstance(words, str) else " ".join(words)
    names = FolderNames(root)
    tokens = tuple(words) if exact else tuple(_split_words(names, text))
    request = TargetRequest(text, tokens, exact, names, task, full_text.strip() or text)
    chosen = _select_material(request, base, match, stdin is not None)
    has_found = chosen.files or chosen.changes or chosen.note or chosen.skipped
    if task == "validate" and stdin is None and not has_other_material and not has_found:
        chosen = _select_instead(request, chosen)
    if stdin is not None and not stdin.strip():
        return replace(_note_empty_stdin(chosen), target=text)
    if stdin is None and "-" in (*tokens[:1], *tokens[-1:]):
        raise UsageError('"-" means standard input, but nothing was piped in: pipe something in, or name a file')
    return replace(chosen, target=text, stdin=stdin)


def _note_empty_stdin(chosen: Selection) -> Selection:
    alone = not (chosen.files or chosen.changes)
    skipped = () if alone else (Skipped("stdin", "empty"),)
    return replace(chosen, skipped=(*chosen.skipped, *skipped), note=EMPTY_STDIN if alone else chosen.note)


def _select_instead(request: TargetRequest, chosen: Selection) -> Selection:
    """Return the changes of the work tree, or the recent ones on a clean tree; if there are none, say so."""
    looked_for = f'{NO_MATCH} "{_format_word(request.text)[:80]}"'
    repo = git.find_repo(request.root)
    for found, name in ((select_work_tree, "the changes in the work tree"), (_select_recent_in, "the recent changes")):
        instead = found(request.root) if repo else chosen
        if instead.files or instead.changes:
            return replace(instead, remarks=(f"{looked_for}: reviewing {name}", *instead.remarks))
    where = (
        "there are no changes in the work tree and no recent ones" if repo else "this folder is not in a git repository"
    )
    refusal = f"nothing to review: {looked_for}, and {where}; name a file, a folder or a range"
    return replace(chosen, refusal=refusal)


def _select_recent_in(root: Path) -> Selection:
    return select_recent(require_repo(root, "recent"))


def _split_words(names: FolderNames, text: str) -> list[str]:
    """Split text into words, keeping the name of an existing file together: `my notes.md`."""
    words = text.split()
    if "." not in text or not ("/" in text or names.has_spaces):
        return words
    tokens, at = [], 0
    while at < len(words):
        tokens.append(_find_spaced_name(names, words, at) if names.may_start_name(words[at]) else words[at])
        at += tokens[-1].count(" ") + 1
    return tokens


def _find_spaced_name(names: FolderNames, words: Sequence[str], at: int) -> str:
    """Return the longest existing file name that begins with this word, else the word."""
    runs = (" ".join(words[at:end]) for end in range(min(at + MAX_NAME_WORDS, len(words)), at + 1, -1))
    return next((run for run in runs if "." in run and names.exists(run)), words[at])


def has_changes(root: Path) -> bool:
    """Return whether the work tree has changes to review; False outside a repository."""
    return not select_work_tree(root).empty


def _select_material(request: TargetRequest, base: str | None, match: bool, piped: bool) -> Selection:
    if base is not None:
        return _select_since_base(request, select_since(require_repo(request.root, option("base")), base))
    if request.is_review and not request.exact and (special := _select_keyword(request, piped)):
        return special
    paths = list(_find_paths(request))
    missing = _find_missing(request)
    if (
        request.task == "validate"
        and missing
        and (paths or all(_looks_like_path(request, word) for word in request.tokens))
    ):
        raise _missing_file_error(missing[0])
    if paths or request.exact or not request.is_review:
        chosen = _select_files(request, paths)
    else:
        _reject_missing(request)
        chosen = _select_matching(request) if match and not piped else Selection()
    missing_rows = [Skipped(_format_word(word), "no such file", request.task == "validate") for word in missing]
    return replace(chosen, skipped=(*chosen.skipped, *missing_rows))


def _select_since_base(request: TargetRequest, changes: Selection) -> Selection:
    """Return the changes below the named paths; a deleted file can be named too."""
    paths = [path for path, _ in _find_paths(request)]
    for word in _find_missing(request):
        selected = filter_paths(changes, [word])
        if request.task == "validate" and not (selected.files or selected.changes):
            raise _missing_file_error(word)
        paths.append(word)
    return filter_paths(changes, paths)


def _select_keyword(request: TargetRequest, piped: bool) -> Selection | None:
    """Return the selection for a keyword target: empty, recent, staged, a range or a revision."""
    name = request.text.lower()
    if not name:
        return None if piped else select_work_tree(request.root)
    if len(request.tokens) > 1 and set(name.split()) <= {"recent", "staged"}:
        raise UsageError('"recent" and "staged" are two targets: say "recent" or "staged", not both')
    if name == "recent":
        return select_recent(require_repo(request.root, "recent"))
    if name == "staged":
        return select_staged(require_repo(request.root, "staged"))
    span = REVISION_RANGE.fullmatch(request.text)
    if span and (span["start"] or span["end"]) and not request.names.exists(request.text):
        return select_range(require_repo(request.root, "a revision range"), span)
    return _select_revision(request) if request.task == "validate" and len(request.tokens) == 1 else None


def _select_revision(request: TargetRequest) -> Selection | None:
    """Return the changes since a single word that is a commit and not a path."""
    word = request.text
    repo = None if request.names.exists(word) or HEX_WORD.fullmatch(word) else git.find_repo(request.root)
    if repo is None:
        return None
    try:
        chosen = select_since(repo, word)
    except UsageError:
        return None
    return replace(chosen, matched=(f"{_format_word(word)} → changes since {_format_word(word)}",))


# Named files


def _select_files(request: TargetRequest, paths: Sequence[tuple[str, bool]]) -> Selection:
    repo = git.find_repo(request.root) if any(is_folder for _, is_folder in paths) else None
    files: dict[str, WantedFile] = {}
    skipped = []
    for path, is_folder in paths:
        if is_private(path):
            skipped.append(Skipped(format_path(path), "never included in a packet"))
        for file in _expand_path(repo, request.root, path) if is_folder else [WantedFile(path, named=True)]:
            files.setdefault(file.path, file)
    shown = [file for file in files.values() if not is_private(file.path)]
    return Selection("", tuple(shown), skipped=tuple(skipped))


def _expand_path(repo: Repo | None, root: Path, path: str) -> list[WantedFile]:
    if (root / path).is_dir():
        inner = git.find_repo(root / path)
        if repo and inner and inner.top != repo.top and inner.root == inner.top:  # a submodule lists its own files
            return [WantedFile(f"{path.rstrip('/')}/{name}") for name in list_files(inner, root / path)]
        return [WantedFile(name) for name in list_files(repo, root, "" if path == "." else path)]
    return [WantedFile(name) for name in _expand_glob(repo, root, path)]


def _expand_glob(repo: Repo | None, root: Path, pattern: str) -> list[str]:
    try:
        return match_glob(pattern, list_files(repo, root)) or match_glob(pattern, list_files(None, root))
    except re.error:  # a word such as [z-a].py is no glob
        return []


def _find_paths(request: TargetRequest) -> Iterator[tuple[str, bool]]:
    """Yield each existing path that is named, and whether it is a folder or a glob."""
    is_one_path = not request.exact and request.is_review and request.names.exists(request.text)
    path_words = set(PATH_WORD.findall(request.text))
    tokens = request.tokens if request.exact else [one for one in request.tokens if one in path_words or " " in one]
    for token in [request.text] if is_one_path else tokens:
        path = token if is_one_path or request.exact else _parse_path_word(request.names, token)
        if path is None or path == "-":
            continue
        if resolved := _resolve_path(request, path):
            yield resolved
        elif request.exact:
            raise _missing_file_error(path)


def _resolve_path(request: TargetRequest, path: str) -> tuple[str, bool] | None:
    if not request.names.exists(path):
        return (path, True) if is_glob(path) and _has_glob_match(request, path) else None
    try:
        inner = relative_to_root(request.root, path)
        inner = resolve_link(request.root, inner) or inner
    except UsageError:
        if request.is_review or request.exact:
            raise
        return None  # a question may mention any file; one outside the root is not included
    return inner, (request.root / inner).is_dir()


def _has_glob_match(request: TargetRequest, pattern: str) -> bool:
    if _leads_outside(pattern):
        raise UsageError(
            f'"{_format_word(pattern)}" is outside the folder council was started in: use a relative path inside it'
        )
    return bool(_expand_glob(git.find_repo(request.root), request.root, pattern))


def _leads_outside(path: str) -> bool:
    return Path(path).is_absolute() or ".." in Path(path).parts


def _parse_path_word(names: FolderNames, token: str) -> str | None:
    """Return a word as a path if it looks like one: `docs/` and `Makefile` do, `docs` in a sentence does not."""
    bare = token if names.exists(token) else _strip_punctuation(names, token)
    if not re.search(r"\w", bare):
        return None
    if is_glob(bare) or not names.exists(bare):
        return bare if is_glob(bare) else None
    if (names.root / bare).is_dir():
        return bare if "/" in bare and not Path(bare).is_absolute() else None
    return bare if re.search(r"[/.\\]", bare) or bare != bare.lower() else None


def _strip_punctuation(names: FolderNames, token: str) -> str:
    """Return a word without surrounding punctuation, and a file name without its `:line` suffix."""
    bare = token.strip("\"'`()[]<>").rstrip(".,;:!?\"'`)")
    line = FILE_WITH_LINE.fullmatch(bare)
    return line["path"] if line and names.exists(line["path"]) else bare


def _find_missing(request: TargetRequest) -> list[str]:
    """Return the words that look like a path but do not exist."""
    names = request.names
    if request.exact or names.exists(request.full_text):
        return []  # missing ones already raised an error
    tokens = [token for token in _split_words(names, request.full_text) if "/" in token or "." in token]
    words = dict.fromkeys(_strip_punctuation(names, token) for token in tokens if not names.exists(token))
    return list(islice((word for word in words if _is_missing(request, word)), MAX_MISSING_LISTED))


def _is_missing(request: TargetRequest, word: str) -> bool:
    if request.names.exists(word) or not is_pathlike(request.names, word):
        return False
    return not (is_glob(word) and _expand_glob(git.find_repo(request.root), request.root, word))


def is_pathlike(names: FolderNames, word: str) -> bool:
    """Return whether a word looks like a path: `core.py`, `docs/`, `./x`, `*.rs`; not `and/or`, `Node.js` or a URL."""
    if "://" in word or not re.search(r"[/.]", word) or not re.search(r"\w", word) or _leads_outside(word):
        return False
    begins = word.split("/")[0]
    slashed = "/" in word and (word.endswith("/") or begins == "." or names.exists(begins) or is_glob(word))
    return slashed or (has_known_suffix(word) and not re.search(r"[(){}=,;|&]", word))


def _looks_like_path(request: TargetRequest, token: str) -> bool:
    return request.names.exists(token) or is_pathlike(request.names, _strip_punctuation(request.names, token))


def _missing_file_error(path: str) -> UsageError:
    return UsageError(f'there is no "{_format_word(path)}" here: check the name')


def _reject_missing(request: TargetRequest) -> None:
    """Raise UsageError if the target is a single word that looks like a path but does not exist."""
    if request.task == "validate" and len(request.tokens) == 1 and PATHLIKE.fullmatch(request.text):
        raise UsageError(f'there is no "{_format_word(request.text)}" here: check the name, or write a longer question')


def _format_word(path: str) -> str:
    return format_path(path)[:200]


# Words that match a path


def _select_matching(request: TargetRequest) -> Selection:
    repo = git.find_repo(request.root)
    matches = match_words(request.text, list_files(repo, request.root)) if request.text else {}
    places = [(place.rstrip("/"), place.endswith("/")) for places in matches.values() for place in places]
    descriptions = [f"{word} → {', '.join(map(_format_word, places))}" for word, places in matches.items()]
    return replace(_select_files(request, places), matched=tuple(descriptions))
