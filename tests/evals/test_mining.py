"""Commits that introduced bugs are found in real histories, with the lines that a later fix changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from council.errors import UsageError
from council.evals.history.cases import HistoryCase, Mined
from council.evals.history.mining import find_cases
from tests.evals.histories import History, git

BASE = "def first(rows):\n    top = rows[0]\n    return top.name\n"
FEATURE = """def total(rows, tax):
    amount = 0
    for row in rows:
        amount += row.price * row.count
    discount = amount * row.discount
    result = amount + tax * discount
    return round(result, 2)
"""
BUGGY = "    result = amount + tax * discount\n"
FIXED = "    result = amount - tax * discount\n"
OTHER = "".join(f"def other_{n}(value):\n    return value * {n} + offset_{n}\n\n\n" for n in range(4))


def fix(text: str) -> str:
    assert BUGGY in text
    return text.replace(BUGGY, FIXED)


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return a history with a first commit."""
    made = History(tmp_path / "repository.git")
    made.commit("Import", {"first.py": BASE})
    return made


def mine(history: History, **more: Any) -> Mined:
    return find_cases(history.folder, **{"since": "2019-01-01", **more})


def find_bugs(mined: Mined) -> list[HistoryCase]:
    return [case for case in mined.cases if not case.is_control]


def find_bug(history: History) -> HistoryCase:
    mined = mine(history)
    bugs = find_bugs(mined)
    assert len(bugs) == 1, mined
    return bugs[0]


@pytest.mark.behaviour("60-history-mining")
def test_a_fix_leads_to_the_commit_that_wrote_the_line(history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE})
    history.commit("Add other functions", {"app.py": FEATURE + OTHER})
    repair = history.commit("Fix the sign of the tax\n\nCloses #3", {"app.py": fix(FEATURE) + OTHER})
    ids = history.write()
    case = find_bug(history)
    assert (case.id, case.commit, case.parent) == (ids[feature][:10], ids[feature], ids[1])
    assert (case.subject, case.date, case.changed_lines) == ("Add totals", "2020-01-03", 7)
    (found,) = case.fixes
    assert (found.commit, found.subject, found.date) == (ids[repair], "Fix the sign of the tax", "2020-01-05")
    assert [(line.path, line.line, line.text) for line in found.lines] == [("app.py", 6, BUGGY.rstrip())]


def move(history: History) -> str:
    history.commit("Move totals", {"app.py": OTHER, "totals.py": FEATURE})
    return "totals.py"


def rename(history: History) -> str:
    history.commit("Rename the module", {"app.py": None, "money.py": FEATURE + OTHER})
    return "money.py"


def indent(history: History) -> str:
    inner = "".join(f"    {line}" for line in FEATURE.splitlines(keepends=True))
    history.commit("Wrap it in a class", {"app.py": f"class Cart:\n{inner}{OTHER}"})
    return "app.py"


def reformat(history: History) -> str:
    text = FEATURE.replace(BUGGY, "    result = (\n        amount\n        + tax * discount\n    )\n")
    history.commit("Reformat", {"app.py": text + OTHER})
    history.commit("Format again", {"app.py": FEATURE + OTHER})
    return "app.py"


def rename_a_word(history: History) -> str:
    history.commit("Use a longer name", {"app.py": FEATURE.replace("discount", "reduction") + OTHER})
    return "app.py"


def ignore(history: History) -> str:
    text = FEATURE.replace("amount", "subtotal").replace("result", "outcome") + OTHER
    mark = history.commit("Refactor the names", {"app.py": text})
    done = history.write()
    history.commit(
        "Ignore it", {".git-blame-ignore-revs": f"# names\n{done[mark]}\nnot a commit\n{'0' * 40}\n"}, parents=(mark,)
    )
    return "app.py"


@pytest.mark.behaviour("60-history-looks-through")
@pytest.mark.parametrize("change", [move, rename, indent, reformat, rename_a_word, ignore])
def test_a_commit_that_only_touched_the_line_is_looked_through(
    change: Callable[[History], str], history: History
) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE + OTHER})
    path = change(history)
    ids = history.write()
    text = git(history.folder, "show", f"main:{path}")
    assert "+ tax" in text
    history.commit("Fix the sign of the tax", {path: text.replace("+ tax", "- tax")}, parents=(max(ids),))
    ids = history.write()
    case = find_bug(history)
    assert case.commit == ids[feature]
    assert [(line.path, line.line) for fix in case.fixes for line in fix.lines] == [("app.py", 6)]


