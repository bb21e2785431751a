"""Parsers of foreign text: how each is called, which errors it may raise, and the pieces that its input is made of."""

from __future__ import annotations

import contextlib
import os
import tempfile
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from council.calling.answer_check import check_answer, is_complete_reply
from council.calling.fault_table import parse_share
from council.doors.cli.params import parse_seats, place_continued_run, split_command
from council.engine.prompting import load_prompt
from council.engine.reply import Reply, parse_reply, read_partial
from council.errors import ConfigError, Fault, PromptError, UsageError
from council.final_answers.comparison import compare_conclusions
from council.final_answers.values import compare_answers
from council.json_text import find_json, load_json
from council.members.scripted import Scripted
from council.members.wires.error_responses import classify_error, parse_error_body, parse_retry_after
from council.notes_filter import split_notes
from council.packet.git import split_patch
from council.packet.secret_filter import find_secrets, redact_text
from council.packet_size import split_packet, truncate_packet
from council.planning.intent import parse_intent
from council.protocols.adversarial.replies import Attack, Ruling, Triage
from council.protocols.advisors.replies import RefereeAccount, Stand
from council.protocols.common.perspectives import perspectives_from_file
from council.protocols.common.rosters import load_roster
from council.protocols.general.replies import ClaimGroups, Position, Queries, Synthesis
from council.protocols.judges.locations import Material, find_place
from council.protocols.judges.replies import Consolidation, Exploration, Lookups, Opinion
from council.protocols.ranking.replies import Ballot
from council.protocols.seats import PanelContext
from council.render.markdown import TextPart
from council.render.terminal_markdown import render_parts
from council.search.queries import clean_queries
from council.search.results import normalise_url, scan_text
from council.settings import load_settings
from council.text_cleanup import clean, redact_line, single_line, strip_to_line
from council.types import Answer, Packet
from council.unified_diff import parse_diff
from tests.calling.helpers import step
from tests.fakes.members import KINDS
from tests.run_session import make_ask

REPLIES: tuple[type[Reply], ...] = (
    Triage, Attack, Ruling, Opinion, Consolidation, Exploration, Lookups, Ballot, Queries, Position, ClaimGroups, Synthesis, Stand,
    RefereeAccount,
)  # fmt: skip
MAX_ANSWER_CHARS = 256 * 1024  # a longer answer is a flood
MAX_ERROR_CHARS = 64 * 1024  # more of an error body is not read
MAX_FILE_CHARS = 60_000
TOML_GROWTH = 5.0  # the standard library takes quadratic time for a key of many parts; the size of a file is limited


@dataclass(frozen=True)
class Target:
    """One parser. `max_chars` is the size that the product lets through."""

    parse: Callable[[str], Any]
    errors: tuple[type[Exception], ...]
    pieces: tuple[str, ...]
    max_chars: int = 2**20
    prefix: str = "x = "  # before nested text
    max_growth: float = 3.2  # of the time for twice the size; quadratic time would be 4


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))


def write(name: str, text: str) -> Path:
    path = folder() / name
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


# Calls


def parse_stream(text: str) -> None:
    for kind in KINDS.values():
        parser = kind.parser(lambda piece: None)
        try:
            parser.feed_lines(text.encode(errors="replace").split(b"\n"))
            parser.build_answer(str)
        except ValueError as error:
            assert "unreadable event" in str(error), error


def parse_error(text: str) -> None:
    error = parse_error_body(text.encode(errors="replace")[:MAX_ERROR_CHARS])
    for status in (302, 400, 401, 404, 413, 429, 500):
        kind = classify_error(status, error, None)
        assert kind, status
    line = redact_line(error.message)
    assert len(line) <= 200 and not {unicodedata.category(char) for char in line} & {"Cc", "Cs", "Zl", "Zp"}
    parse_share(line)
    parse_retry_after(text, text)


def parse_replies(text: str) -> None:
    for reply in REPLIES:
        try:
            parse_reply(reply, text, {"leader": ["alpha"], "issue": ["beta-1"], "seat": ["alpha", "beta"]})
        except Fault as fault:
            assert fault.kind == "schema"
        read_partial(reply, text, {})


def parse_answer(text: str) -> None:
    for finish in ("stop", "length", "refused"):
        for schema in (None, {"type": "object"}):
            asked = step(ask=make_ask("draft/alpha", schema=schema))
            try:
                check_answer(Answer(text, finish), asked)
            except Fault as fault:
                assert fault.kind in ("refused", "loop", "length", "empty", "stub", "schema")
            is_complete_reply(text, asked)


