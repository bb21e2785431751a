"""Without configuration: the embedded model searches local documents and answers, offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.general.fake_general import DOCUMENTS
from tests.acceptance.helpers import Terminal

pytest.importorskip("xllamacpp", reason="the embedded model needs model-council[local]")


@pytest.mark.sweep
@pytest.mark.behaviour("30-embedded")
def test_general_completes_on_the_embedded_model_with_local_files(council: Terminal) -> None:
    for name, text in DOCUMENTS.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    flags = ("--json", "--timeout", "300", "--protocol", "general", "--search", "files:docs")
    done = council(*flags, "What does cold storage cost the archive?")
    report = done.json
    assert (done.code, report["status"]) == (0, "complete"), report["degraded"]
    assert report["answer"].startswith("Participating models: local:smollm2 as generalist")
    assert {one["url"] for one in report["sources"]} <= set(DOCUMENTS)
    assert council("runs", "fsck").code == 0