@pytest.mark.behaviour("60-history-looks-through")
def test_a_commit_that_wrote_the_wrong_words_is_not_looked_through(history: History) -> None:
    history.commit("Add totals", {"app.py": fix(FEATURE).replace("- tax", "- old_tax")})
    later = history.commit("Refactor the tax\n\nIt is a class.", {"app.py": FEATURE + OTHER})
    history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE) + OTHER})
    ids = history.write()
    assert find_bug(history).commit == ids[later]


@pytest.mark.behaviour("60-history-reverts")
def test_the_revert_of_a_commit_for_a_bug_leads_to_it_with_all_its_lines(history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE})
    ids = history.write()
    history.commit(f'Revert "Add totals"\n\nThis reverts commit {ids[feature]}.\n\nIt crashes without rows.', {"app.py": None}, parents=(feature,))  # fmt: skip
    history.write()
    case = find_bug(history)
    assert case.commit == ids[feature]
    assert [line.line for line in case.fixes[0].lines] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.behaviour("60-history-reverts")
def test_a_revert_that_names_only_the_subject_is_resolved(history: History) -> None:
    history.commit("Add totals to the report", {"report.py": OTHER})
    feature = history.commit("Add totals (#7)", {"app.py": FEATURE})
    history.commit('Revert "Add totals" (#8)\n\nReverts acme/shop#7, as orders are wrong.', {"app.py": None})
    history.commit('Revert "Add sums" (#9)\n\nReverts acme/shop#7, as orders are wrong.', {"first.py": OTHER})
    ids = history.write()
    mined = mine(history)
    assert [case.commit for case in find_bugs(mined)] == [ids[feature]]
    assert mined.left_out == {"unclear_revert": 1}


@pytest.mark.behaviour("60-history-reverts")
def test_a_revert_without_a_reason_is_no_fix_and_its_commit_no_control(history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE})
    ids = history.write()
    history.commit(f'Revert "Add totals"\n\nThis reverts commit {ids[feature]}.', {"app.py": None}, parents=(feature,))
    bug = history.commit("Add others", {"other.py": OTHER})
    history.commit("Fix the offset", {"other.py": OTHER.replace("+ offset_2", "- offset_2")})
    ids = history.write()
    assert {case.commit for case in mine(history).cases} == {ids[bug]}


@pytest.mark.behaviour("60-history-reverts")
def test_a_line_that_a_revert_restored_leads_to_the_commit_that_wrote_it(history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE + OTHER})
    text = FEATURE.replace("result", "outcome").replace("amount + tax", "tax + amount")
    changed = history.commit("Use other names", {"app.py": text + OTHER})
    ids = history.write()
    history.commit(f'Revert "Use other names"\n\nThis reverts commit {ids[changed]}.', {"app.py": FEATURE + OTHER}, parents=(changed,))  # fmt: skip
    history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE) + OTHER})
    history.write()
    assert find_bug(history).commit == ids[feature]


@pytest.mark.behaviour("60-history-reverts")
@pytest.mark.parametrize("subject", ['Revert "Revert "Add totals""', 'Reapply "Add totals"'])
def test_a_commit_that_was_reverted_and_applied_again_is_found(subject: str, history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE})
    ids = history.write()
    away = history.commit(f'Revert "Add totals"\n\nThis reverts commit {ids[feature]}.', {"app.py": None}, parents=(feature,))  # fmt: skip
    ids = history.write()
    history.commit(f"{subject}\n\nThis reverts commit {ids[away]}.", {"app.py": FEATURE}, parents=(away,))
    history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE)})
    history.write()
    assert find_bug(history).commit == ids[feature]


@pytest.mark.behaviour("60-history-mining")
def test_merges_are_looked_through(history: History) -> None:
    side = history.commit("Add totals", {"app.py": FEATURE}, branch="side", parents=(1,))
    main = history.commit("Add others", {"other.py": OTHER}, parents=(1,))
    history.commit("Merge branch 'side' to fix totals", {"app.py": FEATURE}, parents=(main, side))
    history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE)})
    ids = history.write()
    assert find_bug(history).commit == ids[side]


