"""The gate: all material passes its secret, size and encoding checks before it leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from council.errors import PacketRefused, UsageError, option, wording
from council.packet.accepted_secrets import Baseline, FoundSecret, Verdict, count_secrets, hash_value
from council.packet.files import (
    Unreadable,
    decode_text,
    encode_text,
    format_path,
    has_secret_name,
    is_binary,
    is_lock_file,
    is_private,
    is_text,
    read_text_bytes,
)
from council.packet.git import Change, split_patch
from council.packet.secret_filter import find_secrets, line_number, mask_secrets, redact_text
from council.packet.secret_scan import Secret
from council.text_cleanup import single_line, strip_invisible
from council.types import Attachment, PacketFile, Skipped

MAX_FILE_BYTES = 256 * 1024
MAX_SOURCE_BYTES = 1024 * 1024  # of a file of which only parts are sent
MAX_PACKET_BYTES = 2 * 1024 * 1024
MAX_FILES = 400
MAX_NAME = 255  # characters of the name of an attachment
ATTACHED_FOLDER = "attached"  # of the names of attached files in the packet
VALUE_MASK = "[redacted:value]"
MAX_LISTED_SECRETS = 20  # locations listed in an error
SETTING_LINE = re.compile(r"(?m)^([ \t]*(?:export[ \t]+)?[A-Za-z_][A-Za-z0-9_]{0,60}[ \t]*=[ \t]*)(?=[^\s=])[^\n]+")
KEY_LINE = re.compile(r"^([ +-]|@@[^@\n]*@@ )[A-Za-z0-9+/]{16,}={0,2}$", re.MULTILINE)
DIFF_NAME = re.compile(r"^(?:---|\+\+\+|rename from|rename to) \"?(?:[ab]/)?([^\n\t\"]+)", re.MULTILINE)
HUNK_HEADER = re.compile(r"^@@+ -(\d+)(?:,\d+)? (?:-\d+(?:,\d+)? )*\+(\d+)[^@\n]*@@+")


class Place(NamedTuple):
    """A line of a file, or of its earlier version."""

    path: str
    line: int
    is_removed: bool = False

    def __str__(self) -> str:
        return f"{format_path(self.path)}:{self.line}{', a removed line' if self.is_removed else ''}"


@dataclass(slots=True)
class Gate:
    """Collects checked material, skipped files and the locations of secrets."""

    root: Path
    redact: bool = False
    skip_secrets: bool = False
    files: list[PacketFile] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    attachment_remarks: list[str] = field(default_factory=list)  # what was reduced or left out of them
    sections: dict[str, str] = field(default_factory=dict)  # the diff of each path
    skipped: dict[tuple[str, str], Skipped] = field(default_factory=dict)
    secret_locations: dict[str, None] = field(default_factory=dict)
    found_secrets: list[FoundSecret] = field(default_factory=list)  # those of files, which a person may accept
    text_places: dict[str, None] = field(default_factory=dict)  # of secrets in texts that are no file of the project
    baseline: Baseline | None = None  # without it, nothing is accepted
    accepted: set[tuple[str, int, str]] = field(default_factory=set)  # path, line and value
    untrusted: dict[str, None] = field(default_factory=dict)  # places of values whose acceptance is not trusted
    paths_with_keys: set[str] = field(default_factory=set)  # paths with a masked key block
    masked: int = 0
    stripped: int = 0
    invisible_counts: dict[str, int] = field(default_factory=dict)  # invisible characters removed, by text
    encoding_remarks: dict[str, None] = field(default_factory=dict)  # remarks on texts that are not valid UTF-8
    used_bytes: int = 0
    file_count: int = 0
    files_over_limit: int = 0

    def add_file(
        self,
        path: str,
        content: bytes | None = None,
        *,
        named: bool = False,
        old_path: str = "",
        reason: str = "",
        is_attached: bool = False,
    ) -> bool:
        """Add a file and return whether it is shown. Pass `content` if it does not come from the work tree."""
        text = None
        if self._count_file():
            text = self.read_file(path, content, named=named, old_path=old_path, is_attached=is_attached)
        if text is not None:
            self.files.append(PacketFile(self._mask_path(path), text, reason=reason))
        return text is not None

    def _count_file(self) -> bool:
        """Return whether one more file is within the limit."""
        self.file_count += 1
        self.files_over_limit += self.file_count > MAX_FILES
        return self.file_count <= MAX_FILES

    def read_changed(self, path: str, content: bytes | None = None, *, old_path: str = "") -> str | None:
        """Return the checked text of a changed file, of which parts are added later.

        It is no hole if its diff is shown.
        """
        if not self._count_file():
            return None
        used = self.used_bytes
        text = self.read_file(
            path, content, old_path=old_path, is_shown=path in self.sections, max_bytes=MAX_SOURCE_BYTES
        )
        self.used_bytes = used
        return text

    def read_context(self, path: str, content: bytes | None = None) -> tuple[str | None, str]:
        """Return the checked text of a file that is no part of the change, or None and why it must not be sent."""
        inner = Gate(self.root, self.redact, skip_secrets=not self.redact, baseline=self.baseline)
        text = inner.read_file(path, content, max_bytes=MAX_SOURCE_BYTES)
        self.masked += inner.masked
        self.stripped += inner.stripped
        self.accepted |= inner.accepted
        self.untrusted |= inner.untrusted
        return text, next((skipped.why for skipped in inner.skipped.values()), "")

    def add_parts(self, file: PacketFile) -> None:
        """Add a part of a file whose text was checked."""
        if self._reserve_bytes(file.path, file.content):
            self.files.append(replace(file, path=self._mask_path(file.path)))

    def list_added(self, path: str) -> None:
        """List a new file in the diff without its content, which is among the files."""
        name = format_path(path)
        section = f"diff --git a/{name} b/{name}\nnew file mode 100644\n"
        if self._reserve_bytes(path, section):
            self.sections[path] = section

    def read_file(
        self,
        path: str,
        content: bytes | None = None,
        *,
        named: bool = False,
        old_path: str = "",
        allow_agents: bool = False,
        is_shown: bool = False,
        is_attached: bool = False,
        max_bytes: int = MAX_FILE_BYTES,
    ) -> str | None:
        """Return the checked text of a file, or None and record why. `allow_agents` also allows files in .agents/.

        `is_shown` means that the diff of the file is in the packet, `is_attached` that it is no file of the project."""
        secret = _find_secret_name(path, old_path)
        if not self._may_show([path], secret, allow_agents=allow_agents):
            return None
        if (raw := self._read_content(path, content, named, is_shown, max_bytes)) is None:
            return None
        text = self._decode_visible(path, raw)
        text = self._mask_values(text, _mask_file_values) if secret else text
        clean = self._mask_secrets(path, text, is_file=not is_attached)
        return clean if clean is not None and self._reserve_bytes(path, clean) else None

    def _may_show(self, names: Sequence[str], secret: str | None, *, allow_agents: bool = False) -> bool:
        """Return whether a file may be shown by its names, the present one first; else record why not."""
        if why := next((why for name in names if (why := _skip_reason(name, allow_agents))), ""):
            self.skip(names[0], why)
        elif all(self._is_name_allowed(name) for name in names):
            if not secret or self.redact:
                return True
            self._record_secret(names[0], f"{format_path(secret)}:1 (secret file name)")
        return False

    @property
    def remarks(self) -> tuple[str, ...]:
        """Changes made to the texts, one line each."""
        return (
            *self.attachment_remarks,
            *self.encoding_remarks,
            *filter(None, [self.describe_untrusted()]),
            *(
                f"removed {removed:,} invisible character{'' if removed == 1 else 's'} from {format_path(name)}"
                for name, removed in self.invisible_counts.items()
            ),
        )

    def list_accepted(self, texts: Iterable[str]) -> list[str]:
        """Return one line for each file with accepted secrets that these texts show, without the values."""
        sent = "\n".join(texts)
        shown: dict[str, list[tuple[int, str]]] = {}
        for path, line, value in sorted(self.accepted):
            if any(part.strip() and part.strip() in sent for part in value.splitlines()):
                shown.setdefault(path, []).append((line, value))
        return [_format_accepted(path, found) for path, found in shown.items()]

    def describe_untrusted(self) -> str:
        """Return a line about values that are accepted without the user's trust, or ""."""
        if not (self.untrusted and self.baseline):
            return ""
        first, more = next(iter(self.untrusted)), len(self.untrusted) - 1
        return f"{first}{f' and {more:,} more' if more else ''}: {self.baseline.describe_untrusted()}"

    def add_stdin(self, text: str) -> None:
        decode_stdin(text)
        if clean := self.check_text("stdin", text):
            self.files.append(PacketFile("stdin", clean))

    def add_attachment(self, name: str, content: str | bytes) -> None:
        """Add an attached file: text with the same checks as a file of the folder, bytes by what they contain."""
        shown = single_line(name.replace("\\", "/").rpartition("/")[2], MAX_NAME) or "file"  # prompts list it
        taken = {file.path for file in self.files} | {one.path for one in self.attachments}
        n, path = 2, f"{ATTACHED_FOLDER}/{shown}"
        while path in taken:
            path, n = f"{ATTACHED_FOLDER}/{n}/{shown}", n + 1
        if isinstance(content, bytes):
            self._add_binary(path, shown, content)
        else:
            self._add_text(path, name, content)

    def _add_binary(self, path: str, shown: str, content: bytes) -> None:
        """Add an image, a PDF with its text, or a text. Pages are not sent if a secret in their text was masked."""
        from council.packet.attachments import check_total, prepare  # only needed for attachments

        if not self._is_name_allowed(path):
            return
        ready, masked = prepare(shown, content), self.masked
        if ready.text is not None and not self.add_file(path, encode_text(ready.text), is_attached=True):
            return
        self.attachment_remarks += ready.remarks
        if ready.attachment and self.masked > masked and ready.text:
            self.attachment_remarks.append(f"{path} is sent as text alone: its pages would show the masked secrets")
        elif ready.attachment:
            self.attachments.append(replace(ready.attachment, path=redact_text(path)))
            check_total(self.attachments)

    def _add_text(self, path: str, name: str, text: str) -> None:
        raw = encode_text(text)
        if not is_text(raw):
            raise UsageError(f'attachment "{format_path(name)}" is binary, nothing was sent: attach text')
        if not text.strip():
            self.skip(path, "empty")
        else:
            self.add_file(path, raw, is_attached=True)

    def check_text(self, name: str, text: str) -> str:
        """Return the checked text of a source that is not a file: standard input, a decision, the target."""
        visible = self._decode_visible(name, encode_text(text))
        if len(visible.encode()) > MAX_FILE_BYTES:
            self.skip(name, f"over {MAX_FILE_BYTES // 1024} KB", hole=True)
            return ""
        clean = self._mask_secrets(name, self._mask_secret_files(name, visible), is_file=False) or ""
        return clean if self._reserve_bytes(name, clean) else ""

    def add_change(self, change: Change, section: str) -> None:
        """Add the diff of one file, if its names and its lines pass the checks."""
        text = self._decode_visible(change.path, encode_text(section))
        names = list(dict.fromkeys((change.path, change.old_path)))
        secret = _find_secret_name(*names)
        if not self._may_show(names, secret):
            return
        if not text:
            self.skip(change.path, "git shows no diff", hole=True)
        elif len(text.encode()) > MAX_FILE_BYTES:
            self.skip(change.path, f"its diff is over {MAX_FILE_BYTES // 1024} KB", hole=True)
        else:
            self._add_section(change, self._mask_values(text, _mask_diff_values) if secret else text)

    def skip(self, path: str, why: str, *, hole: bool = False) -> None:
        self.skipped.setdefault((path, why), Skipped(format_path(path), why, hole))

    def finish(self) -> None:
        """Mask keys in diffs, record the file overflow, and raise PacketRefused if unmasked secrets were found."""
        for path in self.paths_with_keys & self.sections.keys():
            # A hunk may show the middle of a key without its BEGIN line.
            self.sections[path] = KEY_LINE.sub(r"\1[redacted:private key]", self.sections[path])
        if self.files_over_limit:
            self.skip(f"{self.files_over_limit:,} more files", f"over {MAX_FILES} files a packet", hole=True)
            self.files_over_limit = 0
        if self.secret_locations:
            listed = join_first(list(self.secret_locations), MAX_LISTED_SECRETS)
            command = "accept false alarms with `council packet --accept-secret REASON`"
            words = wording(python=command, cli=command, http="the user can accept false alarms with `council packet`")
            accept = f"; {words}" if self.found_secrets else ""
            if accept and self.baseline and self.baseline.base is not None:
                accept += f', which counts with {option("base")} once "{redact_text(self.baseline.base)[:80]}" has it'
            untrusted = f"; {self.describe_untrusted()}" if self.untrusted else ""
            raise PacketRefused(
                f"nothing was sent, secrets found at {listed}: remove them, mask them with {option('redact', True)}, "
                f"or leave those files out with {option('skip_secrets', True)}{untrusted or accept}",
                tuple(self.found_secrets),
                tuple(self.text_places),
            )

    def _decode_visible(self, name: str, raw: bytes) -> str:
        """Decode a text without invisible characters; record how it was decoded and the number removed."""
        text, how = decode_text(raw)
        if how:
            self.encoding_remarks[f"{format_path(name)} {how}"] = None
        visible, removed = strip_invisible(text)
        self.stripped += removed
        if removed:  # a file and its diff contain the same ones
            self.invisible_counts[name] = max(removed, self.invisible_counts.get(name, 0))
        return visible

    def _read_content(
        self, path: str, content: bytes | None, named: bool, is_shown: bool, max_bytes: int
    ) -> bytes | None:
        try:
            if content is None:
                return read_text_bytes(self.root, path, max_bytes)
            return _check_content(content, max_bytes)
        except Unreadable as error:
            if error.is_special and named and not error.binary:
                raise UsageError(
                    f'"{format_path(path)}" is {error.why} and cannot be shown: name a regular file'
                ) from None
            why = f"only its diff is shown: {error.why}" if is_shown else error.why
            self.skip(path, why, hole=not (is_shown or error.is_special))
            return None

    def _mask_secrets(self, path: str, text: str, *, is_file: bool) -> str | None:
        def locate(secret: Secret) -> Place:
            return Place(path, line_number(text, secret))

        secrets = self._find_secrets(path, text, locate) if is_file else find_secrets(text)
        if secrets and self.redact:
            self.masked += len(secrets)
            self.paths_with_keys |= {path} if any(secret.kind == "private key" for secret in secrets) else set()
            return mask_secrets(text, secrets)
        for secret in secrets:
            place = f"{locate(secret)} ({secret.kind})"
            self._record_secret(path, place, text[secret.start : secret.end], is_file=is_file)
        return None if secrets else text

    def _find_secrets(self, path: str, text: str, locate: Callable[[Secret], Place]) -> list[Secret]:
        """Return the secrets of a file or of its diff without those that were accepted."""
        found = find_secrets(text)
        if not found or self.baseline is None:
            return found
        refused = []
        for secret in found:
            value = text[secret.start : secret.end]
            verdict = self.baseline.judge(path, value)
            if verdict is Verdict.ACCEPTED:
                place = locate(secret)
                self.accepted.add((place.path, place.line, value))
                continue
            refused.append(secret)
            if verdict is Verdict.UNTRUSTED:
                self.untrusted[str(locate(secret))] = None
        return refused

    def _mask_values(self, text: str, mask: Callable[[str], str]) -> str:
        hidden = mask(text)
        self.masked += hidden.count(VALUE_MASK)
        return hidden

    def _mask_secret_files(self, name: str, text: str) -> str:
        """Mask or refuse the parts of a piped diff that belong to files with secret names."""
        parts = split_patch(text) if "diff --git " in text else []
        for part in parts:
            secret = next((named for named in DIFF_NAME.findall(part) if has_secret_name(named)), None)
            if secret and self.redact:
                text = text.replace(part, self._mask_values(part, _mask_diff_values))
            elif secret:
                line = text.count("\n", 0, text.index(part)) + 1
                self._record_secret(name, f"{name}:{line} ({format_path(secret)}: secret file name)")
        return "" if name in {path for path, _ in self.skipped} else text

    def _add_section(self, change: Change, text: str) -> None:
        def locate(secret: Secret) -> Place:
            return _locate_in_diff(change, text, secret)

        secrets = self._find_secrets(change.path, text, locate)
        if secrets and not self.redact:
            for secret in secrets:
                place = f"{locate(secret)} ({secret.kind})"
                self._record_secret(change.path, place, text[secret.start : secret.end])
        elif self._reserve_bytes(change.path, text):
            self.masked += len(secrets)
            self.sections[change.path] = mask_secrets(text, secrets, margin=1)

    def _record_secret(self, path: str, place: str, value: str = "", *, is_file: bool = True) -> None:
        """Record where a secret is. The value is empty if the name of the file is the reason."""
        if not is_file:
            self.text_places[place] = None
        elif value and not self.skip_secrets:
            self.found_secrets.append(FoundSecret(path, place, hash_value(value)))
        if self.skip_secrets:
            self.sections.pop(path, None)  # the diff would show the same secret
            self.skip(path, "contains a secret", hole=True)
        else:
            self.secret_locations[place] = None

    def _is_name_allowed(self, path: str) -> bool:
        try:
            path.encode()
        except UnicodeEncodeError:
            self.skip(path, "file name is not UTF-8", hole=True)
            return False
        if not find_secrets(path) or self.redact:
            return True
        self._record_secret(path, f"{format_path(path)}:1 (in the file name)")
        return False

    def _mask_path(self, path: str) -> str:
        self.masked += len(find_secrets(path))
        return redact_text(path)

    def _reserve_bytes(self, path: str, text: str) -> bool:
        size = len(text.encode())
        if self.used_bytes + size > MAX_PACKET_BYTES:
            self.skip(path, f"the packet is full ({MAX_PACKET_BYTES // (1024 * 1024)} MB)", hole=True)
            return False
        self.used_bytes += size
        return True


