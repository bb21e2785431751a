"""Workspace trust: settings of a project's files that apply only after the user has trusted them.

A request has the settings of one file that need trust. Its hash covers these settings, the paths they lead to and the
content of scripts, so that a changed file needs trust again.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from council.errors import ConfigError, TrustRequired, wording
from council.settings.catalogue import LOCAL_MEMBER, split_member
from council.settings.config_files import config_folder, format_toml, write_private
from council.settings.schema import USER_KEYS, Access, access_of, nest_keys, quote_value, split_key

TRUST_VARIABLE = "COUNCIL_TRUST"  # hashes, separated by commas or blanks
PROJECT_FILES = ("council.toml", "pyproject.toml")
PATH_KEYS = ("report_dir", "search.folder")
MAX_SCRIPT_BYTES = 10_000_000
MAX_NAMED_KEYS = 3  # keys that an error names
DESTINATION_KEYS = ("search.base_url", "search.folder", "report_dir")  # described as destinations
_HASH = re.compile(r"[0-9a-f]{64}")
Row = tuple[str, Any]  # dotted key and value


@dataclass(frozen=True)
class TrustRequest:
    """Settings of one file that need trust."""

    file: Path
    project: Path  # the folder that paths have to stay in
    values: Mapping[str, Any]  # dotted key → value
    run_folder: Path  # relative paths of settings belong to it
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # as they would be, with the user's values

    @property
    def name(self) -> str:
        """The name of the file in the project."""
        return _inside(self.file, self.project) or str(resolve(self.file))

    @property
    def provider_names(self) -> list[str]:
        """The providers that the values add or change."""
        return list(dict.fromkeys(split_key(key)[1] for key in self.values if key.startswith("providers.")))

    @property
    def members(self) -> list[str]:
        """The members among the values, without duplicates."""
        return list(dict.fromkeys(member for value in self.values.values() for member in iter_members(value)))

    @cached_property
    def digest(self) -> str:
        """The hash of the values, of paths out of the project, and of scripts: the same in every clone."""
        facts = {
            "keys": dict(self.values),
            "outside": {key: str(resolve(path)) for key, path in self._iter_paths() if not _inside(path, self.project)},
            "scripts": {name: _hash_file(path) for name, path in self._iter_scripts()},
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()

    def _iter_paths(self) -> Iterator[tuple[str, Path]]:
        for key in PATH_KEYS:
            if key in self.values:
                yield key, self._resolve_setting(key)
        for member in self.members:
            kind, name = split_member(member)
            if kind == "local" and member != LOCAL_MEMBER:
                yield member, self.run_folder / _expand(name)
        for name, path in self._iter_scripts():
            yield name, path
            if record := _read_record(path):
                yield f"record of {name}", self.run_folder / record

    def _iter_scripts(self) -> Iterator[tuple[str, Path]]:
        for member in self.members:
            kind, name = split_member(member)
            if kind == "scripted" and name:
                yield member, self.run_folder / name

    def _resolve_setting(self, key: str) -> Path:
        return self.run_folder / _expand(str(self.values[key]))

    # For people

    def describe(self) -> list[str]:
        """Return everything that the settings change, one line each: first what goes where."""
        shown = tuple(f"providers.{name}.{key}" for name in self.provider_names for key in ("base_url", "api_key_env"))
        others = [
            f"{key} = {format_toml(value)}"
            for key, value in self.values.items()
            if value is not None and not key.startswith("prices.") and key not in (*shown, *DESTINATION_KEYS)
        ]
        return [*self.destinations, *self._describe_prices(), *others]

    @property
    def destinations(self) -> list[str]:
        """What would be sent, read and written where, one line each."""
        lines = [self._describe_provider(name) for name in self.provider_names]
        if "search.base_url" in self.values:
            lines.append(f"search queries are sent to {_show_url(self.values['search.base_url'])}")
        if "search.folder" in self.values:
            folder = self._show_path(self._resolve_setting("search.folder"))
            lines.append(f"searches read the files of {folder} and send passages of them")
        if "report_dir" in self.values:
            lines.append(f"reports are written to {self._show_path(self._resolve_setting('report_dir'))}")
        return [*lines, *self._describe_files()]

    def _describe_provider(self, name: str) -> str:
        row = self.providers[name]
        key = row.get("api_key_env")
        with_key = f"with the key in {key}" if key else "without a key"
        return f"questions and files for {name} are sent to {_show_url(row.get('base_url'))}, {with_key}"

    def _describe_prices(self) -> Iterator[str]:
        values = {key: value for key, value in self.values.items() if key.startswith("prices.")}
        for member, row in nest_keys(values).get("prices", {}).items():
            amounts = ", ".join(f"{name} ${amount:g}" for name, amount in row.items())
            yield f"{member} counts as {amounts} per million tokens, if your price or the list price is not higher"

    def _describe_files(self) -> Iterator[str]:
        for member in self.members:
            kind, name = split_member(member)
            if kind == "local" and member != LOCAL_MEMBER:
                yield f"{member} loads the model file {self._show_path(self.run_folder / _expand(name))}"
        for name, path in self._iter_scripts():
            record = _read_record(path)
            logs = f", which writes every request to {self._show_path(self.run_folder / record)}" if record else ""
            yield f"{name} takes its answers from {self._show_path(path)}{logs}"

    def _show_path(self, path: Path) -> str:
        return f"{resolve(path)}{'' if _inside(path, self.project) else ' (outside the project)'}"

    @property
    def summary(self) -> str:
        """The file and the first keys, for one line."""
        keys = [key for key, value in self.values.items() if value is not None] or list(self.values)
        more = f" and {len(keys) - MAX_NAMED_KEYS} more" if len(keys) > MAX_NAMED_KEYS else ""
        return f"{self.file} has settings that need trust ({', '.join(keys[:MAX_NAMED_KEYS])}{more})"

    def error(self) -> TrustRequired:
        """Return the error of a command that would have to apply the settings."""
        command = "council trust" if self.file.name in PROJECT_FILES else f"council trust {self.name}"
        how = wording(
            python=f"see and trust them with `{command}` at a terminal, or pass trust=True",
            cli=f"see and trust them with `{command}`, or pass --trust for this run",
            http=f"the owner of this server can run `{command}` in that folder",
        )
        return TrustRequired(f"{self.summary}, nothing was sent: {how}", self)


# What needs trust


def find_trusted_rows(rows: Sequence[Row], user_providers: Iterable[str]) -> dict[str, Any]:
    """Return those rows of a project's file that need trust. `user_providers` has the providers without the file."""
    if refused := next((key for key, _ in rows if key in USER_KEYS), None):
        raise ConfigError(
            f"{quote_value(refused)} is not allowed in the file of a project: put it into your own file, see `council config path`"
        )
    own = {split_key(key)[1] for key, _ in rows if key.startswith("providers.")} - set(user_providers)
    return {key: value for key, value in rows if _needs_trust(key, value, own)}


