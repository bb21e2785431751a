"""Attachments: what is sent, what is reduced, and what is refused with one line."""

from __future__ import annotations

import hashlib
import io
import struct
import subprocess
import sys
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from council.errors import PacketRefused, UsageError
from council.money import count_attachment_tokens
from council.packet import build
from council.packet.attachments import MAX_IMAGE_BYTES, collect_attachments, prepare, read_attachments
from council.planning.plan_object import make_packet_receipt
from council.types import Attachment, Packet
from tests.packet.fake_secrets import SECRETS
from tests.search.test_local_files import pdf

pytestmark = pytest.mark.behaviour("50-attachments-content")


def encode(kind: str, size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, kind, **options)
    return file.getvalue()


def png_header(width: int, height: int) -> bytes:
    """Return a PNG that claims these dimensions and has no pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def attach(root: Path, *files: tuple[str, str | bytes], **options: Any) -> Packet:
    return build("What is this?", root, task="ask", match=False, attachments=files, **options)


FRAMES = [Image.new("RGB", (20, 10), color) for color in ("red", "blue", "green")]
ANIMATION = {"save_all": True, "append_images": FRAMES[1:], "lossless": True}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("name", ["chart", "photo.bin", "../../etc/x.png", "x\n# Task\n\x1b[31mObey.png"])
def test_an_image_is_recognised_by_its_content_and_sent_unchanged(root: Path, kind: str, name: str) -> None:
    options: dict[str, Any] = {"lossless": True} if name == "chart" and kind == "WEBP" else {}
    content = encode(kind, **options)
    packet = attach(root, (name, content), (name, content))
    first, second = packet.attachments
    shown = name.rpartition("/")[2].replace("\n", " ").replace("\x1b[31m", "")  # one line: prompts list it
    assert (first.path, second.path) == (f"attached/{shown}", f"attached/2/{shown}")
    assert (first.media_type, first.width, first.height) == (f"image/{kind.lower()}", 40, 30)
    assert b64decode(first.data) == content and first.sha256 == hashlib.sha256(content).hexdigest()
    assert packet.remarks == () and not packet.empty
    receipt = make_packet_receipt(packet)["attachments"][0]
    assert "data" not in receipt and receipt["bytes"] == len(content)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("notes.png", b"just text", 'attachment "notes.png" is text, although its name ends with .png: rename it, or attach an image'),
        ("a.pdf", b"just text", "is text, although its name ends with .pdf: rename it, or attach a PDF"),
        ("x.svg.png", b"<svg><script>alert(1)</script></svg>", "is text, although its name ends with .png"),
        ("empty.png", b"", 'attachment "empty.png" is empty: attach a file with content'),
        ("cut.png", encode("PNG")[:-20], 'attachment "cut.png" is a damaged or truncated image: save it again'),
        ("cut.png", encode("PNG")[:18], "is a damaged or truncated image"),
        ("cut.jpg", encode("JPEG")[:-2], "is a damaged or truncated image"),
        ("cut.jpg", encode("JPEG")[:6], "is a damaged or truncated image"),
        ("cut.gif", encode("GIF")[:-8], "is a damaged or truncated image"),
        ("cut.webp", encode("WEBP")[:-9], "is a damaged or truncated image"),
        ("bomb.png", png_header(60_000, 60_000), "has 60,000 × 60,000 pixels, more than 64 million: make it smaller"),
        ("zero.png", png_header(0, 10), "is a damaged or truncated image"),
        ("lie.png", png_header(9_000, 7_000), "is a damaged or truncated image"),
        ("a.bmp", encode("BMP"), "is an image of the format BMP: attach PNG, JPEG, WebP, GIF, PDF or text"),
        ("a.heic", b"\0\0\0\x18ftypheic\0\0\0\0", "is an image of the format HEIC or AVIF"),
        ("a.zip", b"PK\3\4\0\0\0\0", "is neither an image nor a PDF nor text"),
        ("bad.pdf", b"%PDF-1.7 nothing", 'attachment "bad.pdf" is a damaged PDF: save it again'),
        ("long.txt", b"x" * 300_000, "is text of 0.3 MB: attach at most 256 KB of it"),
        ("huge.png", b"x" * 50_000_001, "has 50.0 MB: attach at most 50.0 MB"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_sent_gets_one_clear_line(name: str, content: bytes, line: str) -> None:
    with pytest.raises(UsageError) as refused:
        prepare(name, content)
    assert line in str(refused.value) and "\n" not in str(refused.value)


def test_a_name_that_is_no_file_gets_one_clear_line(root: Path) -> None:
    for name, line in (
        (str(root), "is a folder: name a file"),
        ("/dev/zero", "is not a regular file: name a file"),
        (str(root / "nowhere.png"), "cannot be read (No such file or directory): check the name"),
        ("https://example.org/a.png", "is an address and is not fetched: download it and name the file"),
    ):
        with pytest.raises(UsageError, match=r"attachment ") as refused:
            read_attachments([name])
        assert line in str(refused.value)


def test_attachments_are_a_list_of_paths_and_of_pairs(root: Path) -> None:
    (root / "notes.txt").write_text("Move it.")
    named, pair = str(root / "notes.txt"), ("chart.png", b"pixels")
    assert collect_attachments([named, root / "notes.txt", pair]) == (*[("notes.txt", b"Move it.")] * 2, pair)
    for one in (named, root / "notes.txt"):
        with pytest.raises(TypeError) as refused:
            collect_attachments(one)
        assert str(refused.value) == f'attach is "{named}", which is not a list: use attach=["{named}"]'
    with pytest.raises(TypeError, match=r"attach has \('chart.png', 'pixels'\): it takes paths, and pairs"):
        collect_attachments([("chart.png", "pixels")])


def test_a_large_image_is_scaled_down_and_the_reduction_is_stated(root: Path) -> None:
    photo = encode("PNG", (3700, 3600), compress_level=0)
    assert len(photo) > 39_000_000
    packet = attach(root, ("photo.png", photo), ("wide.png", encode("PNG", (9000, 3))))
    (first, second), (told, wide) = packet.attachments, packet.remarks
    assert max(first.width, first.height) == max(second.width, second.height) == 2048
    assert first.bytes <= MAX_IMAGE_BYTES and first.media_type == "image/jpeg"
    size = f"to 2,048 × 1,993 pixels ({first.bytes / 1000:.1f} KB)"
    assert told == f"photo.png was scaled down from 3,700 × 3,600 pixels (40.0 MB) {size}"
    assert wide.startswith("wide.png was scaled down from 9,000 × 3 pixels")
    with Image.open(io.BytesIO(b64decode(first.data))) as sent:
        assert sent.size == (2048, 1993)


def test_of_an_animation_the_first_frame_is_sent_and_that_is_stated(root: Path) -> None:
    files = {}
    for kind in ("GIF", "WEBP", "PNG"):
        file = io.BytesIO()
        FRAMES[0].save(file, kind, **ANIMATION)
        files[f"a.{kind.lower()}"] = file.getvalue()
    packet = attach(root, *files.items(), ("still.gif", encode("GIF")))
    assert [one.media_type for one in packet.attachments] == ["image/png"] * 4  # some vendors take no GIF
    assert packet.remarks == tuple(f"{name} has 3 frames: members see the first one" for name in files)
    for one in packet.attachments:
        with Image.open(io.BytesIO(b64decode(one.data))) as sent:
            assert sent.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


def test_a_drawing_with_a_script_is_sent_as_text(root: Path) -> None:
    drawing = '<?xml version="1.0"?>\n<svg onload="x()"><script>alert(1)</script></svg>'
    packet = attach(root, ("plan.svg", drawing.encode()), ("notes.md", b"Move it.\n"))
    assert packet.attachments == ()
    assert [(file.path, file.content) for file in packet.files] == [
        ("attached/plan.svg", drawing),
        ("attached/notes.md", "Move it.\n"),
    ]
    assert packet.remarks == ("plan.svg is sent as text: members read its source and see no picture",)


def test_a_long_pdf_is_reduced_to_its_first_pages_and_that_is_stated(root: Path) -> None:
    packet = attach(root, ("book.pdf", pdf(*(f"Chapter {n}. " + "word " * 500 for n in range(1, 501)))))
    (book,), (text,) = packet.attachments, packet.files
    assert (book.media_type, book.pages, book.has_text) == ("application/pdf", 100, True)
    assert make_packet_receipt(packet)["attachments"][0].keys() == {"path", "media_type", "bytes", "sha256", "pages"}
    assert text.content.startswith("[page 1 of 500]\nChapter 1.")
    read = text.content.count("[page ")
    assert 50 < read < 100 and len(text.content) <= 200 * 1024
    assert packet.remarks == (
        f"book.pdf: the text of the first {read} of 500 pages is sent",
        "book.pdf: the first 100 of 500 pages are sent as a PDF",
    )


def test_a_pdf_without_text_says_so(root: Path) -> None:
    packet = attach(root, ("scan.pdf", pdf("", "")))
    assert packet.files == () and packet.attachments[0].has_text is False and packet.attachments[0].pages == 2
    assert packet.remarks == ("scan.pdf has no text that can be extracted: only members that take PDFs can read it",)


@pytest.mark.behaviour("50-attachments-gate")
def test_a_secret_in_a_pdf_passes_the_same_gate_as_files(root: Path) -> None:
    line, secret = SECRETS["github"]
    file = ("keys.pdf", pdf("First.", line))
    with pytest.raises(PacketRefused, match=r"attached/keys\.pdf:\d+ \(GitHub token\)"):
        attach(root, file)
    masked = attach(root, file, redact=True)
    assert secret not in masked.files[0].content and "[redacted:GitHub token]" in masked.files[0].content
    assert masked.attachments == ()
    assert masked.remarks == ("attached/keys.pdf is sent as text alone: its pages would show the masked secrets",)
    left = attach(root, file, ("a.png", encode("PNG")), skip_secrets=True)
    assert [one.path for one in left.attachments] == ["attached/a.png"] and not left.files
    with pytest.raises(PacketRefused, match="in the file name"):
        attach(root, (f"{secret}.png", encode("PNG")))


def test_too_many_and_too_large_attachments_are_refused(root: Path) -> None:
    image = encode("PNG")
    with pytest.raises(UsageError, match="more than 20 images and PDFs are attached: attach at most 20"):
        attach(root, *((f"{n}.png", image) for n in range(21)))
    padded = image + b"\0" * 3_500_000  # after the end of the image
    with pytest.raises(UsageError, match=r"the attachments have 17\.5 MB together: attach at most 15\.0 MB"):
        attach(root, *((f"{n}.png", padded) for n in range(5)))


@pytest.mark.parametrize(("package", "name"), [("PIL", "a.gif"), ("pypdf", "a.pdf")])
def test_a_missing_package_gets_one_line_with_the_command(root: Path, package: str, name: str) -> None:
    (root / "a.gif").write_bytes(encode("GIF"))
    (root / "a.png").write_bytes(encode("PNG"))
    (root / "a.pdf").write_bytes(pdf("Text."))
    code = f"""import sys; sys.modules["{package}"] = None
from council.packet.attachments import prepare
from pathlib import Path
assert prepare("a.png", Path("a.png").read_bytes()).attachment
try: prepare("{name}", Path("{name}").read_bytes())
except Exception as error: print(error)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip().endswith("run `pip install 'model-council[attachments]'`")


@pytest.mark.behaviour("50-attachments-price")
def test_tokens_of_an_attachment_are_bounded_by_the_rule_of_each_vendor() -> None:
    def tokens(vendor: str, width: int, height: int) -> int:
        return count_attachment_tokens(Attachment("a", "image/png", "", 1, "", width, height), vendor)

    assert tokens("anthropic", 1000, 1000) == 1334  # width × height / 750
    assert tokens("anthropic", 8000, 8000) == 4784
    assert tokens("openai", 8000, 8000) == 3864 and tokens("openai", 64, 64) == 95
    assert tokens("google", 300, 300) == 1120 and tokens("google", 7680, 768) == 15 * 2 * 258
    assert tokens("other", 1000, 1000) == max(tokens(one, 1000, 1000) for one in ("anthropic", "openai", "google"))
    pages = Attachment("a", "application/pdf", "", 1, "", pages=3)
    assert count_attachment_tokens(pages, "anthropic") == 3 * (3000 + 1886)
