"""Real clients get JSON and use the Responses API: openai, LangChain, the AI SDK, LiteLLM and its proxy, and aider.

`docs/chat-completions.md` has the table of what they called. Each client has its own environment.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.helpers import QUESTION, mark, wait_until
from tests.doors.chat_clients import clients_folder, install_client, program
from tests.doors.web.test_chat import ChatSite
from tests.doors.web.test_response_format import GOOD, FormatAnswers
from tests.fake_provider import FakeProvider
from tests.fakes.replies import Reply, Seen

pytestmark = [pytest.mark.sweep, pytest.mark.behaviour("50-v1-clients")]
MERGED = f"The merge of chair: {mark('chair', 'merge')}."
TIMEOUT_S = 300

OPENAI = """
import openai, pydantic
class Decision(pydantic.BaseModel):
    decision: str
    risks: list[str]
client = openai.OpenAI(base_url=URL, api_key=TOKEN)
messages = [{"role": "user", "content": QUESTION}]
show("chat.completions.parse", client.chat.completions.parse(model=MODEL, messages=messages, response_format=Decision).choices[0].message.parsed.model_dump())
whole = client.responses.create(model=MODEL, input=QUESTION)
show("responses.create", whole.output_text)
events = list(client.responses.create(model=MODEL, input=QUESTION, stream=True))
show("responses.create stream", "".join(event.delta for event in events if event.type == "response.output_text.delta"))
assert events[-1].type == "response.completed"
show("responses.create previous_response_id", client.responses.create(model=MODEL, input=[{"role": "user", "content": "Why?"}], previous_response_id=whole.id).output_text)
show("responses.parse", client.responses.parse(model=MODEL, input=QUESTION, text_format=Decision).output_parsed.model_dump())
"""
LANGCHAIN = """
import pydantic
from langchain_openai import ChatOpenAI
class Decision(pydantic.BaseModel):
    decision: str
    risks: list[str]
chat = ChatOpenAI(model=MODEL, base_url=URL, api_key=TOKEN)
show("with_structured_output", chat.with_structured_output(Decision).invoke(QUESTION).model_dump())
strict = chat.with_structured_output(Decision, method="json_schema", strict=True, include_raw=True).invoke(QUESTION)
show("with_structured_output strict include_raw", strict["parsed"].model_dump())
show("with_structured_output json_mode", chat.with_structured_output(Decision, method="json_mode").invoke(QUESTION).model_dump())
responses = ChatOpenAI(model=MODEL, base_url=URL, api_key=TOKEN, use_responses_api=True)
show("use_responses_api invoke", responses.invoke(QUESTION).text)
show("use_responses_api stream", "".join(chunk.text for chunk in responses.stream(QUESTION)))
show("use_responses_api with_structured_output", responses.with_structured_output(Decision).invoke(QUESTION).model_dump())
"""
LITELLM = """
import litellm, pydantic
class Decision(pydantic.BaseModel):
    decision: str
    risks: list[str]
ask = {"model": f"openai/{MODEL}", "api_base": URL, "api_key": TOKEN}
messages = [{"role": "user", "content": QUESTION}]
show("completion response_format", Decision.model_validate_json(litellm.completion(**ask, messages=messages, response_format=Decision).choices[0].message.content).model_dump())
text = lambda response: "".join(part.text for item in response.output if item.type == "message" for part in item.content)
first = litellm.responses(**ask, input=QUESTION)
show("responses", text(first))
chunks = list(litellm.responses(**ask, input=QUESTION, stream=True))
show("responses stream", "".join(chunk.delta for chunk in chunks if chunk.type == "response.output_text.delta"))
"""
PROXY = """
import openai, pydantic
class Decision(pydantic.BaseModel):
    decision: str
    risks: list[str]
client = openai.OpenAI(base_url=URL, api_key=TOKEN)
messages = [{"role": "user", "content": QUESTION}]
show("proxy chat.completions.parse", client.chat.completions.parse(model="council", messages=messages, response_format=Decision).choices[0].message.parsed.model_dump())
whole = client.responses.create(model="council", input=QUESTION)
show("proxy responses.create", whole.output_text)
events = list(client.responses.create(model="council", input=QUESTION, stream=True))
show("proxy responses.create stream", "".join(event.delta for event in events if event.type == "response.output_text.delta"))
show("proxy responses.create previous_response_id", client.responses.create(model="council", input="Why?", previous_response_id=whole.id).output_text)
show("proxy responses.parse", client.responses.parse(model="council", input=QUESTION, text_format=Decision).output_parsed.model_dump())
"""
AI_SDK = """
import { generateObject, generateText, streamText, streamObject } from "ai";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { z } from "zod";
const schema = z.object({ decision: z.string(), risks: z.array(z.string()) });
const openai = createOpenAI({ baseURL: URL_, apiKey: TOKEN });
const compatible = createOpenAICompatible({ name: "council", baseURL: URL_, apiKey: TOKEN, supportsStructuredOutputs: true });
const models = { responses: openai(MODEL), chat: openai.chat(MODEL), compatible: compatible(MODEL) };
for (const [name, model] of Object.entries(models)) {
  show(`${name} generateText`, (await generateText({ model, prompt: QUESTION })).text);
  show(`${name} generateObject`, (await generateObject({ model, schema, prompt: QUESTION })).object);
  const streamed = streamText({ model, prompt: QUESTION });
  let text = "";
  for await (const part of streamed.textStream) text += part;
  show(`${name} streamText`, text);
  const made = streamObject({ model, schema, prompt: QUESTION });
  for await (const part of made.partialObjectStream) void part;
  show(`${name} streamObject`, await made.object);
}
"""
HEAD = "import json\nURL, TOKEN, QUESTION, MODEL = {values}\ndef show(name, value):\n    print('result', json.dumps([name, value]), flush=True)\n"
NODE_HEAD = "const [URL_, TOKEN, QUESTION, MODEL] = {values};\nconst show = (name, value) => console.log('result', JSON.stringify([name, value]));\n"
SCRIPTS = {"openai": (OPENAI, 5), "langchain": (LANGCHAIN, 6), "litellm": (LITELLM, 3)}
EDIT = """I rename the function.

