"""The check of a finished text: other seats read it as hostile experts, and its author corrects what is right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypedDict, cast

from pydantic import BeforeValidator, Field

from council.engine.council import Council
from council.engine.records import SectionRow
from council.engine.reply import Reply, also_named, one_row_per
from council.engine.reply_form import LONGEST_PATH
from council.errors import ChairAbsent, SeatAbsent
from council.protocols.common.issues import (
    NONE,
    SEVERE,
    Issue,
    Point,
    Rulings,
    apply_rulings,
    keep_most_severe,
    match_ids,
    none_to_list,
    read_points,
)
from council.protocols.common.lengths import count_words
from council.protocols.common.replies import ReplyPart, TextField
from council.types import SEVERITIES, CheckedError, CheckFacts, Json, Seat, Statement, TrustFact, TrustFactKind, Verdict

READERS = 2  # of a finished text
MAX_ERRORS = 4  # of one reader
CITATION = re.compile(r"\[\d+\]")  # of a source
MAX_FIELD_WORDS = 120  # of a field of an error: a longer one is a new answer
UNSETTLED_ERRORS: tuple[tuple[TrustFactKind, str, tuple[str, ...]], ...] = (  # kind of fact, state, severities
    ("error_open_fatal", "open", ("FATAL",)),
    ("error_open", "open", ("MAJOR", "MINOR")),
    ("error_dismissed_fatal", "dismissed", ("FATAL",)),
    ("error_dismissed", "dismissed", ("MAJOR",)),
)

# Replies


def shorten_words(text: str, limit: int = MAX_FIELD_WORDS) -> str:
    """Return the first words of a text."""
    words = text.split()
    return text if len(words) <= limit else f"{' '.join(words[:limit])} …"


class FoundError(Issue):
    """An error or a gap in a text."""

    hits: TextField = Field(
        default="",
        description="the words that are wrong, copied exactly from the text; for a gap, the words after which it belongs",
        json_schema_extra=also_named("place", "passage", "quote", "where", "location"),
    )
    flaw: str = Field(
        description="what is wrong or missing, with the evidence",
        json_schema_extra=also_named("error", "problem", "issue", "gap"),
    )
    correction: TextField = Field(
        default="",
        description="what is right, or what is missing, in one or two sentences",
        json_schema_extra=also_named("fix", "suggestion"),
    )
    harm: TextField = Field(
        default="", description="what happens to a reader who acts on the text as it is, in one sentence"
    )


class FoundErrorRow(TypedDict):
    """An error in a text as it is stored."""

    severity: str
    hits: str
    flaw: str
    correction: str
    harm: str


def dump_error(error: FoundError) -> FoundErrorRow:
    return cast("FoundErrorRow", error.model_dump())


class Critique(Reply):
    """The errors and gaps that a reader found in a text; an empty list is valid."""

    takes_a_position: ClassVar[bool] = False
    errors: Annotated[list[FoundError], BeforeValidator(none_to_list)] = Field(
        description=f"at most {MAX_ERRORS} errors that you can support, the most harmful first; empty if there is none",
        json_schema_extra=also_named("issues", "findings", "problems", "flaws"),
    )

    @property
    def counted_errors(self) -> dict[int, FoundError]:
        """The errors that count, by their number: all, or the most severe."""
        return {number: _shorten_error(error) for number, error in keep_most_severe(self.errors, MAX_ERRORS).items()}

    @property
    def is_severe(self) -> bool:
        return any(error.severity in SEVERE for error in self.errors)

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        severity = "FATAL" if options.get(LONGEST_PATH) else "MAJOR"  # a fatal error leads to a second check
        return plain | {"errors": [] if agree else [row | {"severity": severity} for row in plain["errors"]]}

    def prose(self) -> str:
        return "\n".join(f"{n}. {format_error(error)}" for n, error in enumerate(self.errors, 1)) or "No error found."


class Edit(ReplyPart):
    """A change of a text because of an error."""

    issue: str = Field(
        description="the id of the error that makes it necessary",
        json_schema_extra=also_named("error", "id", "error_id"),
    )
    find: str = Field(
        description="the words of the text that are replaced, copied exactly, enough of them to occur only once",
        json_schema_extra=also_named("old", "before", "search", "original"),
    )
    replace: TextField = Field(
        default="",
        description="the words that stand there instead; for a gap, the words found and what follows them; empty to delete",
        json_schema_extra=also_named("new", "after", "replacement", "with"),
    )


def read_word_limit(value: Any) -> int:
    """Return the number in a reply such as 650, "650 words" or "none"; 0 if there is none."""
    number = re.search(r"\d+", str(value).replace(",", ""))
    return int(number[0]) if number else 0


class Correction(Reply):
    """The author's rulings on the errors, and its edits of the text."""

    takes_a_position: ClassVar[bool] = False
    open_choices: ClassVar[frozenset[str]] = frozenset({"issue", "same_as"})
    defaults: ClassVar[Mapping[str, Any]] = {"edits": [], "word_limit": 0}

    rulings: Annotated[list[Point], BeforeValidator(none_to_list), BeforeValidator(read_points)] = Field(
        description="one ruling for each listed error, by its id",
        json_schema_extra=one_row_per("issue") | also_named("points", "errors", "decisions"),
    )
    edits: Annotated[list[Edit], BeforeValidator(none_to_list)] = Field(
        description="the changes of the text, in its order; empty if no error is right",
        json_schema_extra=also_named("changes", "corrections"),
    )
    word_limit: Annotated[int, BeforeValidator(read_word_limit)] = Field(
        default=0, description="the most words that the question itself allows for the text; 0 if it names no limit"
    )

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        """Return a correction of every error."""
        rulings = [row | {"landed": True} for row in plain["rulings"]]
        edits = [{"issue": row["issue"], "find": "…", "replace": f"{cls.__name__} {n}"} for row in rulings[:1]]
        return plain | {"rulings": rulings, "edits": edits, "word_limit": 0}

    def prose(self) -> str:
        changes = [f"- {edit.find} → {edit.replace}" for edit in self.edits]
        return "\n".join(changes) or "No change."


