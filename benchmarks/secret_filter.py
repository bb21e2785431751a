"""The secret filter compared with others: secrets stopped, look-alikes refused, and speed, over the same rows in one
run.

The rows are tests/data/secret_shapes.toml, written with the filter; tests/data/secret_cases, written by authors who had
not seen its rules; and 600 generated passwords in files of eight formats. `gitleaks-style` is one generic rule as such
tools have it, a name of a secret with a long random value, beside our formats of keys. detect-secrets runs with its
default plugins and filters, once with each row as a Python file and once as a YAML file, because its rules depend on
the suffix. It is used if this Python has it; `--install` installs it into a temporary environment. `--before REVISION`
adds an earlier version of the filter.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from measure import Spread, print_result

ROOT = Path(__file__).parents[1]
FILTER = "src/council/packet/secret_filter.py"
SUFFIXES = (".py", ".yaml")
WORKER = "--detect-secrets-worker"
HEAD = (
    "",
    "secrets stopped",
    "look-alikes refused",
    "files stopped",
    "files refused",
    "passwords stopped",
    "MB/s",
    "ratio",
)
# A generic rule: the name of a secret, a sign, and a value of at least ten characters with an entropy of 3.5 bits.
GENERIC = re.compile(
    r"(?i)[\w.-]{0,50}?(?:access|auth|api|credential|creds|key|passw(?:or)?d|secret|token)[\w .\t-]{0,20}[\s'\"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)"
    r"[`'\"\s=]{0,5}([\w.=-]{10,150})(?:[`'\"\s;]|\\[nr]|$)"
)
MIN_ENTROPY = 3.5
Texts = dict[str, list[str]]


def main() -> None:
    options = _parse_arguments()
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    from tests.packet.secret_cases import SETS, load_cases
    from tests.packet.secret_table import load_look_alikes, load_secrets
    from tests.packet.test_generated_passwords import FORMATS, make_passwords

    from council.packet.files import has_secret_name
    from council.packet.secret_filter import find_secrets

    rows = {"secrets": load_secrets(), "look-alikes": load_look_alikes()}
    texts = {kind: [row.text for row in found if not row.path] for kind, found in rows.items()}
    cases = [load_cases(name) for name in SETS]
    texts["files stopped"] = [case.text for secrets, _ in cases for case in secrets]
    texts["files refused"] = [case.text for _, look_alikes in cases for case in look_alikes]
    texts["passwords"] = [write(value) for write in FORMATS.values() for _, value in make_passwords()]
    tree = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))]
    results = {"council": _run(find_secrets, texts, tree, options.runs)}
    results["gitleaks-style"] = _run(_find_generic, texts, tree, options.runs)
    if options.before:
        earlier = _load_revision(options.before)
        results[f"council at {options.before}"] = _run(earlier.find_secrets, texts, tree, options.runs)
    reason = _add_detect_secrets(results, texts, tree, options)
    table = [_show(name, result, texts, results["council"]) for name, result in results.items()]
    print_result(options, {"rows": {kind: len(found) for kind, found in texts.items()}, **results}, HEAD, table)
    if not options.json:
        names = {kind: [row for row in found if row.path] for kind, found in rows.items()}
        named = [f"{sum(has_secret_name(row.path) for row in found)} of {len(found)}" for found in names.values()]
        print(f"\nBy file name, which only council checks: {named[0]} stopped, {named[1]} look-alikes refused.")
        print(reason or "")
        print(_figures(results, texts))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--runs", type=int, default=5, help="(default: 5)")
    parser.add_argument("--install", action="store_true", help="install detect-secrets into a temporary environment")
    parser.add_argument("--before", metavar="REVISION", help="also measure the filter of this revision (one module)")
    return parser.parse_args()


def _run(find: Callable[[str], Sequence[Any]], texts: Texts, tree: list[str], runs: int) -> dict[str, Any]:
    hits = {kind: sum(bool(find(text)) for text in found) for kind, found in texts.items()}
    speeds = []
    for _ in range(runs):
        start = time.thread_time()
        for text in tree:
            find(text)
        speeds.append(sum(map(len, tree)) / 1e6 / (time.thread_time() - start))
    return {**hits, "mb_per_s": Spread.of(speeds).as_json()}


def _find_generic(text: str) -> list[Any]:
    """Find keys with a known format, and what one generic rule finds."""
    from council.packet.secret_filter import _find_known_keys
    from council.packet.secret_scan import Scan
    from council.packet.secret_values import entropy

    generic = [
        match for match in GENERIC.finditer(text) if entropy(match[1]) >= MIN_ENTROPY and re.search(r"\d", match[1])
    ]
    return [*_find_known_keys(Scan(text)), *generic]


def _load_revision(revision: str) -> ModuleType:
    source = subprocess.run(
        ["git", "show", f"{revision}:{FILTER}"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    module = ModuleType("earlier_filter")
    sys.modules[module.__name__] = module  # dataclasses and named tuples look it up
    exec(compile(source.stdout, FILTER, "exec"), module.__dict__)
    return module


def _show(name: str, result: dict[str, Any], texts: Texts, ours: dict[str, Any]) -> tuple[str, ...]:
    shares = [f"{result[kind]} of {len(found)} ({result[kind] / len(found):.0%})" for kind, found in texts.items()]
    speed = result["mb_per_s"]
    shown = f"{speed['median']:.1f} ({speed['low']:.1f}-{speed['high']:.1f})"
    return (name, *shares, shown, f"{speed['median'] / ours['mb_per_s']['median']:.2f}")


def _figures(results: dict[str, Any], texts: Texts) -> str:
    """Return the line that benchmarks/reliability.py records."""
    peer = results.get("detect-secrets, .yaml", {})
    ours = results["council"]
    pairs = {"formats": len(texts["secrets"]), "stopped": ours["secrets"], "look_alikes": len(texts["look-alikes"]), "refused": ours["look-alikes"]}  # fmt: skip
    for kind, found in list(texts.items())[2:]:
        name = kind.replace(" ", "_")
        pairs |= {name: ours[kind], f"{name}_of": len(found)}
    if peer:
        pairs |= {"detect_secrets_stopped": peer["secrets"], "detect_secrets_refused": peer["look-alikes"]}
        pairs |= {f"detect_secrets_{kind.replace(' ', '_')}": peer[kind] for kind in list(texts)[2:]}
    return f"sweep secrets: {' '.join(f'{key}={value}' for key, value in pairs.items())}"


# detect-secrets, in a separate process


def _add_detect_secrets(
    results: dict[str, Any], texts: Texts, tree: list[str], options: argparse.Namespace
) -> str | None:
    """Add the results of detect-secrets, or return why it was skipped."""
    with tempfile.TemporaryDirectory() as place:
        python = sys.executable
        if options.install:
            venv.create(place, with_pip=True)
            python = f"{place}/bin/python"
            installed = subprocess.run(
                [python, "-m", "pip", "install", "-q", "detect-secrets"], capture_output=True, text=True
            )
            if installed.returncode:
                return f"detect-secrets is skipped: pip failed: {installed.stderr.strip().splitlines()[-1]}"
        if subprocess.run([python, "-c", "import detect_secrets"], capture_output=True).returncode:
            return "detect-secrets is skipped: this Python does not have it; --install installs it into a temporary environment"
        work = json.dumps({"texts": texts, "tree": tree, "runs": options.runs})
        done = subprocess.run([python, __file__, WORKER], input=work, capture_output=True, check=True, text=True)
        results.update(json.loads(done.stdout))
    return None


def _work() -> None:
    """Scan the rows on standard input with detect-secrets and print the result of each suffix."""
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    work = json.load(sys.stdin)
    results = {}
    with tempfile.TemporaryDirectory() as place, default_settings():
        for suffix in SUFFIXES:
            path = Path(place) / f"settings{suffix}"

            def find(text: str, path: Path = path) -> list[Any]:
                path.write_text(text, encoding="utf-8")
                secrets = SecretsCollection()
                secrets.scan_file(str(path))
                return list(secrets)

            results[f"detect-secrets, {suffix}"] = _run(find, work["texts"], work["tree"], work["runs"])
    print(json.dumps(results))


if __name__ == "__main__":
    _work() if WORKER in sys.argv else main()
