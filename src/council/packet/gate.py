"""The gate: all material passes its secret, size and encoding checks before it leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from council.errors import PacketRefused, UsageError
from council.packet import reading
from council.packet.git import Change, sections_of
from council.packet.names import denied, is_lock, is_private, shown
from council.packet.reading import Unreadable
from council.packet.secrets import Secret, line_of, masked, scrub, secrets_in
from council.types import PacketFile, Skipped

FILE_LIMIT = 256 * 1024
PACKET_LIMIT = 2 * 1024 * 1024
FILES_LIMIT = 400
BINARY = "binary"
TOLD = 20  # locations listed in an error
SETTING = re.compile(
    r"^([ \t]*(?:export[ \t]+)?[A-Za-z_][A-Za-z0-9_]{0,60}[ \t]*=[ \t]*)(?=[^\s=])[^\n]+", re.MULTILINE
)
KEY_LINE = re.compile(r"^([ +-]|@@[^@\n]*@@ )[A-Za-z0-9+/]{16,}={0,2}$", re.MULTILINE)
DIFF_NAME = re.compile(r"^(?:---|\+\+\+|rename from|rename to) \"?(?:[ab]/)?([^\n\t\"]+)", re.MULTILINE)
HUNK = re.compile(r"^@@+ -(\d+)(?:,\d+)? (?:-\d+(?:,\d+)? )*\+(\d+)[^@\n]*@@+")


@dataclass(slots=True)
class Gate:
    """Collects checked material, skipped files and the locations of secrets."""

    root: Path
    redact: bool = False
    skip_secrets: bool = False
    files: list[PacketFile] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)  # the diff of each path
    skipped: dict[tuple[str, str], Skipped] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)  # locations of secrets
    keyed: set[str] = field(default_factory=set)  # paths with a masked key block
    masked: int = 0
    stripped: int = 0
    unseen: dict[str, int] = field(default_factory=dict)  # invisible characters removed, by text
    odd: dict[str, None] = field(default_factory=dict)  # remarks on texts that are not valid UTF-8
    used: int = 0  # bytes
    asked: int = 0  # files
    over: int = 0  # files beyond the limit

    def file(self, path: str, content: bytes | None = None, *, named: bool = False, old: str = "") -> None:
        """Add a file. Pass `content` if it does not come from the work tree."""
        self.asked += 1
        if self.asked > FILES_LIMIT:
            self.over += 1
        elif (text := self.read(path, content, named=named, old=old)) is not None:
            self.files.append(PacketFile(self._label(path), text))

    def read(
        self, path: str, content: bytes | None = None, *, named: bool = False, old: str = "", ours: bool = False
    ) -> str | None:
        """Return the checked text of a file, or None and record why. `allow_agents` also allows files in .agents/."""
        secret = _denied_of(path, old)
        if why := _by_name(path, ours):
            self.skip(path, why)
        elif not self._name_is_clean(path):
            pass
        elif secret and not self.redact:
            self._secret(path, f"{shown(secret)}:1 (secret file name)")
        elif (raw := self._content(path, content, named)) is not None:
            text = self._seen(path, raw)
            clean = self._clean(path, self._veiled(text, _veiled) if secret else text)
            return clean if clean is not None and self._has_room(path, clean) else None
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Changes made to the texts, one line each."""
        return (*self.odd, *(_taken_out(name, gone) for name, gone in self.unseen.items()))

    def stdin(self, text: str) -> None:
        raw = reading.as_bytes(text)
        if not reading.is_text(raw):
            self.skip("stdin", BINARY)
        elif clean := self.text("stdin", text):
            self.files.append(PacketFile("stdin", clean))

    def text(self, name: str, text: str) -> str:
        """Return the checked text of a source that is not a file: standard input, a decision, the target."""
        seen = self._seen(name, reading.as_bytes(text))
        if len(seen.encode()) > FILE_LIMIT:
            self.skip(name, f"over {FILE_LIMIT // 1024} KB", hole=True)
            return ""
        clean = self._clean(name, self._without_denied(name, seen)) or ""
        return clean if self._has_room(name, clean) else ""

    def change(self, change: Change, section: str) -> None:
        """Add the diff of one file, if its names and its lines pass the checks."""
        text = self._seen(change.path, reading.as_bytes(section))
        names = dict.fromkeys((change.path, change.old))
        if why := next((why for why in map(_by_name, names) if why), ""):
            self.skip(change.path, why)
        elif not all(self._name_is_clean(name) for name in names):
            pass
        elif (secret := _denied_of(*names)) and not self.redact:
            self._secret(change.path, f"{shown(secret)}:1 (secret file name)")
        elif not text:
            self.skip(change.path, "git shows no diff", hole=True)
        elif len(text.encode()) > FILE_LIMIT:
            self.skip(change.path, f"its diff is over {FILE_LIMIT // 1024} KB", hole=True)
        else:
            self._section(change, self._veiled(text, _veiled_diff) if secret else text)

    def skip(self, path: str, why: str, *, hole: bool = False) -> None:
        self.skipped.setdefault((path, why), Skipped(shown(path), why, hole))

    def settle(self) -> None:
        """Mask keys in diffs, record the file overflow, and raise PacketRefused if unmasked secrets were found."""
        for path in self.keyed & self.sections.keys():
            # A hunk may show the middle of a key without its BEGIN line.
            self.sections[path] = KEY_LINE.sub(r"\1[redacted:private key]", self.sections[path])
        if self.over:
            self.skip(f"{self.over:,} more files", f"over {FILES_LIMIT} files a packet", hole=True)
            self.over = 0
        if self.places:
            told = ", ".join(list(self.places)[:TOLD])
            more = f" and {len(self.places) - TOLD} more" if len(self.places) > TOLD else ""
            raise PacketRefused(
                f"nothing was sent, secrets found at {told}{more}: remove them, mask them with --redact, "
                "or leave those files out with --skip-secrets"
            )

    def _seen(self, name: str, raw: bytes) -> str:
        """Decode a text without invisible characters; record how it was decoded and the number removed."""
        text, how = reading.as_text(raw)
        if how:
            self.odd[f"{shown(name)} {how}"] = None
        seen, gone = reading.visible(text)
        self.stripped += gone
        if gone:  # a file and its diff contain the same ones
            self.unseen[name] = max(gone, self.unseen.get(name, 0))
        return seen

    def _content(self, path: str, content: bytes | None, named: bool) -> bytes | None:
        try:
            return _given(content) if content is not None else reading.read(self.root, path, FILE_LIMIT)
        except Unreadable as error:
            if error.odd and named and not error.binary:
                raise UsageError(f'"{shown(path)}" is {error.why} and cannot be shown: name a regular file') from None
            self.skip(path, error.why, hole=not error.odd)
            return None

    def _clean(self, path: str, text: str) -> str | None:
        found = secrets_in(text)
        if found and self.redact:
            self.masked += len(found)
            self.keyed |= {path} if any(secret.kind == "private key" for secret in found) else set()
            return masked(text, found)
        for secret in found:
            self._secret(path, f"{shown(path)}:{line_of(text, secret)} ({secret.kind})")
        return None if found else text

    def _veiled(self, text: str, veil: Callable[[str], str]) -> str:
        hidden = veil(text)
        self.masked += hidden.count(VEIL)
        return hidden

    def _without_denied(self, name: str, text: str) -> str:
        """Mask or refuse the parts of a piped diff that belong to files with secret names."""
        parts = sections_of(text)
        for part in parts:
            secret = next((found for found in DIFF_NAME.findall(part) if denied(found)), None)
            if secret and self.redact:
                text = text.replace(part, self._veiled(part, _veiled_diff))
            elif secret:
                line = text.count("\n", 0, text.index(part)) + 1
                self._secret(name, f"{name}:{line} ({shown(secret)}: secret file name)")
        return "" if name in {path for path, _ in self.skipped} else text

    def _section(self, change: Change, text: str) -> None:
        found = secrets_in(text)
        if found and not self.redact:
            for secret in found:
                self._secret(change.path, f"{_diff_place(change, text, secret)} ({secret.kind})")
        elif self._has_room(change.path, text):
            self.masked += len(found)
            self.sections[change.path] = masked(text, found, margin=1)

    def _secret(self, path: str, place: str) -> None:
        if self.skip_secrets:
            self.sections.pop(path, None)  # the diff would show the same secret
            self.skip(path, "contains a secret", hole=True)
        else:
            self.places[place] = None

    def _name_is_clean(self, path: str) -> bool:
        try:
            path.encode()
        except UnicodeEncodeError:
            self.skip(path, "file name is not UTF-8", hole=True)
            return False
        if not secrets_in(path) or self.redact:
            return True
        self._secret(path, f"{shown(path)}:1 (in the file name)")
        return False

    def _label(self, path: str) -> str:
        self.masked += len(secrets_in(path))
        return scrub(path)

    def _has_room(self, path: str, text: str) -> bool:
        size = len(text.encode())
        if self.used + size > PACKET_LIMIT:
            self.skip(path, f"the packet is full ({PACKET_LIMIT // (1024 * 1024)} MB)", hole=True)
            return False
        self.used += size
        return True