def parse_patch(text: str) -> None:
    assert "".join(split_patch(text)) in text
    for section in parse_diff(text):
        lines = [line for hunk in section.hunks for line in hunk.list_lines()]
        assert all(line.number >= 0 for line in lines) and parse_diff(section.text)
    packet = Packet(diff=text, budget=50)
    assert all(part.diff for part in split_packet(packet)) or not text
    assert truncate_packet(packet, 40).tokens <= 40


def parse_place(text: str) -> None:
    material = Material({"src/a.py": text, "b c.py": "x = 1\n"}, text)
    for location in (text, f"src/a.py:{text}", f"`{text}`", "src/a.py:1"):
        place = find_place(location, text, text, material)
        assert place.path in ("", *material.paths) and place.line >= 0


def read_settings(text: str) -> None:
    write("council.toml", text)
    env = {"XDG_CONFIG_HOME": str(folder() / "none"), "HOME": str(folder())}
    load_settings(folder(), env, config=folder() / "council.toml")


def merge_settings(text: str) -> None:
    """Use the text as a variable, as a flag and as the name of a seat."""
    env = {
        "XDG_CONFIG_HOME": str(folder() / "none"),
        "HOME": str(folder()),
        "COUNCIL_TIMEOUT": text,
        "OLLAMA_HOST": text,
    }
    flags = {"timeout": text, "models": text, "seats": {text: text}, "profile": None, "max_cost": text}
    for given_env, given in ((env, {}), ({**env, "COUNCIL_TIMEOUT": "", "OLLAMA_HOST": ""}, flags)):
        try:
            load_settings(folder(), {**given_env, "COUNCIL_JUDGE_COUNT": text, "COUNCIL_R2_TIMEOUT": text}, flags=given)
        except UsageError as error:
            assert "\n" not in str(error), error


@cache
def panel_context() -> PanelContext:
    env = {"XDG_CONFIG_HOME": str(folder() / "none"), "HOME": str(folder())}
    (folder() / "empty").mkdir(exist_ok=True)
    return PanelContext(load_settings(folder() / "empty", env), env, folder())


def read_roster(text: str) -> None:
    write("roster.toml", text)
    load_roster("roster.toml", panel_context(), 1, 60)


def read_perspectives(suffix: str) -> Callable[[str], Any]:
    return lambda text: perspectives_from_file(write(f"perspectives{suffix}", text))


def read_prompt(text: str) -> None:
    load_prompt.cache_clear()
    load_prompt(write("prompt.md", text))


def read_script(text: str) -> None:
    Scripted(f"scripted:{write('script.toml', text)}")


def read_intent(text: str) -> None:
    flags: Mapping[str, Any] = {}
    parse_intent(text.split(" "), flags, folder=folder(), known=("judges", "advisors", "triad", "collaborative"))


def read_arguments(text: str) -> None:
    arguments = text.split(" ")
    split_command(place_continued_run(arguments, lambda word: word.startswith("r2")))
    import click

    with contextlib.suppress(click.UsageError):
        parse_seats(tuple(arguments))


def render(text: str) -> None:
    shown = render_parts([TextPart(clean(text)), TextPart(clean(text), is_markdown=False)], width=60, color=False)
    assert shown is not None


def clean_up(text: str) -> None:
    for line in (single_line(text), strip_to_line(text), redact_line(text)):
        assert "\n" not in line and "\x1b" not in line
    shown, _ = split_notes(text)
    assert len(shown) <= len(text)


def filter_secrets(text: str) -> None:
    for secret in find_secrets(text):
        assert 0 <= secret.start < secret.end <= len(text)
    masked = redact_text(text)
    assert redact_text(masked) == masked


def read_research(text: str) -> None:
    clean_queries([text, text], text, 2026)
    normalise_url(text)
    scan_text(text)
    compare_answers(text, "42 km", (text, text))
    compare_conclusions(text, "42 km", text)
    compare_conclusions(text, text, text)


def find_values(text: str) -> None:
    values, problem = find_json(text)
    assert isinstance(values, list) and isinstance(problem, str)
    with contextlib.suppress(ValueError):
        load_json(text)


# Pieces

