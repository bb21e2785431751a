"""Perspectives: shipped presets, names and files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from council.errors import UsageError
from council.protocols.common.perspectives import (
    Perspective,
    describe_role,
    list_presets,
    load_preset,
    perspectives_from_file,
    perspectives_from_names,
)

PERSPECTIVES_YAML = """
perspectives:
  - name: security-auditor
    focus: Find security vulnerabilities and trust boundary violations
  - name: performance-critic
    focus: Identify performance bottlenecks and scaling risks
"""
PERSPECTIVES_TOML = """
[[perspectives]]
name = "security-auditor"
focus = "Find security vulnerabilities and trust boundary violations"

[[perspectives]]
name = "performance-critic"
focus = "Identify performance bottlenecks and scaling risks"
"""


def write_file(folder: Path, text: str | bytes, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal_of(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        perspectives_from_file(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Presets


@pytest.mark.behaviour("20-presets")
def test_ten_presets_are_shipped_in_the_specified_order() -> None:
    sizes = {name: len(load_preset(name).perspectives) for name in list_presets()}
    assert sizes == {
        "security-audit": 3, "architecture": 3, "research": 3, "ops": 3, "code-review": 3, "plan-review": 4,
        "doc-review": 4, "retrospective": 3, "product": 3, "developer-experience": 3,
    }  # fmt: skip


@pytest.mark.behaviour("002-preset-focus")
@pytest.mark.parametrize("name", list_presets())
def test_every_perspective_of_a_preset_has_a_persona_and_a_focus(name: str) -> None:
    one = load_preset(name)
    assert one.about
    assert not one.is_user_defined
    for perspective in one.perspectives:
        assert not perspective.persona.startswith("Council Member")
        assert len(perspective.focus.split()) > 12
    assert len({perspective.persona for perspective in one.perspectives}) == len(one.perspectives)


@pytest.mark.behaviour("002-preset-focus")
@pytest.mark.parametrize(
    ("name", "perspective", "persona", "word"),
    [
        ("security-audit", "attacker", "Red", "exploit"),
        ("architecture", "simplicity", "Razor", "plainer"),
        ("ops", "incident-response", "Oncall", "runbook"),
        ("code-review", "spec-compliance", "Spec", "With no specification"),
        ("plan-review", "spec-completeness", "Completeness", "FAIL"),
        ("developer-experience", "error-experience", "SOS", "what to do next"),
    ],
)
def test_a_focus_contains_the_specified_aspect(name: str, perspective: str, persona: str, word: str) -> None:
    (found,) = (one for one in load_preset(name).perspectives if one.name == perspective)
    assert found.persona == persona
    assert word in found.focus


@pytest.mark.behaviour("20-preset-shadow")
def test_user_presets_override_shipped_ones_and_add_new_ones(tmp_path: Path) -> None:
    write_file(tmp_path, PERSPECTIVES_TOML, "ops.toml")
    write_file(tmp_path, 'about = "Mine."\n' + PERSPECTIVES_TOML, "house.toml")
    assert [one.name for one in load_preset("ops", tmp_path).perspectives] == ["security-auditor", "performance-critic"]
    assert load_preset("ops", tmp_path).is_user_defined
    assert (list_presets(tmp_path)[-1], load_preset("house", tmp_path).about) == ("house", "Mine.")
    assert not load_preset("research", tmp_path).is_user_defined


def test_a_missing_folder_adds_no_presets(tmp_path: Path) -> None:
    assert list_presets(tmp_path / "none") == list_presets()


@pytest.mark.behaviour("20-unknown-names-listed")
@pytest.mark.parametrize("name", ["securty-audit", "../ops", "", "/etc/passwd"])
def test_an_unknown_preset_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="known are security-audit, architecture, research, ops, code-review"):
        load_preset(name)


def test_a_misspelt_preset_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match='did you mean "security-audit"'):
        load_preset("securty-audit")


def test_preset_names_are_case_insensitive() -> None:
    assert load_preset(" OPS ").name == "ops"


# Names on the command line


@pytest.mark.behaviour("002-perspectives-by-name")
def test_a_name_without_a_focus_is_described_as_a_role() -> None:
    role = "look first for what that role answers for"
    assert perspectives_from_names(["security-auditor", "perf critic"]) == (
        Perspective("security-auditor", "Council Member 1", f"review as a security auditor: {role}"),
        Perspective("perf critic", "Council Member 2", f"review as a perf critic: {role}"),
    )
    assert perspectives_from_names(["ops_engineer"])[0].focus.startswith("review as an ops engineer: ")


@pytest.mark.behaviour("002-perspectives-by-name")
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "", "b"], 'name "" has no letter'),
        (["a", "A"], 'names "a" twice'),
        (["error paths", "error-paths"], 'names "error paths" twice'),
        (["123"], 'name "123" has no letter'),
        (["x" * 61], "has 61 characters"),
        ([], "contains no perspectives"),
    ],
)
def test_invalid_perspective_names_are_refused(names: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=f"perspectives.*{words}"):
        perspectives_from_names(names)


# Files


@pytest.mark.behaviour("002-perspectives-file")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (PERSPECTIVES_YAML, "a.yaml"),
        (PERSPECTIVES_YAML, "a.yml"),
        (PERSPECTIVES_YAML, "a"),
        (PERSPECTIVES_TOML, "a.toml"),
    ],
)
def test_the_specified_file_is_read_as_yaml_and_as_toml(tmp_path: Path, text: str, name: str) -> None:
    assert perspectives_from_file(write_file(tmp_path, text, name)) == (
        Perspective(
            "security-auditor", "Council Member 1", "Find security vulnerabilities and trust boundary violations"
        ),
        Perspective("performance-critic", "Council Member 2", "Identify performance bottlenecks and scaling risks"),
    )


def test_a_file_may_be_a_bare_list_and_name_its_personas(tmp_path: Path) -> None:
    text = "- name: auditor\n  persona: Red\n  focus: |\n    Look\n    closely\n- critic\n"
    assert perspectives_from_file(write_file(tmp_path, text)) == (
        Perspective("auditor", "Red", "Look closely"),
        Perspective("critic", "Council Member 2", describe_role("critic")),
    )


@pytest.mark.behaviour("issue-3-perspectives-file-refused")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "perspectives: [",
            "is not valid YAML (expected the node content, but found '<stream end>', line 1): fix the syntax",
        ),
        ("a: !!python/object/apply:os.system [ls]", "is not valid YAML (could not determine a constructor"),
        (b"\xff\xfe\x00", "cannot be read"),
        ("", "contains no perspectives"),
        ("perspectives:", "contains no perspectives"),
        ("perspectives: []", "contains no perspectives"),
        ("perspectives: auditor", "contains no perspectives"),
        ("just words", "contains no perspectives"),
        ("perspectives:\n  - focus: x", "has no name for perspective 1"),
        ("perspectives:\n  - name: 3", "has no name for perspective 1"),
        ("perspectives:\n  - [a]", "has no name for perspective 1"),
        ("- a\n- name: A", 'names "a" twice'),
        (
            "- name: a\n  foucs: x",
            'an unknown key "foucs" in "a": did you mean "focus"? known are name, persona, focus',
        ),
        ("- name: a\n  focus: [x]", 'focus of "a" is not a string'),
        ("- name: a\n  focus:", 'focus of "a" is not a string'),
        ("[" * 5_000, "is not valid YAML"),
        ("- " + "x" * 300_000, "larger than 64 kB"),
    ],
)
def test_an_invalid_file_is_refused_in_one_line(tmp_path: Path, text: str | bytes, words: str) -> None:
    assert words in refusal_of(write_file(tmp_path, text))


@pytest.mark.behaviour("issue-3-perspectives-file-refused")
def test_broken_toml_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "is not valid TOML" in refusal_of(write_file(tmp_path, "perspectives = [", "a.toml"))


@pytest.mark.behaviour("issue-3-perspectives-file-refused")
def test_pipes_folders_and_missing_files_are_refused_without_blocking(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    assert "is not a file" in refusal_of(pipe)
    assert "is not a file" in refusal_of(tmp_path)
    assert "does not exist" in refusal_of(tmp_path / "none.yaml")


def test_yaml_is_imported_only_for_a_yaml_file() -> None:
    code = "import sys; from council.protocols.common.perspectives import load_preset; load_preset('ops'); print('yaml' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )
