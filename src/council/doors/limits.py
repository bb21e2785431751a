"""Limits on MCP and HTTP callers: allowed folders, files, members and cost."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast
from urllib.parse import unquote, urlsplit

from council.errors import UsageError
from council.extensions import MEMBERS, SEARCH
from council.packet.accepted_secrets import Baseline
from council.packet.files import (
    Unreadable,
    format_path,
    has_secret_name,
    is_private,
    list_files,
    read_text_bytes,
    relative_to_root,
)
from council.packet.gate import MAX_FILE_BYTES, MAX_LISTED_SECRETS, Gate
from council.packet.git import find_repo
from council.packet.secret_filter import find_secrets
from council.planning.setup import RunSetup
from council.runs.database_worker import embed_worker
from council.runs.service import Convener
from council.settings import SettingFlags, Settings, load_settings
from council.settings.catalogue import split_member
from council.settings.schema import quote_value
from council.settings.workspace_trust import TrustSource
from council.store.interface import Record
from council.text_cleanup import clean
from council.types import Json, estimate_tokens, repair_surrogates

if TYPE_CHECKING:
    from pydantic import BaseModel

FILE_OPTIONS = ("roster", "preset", "perspectives_file")
UNRESTRICTED_KINDS = ("", "cli", "human")  # "": a short name, which resolves only to configured members
OWNER_OPTIONS = ("allow_unpriced", "config")  # options that only the server owner may set


@dataclass(frozen=True, slots=True)
class Owner:
    """The user who started the server: folder, environment and cost limit."""

    folder: Path
    env: Mapping[str, str]
    config: Path | None = None
    max_cost: float | None = None
    allow_unpriced: bool = False
    has_worker: bool = True  # the server executes runs of a shared store

    def settings(self, folder: Path) -> Settings:
        """Load the settings of a folder without caller options."""
        return load_settings(folder, self.env, flags={"max_cost": self.max_cost}, config=self.config)

    @asynccontextmanager
    async def open_convener(
        self, records: Convener, folder: Path | None = None, flags: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Convener]:
        """Yield a convener for one request, because planning can change a convener's folder. It uses the same store."""
        folder = folder or self.folder
        convener = Convener(folder, self.env, flags=flags or {}, config=self.config, store=records.store)
        try:
            yield convener
        finally:
            await convener.close()

    def run_worker(self, records: Convener) -> AbstractAsyncContextManager[None]:
        """Open a shared store and execute its runs, inside the block."""
        return embed_worker(records, self.env, self.folder, self.config, has_worker=self.has_worker)

    def describe_untrusted(self) -> str:
        """Return one line if runs in the owner's folder are refused until its settings are trusted, else ""."""
        request = self.settings(self.folder).untrusted
        return clean(f"council: {request.summary}, so runs here are refused: see `council trust`") if request else ""


@dataclass(frozen=True, slots=True)
class BudgetCaps:
    """Cost caps at server start. A folder chosen by a caller cannot raise them."""

    run: float | None
    day: float | None

    @classmethod
    def from_settings(cls, settings: Settings) -> BudgetCaps:
        return cls(settings.budget.get("max_cost"), settings.budget.get("max_cost_per_day"))

    def effective_cap(self, here: BudgetCaps, requested: float | None) -> float | None:
        """Return the lowest cap of owner, folder and caller.

        Raise UsageError if the caller asks for more than allowed.
        """
        limit = min_amount(self.run, here.run)
        if requested is not None and limit is not None and requested > limit:
            raise UsageError(
                f'max_cost "{requested:g}" exceeds the limit of this server, nothing was spent: use {limit:g} or less, or omit it',
                field="max_cost",
            )
        if self.day is not None and (here.day is None or here.day > self.day):
            raise UsageError(
                f'max_cost_per_day of this folder exceeds the limit of this server "{self.day:g}", nothing was spent: '
                "choose another folder, or lower [budget] max_cost_per_day there"
            )
        return min_amount(limit, requested)


def find_run_cap(owner: Owner, caps: BudgetCaps, record: Record, requested: float | None = None) -> float | None:
    """Return the cap with which a stored run may be continued: its own or the requested one, but at most the owner's.

    Raise UsageError if the requested cap is higher, or if the folder of the run has a higher cap of a day.
    """
    limit = caps.effective_cap(BudgetCaps.from_settings(owner.settings(Path(record.folder))), requested)
    return limit if requested is not None else min_amount(RunSetup.of(record).flags.get("max_cost"), limit)