core.py
```python
<<<<<<< SEARCH
def core_of_the_project(): ...
=======
def heart_of_the_project(): ...
>>>>>>> REPLACE
```
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatSite]:
    with FakeProvider() as provider:
        served = ChatSite(tmp_path_factory.mktemp("structured"), provider)
        yield served
        served.close()


@pytest.fixture(autouse=True)
def answers(site: ChatSite) -> None:
    site.provider.forget()
    site.answers = site.provider.answer = FormatAnswers()


def require(client: str) -> None:
    if reason := install_client(client):
        pytest.skip(f"{client} is not installed: {reason}")


def run_script(command: list[str], script: str, folder: Path, url: str, token: str, head: str = HEAD) -> list[Any]:
    """Run a script of a client, and return what it shows."""
    values = json.dumps([url, token, QUESTION, "council/triad"])
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [*command, head.format(values=values) + script], cwd=folder, env=env, capture_output=True, text=True,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("result ")]


def check(results: list[Any], count: int) -> None:
    """Check that each call gave the JSON or the whole answer."""
    assert len(results) == count
    for name, value in results:
        assert value == GOOD or str(value).startswith(f"{MERGED}\n\n---\n\nTrust: "), (name, value)


@pytest.mark.parametrize("client", SCRIPTS)
def test_a_client_gets_json_and_responses(client: str, site: ChatSite, tmp_path: Path) -> None:
    require(client)
    script, count = SCRIPTS[client]
    python = str(program(client, "python"))
    check(run_script([python, "-c"], script, tmp_path, f"http://{site.host}/v1", site.token), count)


def test_the_ai_sdk_gets_objects_and_streams(site: ChatSite) -> None:
    require("ai-sdk")
    command = ["node", "--input-type=module", "-e"]
    url = f"http://{site.host}/v1"
    check(run_script(command, AI_SDK, clients_folder() / "ai-sdk", url, site.token, NODE_HEAD), 12)


@contextmanager
def run_proxy(site: ChatSite, folder: Path) -> Iterator[str]:
    """Run the LiteLLM proxy before the server, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = {"model": "openai/council/triad", "api_base": f"http://{site.host}/v1", "api_key": site.token}
    config = folder / "proxy.yaml"
    config.write_text(json.dumps({"model_list": [{"model_name": "council", "litellm_params": model}]}))
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_PROXY": "127.0.0.1", "LITELLM_MASTER_KEY": "sk-proxy"}
    command = [str(program("litellm", "litellm")), "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
    log = (folder / "proxy.log").open("wb")
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:

        def is_ready() -> bool:
            assert process.poll() is None, (folder / "proxy.log").read_text()[-3000:]
            try:
                return httpx.get(f"http://127.0.0.1:{port}/health/liveliness", timeout=5).status_code == 200
            except httpx.HTTPError:
                return False

        wait_until(is_ready, "the proxy answers", 180)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def test_the_proxy_of_litellm_passes_json_and_responses_on(site: ChatSite, tmp_path: Path) -> None:
    require("litellm")
    require("openai")
    with run_proxy(site, tmp_path) as url:
        check(run_script([str(program("openai", "python")), "-c"], PROXY, tmp_path, url, "sk-proxy"), 5)


def test_aider_edits_a_small_repository(site: ChatSite, tmp_path: Path) -> None:
    require("aider")

    def edit(seen: Seen) -> Reply:
        return Reply(text="feat: Rename the function" if seen.model == "small" else EDIT)

    site.provider.answer = edit
    env = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_PROXY": "127.0.0.1",
        "OPENAI_API_BASE": f"http://{site.host}/v1", "OPENAI_API_KEY": site.token,
    }  # fmt: skip
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "core.py").write_text("def core_of_the_project(): ...\n")

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.com", *arguments]
        done = subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True, check=True)
        return done.stdout

    git("init", "-q")
    git("config", "user.name", "Ann")
    git("config", "user.email", "ann@example.com")
    git("add", "core.py")
    git("commit", "-qm", "Add the core")
    command = [
        str(program("aider", "aider")), "--model", "openai/council/triad", "--weak-model", "openai/council/title",
        "--edit-format", "diff", "--yes-always", "--no-check-update", "--no-show-release-notes", "--analytics-disable",
        "--no-show-model-warnings", "--no-gitignore", "--map-tokens", "0", "--timeout", "200",
        "--message", "Rename core_of_the_project to heart_of_the_project.", "core.py",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert (repository / "core.py").read_text() == "def heart_of_the_project(): ...\n", done.stdout[-3000:]
    assert git("log", "-1", "--format=%s").startswith("feat: Rename the function")
    assert {seen.model for seen in site.provider.log} == {"alpha", "beta", "gamma", "chair", "small"}
