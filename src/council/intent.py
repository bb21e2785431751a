"""Parse words and flags into an Intent. Its only I/O is checking whether paths exist.

The word lists are in data/triggers.toml, the owners of flags in data/flags.json.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import cache
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from council.errors import UsageError
from council.rules.words import GAP, as_pattern, finder, masked

JUDGING = ("judges", "quick")  # protocols whose task comes from a verb; the task of all others is "ask"
REVISIONS = re.compile(r"[A-Za-z0-9_@][\w./@~^{}-]*?\.{2,3}[A-Za-z0-9_@][\w./@~^{}-]*")


class ChosenBy(Enum):
    """What selected the protocol."""

    FLAG = "flag"  # --protocol, or a flag of one protocol
    PREFIX = "prefix"
    VERB = "verb"
    TARGET = "target"
    TRIGGER = "trigger"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Intent:
    """Parsed request, before seating. `why` does not repeat the protocol's name."""

    task: str  # ask | validate | brainstorm | research
    protocol: str
    why: str
    question: str
    target: str | None
    verbose: bool
    domain: str  # code | architecture | writing | research | general
    options: dict[str, Any]
    chosen_by: ChosenBy = ChosenBy.FLAG


class Choice(NamedTuple):
    protocol: str
    why: str
    by: ChosenBy


class Verb(NamedTuple):
    task: str
    said: str
    rest: str  # the words after a leading verb, or all words
    leads: bool


def read_intent(
    words: Sequence[str],
    flags: Mapping[str, Any],
    *,
    protocol: str | None = None,
    verbose: bool = False,
    folder: Path,
    known: Collection[str],
) -> Intent:
    """Parse the words and the flags of protocols. Raise UsageError only."""
    text, shown = _without_verbose(" ".join(words).strip())
    prefixed, text = _without_prefix(text)
    text, shown_after_prefix = _without_verbose(text)
    asked, text = _without_ask(words, text)
    choice = _by_flags(flags, _explicit(protocol, prefixed, known))
    verb = None if asked else _leading_verb(text)
    rest = verb.rest if verb else text
    paths = _paths(words, rest, folder)
    if not asked and not verb and paths:
        verb = _verb_within(text)
    choice = choice or (None if asked else _by_task(verb, text, paths)) or _by_trigger(text)
    task = _task(choice.protocol, verb, flags)
    question = rest if verb and verb.said == task and verb.leads else text  # a leading verb is not part of the question
    if not question:
        raise UsageError(_nothing_asked(verb))
    return Intent(
        task=task,
        protocol=choice.protocol,
        why=choice.why,
        question=question,
        target=_target(task, words, rest, paths),
        verbose=verbose or shown or shown_after_prefix,
        domain=domain_of(text),
        options=dict(flags),
        chosen_by=choice.by,
    )


def focus_line(domain: str, seat: str) -> str:
    """Return the focus of a seat of the dual modes in this domain, or ""."""
    return str(_data()["focus"].get(domain, {}).get(seat, ""))


def domain_of(text: str) -> str:
    """Return the domain of a question. Any code artefact in it means "code"."""
    domains = _data()["domains"]
    if any(re.search(artefact, text) for artefact in domains["artefacts"]):
        return "code"
    for domain in ("code", "architecture", "writing", "research"):
        if finder(tuple(domains[domain]["words"])).search(masked(text, domains[domain]["exceptions"])):
            return domain
    return "general"


# The choice of a protocol: by name, flag, verb, target, trigger word, or default.


def _explicit(protocol: str | None, prefixed: Choice | None, known: Collection[str]) -> Choice | None:
    if protocol is None:
        return prefixed
    name = protocol.strip().lower()
    if name not in known:
        raise UsageError(
            f'unknown protocol "{protocol}": {_did_you_mean(name, known)}known are {", ".join(sorted(known))}'
        )
    if prefixed and prefixed.protocol != name:
        raise UsageError(
            f"--protocol chose {name} and {prefixed.why} {prefixed.protocol}: a run uses one protocol, drop one"
        )
    return Choice(name, "--protocol", ChosenBy.FLAG)


def _by_flags(flags: Mapping[str, Any], explicit: Choice | None) -> Choice | None:
    owners = {name: _owners_of(name, explicit) for name in flags}
    if explicit:
        _refuse_flags_of_others(owners, explicit)
        return explicit
    for one, other in combinations(owners, 2):
        if not set(owners[one]) & set(owners[other]):
            raise UsageError(
                f"{_flag(one)} belongs to {owners[one][0]} and {_flag(other)} to {owners[other][0]}: "
                "a run uses one protocol, drop one of the two flags"
            )
    # The flag with the fewest owners decides: --preset together with a flag of general means general.
    decisive = min(owners, key=lambda name: len(owners[name]), default=None)
    return Choice(owners[decisive][0], _flag(decisive), ChosenBy.FLAG) if decisive else None


