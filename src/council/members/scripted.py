"""Member with scripted answers, for tests, examples and rehearsals.

`scripted:` gives a plausible answer to everything. `scripted:FILE.toml` reads its answers from the file, keyed by step:

    record = "calls.jsonl"            # log of all requests
    ["draft/alpha"]
    text = "…"                        # or reply = { … } for a typed reply
    ["draft/beta"]
    fail = "server"                   # a fault kind; times = 1 fails once and then answers
    ["improve/gamma"]
    stall = true                      # never answers
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any, TypedDict

from council.errors import ConfigError, Fault
from council.members.base import Member, MemberContext, OnDelta, StepRequest
from council.settings.private_files import open_private_file
from council.types import Answer, Ask, Json, JsonSchema, Usage, encode_json


class ScriptLine(TypedDict, total=False):
    """What a script says about a request: its answer, or how it fails."""

    reply: Any
    text: str
    agree: bool
    stall: bool
    fail: str
    times: int  # that it fails


class Scripted(Member):
    vendor = "scripted"
    free = True
    backoff = 0.0

    def __init__(self, name: str = "scripted:", script: Json | None = None, *, folder: Path = Path()) -> None:
        """Relative paths, of the script and of its record, belong to the folder."""
        self.name, self.folder = name, folder
        path = name.partition(":")[2]
        self.script = _read_script(path, folder) if script is None and path else script or {}
        self.calls: list[Json] = []
        self._failures: dict[str, int] = {}

    def prepare(self, ask: Ask) -> bytes:
        request: StepRequest = {"key": ask.key, "messages": ask.messages, "schema": ask.schema}
        return encode_json(request)

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        request: StepRequest = json.loads(body)
        self._record_call(request)
        line: ScriptLine = self.script.get(request["key"], {})
        if line.get("stall"):
            await asyncio.Event().wait()
        if "fail" in line and self._failures.get(request["key"], 0) < line.get("times", 1_000):
            self._failures[request["key"]] = self._failures.get(request["key"], 0) + 1
            raise Fault(line["fail"], "scripted failure")
        text = _answer_text(line, request)
        for word in text.split(" "):
            on_delta(word + " ")
        await asyncio.sleep(0)  # let the other seats start
        words = sum(len(message["content"].split()) for message in request["messages"])
        return Answer(text, usage=Usage(words, len(text.split())), model=self.name)

    async def probe(self) -> str:
        return "always answers"

    def _record_call(self, request: StepRequest) -> None:
        self.calls.append(dict(request))
        if record := self.script.get("record"):
            with open_private_file(self.folder / record, "a", encoding="utf-8") as file:
                file.write(json.dumps(request, ensure_ascii=False) + "\n")


def _read_script(path: str, folder: Path) -> Json:
    try:
        return tomllib.loads((folder / path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # not TOML, or not UTF-8
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"cannot read the script {json.dumps(path, ensure_ascii=False)} ({why}): write scripted:PATH with the path of a TOML file"
        ) from error


def _answer_text(line: ScriptLine, request: StepRequest) -> str:
    if "reply" in line:
        return json.dumps(line["reply"], ensure_ascii=False)
    if schema := request["schema"]:
        return json.dumps(example_value(schema, line.get("agree", False), request["key"]), ensure_ascii=False)
    return str(line.get("text") or f"{request['key']} says: it depends, and here is on what.")


def example_value(schema: JsonSchema, agree: bool, text: str = "…", row: int = 0) -> Any:
    """Return the simplest value that matches a schema.

    `agree` is the value of booleans and decides whether optional values are present. `row` is the index in a list:
    names and numbers differ from row to row.
    """
    if "enum" in schema:
        return schema["enum"][row % len(schema["enum"])]
    if "const" in schema:
        return schema["const"]
    if options := schema.get("anyOf"):
        by_choice = sorted(options, key=lambda option: (option.get("type") == "null") == agree)
        return example_value(by_choice[0], agree, text, row)
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: example_value(value, agree, text, row) for name, value in properties.items()}
        case "array":
            return [example_value(schema["items"], agree, text, n) for n in range(schema.get("minItems", 1))]
        case "boolean":
            return agree
        case "integer" | "number":
            return schema.get("minimum", 1) + row
        case "null":
            return None
        case _:
            return text


def make_scripted_member(name: str, context: MemberContext) -> Scripted:
    return Scripted(name, folder=context.folder)
