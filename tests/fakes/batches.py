"""Batch interfaces of the fake endpoint: jobs of OpenAI, Anthropic and Google, with files, states and results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from tests.fakes.replies import Json

Answer = Callable[[str, str, Json], tuple[int, Json]]  # wire, model, request → status and body


@dataclass
class Job:
    """Requests of one job by their ids."""

    wire: str
    requests: dict[str, tuple[str, Json]]  # model and body
    polls: int = 0
    results: dict[str, tuple[int, Json]] = field(default_factory=dict)


class FakeBatches:
    """Jobs of the fake endpoint. They are answered when they are submitted, and have ended after some polls."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.jobs: dict[str, Job] = {}
        self.files: dict[str, bytes] = {}
        self.polls = 1  # until a job has ended
        self.is_held = False  # no job ends
        self.lost: set[int] = set()  # numbers of requests in a job that expire

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{name}/content", self._download)
        app.router.add_post("/v1/batches", self._submit_openai)
        app.router.add_get("/v1/batches/{name}", self._show_openai)
        app.router.add_post("/v1/messages/batches", self._submit_anthropic)
        app.router.add_get("/v1/messages/batches/{name}", self._show_anthropic)
        app.router.add_get("/v1/messages/batches/{name}/results", self._read_anthropic)
        app.router.add_get("/v1beta/batches/{name}", self._show_google)

    def _add(self, prefix: str, wire: str, requests: dict[str, tuple[str, Json]]) -> str:
        name = f"{prefix}{len(self.jobs) + 1}"
        job = self.jobs[name] = Job(wire, requests)
        for number, (key, (model, body)) in enumerate(requests.items()):
            if number not in self.lost:
                job.results[key] = self._answer(wire, model, body)
        return name

    def _has_ended(self, job: Job) -> bool:
        job.polls += 1
        return not self.is_held and job.polls >= self.polls

    # OpenAI

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        uploaded = form["file"]
        assert form["purpose"] == "batch" and isinstance(uploaded, web.FileField)
        name = f"file-{len(self.files) + 1}"
        self.files[name] = uploaded.file.read()
        return web.json_response({"id": name, "object": "file"})

    async def _download(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]])

    async def _submit_openai(self, request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        assert {line["url"] for line in lines} == {asked["endpoint"]}
        wire = "openai-responses" if asked["endpoint"].endswith("responses") else "openai"
        requests = {line["custom_id"]: (line["body"]["model"], line["body"]) for line in lines}
        return web.json_response({"id": self._add("batch_", wire, requests), "status": "validating"})

    async def _show_openai(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        job = self.jobs[name]
        if not self._has_ended(job):
            return web.json_response({"id": name, "status": "in_progress"})
        lines: dict[bool, list[bytes]] = {True: [], False: []}
        for key, (status, body) in job.results.items():
            line = {"custom_id": key, "response": {"status_code": status, "body": body}, "error": None}
            lines[status == 200].append(json.dumps(line).encode())
        for key in job.requests.keys() - job.results.keys():
            line = {"custom_id": key, "response": None, "error": {"code": "batch_expired", "message": "expired"}}
            lines[False].append(json.dumps(line).encode())
        state: Json = {"id": name, "status": "completed" if job.results else "expired"}
        for is_answer, field_name in ((True, "output_file_id"), (False, "error_file_id")):
            if lines[is_answer]:
                state[field_name] = f"{name}-{field_name}"
                self.files[str(state[field_name])] = b"\n".join(lines[is_answer]) + b"\n"
        return web.json_response(state)

    # Anthropic

    async def _submit_anthropic(self, request: web.Request) -> web.Response:
        asked = await request.json()
        requests = {one["custom_id"]: (one["params"]["model"], one["params"]) for one in asked["requests"]}
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", key) for key in requests)
        name = self._add("msgbatch_", "anthropic", requests)
        return web.json_response({"id": name, "processing_status": "in_progress"})

    async def _show_anthropic(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        state: Json = {"id": name, "processing_status": "in_progress", "results_url": None}
        if self._has_ended(self.jobs[name]):
            state |= {"processing_status": "ended", "results_url": f"{request.url}/results"}
        return web.json_response(state)

    async def _read_anthropic(self, request: web.Request) -> web.Response:
        job = self.jobs[request.match_info["name"]]
        lines = []
        for key in job.requests:
            status, body = job.results.get(key, (0, {}))
            kind = "succeeded" if status == 200 else "errored" if status else "expired"
            extra = {"succeeded": {"message": body}, "errored": {"error": body}, "expired": {}}[kind]
            lines.append(json.dumps({"custom_id": key, "result": {"type": kind, **extra}}))
        return web.Response(text="\n".join(lines))

    # Google

    async def submit_google(self, model: str, body: Json) -> web.Response:
        listed = body["batch"]["inputConfig"]["requests"]["requests"]
        requests = {one["metadata"]["key"]: (model, one["request"]) for one in listed}
        return web.json_response({"name": f"batches/{self._add('g', 'google', requests)}", "metadata": {}})

    async def _show_google(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        job = self.jobs[name]
        if not self._has_ended(job):
            return web.json_response({"name": f"batches/{name}", "metadata": {"state": "BATCH_STATE_RUNNING"}})
        listed = []
        for key in job.requests:
            status, body = job.results.get(key, (504, {"error": {"code": 504, "message": "expired"}}))
            result = {"response": body} if status == 200 else {"error": body["error"]}
            listed.append({**result, "metadata": {"key": key}})
        output = {"inlinedResponses": {"inlinedResponses": listed}}
        about = {"state": "BATCH_STATE_SUCCEEDED", "output": output}
        return web.json_response({"name": f"batches/{name}", "done": True, "metadata": about})
