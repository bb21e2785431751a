"""Files of a packet: classify their names, read and decode them safely, list and match them, extract PDF text."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase, translate
from functools import cached_property
from pathlib import Path, PurePosixPath

from council.errors import UsageError
from council.packet.git import GitFailed, Repo
from council.packet.secret_filter import redact_text
from council.text_cleanup import strip_invisible
from council.types import repair_surrogates

SECRET_FILE_PATTERNS = (
    ".env*", "*.pem", "id_*", ".npmrc", ".netrc", "_netrc", "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.backup",
    "kubeconfig", "*.kubeconfig", "credentials*", ".credentials*", ".pgpass", ".pypirc", ".git-credentials", ".dockercfg",
    ".htpasswd", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ovpn", "*.agekey",
    ".*_history", "fish_history", ".vault-token", ".vault[-_]pass*", "vault[-_]pass*", "master.key", ".terraformrc", "terraform.rc", "rclone.conf", ".dockerconfigjson", ".passwd-s3fs",
    ".smbcredentials", "local.settings.json", "service[-_]account*.json", "client_secret*.json", "*[-_.]credentials.json",
    "secret.y*ml", "secrets.y*ml", "secrets.*.y*ml", "secrets.json", "secrets.toml", "secrets.ini", "secrets.env", "secrets.properties",
)  # fmt: skip
SECRET_PATH_PATTERNS = (
    ".ssh/*", ".aws/*", ".kube/config", ".docker/config.json", ".gnupg/*", ".azure/*token*", "gcloud/*credentials*", "gh/hosts.yml", "etc/shadow",
)  # fmt: skip
PRIVATE_HINTS = (".git", "git~", ".agents")
# credentials.py is source code and .env.example is a template; their contents are checked like any other file.
ENV_TEMPLATE = re.compile(r"\.env(?:\.[\w-]+)*[.-](?:example|sample|template|tmpl|dist)", re.IGNORECASE)
SECRETS_TEMPLATE = re.compile(r"[.-](?:example|sample|template|tmpl|tpl|dist|enc|encrypted|sops|schema)\.")
SOURCE_SUFFIXES = set("py pyi js mjs cjs jsx ts tsx vue svelte go rs java kt kts scala rb php c h cc cpp hpp cs swift m ex exs erl clj hs ml lua dart sql sh md rst adoc html css scss proto graphql".split())  # fmt: skip # noqa: SIM905
KNOWN_SUFFIXES = SOURCE_SUFFIXES | set("txt json jsonl yaml yml toml ini cfg conf env csv tsv xml svg bash zsh ps1 bat tf ipynb lock log diff patch htm less vb r pl pdf".split())  # fmt: skip # noqa: SIM905
PRODUCT_NAME = re.compile(
    r"(?i)(?:node|next|nuxt|vue|react|ember|express|three|d3|p5|chart|nest|solid|backbone|require|moment|alpine|discord|ractive|asp|ml)\.(?:js|ts|net)"
)
LOCK_FILES = {
    "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "bun.lockb", "packages.lock.json", "gradle.lockfile",
    "package.resolved", "conda-lock.yml", ".terraform.lock.hcl",
}  # fmt: skip


# Names


def has_secret_name(path: str) -> bool:
    """Return whether a file is treated as secret because of its name."""
    lower_path = PurePosixPath(path.lower())
    if any(fnmatchcase("/".join(lower_path.parts[-2:]), place) for place in SECRET_PATH_PATTERNS):
        return True
    return any(fnmatchcase(lower_path.name, name) and not _is_exempt(lower_path, name) for name in SECRET_FILE_PATTERNS)


def _is_exempt(path: PurePosixPath, name: str) -> bool:
    if name == ".env*":
        return bool(ENV_TEMPLATE.fullmatch(path.name))
    if name in ("id_*", "credentials*", ".credentials*"):
        return path.suffix.removeprefix(".") in SOURCE_SUFFIXES and not re.match(
            r"id_(?:rsa|dsa|ecdsa|ed25519)\b", path.name
        )
    if name.startswith("secret"):  # templates of Helm contain no values
        return path.parent.name == "templates" or bool(SECRETS_TEMPLATE.search(path.name))
    return False


def is_lock_file(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return name in LOCK_FILES or name.endswith((".lock", "-lock.json"))


def is_private(path: str) -> bool:
    """Return whether a file is in .git or .agents, which are never material (the environment file is read by name)."""
    lower = path.lower()  # some file systems ignore case
    if not any(hint in lower for hint in PRIVATE_HINTS) and lower.isascii():
        return False
    parts = [_fold_part(part) for part in re.split(r"[/\\]", lower) if part not in ("", ".")]
    return not {".git", "git~1"}.isdisjoint(parts) or parts[:1] == [".agents"]


def _fold_part(part: str) -> str:
    """Return a name as file systems compare it that ignore invisible characters, streams and final dots."""
    plain = unicodedata.normalize("NFKC", strip_invisible(part)[0])
    return plain.partition(":")[0].rstrip(". ").casefold()


def has_known_suffix(path: str) -> bool:
    """Return whether a word ends like a file name: `core.py`, but not the product name `Node.js`."""
    name = PurePosixPath(path.lower())
    return bool(name.stem) and name.suffix.removeprefix(".") in KNOWN_SUFFIXES and not PRODUCT_NAME.fullmatch(path)


def format_path(path: str) -> str:
    """Return a path that is safe to print: one line, no invisible characters, secrets masked."""
    plain = path.encode("utf-8", "replace").decode("utf-8", "replace")
    return redact_text("".join(char if char.isprintable() else "?" for char in plain))


# Words that may name a file

GLOB_CHARS = re.compile(r"[*?\[]")
# A word names a path only if it has a mark of a path or an upper-case letter; other letters than a-z may be that.
PATH_WORD = re.compile(r"(?<!\S)(?:[a-z\d_]|[^\w\s/.*?\[\\])*+\S+")


class FolderNames:
    """Names in a folder, listed once when they are needed, so that a word which names nothing costs no look-up."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def exists(self, path: str) -> bool:
        """Return whether a path relative to the folder exists; a broken link does. `-` means standard input."""
        try:
            return bool(path) and path != "-" and self._has_start(path) and os.path.lexists(self.root / path)
        except ValueError:
            return False

    def matches(self, pattern: str) -> bool:
        """Return whether a glob may match: a name in the folder begins like it.

        A sentence with a question mark does not.
        """
        start = pattern[: found.start()] if (found := GLOB_CHARS.search(pattern)) else pattern
        if self._names is None or start.startswith("."):
            return True
        folder, slash, _ = start.partition("/")
        return _fold(folder) in self._names if slash else any(name.startswith(_fold(start)) for name in self._names)

    def may_start_name(self, word: str) -> bool:
        """Return whether a path with spaces may begin with this word."""
        return "/" in word or self._first_words is None or _fold(word) in self._first_words

    @property
    def has_spaces(self) -> bool:
        """Whether a name in the folder has a space."""
        return self._first_words is None or bool(self._first_words)

    def _has_start(self, path: str) -> bool:
        start = path.partition("/")[0]
        return self._names is None or start in ("", ".", "..") or "\\" in start or _fold(start) in self._names

    @cached_property
    def _names(self) -> frozenset[str] | None:
        try:
            with os.scandir(self.root) as found:
                return frozenset(_fold(entry.name) for entry in found)
        except OSError:  # it may be searched but not listed
            return None

    @cached_property
    def _first_words(self) -> frozenset[str] | None:
        return None if self._names is None else frozenset(name.partition(" ")[0] for name in self._names if " " in name)


