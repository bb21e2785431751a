"""Words that choose a protocol or name the project: phrases of data/triggers.toml and where in a sentence they count.

A verb counts where it is what the user asks for: at the start of a sentence, after a polite opening, or after "and".
In a question ("Why did Rome attack Carthage?") it is the subject and does not count; comparisons and choices do.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from importlib.resources import files as resource_files
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from council.errors import UsageError
from council.packet.files import list_files
from council.packet.git import find_repo

WORD_GAP = r"(?:\s*[-\u2010\u2011\u2013]\s*|\s+)"
WORD_START, WORD_END = r"(?<!\w)(?<![/\\])(?<!\w[.@])", r"(?![\w/\\]|\.\w)"  # skip words inside a path or a URL
CODE_OR_PATH = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|(?<!\S)[^\s/`]*/\S*[\w/*]", re.DOTALL)  # code, paths, URLs


def phrase_pattern(phrase: str) -> str:
    return WORD_GAP.join(re.escape(word) for word in re.split(r"[\s-]+", phrase))


@cache
def compile_phrases(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern for any of the phrases, longest first."""
    choices = "|".join(phrase_pattern(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(f"{WORD_START}(?:{choices}){WORD_END}", re.IGNORECASE)


def mask_text(text: str, exceptions: Iterable[str]) -> str:
    """Mask exceptions, code, paths and URLs in the text; offsets stay the same."""
    return _compile_exceptions(tuple(exceptions)).sub(_blank_match, _mask_code(text))


@lru_cache(maxsize=4)  # one question is masked for each list of phrases
def _mask_code(text: str) -> str:
    return CODE_OR_PATH.sub(_blank_match, text)


@cache
def _compile_exceptions(phrases: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(phrase.replace(" ", WORD_GAP) for phrase in phrases)
    return re.compile(f"{WORD_START}(?:{choices}){WORD_END}", re.IGNORECASE)


def _blank_match(found: re.Match[str]) -> str:
    return "\0" * len(found.group())


@cache
def load_triggers() -> dict[str, Any]:
    return tomllib.loads(resource_files("council").joinpath("data/triggers.toml").read_text(encoding="utf-8"))


class Trigger(NamedTuple):
    """A protocol, and the words that chose it."""

    protocol: str
    why: str


def find_trigger(text: str, *, can_search: Callable[[], bool] = lambda: False) -> Trigger | None:
    """Return the protocol that the words ask for, the first of the table that matches."""
    for protocol, rules in load_triggers()["protocols"].items():
        masked = mask_text(text, rules.get("exceptions", ()))
        found = next((found for sentence in split_sentences(masked) if (found := _match(sentence, rules))), "")
        if found and (can_search() or not rules.get("needs_search")):
            return Trigger(protocol, found)
    return None


def strip_opening(text: str) -> str:
    """Return the text without a polite opening such as "can you" or "please"."""
    return text[opening.end() :] if (opening := _compile_opening().match(text)) else text


def split_sentences(text: str) -> list[str]:
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]


SENTENCE_END = re.compile(r"(?<=[!?])\s+|(?<=\w\w\w[.])\s+|(?<=[)\"'][.])\s+|\s*[;\n]\s*")


def _match(sentence: str, rules: dict[str, Any]) -> str:
    """Return what in a sentence chooses the protocol, or ""."""
    core = strip_opening(sentence)
    if rules.get("needs_list") and not re.search(r",.+(?:,|\band\b|\bor\b)|:", core):
        return ""
    if found := _search(rules.get("phrases", ()), core):
        return found
    if not _compile_start("questions").match(core) and (found := _search_imperative(rules, core)):
        return found
    if not _compile_start("past_questions").match(core) and (found := _search(rules.get("comparisons", ()), core)):
        return found
    return _find_choice(core) if rules.get("choices") else ""


def _search(phrases: Iterable[str], sentence: str) -> str:
    found = compile_phrases(tuple(phrases)).search(sentence) if phrases else None
    return _format_words(found.group()) if found else ""


def _search_imperative(rules: dict[str, Any], sentence: str) -> str:
    """Return a verb at the start of a sentence or of a clause: "attack it", "collect names and debate them"."""
    verbs = tuple(form for verb, forms in rules.get("verbs", {}).items() for form in (verb, *forms))
    if not verbs:
        return ""
    for found in compile_phrases(verbs).finditer(sentence):
        if _compile_before_verb().search(sentence[: found.start()]):
            return _format_words(found.group())
    return ""


def _find_choice(sentence: str) -> str:
    """Return the alternatives of a choice: "Redis or Postgres?", "Should we buy or rent?"."""
    lists = load_triggers()["choice"]
    masked = mask_text(sentence, lists["exceptions"])
    found = re.search(r"(?<![^\s,:])([^\s,:]+(?:\s+[^\s,:]+)?)\s+or\s+(\S+(?:\s+\S+)?)", masked, re.IGNORECASE)
    if not found or "\0" in found.group():
        return ""
    is_fragment = masked.endswith("?") and len(masked.split()) <= lists["fragment_words"]
    if _compile_start("decisions").match(masked) or (is_fragment and not _compile_start("questions").match(masked)):
        return f'the choice "{" ".join(found.group().split()).rstrip("?.!,")}"'
    return ""


def _format_words(found: str) -> str:
    said = " ".join(found.lower().split())
    return f'the words "{said}"' if re.search(r"[\s-]", said) else f'the word "{said}"'


@cache
def _compile_opening() -> re.Pattern[str]:
    choices = "|".join(opening.replace(" ", WORD_GAP) for opening in load_triggers()["openings"]["polite"])
    return re.compile(rf"(?:(?:{choices})(?!\w)[\s,:]*)+", re.IGNORECASE)


@cache
def _compile_start(name: str) -> re.Pattern[str]:
    """Compile the openings of one kind of question."""
    choices = "|".join(opening.replace(" ", WORD_GAP) for opening in load_triggers()["openings"][name])
    return re.compile(rf"(?:{choices})(?!\w)", re.IGNORECASE)


@cache
def _compile_before_verb() -> re.Pattern[str]:
    choices = "|".join(words.replace(" ", WORD_GAP) for words in load_triggers()["openings"]["before_verb"])
    return re.compile(rf"(?:^|[,:–—]|(?<!\w)(?:{choices}))\s*$", re.IGNORECASE)


# Words that name the project of a folder

PROJECT_WORDS = re.compile(
    r"\b(?:(?:this|our|my|the current) (?:\w+ )?(?:project|repo|repository|code ?base|source code|source tree|code|workspace)"
    r"|the (?:repo|repository|code ?base|source code|source tree|monorepo))\b",
    re.IGNORECASE,
)
PART_WORDS = r"(?:module|package|folder|directory|subfolder|component|file|subsystem)s?"
URL = re.compile(r"\b\w+://\S+")
QUOTED_WORD = re.compile(r"`([^`\s]+)`")
PATH_WORD = re.compile(r"[\w.@~-]*[\w@~-](?:/[\w.@~-]+)+/?|[\w-]+\.\w{1,8}\b|[\w.-]+/(?=\s|$)")
NAMED_PART = re.compile(rf"([\w.-]+) {PART_WORDS}\b", re.IGNORECASE)
MIN_NAME_CHARS = 3
ORDINARY_NAMES = frozenset(
    [
        "app",
        "apps",
        "api",
        "bin",
        "build",
        "code",
        "data",
        "demo",
        "desktop",
        "dev",
        "doc",
        "docs",
        "documents",
        "downloads",
        "example",
        "git",
        "home",
        "lib",
        "main",
        "new",
        "old",
        "package",
        "pkg",
        "project",
        "projects",
        "repo",
        "repos",
        "root",
        "server",
        "site",
        "source",
        "src",
        "temp",
        "test",
        "tests",
        "tmp",
        "tool",
        "tools",
        "user",
        "web",
        "work",
        "workspace",
    ]
)


def names_project(text: str, folder: Path) -> bool:
    """Return whether a question names the project of a folder: by words such as "this repository", its name, or a file or folder of it."""
    text = URL.sub(" ", text)
    return bool(PROJECT_WORDS.search(text)) or _has_project_name(text, folder) or _has_project_file(text, folder)


def _has_project_name(text: str, folder: Path) -> bool:
    root = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)
    names = {root.name, folder.name}
    return any(_has_name(text, name) for name in names if name.casefold() not in ORDINARY_NAMES and len(name) >= MIN_NAME_CHARS)  # fmt: skip


def _has_name(text: str, name: str) -> bool:
    """Return whether a text has a name as a name: "a shop" and "a small shop" mean any shop."""
    pattern = re.compile(rf"(?P<any>\b(?:an?|any|every|each|some|no) (?:\w+ )?)?(?<![\w/.-]){phrase_pattern(name)}(?![\w-])", re.IGNORECASE)  # fmt: skip
    return any(not found["any"] for found in pattern.finditer(text))


def _has_project_file(text: str, folder: Path) -> bool:
    paths = [*PATH_WORD.findall(text), *QUOTED_WORD.findall(text)]
    parts = [*NAMED_PART.findall(text), *QUOTED_WORD.findall(text)]
    if not paths and not parts:
        return False
    try:
        files = [PurePosixPath(name) for name in list_files(find_repo(folder), folder)]
    except UsageError:  # too many files
        return False
    wanted = {word.strip("`.,;:?!").removeprefix("./").rstrip("/") for word in paths}
    known = {str(place) for file in files for place in (file, *file.parents)} | {file.name for file in files}
    named = {part for file in files for part in (file.stem, *file.parts)}
    return bool(wanted & (known - {"."})) or bool(set(parts) & named)
