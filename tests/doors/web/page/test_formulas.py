"""Formulas of a text: which are recognised, and that browsers draw them as MathML."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from council.render.formats import render_as
from tests.doors.web.page.browser import Browser
from tests.render.runs import RunBuilder

Look = Callable[..., Browser]
FORMULAS = """async text => {
    const { markdown } = await import('/page/markdown.js');
    const node = markdown(text);
    return [...node.querySelectorAll('math')].map(one => [one.getAttribute('alttext'), one.getAttribute('display') === 'block']);
}"""
WIDTHS = """async text => {
    const { markdown } = await import('/page/markdown.js');
    const node = markdown(text);
    document.querySelector('main').replaceChildren(node);
    return [...node.querySelectorAll('math')].map(one => [one.namespaceURI, one.getBoundingClientRect().width > 5]);
}"""


@pytest.mark.behaviour("50-page-formulas")
@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        (r"cost $O(n \log n)$, then", [[r"O(n \log n)", False]]),
        (r"\(x_1\) and \[ y^2 \]", [["x_1", False], ["y^2", True]]),
        ("$$\na_1 + b\n$$", [["a_1 + b", True]]),
        ("so $$a = b$$ holds, and $x$, $-1$ and $2ab$", [["a = b", True], ["x", False], ["-1", False], ["2ab", False]]),
        ("\\[\n\\begin{aligned} a &= b \\\\ &= c \\end{aligned}\n\\]", [[r"\begin{aligned} a &= b \\ &= c \end{aligned}", True]]),
        ("- item $a^2$\n- other", [["a^2", False]]),
        ("| a | b |\n|---|---|\n| $x_1$ | $5 |", [["x_1", False]]),
        ("$5x + 10y = 3$ and $2\\text{ cm and more}$", [["5x + 10y = 3", False], ["2\\text{ cm and more}", False]]),
    ],
)  # fmt: skip
def test_a_formula_is_drawn_as_mathml(module_page: Any, text: str, formulas: list[list[object]]) -> None:
    assert module_page.evaluate(FORMULAS, text) == formulas


@pytest.mark.behaviour("50-page-formulas")
@pytest.mark.parametrize(
    "text",
    [
        "$5 and $10", "from $5 to $10.", "$5/$10", "$5-$10", "US$5 and US$6", "either $5 or 10$ each", "$1,200 per seat, or 3,000$ in all",
        "$HOME and $PATH", "$HOME/$USER", "`$x$` and ``$$y$$``", "```\n$x$\n```", "    $x$", r"\$a\$", r"\[optional\] \(maybe\)", r"see \[1\]", r"\[x\] done",
        "the shell's $$ and $$ again", "costs $ 5 $ now", "[$5](https://example.org/$a$)", "$5 `a` $6",
    ],
)  # fmt: skip
def test_prices_code_and_brackets_are_no_formulas(module_page: Any, text: str) -> None:
    assert module_page.evaluate(FORMULAS, text) == []


@pytest.mark.behaviour("50-page-formulas")
def test_a_source_that_cannot_be_read_stays_and_no_source_adds_a_handler_an_address_or_a_long_task(
    module_page: Any,
) -> None:
    find = "async text => { const n = (await import('/page/markdown.js')).markdown(text); return [n.textContent.trim(), n.querySelectorAll('math [href], math [src], math [onclick], math [style*=url]').length]; }"
    for source in (r"$\frac{1$", r"$\nosuchcommand{x}$", r"$\def\a{\a\a}\a$", f"${'x_1+' * 600}1$"):
        assert module_page.evaluate(find, source) == [source, 0]
    for source in (r"$\href{javascript:alert(1)}{x_1}$", r"$\url{https://example.org/a_b}$", r"$\includegraphics{a_b.png}$", r"$\htmlData{onclick=x}{a_1}$"):  # fmt: skip
        assert module_page.evaluate(find, source)[1] == 0
    many = "$a_1$ " * 20_000
    took = module_page.evaluate(
        "async text => { const { blocks } = await import('/page/markdown.js'); let most = 0; const steps = blocks(text); for (;;) { const from = performance.now(); const { done } = steps.next(); most = Math.max(most, performance.now() - from); if (done) return most; } }",
        many,
    )
    assert took < 1500  # one paragraph of 120,000 characters; its pieces are bounded
    letters = [
        "\\",
        "{",
        "}",
        "$",
        "^",
        "_",
        "a",
        "1",
        " ",
        "\\frac",
        "\\left(",
        "\\right)",
        "&",
        "\\\\",
        "\\begin{cases}",
        "\\text",
        "#",
        "%",
    ]
    dice = random.Random(7)
    texts = ["$" + "".join(dice.choices(letters, k=dice.randint(1, 14))) + "$" for _ in range(300)]
    assert module_page.evaluate(
        "async texts => { const { markdown } = await import('/page/markdown.js'); return texts.filter(text => markdown(text)).length }",
        texts,
    ) == len(texts)


@pytest.mark.behaviour("50-page-formulas")
def test_formulas_are_laid_out_by_the_browser_also_in_an_exported_file(
    look: Look, module_page: Any, tmp_path: Any
) -> None:
    text = (
        "The sum\n\n$$\\sum_{i=1}^{n} \\frac{p_i}{1 - r}, \\quad \\begin{pmatrix} 1 & 2 \\end{pmatrix}$$\n\nand $x^2$."
    )
    assert module_page.evaluate(WIDTHS, text) == [["http://www.w3.org/1998/Math/MathML", True]] * 2
    builder = RunBuilder().phase("draft").answer("alpha", text).end_phase().close(text)
    file = tmp_path / "run.html"
    file.write_text(render_as(builder.minutes, "html", builder.entries), encoding="utf-8")
    seen = look(offline=True)
    seen.page.goto(file.as_uri())
    seen.page.wait_for_selector(".answer .formula mfrac")
    assert seen.page.locator(".answer math").count() == 2
    assert seen.errors == []
