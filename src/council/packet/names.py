"""Classification of files by name: secret, lock file, private."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from council.packet.secrets import redact_text

SECRET_FILE_PATTERNS = (
    ".env*", "*.pem", "id_*", ".npmrc", ".netrc", "_netrc", "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.backup",
    "kubeconfig", "*.kubeconfig", "credentials*", ".credentials*", ".pgpass", ".pypirc", ".git-credentials", ".dockercfg",
    ".htpasswd", ".my.cnf", ".s3cfg", ".boto", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
)  # fmt: skip
SECRET_PATH_PATTERNS = (".ssh/*", ".aws/*", ".kube/config", ".docker/config.json", ".gnupg/*")
# credentials.py is source code and .env.example is a template; their contents are checked like any other file.
ENV_TEMPLATE = re.compile(r"\.env(?:\.[\w-]+)*[.-](?:example|sample|template|tmpl|dist)", re.IGNORECASE)
SOURCE_SUFFIXES = set("py pyi js mjs cjs jsx ts tsx vue svelte go rs java kt kts scala rb php c h cc cpp hpp cs swift m ex exs erl clj hs ml lua dart sql sh md rst adoc html css scss proto graphql".split())  # fmt: skip # noqa: SIM905
KNOWN_SUFFIXES = SOURCE_SUFFIXES | set("txt json jsonl yaml yml toml ini cfg conf env csv tsv xml svg bash zsh ps1 bat tf ipynb lock log diff patch htm less vb r pl pdf".split())  # fmt: skip # noqa: SIM905
PRODUCT_NAME = re.compile(
    r"(?i)(?:node|next|nuxt|vue|react|ember|express|three|d3|p5|chart|nest|solid|backbone|require|moment|alpine|discord|ractive|asp|ml)\.(?:js|ts|net)"
)
LOCK_FILES = {
    "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "bun.lockb", "packages.lock.json", "gradle.lockfile",
    "package.resolved", "conda-lock.yml", ".terraform.lock.hcl",
}  # fmt: skip


def has_secret_name(path: str) -> bool:
    """Return whether a file is treated as secret because of its name."""
    whole = PurePosixPath(path.lower())
    if any(fnmatchcase("/".join(whole.parts[-2:]), place) for place in SECRET_PATH_PATTERNS):
        return True
    return any(fnmatchcase(whole.name, name) and not _is_exempt(whole, name) for name in SECRET_FILE_PATTERNS)


def _is_exempt(path: PurePosixPath, name: str) -> bool:
    if name == ".env*":
        return bool(ENV_TEMPLATE.fullmatch(path.name))
    if name in ("id_*", "credentials*", ".credentials*"):
        return path.suffix.removeprefix(".") in SOURCE_SUFFIXES and not re.match(
            r"id_(?:rsa|dsa|ecdsa|ed25519)\b", path.name
        )
    return False


def is_lock_file(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return name in LOCK_FILES or name.endswith((".lock", "-lock.json"))


def is_private(path: str) -> bool:
    """Return whether a file is in .git or .agents, which are never material (the environment file is read by name)."""
    parts = PurePosixPath(path.lower()).parts  # some file systems ignore case
    return ".git" in parts or parts[:1] == (".agents",)


def has_known_suffix(path: str) -> bool:
    """Return whether a word ends like a file name: `core.py`, but not the product name `Node.js`."""
    name = PurePosixPath(path.lower())
    return bool(name.stem) and name.suffix.removeprefix(".") in KNOWN_SUFFIXES and not PRODUCT_NAME.fullmatch(path)


def format_path(path: str) -> str:
    """Return a path that is safe to print: one line, no control characters, secrets masked."""
    plain = path.encode("utf-8", "replace").decode("utf-8", "replace")
    return redact_text(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", "?", plain))
