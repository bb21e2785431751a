"""Rows of a batch: read them from JSON lines or CSV, check them, and keep them in a temporary table on disk."""

from __future__ import annotations

import codecs
import csv
import hashlib
import json
import math
import re
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import IO, Any, TypedDict

from council.errors import UsageError
from council.flags import flag_table
from council.settings.schema import quote_value
from council.types import Json

MAX_ROW_BYTES = 4_000_000  # of one line; the packet gate has a smaller limit
MAX_ID_CHARS = 200
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
MAX_SHOWN_PROBLEMS = 20  # bad rows that are listed
DERIVED_ID_CHARS = 12  # of an id that is derived from the row
ROW_FIELDS = ("id", "question", "options")
# Options of a question by the kind of their values, with their names in Python.
FLAGS = ("allow_unpriced", "cheap", "check", "hedge", "look", "no_match", "no_resend", "no_warm", "redact")
COMMON_OPTIONS: Mapping[str, Sequence[str]] = {
    "bool": (*FLAGS, "skip_secrets", "strict", "verbose"),
    "str": ("protocol", "material", "spec", "base", "continues", "effort", "report_dir"),
    "number": ("seat_count", "timeout", "max_cost", "grace"),
    "int": ("packet_tokens",),
    "names": ("models", "exclude_family"),
    "seats": ("seats",),
    "texts": ("decisions",),
    "object": ("options",),
}
ALIASES = {
    "mode": "protocol",
    "model": "models",
    "members": "models",
    "seat": "seats",
    "decision": "decisions",
    "continue": "continues",
    "continued": "continues",
}
# Options whose values depend on the row and change neither the seats nor the protocol.
MATERIAL_OPTIONS = ("material", "spec", "decisions", "base", "continues")
BATCH_OPTIONS = ("folder", "config", "trust", "output", "detach", "dry_run", "json", "yes", "quiet", "env")
TRUE_WORDS, FALSE_WORDS = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class RowErrors(UsageError):
    """Rows of a batch that cannot be used; nothing was sent. `problems` has one line for each of the first problems."""

    def __init__(self, problems: Sequence[str], count: int) -> None:
        more = f" ({count:,} rows cannot be used)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0].rstrip('.')}; nothing was sent{more}")
        self.problems, self.count = tuple(problems), count