def _refuse_flags_of_others(owners: Mapping[str, Sequence[str]], explicit: Choice) -> None:
    for name, owned_by in owners.items():
        if explicit.protocol not in owned_by:
            raise UsageError(
                f"{_flag(name)} belongs to {owned_by[0]}, but {explicit.why} chose {explicit.protocol}: drop one of the two"
            )


def _owners_of(name: str, explicit: Choice | None) -> tuple[str, ...]:
    """Return the protocols that own a flag. An unlisted flag may belong to an explicitly named third-party protocol."""
    table = _owners()
    if name in table:
        return table[name]
    if explicit:
        return (explicit.protocol,)
    raise UsageError(
        f"no protocol has the option {_flag(name)}: {_did_you_mean(_flag(name), map(_flag, table))}name the protocol it belongs to"
    )


def _by_task(verb: Verb | None, text: str, paths: Sequence[str]) -> Choice | None:
    if verb and verb.leads:
        return Choice("judges", f'the verb "{verb.said}"', ChosenBy.VERB)
    if lone := _lone_target(text, paths):
        return Choice("judges", f'the target "{lone}"', ChosenBy.TARGET)
    return Choice("judges", f'the verb "{verb.said}" and the target "{paths[0]}"', ChosenBy.VERB) if verb else None


def _by_trigger(text: str) -> Choice:
    for protocol in ("adversarial", "collaborative"):
        lists = _data()["protocols"][protocol]
        words = tuple(form for word, forms in lists["words"].items() for form in (word, *forms))
        if found := finder(words).search(masked(text, lists["exceptions"])):
            return Choice(protocol, _the_words(found.group()), ChosenBy.TRIGGER)
    return Choice("collaborative", "the default", ChosenBy.DEFAULT)


def _the_words(found: str) -> str:
    said = " ".join(found.lower().split())
    return f'the words "{said}"' if re.search(r"[\s-]", said) else f'the word "{said}"'


def _task(protocol: str, verb: Verb | None, flags: Mapping[str, Any]) -> str:
    if protocol not in JUDGING:
        return "ask"
    if verb and verb.leads:
        return verb.task
    if "technique" in flags:
        return "brainstorm"
    return verb.task if verb else "validate"


# Words that are not part of the question: verbose phrases, a protocol prefix, the word `ask`.


def _without_verbose(text: str) -> tuple[str, bool]:
    shown = False
    while span := _verbose_span(text):
        text, shown = _cut(text, *span), True
    return text, shown


def _verbose_span(text: str) -> tuple[int, int] | None:
    lists = _data()["verbose"]
    open_text = masked(text, lists["exceptions"])
    if phrase := finder(tuple(lists["phrases"])).search(open_text):
        return phrase.span()
    beside = finder(tuple(lists["beside"]))
    for word in finder(tuple(lists["words"])).finditer(open_text):
        if _stands_apart(open_text, *word.span()) or beside.match(open_text[word.end() :].lstrip()):
            return word.span()
    return None


def _stands_apart(text: str, start: int, end: int) -> bool:
    """Return whether a span is at an edge of the text or set off by punctuation on both sides; see triggers.toml."""
    before, after = text[:start].rstrip(" \t"), text[end:].lstrip(" \t")
    if text[:start].endswith("-") or text[end : end + 1] in ("=", "-"):
        return False  # the sentence mentions a flag or a setting
    if not before.strip() or not after.strip():
        return True
    return before[-1] in ",;:.!?([\n–—" and after[0] in ",;:.)]\n–—"


def _cut(text: str, start: int, end: int) -> str:
    """Remove a span with its surrounding punctuation, and join the rest with natural punctuation."""
    left, right = text[:start].rstrip(" \t"), text[end:].lstrip(" \t")
    if left.endswith("(") and right.startswith(")"):
        left, right = left[:-1], right[1:]
    kept_left, kept_right = left.rstrip(" \t,;:–—-"), right.lstrip(" \t,;:–—.")
    if not kept_left.strip() or not kept_right.strip():
        return (kept_left + kept_right).strip()
    between = left[len(kept_left) :] + right[: len(right) - len(kept_right)]
    mark = next((mark for mark in ":.;," if mark in between), "")
    mark = "" if mark == "." and kept_left[-1] in ".!?" else mark
    return f"{kept_left}{mark}{'' if kept_right[0] in '?!)]' or kept_right[0].isspace() else ' '}{kept_right}"


def _without_prefix(text: str) -> tuple[Choice | None, str]:
    for prefix, protocol in _data()["prefixes"].items():
        if found := re.match(rf"{as_pattern(prefix)}\s*:\s*", text, re.IGNORECASE):
            return Choice(protocol, f'the prefix "{prefix}:"', ChosenBy.PREFIX), text[found.end() :].strip()
    return None, text


