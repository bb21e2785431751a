"""Stream a run to a browser as server-sent events: open http://127.0.0.1:8000/ask?question=… after the start.

Closing the page stops the run. It stays in the store: `council resume` continues it.
"""

import json

from aiohttp import web

import council
from council.events import Closed, Delta, PhaseStarted


async def ask(request: web.Request) -> web.StreamResponse:
    client: council.Client = request.app[CLIENT]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    async with client.stream(request.query["question"]) as run:
        async for entry in run:
            match entry.event:
                case PhaseStarted(phase=phase):
                    await send(response, "phase", phase)
                case Delta(seat=seat, text=text):
                    await send(response, "delta", {"seat": seat, "text": text})
                case Closed():
                    await send(response, "report", run.report.to_dict())
    return response


async def send(response: web.StreamResponse, name: str, data: object) -> None:
    await response.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())


CLIENT = web.AppKey("client", council.Client)


async def connect(app: web.Application) -> None:
    app[CLIENT] = council.Client()


async def disconnect(app: web.Application) -> None:
    await app[CLIENT].close()


def make_app() -> web.Application:
    app = web.Application()
    app.router.add_get("/ask", ask)
    app.on_startup.append(connect)
    app.on_cleanup.append(disconnect)
    return app


if __name__ == "__main__":
    web.run_app(make_app(), host="127.0.0.1", port=8000)