def _needs_trust(key: str, value: Any, project_providers: set[str]) -> bool:
    access = access_of(key)
    if access is Access.MEMBER:
        return any(_member_needs_trust(member, project_providers) for member in iter_members(value))
    return access is Access.TRUSTED


def _member_needs_trust(member: str, project_providers: set[str]) -> bool:
    """Return whether a member reads or writes a file, or is on a provider that only the project defines."""
    kind, name = split_member(member)
    is_file = (kind == "scripted" and bool(name)) or (kind == "local" and member != LOCAL_MEMBER)
    return is_file or kind in project_providers


def iter_members(value: Any) -> Iterator[str]:
    """Yield the members of a value of the configuration: one, a list, or the rows of a roster."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (member for key in ("model", "fallback") for member in iter_members(value.get(key)))
    elif isinstance(value, list | tuple):
        yield from (member for item in value for member in iter_members(item))


def _hash_file(path: Path) -> str:
    content = _read_start(path)
    return hashlib.sha256(content).hexdigest() if content is not None else "unreadable"


def _read_record(path: Path) -> str:
    """Return the file to which a script writes the requests, or ""."""
    try:
        record = tomllib.loads((_read_start(path) or b"").decode()).get("record")
    except ValueError:  # the member reports it
        return ""
    return str(record) if record else ""


def _read_start(path: Path) -> bytes | None:
    try:
        if not path.is_file():  # reading a pipe would block
            return None
        with path.open("rb") as file:
            return file.read(MAX_SCRIPT_BYTES)
    except (OSError, ValueError):
        return None


def resolve(path: Path) -> Path:
    """Return an absolute path without symbolic links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path.absolute()


