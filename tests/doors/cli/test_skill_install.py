"""`council skill`: target folders, overwriting and links."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from council.doors.cli import run as command
from council.doors.cli.service_commands import AGENT_FOLDERS, RECEIPT_FILE, skill_source
from tests.acceptance.helpers import Result, Terminal
from tests.paths import ROOT

FILES = sorted(path.relative_to(skill_source()).as_posix() for path in skill_source().rglob("*") if path.is_file())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "person"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def project(home: Path) -> Path:
    """The root of a repository; the command runs in a subfolder."""
    root = Path.cwd()
    (root / ".git").mkdir()
    (root / "src").mkdir()
    os.chdir(root / "src")
    return root


@pytest.fixture
def skill(project: Path, council: Terminal) -> Terminal:
    return lambda *arguments: council("skill", *arguments)  # type: ignore[return-value]


def installed(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name != RECEIPT_FILE)


def written(done: Result) -> list[tuple[str, int]]:
    return [(row["folder"], len(row["written"])) for row in done.json]


def states(skill: Terminal) -> set[str]:
    return {row["state"] for row in skill("list", "--json").json}


# Target folders


@pytest.mark.behaviour("50-skill-install")
@pytest.mark.parametrize(
    ("agent", "project_folder", "home_folder"),
    [
        ("claude", ".claude/skills", ".claude/skills"),
        ("codex", ".agents/skills", ".agents/skills"),
        ("gemini", ".gemini/skills", ".gemini/skills"),
        ("cursor", ".cursor/skills", ".cursor/skills"),
        ("copilot", ".github/skills", ".copilot/skills"),
        ("agents", ".agents/skills", ".agents/skills"),
    ],
)
def test_each_agent_has_its_skill_folder(
    skill: Terminal, project: Path, home: Path, agent: str, project_folder: str, home_folder: str
) -> None:
    for flags, folder in (([], project / project_folder), (["--user"], home / home_folder)):
        done = skill("install", "--agent", agent, *flags)
        assert (done.code, done.out.split(" ")[0]) == (0, str(folder / "council"))
        assert installed(folder / "council") == FILES
        assert (folder / "council" / "SKILL.md").read_bytes() == (skill_source() / "SKILL.md").read_bytes()


@pytest.mark.behaviour("50-skill-install")
def test_by_default_it_installs_for_the_agents_used_here(skill: Terminal, project: Path, home: Path) -> None:
    (project / ".cursor").mkdir()
    (project / "CLAUDE.md").touch()
    (home / ".gemini").mkdir()
    folders = [str(project / name / "skills" / "council") for name in (".claude", ".cursor")]
    assert written(skill("install", "--json")) == [(folder, len(FILES)) for folder in folders]
    assert written(skill("install", "--user", "--json")) == [(str(home / ".gemini/skills/council"), len(FILES))]


@pytest.mark.behaviour("50-skill-install")
@pytest.mark.parametrize(
    ("used", "folder"),
    [([], ".agents"), ([".claude"], ".claude"), ([".claude", ".gemini"], ".agents")],
    ids=["none: the shared folder", "one: its folder", "several: the shared folder"],
)
def test_a_project_without_markers_uses_the_home_folder(
    skill: Terminal, project: Path, home: Path, used: list[str], folder: str
) -> None:
    (project / ".agents" / "council").mkdir(parents=True)  # reports of Council do not count as a marker
    for name in used:
        (home / name).mkdir()
    assert written(skill("install", "--json")) == [(str(project / folder / "skills" / "council"), len(FILES))]


def test_project_and_user_together_are_refused(skill: Terminal, project: Path) -> None:
    done = skill("install", "--project", "--user")
    assert (done.code, "nothing was done" in done.err) == (2, True)
    assert not (project / ".agents").exists()


# Overwriting


@pytest.mark.behaviour("50-skill-install")
def test_a_second_install_has_nothing_to_do(skill: Terminal) -> None:
    assert skill("install").code == 0
    assert "nothing to do" in skill("install").out


@pytest.mark.behaviour("50-skill-install")
def test_a_changed_file_is_not_overwritten_without_force(skill: Terminal, project: Path) -> None:
    skill("install")
    page = project / ".agents/skills/council/references/ci.md"
    page.write_text("Our own rules.\n", encoding="utf-8")
    assert states(skill) == {"-", "changed"}
    done = skill("install")
    assert done.code == 2
    assert "references/ci.md" in done.err
    assert page.read_text(encoding="utf-8") == "Our own rules.\n"
    assert skill("install", "--force").code == 0
    assert page.read_bytes() == (skill_source() / "references/ci.md").read_bytes()


@pytest.mark.behaviour("50-skill-install")
def test_an_existing_file_is_not_overwritten(skill: Terminal, project: Path) -> None:
    own = project / ".agents/skills/council/SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine\n", encoding="utf-8")
    assert skill("install").code == 2
    assert [path.name for path in own.parent.iterdir()] == ["SKILL.md"]
    assert own.read_text(encoding="utf-8") == "mine\n"


@pytest.mark.behaviour("50-skill-install")
def test_an_older_version_is_replaced_without_force(skill: Terminal, project: Path) -> None:
    skill("install")
    folder = project / ".agents/skills/council"
    older = {"SKILL.md": b"an older text\n", "references/gone.md": b"a page of an older version\n"}
    receipt = json.loads((folder / RECEIPT_FILE).read_text(encoding="utf-8"))
    for name, content in older.items():
        (folder / name).write_bytes(content)
        receipt["files"][name] = hashlib.sha256(content).hexdigest()
    (folder / RECEIPT_FILE).write_text(json.dumps(receipt), encoding="utf-8")
    assert states(skill) == {"-", "older"}
    assert skill("install").code == 0
    assert installed(folder) == FILES
    assert states(skill) == {"-", "up to date"}


# Links


@pytest.mark.behaviour("50-skill-install-links")
@pytest.mark.parametrize(
    "link", [".claude", ".claude/skills", ".claude/skills/council", ".claude/skills/council/references"]
)
def test_a_link_that_leads_out_is_not_followed(skill: Terminal, project: Path, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / link).parent.mkdir(parents=True, exist_ok=True)
    (project / link).symlink_to(outside, target_is_directory=True)
    done = skill("install", "--agent", "claude", "--force")
    assert (done.code, "is a link that leads out of" in done.err) == (2, True)
    assert list(outside.iterdir()) == []
    precious = outside.joinpath("references" if link.endswith("council") else "", "SKILL.md")
    precious.parent.mkdir(exist_ok=True)
    precious.touch()
    assert skill("rm", "--agent", "claude", "--force").code == 2
    assert precious.exists()


@pytest.mark.behaviour("50-skill-install-links")
def test_a_link_inside_the_project_is_followed(skill: Terminal, project: Path) -> None:
    (project / ".agents/skills").mkdir(parents=True)
    (project / ".claude").mkdir()
    (project / ".claude/skills").symlink_to("../.agents/skills")
    assert skill("install", "--agent", "claude").code == 0
    assert installed(project / ".agents/skills/council") == FILES


@pytest.mark.behaviour("50-skill-install-links")
def test_a_link_instead_of_a_file_is_replaced_and_never_followed(skill: Terminal, project: Path) -> None:
    precious = project / "README.md"
    precious.write_text("precious\n", encoding="utf-8")
    page = project / ".agents/skills/council/SKILL.md"
    page.parent.mkdir(parents=True)
    page.symlink_to(precious)
    assert skill("install").code == 2
    assert skill("install", "--force").code == 0
    assert not page.is_symlink()
    assert precious.read_text(encoding="utf-8") == "precious\n"


# Removing


@pytest.mark.behaviour("50-skill-install")
def test_rm_removes_the_skill_and_keeps_other_files(skill: Terminal, project: Path) -> None:
    skill("install")
    own = project / ".agents/skills/council/notes.md"
    own.write_text("mine\n", encoding="utf-8")
    assert skill("rm").code == 0
    assert [path for path in (project / ".agents").rglob("*") if path.is_file()] == [own]
    own.unlink()
    skill("install")
    skill("rm")
    assert list((project / ".agents/skills").iterdir()) == []
    assert skill("rm").code == 2


@pytest.mark.behaviour("50-skill-install")
def test_a_changed_file_is_not_removed_without_force(skill: Terminal, project: Path) -> None:
    skill("install")
    page = project / ".agents/skills/council/SKILL.md"
    page.write_text("mine\n", encoding="utf-8")
    assert skill("rm").code == 2
    assert page.exists()
    assert skill("rm", "--force").code == 0
    assert not page.parent.exists()


@pytest.mark.behaviour("50-skill-install-links")
@pytest.mark.parametrize("name", ["../../../victim", "{root}/victim"])
def test_a_forged_receipt_removes_nothing_elsewhere(skill: Terminal, project: Path, name: str) -> None:
    skill("install")
    victim = project / "victim"
    victim.write_text("precious\n", encoding="utf-8")
    forged = {name.format(root=project): hashlib.sha256(b"precious\n").hexdigest()}
    (project / ".agents/skills/council" / RECEIPT_FILE).write_text(json.dumps({"files": forged}), encoding="utf-8")
    skill("install")
    skill("rm", "--force")
    assert victim.exists()


# Show and list


def test_the_skill_and_its_files_can_be_read(skill: Terminal) -> None:
    assert skill("show").out == (skill_source() / "SKILL.md").read_text(encoding="utf-8")
    assert skill("show", "references/judging.md").out.startswith("# Judging")
    done = skill("show", "judging")
    assert (done.code, '"judging"' in done.err, "references/judging.md" in done.err) == (2, True, True)


def test_the_list_has_every_folder(skill: Terminal) -> None:
    rows = skill("list", "--json").json
    assert {(row["agent"], row["scope"]) for row in rows} == {(agent, scope) for agent in AGENT_FOLDERS for scope in ("project", "user")}  # fmt: skip
    assert {row["state"] for row in rows} == {"-"}
    assert skill().out == skill("list").out


def test_an_unwritable_folder_is_a_one_line_error(skill: Terminal, project: Path) -> None:
    (project / ".claude").write_text("a file in the way\n", encoding="utf-8")
    done = skill("install", "--agent", "claude")
    assert done.code == 1
    assert done.err.startswith(f'council: cannot write the skill to "{project}/.claude/skills/council"')
    assert done.err.count("\n") == 1


def test_a_misspelled_subcommand_installs_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["skill", "instal"]) == 2
    assert not (project / ".agents").exists()
    assert capsys.readouterr().err.startswith("council: ")


def test_the_documentation_lists_the_real_folders() -> None:
    page = (ROOT / "docs" / "skill.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    assert {agent: (project, home) for agent, project, home in rows} == AGENT_FOLDERS
