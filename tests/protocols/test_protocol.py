"""Protocols: files beside the function, references by name, and report views of third-party protocols."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from council import protocols
from council.engine.prompting import Prompts
from council.protocols import SHIPPED_PROTOCOLS, Protocol, find_protocol, get_protocol
from council.render.markdown import render_answer, render_document, render_verbose
from council.render.report import build_report
from council.types import Seat
from tests.render.runs import RunBuilder, plan

PACKAGE = {
    "__init__.py": """from council import Protocol
PROTOCOL = Protocol("poll", "poll_protocol.flow:poll", report_view="poll_protocol.report:PollView", quorum=3)
""",
    "flow.py": "async def poll(council): ...\n",
    "report.py": """from council.protocols import ReportView
class PollView(ReportView):
    def speaker_label(self, minutes, phase, seat):
        return f"voter {seat}"
    def report_fields(self, minutes):
        return {"turnout": 2}
    def layout_variables(self, minutes):
        return {"title": "A poll"}
    def full_answer(self, minutes):
        return "Two for tabs."
""",
    "prompts/vote.md": "Vote.",
    "layout.md": "{{ title }}: {{ final }}\n",
    "layouts/document.md": '{% extends "shared/document.md" %}\n{% block after_answer %}\n{{ title }}\n{% endblock %}\n',
}


@pytest.fixture
def poll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Protocol]:
    """A protocol in a separate package, registered for this test."""
    for name, text in PACKAGE.items():
        path = tmp_path / "poll_protocol" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    protocol: Protocol = importlib.import_module("poll_protocol").PROTOCOL
    protocols.register(protocol)
    yield protocol
    protocols._registered.pop("poll")
    protocols._find_folder.cache_clear()  # the next test has another folder
    for name in [name for name in sys.modules if name.startswith("poll_protocol")]:
        del sys.modules[name]


@pytest.mark.parametrize("tasks", [(), ("judge",), ("validate", "")])
def test_a_protocol_accepts_known_tasks_only(tasks: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="use ask, validate, brainstorm, research"):
        Protocol("poll", "poll:poll", tasks=tasks)


def held_poll(protocol: str) -> RunBuilder:
    return RunBuilder(plan(protocol)).phase("vote").answer("alpha", "Tabs.").end_phase().close("Tabs.")


@pytest.mark.parametrize("name", SHIPPED_PROTOCOLS)
def test_a_shipped_protocol_has_its_files_in_its_folder(name: str) -> None:
    protocol = get_protocol(name)
    assert protocol.folder and (protocol.folder / "layout.md").is_file()
    assert list(protocol.prompt_folders[0].glob("*.md"))


def test_the_definitions_of_protocols_load_no_models_and_no_templates() -> None:
    code = (
        "import sys; from council.protocols import SHIPPED_PROTOCOLS, get_protocol\n"
        "for name in SHIPPED_PROTOCOLS: get_protocol(name).prompt_folders\n"
        "print([name for name in ('pydantic', 'jinja2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_prompts_beside_the_function_are_found_by_phase_and_by_protocol_and_phase(poll: Protocol) -> None:
    prompts = Prompts("key", poll.prompt_folders, poll.name)
    for name in ("vote", "poll/vote"):
        assert prompts.find(name, Seat("alpha")).path == poll.prompt_folders[0] / "vote.md"
    assert prompts.find("adversarial/draft", Seat("alpha")).path.name == "draft.alpha.md"


def test_a_protocol_of_a_package_has_its_own_report_view_and_layouts(poll: Protocol) -> None:
    minutes = held_poll("poll").minutes
    report = build_report(minutes)
    assert (report["turnout"], report["quorum"]["needed"]) == (2, 3)
    assert report["seats"][0]["label"] == "voter alpha"
    assert render_answer(minutes).startswith("Two for tabs.\n\n---\n\nTrust: LOW — only alpha answered")
    assert render_verbose(minutes).startswith("A poll: Two for tabs.\n\n---\n\nTrust: LOW")
    assert "Two for tabs.\n\n---\n\nTrust: LOW" in render_document(minutes)
    assert "\n\nA poll\n## Statements" in render_document(minutes)


def test_a_run_whose_protocol_is_not_installed_gets_the_default_report() -> None:
    minutes = held_poll("gone").minutes
    assert find_protocol("gone").quorum == 1
    assert build_report(minutes)["protocol"] == "gone"
    assert "## Council — Gone" in render_verbose(minutes) and "Tabs." in render_document(minutes)


def test_a_protocol_registered_for_a_block_is_not_offered_afterwards() -> None:
    protocol = Protocol("for-a-block", function=None, seats=(Seat("one"),))  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError), protocols.register_for(protocol):
        assert "for-a-block" in protocols.protocol_names()
        with protocols.register_for(protocol):
            pass
        assert "for-a-block" in protocols.protocol_names(), "it was registered before the inner block"
        raise ZeroDivisionError
    assert "for-a-block" not in protocols.protocol_names()
