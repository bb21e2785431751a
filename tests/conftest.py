"""Fixtures for all tests: an isolated environment, the fake provider, and the command with it."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import platformdirs
import pytest

from council.doors.cli.ci_log import CI_VARIABLES
from council.settings import DEFAULTS
from council.testing import hidden_variables
from tests.fake_clock import CLOCKED
from tests.fake_provider import FakeProvider
from tests.fork_server import fork_workers
from tests.vendor_trap import PROXIES

if TYPE_CHECKING:
    from council.store.interface import StoreAddress
    from tests.acceptance.helpers import Terminal, Workspace
    from tests.databases import Server

# Without bytecode files, every process that a test starts would compile the package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
MEMORY_DISK = Path("/dev/shm")  # temporary files in memory: the stores of the tests do not wait for a disk
if MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > 4 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))
WEIGHTS_CACHE = Path(os.environ.get("COUNCIL_CACHE") or platformdirs.user_cache_path("council"))
KEPT = ("COUNCIL_CACHE", "COUNCIL_LOCAL_THREADS")
os.environ.setdefault("COUNCIL_LOCAL_THREADS", "1")  # several tests use the embedded model at the same time
# No deadline: a busy machine is slow. The default set tries the same examples each time, so that an unrelated change
# cannot fail. New ones are searched by `pytest --hypothesis-profile=explore`.
hypothesis.settings.register_profile("repeat", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1500)
hypothesis.settings.load_profile("repeat")
fork_workers()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Number of workers of `-n auto`: twice the cores, because most tests wait for processes and sockets."""
    return min(4, 2 * (os.cpu_count() or 1))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let idle workers take tests of busy ones, unless --dist chooses otherwise."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None


SWEEP = "sweep "
COVERS = "covers"


@pytest.fixture
def sweep_figures(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Record figures of a long test: `sweep_figures("crash", points=40, lost=0)`.

    The summary of the session adds them up.
    """

    def record(name: str, **figures: float) -> None:
        record_property(SWEEP + name, figures)

    return record


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that cover no name in SWEEP_ONLY: benchmarks/reliability.py runs what is not recorded."""
    wanted = set(os.environ.get("SWEEP_ONLY", "").split())
    if wanted:
        kept = [item for item in items if not wanted.isdisjoint(_list_covered(item))]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.user_properties += [(COVERS, name) for name in _list_covered(item)]


def _list_covered(item: pytest.Item) -> list[str]:
    """Return what a sweep test tries in full: a test of the default set with the same cases has a part of it."""
    if item.get_closest_marker("sweep") is None:
        return []
    return [name for mark in item.iter_markers(COVERS) for name in mark.args]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what was covered, and a line of figures for each sweep: sums, and the maximum of `worst_` figures."""
    totals: dict[str, dict[str, float]] = {}
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    properties = [pair for report in reports for pair in report.user_properties]
    if covered := sorted({value for name, value in properties if name == COVERS}):
        terminalreporter.write_line(f"covered: {' '.join(covered)}")
    for name, figures in properties:
        if name.startswith(SWEEP):
            total = totals.setdefault(name, {})
            for key, value in figures.items():
                total[key] = (
                    max(total.get(key, value), value) if key.startswith("worst_") else total.get(key, 0) + value
                )
    for name, total in totals.items():
        terminalreporter.write_line(f"{name}: {' '.join(f'{key}={value:g}' for key, value in total.items())}")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Hide the keys, keyring, configuration, proxies and folders of the user; only the model weights are shared.

    Close what calls keep open.
    """
    others = ("NO_COLOR", "FORCE_COLOR", *PROXIES, *CI_VARIABLES)
    for name in {*hidden_variables(os.environ), *others} - {*KEPT}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("COUNCIL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COUNCIL_MODEL_LISTS", "off")  # no test asks a real vendor for its models
    monkeypatch.setitem(DEFAULTS, "model_lists", False)  # also where a test passes an environment of its own
    monkeypatch.setenv("COUNCIL_CACHE", str(WEIGHTS_CACHE))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))  # nothing is piped in
    yield
    if shared := sys.modules.get("council.store.shared"):
        shared.close_stores()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The PostgreSQL server of the session, which all workers of xdist share."""
    from tests.databases import Server

    folder = tmp_path_factory.getbasetemp()
    server = Server(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder)
    yield server
    server.stop()


@pytest.fixture
def database(postgres: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a new database with an empty store.

    It refuses no row, unless the test is marked with `refused_rows`.
    """
    from tests.databases import without_split_commits

    may_refuse = request.node.get_closest_marker("refused_rows") is not None
    with postgres.database(may_refuse=may_refuse) as url, nullcontext() if may_refuse else without_split_commits():
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> StoreAddress:
    """The address of an empty store, in SQLite and in PostgreSQL."""
    from council.store.interface import StoreAddress

    return StoreAddress(tmp_path / "store", request.getfixturevalue("database") if request.param == "postgres" else "")


@pytest.fixture
def anyio_backend() -> Any:
    """The event loop whose clock a test can advance with `fake_clock.skip`."""
    return CLOCKED


@pytest.fixture
def weights_cache() -> Path:
    return WEIGHTS_CACHE


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


@pytest.fixture
def workspace(provider: FakeProvider) -> Workspace:
    """Return a council with alpha, beta, gamma and the chair, each on its own model of one fake endpoint."""
    from tests.acceptance.helpers import Workspace

    return Workspace(Path.cwd(), provider)


@pytest.fixture
def council(capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Return a function that runs the command in this process: `council("runs", "--json")`."""
    from tests.acceptance.helpers import Terminal

    return Terminal(capsys.readouterr)
