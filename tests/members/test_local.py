"""The embedded model: it answers, follows a schema and stops on request."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from council.errors import Fault, LocalModelError
from council.members.local import LocalMember, count_cores
from council.members.local_weights import SMOLLM2, fetch_weights
from council.types import Ask, JsonSchema

pytest.importorskip("xllamacpp", reason="the embedded model needs model-council[local]")
pytestmark = pytest.mark.anyio
LONG = Ask("k", ({"role": "user", "content": "Tell a very long story about a lighthouse."},))
SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {"verdict": {"enum": ["PASS", "FAIL"]}, "sure": {"type": "boolean"}},
    "required": ["verdict", "sure"],
    "additionalProperties": False,
}


@pytest.fixture
async def member(weights_cache: Path) -> AsyncIterator[LocalMember]:
    member = LocalMember("local:smollm2", cache=weights_cache)
    await member.ready(lambda *step: None)
    yield member
    await member.close()


def test_embedded_model_is_small_and_free_with_vendor_local(tmp_path: Path) -> None:
    member = LocalMember("local:smollm2", cache=tmp_path, env={"COUNCIL_LOCAL_THREADS": "2"})
    assert (member.small, member.free, member.vendor, member.threads) == (True, True, "local", 2)
    assert LocalMember("local:smollm2", cache=tmp_path, env={}).threads == count_cores()


@pytest.mark.behaviour("local.all-cores")
@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 3),
        ({"cpu.max": "max 100000\n"}, 3),
        ({"cpu.max": "250000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "damaged"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
    ],
)
def test_embedded_model_uses_the_cores_that_the_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    assert count_cores(tmp_path) == cores


def test_file_of_a_gigabyte_is_not_small(tmp_path: Path) -> None:
    with (tmp_path / "big.gguf").open("wb") as file:
        file.truncate(2 * 10**9)
    assert not LocalMember(f"local:{tmp_path}/big.gguf", cache=tmp_path).small


@pytest.mark.behaviour("local.works-offline")
async def test_embedded_model_streams_and_follows_a_schema(member: LocalMember) -> None:
    heard: list[str] = []
    ask = Ask("k", ({"role": "user", "content": "Say hello."},), max_tokens=24)
    answer = await member.send(member.prepare(ask), heard.append)
    assert "".join(heard) == answer.text
    assert len(heard) > 1
    assert answer.usage.output > 1
    typed = Ask("k", ({"role": "user", "content": "Is water wet?"},), SCHEMA, "ballot", max_tokens=60)
    reply = json.loads((await member.send(member.prepare(typed), heard.append)).text)
    assert reply.keys() == {"verdict", "sure"}


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="a slot's state is copied through a file in memory")
@pytest.mark.behaviour("local.shared-prefix")
async def test_text_that_seats_share_is_evaluated_once(member: LocalMember) -> None:
    shared = "Everyone read this report. " + "The harbour has a lighthouse and two piers. " * 12
    asks = [Ask("k", ({"role": "user", "content": f"{shared}You are {name}. Say hello."},), max_tokens=2)
            for name in ("Alpha", "Beta", "Gamma", "Delta", "Epsilon")]  # fmt: skip
    drop = asyncio.create_task(member.send(member.prepare(asks[4]), lambda piece: None))
    sent = [asyncio.create_task(member.send(member.prepare(ask), lambda piece: None)) for ask in asks[:2]]
    await asyncio.sleep(0)  # all three wait for each other
    drop.cancel()
    first = [answer.usage for answer in await asyncio.gather(*sent)]
    assert member._prefix and member._prefix.evaluated > 100
    assert all(usage.cached == member._prefix.evaluated for usage in first)
    later = await asyncio.gather(*(member.send(member.prepare(ask), lambda piece: None) for ask in asks[:2]))
    assert all(usage.cached >= old.input - 1 for usage, old in zip((one.usage for one in later), first, strict=True))
    assert member._prefix.evaluated == first[0].cached  # both slots still had their whole prompt


@pytest.mark.behaviour("evidence-seed")
async def test_a_seed_repeats_the_answers_in_any_order(weights_cache: Path) -> None:
    asks = [Ask(f"s{n}", ({"role": "user", "content": "Name a town."},), max_tokens=8) for n in range(3)]
    member = LocalMember("local:smollm2", cache=weights_cache, env={"COUNCIL_LOCAL_SEED": "7"})
    texts = []
    for order in ((0, 1, 2), (2, 0, 1)):
        said = await asyncio.gather(*(member.send(member.prepare(asks[n]), lambda piece: None) for n in order))
        texts.append({asks[n].key: answer.text for n, answer in zip(order, said, strict=True)})
    await member.close()
    assert texts[0] == texts[1] and len(set(texts[0].values())) > 1


@pytest.mark.behaviour("local.stops-at-once")
async def test_seats_share_one_process_and_closing_the_last_one_stops_it_at_once(
    member: LocalMember, weights_cache: Path
) -> None:
    other = LocalMember("local:smollm2", cache=weights_cache)
    await other.ready(lambda *step: None)
    assert other.endpoint.base_url == member.endpoint.base_url
    await other.close()
    speaking = asyncio.Event()
    call = asyncio.create_task(member.send(member.prepare(LONG), lambda piece: speaking.set()))
    await asyncio.wait_for(speaking.wait(), 60)
    started = time.monotonic()
    await member.close()
    with pytest.raises(Fault):
        await call
    assert time.monotonic() - started < 10


PROCESS = """
import asyncio, signal, sys
from pathlib import Path
from council.members.local import LocalMember
from council.types import Ask

signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background ignores it

async def main():
    member = LocalMember("local:smollm2", cache=Path(sys.argv[1]))
    try:
        await member.ready(lambda *step: None)
        said = []
        def hear(piece):
            said or print(member._server.process.pid, flush=True)
            said.append(piece)
        while True:  # a busy machine may send the signal after the first story
            await member.send(member.prepare(Ask("k", ({"role": "user", "content": "Tell a very long story."},))), hear)
    finally:
        await member.close()

try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="waits on a pidfd")
@pytest.mark.behaviour("local.stops-at-once")
@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_stopped_council_leaves_no_process(weights_cache: Path, how: signal.Signals, code: int) -> None:
    council = subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(weights_cache)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert council.stdout
    model = os.pidfd_open(int(council.stdout.readline()))
    council.send_signal(how)
    try:
        errors = council.communicate(timeout=60)[1]
    finally:
        council.kill()
    assert (council.returncode, errors) == (code, "")
    ended, _, _ = select.select([model], [], [], 60)
    assert ended, "the model's process outlived the council"
    os.close(model)


async def test_invalid_model_file_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\xff" * 500)
    for name, said in (("broken", "cannot load the model"), ("absent", "cannot read the model file")):
        member = LocalMember(f"local:{tmp_path}/{name}.gguf", cache=tmp_path)
        with pytest.raises(LocalModelError, match=said) as caught:
            await member.ready(lambda *step: None)
        assert "\n" not in str(caught.value)
        with pytest.raises(Fault) as fault:
            await member.send(member.prepare(LONG), lambda piece: None)
        assert fault.value.kind == "model"
        await member.close()


async def test_missing_llama_cpp_names_the_extra_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # as if it were not installed
    member = LocalMember("local:smollm2", cache=tmp_path)
    for asked in (member.ready(lambda *step: None), member.probe()):
        with pytest.raises(LocalModelError, match=r"pip install 'model-council\[local\]'"):
            await asked


async def test_probe_does_not_load_the_model(tmp_path: Path, weights_cache: Path) -> None:
    fetch_weights(SMOLLM2, weights_cache, lambda *step: None, threading.Event())
    assert "is downloaded" in await LocalMember("local:smollm2", cache=weights_cache).probe()
    with pytest.raises(LocalModelError, match="the first run downloads it"):
        await LocalMember("local:smollm2", cache=tmp_path).probe()