def min_amount(*amounts: float | None) -> float | None:
    return min((amount for amount in amounts if amount is not None), default=None)


# Folders and files


def parse_roots(addresses: Iterable[str]) -> tuple[Path, ...]:
    """Return the local folders among the roots a client declares. Raise UsageError if there are none."""
    places = (Path(unquote(urlsplit(address).path)) for address in addresses if address.startswith("file:///"))
    found = tuple(place.resolve() for place in places if place.is_dir())
    if not found:
        raise UsageError(
            "none of the roots declared by this client is a folder on this machine, nothing was done: declare an existing folder"
        )
    return found


def default_root(owner: Owner) -> tuple[Path, ...]:
    """Return the root for a client that declares none."""
    if owner.folder == Path(owner.folder.anchor):
        raise UsageError(
            f"this server was started in {quote_value(owner.folder)} and this client declares no roots, so it could read every file: "
            "start the server in a project folder, or pass --folder"
        )
    return (owner.folder,)


def resolve_folder(requested: str | None, roots: Sequence[Path]) -> Path:
    """Resolve the folder of a run: the first root by default, or a folder below any root."""
    place = _resolve_within("folder", requested or ".", roots[0], roots)
    if not place.is_dir():
        raise UsageError(
            f"folder {quote_value(requested)} does not exist: use a folder below {_format_roots(roots)}, or omit it"
        )
    return place


# Attachments


def read_inline(name: str, text: str | None, data: str | None) -> str | bytes:
    """Return the text of an attached file, or its bytes from base64.

    Raise UsageError unless it has exactly one of them.
    """
    shown = quote_value(format_path(name))
    if (text is None) == (data is None):
        raise UsageError(f"attachment {shown} needs one of text and data: send one of them", field="attachments")
    if data is None:
        return text or ""
    try:
        encoded = data.split(";base64,", 1)[1] if data.startswith("data:") else data
        return base64.b64decode(encoded, validate=True)
    except (ValueError, IndexError):
        raise UsageError(f"the data of attachment {shown} is not base64: encode it", field="attachments") from None


def read_attached(
    given: Sequence[str | Mapping[str, str]], folder: Path, roots: Sequence[Path]
) -> list[tuple[str, str | bytes]]:
    """Return the name and the content of attached files: paths below the roots, or objects with `name` and `text` or
    `data`.
    """
    from council.packet.attachments import read_attachments  # only needed for attachments

    found: list[tuple[str, str | bytes]] = []
    for one in given:
        if not isinstance(one, str):
            name = one.get("name") or "file"
            found.append((name, read_inline(name, one.get("text"), one.get("data"))))
            continue
        place = _resolve_within("attachment", one, folder, roots)
        if has_secret_name(place.as_posix()) or is_private(place.as_posix()) or ".agents" in place.parts:
            raise UsageError(f"attachment {quote_value(one)} may hold secrets and is never sent: name another file")
        found += read_attachments([place])
    return found


def is_within(place: Path, roots: Sequence[Path]) -> bool:
    return any(place.is_relative_to(root) for root in roots)


def _resolve_within(what: str, requested: str, folder: Path, roots: Sequence[Path], field: str = "") -> Path:
    """Resolve a path and its links. Raise UsageError if it is not a valid path, or leads outside the roots."""
    try:
        place = (folder / requested).resolve()
        place.exists()  # raises OSError for a name that is too long
    except (OSError, RuntimeError, ValueError):
        raise UsageError(f"{what} {quote_value(requested)} is not a valid path: use another one", field=field) from None
    if not is_within(place, roots):
        raise UsageError(
            f"{what} {quote_value(requested)} is outside the allowed roots: use a path below {_format_roots(roots)}",
            field=field,
        )
    return place


def check_files(options: Json, folder: Path, roots: Sequence[Path]) -> None:
    """Raise UsageError for options that name a file outside the roots, before the file is read."""
    for name in FILE_OPTIONS:
        requested = options.get(name)
        if isinstance(requested, str):
            _resolve_within(name, requested, folder, roots, f"options.{name}")


