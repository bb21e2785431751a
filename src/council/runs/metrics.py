"""Health and metrics of a server or a worker, in the format of Prometheus.

Figures of all runs come from the store: every process of a shared store reports the same ones, and they are those of
the ledger, whatever was killed in between. Their sum over processes would count them several times: use `max`. Names
that begin with `council_process_` belong to the process that reports them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from secrets import compare_digest
from typing import TYPE_CHECKING, Any

from council.counters import read_counts
from council.errors import CouncilError, UsageError
from council.runs.queues import ANY_WORKER
from council.store.interface import Total, WaitingRun, WorkerRow
from council.store.run_store import RunStore
from council.version import __version__

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

HEALTH_PATH, READY_PATH, METRICS_PATH = "/healthz", "/readyz", "/metrics"
TOKEN_VARIABLE = "COUNCIL_METRICS_TOKEN"
READY_TIMEOUT_S = 3.0  # seconds that the store has to answer
MAX_WAITING = 100_000  # runs of the queue that are counted
NANOS_PER_DOLLAR = 10**9
FORWARDING_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")  # a proxy asks for somebody else


# Access


def may_read_metrics(headers: Mapping[str, str], peer: str, env: Mapping[str, str]) -> bool:
    """Return whether a request may read the metrics: with the token if there is one, otherwise from this machine."""
    if token := env.get(TOKEN_VARIABLE, ""):
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and compare_digest(given.strip().encode(), token.encode())
    host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
    is_local_name = host == "localhost" or is_loopback(host.strip("[]"))  # a page of another site has another name
    return is_loopback(peer) and is_local_name and not any(name in headers for name in FORWARDING_HEADERS)


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


async def is_store_ready(store: RunStore) -> bool:
    """Return whether the store answers."""
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await store.count_running()
    except (TimeoutError, CouncilError):
        return False
    return True


# Figures


@dataclass(frozen=True, slots=True)
class Figures:
    """What the metrics say of the store."""

    totals: Sequence[Total]
    waiting: Sequence[WaitingRun]
    running: int
    workers: Sequence[WorkerRow]


async def read_figures(store: RunStore) -> Figures:
    return Figures(
        await store.read_totals(),
        await store.list_waiting(MAX_WAITING),
        await store.count_running(),
        await store.list_workers(),
    )


def require_package() -> None:
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise UsageError("metrics need the package prometheus-client: pip install 'model-council[metrics]'") from None


async def render_metrics(store: RunStore) -> tuple[bytes, str]:
    """Return the metrics and their content type."""
    require_package()
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(await read_figures(store)))
    ProcessCollector(registry=registry)
    return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4


@dataclass(eq=False, slots=True)
class _Families:
    """Collector of the package: the metrics made from figures."""

    figures: Figures

    def collect(self) -> Iterator[Metric]:
        yield _gauge("council_build_info", "Version of this process.", ["version"], [([__version__], 1)])
        yield from self._describe_queue()
        yield from self._describe_totals()
        yield from _describe_process()

    def _describe_queue(self) -> Iterator[Metric]:
        workers, now = self.figures.workers, time.time()
        queues = {ANY_WORKER: list[float](), **{name: [] for worker in workers for name in worker.queues}}
        for one in self.figures.waiting:
            queues.setdefault(one.queue, []).append(now - one.since)
        alive = [([name], sum(name in worker.queues for worker in workers)) for name in queues]
        depth = [([name], len(waits)) for name, waits in queues.items()]
        oldest = [([name], max(0.0, *waits, 0.0)) for name, waits in queues.items()]
        yield _gauge("council_queue_runs", "Runs that wait for a worker.", ["queue"], depth)
        yield _gauge("council_queue_oldest_seconds", "How long the oldest run of the queue waits.", ["queue"], oldest)
        yield _gauge("council_workers", "Workers that are alive.", ["queue"], alive)
        yield _gauge("council_running_councils", "Councils that a process executes.", [], [([], self.figures.running)])

    def _describe_totals(self) -> Iterator[Metric]:
        for name, metric, about, labels in TOTALS:
            values = [(one, one.value) for one in self.figures.totals if one.name == name]
            scale = NANOS_PER_DOLLAR if name == "cost" else 1
            samples = [([getattr(one, FIELDS[label]) for label in labels], value / scale) for one, value in values]
            yield _counter(metric, about, labels, samples or ([([], 0)] if not labels else []))


# Name in the totals, metric, description and labels.
TOTALS: tuple[tuple[str, str, str, list[str]], ...] = (
    ("councils", "council_ended_councils", "Councils that ended.", ["status"]),
    ("requests", "council_requests", "Requests, recorded before they were sent.", ["provider"]),
    ("retries", "council_retries", "Requests after the first one of a step.", ["provider"]),
    ("answers", "council_answers", "Requests that were answered.", ["provider"]),
    ("faults", "council_faults", "Requests that failed.", ["provider", "kind"]),
    ("tokens", "council_tokens", "Tokens that endpoints reported.", ["provider", "kind"]),
    ("cost", "council_cost_dollars", "Cost of ended requests.", ["provider"]),
    ("takeovers", "council_lease_takeovers", "Runs taken over from a process that was gone.", []),
)
FIELDS = {"status": "kind", "provider": "provider", "kind": "kind"}  # of a total, by label


def _describe_process() -> Iterator[Metric]:
    waits = [([name], value) for name, value in read_counts("rate_wait_seconds").items()]
    about = "Time that requests waited for their turn under a rate limit."
    yield _counter("council_process_rate_wait_seconds", about, ["provider"], waits)
    if connects := read_counts("database_connects"):
        from council.store.postgres_connection import count_connections

        about = "Connections that were made to the database."
        yield _counter("council_process_database_connects", about, [], [([], connects[""])])
        about = "Open connections to the database."
        yield _gauge("council_process_database_connections", about, [], [([], count_connections())])


Samples = Iterable[tuple[Sequence[str], float]]


def _gauge(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    return _fill(GaugeMetricFamily(name, about, labels=labels), samples)


def _counter(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    return _fill(CounterMetricFamily(name, about, labels=labels), samples)


def _fill(family: Any, samples: Samples) -> Metric:
    for labels, value in samples:
        family.add_metric(labels, value)
    metric: Metric = family
    return metric
