"""Markdown layouts and filters that keep untrusted text inside its place."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from council.render.clean import clean, one_line
from council.render.labels import label
from council.render.states import why
from council.render.terminal import count
from council.types import Json

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
TICKS = re.compile(r"`+")
LONG = 2_000  # limit of a line that is normally shown in full


def fill(layout: str, given: Json) -> str:
    return _layouts().get_template(f"{layout}.md").render(given).rstrip() + "\n"


@cache
def _layouts() -> Environment:
    layouts = Environment(
        loader=PackageLoader("council", "data/layouts"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown, not HTML
    )
    layouts.filters |= {
        "label": label, "clean": clean, "line": one_line, "cell": cell, "blockquote": quoted, "fence": fenced,
        "escape_details": folded, "round": round_name, "count": count, "absence": why, "close_fence": whole, "text": text, "code": code,
        "breaks": "  \n".join,
    }  # fmt: skip
    return layouts


def round_name(phase: str) -> str:
    """Format a phase name: `r2` as `Round 2`, others capitalised."""
    return " · ".join(
        f"Round {part[1:]}" if re.fullmatch(r"r\d+", part) else part.replace("_", " ").capitalize()
        for part in clean(phase).split("/")
    )


def text(value: Any) -> str:
    """Format untrusted text as one line, up to 2,000 characters."""
    return one_line(str(value), LONG)


def cell(value: Any, limit: int = 300) -> str:
    return one_line(str(value), limit).replace("|", "\\|")


def code(value: Any) -> str:
    """Format untrusted text as inline code that it cannot close."""
    return f"`{cell(TICKS.sub('', str(value)))}`"


def quoted(value: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in clean(value).strip().split("\n"))


def fenced(value: str, kind: str = "text") -> str:
    """Format text as a code block whose fence it cannot close."""
    value = clean(value).rstrip()
    fence = "`" * max(3, 1 + max((len(run) for run in TICKS.findall(value)), default=0))
    return f"{fence}{kind}\n{value}\n{fence}"


def folded(value: str) -> str:
    """Escape the tags that would close the `<details>` block around the text."""
    return re.sub(r"<(/?(?:details|summary))", r"&lt;\1", value, flags=re.IGNORECASE)


def whole(value: str) -> str:
    """Close the last code block, so that a truncated statement does not include the text after it."""
    fence = ""
    for line in value.split("\n"):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return f"{value.rstrip()}\n{fence}" if fence else value
