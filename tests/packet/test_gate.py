"""The gate: skipped files, removed characters, and remarks on both."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.engine.packet_blocks import number_file
from council.engine.prompting import build_dossier
from council.errors import PacketRefused, UsageError
from council.packet import build, files, gate
from council.packet.changes import Selection, WantedFile
from council.packet_size import truncate_packet
from council.planning.plan_object import make_packet_receipt
from council.text_cleanup import strip_invisible
from council.types import Packet, PacketFile, Question, Seat, Skipped
from tests.packet.conftest import commit, write
from tests.packet.fake_secrets import SECRETS


def skipped_rows(packet: Packet) -> dict[str, tuple[str, bool]]:
    return {item.path: (item.why, item.hole) for item in packet.skipped}


@pytest.mark.behaviour("packet-odd-files")
def test_special_files_in_a_folder_are_listed_and_never_opened(root: Path) -> None:
    write(root, {"a.py": "a = 1\n"})
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "sock"))
        (root / "loop").symlink_to("loop")
        (root / "circle").symlink_to(root)
        packet = build(".", root, task="validate")
    assert [file.path for file in packet.files] == ["a.py"]
    assert skipped_rows(packet) == {
        "pipe": ("a named pipe", False),
        "sock": ("a socket", False),
        "loop": ("a link", False),
    }
    assert packet.holes == ()


@pytest.mark.behaviour("packet-odd-files")
def test_named_special_file_is_a_one_line_error(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(UsageError, match='"pipe" is a named pipe and cannot be shown'):
        build(["pipe"], root, task="validate")
    (root / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match='"loop" is a link'):
        build(["loop"], root, task="validate")


@pytest.mark.behaviour("packet-odd-files")
def test_ten_gigabyte_sparse_file_is_not_read(root: Path) -> None:
    with (root / "sparse.py").open("wb") as stream:
        stream.write(b"a = 1\n" * 2_000)
        stream.truncate(10 << 30)
    with (root / "image.bin").open("wb") as stream:
        stream.truncate(10 << 30)
    packet = build(".", root, task="validate")
    assert skipped_rows(packet) == {
        "sparse.py": ("10 GB, over 256 KB a file", True), "image.bin": ("binary, 10 GB", False),
    }  # fmt: skip


@pytest.mark.behaviour("packet-links")
def test_link_outside_the_root_is_not_followed(repo: Path) -> None:
    write(repo.parent, {"elsewhere/private.txt": "private thoughts\n"})
    (repo / "out.txt").symlink_to("../elsewhere/private.txt")
    (repo / "outdir").symlink_to("../elsewhere")
    for target in (["out.txt"], ["outdir/private.txt"], ["outdir"]):
        try:
            packet = build(target, repo, task="validate")
        except UsageError as error:
            assert "is a link that points outside" in str(error) or "behind a link" in str(error)
        else:
            assert packet.empty
    commit(repo, {})
    for shown in (build(".", repo, task="validate"), build("recent", repo, task="validate")):
        assert "private thoughts" not in str(shown)


@pytest.mark.behaviour("packet-links")
def test_link_inside_the_root_is_read_under_the_target_name(repo: Path) -> None:
    (repo / "link.py").symlink_to("src/app.py")
    (repo / "linked").symlink_to("src/auth")
    assert [file.path for file in build(["link.py", "linked"], repo, task="validate").files] == [
        "src/app.py", "src/auth/jwt.py",
    ]  # fmt: skip


@pytest.mark.behaviour("packet-skipped-no-hole")
def test_binary_and_lock_files_are_skipped_without_a_hole(repo: Path) -> None:
    write(repo, {"uv.lock": "hash = 1\n", "package-lock.json": "{}\n"})
    (repo / "logo.png").write_bytes(b"\x89PNG\0\0")
    commit(repo, {"src/app.py": "x = 2\n"})
    for target in (".", "HEAD~1..HEAD"):
        packet = build(target, repo, task="validate")
        why = skipped_rows(packet)
        assert why["uv.lock"] == why["package-lock.json"] == ("a lock file", False)
        assert why["logo.png"] == ("binary", False)
        assert packet.holes == ()
        assert "uv.lock" not in packet.diff


@pytest.mark.behaviour("packet-limits")
def test_a_file_over_the_limit_is_a_hole(repo: Path) -> None:
    write(repo, {"big.py": "x = 1\n" * 50_000})
    assert skipped_rows(build(["big.py"], repo, task="validate")) == {"big.py": ("293 KB, over 256 KB a file", True)}
    commit(repo, {})
    packet = build("HEAD~1..HEAD", repo, task="validate")
    assert packet.holes == ("big.py",) and packet.diff == ""
    with pytest.raises(UsageError, match="standard input is over 256 KB, nothing was sent: pipe less"):
        build("-", repo, task="validate", stdin="x" * 300_000)


@pytest.mark.behaviour("packet-limits")
def test_full_packet_lists_the_files_that_did_not_fit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_PACKET_BYTES", 1_000)
    write(root, {f"f{n}.py": "x" * 300 for n in range(5)})
    packet = build(".", root, task="validate")
    assert [file.path for file in packet.files] == ["f0.py", "f1.py", "f2.py"]
    assert packet.holes == ("f3.py", "f4.py")


@pytest.mark.behaviour("packet-limits")
def test_files_beyond_the_limit_are_counted_in_one_line(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_FILES", 3)
    write(repo, {f"many/f{n}.py": "x\n" for n in range(10)})
    packet = build("many", repo, task="validate")
    assert len(packet.files) == 3
    assert skipped_rows(packet) == {"7 more files": ("over 3 files a packet", True)}
    commit(repo, {})
    assert skipped_rows(build("HEAD~1..HEAD", repo, task="validate")) == {
        "7 more files": ("over 3 files a packet", True)
    }


@pytest.mark.behaviour("packet-limits")
def test_folder_with_too_many_files_is_a_one_line_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_WALKED_FILES", 20)
    write(root, {f"many/f{n}.py": "x\n" for n in range(30)})
    with pytest.raises(UsageError, match='"many" contains more than 20 files: name a smaller folder'):
        build("many/", root, task="validate")


@pytest.mark.behaviour("packet-invisible")
def test_invisible_characters_are_removed_and_counted(root: Path) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    write(root, {"a.py": f"\ufeffx = 1{hidden}\u200b\u202e # ok \x1b[31m é 漢 ❤️\n"})
    packet = build(["a.py"], root, task="validate")
    assert packet.files[0].content == "x = 1 # ok [31m é 漢 ❤️\n"
    assert packet.stripped == 7


@pytest.mark.behaviour("packet-invisible")
def test_removed_characters_are_reported_per_file(repo: Path) -> None:
    commit(repo, {"bi.py": "x = 1\u202e\u2066\n", "one.py": "y = 1\u200b\n", "plain.py": "z = 1\n"})
    packet = build("HEAD~1..HEAD", repo, task="validate", decisions=["JW\u200bT"])
    assert packet.remarks == (
        "removed 1 invisible character from decision 1", "removed 2 invisible characters from bi.py",
        "removed 1 invisible character from one.py",
    )  # fmt: skip
    assert make_packet_receipt(packet)["remarks"] == list(packet.remarks)
    assert build(["plain.py"], repo, task="validate").remarks == ()


@pytest.mark.behaviour("packet-invisible")
def test_file_that_is_not_utf_8_is_read_and_reported(repo: Path) -> None:
    (repo / "a.txt").write_bytes(b"caf\xe9 \x93ok\x94\n")
    (repo / "b.txt").write_bytes("é 漢\n".encode() + b"\xff\n")
    (repo / "c.txt").write_bytes(b"\xe9 \x81\n")
    packet = build(["a.txt", "b.txt", "c.txt"], repo, task="validate")
    assert [file.content for file in packet.files] == ["café “ok”\n", "é 漢\n\ufffd\n", "é \n"]
    assert packet.remarks[:2] == (
        "a.txt is not UTF-8 and was read as Windows-1252", "b.txt is not valid UTF-8: unreadable bytes were replaced",
    )  # fmt: skip
    assert "c.txt is not UTF-8 and was read as Latin-1" in packet.remarks
    commit(repo, {})
    (repo / "a.txt").write_bytes(b"caf\xe9 \x93better\x94\n")
    commit(repo, {})
    assert "+café “better”" in build("HEAD~1..HEAD", repo, task="validate").diff


@pytest.mark.behaviour("packet-links")
def test_named_broken_link_is_rejected(repo: Path) -> None:
    (repo / "dangling.md").symlink_to("nowhere.md")
    for target in (["dangling.md"], "dangling.md", "src/app.py dangling.md"):
        with pytest.raises(UsageError, match=r'"dangling\.md" is a broken link'):
            build(target, repo, task="validate")
    assert build("what is dangling.md?", repo, task="ask").empty


def test_spec_folder_is_a_one_line_error(repo: Path) -> None:
    for folder in (".", "src"):
        with pytest.raises(UsageError, match=f'spec "{folder}" is a folder: name a file'):
            build("src/app.py", repo, task="validate", spec=folder)


@pytest.mark.behaviour("packet-refuses-secrets")
def test_refusal_lists_twenty_locations_on_one_line(root: Path) -> None:
    write(root, {f"f{n:02}.py": f"{SECRETS['github'][0]}\n" for n in range(25)})
    with pytest.raises(PacketRefused) as error:
        build(".", root, task="validate")
    assert str(error.value).count(".py:1 ") == 20 and " and 5 more:" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_name_that_is_not_unicode_is_a_hole(root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9.py")).write_text("x\n")
    packet = build(".", root, task="validate")
    assert packet.holes == ("caf?.py",)


def test_a_file_that_cannot_be_read_is_a_hole(root: Path) -> None:
    assert build(Selection(files=(WantedFile("gone.py"),)), root, task="validate").holes == ("gone.py",)


@given(st.binary(max_size=500))
def test_decoded_text_can_always_be_sent(content: bytes) -> None:
    text, _ = strip_invisible(files.decode_text(content)[0])
    assert text.encode() is not None
    assert strip_invisible(text) == (text, 0)


def test_a_spec_and_decisions_fill_the_packet(repo: Path) -> None:
    write(repo, {".agents/specs/plan.md": "Do it.\n"})
    packet = build("src/app.py", repo, task="validate", spec=".agents/specs/plan.md", decisions=["JWT", "No sessions"])
    assert (packet.spec_source, packet.spec) == (".agents/specs/plan.md", "Do it.\n")
    assert packet.prior_decisions == ("JWT", "No sessions")
    with pytest.raises(UsageError, match="does not exist"):
        build("src/app.py", repo, task="validate", spec="nope.md")
    with pytest.raises(UsageError, match="outside the folder"):
        build("src/app.py", repo, task="validate", spec="../x.md")


PACKET = Packet(
    files=(PacketFile("a.py", "a = 1\n"), PacketFile("b.py", "b = 1\n" * 50), PacketFile("c.py", "c = 1\n")),
    diff="+a\n", prior_decisions=("JWT",), target="the auth system", skipped=(Skipped("d.py", "binary"), Skipped("e.py", "secret", True)),
)  # fmt: skip


@pytest.mark.behaviour("packet-dossier")
def test_dossier_has_the_required_keys_in_order() -> None:
    schema = {"verdict": "PASS | WARN | FAIL"}
    skeptic = Seat("judge-1", perspective="skeptic", focus="What could go wrong?")
    whole = build_dossier(PACKET, Question("", "validate"), skeptic, schema)["council_packet"]
    assert list(whole) == [
        "version", "mode", "target", "context", "perspective", "perspective_description", "output_schema",
    ]  # fmt: skip
    assert (whole["version"], whole["mode"], whole["output_schema"]) == ("1.0", "validate", schema)
    assert list(whole["context"]) == ["files", "diff", "spec", "prior_decisions", "scope"]
    assert whole["context"]["files"][0] == {"path": "a.py", "content": "1| a = 1"}
    assert whole["context"]["spec"] == {"source": "none", "content": ""}
    assert (whole["perspective"], whole["perspective_description"]) == ("skeptic", "What could go wrong?")
    for task, seat in (("research", Seat("judge-1")), ("ask", skeptic)):
        plain = build_dossier(PACKET, Question("", task), seat)["council_packet"]
        assert list(plain) == ["version", "mode", "target", "context"]


@pytest.mark.behaviour("packet-receipt")
def test_the_receipt_has_no_contents() -> None:
    receipt = make_packet_receipt(PACKET)
    assert receipt["files"] == ["a.py", "b.py", "c.py"]
    assert receipt["skipped"] == [{"path": "d.py", "why": "binary"}, {"path": "e.py", "why": "secret"}]
    assert (receipt["holes"], receipt["masked"]) == (["e.py"], 0)
    assert receipt["bytes"] == PACKET.bytes == 330 and receipt["tokens"] == PACKET.tokens
    assert "a = 1" not in str(receipt)


def test_packet_with_only_decisions_and_environment_is_empty() -> None:
    assert Packet(prior_decisions=("JWT",), environment="{}").empty
    assert not Packet(spec="text").empty and not Packet(diff="+a").empty and not PACKET.empty


@pytest.mark.behaviour("packet-fit")
def test_small_window_gets_whole_files_then_one_cut_then_none() -> None:
    small = truncate_packet(PACKET, 60)
    assert small.tokens <= 60
    assert [file.path for file in small.files] == ["a.py", "b.py"]
    assert small.files[0] == PACKET.files[0] and small.diff == PACKET.diff
    assert (small.files[1].content, small.files[1].lines) == ("b = 1\n" * small.files[1].ranges[0][1], 50)
    assert list(number_file(small.files[1]))[-2:] == ["25| b = 1", "… lines 26-50 not shown …"]
    assert small.holes == ("e.py", "b.py", "c.py")
    assert small.skipped[-1].why == "does not fit the member's window (60 tokens)"


@pytest.mark.behaviour("packet-fit")
def test_a_large_window_gets_everything(repo: Path) -> None:
    assert truncate_packet(PACKET, 1_000) is PACKET
    assert build("src", repo, task="validate", fit=5).holes == ("src/app.py", "src/auth/jwt.py")


@given(st.lists(st.text(max_size=80), max_size=6), st.text(max_size=60), st.integers(0, 120))
def test_truncated_packet_fits_and_lists_what_it_lost(contents: list[str], diff: str, tokens: int) -> None:
    packet = Packet(files=tuple(PacketFile(f"{n}.py", text) for n, text in enumerate(contents)), diff=diff)
    small = truncate_packet(packet, tokens)
    assert small.tokens <= tokens
    lost = [file for file in packet.files if file not in small.files]
    assert {file.path for file in lost} <= set(small.holes)