def decode_stdin(text: str) -> str:
    """Return piped text decoded, or raise UsageError if it is binary or too large: it is never left out."""
    raw = encode_text(text)
    if not is_text(raw):
        raise UsageError("standard input is binary, nothing was sent: pipe text, or use --no-stdin")
    if len(raw) > MAX_FILE_BYTES:
        raise UsageError(
            f"standard input is over {MAX_FILE_BYTES // 1024} KB, nothing was sent: pipe less, or save it in files and name them"
        )
    return decode_text(raw)[0]


def _mask_file_values(text: str) -> str:
    """Mask a file with a secret name, except for the names of its settings."""
    return "\n".join(_mask_line(line) for line in text.split("\n"))


def _mask_line(line: str) -> str:
    if not line.strip():
        return line
    setting = SETTING_LINE.match(line)
    return f"{setting[1]}{VALUE_MASK}" if setting else VALUE_MASK


def _mask_diff_values(text: str) -> str:
    head, mark, hunks = text.partition("\n@@ ")
    if not mark:
        return text
    lines = (f"@@ {hunks}").split("\n")
    return "\n".join([head, *(_mask_hunk_line(line) for line in lines)])


def _mask_hunk_line(line: str) -> str:
    if hunk := HUNK_HEADER.match(line):
        return hunk[0]  # the text after the numbers is a line of the file
    return line[:1] + _mask_line(line[1:]) if line[:1] in ("+", "-", " ") else line