JSON_PIECES = (
    "{", "}", "[", "]", '"', ":", ",", "\\", "\\u", "\\ud800", "\\u0000", "'", "“", "”", "//", "/*", "*/", "```", "```json\n", "\n", " ",
    "null", "true", "None", "NaN", "Infinity", "-", "1e999", "9" * 5000, "0.1", '{"a": ', '"leader": ', '{"leader": "alpha"', '"issues": [',
    '"verdict": "PASS"', '"findings": [{', '"confidence": ', '"answer": "', "<think>", "</think>", "\0", "\ufeff", "properties", "reply",
)  # fmt: skip
STREAM_PIECES = (
    "data: ", "data:", "\n", "\n\n", "\r", ": comment", "[DONE]", '{"choices": [', '{"delta": {"content": "x"}}', '"usage": {', "]}", "}",
    '{"type": "message_stop"}', '{"type": "error", "error": ', '{"candidates": [{"finishReason": "STOP"}]}', "event: x\n", "\ufeff",
    '"prompt_tokens": ', "9" * 5000, "-1", "NaN", "null", "[" * 500, "{", '"', "\\ud800",
)  # fmt: skip
TOML_PIECES = (
    "[", "]", "[[", "]]", "=", '"', "'", '"""', "\n", "#", ".", ",", "{", "}", "seats", "chair", "model", "providers.x", "base_url", "timeout",
    "wire", '"openai"', "prices", '"a:b"', "budget.max_cost", "rosters.r", "name", "fallback", "true", "9" * 5000, "9" * 400, "1e999", "nan", "-1",
    "1979-05-27T07:32:00Z", "99:99:99", '"http://["', "[[seats]]\n", 'name = "a"\n', "input = 1\n", "\0", "\ud800", " ", "a", "search.provider",
)  # fmt: skip
YAML_PIECES = (
    "-", " ", ":", "\n", "\n  ", "&a", "*a", "<<: ", "!!python/object", "!!int", "!!timestamp", "'", '"', "|", ">", "{", "}", "[", "]", "#", "? ",
    "%YAML 9", "---\n", "...", "perspectives:\n", "- name: a\n", "focus: b\n", "persona", "9" * 5000, "0o7", "1e999", ".nan", "2001-99-99", "~",
    "\t", "\0", "\ufeff",
)  # fmt: skip
MARKDOWN_PIECES = (
    "#", "*", "**", "_", "`", "```", "~~~", ">", "> ", "- ", "1. ", "[", "]", "(", ")", "![", "](", "<", "<a>", "</details>", "|", "|-|", "---", "\n",
    "\n\n", "    ", "\t", "\\", "&amp;", "http://a", "<br>", "wide 表", "👩‍👩‍👧", "a", " ", "\u200d", "\x1b[31m", "\x1b]8;;", "[a]: b\n", "~", "<!--", "-->",
)  # fmt: skip
DIFF_PIECES = (
    "diff --git a/x b/x\n", "--- a/x\n", "+++ b/x\n", "@@ -1,3 +1,4 @@\n", "@@ -1 +", "9" * 5000, " @@\n", "+", "-", " ", "\n", "\r", "\\ No newline",
    '"a\\303"', "/dev/null", "+++ ", "\t", "rename from ", "Binary files", "x", "index 000..111 100644\n", "\0", ":100644 100644 aaa bbb M",
)  # fmt: skip
PLACE_PIECES = (
    "src/a.py", ":", "1", "9" * 5000, "`", "#L", " line ", "lines 1-", "L", ".", "/", "\\", "./", "a/", "[", "]", "(", "\n", "| ", "12| ", "x = 1", "a",
    "…", '\\"', "```", "+", "-", " ",
)  # fmt: skip
SECRET_PIECES = (
    "password", "=", ": ", '"', "'", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\n", "AKIA", "A" * 16, "sk-", "ghp_", "a1B2c3D4",
    "eyJ", ".", "://", "user:", "@", "Bearer ", "kind: Secret\n", "data:\n  ", "token", "\\n", "%3D", "mysql -p", "machine x login y password ", "<password>",
    "Authorization: ", "Cookie: ", ";", "&sig=", "/", "+", " ", "api_key", "client-key-data: ",
)  # fmt: skip
WORD_PIECES = (
    "validate", "brainstorm", "research", "council", "this", "the diff", "main..HEAD", "..", "~", "^", "/", "./a.py", "-", "--", "--seat", "a=b", "r2a3b4c",
    "list", "help", "ask", "review", "?", "!", ",", "'", '"', "quick", "judges:", "advisors", "with", "verbose", "\n", "\0", " ", "  ", "*", "{a,b}", "@{", "-c", "now",
)  # fmt: skip
TEXT_PIECES = (
    "\x1b", "\x1b[", "\x1b]", "\x9b", "\x9d", "\x07", "\x1bP", "\\", "0;", "m", "\r", "\n", "\u2028", "\u202e", "\ud800", "\udc00", "\u200d", "\u200c", "a", "é",
    "```council-notes\n", "council-notes", "```", "~~~", "{", "# ", "---", "sk-", "AIza", "://", "@", " ", "\ufeff", "\U000e0041", "]0;",
)  # fmt: skip
ERROR_PIECES = (
    "<", ">", "<script", "</script>", "<head", "input", "prompt", "message", " ", "too ", "exceed", "tokens", "context", "model", "not ", "api key",
    "maximum", '{"error": ', '"message": ', '"details": [', '"violations": [{', "}", "]", '"', "9" * 500, ",", "rate limit", "per-day", "credit", "\x1b[31m",
    "Thu, 01 Jan 1970 00:00:00 GMT", "-5", "1e400", "nan", "retryDelay", "404", "\n",
)  # fmt: skip
ANSWER_PIECES = (
    "I cannot help. ", "I can't ", "sorry", "help with that", "todo", "n/a", "...", "1. ", ". ", "2", " ", "\n", "```council-notes\n", "the same again. ",
    "-", "|", "{", '"', "Dear ", ": ", "but", "!", "?", "。", "抱歉，我无法协助", "…", "lorem ipsum ",
)  # fmt: skip

