"""A run as one self-contained HTML file that works offline, with the views of the web page."""

from __future__ import annotations

import json
import re
import string
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TypedDict

from council.engine.degraded import format_degraded_lines
from council.engine.minutes import Minutes
from council.engine.patches import PatchFold
from council.engine.records import ReportObject
from council.events import TRANSIENT_EVENTS, Entry
from council.render.markdown import render_document_parts
from council.render.positions import PositionSnapshot, build_position_history
from council.render.report import FinishedRun, read_report
from council.text_cleanup import clean_json, neutralize_commands, single_line

PAGE_DIR = files("council") / "doors" / "web" / "page"
ENTRY_MODULE = "exported.js"
IMPORT_LINE = re.compile(r'^import \{([^}]*)\} from "\./([\w./-]+)";$', re.MULTILINE)
EXPORT_KEYWORD = re.compile(r"^export (?=(?:async )?function\*? (\w+)|const (\w+))", re.MULTILINE)
EXPORT_LIST = re.compile(r"export\s*\{([^}]*)\};?\s*\Z")  # the last statement of a vendored module
SCRIPT_TAG = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)
BASE64_DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
PAGE_START = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<script type="application/json" id="council-run">"""
PAGE_END = """</script>
<script>{script}</script>
</body>
</html>
"""


def render_html(minutes: Minutes, entries: Sequence[Entry]) -> str:
    return "".join(render_html_parts(minutes, entries))


def render_html_parts(minutes: Minutes, entries: Sequence[Entry]) -> Iterator[str]:
    """Render the run as a page. Its policy allows only the inline script and style, and no requests."""
    style, script = read_page_file("style.css"), _inline_script()
    policy = (
        f"default-src 'none'; script-src {_csp_hash(script)}; style-src {_csp_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    title = f"{single_line(str(minutes.plan.get('question') or minutes.name), 80)} · council"
    yield PAGE_START.format(policy=policy, title=escape(title), style=style)
    yield from _dump_run(minutes, entries)
    yield PAGE_END.format(script=script)


def render_run(run: FinishedRun) -> Iterator[str]:
    return render_html_parts(run.minutes, run.entries)


class PageDetail(TypedDict):
    """What the page shows of a run beside its events."""

    report: ReportObject
    above: list[str]
    positions: list[PositionSnapshot]


def _dump_run(minutes: Minutes, entries: Sequence[Entry]) -> Iterator[str]:
    """Dump the data of the page one event at a time: a run can be larger than the memory for all of it."""
    yield '{"events":['
    stored = (entry for entry in entries if not isinstance(entry.event, TRANSIENT_EVENTS))
    fold = PatchFold()
    for n, entry in enumerate(stored):
        event = entry.as_json() | {"patch": fold.apply(entry)}
        yield ("," if n else "") + _dump_json(clean_json(event))
    detail: PageDetail = {
        "report": read_report(minutes),
        "above": format_degraded_lines(minutes),
        "positions": build_position_history(entries),
    }
    yield f'],"detail":{_dump_json(clean_json(detail))},"markdown":"'
    for text in render_document_parts(minutes):
        yield _dump_json(text)[1:-1]
    yield '"}'


def _dump_json(value: object) -> str:
    """Dump JSON so that model text in it cannot be read as an HTML tag."""
    text = neutralize_commands(json.dumps(value, ensure_ascii=False, separators=(",", ":")), "json")
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _inline_script() -> str:
    """Return the script, in which no text can be read as an HTML tag or comment."""
    return SCRIPT_TAG.sub(r"\\x3c", bundle(ENTRY_MODULE).code)


@cache
def _csp_hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# Bundle the modules of the page


class SourceMap(TypedDict):
    """A source map, version 3: where each line of a script comes from."""

    version: int
    sources: list[str]
    names: list[str]
    mappings: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """One script made from modules, with the module and line of each of its lines; (-1, 0) for lines of the bundle itself."""

    code: str
    modules: tuple[str, ...]
    lines: tuple[tuple[int, int], ...]

    def source_map(self, folder: str) -> SourceMap:
        """Return a source map, for the lines in stack traces. `folder` is the address of the modules."""
        last, groups = (0, 0), []
        for module, line in self.lines:
            groups.append("" if module < 0 else "A" + _vlq(module - last[0]) + _vlq(line - last[1]) + "A")
            last = last if module < 0 else (module, line)
        return {
            "version": 3,
            "sources": [folder + name for name in self.modules],
            "names": [],
            "mappings": ";".join(groups),
        }


@cache
def bundle(entry: str) -> Bundle:
    """Wrap each module in a function, in import order: one file to load, and browsers load no modules from `file:` pages."""
    order: dict[str, str] = {}
    _add_module(entry, order)
    code, lines = ['"use strict";'], [(-1, 0)]
    for at, (name, text) in enumerate(order.items()):
        inside = text.rstrip("\n").split("\n")
        code += [f"const {_module_name(name)} = (() => {{", *inside, "})();"]
        lines += [(-1, 0), *((at, line) for line in range(len(inside))), (-1, 0)]
    return Bundle("\n".join(code) + "\n", tuple(order), tuple(lines))


def _add_module(module: str, order: dict[str, str]) -> None:
    text = read_page_file(module)
    for _, needed in IMPORT_LINE.findall(text):
        if needed not in order:
            _add_module(needed, order)
    names = [function or const for function, const in EXPORT_KEYWORD.findall(text)]
    inside = EXPORT_KEYWORD.sub("", IMPORT_LINE.sub(_rewrite_import, text))
    listed = EXPORT_LIST.search(inside)
    if listed:
        names += [": ".join(reversed(one.split(" as "))) for one in map(str.strip, listed[1].split(","))]
        inside = inside[: listed.start()]
    order[module] = f"{inside}\nreturn {{ {', '.join(names)} }};\n"


def _rewrite_import(found: re.Match[str]) -> str:
    names = ", ".join(name.strip().replace(" as ", ": ") for name in found[1].split(",") if name.strip())
    return f"const {{ {names} }} = {_module_name(found[2])};" + "\n" * found[0].count("\n")


def _module_name(module: str) -> str:
    return "module_" + re.sub(r"\W", "_", module.removesuffix(".js"))


def _vlq(value: int) -> str:
    """Encode a number as a base64 VLQ of a source map."""
    rest, text = abs(value) << 1 | (value < 0), ""
    while True:
        digit, rest = rest & 31, rest >> 5
        text += BASE64_DIGITS[digit | (32 if rest else 0)]
        if not rest:
            return text


@cache
def read_page_file(name: str) -> str:
    return (PAGE_DIR / name).read_text(encoding="utf-8")