def _without_ask(words: Sequence[str], text: str) -> tuple[bool, str]:
    """Remove a leading `ask` that is a separate argument; inside a quoted sentence it is part of the question."""
    first, _, rest = text.partition(" ")
    return (True, rest.strip()) if first == "ask" and "ask" in words else (False, text)


def _nothing_asked(verb: Verb | None) -> str:
    example = f"council {verb.task} recent" if verb else 'council "Which queue fits us?"'
    return f"no question was given: add one, for example {example}"


# Verbs of the judges.


@cache
def _tasks() -> dict[str, str]:
    return {word: task for task, words in _data()["verbs"]["tasks"].items() for word in words}


def _leading_verb(text: str) -> Verb | None:
    found = _find_verb(text)
    if found is None or found.start() or text[found.end() : found.end() + 1] == "-":
        return None
    return _verb(found, text[found.end() :].lstrip(" \t\n:,;–—"), leads=True)


def _verb_within(text: str) -> Verb | None:
    found = _find_verb(text)
    return _verb(found, text, leads=False) if found else None


def _find_verb(text: str) -> re.Match[str] | None:
    return finder(tuple(_tasks())).search(masked(text, _data()["verbs"]["exceptions"]))


def _verb(found: re.Match[str], rest: str, *, leads: bool) -> Verb | None:
    said = re.sub(GAP, " ", found.group().lower())
    task = _tasks().get(said)  # None for letters that match only case-insensitively, such as a dotless i
    return Verb(task, said, rest, leads) if task else None


# Targets, as the user wrote them.


def _target(task: str, words: Sequence[str], rest: str, paths: Sequence[str]) -> str | None:
    if task != "ask" and (named := _named_target(rest) or _revisions(rest)):
        return named
    if "-" in words and "-" in (rest[:2].strip(), rest[-2:].strip()):
        return "-"
    return " ".join(paths) or None


def _lone_target(text: str, paths: Sequence[str]) -> str | None:
    """Return the target if the text consists of nothing else."""
    if text == "-" or (REVISIONS.fullmatch(text) and not paths):
        return text
    if paths and " ".join(paths) == " ".join(text.split()):
        return " ".join(paths)
    named = _named_target(text)
    return named if named and not re.search(r"[,;:]", text) else None


def _named_target(rest: str) -> str | None:
    for name, phrases in _data()["targets"].items():
        found = finder(tuple(phrases)).match(rest)
        if found and re.match(r"\s*(?:[,;:]|$)", rest[found.end() :]):
            return str(name)
    return None


def _revisions(rest: str) -> str | None:
    """Return a range such as main..HEAD at the start or end; elsewhere two dots are probably punctuation."""
    edges = (rest.split() or [""])[:: max(1, len(rest.split()) - 1)]
    return next((edge for edge in edges if REVISIONS.fullmatch(edge)), None)


def _paths(words: Sequence[str], rest: str, folder: Path) -> list[str]:
    if _exists(rest, folder):
        return [rest]  # alone, even a plain word or a name with spaces is a path
    tokens = [token for word in words for token in ([word] if _exists(word, folder) else word.split())]
    found = (_path_within(token, folder) for token in tokens)
    return list(dict.fromkeys(path for path in found if path))


def _path_within(token: str, folder: Path) -> str | None:
    """Return the token if it is a path and looks like one: `docs` in a sentence is a word, `docs/` and `Makefile` are paths."""
    bare = token if _exists(token, folder) else token.strip("\"'`()[]<>").rstrip(".,;:!?\"'`)")
    if not re.search(r"\w", bare) or not _exists(bare, folder):
        return None
    place = folder / bare
    if place.is_dir():
        return bare if "/" in bare and not Path(bare).is_absolute() else None
    return bare if re.search(r"[/.*?\[\\]", bare) or bare != bare.lower() else None


def _exists(path: str, folder: Path) -> bool:
    if not path or path == "-":
        return False
    try:
        if (folder / path).exists():
            return True
        if not re.search(r"[*\[?]", path) or not re.search(r"[./]", path) or Path(path).is_absolute():
            return False
        return next(folder.glob(path), None) is not None
    except (OSError, ValueError, re.error):
        return False


# Data files and message parts.


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("council").joinpath("data/triggers.toml").read_text(encoding="utf-8"))


@cache
def _owners() -> dict[str, tuple[str, ...]]:
    table = json.loads(files("council").joinpath("data/flags.json").read_text(encoding="utf-8"))
    return {row["name"]: tuple(row["owners"]) for row in table}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = [name for name in names if name.startswith(word)] or get_close_matches(word, names, n=1)
    return f'did you mean "{near[0]}"? ' if near and word else ""