class Problems:
    """The bad rows of a file: all of them are counted, and the first problems are kept as text."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: dict[str, tuple[str, int]] = {}  # by problem: the place of its first row, and how many rows have it

    def add(self, place: int | str, problem: str) -> None:
        """Add the problem of a row: of a line, or of a place as text."""
        self.count += 1
        first, rows = self._rows.get(problem, (f"line {place}" if isinstance(place, int) else place, 0))
        if rows or len(self._rows) < MAX_SHOWN_PROBLEMS:
            self._rows[problem] = (first, rows + 1)

    def check(self) -> None:
        """Raise RowErrors if there is a bad row."""
        lines = []
        for problem, (first, rows) in self._rows.items():
            lines.append(f"{first}{f' and {rows - 1:,} more' if rows > 1 else ''}: {problem}")
        if lines:
            raise RowErrors(lines, self.count)


class InputRow(TypedDict):
    """A question of a batch, as a line of its input file."""

    id: str
    question: str
    options: Json


@dataclass(frozen=True, slots=True)
class Row:
    """One question of a batch. `hash` covers the question and the options as they were written."""

    id: str
    question: str
    options: Json
    line: int
    hash: str

    @property
    def place(self) -> str:
        return f"line {self.line} (id {quote_value(self.id)})"


# Values


@cache
def list_option_kinds() -> Mapping[str, str]:
    """Return the kind of the values of each option of a row, with the options of protocols."""
    common = {name: kind for kind, names in COMMON_OPTIONS.items() for name in names}
    return {row["name"]: row["kind"] for row in flag_table().rows} | common


def option_name(written: str) -> str:
    """Return the Python name of an option as it was written, such as `max-cost` or `member`."""
    name = written.strip().lstrip("-").replace("-", "_").lower()
    return ALIASES.get(name, name)


def convert_options(given: Mapping[str, Any]) -> Json:
    """Return options with their Python names and values of their kinds. Raise UsageError for the first bad one."""
    kinds = list_option_kinds()
    found: Json = {}
    for written, value in given.items():
        if value is None or value == "":
            continue
        name = option_name(written)
        if name not in kinds:
            raise UsageError(_explain_unknown(written, name, kinds))
        if name in found:
            raise UsageError(f"the option {quote_value(written)} is given twice: drop one of the two")
        try:
            convert: Callable[[Any], Any] = CONVERTERS.get(kinds[name], _to_text)
            found[name] = convert(value)
        except ValueError as error:
            raise UsageError(f"{written} {_quote_json(value)} {error}") from None
    return found


def _explain_unknown(written: str, name: str, kinds: Iterable[str]) -> str:
    if name in BATCH_OPTIONS:
        return f"{quote_value(written)} is not an option of a row: give it to the command, for all rows"
    near = get_close_matches(name, list(kinds), n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return f"{quote_value(written)} is not an option: {hint}`council --help-all` lists the flags, which have the same names"


def _to_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("is not text: write it in quotes")
    return value


def _to_number(value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("is not a number: use for example 2.5")
    return number


def _to_integer(value: Any) -> int:
    number = _to_number(value)
    if number != int(number):
        raise ValueError("is not a whole number: use for example 2")
    return int(number)


def _to_bool(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in (*TRUE_WORDS, *FALSE_WORDS):
        raise ValueError("is neither true nor false: use one of the two")
    return word in TRUE_WORDS


def _to_names(value: Any) -> list[str]:
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not (isinstance(names, list) and names and all(isinstance(name, str) and name.strip() for name in names)):
        raise ValueError('is not a list of names: use for example ["sonnet", "gpt-5.2"] or "sonnet,gpt-5.2"')
    return names


def _to_texts(value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise ValueError('is not a list of texts: use for example ["no new dependencies"]')
    return texts


def _to_seats(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",")]
        value = {name.strip(): member.strip() for name, _, member in pairs}
    seats: dict[Any, Any] = value if isinstance(value, dict) else {}
    if not seats or not all(isinstance(one, str) and one for one in (*seats, *seats.values())):
        raise ValueError(
            'does not name members by seat: use for example {"alpha": "openai:gpt-5.2"} or "alpha=openai:gpt-5.2"'
        )
    return seats


def _to_object(value: Any) -> Json:
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value)
    if not isinstance(value, dict):
        raise ValueError('is not an object: use for example {"protocol": "triad"}')
    return value


CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "number": _to_number,
    "float": _to_number,
    "int": _to_integer,
    "bool": _to_bool,
    "names": _to_names,
    "texts": _to_texts,
    "seats": _to_seats,
    "object": _to_object,
}


def _quote_json(value: Any) -> str:
    return quote_value(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


# Rows


def make_row(value: Mapping[str, Any], line: int) -> Row:
    """Return a checked row. Raise UsageError with the problem, the value and the fix."""
    for name in value:
        if name not in ROW_FIELDS:
            is_option = option_name(name) in list_option_kinds()
            place = 'put it into "options"' if is_option else f"known are {', '.join(ROW_FIELDS)}"
            raise UsageError(f"{quote_value(name)} is not a field of a row: {place}")
    question = value.get("question")
    if question is None:
        raise UsageError('the row has no "question": add one')
    if not isinstance(question, str):
        raise UsageError(f"the question {_quote_json(question)} is not text: write it in quotes")
    if not question.strip():
        raise UsageError(f"the question {quote_value(question)} is empty: add one, or remove the row")
    if question.strip() == "-":
        raise UsageError(
            'the question "-" means standard input, which a row does not have: put the text into "material"'
        )
    options = value.get("options")
    if options in (None, ""):
        options = {}
    elif not isinstance(options, dict):
        raise UsageError(f'options {_quote_json(options)} is not an object: use for example {{"protocol": "triad"}}')
    options = convert_options(options)
    text = json.dumps([question, options], ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Row(_check_id(value.get("id"), digest), question, options, line, digest[:16])


def _check_id(value: Any, digest: str) -> str:
    """Return the id. A row without one gets the hash of its question and options, which no other row changes."""
    if value is None or value == "":
        return digest[:DERIVED_ID_CHARS]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UsageError(f"the id {_quote_json(value)} is neither text nor a whole number: write it in quotes")
    if len(str(value)) > MAX_ID_CHARS:
        raise UsageError(f"the id {quote_value(str(value)[:40])}… has over {MAX_ID_CHARS} characters: shorten it")
    if UNPRINTABLE.search(str(value)):
        raise UsageError(f"the id {json.dumps(value)} has characters that cannot be printed: remove them")
    return str(value)


def read_rows(stream: IO[bytes], problems: Problems, *, is_csv: bool) -> Iterator[Row]:
    """Yield the rows of a file. A bad row is added to the problems, and the next one is read."""
    for line, value in (_read_csv if is_csv else _read_json_lines)(_read_lines(stream, problems), problems):
        try:
            yield make_row(value, line)
        except UsageError as error:
            problems.add(line, error.message_for("http"))


def detect_csv(name: str, start: bytes) -> bool:
    """Return whether a file is CSV: by its name, or because it does not begin with an object."""
    suffix = Path(name).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return True
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    return suffix not in (".jsonl", ".ndjson", ".json") and not text.startswith((b"{", b"[")) and bool(text)


def _read_lines(stream: IO[bytes], problems: Problems) -> Iterator[tuple[int, str]]:
    number = 0
    while data := stream.readline(MAX_ROW_BYTES + 1):
        number += 1
        if len(data) > MAX_ROW_BYTES:
            problems.add(number, f"it is over {MAX_ROW_BYTES // 1_000_000} MB: shorten the question or its material")
            while data and not data.endswith(b"\n"):
                data = stream.readline(MAX_ROW_BYTES)
            continue
        try:
            yield number, data.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode()
        except UnicodeDecodeError as error:
            problems.add(number, f"byte {error.start + 1} is not UTF-8: save the file as UTF-8")


def _read_json_lines(lines: Iterable[tuple[int, str]], problems: Problems) -> Iterator[tuple[int, Json]]:
    for number, text in lines:
        if not text.strip():
            continue
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            shown = quote_value(text.strip()[:60])
            fix = "write each row as one JSON object on one line"
            if number == 1 and text.lstrip().startswith("["):
                fix = "write one object on each line instead of a list, for example with `jq -c '.[]'`"
            problems.add(number, f"{shown} is not JSON ({what}): {fix}")
            continue
        if not isinstance(value, dict):
            problems.add(number, f'{_quote_json(value)[:80]} is not an object: write {{"id": …, "question": …}}')
            continue
        yield number, value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a value of JSON")


def _read_csv(lines: Iterable[tuple[int, str]], problems: Problems) -> Iterator[tuple[int, Json]]:
    source = _CsvLines(lines)
    csv.field_size_limit(MAX_ROW_BYTES)
    header: list[str] = []
    separator = ","
    while True:
        source.start = 0
        try:
            cells = next(csv.reader(source, delimiter=separator, strict=True)) if header else [next(source)]
        except StopIteration:
            return
        except csv.Error as error:
            problems.add(source.start, f"it is not CSV ({error}): quote cells that contain quotes or line breaks")
            continue
        if not header:
            header, separator = _parse_header(cells[0] if cells else "")
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            problems.add(
                source.start,
                f"it has {len(cells)} cells, but the header has {len(header)}: "
                "quote cells that contain commas, or add the missing ones",
            )
            continue
        named = {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
        options = {name: cell for name, cell in named.items() if name not in ROW_FIELDS}
        try:
            more = _to_object(named["options"]) if "options" in named else {}
        except ValueError as error:
            problems.add(source.start, f"options {quote_value(named['options'])} {error}")
            continue
        fields: dict[str, str] = {name: named[name] for name in ("id", "question") if name in named}
        yield source.start, {**fields, "options": options | more}


class _CsvLines:
    """Lines for the CSV parser, with the number of the first line of the current record."""

    def __init__(self, lines: Iterable[tuple[int, str]]) -> None:
        self._lines = iter(lines)
        self.start = 0

    def __iter__(self) -> _CsvLines:
        return self

    def __next__(self) -> str:
        number, text = next(self._lines)
        self.start = self.start or number
        if "\0" in text:
            raise csv.Error("it contains a NUL character")
        return text


def _parse_header(text: str) -> tuple[list[str], str]:
    """Return the columns and the separator. Raise UsageError if the header cannot be used."""
    for separator in (",", ";", "\t"):
        columns = [name.strip().lower() for name in next(csv.reader([text], delimiter=separator), [])]
        if "question" in columns:
            break
    else:
        raise UsageError(
            f'line 1: the header {quote_value(text.strip()[:80])} has no column "question", nothing was sent: '
            "begin the file with a header such as id,question,protocol"
        )
    for name in columns:
        if columns.count(name) > 1:
            raise UsageError(
                f"line 1: the column {quote_value(name)} occurs twice, nothing was sent: drop one of the two"
            )
        if name not in ROW_FIELDS and option_name(name) not in (kinds := list_option_kinds()):
            raise UsageError(f"line 1: the column {_explain_unknown(name, option_name(name), kinds)}; nothing was sent")
    return columns, separator


# The table

TABLE = """CREATE TABLE rows (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, line INTEGER NOT NULL, hash TEXT NOT NULL,
           question TEXT NOT NULL, options INTEGER NOT NULL, rank INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
           started INTEGER NOT NULL DEFAULT 0)"""
OPTIONS_TABLE = "CREATE TABLE options (n INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE)"
PENDING, DONE, LEFT_OUT = 0, 1, 2  # states of a row


class RowTable:
    """The rows of a batch in a temporary database, so that the memory does not grow with the file."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)  # a temporary file, which SQLite removes
        self._db.execute(TABLE)
        self._db.execute(OPTIONS_TABLE)

    def close(self) -> None:
        self._db.close()

    def fill(self, rows: Iterable[Row], problems: Problems) -> None:
        self._db.execute("BEGIN")
        for row in rows:
            body = json.dumps(row.options, ensure_ascii=False, sort_keys=True)
            self._db.execute("INSERT OR IGNORE INTO options (body) VALUES (?)", (body,))
            rank = int.from_bytes(hashlib.sha256(row.id.encode("utf-8", "surrogatepass")).digest()[:7])
            question = json.dumps(row.question)  # also lone surrogates
            insert = """INSERT INTO rows (id, line, hash, question, options, rank)
                        SELECT ?, ?, ?, ?, n, ? FROM options WHERE body = ?"""
            try:
                self._db.execute(insert, (json.dumps(row.id), row.line, row.hash, question, rank, body))
            except sqlite3.IntegrityError:
                first = self.find(row.id)
                same = " with the same question and options" if first and first.hash == row.hash else ""
                problems.add(
                    row.line,
                    f"the id {quote_value(row.id)} is also on line {first.line if first else 0}{same}: "
                    "give each row its own id",
                )
        self._db.execute("COMMIT")

    def find(self, id_: str) -> Row | None:
        return self._find_row("id = ?", json.dumps(id_))

    def _find_row(self, condition: str, value: str | int) -> Row | None:
        query = f"""SELECT r.id, question, o.body, line, hash FROM rows r JOIN options o ON o.n = r.options
                    WHERE r.{condition}"""
        if not (found := self._db.execute(query, (value,)).fetchone()):
            return None
        id_, question, options, line, digest = found
        return Row(json.loads(id_), json.loads(question), json.loads(options), line, digest)

    def __iter__(self) -> Iterator[Row]:
        """Yield all rows that are not left out, in the order of the file."""
        for (n,) in self._db.execute("SELECT n FROM rows WHERE state != ? ORDER BY n", (LEFT_OUT,)):
            yield self.get(n)

    def get(self, n: int) -> Row:
        row = self._find_row("n = ?", n)
        assert row
        return row

    def count(self, state: int | None = None) -> int:
        """Return the number of all rows, or of those in a state."""
        query = "SELECT count(*) FROM rows WHERE ?1 IS NULL OR state = ?1"
        return int(self._db.execute(query, (state,)).fetchone()[0])

    def get_state(self, id_: str) -> int:
        return int(self._db.execute("SELECT state FROM rows WHERE id = ?", (json.dumps(id_),)).fetchone()[0])

    def mark(self, id_: str, state: int) -> None:
        self._db.execute("UPDATE rows SET state = ? WHERE id = ?", (state, json.dumps(id_)))

    def mark_started(self, id_: str) -> None:
        self._db.execute("UPDATE rows SET started = 1 WHERE id = ?", (json.dumps(id_),))

    def keep_sample(self, size: int) -> None:
        """Leave all rows out but a sample: the same rows each time, and a larger sample contains a smaller one."""
        query = "UPDATE rows SET state = ? WHERE n NOT IN (SELECT n FROM rows ORDER BY rank, n LIMIT ?)"
        self._db.execute(query, (LEFT_OUT, size))

    def list_unfinished(self) -> Sequence[int]:
        """Return the numbers of the rows that are not done, also of those outside the sample."""
        return array("q", (n for (n,) in self._db.execute("SELECT n FROM rows WHERE state != ? ORDER BY n", (DONE,))))

    def order_pending(self) -> Sequence[int]:
        """Return the numbers of the pending rows: started ones, then rows with the same options next to each other."""
        query = "SELECT n FROM rows WHERE state = ? ORDER BY started DESC, options, n"
        return array("q", (n for (n,) in self._db.execute(query, (PENDING,))))