@pytest.mark.behaviour("60-history-mining")
def test_a_line_that_a_merge_wrote_is_left_out(history: History) -> None:
    side = history.commit("Add others", {"other.py": OTHER}, branch="side", parents=(1,))
    main = history.commit("Add more", {"more.py": OTHER.replace("other", "more")}, parents=(1,))
    history.commit("Merge branch 'side'", {"other.py": OTHER, "app.py": FEATURE}, parents=(main, side))
    history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE)})
    history.write()
    assert mine(history).left_out == {"merge": 1}


@pytest.mark.behaviour("60-history-mining")
def test_two_fixes_of_one_commit_are_one_case(history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE})
    one = history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE)})
    two = history.commit("Fix rounding", {"app.py": fix(FEATURE).replace("round(result, 2)", "round(result, 3)")})
    ids = history.write()
    case = find_bug(history)
    assert case.commit == ids[feature]
    assert [found.commit for found in case.fixes] == [ids[two], ids[one]]
    assert [line.line for found in case.fixes for line in found.lines] == [7, 6]


@pytest.mark.behaviour("60-history-mining")
@pytest.mark.parametrize("fixed", [1, 3])
def test_a_fix_of_the_lines_of_two_commits_needs_a_clear_share(fixed: int, history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE})
    history.commit("Add others", {"app.py": FEATURE + OTHER})
    text = FEATURE.replace("amount + tax * discount", "amount - tax * discount") + OTHER.replace(
        "+ offset_2", "- offset_2"
    )
    if fixed == 3:
        text = text.replace("row.price * row.count", "row.price * row.number").replace(
            "amount * row", "(amount - tax) * row"
        )
    history.commit("Fix some signs", {"app.py": text})
    ids = history.write()
    mined = mine(history)
    assert [case.commit for case in find_bugs(mined)] == ([ids[feature]] if fixed == 3 else [])
    assert mined.left_out == ({} if fixed == 3 else {"scattered": 1})


@pytest.mark.behaviour("60-history-mining")
def test_a_commit_that_the_fix_names_needs_no_clear_share(history: History) -> None:
    history.commit("Add totals", {"app.py": FEATURE})
    named = history.commit("Add others", {"app.py": FEATURE + OTHER})
    ids = history.write()
    text = fix(FEATURE).replace("row.price * row", "row.cost * row") + OTHER.replace("+ offset_2", "- offset_2")
    history.commit(f"Fix some signs\n\nRegression in {ids[named][:12]}.", {"app.py": text}, parents=(named,))
    history.commit(
        f"Fix the last sign\n\nRegression in {ids[1]}.", {"app.py": text.replace("+ offset_3", "- offset_3")}
    )
    history.write()
    mined = mine(history)
    assert [case.commit for case in find_bugs(mined)] == [ids[named]]
    assert mined.left_out == {"other_named": 1}


@pytest.mark.behaviour("60-history-mining")
def test_a_pull_request_that_the_fix_names_decides(history: History) -> None:
    named = history.commit("Add totals (#7)", {"app.py": FEATURE})
    history.commit("Add others (#17)", {"other.py": OTHER})
    history.commit("Fix the sign of the tax (#18)\n\nDue to #7, orders are wrong.", {"app.py": fix(FEATURE)})
    history.commit("Fix an offset (#19)\n\nDue to #7.", {"other.py": OTHER.replace("+ offset_2", "- offset_2")})
    ids = history.write()
    mined = mine(history)
    assert [case.commit for case in find_bugs(mined)] == [ids[named]]
    assert mined.left_out == {"other_named": 1}


