"""Attachments of a council: each vendor gets them in its own format, and seats that cannot see them are named."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill
from tests.fake_provider import Reply, Seen
from tests.search.test_local_files import pdf
from tests.trusted_project import trust_project, write_user_file

Json = dict[str, Any]
CONFIG = """
[seats.alpha]
model = "a:claude-opus-5-5"
fallback = []
[seats.beta]
model = "b:gpt-6.1-sol"
fallback = []
[seats.gamma]
model = "c:gemini-3.1-pro-preview"
fallback = []
[chair]
model = "d:llama3.2"
fallback = []
"""
PRICES = """
[prices."a:*"]
input = 3.0
output = 15.0
[prices."b:*"]
input = 3.0
output = 15.0
[prices."c:*"]
input = 3.0
output = 15.0
[prices."d:*"]
input = 3.0
output = 15.0
"""
WIRES = {"a": "anthropic", "b": "openai-responses", "c": "google", "d": "openai"}


def picture(size: tuple[int, int] = (300, 200)) -> bytes:
    file = io.BytesIO()
    Image.effect_noise(size, 50).convert("RGB").save(file, "PNG")
    return file.getvalue()


def configure(workspace: Workspace, more: str = "") -> None:
    """Seat four vendors, each at the same endpoint in its own format. The chair cannot see."""
    rows = [
        f'[providers.{name}]\nwire = "{wire}"\nbase_url = "{workspace.provider.base(wire)}"\nbackoff = 0.01\n'
        for name, wire in WIRES.items()
    ]
    Path("council.toml").write_text("".join(rows) + CONFIG + more, encoding="utf-8")
    write_user_file(PRICES)
    trust_project()
    workspace.provider.answer = None


def parts_of(seen: Seen) -> list[Json]:
    """Return the attachments in a request: its parts that are not text."""
    turns = seen.body.get("messages") or seen.body.get("input") or seen.body["contents"]
    parts = [part for turn in turns for part in turn.get("content") or turn["parts"] if isinstance(part, dict)]
    return [part for part in parts if "text" not in part]


@pytest.mark.behaviour("50-attachments-wires", "50-attachments-unseen")
def test_an_image_reaches_each_vendor_in_its_own_format_and_a_seat_that_cannot_see_is_named_above_the_answer(
    workspace: Workspace, council: Terminal
) -> None:
    configure(workspace)
    image, report = picture(), pdf("Sales rose in May.")
    Path("chart.png").write_bytes(image)
    Path("report.pdf").write_bytes(report)
    encoded, pages = (base64.b64encode(content).decode() for content in (image, report))

    asked = ("-a", "chart.png", QUESTION, "--attach", "report.pdf", "--json")
    plan = council(*asked, "--dry-run").json
    assert (
        plan["packet"]["attachments"][0].items() >= {"path": "attached/chart.png", "width": 300, "height": 200}.items()
    )
    chart, book = plan["attachments"]
    assert chart["unseen_by"] == book["unseen_by"] == [{"seat": "chair", "model": "d:llama3.2"}]
    told = "chair (d:llama3.2) cannot see attached/chart.png and sees the text but not the pages of attached/report.pdf"
    assert told in plan["warnings"] and workspace.provider.log == []
    assert (
        f"attached chart.png (image/png, 300 × 200, {len(image) / 1000:.0f} KB), report.pdf ("
        in council(*asked[:-1], "--dry-run").out
    )

    done = council(*asked).json
    log = workspace.provider.log
    sent = {seen.wire: parts_of(seen) for seen in log}
    assert sent == {
        "anthropic": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": pages}},
        ],
        "openai-responses": [
            {"type": "input_image", "image_url": f"data:image/png;base64,{encoded}", "detail": "auto"},
            {"type": "input_file", "filename": "report.pdf", "file_data": f"data:application/pdf;base64,{pages}"},
        ],
        "google": [
            {"inlineData": {"mimeType": "image/png", "data": encoded}},
            {"inlineData": {"mimeType": "application/pdf", "data": pages}},
        ],
        "openai": [],
    }
    assert len(log) == 7 and all("Sales rose in May." in seen.prompt for seen in log)
    blind = next(seen for seen in log if seen.wire == "openai").prompt
    assert "You cannot see these attachments:\n- attached/chart.png: an image of 300 x 200 pixels" in blind
    assert "- attached/report.pdf: the pages of a PDF; you have its text" in blind
    assert not any("You cannot see" in seen.prompt for seen in log if seen.wire != "openai")
    rows = [row for row in done["degraded"] if row["state"] == "unseen"]
    assert [(row["seat"], row["phase"]) for row in rows] == [("chair", "synthesise")]
    line = (
        "chair did not see attached/chart.png and saw the text but not the pages of attached/report.pdf "
        "(d:llama3.2 takes no images and no PDFs)."
    )
    assert "chair did not see all attachments" in str(done["trust"])
    answer = council("report", done["run"], "--format", "md").out
    assert line in answer and answer.index(line) < answer.index(done["answer"])

    # The ledger has each content once, an export has it whole, and the estimate covers what vendors may charge for it.
    ((stored,),) = workspace.rows("SELECT sum(length(body)) FROM texts WHERE run = ?", done["run"])
    assert stored < 1.2 * len(encoded) + 20_000
    assert council("runs", "export", done["run"]).json["setup"]["packet"]["attachments"][0]["data"] == encoded
    text_only = council("--dry-run", "--json", QUESTION).json["cost"]
    assert plan["cost"]["worst"] > text_only["worst"] and plan["cost"]["worst"] < text_only["worst"] + 1.0
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("50-attachments-resume")
def test_a_resumed_run_and_a_fork_send_the_same_attachments_after_the_files_are_gone(
    workspace: Workspace, council: Terminal
) -> None:
    configure(workspace)
    Path("chart.png").write_bytes(picture())
    gate = workspace.provider.hold(lambda seen: seen.wire == "anthropic" and seen.nth == 2)
    process = workspace.process("-a", "chart.png", QUESTION, "--no-warm")
    (held,) = gate.wait()
    kill(process)
    gate.release()
    Path("chart.png").unlink()
    (run,) = workspace.runs()
    before = len(workspace.provider.log)
    assert council("resume", run).code == 0
    again = [seen for seen in workspace.provider.log[before:] if seen.wire == "anthropic"]
    assert [seen.raw for seen in again] == [held.raw]

    before, seats = len(workspace.provider.log), ("--seat", "alpha=c:gemini-3.8-flash", "--seat", "beta=d:llama3.2")
    forked = council("fork", run, "--from", "improve", *seats, "--json").json
    last = workspace.provider.log[before:]
    assert sorted((seen.wire, len(parts_of(seen))) for seen in last) == [("google", 1), ("openai", 0), ("openai", 0)]
    assert sorted(row["seat"] for row in forked["degraded"] if row["state"] == "unseen") == ["beta", "chair"]


@pytest.mark.behaviour("50-attachments-unseen")
def test_a_fallback_that_cannot_see_is_named_and_a_council_that_cannot_see_at_all_is_refused(
    workspace: Workspace, council: Terminal
) -> None:
    configure(workspace, '[members."d:llama3.2"]\nimages = true\n[members."b:*"]\nimages = false\n')
    Path("chart.png").write_bytes(picture())
    plan = council("-a", "chart.png", QUESTION, "--dry-run", "--json").json
    assert plan["attachments"][0]["unseen_by"] == [{"seat": "beta", "model": "b:gpt-6.1-sol"}]

    text = Path("council.toml").read_text(encoding="utf-8")
    text = text.replace('"a:claude-opus-5-5"\nfallback = []', '"a:claude-opus-5-5"\nfallback = ["b:gpt-6.1-sol"]')
    Path("council.toml").write_text(text, encoding="utf-8")
    workspace.provider.answer = lambda seen: Reply(status=401) if seen.wire == "anthropic" else None
    report = council("-a", "chart.png", QUESTION, "--json").json
    assert sorted(row["seat"] for row in report["degraded"] if row["state"] == "unseen") == ["alpha", "beta"]

    # An endpoint that refuses the image, and one for which the pages are too long, are asked again without them.
    Path("report.pdf").write_bytes(pdf("Sales rose in May."))
    workspace.provider.answer = None
    refusal = Reply(status=400, error={"error": {"message": "messages.0.content: this model does not support images"}})
    workspace.provider.script("claude-opus-5-5", refusal)
    workspace.provider.script("gemini-3.1-pro-preview", Reply(status=413))
    asked = len(workspace.provider.log)
    report = council("-a", "chart.png", "-a", "report.pdf", QUESTION, "--protocol", "triad", "--json").json
    sent = {seen.model: seen for seen in workspace.provider.log[asked:]}
    assert parts_of(sent["claude-opus-5-5"]) == [] and "You cannot see these" in sent["claude-opus-5-5"].prompt
    assert [part["inlineData"]["mimeType"] for part in parts_of(sent["gemini-3.1-pro-preview"])] == ["image/png"]
    told = {row["seat"]: row["reason"] for row in report["degraded"] if row["state"] in ("dropped", "cut")}
    assert (
        told["alpha"] == "a:claude-opus-5-5 was asked without attached/chart.png, attached/report.pdf, which it refused"
    )
    assert told["gamma"] == "cut to fit c:gemini-3.1-pro-preview: the pages of attached/report.pdf"

    asked = len(workspace.provider.log)
    refused = council("-m", "b:gpt-6.1-sol", "-a", "chart.png", QUESTION)
    assert refused.code == 2 and len(workspace.provider.log) == asked
    assert 'no seat of this council can see "attached/chart.png": use models that can' in refused.err
    assert '[members."b:gpt-6.1-sol"] images = true' in refused.err
    local = council("-m", "local:smollm2", "-a", "chart.png", QUESTION)
    assert local.err.strip().endswith('can see "attached/chart.png": use models that can')
    nothing = council("-a", "chart.png")
    assert nothing.code == 2 and "no question was given for the attachments: add one" in nothing.err
