"""The layouts and what they are filled with: foreign text that cannot leave the place it was given."""

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
LONG = 2_000  # characters of one line that is to be read whole


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
        "label": label, "clean": clean, "line": one_line, "cell": cell, "quoted": quoted, "fenced": fenced,
        "folded": folded, "round": round_name, "count": count, "why": why, "whole": whole, "text": text, "code": code,
        "breaks": "  \n".join,
    }  # fmt: skip
    return layouts


def round_name(phase: str) -> str:
    """`r2` as people say it; other phases by their own name."""
    return " · ".join(
        f"Round {part[1:]}" if re.fullmatch(r"r\d+", part) else part.replace("_", " ").capitalize()
        for part in clean(phase).split("/")
    )


def text(value: Any) -> str:
    """One line of foreign words, to be read whole."""
    return one_line(str(value), LONG)


def cell(value: Any, limit: int = 300) -> str:
    return one_line(str(value), limit).replace("|", "\\|")


def code(value: Any) -> str:
    """A name or a place, as code it cannot break out of."""
    return f"`{cell(TICKS.sub('', str(value)))}`"


def quoted(value: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in clean(value).strip().split("\n"))


def fenced(value: str, kind: str = "text") -> str:
    """The text as a code block whose fence it cannot close."""
    value = clean(value).rstrip()
    fence = "`" * max(3, 1 + max((len(run) for run in TICKS.findall(value)), default=0))
    return f"{fence}{kind}\n{value}\n{fence}"


def folded(value: str) -> str:
    """Text that cannot close the block it is folded into."""
    return re.sub(r"<(/?(?:details|summary))", r"&lt;\1", value, flags=re.IGNORECASE)


def whole(value: str) -> str:
    """The text with its last code block closed: a statement cut short must not swallow the ones after it."""
    fence = ""
    for line in value.split("\n"):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return f"{value.rstrip()}\n{fence}" if fence else value