def _format_accepted(path: str, found: list[tuple[int, str]]) -> str:
    lines, values = list(dict.fromkeys(str(line) for line, _ in found)), len({value for _, value in found})
    where = f"{'line' if len(lines) == 1 else 'lines'} {join_first(lines, MAX_LISTED_SECRETS)}"
    return (
        f"{count_secrets(values)} in {format_path(redact_text(path))} {'is' if values == 1 else 'are'} sent ({where})"
    )


def join_first(places: Sequence[str], most: int) -> str:
    more = f" and {len(places) - most:,} more" if len(places) > most else ""
    return f"{', '.join(places[:most])}{more}"


def _find_secret_name(*names: str) -> str | None:
    return next((name for name in names if name and has_secret_name(name)), None)


def _skip_reason(path: str, allow_agents: bool) -> str:
    if is_private(path) and not (allow_agents and path.startswith(".agents/")):
        return "never included in a packet"
    return "a lock file" if is_lock_file(path) else ""


def _check_content(content: bytes, max_bytes: int) -> bytes:
    if is_binary(content):
        raise Unreadable("binary", binary=True)
    if len(content) > max_bytes:
        raise Unreadable(f"over {max_bytes // 1024} KB a file")
    return content


def _locate_in_diff(change: Change, text: str, secret: Secret) -> Place:
    """Return the place of a secret in a diff; a removed line has its old number."""
    lines = text[: secret.start].split("\n")
    at = next((n for n in range(len(lines) - 1, -1, -1) if HUNK_HEADER.match(lines[n])), None)
    secret_line = text[text.rfind("\n", 0, secret.start) + 1 :]
    if at is None or at == len(lines) - 1:
        return Place(change.path, 1)
    hunk = HUNK_HEADER.match(lines[at])
    assert hunk
    removed = secret_line.startswith("-")
    before = sum(not line.startswith("+" if removed else "-") for line in lines[at + 1 : -1])
    if removed:
        return Place(change.old_path, int(hunk[1]) + before, is_removed=True)
    return Place(change.path, int(hunk[2]) + before)
