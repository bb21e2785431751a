"""Words that choose a protocol or name the project: phrases of data/triggers.toml and where in a sentence they count.

A verb counts where it is what the user asks for: at the start of a sentence, after a polite opening, or after "and".
In a question ("Why did Rome attack Carthage?") it is the subject and does not count; comparisons and choices do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from council.errors import UsageError
from council.packet.files import list_files
from council.packet.git import find_repo
from council.planning.choices import find_choice
from council.planning.phrases import (
    UNIFIED,
    Sentence,
    compile_opening,
    compile_words,
    find_phrases,
    join_starts,
    join_words,
    load_triggers,
    lower,
    phrase_pattern,
    read_sentences,
    strip_opening,
)
from council.settings.config_files import find_root

CONTEXT_CHARS = 120  # before a verb
WHO = re.compile(r"(?<!\w)(?:who|that|which)(?: \w+){0,2} $")
OBJECT = re.compile(r"(?<!\w)(?:my|our|this|that|it|the|these|those|me)(?: \w+){0,4} $")


def find_trigger(text: str, *, can_search: Callable[[], bool] = lambda: False) -> Mode | None:
    """Return the protocol that the words ask for: a mode by its name, or the first of the table that matches."""
    sentences = read_sentences(text)
    if mode := find_mode(sentences):
        return Mode(mode.protocol, _format_words(mode.words))
    for protocol, rules in load_triggers()["protocols"].items():
        found = _search_sentences(sentences, rules)
        if found and "exceptions" in rules:
            found = _search_sentences([sentence.mask(rules["exceptions"]) for sentence in sentences], rules)
        if found and (can_search() or not rules.get("needs_search")):
            return Mode(protocol, found)
    return None


def _search_sentences(sentences: Sequence[Sentence], rules: dict[str, Any]) -> str:
    """Return what in the sentences chooses a protocol, or ""."""
    cores = [sentence.without_opening().text for sentence in sentences]
    if cores and compile_opening("transformations").match(cores[0]):
        return next((found for core in cores[1:] if (found := _search_verb(rules, core))), "")
    if found := next((found for core in cores if (found := _search_sentence(core, rules))), ""):
        return found
    choice = find_choice(sentences) if rules.get("choices") else ""
    return f'the choice "{choice}"' if choice else ""


def _search_sentence(sentence: str, rules: dict[str, Any]) -> str:
    if rules.get("needs_list") and not re.search(r",.+(?:,|\band\b|\bor\b)|:", sentence):
        return ""
    if compile_opening("writing").match(sentence) and not sentence.endswith("?"):
        return ""
    found = ""
    if not compile_opening("subjects").match(sentence):
        found = _search(rules, "phrases", sentence) or _search_noun(rules, sentence)
    if not found and not compile_opening("questions").match(sentence):
        found = _search(rules, "asked", sentence) or _search_verb(rules, sentence)
        found = found or _search_inflection(rules, sentence)
    if found:
        return found
    compared = compile_words(tuple(rules["comparisons"])).search(sentence) if "comparisons" in rules else None
    return _format_words(compared.group()) if compared and not compile_opening("facts").match(sentence) else ""


def _search(rules: dict[str, Any], name: str, sentence: str) -> str:
    found = next(find_phrases(rules.get(name, {}), sentence), None)
    return _format_words(found.group()) if found else ""


def _search_verb(rules: dict[str, Any], sentence: str) -> str:
    """Return a verb at the start of a sentence or of a clause: "attack it", "collect names and debate them"."""
    for found in find_phrases(rules.get("verbs", {}), sentence):
        before = sentence[max(0, found.start() - CONTEXT_CHARS) : found.start()]
        if _compile_before("before_verb", r"^|[,:，：–—]|").search(before):
            return _format_words(found.group())
    return ""


def _search_inflection(rules: dict[str, Any], sentence: str) -> str:
    """Return another form of a verb: "try arguing", "someone who challenges me", "I want it challenged"."""
    for found in _find_words(rules.get("gerunds", ()), sentence):
        if _compile_before("before_gerund").search(sentence[: found.start()][-CONTEXT_CHARS:]):
            return _format_words(found.group())
    if not compile_opening("requests").match(sentence):
        return ""
    for form, place in (("third_person", WHO), ("participles", OBJECT)):
        for found in _find_words(rules.get(form, ()), sentence):
            if place.search(sentence[: found.start()][-CONTEXT_CHARS:]):
                return _format_words(found.group())
    return ""


def _find_words(words: Sequence[str], sentence: str) -> list[re.Match[str]]:
    plain = sentence.replace("-", " ")
    listed = tuple(word for word in words if word in plain)
    return list(compile_words(listed).finditer(sentence)) if listed else []


def _search_noun(rules: dict[str, Any], sentence: str) -> str:
    """Return a noun that is asked for: "I'd like a debate on", "run a stress test of", "A debate on uniforms"."""
    if not _find_words(rules.get("nouns", ()), sentence):
        return ""
    for pattern in _compile_nouns(tuple(rules["nouns"]), tuple(rules["after_noun"])):
        if found := pattern.search(sentence):
            return _format_words(found["noun"])
    return ""


@cache
def _compile_nouns(nouns: tuple[str, ...], after: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    noun = rf"(?P<noun>(?:{join_words(nouns)})(?!\w))"
    requests = join_words(load_triggers()["openings"]["requests"])
    article = r"(?:(?:an?|the|some|one|another|eine?n?|une?|una|uno|uma?) )?"
    asked = rf"(?:^|(?<=[,:–—]) ?)(?:{requests})(?!\w)[ -]{article}(?:[\w']+[ -]){{0,3}}?{noun}"
    adjective = r"(?:(?!the|this|that|our|his|her|their|my|last|first)[\w']+ )?"
    alone = rf"^(?:(?:an?|eine?|une?|una|uma?) )?{adjective}{noun}(?: (?:{join_words(after)})(?!\w)| ?[:,–—-])"
    return re.compile(asked), re.compile(alone)


def _format_words(found: str) -> str:
    said = " ".join(found.split())
    return f'the words "{said}"' if re.search(r"[\s-]", said) else f'the word "{said}"'


@cache
def _compile_before(name: str, other: str = "") -> re.Pattern[str]:
    return re.compile(rf"(?:{other}(?<!\w)(?:{join_words(load_triggers()['openings'][name])})) ?$")


# Modes by their names: "adversarial council: …", "in collaborative mode, …", "council of advisors - …"
# A name at the start of a question is a prefix, which is removed. Elsewhere it is a request, and stays.

MAX_PREFIX_CHARS = 200
MARK = (  # after a name, with "please" or "for this" before it
    r"(?: (?:for|on|about|with) (?:this|that|it|the following)(?: one| question)?(?=[:：,，.!]))?(?:,? please)?"
    r"(?:\s*[:：,，、–—]|[.!]+(?=\s)|\s*-+(?=\s|$)|\s+-+(?=\S)|\s*[\])】）]\s*[:：,，–—-]?)"
)
BRACKET = r"[\[(【（]?\s*"
IN_QUESTION = re.compile(
    r"[,:(–—] ?(?:(?:in|using|with|via) )?(?:(?:an?|the) )?$|^(?:can|could|would|will) (?:an?|the|my|our) $"
)
VERB = re.compile(r"(?:is|are|was|were|has|can|will|does|could|would|should)\b", re.IGNORECASE)


class Mode(NamedTuple):
    """A protocol, and the words that chose it."""

    protocol: str
    words: str


def strip_mode(text: str) -> tuple[Mode | None, str]:
    """Return the mode that a question starts with, and the question without it."""
    core = strip_opening(text)
    opening = Sentence(core, re.sub(r"\s", " ", lower(core[:MAX_PREFIX_CHARS].translate(UNIFIED))))
    if not _has_stem(opening.text):
        return None, text
    masked = opening.mask(_load_modes()["exceptions"]).text
    for protocol in _load_modes()["names"]:
        if found := _match_prefix(masked, core, protocol):
            return Mode(protocol, _format_name(found)), core[found.end() :].strip()
    return None, text


def _format_name(found: re.Match[str]) -> str:
    colon = ":" if found.group()[found.end("name") :].strip().startswith((":", "：")) else ""
    return " ".join(found["name"].replace("-", " ").split()) + colon


def _match_prefix(opening: str, core: str, protocol: str) -> re.Match[str] | None:
    marked, short, bare = _compile_prefixes(protocol)
    if found := marked.match(opening) or short.match(opening):
        return found
    found = bare.match(opening)
    is_sentence = found and VERB.match(core[found.end() :]) and not core.rstrip().endswith(("?", "？"))
    return None if is_sentence else found  # "Adversarial council is a pattern"


@cache
def _compile_prefixes(protocol: str) -> tuple[re.Pattern[str], ...]:
    """Compile a name with a mark or a preposition after it, a short name with a mark, and a name before other words."""
    modes = _load_modes()
    names, short_names = (join_starts(modes[table][protocol]) for table in ("names", "short_names"))
    before = rf"(?:(?:{join_starts(modes['before'])}) ?)?(?:(?:{join_words(modes['articles'])}) )?"
    mark = rf"(?:{'|'.join(modes['suffixes'])})?(?:{MARK}|\s*$)"
    after = rf" (?:{join_words(modes['after'])})(?!\w)"
    continued = rf" (?:{join_words(modes['continued'])})(?!\w)"
    return (
        re.compile(rf"{BRACKET}{before}(?P<name>{names})(?:{mark}|{after})\s*"),
        re.compile(rf"{BRACKET}{before}(?P<name>{short_names}){mark}\s*"),
        re.compile(rf"{before}(?P<name>{names})(?!{continued})\s+"),
    )


def find_mode(sentences: Sequence[Sentence]) -> Mode | None:
    """Return the mode that a sentence asks for by its name; a question about a mode asks for none."""
    for sentence in sentences:
        if not _has_stem(sentence.text):
            continue
        text = sentence.without_opening().mask(_load_modes()["exceptions"]).text
        found = [
            (match.start(), Mode(protocol, match.group()))
            for protocol in _load_modes()["names"]
            if (match := _compile_requests(protocol).search(text)) and _is_asked(text, match.start())
        ]
        if found:
            return min(found)[1]
    return None


@cache
def _compile_requests(protocol: str) -> re.Pattern[str]:
    return compile_words((*_load_modes()["names"][protocol], *_load_modes()["requests"].get(protocol, ())))


def _is_asked(sentence: str, start: int) -> bool:
    """Return whether a name is a request; in a question only after a comma, or if it is to do something."""
    if not (compile_opening("questions").match(sentence) or compile_opening("telling").match(sentence)):
        return True
    return bool(IN_QUESTION.search(sentence[:start]))


def _has_stem(text: str) -> bool:
    return any(stem in text for stem in _load_modes()["stems"])


def _load_modes() -> dict[str, Any]:
    modes: dict[str, Any] = load_triggers()["modes"]
    return modes


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
    """Return whether a question names the project: "this repository", its name, or a file or folder of it."""
    text = URL.sub(" ", text)
    return bool(PROJECT_WORDS.search(text)) or _has_project_name(text, folder) or _has_project_file(text, folder)


def _has_project_name(text: str, folder: Path) -> bool:
    names = {find_root(folder).name, folder.name}
    telling = [one for one in names if one.casefold() not in ORDINARY_NAMES and len(one) >= MIN_NAME_CHARS]
    return any(_has_name(text, name) for name in telling)


def _has_name(text: str, name: str) -> bool:
    """Return whether a text has a name as a name: "a shop" and "a small shop" mean any shop."""
    pattern = re.compile(
        rf"(?P<any>\b(?:an?|any|every|each|some|no) (?:\w+ )?)?(?<![\w/.-]){phrase_pattern(name)}(?![\w-])",
        re.IGNORECASE,
    )
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
