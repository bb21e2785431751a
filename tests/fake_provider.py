"""Fake model endpoint on a real socket, for all wires: scripted, with a log and a bill.

    with FakeProvider() as provider:
        provider.script("m1", Reply(status=500), Reply(cut=40))    # the first two calls of m1; then the default answer
        provider.always("m2", Reply(hang=True))                    # every call of m2
        provider.answer = lambda seen: Reply(text="…") if "triage" in seen.prompt else None
        gate = provider.hold(nth=3)                                # the third request stays open
        …; gate.wait(); …; gate.release()
        provider.limits = EnforcedLimits(requests=60, tokens=30_000, window=60)    # the rest is refused with 429
    provider.log, provider.waves(), provider.bill, provider.base("anthropic")

As a separate process: `python -m tests.fake_provider --port 0 --delay 0.3`; GET /log returns the log as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.fakes.batches import FakeBatches
from tests.fakes.dialects import DIALECTS, Dialect, kept_prefix
from tests.fakes.prompt_cache import CacheUse, PromptCache, list_blocks
from tests.fakes.replies import Json, Reply, Seen, said_by
from tests.fakes.sending import bytes_of, keep_alive, refusal, send
from tests.fakes.vendor_limits import EnforcedLimits

__all__ = ["FakeProvider", "Gate", "Reply", "Seen"]


class Gate:
    """Holds matching requests open until it is released."""

    def __init__(self, provider: FakeProvider, matches: Callable[[Seen], bool]) -> None:
        self.matches = matches
        self.held: list[Seen] = []
        self._provider = provider
        self._arrived = threading.Condition()
        self._open = asyncio.Event()

    def wait(self, timeout: float = 60.0, count: int = 1) -> list[Seen]:
        """Block until `count` matching requests are held open."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self.held) >= count, timeout):
                raise TimeoutError(f"{len(self.held)} of {count} requests arrived within {timeout} s")
            return list(self.held)

    def release(self) -> None:
        self._provider.on_loop(self._open.set)

    async def wait_open(self) -> None:
        await self._open.wait()

    async def hold(self, seen: Seen) -> None:
        if self._open.is_set() or not self.matches(seen):
            return
        with self._arrived:
            self.held.append(seen)
            self._arrived.notify_all()
        await self._open.wait()


