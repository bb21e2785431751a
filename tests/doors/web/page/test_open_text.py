"""The open block of a streamed text: code and tables are drawn as such while they are written."""

from __future__ import annotations

import random
from typing import Any

import pytest

# Stream a text in pieces. After each: the tags of the open part, its text, and the number of nodes that were added.
STREAM = """async ([text, size]) => {
    const { liveText } = await import('/page/live_text.js');
    const { runInSlices } = await import('/page/scheduler.js');
    const live = liveText();
    document.querySelector('main').replaceChildren(live.node);
    const [rendered, open] = live.node.children;
    const added = { most: 0 };
    const watcher = new MutationObserver(changes => { added.most = Math.max(added.most, changes.reduce((n, one) => n + one.addedNodes.length, 0)); });
    watcher.observe(open, { childList: true, subtree: true });
    const pieces = [], seen = [];
    for (let at = 0; at < text.length; at += size) {
        pieces.push(text.slice(at, at + size));
        live.update({ pieces });
        await new Promise(done => runInSlices([].values(), done));
        const tags = [...open.children].map(one => one.querySelector('table') ? 'table' : one.localName === 'pre' ? `pre:${one.dataset.language || ''}` : 'text');
        seen.push([tags.join(' '), open.textContent.replaceAll('Open wide', '|'), rendered.textContent]);
    }
    return { seen, added: added.most, open: open.outerHTML };
}"""
CODE = "Do this:\n\n```python\nfor n in range(3):\n    print(n)\n\nprint('`done`')\n```\n\nThen rest."
TABLE = "| a | b |\n|:--|--:|\n| one | 1 |\n| **two** | 2 |\n| three | 3 |\n\nAfter."


def stream(page: Any, text: str, size: int) -> Any:
    return page.evaluate(STREAM, [text, size])


@pytest.mark.behaviour("50-page-streams-blocks")
@pytest.mark.parametrize("size", [1, 3, 17])
def test_an_open_code_block_is_drawn_without_its_fence(module_page: Any, size: int) -> None:
    seen = stream(module_page, CODE, size)["seen"]
    assert not any("``" in text or "python" in text for _, text, _ in seen)
    code = [text for tags, text, _ in seen if tags == "pre:python"]
    assert code[-1].rstrip() == "for n in range(3):\n    print(n)\n\nprint('`done`')"
    assert all(code[-1].startswith(text.rstrip()) for text in code)  # it only grows
    assert seen[-1][1] == "Then rest." or seen[-1][2].endswith("Then rest.")


@pytest.mark.behaviour("50-page-streams-blocks")
@pytest.mark.parametrize("size", [1, 4, 23])
def test_an_open_table_grows_by_rows_and_is_never_raw(module_page: Any, size: int) -> None:
    seen = stream(module_page, f"Facts.\n\n{TABLE}", size)["seen"]
    assert any(tags == "table" for tags, _, _ in seen)
    for tags, text, _ in seen:
        assert "--" not in text and "| one" not in text, (tags, text)
    assert any("two" in text and "**" not in text for _, text, _ in seen)  # the marks of a complete row are read
    assert seen[-1][2].replace("Open wide", "") == "Facts.abone1two2three3"


@pytest.mark.behaviour("50-page-streams-blocks")
def test_code_in_a_list_and_lines_that_only_look_like_code_or_tables(module_page: Any) -> None:
    listed = "1. Run it:\n   ```sh\n   ls -l\n   pwd\n"
    tags, text, _ = stream(module_page, listed, 5)["seen"][-1]
    assert (tags, text) == ("text pre:sh", "1. Run it:\nls -l\npwd\n")
    for source in (
        "`code` begins a line",
        "``a`` b",
        "| alone",
        "|x| y\nno divider",
        "| a | b |\n|---|\n| c |",
        "~~gone~~ text",
    ):
        assert stream(module_page, source + "\nend of it", 2)["seen"][-1][1] == source + "\nend of it"


@pytest.mark.behaviour("50-page-streams-blocks")
def test_each_piece_of_a_long_table_or_code_block_adds_few_nodes(module_page: Any) -> None:
    rows = "".join(f"| row {n} | {n} |\n" for n in range(400))
    table = stream(module_page, f"| a | b |\n|---|---|\n{rows}", 60)
    assert table["added"] < 40 and table["open"].count("<table>") == 7
    lines = "".join(f"value_{n} = {n}\n" for n in range(2000))
    code = stream(module_page, f"```py\n{lines}", 200)
    assert code["added"] < 10 and code["seen"][-1][1] == lines


@pytest.mark.behaviour("50-page-streams-blocks")
def test_text_of_any_shape_is_shown_whole_however_it_is_cut(module_page: Any) -> None:
    dice = random.Random(5)
    parts = [
        "word ",
        "\n",
        "```",
        "```\n",
        "`",
        "| a | b |\n",
        "|---|---|\n",
        "| ",
        "- ",
        "1. ",
        "    ",
        "\n\n",
        "~~~",
        "$",
        "**b**",
        "# h\n",
    ]
    for _ in range(8):
        text = "".join(dice.choices(parts, k=30)) + "\n\nEND"
        results = [stream(module_page, text, size)["seen"][-1] for size in (4, len(text))]
        assert all((open_text + rendered).count("END") == 1 for _, open_text, rendered in results), text
        assert len({"".join(sorted((rendered + open_text).split())) for _, open_text, rendered in results}) == 1, text
