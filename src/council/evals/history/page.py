"""The page of an evaluation on a history: every case with its change, the findings of each arm and the later fix.

One self-contained file without scripts.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from council.engine.records import FindingRow
from council.evals.history.cases import Fix, FixedLine, HistoryCase
from council.evals.history.labels import BUG, BY_RULE, CaseLabels, fix_id
from council.evals.history.links import make_link
from council.evals.history.summary import CaseReview, format_counts, format_tables
from council.packet.secret_filter import redact_text
from council.render.html import read_page_file
from council.runs.eval_object import HistoryEvalObject
from council.text_cleanup import clean, single_line

PAGE = "cases.html"
LAYOUT_MARK = "/* Layout:"  # of the style of the web page; what is above it are colours and small parts
MAX_DIFF_LINES = 400
MAX_LISTED_LINES = 20
DIFF_TONES = {"+": "added", "-": "removed", "@": "place"}


@dataclass(frozen=True, slots=True)
class PageCase:
    """A case as the page shows it."""

    case: HistoryCase
    change: str  # the diff
    fixes: Mapping[str, str] = field(default_factory=dict)  # the diff of each fix by its commit
    reviews: Mapping[str, CaseReview] = field(default_factory=dict)  # by arm
    labels: CaseLabels = field(default_factory=CaseLabels)


def render_cases(result: HistoryEvalObject, cases: Sequence[PageCase], remote: str) -> Iterator[str]:
    """Render the page in parts. `remote` is the address of the repository."""
    tables = "\n".join(format_tables(result))
    conclusions = "".join(f"<li>{_text(line)}</li>" for line in result["conclusions"])
    style = _read_style()
    policy = f"default-src 'none'; style-src {_hash_style()}; base-uri 'none'; form-action 'none'"
    title = f"{single_line(result['dataset'], 80)} · council"
    yield f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{_text(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{_text(result["dataset"])}</h1>
<p class="soft">{format_counts(result)}, fixes since {_text(result["since"])}</p>
<section aria-label="Result"><h2>Result</h2><ul>{conclusions}</ul>
<pre tabindex="0">{_text(tables)}</pre></section>
<section aria-label="Commits"><h2>Commits</h2>
"""
    for one in cases:
        yield from _render_case(one, remote)
    yield "</section>\n</main>\n</body>\n</html>\n"


@cache
def _read_style() -> str:
    own = (files("council") / "evals" / "history" / "cases.css").read_text(encoding="utf-8")
    return read_page_file("style.css").partition(LAYOUT_MARK)[0] + own


@cache
def _hash_style() -> str:
    return f"'sha256-{b64encode(sha256(_read_style().encode()).digest()).decode()}'"


def _text(text: str) -> str:
    return escape(clean(text))


def _render_case(one: PageCase, remote: str) -> Iterator[str]:
    case = one.case
    found = [name for name, review in one.reviews.items() if review.is_found]
    has_bug = any(review.bugs for review in one.reviews.values())
    yield f'<article class="card" id="{_text(case.id)}">\n<h3>{_link_commit(case.commit, remote)} {_text(case.subject)}</h3>\n'
    kind = "control" if case.is_control else "bug" if has_bug or not one.reviews else "labelled as no bug"
    tags = [f'<span class="pill" data-tone="{"doubt" if kind == "bug" else "live"}">{kind}</span>']
    if has_bug:
        word = f"found by {', '.join(found)}" if found else "not found"
        tags.append(f'<span class="pill" data-tone="{"good" if found else "bad"}">{_text(word)}</span>')
    yield f'<p>{" ".join(tags)} <span class="soft">{_text(case.date)}, {case.changed_lines} changed lines</span></p>\n'
    if one.labels.note:
        yield f"<p>Note: {_text(one.labels.note)}</p>\n"
    for arm, review in one.reviews.items():
        yield from _render_review(arm, review, one.labels.hits.get(arm, BY_RULE))
    yield _render_diff("The change", one.change)
    for fix in case.fixes:
        yield from _render_fix(fix, one, remote)
    yield "</article>\n"


def _link_commit(commit: str, remote: str) -> str:
    short = f"<code>{_text(commit[:10])}</code>"
    link = make_link(remote, commit)
    return f'<a href="{escape(link)}" rel="noreferrer">{short}</a>' if link else short


def _render_review(arm: str, review: CaseReview, label: str) -> Iterator[str]:
    verdict = review.report["verdict"] or str(review.report["status"])
    label_note = "" if label == BY_RULE else f", labelled as {label}"
    run = review.report["run"]
    yield f'<h4>{_text(arm)}: {_text(verdict)} <span class="soft">run <code>{_text(run)}</code>{_text(label_note)}</span></h4>\n'
    if not review.findings:
        yield '<p class="soft">No findings.</p>\n'
        return
    yield '<ol class="findings">\n'
    for finding, hit in zip(review.findings, review.hits, strict=True):
        yield _render_finding(finding, is_hit=hit)
    yield "</ol>\n"


def _render_finding(finding: FindingRow, *, is_hit: bool) -> str:
    severity = _text(finding["severity"].lower())
    hit = '<span class="pill" data-tone="good">hit</span> ' if is_hit else ""
    seats = ", ".join(finding["found_by"])
    support = f"found by {len(finding['found_by'])} of {finding['of']}" + (f": {seats}" if seats else "")
    quote = finding.get("quote", "").strip()
    code = f'<pre tabindex="0">{_text(_cut(quote, 12))}</pre>' if quote and finding["verified"] else ""
    return (
        f'<li>{hit}<span class="severity" data-severity="{severity}">{severity}</span>'
        f"{_text(finding['description'])} <code>{_text(finding['location'])}</code> "
        f'<span class="soft">{_text(support)}</span>{code}</li>\n'
    )


def _render_fix(fix: Fix, one: PageCase, remote: str) -> Iterator[str]:
    label = one.labels.fixes.get(fix_id(fix), BUG)
    note = "" if label == BUG else f', labelled as "{label}"'
    yield f"<h4>Fixed later: {_link_commit(fix.commit, remote)} {_text(fix.subject)} "
    yield f'<span class="soft">{_text(fix.date)}{_text(note)}</span></h4>\n<ul class="lines">\n'
    yield from map(_render_line, fix.lines[:MAX_LISTED_LINES])
    if len(fix.lines) > MAX_LISTED_LINES:
        yield f"<li>and {len(fix.lines) - MAX_LISTED_LINES} more lines</li>\n"
    yield "</ul>\n"
    yield _render_diff("The later fix", one.fixes.get(fix.commit, ""))


def _render_line(line: FixedLine) -> str:
    return f"<li><code>{_text(f'{line.path}:{line.line}')}</code> <code>{_text(redact_text(line.text.strip()))}</code></li>\n"


def _render_diff(title: str, diff: str) -> str:
    if not diff:
        return f'<p class="soft">{title} cannot be shown: git does not have it.</p>\n'
    rows = _cut(diff, MAX_DIFF_LINES).split("\n")
    lines = [f'<span class="{DIFF_TONES.get(row[:1], "same")}">{_text(row)}</span>' for row in redact_rows(rows)]
    return f'<details><summary>{title}</summary><pre class="diff" tabindex="0">{"".join(lines)}</pre></details>\n'


def redact_rows(rows: Sequence[str]) -> list[str]:
    return redact_text("\n".join(rows)).split("\n")


def _cut(text: str, most: int) -> str:
    """Return the first lines of a text, and how many more there are."""
    lines = text.rstrip("\n").split("\n")
    more = len(lines) - most
    return "\n".join([*lines[:most], *([f"… {more:,} more lines"] if more > 0 else [])])
