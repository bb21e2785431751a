"""Standard output and error in a CI job: none of their lines is a command for the CI system."""

from __future__ import annotations

import io
import os
import sys

# Variables that CI systems set. Their logs run the commands that they contain.
CI_VARIABLES = (
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "TF_BUILD",
    "TEAMCITY_VERSION",
    "BUILDKITE",
    "JENKINS_URL",
    "TRAVIS",
    "CIRCLECI",
    "APPVEYOR",
    "BITBUCKET_BUILD_NUMBER",
    "CODEBUILD_BUILD_ID",
    "DRONE",
)


class CiLog(io.TextIOWrapper):
    """An output stream that neutralizes the commands of CI systems in everything that is written to it."""

    def write(self, text: str, /) -> int:
        from council.text_cleanup import neutralize_commands  # not imported by a command without CI

        super().write(neutralize_commands(text))
        return len(text)

    def write_commands(self, text: str) -> None:
        """Write text whose commands are meant, such as the annotations of `--format github`."""
        super().write(text)


def is_ci() -> bool:
    """Return whether the output may reach the log of a CI system."""
    return any(os.environ.get(name, "").lower() not in ("", "0", "false") for name in CI_VARIABLES)


def guard_output() -> None:
    """Guard both outputs in a CI job, unless a person reads them at a terminal."""
    if not is_ci():
        return
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.flush()
            how = {part: getattr(stream, part) for part in ("encoding", "errors", "line_buffering", "write_through")}
            setattr(sys, name, CiLog(stream.detach(), **how))