def _shorten_error(error: FoundError) -> FoundError:
    fields = {name: shorten_words(getattr(error, name)) for name in ("hits", "flaw", "correction", "harm")}
    return error.model_copy(update=fields)


def format_error(error: FoundError) -> str:
    """Return an error in one paragraph."""
    where = f"“{error.hits}”: " if error.hits else ""
    harm = f" Harm: {error.harm}" if error.harm else ""
    correction = f" Correction: {error.correction}" if error.correction else ""
    return f"**{error.severity}** {where}{error.flaw}{harm}{correction}"


# Edits: each names the words that it replaces, as a model copies them

WORD = re.compile(r"\w+")
EMPHASIS_END = re.compile(r"(?:\*{1,3}|_{1,3}|`)\Z")
EMPHASIS_START = re.compile(r"\*{1,3}|_{1,3}|`")


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text after its edits. `problems` says for each edit, by its index, why it was not made."""

    text: str
    problems: dict[int, str]


def apply_edits(text: str, edits: Sequence[Edit]) -> EditedText:
    """Replace the words of each edit. An edit whose place is not clear is left out."""
    problems: dict[int, str] = {}
    for number, edit in enumerate(edits):
        places = find_places(text, edit.find)
        if len(places) != 1:
            count = f"occur {len(places)} times" if places else "are not in the text"
            problems[number] = f'the words "{edit.find}" {count}'
            continue
        start, end = places[0]
        if text[start:end] == edit.replace:
            problems[number] = f'the words "{edit.find}" are replaced by the same words'
            continue
        text = f"{text[:start]}{edit.replace}{text[end:]}"
    return EditedText(text, problems)


def find_places(text: str, find: str) -> list[tuple[int, int]]:
    """Return where words occur: exactly, else with other marks and spaces between them."""
    if not find.strip():
        return []
    exact = [match.span() for match in re.finditer(re.escape(find), text)]
    if exact:
        return exact
    words = WORD.findall(find)
    if not words:
        return []
    between = r"[^\w\n]*\s?[^\w\n]*"
    lead = find[: find.index(words[0])]
    tail = find[find.rindex(words[-1]) + len(words[-1]) :]
    before = "".join(rf"(?:{mark}[ \t]*)?" for mark in _list_marks(lead))
    after = "".join(rf"(?:[ \t]*{mark})?" for mark in _list_marks(tail))
    pattern = rf"{before}(?<!\w){between.join(map(re.escape, words))}(?!\w){after}"
    return [_include_emphasis(text, *match.span()) for match in re.finditer(pattern, text)]


def _list_marks(text: str) -> list[str]:
    """Return patterns of the marks before or after the words, which the text may lack."""
    return [re.escape(mark) for mark in text if not mark.isspace()]


def _include_emphasis(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a place with the emphasis marks that it would cut in two: `**Upgrade** on` is taken from its first
    mark.
    """
    before = EMPHASIS_END.search(text[:start])
    if before and text[start:end].count(before[0]) % 2:
        start = before.start()
    after = EMPHASIS_START.match(text, end)
    if after and text[start:end].count(after[0]) % 2:
        end = after.end()
    return start, end