def check_search(search: Any, asked: Any, folder: Path, roots: Sequence[Path], settings: Settings) -> None:
    """Raise UsageError unless the search uses a folder inside the roots or an address configured by the owner."""
    kind, _, value = str(search or "").partition(":")
    takes = getattr(SEARCH.load(kind), "argument", "") if kind in SEARCH else ""
    if takes == "FOLDER":
        _resolve_within("search folder", value, folder, roots, "options.search")
    own = str(settings.search.get("base_url") or "").rstrip("/").removesuffix("/search").rstrip("/")
    if takes == "ADDRESS" and asked is not None and value != own:
        raise UsageError(
            f"search address {quote_value(value)} is not configured on this server: the owner can set it as base_url in [search]"
        )


def _format_roots(roots: Sequence[Path]) -> str:
    return ", ".join(map(str, roots))


# Members


def check_members(members: Iterable[str], settings: Settings) -> None:
    """Raise UsageError for members the owner has not configured, such as other endpoints or model files."""
    named = set(_configured_members(settings))
    for member in members:
        kind, name = split_member(member)
        plain = kind in (*UNRESTRICTED_KINDS, *settings.providers, *MEMBERS.added) or (
            kind == "local" and "/" not in name
        )
        if not plain and member not in named:
            raise UsageError(
                f"member {quote_value(member)} is not configured on this server: the owner can add it to [models] or [seats]",
                field="seats",
            )


def _configured_members(settings: Settings) -> Iterator[str]:
    """Yield every member named in the settings."""
    yield from settings.models.values()
    yield from (value for name, value in settings.variables.items() if name.endswith("_MODEL"))
    for seat in (*settings.seats.values(), settings.chair):
        yield from filter(None, (seat.model, *(seat.fallback or ())))
    for roster in settings.rosters.values():
        for row in (*roster.get("seats", ()), roster.get("chair", {})):
            yield from filter(None, (row.get("model"), *(row.get("fallback") or ())))


# Caller options


def check_request(
    owner: Owner, caps: BudgetCaps, folder: Path, request: BaseModel, options: Json
) -> tuple[Settings, SettingFlags]:
    """Check the members and the cost of a request. Return the settings of its folder, and those of the request."""
    settings = owner.settings(folder)
    settings.require_trust()
    given = request.model_dump(mode="json", include=set(SettingFlags.__annotations__))
    named = {name: value for name, value in options.items() if isinstance(value, str)}  # others are refused later
    explorers = [named["explorer_model"]] if "explorer_model" in named else []
    check_members([*given["seats"].values(), *given["models"], *explorers], settings)
    given["profile"] = named.get("profile")
    given["max_cost"] = caps.effective_cap(BudgetCaps.from_settings(settings), given["max_cost"])
    return settings, cast("SettingFlags", {name: value for name, value in given.items() if is_filled(value)})


def is_filled(value: Any) -> bool:
    """Return whether a value of a form is not empty. 0 is a value."""
    return bool(value) or (isinstance(value, int | float) and value is not False)


def refuse_owner_options(options: Json) -> None:
    """Raise UsageError for options that only the server owner may set."""
    for name in OWNER_OPTIONS:
        if name in options:
            raise UsageError(
                f"{name} can only be set by the owner of this server, nothing was spent: omit it",
                field=f"options.{name}",
            )


MAX_FOLDER_ENTRIES = 10_000  # per folder


class FileEntry(TypedDict):
    """A file or a folder below a root."""

    name: str
    path: str
    kind: Literal["file", "folder"]
    bytes: int | None


class FoundFiles(TypedDict):
    """Files whose path contains the words of a search."""

    files: list[FileEntry]
    more: bool  # other files match too


class FilePreview(TypedDict):
    """The beginning of a text file as the packet would show it."""

    path: str
    bytes: int
    tokens: int  # estimated, of the whole file
    text: str
    cut: bool
    secrets: list[str]  # where the packet gate finds them