@pytest.mark.behaviour("60-history-mining")
@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({"tests/test_app.py": FEATURE}, {"tests/test_app.py": fix(FEATURE)}, "no_source"),
        ({"app.py": f"# wrong\n{FEATURE}"}, {"app.py": f"# right\n{FEATURE}"}, "no_source"),
        ({"app.py": f"import os\n{FEATURE}"}, {"app.py": f"import sys\n{FEATURE}"}, "no_source"),
        ({"logo.py": b"\0" * 40}, {"logo.py": b"\0" * 50}, "no_source"),
        ({"app.py": FEATURE}, {"app.py": "".join(f"    {line}\n" for line in FEATURE.splitlines())}, "no_lines"),
        ({"app.py": FEATURE}, {"app.py": FEATURE + OTHER}, "no_lines"),
        ({"app.py": FEATURE}, {"app.py": fix(FEATURE) + OTHER * 4}, "size"),
        ({"app.py": FEATURE + OTHER * 30}, {"app.py": fix(FEATURE) + OTHER * 30}, "reviewable"),
        ({"app.py": "x = 1\n"}, {"app.py": "x = 2\n"}, "reviewable"),
        ({"app.py": f"# Code generated by a tool. DO NOT EDIT.\n{FEATURE}"}, {"app.py": f"# Code generated by a tool. DO NOT EDIT.\n{fix(FEATURE)}"}, "no_source"),
    ],
)  # fmt: skip
def test_what_leads_to_no_case_is_counted(
    before: dict[str, Any], after: dict[str, Any], reason: str, history: History
) -> None:
    history.commit("Add it", before)
    history.commit("Fix it", after)
    history.write()
    mined = mine(history)
    assert (mined.cases, mined.commits, mined.fixes, mined.traced, mined.left_out) == ((), 3, 1, 0, {reason: 1})


@pytest.mark.behaviour("60-history-mining")
def test_a_bug_of_the_first_commit_and_one_of_years_ago_are_left_out(history: History) -> None:
    history.commit("Add totals", {"app.py": FEATURE})
    history.commit("Fix the name", {"first.py": BASE.replace("top.name", "top.title")})
    history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE)}, day=5 * 365)
    history.write()
    assert mine(history).left_out == {"long_ago": 1, "too_old": 1}


@pytest.mark.behaviour("60-history-mining")
def test_a_fix_that_only_adds_leads_to_the_commit_that_wrote_the_lines_around(history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE})
    added = FEATURE.replace("    discount", "    if not rows:\n        return 0\n    discount")
    history.commit("Fix a crash without rows", {"app.py": added})
    ids = history.write()
    case = find_bug(history)
    assert case.commit == ids[feature]
    assert [line.line for line in case.fixes[0].lines] == [4, 5]


@pytest.mark.behaviour("60-history-mining")
@pytest.mark.parametrize(
    "path", ["a b.py", "naïve/日本.py", 'quo"te.py', "back\\slash.py", "tab\there.py", "new\nline.py"]
)
def test_strange_paths_are_kept(path: str, history: History) -> None:
    history.commit("Add totals", {path: FEATURE})
    history.commit("Fix the sign of the tax", {path: fix(FEATURE)})
    history.write()
    case = find_bug(history)
    assert [(line.path, line.line) for line in case.fixes[0].lines] == [(path, 6)]


@pytest.mark.behaviour("60-history-mining")
def test_line_ends_and_bytes_of_other_encodings_are_read(history: History) -> None:
    windows = FEATURE.replace("\n", "\r\n")
    feature = history.commit("Add totals", {"app.py": windows.encode() + b"# caf\xe9\r\n"})
    history.commit("Use Unix line ends", {"app.py": FEATURE.encode() + b"# caf\xe9\n"})
    history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE).encode() + b"# caf\xe9\n"})
    ids = history.write()
    case = find_bug(history)
    assert case.commit == ids[feature]
    assert [(line.line, line.text) for line in case.fixes[0].lines] == [(6, BUGGY.rstrip())]


@pytest.mark.behaviour("60-history-shallow")
def test_a_shallow_clone_says_so_and_does_not_blame_its_boundary(history: History, tmp_path: Path) -> None:
    history.commit("Add totals", {"app.py": FEATURE})
    boundary = history.commit("Add others", {"other.py": OTHER})
    history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE)})
    ids = history.write()
    assert not mine(history).is_shallow
    (history.folder / "shallow").write_text(f"{ids[boundary]}\n")
    mined = mine(history)
    assert (mined.is_shallow, mined.cases, mined.left_out) == (True, (), {"too_old": 1})


