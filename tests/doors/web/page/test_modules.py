"""JavaScript modules of the page, in the browser: minutes, Markdown, diff."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.events import Entry
from tests.acceptance.helpers import Workspace
from tests.doors.web.page.browser import Browser
from tests.doors.web.page.conftest import run_in_thread
from tests.doors.web.server import WebServer
from tests.engine.seat_events import add_patches, list_steps, merge_randomly, number, parse_entries
from tests.fake_provider import FakeProvider, Reply
from tests.render.runs import RunBuilder, one_absent

Look = Callable[..., Browser]
SHAPE = """async text => {
    const { markdown } = await import('/page/markdown.js');
    const shape = node => node.nodeType === 3 ? node.data : `<${node.localName}${['href', 'class', 'data-align'].map(name => node.hasAttribute(name) && !['wide', 'table-box', 'quiet'].includes(node.className) ? ' ' + (node.getAttribute(name) || name) : '').join('')}${node.checked ? ' checked' : ''}>${[...node.childNodes].map(shape).join('')}</${node.localName}>`;
    return [...markdown(text).childNodes].map(shape).join('').replaceAll('<button>Open wide</button>', '');
}"""

# The minutes of a log at moments, in any order; null is the end.
MINUTES_AT = """async ([events, moments]) => {
    const { newEventLog } = await import('/page/event_log.js');
    const { allSeats, phasesOf, seatsIn } = await import('/page/minutes.js');
    const log = newEventLog();
    for (const event of events) log.add(event);
    const names = (m, phase, what) => seatsIn(m, phase).map(seat => seat.name).filter(name => phase.seats[name][what]);
    const summarize = m => ({
        status: m.status, stopped: m.stopped ?? '', seconds: m.seconds, usd: m.usd, seq: m.seq, verdict: m.verdict,
        answered: [m.answered, m.needed],
        seats: allSeats(m).map(seat => [seat.name, seat.state, seat.usd, seat.attempts, seat.written]),
        phases: phasesOf(m).map(phase => [phase.name, ...['asked', 'said', 'absent'].map(what => names(m, phase, what))]),
    });
    return moments.map(moment => summarize(log.minutesAt(moment === null ? null : log.times[moment])));
}"""


SHOW_ANSWER = """async ([events, history, report]) => {
    const { newEventLog } = await import('/page/event_log.js');
    const { answerView } = await import('/page/answer.js');
    const { rowsAt } = await import('/page/positions.js');
    const log = newEventLog();
    for (const event of events) log.add(event);
    const m = log.full;
    const view = answerView({ tone: () => '', shortName: name => name, show: () => {}, minutes: () => m, source: {} });
    const rows = rowsAt(history, m.seq);
    view.update({ minutes: m, full: m, rows, live: false, detail: report && { report, above: [] } });
    return { text: view.node.textContent, hidden: view.node.hidden, map: rows.map(row => row.status) };
}"""


# A page without the application, with a stream that the test feeds by hand, and a second tab that is only messages.
JOIN_STREAM = """async () => {
    const opened = [];
    globalThis.fetch = async (url, { signal }) => {
        let feed;
        const body = new ReadableStream({ start(controller) { feed = controller; } });
        const one = { url: decodeURIComponent(url), closed: false, send(seq) {
            this.closed || feed.enqueue(new TextEncoder().encode(`event: convened\ndata: ${JSON.stringify({ run: 'r', seq, type: 'convened' })}\n\n`));
        } };
        signal.addEventListener('abort', () => { one.closed = true; feed.error(signal.reason); });
        opened.push(one);
        return new Response(body);
    };
    const until = async test => { while (!test()) await new Promise(done => setTimeout(done, 5)); };
    const { connect, watch } = await import('/page/stream.js');
    const tab = new BroadcastChannel('council-stream');
    let seen = 0;
    connect();
    watch('r', { since: () => seen, entry: entry => (seen = entry.seq), reset() {}, end() {} });
    await until(() => opened.length === 1);
    [1, 2, 3].forEach(seq => opened[0].send(seq));
    await until(() => seen === 3);
    tab.postMessage({ kind: 'wants', tab: 'second', runs: { r: 0 } });
    await until(() => { opened[0].send(seen + 1); return opened.length === 2; });
    return [seen > 3, opened.map(one => one.url.split('since=')[1]), opened[0].closed];
}"""
SKIP_AHEAD = """async () => {
    await new Promise(held => navigator.locks.request('council-stream', () => { held(); return new Promise(() => {}); }));
    const { connect, watch } = await import('/page/stream.js');
    const leader = new BroadcastChannel('council-stream');
    const seen = [];
    connect();
    watch('r', { since: () => seen.at(-1) ?? 0, entry: entry => seen.push(entry.seq), reset() {}, end() {} });
    for (const seq of [5, 6, 1, 2]) leader.postMessage({ kind: 'entry', run: 'r', entry: { run: 'r', seq, type: 'convened' } });
    while (seen.at(-1) !== 2) await new Promise(done => setTimeout(done, 5));
    return seen;
}"""


def summarize(m: Minutes) -> dict[str, Any]:
    """Return what `MINUTES_AT` returns."""
    return {
        "status": m.status, "stopped": m.stopped, "seconds": pytest.approx(m.seconds, abs=0.001), "usd": pytest.approx(m.usd),
        "seq": m.seq, "verdict": m.verdict if m.closed else None, "answered": [m.answered_count, len(m.needed_seats)],
        "seats": [[seat.name, seat.state, pytest.approx(seat.usd), seat.attempts, seat.usage.output] for seat in m.all_seats],
        "phases": [[phase.name, phase.asked, list(phase.said), list(phase.absent)] for phase in m.phases.values()],
    }  # fmt: skip


@pytest.mark.behaviour("50-page-one-fold", "10-rulings-shown")
def test_the_page_has_the_minutes_of_the_server(server: WebServer, provider: FakeProvider, look: Look) -> None:
    table = Workspace(server.folder, provider)
    table.configure(more='[prices."sim:*"]\ninput = 1.0\noutput = 5.0\n')
    table.answers.instead["gamma"] = Reply(status=500)
    run = run_in_thread(server.run_council, protocol="adversarial")
    entries = parse_entries(run_in_thread(server.ledger, run))
    streamed = run_in_thread(server.read_stream, f"/api/stream?run={run}&patches=true")
    events = [event["data"] for event in streamed if event["event"] != "end"]
    seen = look().at(server.url)
    assert seen.page.evaluate(MINUTES_AT, [events, [None]]) == [summarize(Minutes.fold(entries))]
    assert any(event["type"] == "fault" for event in events)
    history = run_in_thread(lambda: server.get(f"/api/runs/{run}/positions"))
    shown = seen.page.evaluate(SHOW_ANSWER, [events, history, None])
    for words in (
        "The answer started from the draft of alpha",
        "Points on which the drafts agreed1it costs",
        "Where they differWhen",
        "beta objected",
        "The chair accepted it",
        "mark-beta-attack-mark",
    ):
        assert words in shown["text"]
    assert shown["map"] == ["landed"]
    notes = {"agreed": ["it works"], "contested": [], "unique": []}
    sides = [{"seats": ["beta", "gamma"], "position": "cheap", "assumes": "one node"}]
    events[-1]["verdict"] |= {"notes": notes, "differences": [{"point": "cost", "sides": sides}]}
    text = seen.page.evaluate(SHOW_ANSWER, [events, history, None])["text"]
    assert "Where they agree1it works" in text and "Costbeta and gamma: cheap, assuming one node." in text


@pytest.mark.behaviour("50-page-one-fold", "50-page-replay")
def test_a_replay_has_the_minutes_of_each_moment_forwards_and_backwards(module_page: Any) -> None:
    entries = [Entry(n, float(n), entry.event) for n, entry in enumerate(one_absent().entries, 1)]
    moments = [*range(len(entries)), *reversed(range(len(entries)))]
    shown = module_page.evaluate(MINUTES_AT, [add_patches(entries), moments])
    assert shown == [summarize(Minutes.fold(entries[: moment + 1])) for moment in moments]


@pytest.mark.behaviour("50-page-one-fold", "40-statements-in-seating-order")
@pytest.mark.parametrize("seed", range(10))
def test_the_page_has_the_seats_in_seating_order_however_they_arrive(module_page: Any, seed: int) -> None:
    entries = parse_entries(number(merge_randomly(list_steps(), random.Random(seed))))
    (shown,) = module_page.evaluate(MINUTES_AT, [add_patches(entries), [None]])
    assert shown == summarize(Minutes.fold(entries))


# A reconnect sends the streamed text again, and a fault voids it.
STREAMED = """async ([events, fault]) => {
    const { newEventLog } = await import('/page/event_log.js');
    const { stateOf } = await import('/page/minutes.js');
    const log = newEventLog();
    const piece = (from, text) => log.add({ type: 'delta', seq: 0, at: 7, key: 'draft/alpha', seat: 'alpha', from, text });
    const seen = () => [log.full.live['draft/alpha']?.pieces.join(''), stateOf(log.full, log.full.seats.alpha), log.full.attempts[0].first_text];
    for (const event of events) log.add(event);
    piece(0, 'One ');
    piece(4, 'two ');
    piece(0, 'One two three');
    const found = [seen()];
    log.clearStreams();
    piece(0, 'One two three');
    found.push(seen());
    log.add(fault);
    return [...found, seen(), log.add(fault)];
}"""


@pytest.mark.behaviour("50-page-columns", "50-page-reconnects")
def test_streamed_text_is_shown_once_and_ends_with_a_fault(module_page: Any) -> None:
    builder = RunBuilder().phase("draft").ask("alpha").fault("alpha", "net", "gone")
    *events, fault = add_patches(builder.entries)
    fault["patch"]["live"] = {"draft/alpha": None}
    text = ["One two three", "writing", 7]
    assert module_page.evaluate(STREAMED, [events, fault]) == [text, text, [None, "asked", 7], False]


@pytest.mark.behaviour("40-page-model-text")
@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("### One\n\n#### Two\n\n# Three", "<h6>One</h6><h6>Two</h6><h4>Three</h4>"),
        ("# One\n\ntwo **three** *four* `five`", "<h4>One</h4><p>two <strong>three</strong> <em>four</em> <code>five</code></p>"),
        ("- a\n- b\n  1. c\n  2. d\n\nafter", "<ul><li>a</li><li>b<ol><li>c</li><li>d</li></ol></li></ul><p>after</p>"),
        ("3. three\n4. four", "<ol><li>three</li><li>four</li></ol>"),
        ("> quoted\n> still", "<blockquote><p>quoted\nstill</p></blockquote>"),
        ("```py\nx = '<b>'\n```", "<pre><code>x <span t-oper>=</span> <span t-str>'<b>'</span></code></pre>"),
        ("```nosuch\nx = 1\n```", "<pre><code>x = 1</code></pre>"),
        ("- [ ] open\n- [x] ~~done~~", "<ul><li task><input></input>open</li><li task><input checked></input><s>done</s></li></ul>"),
        ("a $\\frac{1$ b", "<p>a <code math>$\\frac{1$</code> b</p>"),
        ("$$\n\\frac{1\n$$\n\nend", "<pre math><code>$$\n\\frac{1\n$$</code></pre><p>end</p>"),
        ("[mail](mailto:a@example.org) ftp://example.org", "<p><a mailto:a@example.org>mail</a> ftp://example.org</p>"),
        ("```\nnever closed", "<pre><code>never closed</code></pre>"),
        ("see [here](https://example.org/a_b) and https://example.org/c.", "<p>see <a https://example.org/a_b>here</a> and <a https://example.org/c>https://example.org/c</a>.</p>"),
        ("[no](javascript:1) ![pic](https://example.org/p.png)", "<p><span>no</span> <a https://example.org/p.png>pic</a></p>"),
        ("<b>bold</b> &amp; 1 < 2", "<p><b>bold</b> & 1 < 2</p>"),
        ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
        (r"\*not\* this", "<p>*not* this</p>"),
        ("---", "<hr></hr>"),
        ("| a | b |\n|:--|--:|\n| 1 | **2** |", "<div><div><table><thead><tr><th>a</th><th right>b</th></tr></thead><tbody><tr><td>1</td><td right><strong>2</strong></td></tr></tbody></table></div></div>"),
        ("**unclosed and `open", "<p>**unclosed and `open</p>"),
    ],
)  # fmt: skip
def test_markdown_becomes_nodes(module_page: Any, text: str, shape: str) -> None:
    assert module_page.evaluate(SHAPE, text) == shape


@pytest.mark.behaviour("40-page-model-text")
@pytest.mark.parametrize(
    "text",
    ["*" * 100_000, "[" * 100_000, "`" * 99_999 + "a", "> " * 20_000, "- " * 20_000, "|" * 50_000 + "\n" + "|-" * 50_000, "_a" * 50_000, "http://" * 15_000, "$a " * 30_000 + "\\(" * 30_000, "\n".join(["  " * n + "- x" for n in range(2000)])],
    ids=["stars", "brackets", "ticks", "quotes", "items", "cells", "underscores", "addresses", "math", "stairs"],
)  # fmt: skip
def test_pathological_markdown_is_rendered_in_time(module_page: Any, text: str) -> None:
    assert module_page.evaluate(
        "async text => (await import('/page/markdown.js')).markdown(text).textContent.length >= 0", text
    )


@pytest.mark.behaviour("50-page-diff")
@pytest.mark.parametrize(
    ("before", "after"),
    [("a b c", "a x c"), ("", "new"), ("old", ""), ("same", "same"), ("one two three four five", "one two 3 four five six"), ("x\ny\nz", "x\nz\ny\n")],
)  # fmt: skip
def test_a_diff_contains_both_texts(module_page: Any, before: str, after: str) -> None:
    parts = module_page.evaluate(
        "async ([a, b]) => (await import('/page/diff.js')).wordDiff(a, b).map(part => [part.kind, part.text])",
        [before, after],
    )
    assert "".join(text for kind, text in parts if kind != "new") == before
    assert "".join(text for kind, text in parts if kind != "gone") == after


STREAM = """async ([text, step, options]) => {
    const { liveText } = await import('/page/live_text.js');
    const { runInSlices } = await import('/page/scheduler.js');
    const live = liveText(options);
    const pieces = [];
    document.body.append(live.node);
    const [rendered, open] = live.node.children;
    const seen = [];
    for (let at = 0; at < text.length; at += step) {
        pieces.push(text.slice(at, at + step));
        live.update({ pieces });
        await new Promise(done => runInSlices([].values(), done)); // after the work that is queued
        seen.push([[...rendered.querySelectorAll('.leaf > *')].map(one => one.localName).join(' '), open.textContent]);
    }
    const whole = live.finish(text, () => {}) && await new Promise(done => live.finish(text, () => done(live.node.textContent)));
    live.node.remove();
    return [seen, whole];
}"""


@pytest.mark.behaviour("50-page-streams-markdown")
def test_completed_blocks_are_rendered_while_the_last_one_stays_text(module_page: Any) -> None:
    text = "# Head\n\nOne **bold** line.\n\n- a\n- b\n\n```py\nx = 1\n\ny = 2\n```\n\nThe *end"
    seen, whole = module_page.evaluate(STREAM, [text, 5, {}])
    assert ["h5", "One "] in [[tags, open[:4]] for tags, open in seen]
    assert any(tags == "h5 p ul" and open.startswith("x = 1\n\ny") for tags, open in seen)  # an open fence
    assert seen[-1] == ["h5 p ul pre", "The *end"]
    assert whole == "HeadOne bold line.abx = 1\n\ny = 2The *end"
    items = "".join(f"- item {n} with enough words to make the list long\n" for n in range(12))
    seen, whole = module_page.evaluate(STREAM, [f"> quote\n\n{items}", 40, {}])
    assert any(tags.startswith("blockquote ul") and "item 11" in open for tags, open in seen)
    assert whole is None  # its list was split, so it is rendered again as a whole
    typed = json.dumps({"points": [{"answer": "no"}], "answer": "**Yes**.\n\nBut", "more": "x"})
    seen, whole = module_page.evaluate(STREAM, [typed, 7, {"only": ["answer"]}])
    assert (seen[-1], whole) == (["p", "But"], None)
    seen, _ = module_page.evaluate(STREAM, [typed, 7, {}])
    assert seen[-1][0] == "" and "answer: **Yes**." in seen[-1][1]


@pytest.mark.behaviour("50-page-columns")
def test_streamed_json_is_shown_as_plain_lines(module_page: Any) -> None:
    text = module_page.evaluate(
        "async pieces => { const flow = (await import('/page/json_text.js')).jsonToText(); return pieces.map(flow).join('') }",
        [
            '```json\n{"verdict": "FA',
            'IL", "key_ins',
            'ight": "A \\"quote\\" and \\u00e9", "n": 3, "list": ["a", "b"]}',
        ],
    )
    assert text.split("\n") == ["", "verdict: FAIL", 'key insight: A "quote" and é', "n: 3", "list: a", "b"]


DIFF = """async ([a, b]) => {
    const node = (await import('/page/diff.js')).diffNode(a, b);
    return [...node.querySelectorAll('.diff > *')].map(row => [row.className, ...[...row.children].map(one => [one.localName, one.textContent])]);
}"""


@pytest.mark.behaviour("50-page-diff")
def test_a_diff_compares_rendered_parts(module_page: Any) -> None:
    before = "## Plan\n\n- keep **the** primary database for now\n- move logs\n\nDone."
    after = "# Plan\n\n1. keep the primary database for a year\n\nDone."
    assert module_page.evaluate(DIFF, [before, after]) == [
        ["diff-h5", ["span", "Plan"]],
        ["diff-li", ["span", "keep the primary database for "], ["del", "now"], ["ins", "a year"]],
        ["diff-li", ["del", "move logs"]],
        ["diff-p", ["span", "Done."]],
    ]


LOADED_BYTES = """() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .reduce((sum, entry) => sum + entry.encodedBodySize, 0)"""


@pytest.mark.behaviour("50-page-unknown-run", "50-page-first-load")
def test_an_unknown_run_is_an_error_and_a_prefix_opens_a_run(server: WebServer, look: Look) -> None:
    run = run_in_thread(server.run_council)
    seen = look().at(server.url)
    assert len(seen.asked) <= 12, seen.asked
    assert 50_000 < seen.page.evaluate(LOADED_BYTES) <= 250_000
    seen.go("/run/nosuchrun")
    seen.page.wait_for_selector(".problem.big")
    assert "nosuchrun" in seen.text(".problem.big")
    seen.go(f"/run/{run[:4]}")
    seen.page.wait_for_selector(".answer:not([hidden])")


@pytest.mark.behaviour("50-page-one-stream")
def test_a_tab_that_joins_while_events_arrive_gets_them_all(server: WebServer, look: Look) -> None:
    seen = look()
    seen.page.goto(f"http://{server.host}/page/stream.js")
    sent, since, closed = seen.page.evaluate(JOIN_STREAM)
    assert since == ["r:0", "r:0"]
    assert sent and closed


@pytest.mark.behaviour("50-page-one-stream")
def test_a_tab_ignores_events_ahead_of_those_it_has(server: WebServer, look: Look) -> None:
    seen = look()
    seen.page.goto(f"http://{server.host}/page/stream.js")
    assert seen.page.evaluate(SKIP_AHEAD) == [1, 2]
