"""What the calls of one process share: one store per data folder, settings, and connections per event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import council
from council.members.scripted import Scripted
from council.settings import load_settings
from council.store.shared import MAX_IDLE_STORES
from tests.fake_provider import FakeProvider

SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
AT_ONCE = 200
ESTABLISHED = "01"  # in the table of connections of Linux


def write_user_config(provider: FakeProvider, more: str = "") -> Path:
    """Let all seats use the provider, in the file of the user, which needs no trust."""
    seats = "".join(f'[seats.{name}]\nmodel = "sim:m1"\n' for name in ("alpha", "beta", "gamma"))
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'[providers.sim]\nwire = "openai"\nbase_url = "{provider.base_url}"\n{seats}[chair]\nmodel = "sim:m1"\n{more}'
    )
    return path


async def ask(question: str = "Tabs or spaces?", **options: Any) -> council.Report:
    return await council.convene(question, protocol="triad", **options)


def count_open_files(folder: Path) -> int:
    """Return how many files of the data folder this process has open."""
    count = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            count += Path(f"/proc/self/fd/{name}").readlink().is_relative_to(folder)
        except OSError:
            continue
    return count


def count_connections(provider: FakeProvider) -> int:
    """Return how many connections to the provider are open at the side of the client."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{provider.port:04X}") and row[3] == ESTABLISHED for row in rows)


def store_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("council-")]


def data_folder() -> Path:
    return Path(os.environ["COUNCIL_DATA"]).resolve()


# Store


@pytest.mark.behaviour("shared-store")
def test_many_calls_at_once_share_one_store() -> None:
    seen: list[tuple[int, int]] = []

    async def one(n: int) -> str:
        report = await ask(f"Question {n}?", members=[Scripted()], seats=SEATS)
        if n % 20 == 0:
            databases = [name for name in os.listdir("/proc/self/fd") if _is_database(name)]  # noqa: PTH208
            seen.append((len(databases), len(store_threads())))
        return report.status

    async def run() -> list[str]:
        await one(0)  # the first call checks the database on another connection
        seen.clear()
        return await asyncio.gather(*(one(n) for n in range(AT_ONCE)))

    assert asyncio.run(run()) == ["complete"] * AT_ONCE
    connections, threads = map(max, zip(*seen, strict=True))
    assert connections <= 2  # one to write, one to read
    assert threads <= 2
    council.close()
    assert (store_threads(), count_open_files(data_folder())) == ([], 0)


def _is_database(name: str) -> bool:
    try:
        return Path(f"/proc/self/fd/{name}").readlink() == data_folder() / "council.db"
    except OSError:
        return False


def test_a_closed_library_opens_its_store_again() -> None:
    first = council.convene_sync("Tabs?", protocol="triad", members=[Scripted()], seats=SEATS)
    council.close()
    council.close()
    second = council.convene_sync("Spaces?", protocol="triad", members=[Scripted()], seats=SEATS)
    assert (first.status, second.status) == ("complete", "complete")
    assert first.run != second.run


@pytest.mark.anyio
async def test_closing_the_library_during_a_run_does_not_disturb_it() -> None:
    stream = council.stream("Tabs?", protocol="triad", members=[Scripted()], seats=SEATS)
    await anext(stream)
    council.close()
    async for _ in stream:
        pass
    assert stream.report.status == "complete"
    assert count_open_files(data_folder()) == 0  # its last user has closed it


def test_a_removed_store_is_not_used_again() -> None:
    council.convene_sync("Tabs?", protocol="triad", members=[Scripted()], seats=SEATS)
    for path in data_folder().glob("council.db*"):
        path.unlink()
    report = council.convene_sync("Spaces?", protocol="triad", members=[Scripted()], seats=SEATS)
    council.close()

    async def load() -> list[str]:
        async with council.Client() as client:
            return [run["run"] for run in await client.runs()]

    assert asyncio.run(load()) == [report.run]


def test_few_stores_stay_open_without_a_call(tmp_path: Path) -> None:
    for n in range(MAX_IDLE_STORES + 3):
        env = {**os.environ, "COUNCIL_DATA": str(tmp_path / f"data-{n}")}
        council.convene_sync("Tabs?", protocol="triad", members=[Scripted()], seats=SEATS, env=env)
    open_folders = [n for n in range(MAX_IDLE_STORES + 3) if count_open_files((tmp_path / f"data-{n}").resolve())]
    assert open_folders == list(range(3, MAX_IDLE_STORES + 3))


# Connections


@pytest.mark.behaviour("shared-connections")
def test_calls_of_one_event_loop_share_connections(provider: FakeProvider) -> None:
    write_user_config(provider)

    async def run() -> None:
        for _ in range(3):
            assert (await ask()).status == "complete"

    asyncio.run(run())
    assert len({seen.client_port for seen in provider.log}) <= 3  # seats at once
    assert len(provider.log) == 12


