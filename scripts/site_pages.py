"""mkdocs hook: add the Markdown files outside docs/ to the site, and adapt links that lead there.

README.md is the front page. Links are written for the repository (`../CONTRIBUTING.md`, `docs/cli.md`), so that they
work there; on the site they lead to the page of the same file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security-policy.md",  # docs/security.md is another page
    "benchmarks/README.md": "benchmarks.md",
    "examples": "examples.md",
    "examples/README.md": "examples.md",
}  # file or folder of the repository → page of the site
DOCS = "docs/"
FENCE = re.compile(r"^( *)(`{3,}).*?^\1\2$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")


def site_path(repository_path: str) -> str:
    """Return the path on the site of a file of the repository."""
    return PAGES.get(repository_path, repository_path.removeprefix(DOCS))


def repository_path(site_file: str) -> str:
    """Return the file of the repository that a page of the site is made from."""
    found = (path for path, page in PAGES.items() if page == site_file and (ROOT / path).is_file())
    docs = f"{DOCS}{site_file}"
    return docs if (ROOT / docs).is_file() else next(found, site_file)


def outside_files(names: list[str]) -> Iterator[str]:
    """Yield the files outside docs/ that pages link to; pages among them are searched too."""
    seen: set[str] = set()
    while names:
        page = names.pop()
        for target in _targets(page):
            if target in seen or target.startswith(DOCS) or target in PAGES or not (ROOT / target).is_file():
                continue
            seen.add(target)
            yield target
            if target.endswith(".md"):
                names.append(target)


def _targets(page: str) -> Iterator[str]:
    """Yield the linked files of a page, as paths from the root of the repository."""
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for found in LINK.finditer(text):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(page), found["path"]))


def rewrite_links(markdown: str, page: str) -> str:
    """Replace links between files of the repository with links between pages of the site."""
    here = posixpath.dirname(site_path(page))

    def replace(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), found["path"]))
        if not (ROOT / target).exists():
            return found[0]
        return posixpath.relpath(site_path(target), here or ".") + (found["anchor"] or "")

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(replace, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(replace, markdown[end:])])


# Called by mkdocs


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    pages = [path for path in PAGES if (ROOT / path).is_file() and not (ROOT / DOCS / PAGES[path]).is_file()]
    names = [*pages, *(f"{DOCS}{file.src_uri}" for file in files.documentation_pages())]
    for path in (*pages, *outside_files(names)):
        files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    return rewrite_links(markdown, repository_path(page.file.src_uri))
