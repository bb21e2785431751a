"""Links to the commits of a repository on GitHub or GitLab, made from the address of its remote."""

from __future__ import annotations

import re

# An address with a scheme, or as `git@host:owner/name.git`. The name and the password of a user are not kept.
REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@]*@)*(?P<host>[\w.-]+)(?::\d+)?/|(?:[\w.-]+@)?(?P<scp>[\w.-]+):/?)"
    r"(?P<path>[\w.~-]+(?:/[\w.~-]+)+)/?",
    re.ASCII,
)


def make_link(remote: str, commit: str) -> str:
    """Return the page of a commit; "" if the remote is neither on GitHub nor on GitLab."""
    found = REMOTE.fullmatch(remote.strip())
    if not found or not commit.isalnum():
        return ""
    host, path = (found["host"] or found["scp"]).lower(), found["path"].removesuffix(".git")
    labels = host.split(".")
    if "github" in labels:
        return f"https://{host}/{path}/commit/{commit}"
    if "gitlab" in labels:
        return f"https://{host}/{path}/-/commit/{commit}"
    return ""