# Rules


def number_errors(critiques: Mapping[str, Statement[Any]]) -> dict[str, FoundError]:
    """Return the errors of all readers by id (beta-1), the most severe first."""
    found = {
        f"{name}-{number}": error
        for name, said in critiques.items()
        for number, error in said.reply.counted_errors.items()
    }
    return dict(sorted(found.items(), key=lambda item: SEVERITIES.index(item[1].severity)))


def label_errors(errors: Mapping[str, FoundError]) -> dict[str, str]:
    """Return the label under which the author sees each error, without the name of its reader."""
    return {f"error-{n}": name for n, name in enumerate(errors, 1)}


def rule_errors(rulings: Iterable[Point], errors: Mapping[str, FoundError]) -> Rulings:
    """Return the author's rulings by label."""
    labels = label_errors(errors)
    return apply_rulings({label: errors[name].severity for label, name in labels.items()}, rulings)


def list_missing_rulings(rulings: Rulings) -> list[str]:
    """Return what the rulings lack, worded for the model."""
    found = [f"{label} is ruled both ways" for label in rulings.contradictory]
    missing = [row.id for row in rulings.unruled]
    if missing:
        found.append(f"there is no ruling on {', '.join(missing)}: rule on every listed error by its id")
    return found


def review_correction(correction: Correction, errors: Mapping[str, FoundError], text: str) -> str:
    """Return why a correction needs a repair turn, worded for the model; empty if it does not."""
    rulings = rule_errors(correction.rulings, errors)
    edited = apply_edits(text, correction.edits)
    found = list_missing_rulings(rulings)
    found += [
        f"edit {number + 1}: {problem}: copy them exactly, and enough of them"
        for number, problem in edited.problems.items()
    ]
    words = count_words(edited.text)
    if words > correction.word_limit > 0 and any(row.landed for row in rulings.rows):
        found.append(
            f"the corrected text has {words} words, and the question allows {correction.word_limit}: "
            "add edits that shorten it, under the id of an error that is right"
        )
    without = [row.id for row in rulings.distinct if row.landed and not _list_edits(row.id, rulings, correction)]
    if without:
        found.append(f"{', '.join(without)} is right, but no edit names it: add the edit, or rule that it is wrong")
    return "; ".join(found)


def _list_edits(label: str, rulings: Rulings, correction: Correction) -> list[int]:
    """Return the indexes of the edits because of an error, or of one that says the same."""
    joined = [row.id for row in rulings.rows if label in (row.id, row.same_as)]
    return [n for n, edit in enumerate(correction.edits) if match_ids(edit.issue, joined)]


def choose_readers(seats: Iterable[Seat], author: Seat) -> list[Seat]:
    """Return the seats that check a text: of other vendors than its author's, and of different ones, where there
    are.
    """
    others = [seat for seat in seats if seat.name != author.name]
    chosen: list[Seat] = []
    while others and len(chosen) < READERS:
        taken = [seat.vendor for seat in chosen]
        best = min(others, key=lambda seat: (seat.vendor == author.vendor, taken.count(seat.vendor)))
        others.remove(best)
        chosen.append(best)
    return chosen


