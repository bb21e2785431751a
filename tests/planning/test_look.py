"""Seats that look: when a question names the project, and what the plan says about look-ups."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.planning.setup import RunSetup
from council.planning.triggers import names_project
from council.runs.queues import explain_folder_need
from council.types import Question, Roster

FILES = ("src/billing/invoice.py", "src/billing/rates.py", "docs/guide.md", "src/app.py", "data/rows.csv", "README.md")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("work") / "shopfront"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n", encoding="utf-8")
    (root / ".git").mkdir()
    return root


@pytest.mark.behaviour("look-named-project")
@pytest.mark.parametrize(
    ("question", "is_named"),
    [
        # words for the project
        ("Is this project ready for a release?", True),
        ("Review the error handling of our codebase.", True),
        ("What does this repo do?", True),
        ("Where does the repository keep its keys?", True),
        ("Should the code base move to uv?", True),
        ("Is my code safe against replays?", True),
        # its name
        ("How should shopfront store sessions?", True),
        ("Is Shopfront ready for two regions?", True),
        # its files and folders
        ("Should we split the billing module?", True),
        ("Is src/billing/rates.py correct?", True),
        ("Why does rates.py round down?", True),
        ("What is wrong in `billing`?", True),
        ("Should the docs folder be published?", True),
        ("Split src/billing or keep it?", True),
        # not about the project
        ("Which storage should a small shop use?", False),
        ("Shard the database or buy a bigger machine?", False),
        ("Is this a good idea?", False),
        ("What do the docs of PostgreSQL say about data types?", False),
        ("How does a billing cycle work?", False),
        ("Is node.js faster than main.go style services?", False),
        ("Should an open-source project have a code of conduct?", False),
        ("How does the project manager of a bank report?", False),
        ("See https://example.com/src/app.py: is it well written?", False),
        ("Which app should I use for notes?", False),
        ("Should a shopfront have a bell?", False),
        ("Does a large shopfront need two doors?", False),
        ("", False),
    ],
)
def test_a_question_names_the_project_by_its_words_its_name_or_its_files(
    project: Path, question: str, is_named: bool
) -> None:
    assert names_project(question, project) is is_named


@pytest.mark.behaviour("look-named-project")
def test_the_name_of_a_folder_that_is_an_ordinary_word_does_not_count(tmp_path: Path) -> None:
    for name in ("app", "src", "test", "x", "home"):
        folder = tmp_path / name
        folder.mkdir()
        assert not names_project(f"Should {name} be larger?", folder)
    assert not names_project("Is ../secret/notes.txt fine?", tmp_path / "app")


@pytest.mark.behaviour("look-limits")
def test_a_run_with_look_ups_needs_the_machine_with_its_folder() -> None:
    assert (
        explain_folder_need(RunSetup("solo", Question("?"), Roster(()), look="refuse")) == "its seats read its folder"
    )
