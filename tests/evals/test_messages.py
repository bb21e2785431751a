"""What messages of commits announce."""

from __future__ import annotations

import pytest

from council.evals.history.messages import read_message

FIXES = [
    ("Fix the total of an empty cart", ""),
    ("fix: handle a missing header", ""),
    ("fix(parser)!: keep the last line", ""),
    ("BUG: groupby drops a level (#123)", ""),
    ("REGR: read_csv with an index", ""),
    ("Fixed #37242 -- Made null time fields readable.", ""),
    ("net/http: fix a data race in the pool", ""),
    ("net: sched: avoid a NULL dereference", ""),
    ("[BUGFIX] wrong order of the tabs", ""),
    (":bug: the timer runs twice", ""),
    ("Do not close the stream of the caller", ""),
    ("Prevent an infinite loop on empty input", ""),
    ("Take the lock before the check", "Two threads passed the check, and one crashed."),
    ("Use bytesize for the content length", "Fixes #12"),
    ("Add missing await", ""),
    ("Remove the cache to fix stale answers", ""),
    ("Race condition in the scheduler", ""),
    ("Fix typo in the variable name that made --quiet a no-op", ""),
    ("修复空列表的问题", ""),
    ("Absturz beim Öffnen leerer Dateien behoben", ""),
    ("Corrige le calcul des années bissextiles", ""),
    ("Исправлена ошибка при выходе", ""),
]
OTHERS = [
    ("Fix typo", ""),
    ("fix: typo in an error message", ""),
    ("Fix lint errors", ""),
    ("Fix formatting", ""),
    ("fix(docs): link of the guide", ""),
    ("fix(deps): update dependency x to v2", ""),
    ("Fix flaky test on Windows", ""),
    ("Fix CI", ""),
    ("Fix the build", ""),
    ("Fix the type of a match", ""),
    ("fixup! Add the parser", ""),
    ("Use a prefix for the keys", ""),
    ("Add fixtures for the parser", ""),
    ("Add a regression test for #12", ""),
    ("Add debug output", ""),
    ("Support fixed-size arrays", ""),
    ("chore(deps): bump x from 1.0 to 1.1", "Fixes a vulnerability of x."),
    ("Bump version to 2.0", ""),
    ("Update the changelog for the bug fix", ""),
    ("refactor: fixes in the names", ""),
    ("docs: describe the crash handler", ""),
    ("Add a crash reporter", ""),
    ("Add dark mode", "Closes #12"),
    ("Record the cases of crashes", ""),
    ("Merge branch 'main' into topic", ""),
    ("Rename the module", ""),
    ("", ""),
]


@pytest.mark.behaviour("60-history-messages")
@pytest.mark.parametrize(("subject", "body"), FIXES)
def test_a_fix_is_recognised(subject: str, body: str) -> None:
    assert read_message(subject, body).is_bug_fix


@pytest.mark.behaviour("60-history-messages")
@pytest.mark.parametrize(("subject", "body"), OTHERS)
def test_other_messages_are_no_fixes(subject: str, body: str) -> None:
    assert not read_message(subject, body).is_bug_fix


@pytest.mark.behaviour("60-history-messages")
@pytest.mark.parametrize(
    ("subject", "body", "expected"),
    [
        ('Revert "Share the pool"', "This reverts commit 5f0e2c97d1.\n\nIt deadlocks.", (True, "5f0e2c97d1", False)),
        ('Revert "Share the pool" (#9)', "Reverts acme/app#8", (False, "", False)),
        ('Revert "Share the pool"', "This reverts commit 5f0e2c97d1. Merged by mistake.", (False, "5f0e2c97d1", False)),
        ("revert: share the pool", "This reverts commit 5f0e2c97d1.\nRequests hang since.", (True, "5f0e2c97d1", False)),
        ('Revert "Fix typo"', "This reverts commit 5f0e2c97d1.\n\nNot a typo at all, says the spec.", (False, "5f0e2c97d1", False)),
        ('Revert "Revert "Share the pool""', "This reverts commit 91c0ad2e3b.", (False, "91c0ad2e3b", True)),
        ('Reapply "Share the pool"', "This reverts commit 91c0ad2e3b.", (False, "91c0ad2e3b", True)),
    ],
)  # fmt: skip
def test_a_revert_names_its_commit_and_fixes_a_bug_if_it_says_so(
    subject: str, body: str, expected: tuple[bool, str, bool]
) -> None:
    message = read_message(subject, body)
    assert message.kind == "revert"
    assert (message.is_bug_fix, message.reverted, message.is_reland) == expected


@pytest.mark.behaviour("60-history-messages")
@pytest.mark.parametrize(
    "body",
    [
        "Regression in 3eb8b1aa11.",
        "Bug in 3eb8b1aa11.",
        "This was introduced in commit 3eb8b1aa11 last week.",
        'Fixes: 3eb8b1aa11 ("net: add a queue")',
        "Follow-up to 3eb8b1aa11",
    ],
)
def test_a_fix_names_the_commit_that_introduced_the_bug(body: str) -> None:
    assert read_message("Fix the queue", body).blamed == ("3eb8b1aa11",)


@pytest.mark.behaviour("60-history-messages")
@pytest.mark.parametrize(
    "body", ["Due to #11012, it loops.", "Regression introduced in acme/app#11012", "This broke since https://github.com/acme/app/pull/11012."]
)  # fmt: skip
def test_a_fix_names_the_pull_request_that_introduced_the_bug(body: str) -> None:
    assert read_message("Fix the queue", body).blamed == ("#11012",)


@pytest.mark.behaviour("60-history-messages")
def test_an_issue_that_a_fix_closes_is_not_named_as_its_cause() -> None:
    assert read_message("Fix the queue", "Fixes #11012. See also #11013.").blamed == ()