@pytest.mark.behaviour("60-history-mining")
def test_a_fix_that_was_picked_to_a_branch_and_merged_counts_once(history: History) -> None:
    feature = history.commit("Add totals", {"app.py": FEATURE})
    side = history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE)}, branch="side", parents=(feature,))
    main = history.commit("Fix the sign of the tax", {"app.py": fix(FEATURE)}, parents=(feature,))
    history.commit("Merge branch 'side'", {"app.py": fix(FEATURE)}, parents=(main, side))
    history.write()
    assert len(find_bug(history).fixes) == 1


def make_long_history(history: History) -> dict[int, str]:
    """Write commits of six features. Three are fixed later: one per kind of change."""
    for n in range(6):
        history.commit(f"Add part {n}", {f"part{n}.py": FEATURE.replace("total", f"total_{n}")})
    for n in (1, 3, 5):
        history.commit(f"Fix part {n}", {f"part{n}.py": fix(FEATURE.replace("total", f"total_{n}"))})
    return history.write()


@pytest.mark.behaviour("60-history-controls")
def test_controls_are_as_large_and_were_never_fixed(history: History) -> None:
    ids = make_long_history(history)
    cases = mine(history).cases
    assert {case.commit for case in cases if not case.is_control} == {ids[mark] for mark in (3, 5, 7)}
    assert {case.commit for case in cases if case.is_control} == {ids[mark] for mark in (2, 4, 6)}
    assert {case.changed_lines for case in cases} == {7}


@pytest.mark.behaviour("60-history-controls")
def test_the_number_of_controls_can_be_chosen(history: History) -> None:
    make_long_history(history)
    assert sum(case.is_control for case in mine(history, controls=1).cases) == 1
    assert sum(case.is_control for case in mine(history, controls=0).cases) == 0


@pytest.mark.behaviour("60-history-controls")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FEATURE.replace("amount = 0", "amount = 0.0"), "Fix the first amount"),
        (FEATURE.replace("    discount", "    check(amount)\n    discount"), "Fix a crash without rows"),
        (FEATURE + OTHER * 40, "Fix everything"),
        (FEATURE.replace("amount = 0", "amount = 0.0"), 'Revert "Add decimals"'),
    ],
)
def test_a_commit_whose_lines_a_fix_touched_is_no_control(text: str, message: str, history: History) -> None:
    calm = history.commit("Add totals", {"app.py": FEATURE})
    bug = history.commit("Add others", {"other.py": OTHER})
    history.commit("Fix the offset", {"other.py": OTHER.replace("+ offset_2", "- offset_2")})
    ids = history.write()
    assert {case.commit for case in mine(history).cases} == {ids[calm], ids[bug]}
    history.commit(f"{message}\n\nThis reverts commit {'0' * 40}.", {"app.py": text}, parents=(max(ids),))
    history.write()
    assert ids[calm] not in {case.commit for case in mine(history).cases if case.is_control}


@pytest.mark.behaviour("60-history-controls")
@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"app.py": None, "moved.py": FEATURE}, "Move totals"),
        ({"first.py": OTHER}, "Fix the first row\n\nDue to #7."),
    ],
)
def test_a_commit_that_was_moved_or_that_a_fix_names_is_no_control(
    files: dict[str, str | None], message: str, history: History
) -> None:
    calm = history.commit("Add totals (#7)", {"app.py": FEATURE, "first.py": BASE + OTHER})
    history.commit("Add others", {"other.py": OTHER})
    history.commit("Fix the offset", {"other.py": OTHER.replace("+ offset_2", "- offset_2")})
    ids = history.write()
    assert ids[calm] in {case.commit for case in mine(history).cases}
    history.commit(message, files, parents=(max(ids),))
    history.write()
    assert ids[calm] not in {case.commit for case in mine(history).cases if case.is_control}


@pytest.mark.behaviour("60-history-deterministic")
def test_the_cases_and_their_order_depend_on_the_history_and_the_seed(history: History) -> None:
    make_long_history(history)
    assert mine(history, seed=0) == mine(history, seed=0)
    orders = {tuple(case.id for case in mine(history, seed=seed).cases) for seed in range(3)}
    assert len(orders) > 1
    assert len({frozenset(order) for order in orders}) == 1


