"""A run as one self-contained HTML file that works offline, with the views of the web page."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from council.events import PASSING, Entry
from council.minutes import Minutes
from council.render.clean import clean_json, one_line
from council.render.degraded import degraded_lines
from council.render.markdown import document
from council.render.report import report
from council.types import Json

PAGE = files("council") / "doors" / "web" / "page"
ENTRANCE = "exported.js"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function\*? (\w+)|const (\w+))", re.MULTILINE)
FRAME = """<!doctype html>
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
<script type="application/json" id="council-run">{run}</script>
<script>{script}</script>
</body>
</html>
"""


def html(minutes: Minutes, entries: Sequence[Entry]) -> str:
    """Render the run as a page. Its policy allows only the inline script and style, and no requests."""
    style, script = _text("style.css"), bundle(ENTRANCE)
    policy = (
        f"default-src 'none'; script-src {_allowed(script)}; style-src {_allowed(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    title = f"{one_line(str(minutes.plan.get('question') or minutes.name), 80)} · council"
    return FRAME.format(
        policy=policy, title=escape(title), style=style, run=_data(_run(minutes, entries)), script=script
    )


def _run(minutes: Minutes, entries: Sequence[Entry]) -> Json:
    stored = [entry.as_json() for entry in entries if not isinstance(entry.event, PASSING)]
    detail = {"report": report(minutes), "above": degraded_lines(minutes)}
    return {"events": clean_json(stored), "detail": clean_json(detail), "markdown": document(minutes)}


def _data(value: Json) -> str:
    """Dump JSON so that model text in it cannot be read as an HTML tag."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _allowed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# Bundle the modules of the page


@cache
def bundle(entrance: str) -> str:
    """Wrap each module in a function, in import order, because browsers load no modules from `file:` pages."""
    order: dict[str, str] = {}
    _add(entrance, order)
    parts = "\n".join(f"const {_name(name)} = (() => {{\n{text}}})();" for name, text in order.items())
    return f'"use strict";\n{parts}\n'


def _add(module: str, order: dict[str, str]) -> None:
    text = _text(module)
    for _, needed in IMPORT.findall(text):
        if needed not in order:
            _add(needed, order)
    names = [function or const for function, const in EXPORT.findall(text)]
    inside = EXPORT.sub("", IMPORT.sub(_taken, text))
    order[module] = f"{inside}return {{ {', '.join(names)} }};\n"


def _taken(found: re.Match[str]) -> str:
    names = ", ".join(name.strip().replace(" as ", ": ") for name in found[1].split(",") if name.strip())
    return f"const {{ {names} }} = {_name(found[2])};\n"


def _name(module: str) -> str:
    return "module_" + re.sub(r"\W", "_", module.removesuffix(".js"))


@cache
def _text(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
