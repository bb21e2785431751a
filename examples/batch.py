"""Ask many questions, at most three at once, and write one JSON line per answer. Run it again to continue.

python examples/batch.py questions.txt answers.jsonl
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import council

AT_ONCE = 3


async def ask_all(questions: list[str], on_report: Callable[[str, council.Report], None]) -> None:
    limit = asyncio.Semaphore(AT_ONCE)
    async with council.Client(protocol="triad", cheap=True) as client:

        async def ask(question: str) -> None:
            async with limit:
                on_report(question, await client.convene(question))

        await asyncio.gather(*map(ask, questions))


def main(questions: str, answers: str) -> int:
    Path(answers).touch()
    done = {json.loads(line)["question"] for line in Path(answers).read_text(encoding="utf-8").splitlines()}
    lines = Path(questions).read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if line.strip() and line not in done]
    with Path(answers).open("a", encoding="utf-8") as file:

        def write(question: str, report: council.Report) -> None:
            row = {"question": question, "run": report.run, "answer": report.answer, "trust": report.trust.level}
            print(json.dumps(row), file=file, flush=True)

        asyncio.run(ask_all(wanted, write))
    print(f"{len(wanted)} answered now, {len(done)} before")
    return len(wanted)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/batch.py questions.txt answers.jsonl")
    main(*sys.argv[1:])