def list_folder(root: Path, path: str) -> list[FileEntry]:
    """List a folder below the root, folders first. Symlinks are followed if their target is inside the root."""
    root = root.resolve()
    folder = root / relative_to_root(root, path or ".")
    place = _resolve_visible(root, folder)
    shown = f'"{format_path(path)[:200]}"'
    if place is None:
        raise UsageError(f"{shown} cannot be listed: choose a folder inside this root")
    if not place.is_dir():
        raise UsageError(f"{shown} is not a folder: choose an existing folder")
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in islice(found, MAX_FOLDER_ENTRIES + 1)]
    except OSError as error:
        raise UsageError(f"{shown} cannot be read ({error.strerror}): choose another folder") from None
    if len(names) > MAX_FOLDER_ENTRIES:
        raise UsageError(f"{shown} has more than {MAX_FOLDER_ENTRIES:,} entries: choose a folder below it")
    entries = [entry for name in names if (entry := _describe_entry(root, folder / name))]
    return sorted(entries, key=lambda entry: (entry["kind"] == "file", entry["name"].casefold()))


MAX_FOUND_FILES = 100
PREVIEW_CHARS = 20_000


def search_files(root: Path, words: str) -> FoundFiles:
    """Return {files, more}: files below the root whose path contains every word, names that match first."""
    root = root.resolve()
    wanted = words.casefold().split()

    def has_words(text: str) -> bool:
        return all(word in text.casefold() for word in wanted)

    def rank(path: str) -> tuple[bool, int, str]:
        return not has_words(path.rpartition("/")[2]), len(path), path

    paths = sorted(filter(has_words, list_files(find_repo(root), root)), key=rank)
    entries = (_describe_entry(root, root / path) for path in paths)
    files = (entry for entry in entries if entry and entry["kind"] == "file")
    found = list(islice(files, MAX_FOUND_FILES + 1))  # one more, to know whether there are more
    return {"files": found[:MAX_FOUND_FILES], "more": len(found) > MAX_FOUND_FILES}


def preview_file(root: Path, path: str) -> FilePreview:
    """Return the beginning of a text file below the root as the packet would show it, its size, and why it would be
    refused.

    The text comes from the gate of the packet: what that masks or refuses is not shown here either.
    """
    root = root.resolve()
    name = relative_to_root(root, path)
    place, shown = _resolve_visible(root, root / name), f'"{format_path(path)[:200]}"'
    if place is None:
        raise UsageError(f"{shown} cannot be shown: choose a file inside this root")
    try:
        content = read_text_bytes(root, place.relative_to(root).as_posix(), MAX_FILE_BYTES)
    except Unreadable as error:
        raise UsageError(f"{shown} cannot be shown ({error.why}): choose a text file") from None
    baseline = Baseline(root, trust=TrustSource(os.environ))
    strict, masking = Gate(root, baseline=baseline), Gate(root, redact=True, baseline=baseline)
    strict.read_file(name, content)
    text = masking.read_file(name, content)
    if text is None:
        why = next((skipped.why for skipped in masking.skipped.values()), "refused")
        raise UsageError(f"{shown} cannot be shown ({why}): choose a text file")
    return {
        "path": name,
        "bytes": len(content),
        "tokens": estimate_tokens(text),
        "text": text[:PREVIEW_CHARS],
        "cut": len(text) > PREVIEW_CHARS,
        "secrets": list(strict.secret_locations)[:MAX_LISTED_SECRETS],
    }


def _describe_entry(root: Path, place: Path) -> FileEntry | None:
    """Describe one entry. Return None if it is not to be seen, or is neither a file nor a folder."""
    target = _resolve_visible(root, place)
    if target is None or repair_surrogates(place.name) != place.name:
        return None
    path = place.relative_to(root).as_posix()
    if find_secrets(path):  # the gate refuses a file whose name shows one
        return None
    try:
        status = target.stat()
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return {"name": place.name, "path": path, "kind": "folder", "bytes": None}
    is_file = stat.S_ISREG(status.st_mode)
    return {"name": place.name, "path": path, "kind": "file", "bytes": status.st_size} if is_file else None


def _resolve_visible(root: Path, place: Path) -> Path | None:
    """Resolve a path with its symlinks. Return None if it does not exist, is private or leads outside the root."""
    try:
        target = place.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    is_visible = target.is_relative_to(root) and not _is_hidden(root, place) and not _is_hidden(root, target)
    return target if is_visible else None


def _is_hidden(root: Path, place: Path) -> bool:
    """Return whether an entry is private, or is a folder in which every file would be denied."""
    name = place.relative_to(root).as_posix()
    return is_private(name) or has_secret_name(f"{name}/any" if place.is_dir() else name)
