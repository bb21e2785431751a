"""Markdown layouts and filters that keep untrusted text inside its place."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from council.render.clean import clean, single_line
from council.render.labels import format_label
from council.render.states import format_absence
from council.render.terminal import format_count
from council.types import Json

FENCE_LINE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
BACKTICKS = re.compile(r"`+")
MAX_LINE_CHARS = 2_000  # limit of a line that is normally shown in full


def render_layout(layout: str, context: Json) -> str:
    return _layout_environment().get_template(f"{layout}.md").render(context).rstrip() + "\n"


@cache
def _layout_environment() -> Environment:
    layouts = Environment(
        loader=PackageLoader("council", "data/layouts"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown, not HTML
    )
    layouts.filters |= {
        "label": format_label, "clean": clean, "line": single_line, "cell": format_cell, "blockquote": blockquote, "fence": fence_code,
        "escape_details": escape_details_tags, "round": format_round_name, "count": format_count, "absence": format_absence, "close_fence": close_code_fence, "text": format_text, "code": format_code,
        "breaks": "  \n".join,
    }  # fmt: skip
    return layouts


def format_round_name(phase: str) -> str:
    """Format a phase name: `r2` as `Round 2`, others capitalised."""
    return " · ".join(
        f"Round {part[1:]}" if re.fullmatch(r"r\d+", part) else part.replace("_", " ").capitalize()
        for part in clean(phase).split("/")
    )


def format_text(value: Any) -> str:
    """Format untrusted text as one line, up to 2,000 characters."""
    return single_line(str(value), MAX_LINE_CHARS)


def format_cell(value: Any, limit: int = 300) -> str:
    return single_line(str(value), limit).replace("|", "\\|")


def format_code(value: Any) -> str:
    """Format untrusted text as inline code that it cannot close."""
    return f"`{format_cell(BACKTICKS.sub('', str(value)))}`"


def blockquote(value: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in clean(value).strip().split("\n"))


def fence_code(value: str, kind: str = "text") -> str:
    """Format text as a code block whose fence it cannot close."""
    value = clean(value).rstrip()
    fence = "`" * max(3, 1 + max((len(run) for run in BACKTICKS.findall(value)), default=0))
    return f"{fence}{kind}\n{value}\n{fence}"


def escape_details_tags(value: str) -> str:
    """Escape the tags that would close the `<details>` block around the text."""
    return re.sub(r"<(/?(?:details|summary))", r"&lt;\1", value, flags=re.IGNORECASE)


def close_code_fence(value: str) -> str:
    """Close the last code block, so that a truncated statement does not include the text after it."""
    fence = ""
    for line in value.split("\n"):
        mark = FENCE_LINE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return f"{value.rstrip()}\n{fence}" if fence else value
