"""A run as one self-contained HTML file that works offline, with the views of the web page."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from council.engine.degraded import format_degraded_lines
from council.engine.minutes import Minutes
from council.events import TRANSIENT_EVENTS, Entry
from council.render.markdown import render_document_parts
from council.render.report import FinishedRun, build_report
from council.text_cleanup import clean_json, neutralize_commands, single_line
from council.types import Json

PAGE_DIR = files("council") / "doors" / "web" / "page"
ENTRY_MODULE = "exported.js"
IMPORT_LINE = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT_KEYWORD = re.compile(r"^export (?=(?:async )?function\*? (\w+)|const (\w+))", re.MULTILINE)
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
    style, script = _read_page_file("style.css"), bundle(ENTRY_MODULE)
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


def _dump_run(minutes: Minutes, entries: Sequence[Entry]) -> Iterator[str]:
    """Dump the data of the page one event at a time: a run can be larger than the memory for all of it."""
    yield '{"events":['
    stored = (entry for entry in entries if not isinstance(entry.event, TRANSIENT_EVENTS))
    for n, entry in enumerate(stored):
        yield ("," if n else "") + _dump_json(clean_json(entry.as_json()))
    detail = {"report": build_report(minutes), "above": format_degraded_lines(minutes)}
    yield f'],"detail":{_dump_json(clean_json(detail))},"markdown":"'
    for text in render_document_parts(minutes):
        yield _dump_json(text)[1:-1]
    yield '"}'


def _dump_json(value: Json | str) -> str:
    """Dump JSON so that model text in it cannot be read as an HTML tag."""
    text = neutralize_commands(json.dumps(value, ensure_ascii=False, separators=(",", ":")), "json")
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _csp_hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# Bundle the modules of the page


@cache
def bundle(entry: str) -> str:
    """Wrap each module in a function, in import order, because browsers load no modules from `file:` pages."""
    order: dict[str, str] = {}
    _add_module(entry, order)
    parts = "\n".join(f"const {_module_name(name)} = (() => {{\n{text}}})();" for name, text in order.items())
    return f'"use strict";\n{parts}\n'


def _add_module(module: str, order: dict[str, str]) -> None:
    text = _read_page_file(module)
    for _, needed in IMPORT_LINE.findall(text):
        if needed not in order:
            _add_module(needed, order)
    names = [function or const for function, const in EXPORT_KEYWORD.findall(text)]
    inside = EXPORT_KEYWORD.sub("", IMPORT_LINE.sub(_rewrite_import, text))
    order[module] = f"{inside}return {{ {', '.join(names)} }};\n"


def _rewrite_import(found: re.Match[str]) -> str:
    names = ", ".join(name.strip().replace(" as ", ": ") for name in found[1].split(",") if name.strip())
    return f"const {{ {names} }} = {_module_name(found[2])};\n"


def _module_name(module: str) -> str:
    return "module_" + re.sub(r"\W", "_", module.removesuffix(".js"))


@cache
def _read_page_file(name: str) -> str:
    return (PAGE_DIR / name).read_text(encoding="utf-8")