def list_check_facts(check: CheckFacts) -> list[TrustFact]:
    """Return the facts of a check for and against trust. Corrections that were read again limit nothing."""
    if not check.readers:
        return [TrustFact("not_checked")]
    errors = [error for error in check.errors if not error.same_as]
    found = []
    for kind, state, severities in UNSETTLED_ERRORS:
        rows = [error for error in errors if error.state == state and error.severity in severities]
        if rows:
            found.append(TrustFact(kind, seats=_list_raisers(rows, check), count=len(rows), total=len(errors)))
    last = [error for error in errors if error.check == check.checks]
    corrected = [error for error in last if error.state == "corrected" and error.severity in SEVERE]
    if corrected:
        raisers = _list_raisers(corrected, check)
        found.append(TrustFact("error_corrected", seats=raisers, count=len(corrected), total=len(last)))
    if not found:
        found.append(TrustFact("checked", seats=check.last_readers, count=len(check.last_readers)))
    return found


def _list_raisers(errors: Iterable[CheckedError], check: CheckFacts) -> tuple[str, ...]:
    """Return the seats that raised these errors, or others that say the same."""
    ids = {error.id for error in errors}
    rows = [row for row in check.errors if row.id in ids or row.same_as in ids]
    return tuple(dict.fromkeys(row.id.rpartition("-")[0] for row in rows))


# Flow


@dataclass(frozen=True, slots=True)
class Checked:
    """A text after its check."""

    said: Statement[Any]
    facts: CheckFacts

    @property
    def text(self) -> str:
        return self.said.said


async def check_text(
    council: Council, said: Statement[Any], authors: Sequence[Seat], readers: Sequence[Seat]
) -> Checked:
    """Have readers check a text, and its author correct what is right; once more if an error that was right is fatal.

    `authors` are the seat that wrote it, then those that correct it if that seat does not answer.
    """
    checked = Checked(said, CheckFacts((), authors[0].name))
    for number, phases in enumerate((("check", "fix"), ("check-again", "fix-again")), 1):
        others = [seat for seat in readers if number == 1 or seat.name != checked.facts.author]
        if not others:
            break
        checked = await _check_once(council, checked, authors, others, number, phases)
        last = [error for error in checked.facts.errors if error.check == number]
        if not any(error.severity == "FATAL" and error.state == "corrected" for error in last):
            break
    return checked


async def check_verdict(council: Council, verdict: Verdict) -> Verdict:
    """Have two seats check the answer of a verdict, and the seat that wrote it correct what is right.

    Of an answer in sections, the decision is checked: code wrote the others.
    """
    last = council.state.last_statement
    if verdict.incomplete or last is None:
        return verdict
    sections: list[SectionRow] = verdict.details.get("sections") or []
    decision = next((row for row in sections if row["name"] == "decision"), None)
    text = str(decision["text"]) if decision else verdict.answer
    if not text.strip() or text not in verdict.answer:
        return replace(verdict, trust_facts=(*verdict.trust_facts, TrustFact("not_checked")))
    council.so_far(verdict, is_answer=True)
    present = [seat for seat in council.members if not council.is_out(seat)]
    written = replace(last, text=text, reply=None)
    checked = await check_text(council, written, [last.seat], choose_readers(present, last.seat))
    facts = checked.facts
    corrected = checked.text.strip()
    if CITATION.findall(corrected) != CITATION.findall(text):  # its sources were verified for the text before
        errors = [replace(row, state="open") if row.state == "corrected" else row for row in facts.errors]
        facts, corrected = replace(facts, errors=tuple(errors)), text
    rows: list[SectionRow] = [{**row, "text": corrected} if row is decision else row for row in sections]
    verdict = replace(
        verdict,
        answer=verdict.answer.replace(text, corrected, 1),
        check=facts,
        trust_facts=(*verdict.trust_facts, *list_check_facts(facts)),
        details=verdict.details | ({"sections": rows} if rows else {}),
    )
    return forget_agreement(verdict) if has_new_conclusion(facts) else verdict