VEIL = "[redacted:value]"


def _veiled(text: str) -> str:
    """Mask a file with a secret name, except for the names of its settings."""
    return "\n".join(_veiled_line(line) for line in text.split("\n"))


def _veiled_line(line: str) -> str:
    if not line.strip():
        return line
    setting = SETTING.match(line)
    return f"{setting[1]}{VEIL}" if setting else VEIL


def _veiled_diff(text: str) -> str:
    head, mark, hunks = text.partition("\n@@ ")
    if not mark:
        return text
    lines = (f"@@ {hunks}").split("\n")
    return "\n".join([head, *(_veiled_hunk_line(line) for line in lines)])


def _veiled_hunk_line(line: str) -> str:
    if hunk := HUNK.match(line):
        return hunk[0]  # the text after the numbers is a line of the file
    return line[:1] + _veiled_line(line[1:]) if line[:1] in ("+", "-", " ") else line


def _taken_out(name: str, gone: int) -> str:
    what = "invisible character" if gone == 1 else "invisible characters"
    return f"removed {gone:,} {what} from {shown(name)}"


def _denied_of(*names: str) -> str | None:
    return next((name for name in names if name and denied(name)), None)


def _by_name(path: str, ours: bool = False) -> str:
    if is_private(path) and not (ours and path.startswith(".agents/")):
        return "never included in a packet"
    return "a lock file" if is_lock(path) else ""


def _given(content: bytes) -> bytes:
    if reading.is_binary(content):
        raise Unreadable(BINARY, odd=True, binary=True)
    if len(content) > FILE_LIMIT:
        raise Unreadable(f"over {FILE_LIMIT // 1024} KB a file")
    return content


def _diff_place(change: Change, text: str, secret: Secret) -> str:
    """Return file:line of a secret in a diff; a removed line has its old number."""
    lines = text[: secret.start].split("\n")
    at = next((n for n in range(len(lines) - 1, -1, -1) if HUNK.match(lines[n])), None)
    whole = text[text.rfind("\n", 0, secret.start) + 1 :]
    if at is None or at == len(lines) - 1:
        return f"{shown(change.path)}:1"
    hunk = HUNK.match(lines[at])
    assert hunk
    removed = whole.startswith("-")
    before = sum(not line.startswith("+" if removed else "-") for line in lines[at + 1 : -1])
    if removed:
        return f"{shown(change.old)}:{int(hunk[1]) + before}, a removed line"
    return f"{shown(change.path)}:{int(hunk[2]) + before}"
