"""Reading of local documents for search."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from council.packet.gate import MAX_FILE_BYTES
from council.packet.lookups import make_document_reader
from tests.packet.conftest import write
from tests.packet.fake_secrets import SECRETS
from tests.search.test_local_files import pdf


@pytest.mark.behaviour("30-search-files-gate")
def test_document_text_is_returned_with_secrets_masked(root: Path) -> None:
    line, secret = SECRETS["github"]
    write(root, {"a/notes.md": f"Inv\u200bisible.\n{line}\n"})
    assert make_document_reader(root)(root / "a" / "notes.md") == "Invisible.\ntoken [redacted:GitHub token]\n"
    assert secret not in str(make_document_reader(root)(Path("a/notes.md")))


@pytest.mark.behaviour("30-search-files-gate")
@pytest.mark.parametrize(
    "name",
    [
        ".env", "prod.env/.env.local", "server.pem", "id_rsa", ".ssh/config", "credentials.json", "terraform.tfvars", ".git/config", "uv.lock",
        "package-lock.json", "nowhere.md", "folder", "link.md", "linked/a.md", "binary.md", "large.md", "pipe", "../outside.md", "broken.pdf", "a\0b",
    ],
)  # fmt: skip
def test_secret_private_and_lock_files_are_not_read(root: Path, name: str) -> None:
    denied = (".env", "prod.env/.env.local", "server.pem", "id_rsa", ".ssh/config", "credentials.json", "terraform.tfvars", ".git/config", "uv.lock", "package-lock.json")  # fmt: skip
    write(
        root, {**dict.fromkeys(denied, "x = 1\n"), "../outside.md": "x\n", "../else/a.md": "x\n", "folder/a.md": "x\n"}
    )
    (root / "link.md").symlink_to("../outside.md")
    (root / "linked").symlink_to("../else")
    (root / "binary.md").write_bytes(b"a\0b")
    (root / "large.md").write_text("x" * (MAX_FILE_BYTES + 1), encoding="utf-8")
    (root / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    os.mkfifo(root / "pipe")
    admit = make_document_reader(root)
    assert admit(root / name) is None
    assert admit(root / "folder" / "a.md") == "x\n"


def test_file_with_a_secret_in_its_name_is_not_read(root: Path) -> None:
    name = f"{SECRETS['github'][1]}.md"
    write(root, {name: "plain\n"})
    assert make_document_reader(root)(root / name) is None


@pytest.mark.behaviour("30-search-files-gate")
def test_secret_folder_is_not_read_even_as_root(root: Path) -> None:
    write(root, {".ssh/config": "Host a\n", ".git/hooks.md": "x\n", ".aws/profile.txt": "x\n"})
    for place, name in ((".ssh", "config"), (".git", "hooks.md"), (".aws", "profile.txt")):
        assert make_document_reader(root / place)(root / place / name) is None


def test_pdf_pages_are_separated_by_form_feeds(root: Path) -> None:
    (root / "a.pdf").write_bytes(pdf("One.", "Two.", "Three."))
    assert make_document_reader(root)(root / "a.pdf") == "One.\fTwo.\fThree."


def test_long_pdf_passes_the_gate_in_parts(root: Path) -> None:
    key = SECRETS["openai"][1]
    (root / "a.pdf").write_bytes(pdf(*("word " * 20_000 for _ in range(4)), f"key {key}"))
    text = make_document_reader(root)(root / "a.pdf")
    assert (
        text is not None
        and len(text) > MAX_FILE_BYTES
        and key not in text
        and text.endswith("key [redacted:OpenAI key]")
    )
    assert text.count("\f") == 4
