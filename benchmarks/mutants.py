"""Change one place of the package at a time and run the tests that execute it: how many changes do the tests notice?

    python benchmarks/mutants.py                     # 200 mutants, several hours on one core
    python benchmarks/mutants.py --count 40 --seed 7 # other ones
    python benchmarks/mutants.py --list              # show them without running tests
    python benchmarks/mutants.py --only KEY          # one of them, by its key in the results

Mutants are chosen at random, in each package in proportion to its lines of code. The last commit is tested, in a copy
outside the repository. The first use records which tests execute which blocks: the default set of tests runs once, and
again those of changed test files. The tests of a mutant run from the nearest and fastest on, until one fails. A
survivor that no test can notice is marked as equivalent in mutants.toml, with the reason. It needs Linux, git,
`unshare`, and the environment of `pip install -e '.[dev]'`: the tests run in their own process and mount namespaces,
because a changed line can kill or delete what is not its own.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import difflib
import json
import os
import random
import re
import select
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import mutant_tests
import platformdirs
from mutation import Mutant, count_code_lines, find_mutants, parse_mutants

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("mutants.toml")
PYTEST = ("-q", "-p", "no:cacheprovider", "-p", "mutant_tests")
UNKNOWN_FILES = 4  # test files that run as a whole, because what they execute is not recorded
RECORDED_FILES = 60  # test files in one recording
LEAST_PERCENT = 85  # of the mutants that are not equivalent
# A changed line can signal or delete what is not its own: tests see only their own processes, and what they write
# outside of their copy is written into an overlay in memory.
ISOLATED = (
    "unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
)  # fmt: skip
PROTECT = """set -e
folder=$1; shift
mount -t tmpfs tmpfs "$folder/root"
mkdir "$folder/root/upper" "$folder/root/work" "$folder/root/merged"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/root/upper,workdir=$folder/root/work" "$folder/root/merged"
cd "$folder/root/merged"
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind "$folder" ".$folder"
exec chroot . sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""
TEST_SECONDS = 30  # of a test, beside six times its recorded duration
START_SECONDS = 60  # until the first test starts, beside a second for each file
Json = dict[str, Any]


def main() -> int:
    options = _parse_arguments()
    options.cache.mkdir(parents=True, exist_ok=True)
    mutants = choose_mutants(options.count, options.seed)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.key}  {mutant.path}:{mutant.line}  {mutant.operator}: {mutant.old!r} -> {mutant.new!r}")
        return 0
    coverage = _load_coverage(options)
    if options.map:
        return 0
    file = options.cache / f"results-{options.seed}-{options.count}.json"
    results: dict[str, Json] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    waiting = [mutant for mutant in mutants if _is_due(mutant, results, options)]
    print(f"{len(waiting)} of {len(mutants)} mutants", flush=True)
    for mutant, result in _run_mutants(waiting, coverage, options):
        results = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}  # of other processes too
        results[mutant.key] = result
        file.write_text(json.dumps(results, indent=1), encoding="utf-8")
        print(f"{mutant.key} {result['status']:9} {mutant.path}:{mutant.line} {result['why']}", flush=True)
    return _report(mutants, results, options)


def _is_due(mutant: Mutant, results: dict[str, Json], options: argparse.Namespace) -> bool:
    if options.only:
        return mutant.key in options.only
    if options.survivors:
        return results.get(mutant.key, {}).get("status") in (None, "survived", "uncovered")
    return mutant.key not in results


def _parse_arguments() -> argparse.Namespace:
    default = Path(tempfile.gettempdir()) / "council-mutants"
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="number of mutants (default: 200)")
    parser.add_argument("--seed", type=int, default=30, help="seed of the choice (default: 30)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants, or recorded tests, at a time (default: 1)")
    parser.add_argument("--cache", type=Path, default=default, metavar="FOLDER", help="copies, recorded tests and results (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--limit", type=float, default=240, help="recorded seconds of tests for each mutant (default: 240)"
    )
    parser.add_argument("--list", action="store_true", help="show the mutants without running tests")
    parser.add_argument("--map", action="store_true", help="only record which tests execute which blocks")
    parser.add_argument("--no-map", action="store_true", help="do not record new and changed test files")
    parser.add_argument("--nice", type=int, default=10, help="niceness of the tests (default: 10)")
    parser.add_argument("--only", nargs="+", metavar="KEY", help="run these mutants again")
    parser.add_argument(
        "--survivors", action="store_true", help="run the survivors of the last sweep again, after new tests"
    )
    parser.add_argument(
        "--tests", nargs="+", metavar="FILE", help="run all tests of these files, not those that are recorded"
    )
    return parser.parse_args()