def has_new_conclusion(check: CheckFacts) -> bool:
    """Return whether the check changed what the text concludes: an error that was fatal is corrected."""
    return any(error.severity == "FATAL" and error.state == "corrected" for error in check.errors)


def forget_agreement(verdict: Verdict) -> Verdict:
    """Return a verdict whose conclusion was never compared with the first statements."""
    return replace(verdict, agreement="", shared_by=None, joined=(), common=())


async def _check_once(
    council: Council,
    checked: Checked,
    authors: Sequence[Seat],
    readers: Sequence[Seat],
    number: int,
    phases: tuple[str, str],
) -> Checked:
    async with council.phase(phases[0]):
        critiques = await council.poll(
            readers, "refine/check", quorum=0, reply=Critique, said=checked.said, length=count_words(checked.text)
        )
    facts = checked.facts
    if not critiques:
        return checked
    names = tuple(dict.fromkeys((*facts.readers, *critiques)))
    facts = replace(facts, readers=names, checks=number, last_readers=tuple(critiques))
    errors = number_errors(critiques)
    if not errors:
        return Checked(checked.said, facts)
    async with council.phase(phases[1]):
        said, author, rows = await correct_text(council, checked.said, authors, errors)
    found = (*facts.errors, *(replace(row, check=number) for row in rows))
    return Checked(said, replace(facts, author=author or facts.author, errors=found))


async def correct_text(
    council: Council, said: Statement[Any], authors: Sequence[Seat], errors: Mapping[str, FoundError]
) -> tuple[Statement[Any], str, list[CheckedError]]:
    """Ask the author, or the next seat that answers, to rule on the errors and correct the text.

    Return the text, who corrected it, and the errors. If no seat answers, the text stays and all errors are open.
    """
    for author in authors:
        try:
            answered = await council.ask(
                author,
                "refine/fix",
                reply=Correction,
                choices=list_choices(errors),
                review=lambda correction: review_correction(correction, errors, said.said),
                said=said,
                length=count_words(said.said),
                own=author == authors[0],
                errors=describe_errors(errors),
            )
        except (SeatAbsent, ChairAbsent):
            continue
        edited = apply_edits(said.said, answered.reply.edits)
        rows = list_errors(answered.reply, errors, edited)
        return replace(said, text=edited.text, reply=None), author.name, rows
    return said, "", [make_open_error(name, error) for name, error in errors.items()]


def list_choices(errors: Mapping[str, FoundError]) -> dict[str, list[str]]:
    """Return the ids that a ruling may name."""
    labels = list(label_errors(errors))
    return {"issue": labels, "same_as": [NONE, *labels]} if labels else {}


def describe_errors(errors: Mapping[str, FoundError]) -> dict[str, str]:
    """Return the errors for the author's prompt, by label."""
    return {label: format_error(errors[name]) for label, name in label_errors(errors).items()}


def list_errors(correction: Correction, errors: Mapping[str, FoundError], edited: EditedText) -> list[CheckedError]:
    """Return what became of each error. One that is right but changed nothing in the text is open."""
    rulings = rule_errors(correction.rulings, errors)
    labels = label_errors(errors)
    rows = []
    for ruling, (name, error) in zip(rulings.rows, errors.items(), strict=True):
        root = ruling.same_as or ruling.id
        is_edited = any(n not in edited.problems for n in _list_edits(root, rulings, correction))
        is_open = ruling.landed is None or (ruling.landed and not is_edited)
        rows.append(
            replace(
                make_open_error(name, error),
                landed=ruling.landed,
                why=ruling.why,
                state="open" if is_open else "corrected" if ruling.landed else "dismissed",
                same_as=labels[ruling.same_as] if ruling.same_as else None,
            )
        )
    return rows


def make_open_error(name: str, error: FoundError) -> CheckedError:
    """Return an error that no seat has ruled on."""
    fields = (error.severity, error.hits, error.flaw, error.harm, error.correction)
    return CheckedError(name, *fields, landed=None, why="", state="open")
