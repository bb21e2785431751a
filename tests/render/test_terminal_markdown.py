"""Answers on a terminal: Markdown, findings and the trust line, at several widths."""

from __future__ import annotations

import re

import pytest

from council.render.markdown import TextPart
from council.render.terminal_markdown import render_parts
from council.render.text_layout import text_width

ANSI = re.compile(r"\x1b\[[0-9;]*m")
ANSWER = """# Which index?

Use a **B-tree** for `ranges`, see [the docs](https://example.org/indexes) and <https://example.org/direct>.
A second line stays a line; Vec<String> and a < b are kept. 中文字符也可以换行 and more words follow here to make it long.

1. First, rebuild the index before the switch, because the old statistics are not valid afterwards.
   - a nested point that is also long enough to be wrapped on a narrow terminal of sixty columns
2. Second.

| Index | Good for | Cost of one million writes |
|:---|---|---:|
| B-tree | ranges and sorting, prefix search, uniqueness | 12 s |
| Hash | equality<br>only | 9 s |

```python
def rebuild(index):
    return index.rebuild(concurrently=True)  # long comment that does not fit on a narrow terminal at all
```

> A quoted remark.
> With a second line.

![diagram](https://example.org/d.png)
"""


def render(text: str, width: int = 80, **how: bool) -> list[str]:
    shown = render_parts([TextPart(text)], width=width, **how)
    return [line.rstrip() for line in ANSI.sub("", shown).splitlines()]


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]{4,}", text))


@pytest.mark.behaviour("50-markdown-at-terminal", "50-wraps-at-words")
@pytest.mark.parametrize("width", [40, 60, 80, 120, 250])
def test_an_answer_fits_its_terminal_and_no_word_is_split_or_lost(width: int) -> None:
    lines = render(ANSWER, width)
    assert all(text_width(line) <= width for line in lines)
    shown = words_of("\n".join(lines))
    missing = words_of(ANSWER.replace("<br>", " ")) - shown - {"python"}
    assert not missing
    assert lines[0] == "Which index?"
    assert "**" not in "\n".join(lines)


@pytest.mark.behaviour("50-markdown-at-terminal")
def test_text_is_at_most_100_columns_wide() -> None:
    long = "word " * 100
    assert max(map(len, render(long, 250))) <= 100
    code = "```\n" + "x" * 180 + "\n```"
    assert max(map(len, render(code, 250))) == 184


@pytest.mark.behaviour("50-markdown-at-terminal")
def test_a_table_has_aligned_columns() -> None:
    lines = render(ANSWER, 80)
    place = next(n for n, line in enumerate(lines) if line.startswith("Index "))
    assert lines[place : place + 6] == [
        "Index   Good for                                      Cost of one million writes",
        "──────  ────────────────────────────────────────────  ──────────────────────────",
        "B-tree  ranges and sorting, prefix search,                                  12 s",
        "        uniqueness",
        "",
        "Hash    equality                                                             9 s",
    ]


@pytest.mark.behaviour("50-markdown-at-terminal")
def test_a_table_that_does_not_fit_becomes_one_block_per_row() -> None:
    head = "| " + " | ".join(f"Characteristic{n}" for n in range(6)) + " |"
    table = f"{head}\n{'|---' * 6}|\n| " + " | ".join(f"value-number-{n}" for n in range(6)) + " |"
    assert render(table, 60)[:2] == ["Characteristic0: value-number-0", "Characteristic1: value-number-1"]
    assert len(render(table, 120)) == 3


