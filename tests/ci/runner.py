"""Run the steps of action.yml with their own shell commands, as GitHub does."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.fork_server import command_path
from tests.paths import ROOT

EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")


@dataclass
class Ended:
    code: int
    log: str
    summary: str
    outputs: dict[str, str]
    steps: list[str] = field(default_factory=list)  # names of the executed steps

    @property
    def annotations(self) -> list[str]:
        """Return the workflow commands that are not disabled by stop-commands."""
        commands, token = [], ""
        for line in self.log.splitlines():
            if token:
                token = "" if line == f"::{token}::" else token
            elif line.startswith("::stop-commands::"):
                token = line.rpartition("::")[2]
            elif line.strip().startswith("::") or "##[" in line:
                commands.append(line)
        return commands


class Runner:
    """One job in one checkout. `github` is the workflow context as nested dicts."""

    def __init__(self, checkout: Path, temp: Path, **github: Any) -> None:
        self.checkout, self.temp = checkout, temp
        self.action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
        self.github = {"repository": "shop/shop", "actor": "ada", "event": {}} | github

    def run(self, env: dict[str, str] | None = None, **inputs: str) -> Ended:
        """Run the steps until one fails. `fail_on="warn"` sets the input fail-on."""
        defaults = {name: str(spec.get("default", "")) for name, spec in self.action["inputs"].items()}
        named = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert set(named) <= set(defaults), "unknown input"
        context: dict[str, Any] = {"inputs": defaults | named, "github": self.github, "steps": {}}
        files = {name: self.temp / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
        code, log = 0, ""
        ran: list[str] = []
        for step in self.action["runs"]["steps"]:
            for name in ("GITHUB_OUTPUT", "GITHUB_PATH"):
                files[name].write_text("", encoding="utf-8")
            done = self._step(step, context, {name: str(path) for name, path in files.items()} | (env or {}))
            written = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
            context["steps"][step.get("id", "")] = {"outputs": dict(line.split("=", 1) for line in written)}
            code, log, ran = done.returncode, log + done.stdout, [*ran, step["name"]]
            if code:
                break
        outputs = {name: filled(spec["value"], context) for name, spec in self.action["outputs"].items()}
        summary = files["GITHUB_STEP_SUMMARY"]
        return Ended(code, log, summary.read_text(encoding="utf-8") if summary.exists() else "", outputs, ran)

    def _step(self, step: dict[str, Any], context: dict[str, Any], env: dict[str, str]) -> subprocess.CompletedProcess[str]:  # fmt: skip
        assert step["shell"] == "bash"
        own = {name: filled(str(value), context) for name, value in step.get("env", {}).items()}
        base = self.github.get("base_ref")
        forge = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "RUNNER_TEMP": str(self.temp),
            "PATH": command_path(),
        }
        forge |= {"GITHUB_BASE_REF": base} if base else {}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", filled(step["run"], context)], cwd=self.checkout,
            env={**os.environ, **forge, **own, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False, timeout=120,
        )  # fmt: skip


def filled(text: str, context: dict[str, Any]) -> str:
    """Replace expressions such as `${{ inputs.fail-on }}`. Unknown ones become empty, as on GitHub."""

    def value(found: re.Match[str]) -> str:
        place: Any = context
        for part in found[1].split("."):
            place = place.get(part, "") if isinstance(place, dict) else ""
        return str(place)

    done = EXPRESSION.sub(value, text)
    assert "${{" not in done, f"unsupported expression: {text}"
    return done