# The choice


def choose_mutants(count: int, seed: int) -> list[Mutant]:
    """Choose mutants of the last commit: for each package in proportion to its code lines, at least two, at most one
    in a line.
    """
    files = _read_sources()
    lines: Counter[str] = Counter()
    for path, text in files.items():
        lines[_package(path)] += count_code_lines(text)
    shares = _divide(count, lines)
    randomness = random.Random(seed)
    chosen: list[Mutant] = []
    for package in sorted(shares):
        places: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
        for path, text in sorted(files.items()):
            if _package(path) == package:
                for mutant in find_mutants(path, text):
                    places[path, mutant.line].append(mutant)
        order = sorted(places)
        randomness.shuffle(order)
        picked = (_choose(places[place], files[place[0]], randomness) for place in order)
        chosen += islice((mutant for mutant in picked if mutant), shares[package])
    randomness.shuffle(chosen)  # so that a sweep that is stopped early has seen all packages
    return chosen


def _read_sources() -> dict[str, bytes]:
    listed = subprocess.run(
        ["git", "ls-files", "src/council/*.py"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    paths = listed.stdout.split()
    return {
        path: subprocess.run(["git", "show", f"HEAD:{path}"], cwd=ROOT, capture_output=True, check=True).stdout
        for path in paths
    }


def _package(path: str) -> str:
    parts = Path(path).parts[2:]
    return parts[0] if len(parts) > 1 else "council"


def _divide(count: int, lines: Counter[str]) -> dict[str, int]:
    """Divide a number by the lines of the packages, with at least two for each where the number suffices."""
    least = min(2, count // len(lines))
    rest = count - least * len(lines)
    total = sum(lines.values())
    shares = {package: least + rest * number // total for package, number in lines.items()}
    for package, _ in lines.most_common(count - sum(shares.values())):
        shares[package] += 1
    return shares


def _choose(mutants: list[Mutant], text: bytes, randomness: random.Random) -> Mutant | None:
    """Choose a kind of change, then a change of this kind that is valid Python.

    One in four of the lines whose only change is `return None` is kept: this change is the easiest to notice.
    """
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in parse_mutants(mutants, text):
        kinds[mutant.operator].append(mutant)
    weights = {kind: 1 if kind == "return" else 4 for kind in sorted(kinds)}
    if not kinds or (list(weights) == ["return"] and randomness.random() > 0.25):
        return None
    return randomness.choice(kinds[randomness.choices(list(weights), list(weights.values()))[0]])


# Copies of the repository


class Copy:
    """A clone of the last commit with its own environment: the packages of this one, and `council` from the clone.

    A server in it has imported the packages and forks a process for each run of pytest.
    """

    def __init__(self, folder: Path, niceness: int) -> None:
        if str(folder.resolve()).startswith("/dev/shm/"):
            raise SystemExit(f'"{folder}" is in /dev/shm, which the tests replace: choose another --cache')
        self.folder = folder
        self.tree = folder / "tree"
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("temporary", "home", "root"):
            (folder / name).mkdir(parents=True)
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(self.tree)], check=True)
        venv.create(folder / "venv", symlinks=True)
        scripts = folder / "venv" / "bin"
        packages = next((folder / "venv").glob("lib/python*/site-packages"))
        shutil.copy(mutant_tests.__file__, packages)
        lines = [
            str(self.tree / "src"),
            *(f"import site; site.addsitedir({path!r})" for path in site.getsitepackages()),
        ]
        (packages / "copy.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for script in Path(sys.executable).parent.iterdir():
            if not (scripts / script.name).exists():
                _copy_script(script, scripts / script.name)
        home = Path.home()
        self.env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")} | {
            "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
            "HOME": str(folder / "home"),
            "GIT_CONFIG_GLOBAL": os.environ.get("GIT_CONFIG_GLOBAL", str(home / ".gitconfig")),
            "COUNCIL_CACHE": os.environ.get("COUNCIL_CACHE") or str(platformdirs.user_cache_path("council")),
            "TMPDIR": str(folder / "temporary"),
            "PYTEST_DEBUG_TEMPROOT": str(folder / "temporary"),
        }
        python = ["nice", "-n", str(niceness), str(scripts / "python"), "-m", "mutant_tests"]
        self.command = [*ISOLATED, "sh", "-c", PROTECT, "sh", str(folder), *python]
        self._start_server()
        atexit.register(self.close)

    def _start_server(self) -> None:
        self.server = subprocess.Popen(
            self.command, env=self.env, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._read_line()

    def close(self) -> None:
        """End the server and, with its namespace, all processes of its tests."""
        self.server.kill()
        self.server.wait()

    def change(self, mutant: Mutant) -> bytes:
        """Apply a change and return the file as it was."""
        before = (self.tree / mutant.path).read_bytes()
        self._write(mutant.path, mutant.apply(before))
        return before

    def restore(self, path: str, before: bytes) -> None:
        """Undo a change and whatever the tests of the changed package wrote."""
        self._write(path, before)
        for command in (["checkout", "--quiet", "."], ["clean", "--quiet", "--force", "-d"]):
            subprocess.run(["git", *command], cwd=self.tree, check=True)

    def _write(self, path: str, text: bytes) -> None:
        """Write a source file and remove its compiled form, which may have the same time and size."""
        file = self.tree / path
        file.write_bytes(text)
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
            compiled.unlink()

    def run_pytest(
        self, arguments: Sequence[str], output: Path, env: Mapping[str, str], watch: Callable[[], str] = str
    ) -> int:
        """Run pytest and return its exit code.

        Kill it when `watch`, which is called twice in a second, returns a reason.
        """
        request = {"arguments": [*PYTEST, *arguments], "folder": str(self.tree), "output": str(output)}
        self._write_line(json.dumps({**request, "env": {**self.env, **env}}))
        assert self.server.stdout
        code = -signal.SIGKILL
        while not select.select([self.server.stdout], [], [], 0.5)[0]:
            if watch():
                self.close()
                self._start_server()
                break
        else:
            code = int(self._read_line())
        for left in (self.folder / "temporary").iterdir():
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
        return code

    def _write_line(self, text: str) -> None:
        assert self.server.stdin
        self.server.stdin.write(text.encode() + b"\n")

    def _read_line(self) -> str:
        assert self.server.stdout
        line = self.server.stdout.readline().decode().strip()
        if not line:
            raise SystemExit(f"the server of {self.folder} ended: see the errors above")
        return line

    def run_tests(self, tests: Sequence[str], seconds: Mapping[str, float]) -> Outcome:
        """Run tests in this order until one fails or hangs."""
        chosen, progress, output = (self.folder / name for name in ("chosen.json", "progress.jsonl", "output.txt"))
        chosen.write_text(json.dumps(tests), encoding="utf-8")
        for file in (progress, output):
            file.unlink(missing_ok=True)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        start = time.time()
        hung: list[str] = []

        def watch() -> str:
            _, test = _last_line(progress)
            since = progress.stat().st_mtime if test else start
            limit = TEST_SECONDS + 6 * seconds.get(test, 10.0) if test else START_SECONDS + len(files)
            if time.time() - since > limit:
                hung.append(test or "the start")
            return "".join(hung)

        env = {mutant_tests.CHOSEN: str(chosen), mutant_tests.PROGRESS: str(progress)}
        code = self.run_pytest(["-x", *files], output, env, watch)
        if hung:
            return Outcome("timeout", hung[0])
        if code in (0, 5):  # 5: no test has this name any more
            return Outcome("passed")
        kind, test = _last_line(progress)
        return Outcome("killed", test if kind == "failed" else "collection" if not test else f"exit code {code}")


@dataclass(frozen=True)
class Outcome:
    """The end of a run of tests: passed, killed or timeout, and the test that failed or hung."""

    status: str
    test: str = ""


def _last_line(progress: Path) -> tuple[str, str]:
    """Return the last kind and test of a file of progress."""
    lines = progress.read_text(encoding="utf-8").splitlines() if progress.is_file() else []
    for line in reversed(lines):
        with contextlib.suppress(json.JSONDecodeError):  # a line that is being written
            kind, test = json.loads(line)
            return kind, test
    return "", ""


def _copy_script(script: Path, target: Path) -> None:
    """Copy a script with the Python of the copy; link other programs."""
    text = script.read_bytes() if script.is_file() else b""
    if text.startswith(b"#!") and b"python" in text.partition(b"\n")[0]:
        target.write_bytes(b"#!" + os.fsencode(target.with_name("python")) + b"\n" + text.partition(b"\n")[2])
        target.chmod(0o755)
    else:
        target.symlink_to(script)


# Which tests execute which blocks


@dataclass
class Coverage:
    """Tests that pass without a change, with their durations and blocks."""

    seconds: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # executed blocks of a test
    tests: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # of a block
    module_tests: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # of a file of the package
    stable: set[str] = field(default_factory=set)  # tests that passed without a change after one that they noticed
    unknown: dict[str, str] = field(default_factory=dict)  # texts of test files that are not recorded


def _load_coverage(options: argparse.Namespace) -> Coverage:
    """Read the recorded tests. Record those of new and changed test files first."""
    folder = options.cache / "map"
    folder.mkdir(exist_ok=True)
    hashes = _hash_tests()
    known: dict[str, str] = {}
    for run in sorted(folder.glob("*/files.json")):
        known |= {file: f"{run.parent.name} {digest}" for file, digest in json.loads(run.read_text("utf-8")).items()}
    missing = [file for file, digest in hashes.items() if known.get(file, "").partition(" ")[2] != digest]
    missing = [] if options.no_map else missing
    missing.sort(key=lambda file: "acceptance" not in file)  # these execute most of the package
    for start in range(0, len(missing), RECORDED_FILES):  # in groups, so that an interruption loses little
        files = missing[start : start + RECORDED_FILES]
        name = f"{len(list(folder.glob('[0-9]*'))):04}"
        _record(options, folder / name, files, hashes)
        known |= {file: f"{name} {hashes[file]}" for file in files}
    coverage = Coverage()
    timed = set(_list_timed(hashes))
    for run in sorted(folder.glob("[0-9]*")):
        names = json.loads((run / "blocks.json").read_text("utf-8"))
        failed = set(json.loads((run / "failed.json").read_text("utf-8")))
        for row in mutant_tests.read_results(sorted(run.glob("tests-*.jsonl"))):
            file = row["test"].partition("::")[0]
            is_current = known.get(file, "").partition(" ")[0] == run.name and file in hashes
            if is_current and row["test"] not in failed and row["test"].partition("[")[0] not in timed:
                coverage.seconds[row["test"]] = row["seconds"]
                coverage.sizes[row["test"]] = len(row["blocks"])
                for number in row["blocks"]:
                    coverage.tests[names[number]].add(row["test"])
                    coverage.module_tests[names[number].partition(":")[0]].add(row["test"])
    coverage.unknown = {file: (ROOT / file).read_text(encoding="utf-8") for file in hashes if file not in known}
    print(
        f"{len(coverage.seconds)} tests, {len(coverage.tests)} executed blocks, {len(coverage.unknown)} files not recorded",
        flush=True,
    )
    return coverage


def _list_timed(files: Iterable[str]) -> Iterator[str]:
    """Yield the tests that measure time: on a busy machine they fail without a change."""
    for file in files:
        for function in re.split(
            r"^(?=async def |def |@)", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE
        ):
            name = re.match(r"(?:async )?def (test_\w+)", function)
            if name and re.search(r"process_time|thread_time|perf_counter|monotonic", function):
                yield f"{file}::{name[1]}"


def _hash_tests() -> dict[str, str]:
    """Return the hashes of the test files in the last commit."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "HEAD", "tests"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    rows = (line.split(maxsplit=3) for line in listed.stdout.splitlines())
    return {path: digest for _, _, digest, path in rows if re.search(r"/test_[^/]*\.py$", path)}


def _record(options: argparse.Namespace, folder: Path, files: list[str], hashes: dict[str, str]) -> None:
    """Run test files in a measured copy, and what failed there again in an unchanged one."""
    print(f"recording {len(files)} test files", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    partial = folder.with_name(f"partial-{folder.name}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    copy = Copy(options.cache / "measured", options.nice)
    names = mutant_tests.instrument(copy.tree)
    (partial / "blocks.json").write_text(json.dumps(names), encoding="utf-8")
    parallel = ["-n", str(options.jobs)] if min(options.jobs, len(files)) > 1 else []
    written = copy.folder / "recorded"  # what tests write elsewhere is lost
    written.mkdir()
    env = {mutant_tests.RESULTS: str(written / "tests"), mutant_tests.BLOCKS: str(len(names))}
    code = copy.run_pytest([*parallel, *files], written / "output.txt", env)
    copy.close()
    shutil.copytree(written, partial, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.hits"))
    rows = list(mutant_tests.read_results(sorted(partial.glob("tests-*.jsonl"))))
    if code not in (0, 1, 5) or not (rows or code == 5):
        raise SystemExit(
            f"the recording ended with exit code {code} and {len(rows)} tests: see {partial / 'output.txt'}"
        )
    failed = {row["test"] for row in rows if not row["passed"]}
    if failed:
        print(f"{len(failed)} tests failed in the measured copy: running them in an unchanged one", flush=True)
        failed = _run_again(Copy(options.cache / "unchanged", options.nice), failed)
        print(f"left out, because they fail without a change: {' '.join(sorted(failed)) or 'none'}", flush=True)
    (partial / "failed.json").write_text(json.dumps(sorted(failed)), encoding="utf-8")
    (partial / "files.json").write_text(json.dumps({file: hashes[file] for file in files}), encoding="utf-8")
    partial.rename(folder)


def _run_again(copy: Copy, tests: set[str]) -> set[str]:
    """Return those of the tests that do not pass in this copy."""
    chosen = copy.folder / "chosen.json"
    chosen.write_text(json.dumps(sorted(tests)), encoding="utf-8")
    files = sorted({test.partition("::")[0] for test in tests})
    report = copy.folder / "again.txt"
    copy.run_pytest(["-rA", *files], report, {mutant_tests.CHOSEN: str(chosen)})
    text = report.read_text(encoding="utf-8", errors="replace")
    return tests - {line[7:].strip() for line in text.splitlines() if line.startswith("PASSED ")}


# Runs


def _run_mutants(
    mutants: list[Mutant], coverage: Coverage, options: argparse.Namespace
) -> Iterator[tuple[Mutant, Json]]:
    """Yield the result of each mutant, as many at a time as there are copies."""
    copies: SimpleQueue[Copy] = SimpleQueue()
    for number in range(min(options.jobs, len(mutants))):
        copies.put(Copy(options.cache / f"copy-{number}", options.nice))

    def run(mutant: Mutant) -> tuple[Mutant, Json]:
        copy = copies.get()
        try:
            batches, left = ([options.tests], 0) if options.tests else _make_batches(mutant, coverage, options.limit)
            return mutant, _run_mutant(mutant, copy, coverage, batches, left)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(options.jobs) as threads:
        futures = [threads.submit(run, mutant) for mutant in mutants]
        for future in as_completed(futures):
            yield future.result()


def _run_mutant(mutant: Mutant, copy: Copy, coverage: Coverage, batches: list[list[str]], left: int) -> Json:
    """Run tests until one fails twice, once among the others and once alone, and passes without the change.

    `left` are not run.
    """
    start = time.monotonic()
    before = copy.change(mutant)
    run = 0
    unstable: list[str] = []  # they failed once and then passed, with the same change
    try:
        for batch in batches:
            tests = batch
            while tests:
                outcome = copy.run_tests(tests, coverage.seconds)
                if outcome.status == "passed":
                    break
                failing = [outcome.test] if "::" in outcome.test else tests
                if _is_noticed(failing, mutant, before, copy, coverage):
                    seconds = round(time.monotonic() - start, 1)
                    return {
                        **_describe(mutant, before),
                        "status": outcome.status,
                        "why": outcome.test,
                        "seconds": seconds,
                    }
                unstable.append(outcome.test)
                tests = [test for test in tests if test not in unstable] if outcome.test in tests else []
            run += len(batch)
    finally:
        copy.restore(mutant.path, before)
    is_covered = any(batches) and (not mutant.block or mutant.block in coverage.tests)
    why = f"{run} tests" + (f", {left} more were not run" if left else "")
    seconds = round(time.monotonic() - start, 1)
    return {
        **_describe(mutant, before),
        "status": "survived" if is_covered else "uncovered",
        "why": why,
        "seconds": seconds,
    }


def _is_noticed(tests: list[str], mutant: Mutant, before: bytes, copy: Copy, coverage: Coverage) -> bool:
    """Whether tests fail with a change when they run alone, and pass without it."""
    if copy.run_tests(tests, coverage.seconds).status == "passed":
        return False
    if not coverage.stable.issuperset(tests):
        copy.restore(mutant.path, before)
        is_stable = copy.run_tests(tests, coverage.seconds).status == "passed"
        copy.change(mutant)
        if not is_stable:
            return False
        coverage.stable.update(tests)
    return True


def _describe(mutant: Mutant, before: bytes) -> Json:
    after = mutant.apply(before)
    diff = difflib.unified_diff(
        before.decode().splitlines(), after.decode().splitlines(), mutant.path, mutant.path, "", "", 2, ""
    )
    return {"path": mutant.path, "line": mutant.line, "operator": mutant.operator, "diff": "\n".join(diff)}


def _make_batches(mutant: Mutant, coverage: Coverage, limit: float) -> tuple[list[list[str]], int]:
    """Return the tests to run, the likeliest to notice first, and the number of tests of its block beyond the limit.

    What is executed at the import has the tests of its module; they follow also for other blocks, because a result may
    be kept from one test to the next.
    """
    direct = (coverage.tests if mutant.block else coverage.module_tests).get(mutant.block or mutant.path, set())
    others = coverage.module_tests.get(mutant.path, set()) - direct
    package, stem = _package(mutant.path), Path(mutant.path).stem

    def rank(test: str) -> float:
        file = Path(test.partition("::")[0])
        distance = 0.2 if stem in file.stem else 0.5 if package in file.parts else 1.0
        return distance * (0.05 + coverage.seconds[test]) * (0.2 + coverage.sizes[test] / 1000)

    batches: list[list[str]] = []
    ordered = sorted(direct, key=rank)
    left = 0.0
    for size, seconds, files in ((40, 15.0, 6), (200, 60.0, 40), (sys.maxsize, limit, sys.maxsize)):
        batch, ordered = _take(ordered, coverage, size, min(seconds, limit - left), files)
        left += sum(coverage.seconds[test] for test in batch)
        batches.append(batch)
    more = min(limit - left, limit / 2 if not direct else limit / 8)
    batches.append(_take(sorted(others, key=rank), coverage, 40, more, 6)[0])
    batches.insert(1 if direct else 0, _list_unknown(mutant, coverage))
    return [batch for batch in batches if batch], len(ordered)


def _list_unknown(mutant: Mutant, coverage: Coverage) -> list[str]:
    """Return test files that are not recorded and that name the module or its function, the nearest first."""
    module = (
        Path(mutant.path).with_suffix("").as_posix().removeprefix("src/").removesuffix("/__init__").replace("/", ".")
    )
    parent, _, stem = module.rpartition(".")
    function = mutant.function.rpartition(".")[2]
    words = [
        rf"{re.escape(module)}\b",
        rf"from {re.escape(parent)} import .*\b{re.escape(stem)}\b",
        rf"\b{function or stem}\(",
    ]
    scores: dict[str, int] = {}
    for file, text in coverage.unknown.items():
        score = sum(bool(re.search(word, text)) for word in words) + 3 * (Path(file).stem == f"test_{stem}")
        is_near = _package(mutant.path) in Path(file).parts
        if score + is_near >= 2 and "/page/" not in file:
            scores[file] = 2 * score + is_near - ("acceptance" in file)
    return sorted(scores, key=lambda file: (-scores[file], len(coverage.unknown[file])))[:UNKNOWN_FILES]


def _take(tests: list[str], coverage: Coverage, size: int, seconds: float, files: int) -> tuple[list[str], list[str]]:
    """Take tests from the first on, within a number of tests, seconds and files."""
    taken: list[str] = []
    rest: list[str] = []
    used: set[str] = set()
    spent = 0.0
    for test in tests:
        file = test.partition("::")[0]
        cost = coverage.seconds[test]
        if len(taken) < size and spent + cost <= seconds and (file in used or len(used) < files):
            taken.append(test)
            used.add(file)
            spent += cost
        else:
            rest.append(test)
    return taken, rest


# The report


def _report(mutants: list[Mutant], results: dict[str, Json], options: argparse.Namespace) -> int:
    """Print the survivors and the line of figures. Return 1 below the limit."""
    marks: dict[str, Json] = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.is_file() else {}
    counts: Counter[str] = Counter()
    for mutant in mutants:
        if (result := results.get(mutant.key)) is None:
            continue
        survived = result["status"] in ("survived", "uncovered")
        status = "equivalent" if survived and mutant.key in marks else result["status"]
        counts[status] += 1
        if survived and status != "equivalent":
            print(f"\n{mutant.key} {status} ({result['why']})\n{result['diff']}")
    run = sum(counts.values())
    killed = counts["killed"] + counts["timeout"]
    share = 100 * killed / max(1, run - counts["equivalent"])
    print()
    print(
        f"sweep mutants: seed={options.seed} mutants={run} killed={killed} time_outs={counts['timeout']}"
        f" survived={counts['survived'] + counts['uncovered']} not_executed={counts['uncovered']}"
        f" equivalent={counts['equivalent']} killed_percent={share:.1f}"
    )
    return 0 if share >= LEAST_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