@pytest.mark.behaviour("50-markdown-at-terminal")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("See [here](https://x.example/a).", "See here (https://x.example/a)."),
        ("See <https://x.example/a>.", "See https://x.example/a."),
        ("![alt](https://x.example/i.png)", "alt (https://x.example/i.png)"),
        ("A Map<String, Integer> and <script>alert(1)</script>", "A Map<String, Integer> and <script>alert(1)</script>"),
        ("one\ntwo", "one\ntwo"),
        ("AT&amp;T \\*not italic\\*", "AT&T *not italic*"),
        ("## Title\n\ntext", "Title\n\ntext"),
        ("- a\n- b", " • a\n • b"),
        ("", ""),
        ("[bold]not markup[/bold] :smile:", "[bold]not markup[/bold] :smile:"),
    ],
)  # fmt: skip
def test_nothing_of_the_text_is_lost_or_interpreted(text: str, shown: str) -> None:
    assert render(text, 80) == shown.split("\n") if shown else render(text, 80) == []


def test_links_have_no_hidden_target() -> None:
    assert "\x1b]8" not in render_parts([TextPart("[good](https://evil.example)")], width=80)


@pytest.mark.behaviour("50-ascii")
def test_ascii_output_has_only_ascii_characters_and_fits() -> None:
    lines = render(ANSWER + "\n— “quoted” … → ✓\n", 60, ascii=True)
    assert all(line.isascii() and len(line) <= 60 for line in lines)
    assert '- "quoted" ... -> +' in lines


@pytest.mark.behaviour("50-no-color")
def test_without_colour_only_bold_and_the_like_are_left() -> None:
    shown = render_parts([TextPart(ANSWER), TextPart("critical  a.py:3  gone", False)], width=80, color=False)
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", shown) for code in found.split(";")}
    assert codes <= {"", "0", "1", "2", "3", "4", "9"}


@pytest.mark.behaviour("50-wraps-at-words")
def test_findings_are_wrapped_below_their_first_column() -> None:
    verdict = (
        "WARN  2 of 2 judges · confidence MEDIUM\n\n"
        "critical     src/a.py:10  The check of the token is gone, so that every request passes  2 of 2  fix: add it\n"
    )
    shown = ANSI.sub("", render_parts([TextPart(verdict, False), TextPart("Trust: LOW — x", False)], width=60))
    assert shown.split("\n") == [
        "WARN  2 of 2 judges · confidence MEDIUM",
        "",
        "critical     src/a.py:10  The check of the token is gone, so",
        "             that every request passes  2 of 2  fix: add it",
        "",
        "Trust: LOW — x",
        "",
    ]


BLOCK = """critical  src/pay.py:8  2 of 3
  The retry loop sleeps while it holds the row lock, so every other worker waits for it.

  Fix: Sleep outside.
      for attempt in range(MAX_ATTEMPTS):
          account = session.get(Account, account_id, with_for_update=True,  populate_existing=True)
  · found by judge-1.F1, judge-2.F1
"""


@pytest.mark.behaviour("20-finding-blocks", "50-wraps-at-words")
def test_a_finding_is_wrapped_under_its_indent_and_code_under_its_own() -> None:
    lines = ANSI.sub("", render_parts([TextPart(BLOCK, is_markdown=False)], width=60)).splitlines()
    assert [line.rstrip() for line in lines] == [
        "critical  src/pay.py:8  2 of 3",
        "  The retry loop sleeps while it holds the row lock, so",
        "  every other worker waits for it.",
        "",
        "  Fix: Sleep outside.",
        "      for attempt in range(MAX_ATTEMPTS):",
        "          account = session.get(Account, account_id,",
        "              with_for_update=True,  populate_existing=True)",
        "  · found by judge-1.F1, judge-2.F1",
    ]


@pytest.mark.behaviour("20-finding-blocks")
def test_who_found_it_is_dim_and_the_severity_is_coloured() -> None:
    shown = render_parts([TextPart(BLOCK, is_markdown=False)], width=80)
    assert "\x1b[2m  · found by" in shown and "\x1b[1;31mcritical\x1b[0m" in shown
    assert "\x1b" not in render_parts([TextPart(BLOCK, is_markdown=False)], width=80, ascii=True).split("found")[0][-3:]
