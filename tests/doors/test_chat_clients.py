"""Real clients complete councils: langchain-openai, litellm and openai through /v1, llm in its own process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, mark
from tests.acceptance.refine.fake_authors import Authors, make_error, write_text
from tests.doors.chat_clients import install_client, program
from tests.doors.web.test_chat import ANSWER, ChatSite, encode_png
from tests.fake_provider import FakeProvider

pytestmark = [pytest.mark.sweep, pytest.mark.behaviour("50-v1-clients")]

OPENAI = """
import asyncio, openai
client = openai.OpenAI(base_url=URL, api_key=TOKEN)
ask = {"model": "council/collaborative", "messages": [{"role": "user", "content": QUESTION}]}
show(client.chat.completions.create(**ask).choices[0].message.content)
chunks = list(client.chat.completions.create(**ask, stream=True))
show("".join(chunk.choices[0].delta.content or "" for chunk in chunks))
async def main():
    client = openai.AsyncOpenAI(base_url=URL, api_key=TOKEN)
    show((await client.chat.completions.create(**ask)).choices[0].message.content)
    stream = await client.chat.completions.create(**ask, stream=True)
    show("".join([chunk.choices[0].delta.content or "" async for chunk in stream]))
asyncio.run(main())
"""
LANGCHAIN = """
import asyncio
from langchain_openai import ChatOpenAI
model = ChatOpenAI(model="council/collaborative", base_url=URL, api_key=TOKEN, stream_usage=True)
messages = [("system", "Be brief."), ("human", "What is it?"), ("ai", "Cold."), ("human", QUESTION)]
answer = model.invoke(messages)
show(answer.content)
assert answer.usage_metadata["total_tokens"] > 0
chunks = list(model.stream(messages))
show("".join(chunk.content for chunk in chunks))
assert sum((chunk.usage_metadata or {}).get("total_tokens", 0) for chunk in chunks) > 0
async def main():
    show((await model.ainvoke(messages)).content)
    show("".join([chunk.content async for chunk in model.astream(messages)]))
asyncio.run(main())
"""
LITELLM = """
import asyncio, litellm
ask = {"model": "openai/council/collaborative", "api_base": URL, "api_key": TOKEN, "messages": [{"role": "user", "content": QUESTION}]}
answer = litellm.completion(**ask)
show(answer.choices[0].message.content)
assert answer.usage.total_tokens > 0 and "draft" in answer.choices[0].message.reasoning_content
kinds, text = [], ""
for chunk in litellm.completion(**ask, stream=True):
    delta = chunk.choices[0].delta
    kinds += [name for name in ("reasoning_content", "content") if getattr(delta, name, None)]
    text += delta.content or ""
show(text)
assert kinds == sorted(kinds, reverse=True) and len(set(kinds)) == 2, kinds
show(asyncio.run(litellm.acompletion(**ask)).choices[0].message.content)
async def main():
    stream = await litellm.acompletion(**ask, stream=True)
    show("".join([chunk.choices[0].delta.content or "" async for chunk in stream]))
asyncio.run(main())
"""
SCRIPTS = {"openai": OPENAI, "langchain": LANGCHAIN, "litellm": LITELLM}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatSite]:
    with FakeProvider() as provider:
        served = ChatSite(tmp_path_factory.mktemp("clients"), provider)
        served.reset()
        yield served
        served.close()


def require(client: str) -> None:
    if reason := install_client(client):
        pytest.skip(f"{client} is not installed: {reason}")


@pytest.mark.parametrize("client", SCRIPTS)
def test_a_client_completes_councils_with_and_without_streaming_sync_and_async(
    client: str, site: ChatSite, tmp_path: Path
) -> None:
    require(client)
    head = f"import json\nURL, TOKEN, QUESTION = {f'http://{site.host}/v1'!r}, {site.token!r}, {QUESTION!r}\n"
    script = f"{head}def show(text):\n    print('answer', json.dumps(text), flush=True)\n{SCRIPTS[client]}"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [program(client, "python"), "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert [answer.partition("\n\n---\n\nTrust: ")[0] for answer in answers] == [ANSWER] * 4, done.stdout


def run_llm(site: ChatSite, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in site.env.items() if name != "PYTHONPATH"}
    command = [str(program("llm", "llm")), *arguments]
    return subprocess.run(
        command, cwd=site.folder, env=env | {"LLM_USER_PATH": site.env["HOME"]}, input=typed, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip


def test_llm_asks_a_council_in_its_own_process(site: ChatSite) -> None:
    require("llm")
    site.reset()
    listed = run_llm(site, "models", "list")
    assert all(f": council{name}\n" in listed.stdout for name in ("", "/adversarial", "/roster:executives", "/title"))
    done = run_llm(site, "-m", "council", QUESTION)
    assert (done.returncode, done.stdout.startswith(f"{ANSWER}\n\n---\n\nTrust: ")) == (0, True), done.stderr
    assert mark("alpha", "draft") in done.stderr and mark("alpha", "draft") not in done.stdout
    whole = run_llm(site, "-m", "council/adversarial", "--no-stream", "-R", QUESTION)
    assert whole.stdout.startswith(f"The answer: {mark('chair', 'verdict')}.") and not whole.stderr
    logged = json.loads(run_llm(site, "logs", "-n", "1", "--json").stdout)[0]
    report = site.report(logged["response_json"]["council"]["run"])
    assert (logged["input_tokens"], logged["output_tokens"]) == (report["tokens"]["in"], report["tokens"]["out"])
    site.reset()
    talked = run_llm(
        site, "chat", "-m", "council/triad", "-R", "-s", "mark-system-mark", typed=f"{QUESTION}\nWhy?\nexit\n"
    )
    assert talked.stdout.count(mark("chair", "merge")) == 2, talked.stderr
    second = [seen.prompt for seen in site.provider.log][-4:]
    assert all(
        QUESTION in prompt and "mark-system-mark" in prompt and "# Question\n\nWhy?" in prompt for prompt in second
    )
    (site.folder.parent / "dot.png").write_bytes(encode_png())
    seen = run_llm(site, "-m", "council/triad", "-R", "-a", str(site.folder.parent / "dot.png"), QUESTION)
    assert seen.stdout.startswith("> ") and "gamma" in seen.stdout.splitlines()[0], (seen.stdout, seen.stderr)
    answers = site.answers = site.provider.answer = Authors()
    refined = run_llm(site, "-m", "council/refine", "-R", QUESTION)
    assert refined.stdout.startswith(write_text("chair", "synthesise", "5,000")), refined.stderr
    assert refined.stdout.count("It costs") == 1 and "\n\n---\n\nOutcome: " in refined.stdout
    answers.errors["check/beta"] = [make_error("MAJOR", "It costs 4,000 euros in all", "The train is not counted.")]
    checked = run_llm(site, "-m", "council/triad", "-R", "-o", "check", "true", QUESTION)
    corrected = f"6,000 euros in all {mark('chair', 'fix')}"
    assert corrected in checked.stdout and checked.stdout.count("It costs") == 1, checked.stdout
    answers.is_solo = True
    alone = run_llm(site, "-m", "council/solo", "-R", QUESTION)
    assert alone.stdout.startswith(write_text("alpha", "rewrite-again", "4,000")), alone.stderr
    assert alone.stdout.count("It costs") == 1
    site.reset()
    wrong = run_llm(site, "-m", "council", "-o", "max_cost", "0.0000001", QUESTION)
    assert wrong.returncode == 1 and wrong.stderr.strip().splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in wrong.stderr
