"""The answer card: decision first, trust and effect beside it, and what can be done with an answer from the page
alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from council.render.positions import build_position_history
from council.render.report import read_report
from council.render.tail import add_tail
from tests.acceptance.helpers import SEATS, Workspace, mark
from tests.acceptance.refine.fake_authors import Authors, make_error, take_seats
from tests.doors.web.page.browser import Browser
from tests.doors.web.page.conftest import run_in_thread
from tests.doors.web.page.test_modules import SHOW_ANSWER
from tests.doors.web.server import QUESTION, WebServer
from tests.engine.seat_events import add_patches
from tests.fake_provider import FakeProvider, Reply
from tests.protocols.judges.runs import bench_plan, details, finding, judged, opinion, red_and_blue
from tests.render.runs import NAMES, RunBuilder, adversarial, collaborative, one_absent, plan, seat
from tests.render.test_positions import answered, attack_run, dispute, side

Look = Callable[..., Browser]
PRICED = '[prices."sim:*"]\ninput = 1.0\noutput = 5.0\n[prices."sim:alpha"]\ninput = 2.0\noutput = 9.0\n'
DRAFT = (
    "Keep the database for one more year, and move only the event log to the archive tier in spring. Ask again later."
)
CODE = "ALTER TABLE log DETACH PARTITION p2025;"
NOTES = {
    "agreed": ["keep it"], "contested": [{"point": "when to move", "sides": [{"seat": "alpha", "position": "now"}, {"seat": "gamma", "position": "in spring"}]}],
    "unique": [], "taken_from": [{"seat": "gamma", "point": "the archive tier"}], "closest_draft": "beta", "recommendation_shared_by": ["beta", "gamma"],
}  # fmt: skip


@pytest.mark.behaviour("evidence-outcome-page")
def test_a_person_records_how_a_decision_turned_out_and_corrects_it(server: WebServer, look: Look) -> None:
    run = run_in_thread(server.run_council)
    seen = look().run(server.url, run)
    page = seen.page
    page.wait_for_selector(".outcome")
    assert seen.text(".outcome h3") == "How did it turn out?"
    page.fill("#outcome-note", "the disk was <b>full</b>")
    page.click(".outcome button:has-text('Wrong')")
    page.wait_for_selector(".trust .pill:has-text('turned out wrong')")
    assert "the answer turned out wrong" in seen.text(".trust")
    assert seen.text(".outcome h3") == "It turned out wrong" and "the disk was <b>full</b>" in seen.text(".outcome")
    seen.wait("() => document.querySelector('.run-item .about').innerText.includes('turned out wrong')")
    page.click("#tab-report")
    seen.wait("() => document.querySelector('#panel-report .prose')?.innerText.includes('the answer turned out wrong')")

    page.click(".outcome button:has-text('Change')")
    assert page.locator("#outcome-note").input_value() == "the disk was <b>full</b>"
    page.fill("#outcome-note", "")
    page.click(".outcome button:has-text('Right')")
    seen.wait("() => document.querySelector('.outcome h3').innerText === 'It turned out right'")
    assert page.locator(".trust .pill:has-text('turned out wrong')").count() == 0
    seen.wait("() => document.querySelector('.run-item .about').innerText.includes('turned out right')")
    stored = run_in_thread(lambda: server.get(f"/api/runs/{run}"))["report"]["decision_outcome"]
    assert (stored["label"], stored["note"]) == ("right", "")
    assert not seen.errors and not seen.external_requests(server.host)


@pytest.mark.behaviour("17-answer-card", "17-what-changed", "17-fork-from-page")
def test_from_the_answer_a_person_copies_compares_asks_on_and_forks(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    table = Workspace(server.folder, provider)
    table.configure(more=PRICED)
    answer = f"{DRAFT.replace('in spring', 'in May')}\n\n```sql\n{CODE}\n```"
    table.answers.instead["beta/draft"] = Reply(text=DRAFT)
    table.answers.instead["chair"] = Reply(text=f"{answer}\n\n```council-notes\n{json.dumps(NOTES)}\n```")
    run = run_in_thread(server.run_council)
    seen = look(permissions=["clipboard-read", "clipboard-write"]).run(server.url, run)
    page = seen.page
    page.wait_for_selector(".changed")
    assert "The council changed what its strongest seat, alpha, recommended." in " ".join(seen.text(".changed").split())
    assert "It cost $" in seen.text(".cost-panel") and "; the answer of alpha alone cost $" in seen.text(".cost-panel")
    assert "3 of 3 seats answered" not in seen.text(".trust")  # it is among the details
    for name in ("trust", "changed", "cost-panel"):
        page.click(f".{name} summary")
    assert "+" in seen.text(".trust") and "−" in seen.text(".trust") and "3 of 3 seats answered" in seen.text(".trust")
    changed = seen.text(".changed")
    for words in (
        "The answer shares most wording with the draft of beta: ",
        "From gamma: the archive tier.",
        "beta and gamma recommended this from the start; alpha did not.",
        "The seats agree on 1 point and differ on 1 point. Show them",
    ):
        assert words in " ".join(changed.split()), changed
    assert "One draft of one model cost $" in seen.text(".cost-panel")
    page.click(".changed button:has-text('See the diff')")
    assert "spring" in " ".join(seen.texts("dialog del")) and "May" in " ".join(seen.texts("dialog ins"))
    page.click("dialog.diff-dialog button:has-text('Close')")

    copied = "() => navigator.clipboard.readText()"
    page.click(".answer-tools button:has-text('Copy Markdown')")
    page.wait_for_selector("button:has-text('Copied')")
    tail = run_in_thread(lambda: server.get(f"/api/runs/{run}"))["report"]["tail"]
    assert tail[-1].startswith("Trust: ")
    assert page.evaluate(copied) == add_tail(answer, tail).rstrip("\n")
    page.click(".answer .copy-code")
    seen.wait(f"async () => (await navigator.clipboard.readText()) === {json.dumps(CODE)}")

    page.click(".answer-tools button:has-text('Fork')")
    page.wait_for_selector("#other-chair option[value='sim:beta']", state="attached")
    page.select_option("#other-alpha", "sim:beta")
    assert page.locator("#fork-from").input_value() == "draft"  # the first phase in which alpha is asked
    page.select_option("#other-alpha", "sim:alpha")
    assert page.locator("#fork-from").input_value() == "synthesise"
    page.select_option("#other-chair", "sim:beta")
    page.click(".run-form button:has-text('Fork')")
    seen.wait("run => !location.hash.endsWith(run)", run)
    seen.wait_for_status("complete")
    forked = page.evaluate("() => location.hash.split('/').at(-1)")
    plans = run_in_thread(lambda: [server.get(f"/api/runs/{one}")["plan"] for one in (run, forked)])
    assert (plans[1]["fork"], plans[1]["chair"]["model"]) == ({"run": run, "from": "synthesise"}, "sim:beta")

    page.wait_for_selector(".answer-tools button:has-text('Ask on')")
    assert page.get_attribute(".answer-tools a", "href") == f"#compare={run},{forked}"
    page.click(".answer-tools button:has-text('Re-run')")
    assert page.locator("#other-alpha").input_value() == "sim:alpha" and not page.is_visible("#fork-from")
    page.click(".answer-tools button:has-text('Ask on')")
    page.fill("#ask-on", "And what does it cost?")
    page.click(".run-form button:has-text('Ask')")
    seen.wait("run => !location.hash.endsWith(run)", forked)
    seen.wait_for_status("complete")
    assert seen.text(".run-head h1") == "And what does it cost?"
    asked = page.evaluate("() => location.hash.split('/').at(-1)")
    assert run_in_thread(lambda: server.get(f"/api/runs/{asked}"))["report"]["continues"] == forked
    assert seen.errors == []


ERROR = make_error("MAJOR", "It costs 5,000 euros in all", "The train is not counted.")


def refine_with_errors(server: WebServer, provider: FakeProvider) -> Authors:
    """Seat authors whose chosen text has an error that is corrected and one that is not."""
    answers = take_seats(Workspace(server.folder, provider))
    answers.errors["check/beta"] = [ERROR, make_error("MINOR", "Book the train early", "It does not say when.")]
    return answers


@pytest.mark.behaviour("17-refine-card", "50-page-diff")
def test_a_refined_answer_shows_its_check_its_notes_and_the_errors_in_the_drafts(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    refine_with_errors(server, provider)
    run = run_in_thread(lambda: server.run_council(protocol="refine"))
    seen = look().run(server.url, run)
    page = seen.page
    page.wait_for_selector(".changed")  # the report is there
    card = " ".join(seen.text(".answer").split())
    for words in (
        "checked by beta and gamma: 2 errors found, 1 corrected, 1 still open",
        "Checked by beta gamma",
        "Errors that the check found 2",
        "It costs 5,000 euros in all: The train is not counted.",
        "Correction: Count the train.",
        "Ruling: It is so.",
        "built on alpha's answer",
        "the price",
    ):
        assert words in card, (words, card)
    assert seen.texts(".answer details.part[open] .tag") == ["corrected", "open"]
    assert [page.locator(".answer .severity").nth(n).inner_text() for n in range(2)] == ["major", "minor"]
    page.click(".answer summary:has-text('Errors in the drafts')")
    assert "on the draft of beta" in " ".join(" ".join(seen.texts(".answer details.part li")).split())
    assert seen.texts(".seat .seat-name") == ["alpha", "beta", "gamma", "chair"]
    page.click("[data-seat=alpha] [data-key^=rewrite] button:has-text('compare')")
    assert mark("alpha", "draft") in seen.text("[data-seat=alpha] [data-key^=rewrite] del")
    assert mark("alpha", "rewrite") in seen.text("[data-seat=alpha] [data-key^=rewrite] ins")
    assert seen.errors == []


@pytest.mark.behaviour("17-card-keeps-parts")
def test_parts_stay_open_or_closed_and_keep_the_focus_when_positions_arrive(
    server: WebServer, provider: FakeProvider, look: Look
) -> None:
    refine_with_errors(server, provider)
    run = run_in_thread(lambda: server.run_council(protocol="refine"))
    seen = look()
    page = seen.page
    held: list[Any] = []
    page.route("**/positions", lambda route: held.append(route))
    seen.run(server.url, run)
    page.wait_for_selector(".changed")
    page.click(".answer summary:has-text('Errors that the check found')")
    page.click(".answer summary:has-text('Errors in the drafts')")
    page.evaluate("() => { document.querySelector('.answer details').isOld = true }")
    held.pop().continue_()
    seen.wait("() => !document.querySelector('.answer details').isOld")  # built again with the positions
    assert "on the draft of beta" in " ".join(" ".join(seen.texts(".answer details.part[open] li")).split())
    assert seen.texts(".answer details:not([open]) h3") == ["Errors that the check found"]
    assert "Errors in the drafts" in page.evaluate("() => document.activeElement.textContent")
    assert seen.errors == []


@pytest.mark.behaviour("17-refine-card")
def test_a_chair_that_was_not_asked_has_no_column(server: WebServer, provider: FakeProvider, look: Look) -> None:
    answers = take_seats(Workspace(server.folder, provider))
    answers.errors |= {f"attack/{seat}": [] for seat in SEATS}
    run = run_in_thread(lambda: server.run_council(protocol="refine"))
    seen = look().run(server.url, run)
    seen.page.wait_for_selector('.answer:has-text("alpha\'s draft — all 3 drafts agree")')
    assert seen.texts(".seat .seat-name") == ["alpha", "beta", "gamma"]
    assert seen.texts(".timeline .label") == ["alpha", "beta", "gamma"]
    assert seen.errors == []


@pytest.mark.behaviour("50-page-check")
def test_the_form_has_an_answer_checked(server: WebServer, provider: FakeProvider, look: Look) -> None:
    take_seats(Workspace(server.folder, provider))
    seen = look().at(server.url)
    page = seen.page
    page.fill("#question", QUESTION)
    seen.open_options()
    assert "its author correct what is right" in seen.text(".field:has(#option-check)")
    with page.expect_request(lambda one: one.url.endswith("/api/estimate")) as sent:
        page.check("#option-check")
    assert sent.value.post_data_json["check"] is True
    page.wait_for_selector(".go .run:not([disabled])")
    page.click(".go .run")
    page.wait_for_selector(".seat")
    seen.wait_for_status("complete")
    page.wait_for_selector(".answer:not([hidden])")
    assert "Checked by alpha beta · no error found" in " ".join(seen.text(".answer").split())
    assert seen.errors == []


def stopped() -> RunBuilder:
    builder = RunBuilder().phase("draft").ask(*NAMES).answer("alpha", "alpha drafts this.")
    return builder.close("", status="incomplete", stopped="cancelled", reason="stopped by you")


def chair_failed() -> RunBuilder:
    builder = RunBuilder().phase("draft").ask(*NAMES)
    for name in NAMES:
        builder.answer(name, f"{name} drafts this.")
    builder.end_phase().phase("synthesise").ask("chair").mark_absent("chair").end_phase()
    return builder.close("## No chair: digest of statements", status="incomplete", stopped="chair")


def judges(verdict: str, *words: str) -> RunBuilder:
    seats = red_and_blue()[: len(words)] if verdict == "DISAGREE" else []
    bench = bench_plan(*seats)
    names = [one["name"] for one in bench["seats"]]
    run = judged(bench, **{name.replace("-", "_"): opinion(word) for name, word in zip(names, words, strict=False)})
    opinions = [{"seat": name, "verdict": word, "confidence": "HIGH", "key_insight": f"**{word}** it is.", "recommendation": ""} for name, word in zip(names, words, strict=False)]  # fmt: skip
    positions = [
        {"seat": name, "verdict": word, "why": "So.", "family": "a"} for name, word in zip(names, words, strict=False)
    ]
    rows = [
        finding(
            "`exp` is never checked",
            names[0],
            disputed=True,
            disputed_by=[names[1]],
            disputes=[{"seat": names[1], "why": "It is."}],
        )
    ]
    differ = [{"issue": "the verdict", "positions": positions}] if len(set(words)) > 1 else []
    dissent = [{"seat": names[0], "position": "X", "text": "told once"}]
    same = [{"kind": "same_verdict", "detail": verdict, "count": len(words)}] if len(set(words)) == 1 else []
    return run.close(
        "Start at src/auth.py:2. Check it.",
        verdict=verdict,
        shared_by=[name for name, word in zip(names, words, strict=False) if word == verdict] or None,
        trust_facts=same,
        confidence="HIGH",
        findings=rows,
        disagreements=differ,
        dissent=dissent,
        details=details(opinions=opinions),
    )


def general() -> RunBuilder:
    topic = dispute("Is it safe?", side("alpha", "yes", "beta"), side("beta", "no", "alpha"))
    answer = 'Participating models: a as b.\n\nMove it.\n\n## Where Experts Disagree\n\nExperts disagree on "Is it safe?" because they measure differently.'
    return answered().close(
        answer, disagreements=[topic], dissent=[{"seat": "beta", "position": "no", "text": "told once"}]
    )


def advisors() -> RunBuilder:
    answer = "## Perspectives\n\n- **Skeptic:** no\n\n## Tensions\n\n- cost\n\n## Verdict\n\nMove it.\n\n## Next Steps\n\n1. Go."
    return answered("advisors").close(
        answer, disagreements=[{"issue": "cost"}], shared_by=["alpha", "beta"], agreement="partial"
    )


def ranking() -> RunBuilder:
    sides = [
        {"seat": "alpha", "position": "first", "why": "best"},
        {"seat": "gamma", "position": "last", "why": "worst"},
    ]
    return answered("ranking").close("Beta's way.", disagreements=[{"issue": "the answer of beta", "positions": sides}])


def panel() -> RunBuilder:
    points = "## Where they agree\n\n- It is safe.\n\n## Where they differ, and on which assumption\n\n- told once"
    answers = "## Alpha\n\nSpaces.\n\n## Beta\n\nTabs."
    sides = [{"seat": "alpha", "position": "x", "assumes": ""}, {"seat": "beta", "position": "y", "assumes": ""}]
    notes = {"agreed": ["It is safe."], "contested": [{"point": "told once", "sides": sides}], "unique": []}
    sections = [
        {"name": "decision", "title": "Positions", "text": points},
        {"name": "answers", "title": "Statements", "text": answers},
    ]
    return answered("panel").close(
        f"{points}\n\n{answers}",
        disagreements=[{"issue": "told once", "positions": sides}],
        notes=notes,
        details={"sections": sections},
    )


def many(count: int) -> RunBuilder:
    names = ("alpha", "beta", "gamma", "delta", "epsilon")[:count]
    builder = RunBuilder(plan(names=names)).phase("draft")
    for name in names:
        builder.answer(name, f"{name} drafts this.")
    return builder.end_phase().phase("synthesise").answer("chair", "Spaces.").end_phase().close("Spaces.")


def agreed() -> RunBuilder:
    """Return a run of two vendors that agree from the start."""
    models = {"alpha": "anthropic:a", "beta": "openai:b"}
    builder = RunBuilder(plan(seats=[seat(name, model=model) for name, model in models.items()])).phase("draft")
    for name, model in models.items():
        builder.answer(name, f"{name} drafts this.", served_by=model)
    return builder.end_phase().phase("synthesise").answer("chair", "Spaces.").end_phase().close(agreement="full")


SHAPES: dict[str, tuple[RunBuilder, list[str], list[str]]] = {
    "one seat": (many(1), ["1 of 1 seats answered", "Trust: LOW", "only one member was asked"], ["What the council changed"]),
    "two seats": (many(2), ["2 of 2 seats answered"], []),
    "five seats": (many(5), ["5 of 5 seats answered"], []),
    "agreed": (agreed(), ["Trust: HIGH", "+both seats recommended", "−members can share an error"], ["+members"]),
    "plain": (collaborative(), ["Spaces.", "+3 of 3 seats answered"], ["most wording", "One draft of one model"]),
    "absent": (one_absent(), ["2 of 3 seats answered", "−beta did not answer"], ["+3 of 3"]),
    "stopped": (stopped(), ["Stopped by you"], ["What the council changed", "Ask on"]),
    "no chair": (chair_failed(), ["No chair: digest of statements", "Trust: LOW"], ["most wording"]),
    "PASS": (judges("PASS", "PASS", "PASS"), ["PASS", "judges say PASS"], ["told once"]),
    "WARN": (judges("WARN", "PASS", "WARN"), ["WARN", "judge-2 recommended this from the start; judge-1 did not."], ["told once", "**"]),
    "FAIL": (judges("FAIL", "WARN", "FAIL"), ["FAIL", "differ on 2 points"], ["told once", "`exp`"]),
    "DISAGREE": (judges("DISAGREE", "PASS", "FAIL"), ["DISAGREE", "judges of different vendors contradict each other"], ["from the start"]),
    "merged points": (attack_run(), ["beta and gamma objected (fatal): ", "The chair accepted it: Right.", "The chair rejected it: No."], ["landed", "dismissed"]),
    "no ruling": (adversarial(), ["MODIFIED"], ["Objections"]),
    "general": (general(), ["Move it.", "Where Experts Disagree"], ["told once", "Participating", "Where they differ"]),
    "advisors": (advisors(), ["Move it.Copy Markdown", "Next Steps", "alpha and beta recommended this from the start; gamma did not."], ["Where they differ"]),
    "ranking": (ranking(), ["Beta's way.", "differ on 1 point", "Where they differ", "The answer of beta"], []),
    "panel": (panel(), ["Where they agree", "It is safe.", "Statements"], []),
}  # fmt: skip


@pytest.mark.behaviour("17-answer-card", "17-decision-first", "17-say-once", "evidence-high-limit")
def test_the_card_of_every_shape_tells_each_thing_once(module_page: Any) -> None:
    for name, (builder, shown, missing) in SHAPES.items():
        events = add_patches(builder.entries)
        given = [events, build_position_history(builder.entries), read_report(builder.minutes)]
        card = module_page.evaluate(SHOW_ANSWER, given)
        assert not card["hidden"], name
        for words in shown:
            assert words in card["text"], (name, words, card["text"])
        for words in missing:
            assert words not in card["text"], (name, words, card["text"])
        assert card["text"].count("Experts disagree on") <= 1, name
        assert card["text"].count("It is safe.") <= 1, name


SHOW_MAP = """async ([events, rows]) => {
    const { newEventLog } = await import('/page/event_log.js');
    const { mapView } = await import('/page/disagreement_map.js');
    const log = newEventLog();
    for (const event of events) log.add(event);
    const minutes = log.full;
    const view = mapView({ tone: () => '', minutes: () => minutes });
    view.update({ minutes, rows });
    return [...view.node.querySelectorAll('.cell')].map(cell => cell.textContent);
}"""


@pytest.mark.behaviour("17-answer-card")
def test_a_seat_that_still_writes_is_not_shown_as_absent_in_the_map(module_page: Any) -> None:
    names = ("alpha", "beta", "gamma")
    builder = RunBuilder(plan(names=names)).phase("draft").ask(*names)
    builder.answer("alpha", "Spaces.").mark_absent("gamma", "failed(server)")
    seats = [{"seat": name, "position": "agrees" if name == "alpha" else "absent"} for name in names]
    row = {"topic": "spaces", "text": "spaces", "kind": "finding", "status": "1 of 1", "seats": seats}
    shown = module_page.evaluate(SHOW_MAP, [add_patches(builder.entries), [row]])
    assert shown == ["agrees", "not yet", "absent"]
    module_page.evaluate("() => { location.hash = '#/run/%E0%A4%A' }")  # a wrong address names no run
    module_page.wait_for_selector(".problem.big:has-text('there is no run')")


SHOW_FINDINGS = """async events => {
    const { newEventLog } = await import('/page/event_log.js');
    const { answerParts } = await import('/page/answer_parts.js');
    const log = newEventLog();
    for (const event of events) log.add(event);
    const m = log.full;
    const parts = answerParts(m, null, [], { tone: () => '', shortName: name => name, show: () => {}, minutes: () => m });
    return parts.filter(node => node?.querySelector?.('.finding')).map(node => ({
        title: node.querySelector('h3').textContent,
        code: [...node.querySelectorAll('.fix pre')].map(one => one.textContent),
        text: node.textContent,
    }));
}"""


@pytest.mark.behaviour("20-finding-blocks")
def test_the_page_shows_whole_fixes_and_what_several_judges_hold_first(module_page: Any) -> None:
    code = "for attempt in range(3):\n    with session.begin():\n        charge(account)"
    alone = finding("Alone.", "judge-1", id="judge-1.F1", fix="Close it in `finally`.", possibly_same=["judge-2.F2"])
    shared = finding(
        "It waits.\n\nOthers wait too.", "judge-2", id="judge-2.F2", held_by=["judge-1", "judge-2"], fix=code,
        recommendation="Sleep outside.", grouped_by="clerk", defect="sleeps under a lock", location="src/pay.py:8",
    )  # fmt: skip
    run = judged().close("Go.", verdict="WARN", findings=[alone, shared], details=details())
    parts = module_page.evaluate(SHOW_FINDINGS, add_patches(run.entries))
    assert [part["title"] for part in parts] == ["Findings that several judges hold", "Findings of one judge"]
    assert [part["code"] for part in parts] == [[code], []]
    for words in (
        "2 of 2",
        "Fix: Sleep outside.",
        "also held by",
        "judge-1",
        "sleeps under a lock",
        "grouped by the clerk",
    ):
        assert words in parts[0]["text"]
    assert "Possibly the same as judge-2.F2 (src/pay.py:8)" in parts[1]["text"]