def _inside(path: Path, project: Path) -> str:
    """Return the name of a path in the project, or "" if it leads out of it."""
    target, root = resolve(path), resolve(project)
    return target.relative_to(root).as_posix() if target.is_relative_to(root) else ""


def _expand(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~user of an unknown user
        return Path(path)


def _show_url(url: Any) -> str:
    """Return a URL with escapes for letters that can look like those of another host."""
    return str(url or "an unknown address").encode("ascii", "backslashreplace").decode()


# Stored trust


@dataclass(frozen=True, slots=True)
class TrustRow:
    """A trusted file: its project, its name there and the hash of its settings."""

    folder: str
    file: str  # relative to the project, if it is inside
    hash: str
    at: float
    parts: tuple[str, ...] = ()  # hashes of the rows of a list, each of which is trusted by itself

    @property
    def path(self) -> Path:
        return Path(self.folder) / self.file


class Trustable(Protocol):
    """What the user may trust: content of a file in a project."""

    @property
    def project(self) -> Path: ...

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...


class TrustSource(NamedTuple):
    """Where trust comes from: the variables, which also lead to the stored rows, and the flags of a run."""

    env: Mapping[str, str]
    flags: Mapping[str, Any] = MappingProxyType({})


def is_trusted(request: Trustable, env: Mapping[str, str], flags: Mapping[str, Any]) -> bool:
    """Return whether a request is trusted: by --trust, by the run that is resumed, by COUNCIL_TRUST, or stored."""
    if flags.get("trust") or request.digest in (flags.get("trusted") or ()) or request.digest in _listed_hashes(env):
        return True
    folder = str(resolve(request.project))
    return any((row.folder, row.hash) == (folder, request.digest) for row in load_trust(env))


def _listed_hashes(env: Mapping[str, str]) -> list[str]:
    hashes = env.get(TRUST_VARIABLE, "").replace(",", " ").lower().split()
    for one in hashes:
        if not _HASH.fullmatch(one):
            raise ConfigError(
                f"environment variable {TRUST_VARIABLE} has {quote_value(one)}, which is not a hash: "
                "list the hashes that `council trust --show` prints"
            )
    return hashes


def load_trust(env: Mapping[str, str]) -> list[TrustRow]:
    """Return the stored rows. A file that cannot be read trusts nothing."""
    try:
        rows = json.loads(_trust_file(env).read_text(encoding="utf-8"))
        return [_parse_trust_row(row) for row in rows]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def _parse_trust_row(row: Mapping[str, Any]) -> TrustRow:
    parts = tuple(map(str, row.get("parts", ())))
    return TrustRow(str(row["folder"]), str(row["file"]), str(row["hash"]), float(row["at"]), parts)


def load_trusted_parts(request: Trustable, env: Mapping[str, str]) -> frozenset[str]:
    """Return the hashes of the rows of a list that are trusted by themselves."""
    place = (str(resolve(request.project)), request.name)
    return frozenset(part for row in load_trust(env) if (row.folder, row.file) == place for part in row.parts)


def store_trust(request: Trustable, env: Mapping[str, str], parts: Iterable[str] = ()) -> None:
    """Trust a file as it is now. An earlier version of it is no longer trusted."""
    row = TrustRow(str(resolve(request.project)), request.name, request.digest, time.time(), tuple(parts))
    others = [one for one in load_trust(env) if (one.folder, one.file) != (row.folder, row.file)]
    _write_trust([*others, row], env)


def revoke_trust(folder: Path, env: Mapping[str, str]) -> list[TrustRow]:
    """Remove the trust in the files of a folder, and return its rows."""
    rows = load_trust(env)
    removed = [row for row in rows if row.folder == str(folder.resolve())]
    if removed:
        _write_trust([row for row in rows if row not in removed], env)
    return removed


def _trust_file(env: Mapping[str, str]) -> Path:
    """Return the file of trusted hashes, in the user's folder: a project can contain a data folder."""
    return config_folder(env) / "trust.json"


def _write_trust(rows: Sequence[TrustRow], env: Mapping[str, str]) -> None:
    write_private(_trust_file(env), json.dumps([asdict(row) for row in rows], indent=1) + "\n")
