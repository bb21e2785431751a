"""Extension points. Each is one table, name -> "module:attr", and installed packages add rows by entry points.

Standard library only, because it is imported on every start. The tables are here, below all packages that use them,
so that the settings can check a name without importing the code behind it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council.errors import ConfigError, describe_error, is_interrupt

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


METADATA_SUFFIXES = (".dist-info", ".egg-info")
SECTION_PREFIX = b"[council."  # how the section of one of our groups begins in entry_points.txt


@dataclass(frozen=True, slots=True)
class Added:
    """One entry point of an installed package."""

    group: str
    name: str
    package: str
    entry: EntryPoint

    def load(self, what: str) -> Any:
        """Import the object, or raise ConfigError with one line that names the package."""
        try:
            return self.entry.load()
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self.error(what, error) from error

    def error(self, what: str, error: BaseException) -> ConfigError:
        cause = describe_error(error)
        return ConfigError(
            f'the {what} "{self.name}" of the package "{self.package}" failed ({cause}): fix or uninstall the package'
        )


@dataclass(frozen=True, slots=True)
class ExtensionPoint:
    """Shipped rows and the group of entry points that adds rows. A shipped name cannot be replaced."""

    group: str
    what: str  # one entry, for messages
    shipped: Mapping[str, str]

    @property
    def added(self) -> Mapping[str, Added]:
        """Return the rows of installed packages by name."""
        return {name: row for name, row in installed(self.group).items() if name not in self.shipped}

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.shipped, *self.added)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.shipped or name in self.added)

    def load(self, name: str) -> Any:
        """Import the object of a row, or raise ConfigError for a broken package."""
        return load_attribute(self.shipped[name]) if name in self.shipped else self.added[name].load(self.what)


@cache
def load_attribute(path: str) -> Any:
    """Import "module:attr"."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


@cache
def installed(group: str) -> Mapping[str, Added]:
    """Return the entry points of a group by name; the first package on the path wins."""
    if not _is_any_installed():
        return {}
    from importlib.metadata import entry_points

    found = (
        Added(group, entry.name, entry.dist.name if entry.dist else "unknown", entry)
        for entry in entry_points(group=group)
    )
    rows: dict[str, Added] = {}
    for row in found:
        rows.setdefault(row.name, row)
    return rows


@cache
def _is_any_installed() -> bool:
    """Return whether any package may have an entry point of ours.

    Importing importlib.metadata takes longer than the rest of `council --help`; this looks at the files only.
    """
    return any(_may_extend(place) for place in dict.fromkeys(sys.path))


def _may_extend(place: str) -> bool:
    try:
        with os.scandir(place or ".") as entries:
            names = [entry.path for entry in entries if entry.name.endswith(METADATA_SUFFIXES)]
    except NotADirectoryError:
        return True  # a zip file: leave it to importlib.metadata
    except OSError:
        return False
    return any(_has_section(name) for name in names)


def _has_section(folder: str) -> bool:
    try:
        return SECTION_PREFIX in Path(folder, "entry_points.txt").read_bytes()
    except OSError:
        return False


MEMBERS = ExtensionPoint(
    "council.members",
    "member",
    {
        "local": "council.members.local:make_local_member",
        "scripted": "council.members.scripted:make_scripted_member",
        "cli": "council.members.cli_agent:make_cli_member",
        "pai": "council.members.bridge:make_pai_member",
        "human": "council.members.human:make_human_member",
    },
)
WIRES = ExtensionPoint(
    "council.wires",
    "wire",
    {
        "openai": "council.members.wires.openai:OpenAIMember",
        "openai-responses": "council.members.wires.openai_responses:ResponsesMember",
        "anthropic": "council.members.wires.anthropic:AnthropicMember",
        "google": "council.members.wires.google:GoogleMember",
    },
)
SEARCH = ExtensionPoint(
    "council.search",
    "search provider",
    {
        "tavily": "council.search.tavily:Tavily",
        "brave": "council.search.brave:Brave",
        "searxng": "council.search.searxng:Searxng",
        "files": "council.search.local_files:LocalFiles",
    },
)
FORMATS = ExtensionPoint(
    "council.formats",
    "format",
    {
        "md": "council.render.markdown:render_run",
        "json": "council.render.report:render_run",
        "sarif": "council.render.sarif:render_run",
        "junit": "council.render.junit:render_run",
        "github": "council.render.github:render_run",
        "html": "council.render.html:render_run",
    },
)