@pytest.mark.behaviour("shared-connections")
def test_event_loops_one_after_another_have_their_own_connections(provider: FakeProvider) -> None:
    write_user_config(provider)
    for _ in range(3):
        assert council.convene_sync("Tabs?", protocol="triad").status == "complete"
        assert count_connections(provider) == 0  # the end of the loop has closed them


def test_connections_of_a_loop_that_ended_abruptly_are_closed(provider: FakeProvider, caplog: Any) -> None:
    write_user_config(provider)
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(ask()).status == "complete"
    loop.close()
    council.close()
    assert council.convene_sync("Tabs?", protocol="triad").status == "complete"
    assert "Unclosed" not in caplog.text


def test_closing_the_library_closes_the_connections_of_a_loop_between_calls(provider: FakeProvider) -> None:
    write_user_config(provider)
    with asyncio.Runner() as runner:
        assert runner.run(ask()).status == "complete"
        during = count_connections(provider)
        council.close()
        runner.run(asyncio.sleep(0))
        after = count_connections(provider)
        assert runner.run(ask()).status == "complete"
    assert during > 0
    assert (after, count_connections(provider)) == (0, 0)


# Settings


@pytest.mark.behaviour("shared-settings")
def test_a_changed_file_counts_for_the_next_call(provider: FakeProvider) -> None:
    path = write_user_config(provider)
    assert council.convene_sync("Tabs?", protocol="triad").seats[0].served_by == "sim:m1"
    size = path.stat().st_size
    path.write_text(path.read_text().replace("m1", "m2"))
    assert path.stat().st_size == size
    assert council.convene_sync("Tabs?", protocol="triad").seats[0].served_by == "sim:m2"
    Path("council.toml").write_text('[seats.alpha]\nmodel = "sim:m3"\n')
    assert council.convene_sync("Tabs?", protocol="triad").seats[0].served_by == "sim:m3"
    Path("council.toml").unlink()
    assert council.convene_sync("Tabs?", protocol="triad").seats[0].served_by == "sim:m2"


@pytest.mark.behaviour("shared-settings")
def test_a_changed_environment_counts_for_the_next_call(provider: FakeProvider, monkeypatch: Any) -> None:
    table = f'[providers.keyed]\nwire = "openai"\nbase_url = "{provider.base_url}"\napi_key_env = "KEYED"\n'
    write_user_config(provider, table)
    for key in ("first", "second"):
        monkeypatch.setenv("KEYED", key)
        assert council.convene_sync("Tabs?", protocol="triad", models=["keyed:m1"]).status == "complete"
        assert provider.log[-1].headers["Authorization"] == f"Bearer {key}"


@pytest.mark.behaviour("shared-settings")
def test_unchanged_settings_are_loaded_once(tmp_path: Path) -> None:
    env, folder = dict(os.environ), Path.cwd()
    first = load_settings(folder, env, flags={"timeout": 5.0})
    assert load_settings(folder, dict(env), flags={"timeout": 5.0}) is first
    assert load_settings(folder, env, flags={"timeout": 6.0}).timeout == 6.0
    assert load_settings(folder, {**env, "COUNCIL_TIMEOUT": "7"}).timeout == 7.0
    (tmp_path / "council.toml").write_text("timeout = 8\n")  # in a folder above
    assert load_settings(folder, env).timeout == 8.0
    (folder / ".git").mkdir()  # the project ends here
    assert load_settings(folder, env).timeout is None


# Fork


@pytest.mark.behaviour("shared-after-fork")
@pytest.mark.parametrize("forks_during_runs", [False, True])
def test_parent_and_child_of_a_fork_both_go_on(provider: FakeProvider, *, forks_during_runs: bool) -> None:
    write_user_config(provider)
    gate = provider.hold(lambda seen: "zebra" in seen.prompt)

    async def run() -> list[str]:
        await ask()
        held = [asyncio.ensure_future(ask("zebra?"))] if forks_during_runs else []
        if held:
            await asyncio.to_thread(gate.wait, count=3)
        code = await asyncio.to_thread(fork_and_ask)
        gate.release()
        reports = [await ask(), *await asyncio.gather(*held)]
        return [str(code), *(report.status for report in reports)]

    code, *statuses = asyncio.run(run())
    assert (code, set(statuses)) == ("0", {"complete"})

    async def check() -> tuple[int, list[str]]:
        async with council.Client() as client:
            runs = await client.runs()
            problems = [await client._records.audit(run["run"]) for run in runs]
            return len(runs), [one for found in problems for one in found]

    assert asyncio.run(check()) == (len(statuses) + 2, [])


def fork_and_ask() -> int:
    """Ask in a forked process, and return its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        code = int(council.convene_sync("Tabs, in the child?", protocol="triad").status != "complete")
        council.close()
    finally:
        os._exit(code)