TARGETS: dict[str, Target] = {
    "event stream": Target(parse_stream, (Fault,), STREAM_PIECES, prefix="data: "),
    "error body": Target(parse_error, (), ERROR_PIECES, MAX_ERROR_CHARS, prefix="{\"error\": "),
    "JSON in a reply": Target(find_values, (), JSON_PIECES, MAX_ANSWER_CHARS),
    "typed reply": Target(parse_replies, (), JSON_PIECES, MAX_ANSWER_CHARS, prefix="{\"leader\": "),
    "check of an answer": Target(parse_answer, (), ANSWER_PIECES, MAX_ANSWER_CHARS),
    "unified diff": Target(parse_patch, (), DIFF_PIECES),
    "place of a finding": Target(parse_place, (), PLACE_PIECES, MAX_ANSWER_CHARS),
    "settings": Target(read_settings, (ConfigError,), TOML_PIECES, max_growth=TOML_GROWTH),
    "merge of settings": Target(merge_settings, (), TOML_PIECES, 10_000),
    "roster": Target(read_roster, (UsageError,), TOML_PIECES, max_growth=TOML_GROWTH),
    "perspectives in YAML": Target(read_perspectives(".yaml"), (UsageError,), YAML_PIECES, MAX_FILE_CHARS, prefix="perspectives: "),
    "perspectives in TOML": Target(read_perspectives(".toml"), (UsageError,), TOML_PIECES, MAX_FILE_CHARS, max_growth=TOML_GROWTH),
    "front matter of a prompt": Target(read_prompt, (PromptError,), ("+++\n", "{{", "}}", "{%", "words = ", *TOML_PIECES), max_growth=TOML_GROWTH),
    "script": Target(read_script, (ConfigError,), TOML_PIECES, max_growth=TOML_GROWTH),
    "intent": Target(read_intent, (UsageError,), WORD_PIECES, 16_000),
    "arguments": Target(read_arguments, (UsageError,), WORD_PIECES, 100_000),
    "Markdown at a terminal": Target(render, (), MARKDOWN_PIECES, 50_000),
    "cleaned text": Target(clean_up, (), TEXT_PIECES),
    "secrets": Target(filter_secrets, (), SECRET_PIECES),
    "research": Target(read_research, (), (*WORD_PIECES, *ERROR_PIECES), 20_000),
}  # fmt: skip


def texts(target: Target, size: int = 40) -> st.SearchStrategy[str]:
    """Return texts that are made of the target's pieces and of any characters."""
    return st.lists(st.one_of(st.sampled_from(target.pieces), st.text(max_size=6)), max_size=size).map("".join)


def json_values() -> st.SearchStrategy[Any]:
    simple = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    return st.recursive(simple, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
