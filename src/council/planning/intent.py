"""Intent: read words and flags, and choose the protocol, the task and the target."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from council.errors import ConfigError, UsageError, option, wording
from council.flags import AUTO_PROTOCOL, flag_table
from council.packet.files import PATH_WORD, FolderNames, is_glob
from council.packet.targets import is_pathlike
from council.planning.domains import detect_domain
from council.planning.facts import is_short_fact
from council.planning.phrases import WORD_GAP, compile_phrases, load_triggers, mask_text, strip_opening
from council.planning.triggers import find_trigger, strip_mode
from council.protocols import TASKS, find_protocol, is_registered

DEFAULT_PROTOCOL = "collaborative"  # if nothing in the words or flags asks for another
MAX_VERBOSE_PHRASES = 10  # that are removed from a question
REVISION_RANGE = re.compile(r"[A-Za-z0-9_@][\w./@~^{}-]*?\.{2,3}[A-Za-z0-9_@][\w./@~^{}-]*")


class Inferred(Enum):
    """Parts of a request that were not named but taken from the work tree."""

    NOTHING = "nothing"
    TARGET = "target"  # a bare verb
    TASK = "task"  # no words at all: the task and the target


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
    inferred: Inferred = Inferred.NOTHING


class Choice(NamedTuple):
    protocol: str
    why: str
    by: ChosenBy


class Verb(NamedTuple):
    task: str
    word: str
    rest: str  # the words after a leading verb, or all words
    is_leading: bool


def parse_intent(
    words: Sequence[str],
    flags: Mapping[str, Any],
    *,
    protocol: str | None = None,
    verbose: bool = False,
    folder: Path,
    known: Collection[str],
    piped: bool = False,
    names_files: bool = True,
    can_search: Callable[[], bool] = lambda: False,
) -> Intent:
    """Parse the words and flags. With `names_files=False`, no word is a target. Raise UsageError only."""
    text, shown = _strip_verbose(" ".join(words).strip())
    prefixed, text = _strip_prefix(text)
    text, shown_after_prefix = _strip_verbose(text)
    asked, text = _strip_ask(words, text)
    choice = _choose_by_flags(flags, _choose_by_name(protocol, prefixed, known))
    verb = None if asked else _parse_leading_verb(text)
    rest = verb.rest if verb else text
    names = FolderNames(folder)
    paths = _find_paths(words, rest, names) if names_files else []
    if verb and not (paths or piped) and not _applies(verb, names):
        verb, rest = None, text
    if not asked and not verb and paths and (found := _match_verb(text)):
        verb = _make_verb(found, text, is_leading=False)
    by_task = None if asked or choice else _choose_by_task(verb, text, paths, names_files)
    choice = choice or _fit_flags(by_task or _choose_by_trigger(text, can_search), flags)
    is_plain = asked or not (verb or paths or piped)
    task = _choose_task(choice.protocol, verb, flags, question=text if is_plain else "", asked=asked)
    # A leading verb is not part of the question.
    question = rest if verb and verb.word == task and verb.is_leading else text
    if not names_files:
        question = question or text
    if not question:
        raise UsageError(_format_no_question(verb, prefixed), field="question")
    return Intent(
        task=task,
        protocol=choice.protocol,
        why=choice.why,
        question=question,
        target=_choose_target(task, words, rest, paths) if names_files else None,
        verbose=verbose or shown or shown_after_prefix,
        domain=detect_domain(text),
        options=dict(flags),
        chosen_by=choice.by,
    )


def place_piped_text(
    words: Sequence[str], piped: str, flags: Mapping[str, Any], *, protocol: str | None, known: Collection[str]
) -> tuple[list[str], str | None]:
    """Return the words and the material: piped text is the material, or the question if there are no words.

    A verb alone, or a flag of a protocol that only reviews, applies to the piped text."""
    if not piped.strip():
        if {word.strip() for word in words} <= {"-", "ask"}:
            raise UsageError(
                "standard input is empty, and no question was given: pipe the question, or add it as words"
            )
        return list(words), piped
    rest = [word for word in words if word.strip() != "-"]
    kept = [text for word in rest if (text := _strip_edge_dash(word, word is rest[0], word is rest[-1]))]
    if not kept or kept == ["ask"]:
        choice = _choose_by_flags(flags, _choose_by_name(protocol, None, known))
        if kept or not choice or find_protocol(choice.protocol).tasks[0] == "ask":
            return [*kept, piped], None
        kept = [find_protocol(choice.protocol).tasks[0]]
    return ([*kept, "-"] if len(kept) == 1 and kept[0] in TASKS else kept), piped


def _strip_edge_dash(word: str, is_first: bool, is_last: bool) -> str:
    """Remove a separate `-` at an edge of the question: it asks for standard input, as in `explain this: -`."""
    text = re.sub(r"^-\s+", "", word) if is_first else word
    return re.sub(r"\s+-$", "", text) if is_last else text


# The choice of a protocol: by name, flag, verb, target, trigger word, or default.


def _choose_by_name(protocol: str | None, prefixed: Choice | None, known: Collection[str]) -> Choice | None:
    name = AUTO_PROTOCOL if protocol is None else protocol.strip().lower()
    if name == AUTO_PROTOCOL:
        return prefixed
    if name not in known:
        raise UsageError(
            f'unknown protocol "{protocol}": {format_suggestion(name, known)}known are {", ".join(sorted(known))}',
            field="protocol",
        )
    if problem := flag_table().problems.get(name):
        raise ConfigError(problem)
    if prefixed and prefixed.protocol != name:
        raise UsageError(
            f"{option('protocol')} chose {name} and {prefixed.why} {prefixed.protocol}: a run uses one protocol, drop one"
        )
    return Choice(name, "chosen by name", ChosenBy.FLAG)


def _choose_by_flags(flags: Mapping[str, Any], explicit: Choice | None) -> Choice | None:
    owners = {name: _find_flag_owners(name, explicit) for name in flags}
    if explicit:
        _check_flag_owners(owners, explicit, flags)
        return explicit
    for one, other in combinations(owners, 2):
        if not set(owners[one]) & set(owners[other]):
            raise UsageError(
                f"{_name_given(one, flags)} belongs to {owners[one][0]} and {_name_given(other, flags)} to {owners[other][0]}: "
                f"a run uses one protocol, drop one of the two {wording(python='options', cli='flags')}",
                field=f"options.{other}",
            )
    if all(DEFAULT_PROTOCOL in owned_by for owned_by in owners.values()):
        return None  # the words decide
    # The flag with the fewest owners decides: --preset together with a flag of general means general.
    decisive = min(owners, key=lambda name: len(owners[name]), default=None)
    return Choice(owners[decisive][0], _format_given(decisive, flags), ChosenBy.FLAG) if decisive else None


def _fit_flags(choice: Choice, flags: Mapping[str, Any]) -> Choice:
    """Return the choice of the words, or the default protocol if the chosen one does not have a given flag."""
    misfit = _find_misfit(choice.protocol, flags)
    return Choice(DEFAULT_PROTOCOL, _format_given(misfit, flags), ChosenBy.FLAG) if misfit else choice


def _find_misfit(protocol: str, flags: Iterable[str]) -> str | None:
    """Return the first flag that a protocol does not have. A registered protocol checks its options by its model."""
    if is_registered(protocol):
        return None
    return next((name for name in flags if protocol not in _find_flag_owners(name, None)), None)


def prefer_protocol(intent: Intent, protocol: str, source: str) -> Intent:
    """Return the intent with a protocol that `source` prefers, unless it lacks a given flag, which `why` names."""
    misfit = _find_misfit(protocol, intent.options)
    if misfit is None:
        return replace(intent, protocol=protocol, why=source)
    flag = _format_given(misfit, intent.options)
    decisive = intent.why if intent.chosen_by is ChosenBy.FLAG else flag
    lacking = "it" if decisive == flag else flag
    why = f"{decisive}: {protocol}, {source}, does not have {lacking}"
    return replace(intent, why=why, chosen_by=ChosenBy.FLAG)


def _check_flag_owners(owners: Mapping[str, Sequence[str]], explicit: Choice, flags: Mapping[str, Any]) -> None:
    for name, owned_by in owners.items():
        if explicit.protocol not in owned_by:
            chooser = option("protocol") if explicit.by is ChosenBy.FLAG else explicit.why
            raise UsageError(
                f"{_name_given(name, flags)} belongs to {owned_by[0]}, but {chooser} chose {explicit.protocol}: drop one of the two",
                field=f"options.{name}",
            )


def _find_flag_owners(name: str, explicit: Choice | None) -> tuple[str, ...]:
    """Return the protocols that own a flag. Options of a registered protocol are checked by its model."""
    table = {row["name"]: tuple(row["owners"]) for row in flag_table().rows}
    if explicit and is_registered(explicit.protocol):
        return (explicit.protocol,)
    if name in table:
        return table[name]
    if explicit:
        return (explicit.protocol,)
    raise UsageError(
        f"no protocol has the option {option(name)}: {format_suggestion(name, table, option)}name the protocol it belongs to",
        field=f"options.{name}",
    )


def _choose_by_task(verb: Verb | None, text: str, paths: Sequence[str], names_files: bool) -> Choice | None:
    if verb and verb.is_leading:
        return Choice("judges", f'the verb "{verb.word}"', ChosenBy.VERB)
    if names_files and (lone := _find_lone_target(text, paths)):
        return Choice("judges", f'the target "{lone}"', ChosenBy.TARGET)
    return Choice("judges", f'the verb "{verb.word}" and the target "{paths[0]}"', ChosenBy.VERB) if verb else None


def _choose_by_trigger(text: str, can_search: Callable[[], bool]) -> Choice:
    found = find_trigger(text, can_search=can_search)
    return Choice(*found, ChosenBy.TRIGGER) if found else Choice(DEFAULT_PROTOCOL, "the default", ChosenBy.DEFAULT)


def _choose_task(protocol: str, verb: Verb | None, flags: Mapping[str, Any], *, question: str, asked: bool) -> str:
    """Return the task of a leading verb, of a flag or of another verb, if the protocol accepts it, else its first task.

    A protocol that reviews by default answers a `question` if the word `ask` says so, or if it has one short answer."""
    tasks = find_protocol(protocol).tasks
    if question and "ask" in tasks[1:] and (asked or is_short_fact(question)):
        return "ask"
    by_flag = "brainstorm" if "technique" in flags else ""
    wanted = verb.task if verb and (verb.is_leading or not by_flag) else by_flag
    return wanted if wanted in tasks else tasks[0]


# Words that are not part of the question: verbose phrases, a protocol prefix, the word `ask`.


def _strip_verbose(text: str) -> tuple[str, bool]:
    shown = False
    for _ in range(MAX_VERBOSE_PHRASES):
        if not (span := _find_verbose(text)):
            break
        text, shown = _remove_span(text, *span), True
    return text, shown


def _find_verbose(text: str) -> tuple[int, int] | None:
    lists = load_triggers()["verbose"]
    open_text = mask_text(text, lists["exceptions"])
    if phrase := compile_phrases(tuple(lists["phrases"])).search(open_text):
        return phrase.span()
    beside = compile_phrases(tuple(lists["beside"]))
    for word in compile_phrases(tuple(lists["words"])).finditer(open_text):
        if _is_set_off(open_text, *word.span()) or beside.match(open_text[word.end() :].lstrip()):
            return word.span()
    return None


def _is_set_off(text: str, start: int, end: int) -> bool:
    """Return whether a span is at an edge of the text or set off by punctuation on both sides; see triggers.toml."""
    before, after = text[:start].rstrip(" \t"), text[end:].lstrip(" \t")
    if text[:start].endswith("-") or text[end : end + 1] in ("=", "-"):
        return False  # the sentence mentions a flag or a setting
    if not before.strip() or not after.strip():
        return True
    return before[-1] in ",;:.!?([\n–—" and after[0] in ",;:.)]\n–—"


def _remove_span(text: str, start: int, end: int) -> str:
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


def _strip_prefix(text: str) -> tuple[Choice | None, str]:
    """Remove the name of a mode at the start: "adversarial council:", "please run an adversarial council on"."""
    mode, rest = strip_mode(text)
    return (Choice(mode.protocol, f'the prefix "{mode.words}"', ChosenBy.PREFIX) if mode else None), rest


def _strip_ask(words: Sequence[str], text: str) -> tuple[bool, str]:
    """Remove a leading `ask` that is a separate argument; inside a quoted sentence it is part of the question."""
    first, _, rest = text.partition(" ")
    return (True, rest.strip()) if first == "ask" and "ask" in words else (False, text)


def _format_no_question(verb: Verb | None, prefixed: Choice | None) -> str:
    if prefixed and not verb:
        return f"no question was given after {prefixed.why}: add one"
    example = f"council {verb.task} recent" if verb else 'council "Which queue fits us?"'
    words = f"add one, for example {example}"
    fix = wording(python=words, cli=words, http='put it into "question"')
    return f"no question was given: {fix}"


# Verbs of the judges.


@cache
def _tasks_by_verb() -> dict[str, str]:
    return {word: task for task, words in load_triggers()["verbs"]["tasks"].items() for word in words}


def _parse_leading_verb(text: str) -> Verb | None:
    """Return the verb at the start, after a polite opening; with an opening, only its object can be a target."""
    core = strip_opening(text)
    found = _match_verb(core)
    if found is None or found.start() or core[found.end() : found.end() + 1] == "-":
        return None
    return _make_verb(found, core[found.end() :].lstrip(" \t\n:,;–—"), is_leading=True)


def _applies(verb: Verb, names: FolderNames) -> bool:
    """Return whether a verb has something to apply to: "review our code" has, "check if 17 is prime" has not."""
    lists = load_triggers()["verbs"]
    if verb.word not in lists["need_object"] or not verb.rest or _find_named_target(verb.rest):
        return True
    words = (word.strip("\"'`()[]<>").rstrip(".,;:!?") for word in verb.rest.split())
    if _find_revision_range(verb.rest) or any(is_pathlike(names, word) for word in words):
        return True  # a missing file is reported later
    return bool(compile_phrases(tuple(lists["objects"])).search(mask_text(verb.rest, lists["object_exceptions"])))


def _match_verb(text: str) -> re.Match[str] | None:
    return compile_phrases(tuple(_tasks_by_verb())).search(mask_text(text, load_triggers()["verbs"]["exceptions"]))


def _make_verb(found: re.Match[str], rest: str, *, is_leading: bool) -> Verb | None:
    said = re.sub(WORD_GAP, " ", found.group().lower())
    task = _tasks_by_verb().get(said)  # None for letters that match only case-insensitively, such as a dotless i
    return Verb(task, said, rest, is_leading) if task else None


# Targets, as the user wrote them.


def _choose_target(task: str, words: Sequence[str], rest: str, paths: Sequence[str]) -> str | None:
    if task != "ask" and (named := _find_named_target(rest) or _find_revision_range(rest)):
        return named
    if "-" in words and "-" in (rest[:2].strip(), rest[-2:].strip()):
        return "-"
    return " ".join(paths) or None


def _find_lone_target(text: str, paths: Sequence[str]) -> str | None:
    """Return the target if the text consists of nothing else."""
    if REVISION_RANGE.fullmatch(text) and not paths:
        return text
    if paths and " ".join(paths) == " ".join(text.split()):
        return " ".join(paths)
    named = _find_named_target(text)
    return named if named and not re.search(r"[,;:]", text) else None


def _find_named_target(rest: str) -> str | None:
    for name, phrases in load_triggers()["targets"].items():
        found = compile_phrases(tuple(phrases)).match(rest)
        if found and re.match(r"\s*(?:[,;:]|$)", rest[found.end() :]):
            return str(name)
    return None


def _find_revision_range(rest: str) -> str | None:
    """Return a range such as main..HEAD at the start or end; elsewhere two dots are probably punctuation."""
    edges = (rest.split() or [""])[:: max(1, len(rest.split()) - 1)]
    return next((edge for edge in edges if REVISION_RANGE.fullmatch(edge)), None)


def _find_paths(words: Sequence[str], rest: str, names: FolderNames) -> list[str]:
    if _path_exists(rest, names):
        return [rest]  # alone, even a plain word or a name with spaces is a path
    tokens = [token for word in words for token in ([word] if _path_exists(word, names) else PATH_WORD.findall(word))]
    found = (_parse_path(token, names) for token in tokens)
    return list(dict.fromkeys(path for path in found if path))


def _parse_path(token: str, names: FolderNames) -> str | None:
    """Return the token if it is a path and looks like one: `docs/` and `Makefile` do, `docs` is a word."""
    bare = token if _path_exists(token, names) else token.strip("\"'`()[]<>").rstrip(".,;:!?\"'`)")
    if not re.search(r"\w", bare) or not _path_exists(bare, names):
        return None
    place = names.root / bare
    if place.is_dir():
        return bare if "/" in bare and not Path(bare).is_absolute() else None
    return bare if re.search(r"[/.*?\[\\]", bare) or bare != bare.lower() else None


def _path_exists(path: str, names: FolderNames) -> bool:
    try:
        if names.exists(path) and (names.root / path).exists():
            return True
        if not is_glob(path) or not names.matches(path) or Path(path).is_absolute():
            return False
        return next(names.root.glob(path), None) is not None
    except (OSError, ValueError, re.error):
        return False


# Data files and message parts.


def _format_given(name: str, flags: Mapping[str, Any]) -> str:
    """Return the flag as it was given: `--no-NAME` turns an option off."""
    full_name = f"no_{name}" if flags[name] is False else name
    return "--" + full_name.replace("_", "-")


def _name_given(name: str, flags: Mapping[str, Any]) -> str:
    """Name a given option in the words of each interface."""
    cli = _format_given(name, flags)
    return wording(python=f"{name}={flags[name]!r}" if isinstance(flags[name], bool) else name, cli=cli, http=name)


def format_suggestion(word: str, known: Iterable[str], show: Callable[[str], str] = str) -> str:
    """Return a question about the known name that is nearest to a word; empty if none is near."""
    names = sorted(known)
    near = [name for name in names if name.startswith(word)] or get_close_matches(word, names, n=1)
    return f'did you mean "{show(near[0])}"? ' if near and word else ""
