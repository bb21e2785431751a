"""Queue of a detached run in a shared store: of any worker, or of the workers on the host that has the run's folder."""

from __future__ import annotations

import socket
from dataclasses import replace

from council.errors import UsageError, wording
from council.planning.setup import RunSetup
from council.settings.catalogue import LOCAL_MEMBER, split_member
from council.store.run_store import RunStore

ANY_WORKER = "default"
HOST_PREFIX = "host:"


def host_queue() -> str:
    """Return the queue of this host."""
    return f"{HOST_PREFIX}{socket.gethostname()}"


def explain_folder_need(setup: RunSetup) -> str:
    """Return why a run needs the folder or the programs of the machine that has started it, or "" if it does not."""
    if setup.look:
        return "its seats read its folder"
    if setup.options.get("explorers"):
        return "explorers read its folder"
    if str(setup.options.get("search") or "").partition(":")[0] == "files":
        return "its search reads a folder"
    return next((why for name in setup.roster.member_names if (why := _explain_member(name))), "")


def _explain_member(member: str) -> str:
    kind, name = split_member(member)
    is_file = (kind == "scripted" and bool(name)) or (kind == "local" and member != LOCAL_MEMBER)
    if kind in ("cli", "human") or member == "human":
        return f'"{member}" answers on this machine'
    return f'"{member}" reads a file of this machine' if is_file else ""


async def choose_queue(store: RunStore, setup: RunSetup, priority: int | None) -> RunSetup:
    """Return the setup of a run with its queue and priority. Raise UsageError if no worker could execute it."""
    if not store.is_shared:
        raise UsageError(
            f"the priority {priority} needs a shared store, because the local worker starts all runs: set COUNCIL_DATABASE"
        )
    why = explain_folder_need(setup)
    queue = host_queue() if why else ANY_WORKER
    if why and not await has_worker(store, queue):
        raise UsageError(
            f'the run cannot be queued, because {why} and no worker of the queue "{queue}" is alive: '
            f"start `council serve worker` on this machine{wording(python='', cli=', or run it without --detach')}"
        )
    return replace(setup, queue=queue, priority=priority or 0)


async def has_worker(store: RunStore, queue: str) -> bool:
    return any(queue in worker.queues for worker in await store.list_workers())


async def warn_without_worker(store: RunStore, run: str) -> str:
    """Return a warning if no worker is alive that could execute the run."""
    queue = RunSetup.of(await store.load(run)).queue or ANY_WORKER
    if await has_worker(store, queue):
        return ""
    return f'no worker of the queue "{queue}" is alive, so run {run} waits: start `council serve worker`'