def _fold(name: str) -> str:
    """Return the form in which names are compared: some file systems ignore case and the form of accents."""
    return name.casefold() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


# Reading

SNIFF_BYTES = 8_192
CONTROL_BYTES = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")  # without ESC: terminal logs contain it
SPECIAL_FILES = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISLNK, "a link"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class Unreadable(Exception):
    """A file that cannot be read, with the reason.

    `is_special` marks files without text: binary files, folders, links, pipes, devices.
    """

    def __init__(self, why: str, *, is_special: bool = False, binary: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.is_special = is_special or binary
        self.binary = binary


def relative_to_root(root: Path, path: str) -> str:
    """Return the path relative to the root, with forward slashes, or raise UsageError if it is outside."""
    if "\0" in path:
        raise UsageError("a path contains a NUL character: remove it")
    place = Path(os.path.normpath(root.resolve() / path))
    if not place.is_relative_to(root.resolve()):
        raise UsageError(
            f'"{format_path(path)[:200]}" is outside the folder council was started in: start it in a folder that contains both'
        )
    return place.relative_to(root.resolve()).as_posix()


def read_text_bytes(root: Path, path: str, max_bytes: int) -> bytes:
    """Return the bytes of a text file below the root, or raise Unreadable."""
    content, size = read_regular_file(root, path, max_bytes)
    if is_binary(content):
        raise Unreadable(f"binary, {_format_size(size)}" if size > max_bytes else "binary", binary=True)
    if size > max_bytes or len(content) > max_bytes:
        raise Unreadable(f"{_format_size(max(size, len(content)))}, over {_format_size(max_bytes)} a file")
    return content


def read_regular_file(root: Path, path: str, max_bytes: int) -> tuple[bytes, int]:
    """Return the bytes of a regular file below the root and its size; only the start if it is too large.

    Stat first, so that nothing that could block or never end is opened."""
    try:
        root = root.resolve()
        name = _resolve_folders(root, path)
        _check_regular(os.lstat(root / name))
        handle = _open_below(root, name)
        with os.fdopen(handle, "rb") as stream:
            size = _check_regular(os.fstat(handle))
            return stream.read(SNIFF_BYTES if size > max_bytes else max_bytes + 1), size
    except (OSError, ValueError, RuntimeError) as error:  # a link cycle raises RuntimeError up to Python 3.12
        raise Unreadable(f"cannot be read ({getattr(error, 'strerror', None) or 'no such name'})") from error


def _resolve_folders(root: Path, path: str) -> str:
    """Return the name of a file with the links of its folders resolved.

    A link gives access to no other file than its name.
    """
    place = root / path
    if place == root:
        raise Unreadable("a folder", is_special=True)
    parent = place.parent.resolve()
    if not parent.is_relative_to(root):
        raise Unreadable("behind a link that points outside the root", is_special=True)
    name = (parent / place.name).relative_to(root).as_posix()
    if name != PurePosixPath(path).as_posix():
        if is_private(name) and not is_private(path):
            raise Unreadable("behind a link to a folder that is never included in a packet", is_special=True)
        if has_secret_name(name) and not has_secret_name(path):
            raise Unreadable("behind a link to a secret file name", is_special=True)
    return name


def _open_below(root: Path, name: str) -> int:
    """Open a file without following links: a folder or the file may have been replaced by one since the check."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe would block
    if os.open not in os.supports_dir_fd:
        return os.open(root / name, flags)
    of_folder = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
    *folders, last = PurePosixPath(name).parts
    folder = os.open(root, of_folder)
    try:
        for inner in folders:
            outer, folder = folder, os.open(inner, of_folder | os.O_NOFOLLOW, dir_fd=folder)
            os.close(outer)
        return os.open(last, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _check_regular(status: os.stat_result) -> int:
    for is_it, what in SPECIAL_FILES:
        if is_it(status.st_mode):
            raise Unreadable(what, is_special=True)
    return status.st_size


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:SNIFF_BYTES]


def resolve_link(root: Path, path: str) -> str | None:
    """Return the target of a link relative to the root; None if it is no link. Raise UsageError if it is outside."""
    place = root.resolve() / path
    if not place.is_symlink():
        return None
    try:
        target = place.resolve()
    except (OSError, RuntimeError) as error:
        raise UsageError(f'"{format_path(path)}" is a link that points to itself: name the file itself') from error
    if not target.is_relative_to(root.resolve()):
        raise UsageError(
            f'"{format_path(path)}" is a link that points outside the folder council was started in: name a file inside it'
        )
    if not target.exists():
        raise UsageError(f'"{format_path(path)}" is a broken link: name the file itself')
    return target.relative_to(root.resolve()).as_posix()


def decode_text(content: bytes) -> tuple[str, str]:
    """Return text without its byte order mark, and a remark if it is not valid UTF-8."""
    try:
        return content.decode("utf-8").removeprefix("\ufeff"), ""
    except UnicodeDecodeError:
        replaced = content.decode("utf-8", "replace").removeprefix("\ufeff")
    if re.search("[^\0-\x7f\ufffd]", replaced):  # most of it is valid UTF-8
        return replaced, "is not valid UTF-8: unreadable bytes were replaced"
    for encoding, name in (("cp1252", "Windows-1252"), ("latin-1", "Latin-1")):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(encoding), f"is not UTF-8 and was read as {name}"
    raise AssertionError("Latin-1 decodes every byte")


def encode_text(text: str) -> bytes:
    """Return the original bytes of a text that was decoded with surrogateescape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return repair_surrogates(text).encode()


def is_text(content: bytes) -> bool:
    """Return whether bytes without a file name are text: not binary, and valid UTF-8 or free of control bytes."""
    return not is_binary(content) and not (decode_text(content)[1] and CONTROL_BYTES.search(content))


def _format_size(size: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} bytes"


# Listing and matching

MAX_WALKED_FILES = 50_000  # walked without git
MAX_MATCHES = 20  # a word with more matches is ignored
SKIPPED_FOLDERS = {
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".mypy_cache",
    ".ruff_cache",
}
UNMATCHED_WORDS = set(  # words of a target that never match a path
    "the this that these those and but for with our your its his her their from into about over not are was were how why what which who when "  # noqa: SIM905
    "where all any new use using can should could would does did has have had will more than then them they there here out off".split()
)


def list_files(repo: Repo | None, root: Path, folder: str = "") -> list[str]:
    """Return the files below a folder, sorted: those git does not ignore, or all but the folders of tools."""
    names: list[str] = []
    with contextlib.suppress(GitFailed):
        names = [name for name in repo.list_files(folder) if os.path.lexists(f"{root}/{name}")] if repo else []
    # A folder that git ignores can still be named.
    return [name for name in names or _walk_files(root, folder) if not is_private(name)]


def _walk_files(root: Path, folder: str) -> list[str]:
    paths: list[str] = []
    for place, folders, names in os.walk(root / folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        prefix = f"{Path(place).relative_to(root).as_posix()}/".removeprefix("./")
        paths += (prefix + name for name in names)
        if len(paths) > MAX_WALKED_FILES:
            raise UsageError(
                f'"{format_path(folder) or "."}" contains more than {MAX_WALKED_FILES:,} files: name a smaller folder'
            )
    return sorted(paths)


def has_wildcard(text: str) -> bool:
    return bool(GLOB_CHARS.search(text))


def is_glob(text: str) -> bool:
    return has_wildcard(text) and bool(re.search(r"[./]", text))


MAX_GLOBS = 64  # into which a glob with `**` inside names is expanded
CHARACTER_CLASS = re.compile(r"\[([!^]?\]?[^\]/]*)\]")


def match_glob(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that match a glob; `*` stays within a folder, `**` does not.

    Raise re.error for an invalid one.
    """
    globs = [list(map(_compile_part, glob.split("/"))) for glob in _expand_stars(pattern.removeprefix("./"))]
    return [name for name in names if any(_matches_parts(parts, name.split("/")) for parts in globs)]


def _expand_stars(pattern: str) -> list[str]:
    """Return the globs that match what a glob matches, in which each `**` stands for folders alone."""
    globs = [""]
    for piece in re.findall(rf"\*\*/+|\*+|{CHARACTER_CLASS.pattern.replace('(', '(?:')}|.", pattern, re.DOTALL):
        if piece.startswith("**/"):
            globs = [
                glob + choice
                for glob in globs
                for choice in (["**/"] if glob[-1:] in "/" else ["", "?*/**/", "/*/**/"])
            ]
        else:
            globs = [glob + choice for glob in globs for choice in (["*", "*/**/*"] if piece[:2] == "**" else [piece])]
        if len(globs) > MAX_GLOBS:
            raise re.error("too many stars")
    return globs


def _compile_part(part: str) -> re.Pattern[str] | None:
    """Return the pattern of a name in a glob, or None for any number of folders."""
    for chars in CHARACTER_CLASS.findall(part):
        if any(first > last for first, last in re.findall("(.)-(.)", chars)):
            raise re.error("bad character range")
    return None if part == "**" else re.compile(translate(part.replace("[^", "[!")))


def _matches_parts(parts: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    ends = {0}  # how many names the parts so far may stand for
    for part in parts:
        if part is None:
            ends = set(range(min(ends, default=len(names)), len(names)))
        else:
            ends = {end + 1 for end in ends if end < len(names) and part.match(names[end])}
    return len(names) in ends


def match_words(text: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the words that equal a part of a path or its stem, with the paths they match: `auth` → src/auth/."""
    candidates = dict.fromkeys(word for word in _normalize_words(text) if len(word) > 2 and word not in UNMATCHED_WORDS)
    matches: dict[str, dict[str, None]] = {word: {} for word in candidates}
    for name in names:
        for key, place in _iter_path_parts(name):
            if key in matches:
                matches[key][place] = None
    outermost = {word: _keep_outermost(list(places)) for word, places in matches.items()}
    return {word: places for word, places in outermost.items() if 0 < len(places) <= MAX_MATCHES}


def _normalize_words(text: str) -> Iterator[str]:
    return (word.strip("\"'`()[]<>.,;:!?").casefold() for word in text.split())


def _iter_path_parts(name: str) -> Iterator[tuple[str, str]]:
    path = PurePosixPath(name)
    for depth, part in enumerate(path.parts[:-1], 1):
        yield part.casefold(), "/".join(path.parts[:depth]) + "/"
    yield path.name.casefold(), name
    yield path.stem.casefold(), name


def _keep_outermost(places: Sequence[str]) -> list[str]:
    folders = {place for place in places if place.endswith("/")}
    return [place for place in places if not any(f"{parent}/" in folders for parent in PurePosixPath(place).parents)]


# PDF files

MAX_PDF_BYTES = 16 * 1024 * 1024  # bytes of the file
MAX_PDF_PAGES = 500


def extract_pages(content: bytes) -> list[str]:
    """Return the text of each page, in order."""
    try:
        import pypdf
    except ImportError:
        raise Unreadable('a PDF: install support with pip install "model-council[pdf]"') from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every flaw of a file
    try:
        pages = pypdf.PdfReader(io.BytesIO(content)).pages
        return [pages[n].extract_text() for n in range(min(len(pages), MAX_PDF_PAGES))]
    except Exception as error:  # broken or encrypted files raise many types
        raise Unreadable("a PDF that cannot be read") from error
