"""A run as one self-contained HTML file that works offline, with the views of the web page."""

from __future__ import annotations

import json
import re
import string
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import NamedTuple, TypedDict

from council.engine.degraded import format_degraded_lines
from council.engine.patches import PatchFold
from council.engine.records import ReportObject
from council.events import TRANSIENT_EVENTS
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


def render_run(run: FinishedRun) -> Iterator[str]:
    """Render the run as a page, in parts. Its policy allows only the inline script and style, and no requests."""
    style, script = read_page_file("style.css"), _inline_script()
    policy = (
        f"default-src 'none'; script-src {_csp_hash(script)}; style-src {_csp_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    title = f"{single_line(str(run.minutes.plan.get('question') or run.minutes.name), 80)} · council"
    yield PAGE_START.format(policy=policy, title=escape(title), style=style)
    yield from _dump_run(run)
    yield PAGE_END.format(script=script)


class PageDetail(TypedDict):
    """What the page shows of a run beside its events."""

    report: ReportObject
    above: list[str]
    positions: list[PositionSnapshot]


def _dump_run(run: FinishedRun) -> Iterator[str]:
    """Dump the data of the page one event at a time: a run can be larger than the memory for all of it."""
    yield '{"events":['
    stored = (entry for entry in run.entries if not isinstance(entry.event, TRANSIENT_EVENTS))
    fold = PatchFold()
    for n, entry in enumerate(stored):
        event = entry.as_json() | {"patch": fold.apply(entry)}
        yield ("," if n else "") + _dump_json(clean_json(event))
    detail: PageDetail = {
        "report": read_report(run.minutes),
        "above": format_degraded_lines(run.minutes),
        "positions": build_position_history(run.entries),
    }
    yield f'],"detail":{_dump_json(clean_json(detail))},"markdown":"'
    for text in render_document_parts(run.minutes):
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


class SourceLine(NamedTuple):
    """Where a line of a bundle comes from: the index of its module, and the line there, from 0."""

    module: int
    line: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """One script made from modules."""

    code: str
    modules: tuple[str, ...]
    lines: tuple[SourceLine | None, ...]  # of each line of `code`; None for a line that the bundle adds

    def source_map(self, folder: str) -> SourceMap:
        """Return a source map, for the lines in stack traces. `folder` is the address of the modules."""
        mappings: list[str] = []
        previous = SourceLine(0, 0)
        for origin in self.lines:
            if origin is None:
                mappings.append("")
                continue
            # Column, module, line, column of the module; module and line as differences from the line mapped before.
            fields = (0, origin.module - previous.module, origin.line - previous.line, 0)
            mappings.append("".join(_vlq(number) for number in fields))
            previous = origin
        return {
            "version": 3,
            "sources": [folder + name for name in self.modules],
            "names": [],
            "mappings": ";".join(mappings),
        }


@cache
def bundle(entry: str) -> Bundle:
    """Wrap each module in a function, in import order: browsers load no modules from `file:` pages."""
    modules: dict[str, str] = {}
    _add_module(entry, modules)
    code = ['"use strict";']
    lines: list[SourceLine | None] = [None]
    for index, (name, text) in enumerate(modules.items()):
        body = text.rstrip("\n").split("\n")
        code += [f"const {_module_name(name)} = (() => {{", *body, "})();"]
        lines += [None, *(SourceLine(index, number) for number in range(len(body))), None]
    return Bundle("\n".join(code) + "\n", tuple(modules), tuple(lines))


def _add_module(module: str, order: dict[str, str]) -> None:
    text = read_page_file(module)
    for _, needed in IMPORT_LINE.findall(text):
        if needed not in order:
            _add_module(needed, order)
    names = [function or const for function, const in EXPORT_KEYWORD.findall(text)]
    inside = EXPORT_KEYWORD.sub("", IMPORT_LINE.sub(_rewrite_import, text))
    listed = EXPORT_LIST.search(inside)
    if listed:
        names += [_format_export(item.strip()) for item in listed[1].split(",")]
        inside = inside[: listed.start()]
    order[module] = f"{inside}\nreturn {{ {', '.join(names)} }};\n"


def _format_export(item: str) -> str:
    """Return `local as public` of an export list as the property `public: local`."""
    local, _, public = item.partition(" as ")
    return f"{public}: {local}" if public else local


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