@pytest.mark.behaviour("60-history-mining")
def test_the_newest_fixes_are_read_until_the_limit_is_reached(history: History) -> None:
    ids = make_long_history(history)
    seen: list[tuple[int, int]] = []
    mined = mine(history, limit=2, controls=0, on_progress=lambda found, commits: seen.append((found, commits)))
    assert {case.commit for case in mined.cases} == {ids[7], ids[5]}
    assert (mined.commits, mined.fixes, mined.traced) == (2, 2, 2)
    assert seen == [(1, 1), (2, 2)]


@pytest.mark.behaviour("60-history-mining")
def test_since_bounds_the_fixes_and_not_the_commits_before(history: History) -> None:
    ids = make_long_history(history)
    mined = mine(history, since="2020-01-10")
    assert {case.commit for case in find_bugs(mined)} == {ids[5], ids[7]}
    assert mine(history, since="1y").commits == 0


@pytest.mark.behaviour("60-history-bad-input")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": "banana"}, '"banana" is no date: write "1 year ago", "6mo" or "2025-01-31"'),
        ({"since": ""}, '"" is no date'),
        ({"limit": 0}, 'limit is "0": use 1 or more'),
    ],
)
def test_bad_options_are_one_line_errors(options: dict[str, Any], message: str, history: History) -> None:
    history.write()
    with pytest.raises(UsageError) as error:
        mine(history, **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.behaviour("60-history-bad-input")
def test_a_folder_without_a_history_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no git repository"):
        find_cases(tmp_path)
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(UsageError, match="has no commits"):
        find_cases(tmp_path / "empty")
    with pytest.raises(UsageError, match="is no git repository"):
        find_cases(tmp_path / "missing")


HOSTILE = {
    "textconv": {"diff.bad.textconv": "{evil}"},
    "diff driver": {"diff.bad.command": "{evil}", "diff.external": "{evil}"},
    "filters": {"filter.bad.clean": "{evil}", "filter.bad.smudge": "{evil}", "filter.bad.required": "true"},
    "programs": {"core.fsmonitor": "{evil}", "core.pager": "{evil}", "pager.log": "{evil}", "pager.blame": "{evil}", "core.sshCommand": "{evil}"},
    "signatures": {"gpg.program": "{evil}", "log.showSignature": "true"},
    "formats": {"log.follow": "true", "format.pretty": "full", "diff.noprefix": "true", "diff.renames": "false", "blame.ignoreRevsFile": "/etc/passwd", "blame.markIgnoredLines": "true", "color.ui": "always", "log.diffMerges": "on", "diff.algorithm": "minimal", "diff.interHunkContext": "50", "core.quotePath": "false", "diff.orderFile": "/etc/passwd", "diff.relative": "true", "i18n.logOutputEncoding": "UTF-16", "log.decorate": "full", "blame.showEmail": "true", "diff.wsErrorHighlight": "all"},
    "another work tree": {"core.worktree": "{folder}", "core.bare": "false"},
}  # fmt: skip


@pytest.mark.behaviour("60-history-hostile")
@pytest.mark.parametrize(
    ("kind", "is_bare"),
    [*((kind, True) for kind in HOSTILE), ("filters", False), ("textconv", False), ("programs", False)],
)
def test_hostile_configuration_runs_no_program_and_changes_nothing(
    kind: str, is_bare: bool, history: History, tmp_path: Path
) -> None:
    history.commit("Add attributes", {".gitattributes": "*.py diff=bad filter=bad\n"})
    make_long_history(history)
    expected = mine(history)
    assert len(expected.cases) == 6
    canary, script = tmp_path / "canary", tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {canary}\ncat\n")
    script.chmod(0o755)
    place = history.folder
    if not is_bare:
        place = tmp_path / "tree"
        git(tmp_path, "clone", "-q", str(history.folder), str(place))
    (place / ("info" if is_bare else ".git/info")).mkdir(exist_ok=True)
    (place / ("info" if is_bare else ".git/info") / "attributes").write_text("*.py diff=bad filter=bad\n")
    for name, value in HOSTILE[kind].items():
        git(place, "config", name, value.format(evil=script, folder=tmp_path))
    assert find_cases(place, since="2019-01-01") == expected
    assert not canary.exists()