class FakeProvider:
    """The endpoint. Runs in a thread with its event loop; public methods are thread-safe."""

    def __init__(self, *, delay: float = 0.0, port: int = 0, models: tuple[str, ...] = ("m1", "m2", "m3")) -> None:
        self.delay = delay
        self.port = port
        self.models = models
        self.booleans: bool | dict[str, bool] = False  # values of a schema's booleans: for all, or by property name
        self.values: Json = {}  # values of a schema's properties by name: a value, or a callable of Seen
        self.answer: Callable[[Seen], Reply | None] | None = None  # if it returns None: the script, then the default
        self.cache: PromptCache | None = None  # caches by the rules of the vendors; None: marked prefixes of any length
        self.batches = FakeBatches(self._answer_apart)
        self.limits: EnforcedLimits | None = None  # of requests and tokens; what exceeds them is refused with 429
        self._scripts: dict[str, list[Reply]] = {}
        self._always: dict[str, Reply] = {}
        self._kept: set[tuple[str, str]] = set()  # (model, prefix) in the vendor's cache
        self._gates: list[Gate] = []
        self._log: list[Seen] = []
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    # Interface for tests

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return self.base("openai")

    def base(self, wire: str) -> str:
        return f"{self.address}/v1beta" if wire == "google" else f"{self.address}/v1"

    @property
    def log(self) -> list[Seen]:
        with self._lock:
            return list(self._log)

    def requests(self, model: str) -> list[Seen]:
        return [seen for seen in self.log if seen.model == model]

    @property
    def bill(self) -> Json:
        """Return the billed calls and tokens."""
        return self.bill_of()

    def bill_of(self, wire: str | None = None) -> Json:
        """Return the bill of one wire. Cache reads and writes are included only if there are any."""
        tokens = [seen.tokens for seen in self.log if wire in (None, seen.wire)]
        paid = [counts for counts in tokens if counts["out"] or counts["in"]]
        sums = {name: sum(counts.get(name, 0) for counts in paid) for name in ("in", "out", "cached", "written")}
        return {"calls": len(paid)} | {name: sums[name] for name in sums if name in ("in", "out") or sums[name]}

    def waves(self) -> list[list[Seen]]:
        """Group the requests: one that arrives after all earlier ones ended starts a new group."""
        waves: list[list[Seen]] = []
        end = -1.0
        for seen in sorted(self.log, key=lambda seen: seen.arrived):
            if seen.arrived > end:
                waves.append([])
            waves[-1].append(seen)
            end = max(end, float("inf") if seen.ended is None else seen.ended)
        return waves

    def script(self, model: str, *replies: Reply) -> None:
        """Script the next replies of a model, in turn. `*` matches models without a script."""
        with self._lock:
            self._scripts.setdefault(model, []).extend(replies)

    def always(self, model: str, reply: Reply) -> None:
        with self._lock:
            self._always[model] = reply

    def hold(
        self, when: Callable[[Seen], bool] | None = None, *, nth: int | None = None, model: str | None = None
    ) -> Gate:
        """Hold matching requests open: the nth of all, the nth of a model, or those that `when` selects."""

        def matches(seen: Seen) -> bool:
            number = seen.nth if model else seen.n
            return (when is None or when(seen)) and model in (None, seen.model) and nth in (None, number)

        gate = Gate(self, matches)
        with self._lock:
            self._gates.append(gate)
        return gate

    def make_gate(self) -> Gate:
        """Return a gate that holds no request, for `Reply.pause`."""
        return Gate(self, lambda seen: False)

    def forget(self) -> None:
        """Clear the log, scripts, gates and faults."""
        with self._lock:
            self._log, self._scripts, self._always, gates, self._gates = [], {}, {}, self._gates, []
            self._kept = set()
        for gate in gates:
            gate.release()

    # Running

    def __enter__(self) -> FakeProvider:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(10)
        return self

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def on_loop(self, act: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(act)

    async def _serve(self) -> None:
        app = web.Application(client_max_size=2**28)
        for prefix in ("", "/v1"):
            app.router.add_post(f"{prefix}/chat/completions", self._complete)
            app.router.add_post(f"{prefix}/responses", self._complete)
            app.router.add_get(f"{prefix}/models", self._list)
        self.batches.add_routes(app)
        app.router.add_post("/v1/messages", self._complete)
        app.router.add_post("/v1beta/models/{called}", self._complete)
        app.router.add_get("/v1beta/models", self._list)
        app.router.add_get("/log", self._show_log)
        # A handler outlives its client, as with real providers: the request is billed.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=False, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._runner.cleanup()
        mine = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    # Answering

    async def _list(self, request: web.Request) -> web.Response:
        dialect, reply = DIALECTS[wire_of(request)], self._take("/models")
        if reply and reply.status != 200:
            return refusal(dialect, reply)
        return web.json_response(dialect.models(self.models))

    async def _show_log(self, request: web.Request) -> web.Response:
        return web.json_response([seen.as_json() for seen in self.log])

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        model, _, method = request.match_info.get("called", "").partition(":")
        if method == "batchGenerateContent":
            return await self.batches.submit_google(model, await request.json())
        seen = self._note(request, await request.read())
        reply = self._choose(seen)
        if self.limits and reply.status == 200:
            tokens = self._counted(seen, reply, None)
            reply = self.limits.check(seen, reply, tokens["in"] + tokens["out"])
        seen.status = reply.status
        used: CacheUse | None = None
        if reply.status == 200 if reply.billed is None else reply.billed:
            used = self.cache.use(seen) if self.cache else None
            seen.tokens = self._counted(seen, reply, used)
        try:
            return await self._respond(request, DIALECTS[seen.wire], seen, reply, used)
        except ConnectionError:
            return web.Response()  # the client has disconnected
        finally:
            seen.ended = seen.ended or time.monotonic()

    def _answer_apart(self, wire: str, model: str, body: Json) -> tuple[int, Json]:
        """Return the status and the body of the answer to a request in a job."""
        with self._lock:
            nth = 1 + sum(seen.model == model for seen in self._log)
            raw = json.dumps(body).encode()
            seen = Seen(len(self._log) + 1, nth, model, time.monotonic(), raw, body, {}, wire=wire, path="batch")
            self._log.append(seen)
        reply = self._choose(seen)
        seen.status, seen.ended = reply.status, time.monotonic()
        if reply.status != 200:
            return reply.status, DIALECTS[wire].error(reply.status, f"scripted {reply.status}")
        seen.tokens = self._counted(seen, reply, None)
        return 200, DIALECTS[wire].whole(seen, reply, said_by(self._typed, seen, reply))

    def _note(self, request: web.Request, raw: bytes) -> Seen:
        body, wire = json.loads(raw), wire_of(request)
        model = body.get("model") or request.match_info.get("called", "").partition(":")[0]
        with self._lock:
            nth = 1 + sum(seen.model == model for seen in self._log)
            seen = Seen(len(self._log) + 1, nth, model, time.monotonic(), raw, body, dict(request.headers),
                        wire=wire, path=request.path_qs, client_port=_client_port(request))  # fmt: skip
            self._log.append(seen)
        return seen

    def _counted(self, seen: Seen, reply: Reply, used: CacheUse | None) -> Json:
        """Count four characters per token. A marked prefix is written to the cache once and then read from it."""
        thoughts = len(reply.thinks) // 4
        if used:
            told = {"in": sum(len(block.text) for block in list_blocks(seen)) // 4 + 1}
            told |= {"out": len(said_by(self._typed, seen, reply)) // 4 + 1 + thoughts}
            return told | {name: n for name, n in (("cached", used.read), ("written", used.written)) if n}
        tokens = {"in": len(seen.prompt) // 4 + 1, "out": len(said_by(self._typed, seen, reply)) // 4 + 1 + thoughts}
        if prefix := kept_prefix(seen.body) if seen.wire == "anthropic" else "":
            with self._lock:
                known = (seen.model, prefix) in self._kept
                self._kept.add((seen.model, prefix))
            return tokens | {"cached" if known else "written": len(prefix) // 4}
        return tokens | ({"cached": reply.cached} if reply.cached else {})

    def _choose(self, seen: Seen) -> Reply:
        asked = self.answer(seen) if self.answer else None
        return asked or self._take(seen.model) or self._take("*") or Reply()

    def _take(self, model: str) -> Reply | None:
        with self._lock:
            script = self._scripts.get(model)
            return script.pop(0) if script else self._always.get(model)

    def _typed(self, name: str, schema: Json, seen: Seen) -> Any:
        """Return the value a test sets for a property, or None to use the schema."""
        wanted = self.values.get(name)
        if wanted is None and schema.get("type") == "boolean":
            wanted = self.booleans.get(name, False) if isinstance(self.booleans, dict) else self.booleans
        return wanted(seen) if callable(wanted) else wanted

    async def _respond(
        self, request: web.Request, dialect: Dialect, seen: Seen, reply: Reply, used: CacheUse | None
    ) -> web.StreamResponse:
        for gate in list(self._gates):
            await gate.hold(seen)
        await asyncio.sleep(self.delay if reply.delay is None else reply.delay)
        if reply.hang:
            await asyncio.Event().wait()
        if reply.status != 200:
            seen.ended = time.monotonic()
            return refusal(dialect, reply)
        if self.cache and used:
            self.cache.commit(seen, used)
        streamed = seen.streamed if reply.stream is None else reply.stream
        kind = "text/event-stream" if streamed else "application/json"
        response = web.StreamResponse(headers={"Content-Type": kind, **reply.headers})
        await response.prepare(request)
        if reply.comments:
            await keep_alive(response, dialect.breath)
        said = said_by(self._typed, seen, reply)
        return await send(request, response, seen, reply, bytes_of(dialect, seen, reply, said, streamed))


def _client_port(request: web.Request) -> int:
    return int(request.transport.get_extra_info("peername")[1]) if request.transport else 0


def wire_of(request: web.Request) -> str:
    if request.path.startswith("/v1beta/"):
        return "google"
    if request.path.endswith("/responses"):
        return "openai-responses"
    return "anthropic" if "anthropic-version" in request.headers else "openai"


def main() -> None:
    """Serve until interrupted. Print the address as the first line."""
    options = argparse.ArgumentParser(description="A fake chat-completions endpoint.")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--delay", type=float, default=0.0)
    given = options.parse_args()
    with FakeProvider(delay=given.delay, port=given.port) as provider:
        print(provider.address, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
