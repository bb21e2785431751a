"""Give a seat to a custom member: here, the rules of the house instead of a model."""

import json
import sys
from collections.abc import Callable

import council

RULES = {"deploy": "Deploy on weekdays before 15:00.", "name": "Use lower case and hyphens."}


class HouseRules(council.Member):
    name, vendor, free = "house:rules", "house", True

    def prepare(self, ask: council.Ask) -> bytes:
        """Make the bytes of the request. A resumed run sends the same bytes again."""
        return json.dumps({"prompt": ask.messages[-1]["content"]}).encode()

    async def send(self, body: bytes, on_delta: Callable[[str], None]) -> council.Answer:
        """Answer with the rules that the prompt mentions. Raise `council.Fault(kind, detail)` if that fails."""
        prompt = json.loads(body)["prompt"].lower()
        text = " ".join(rule for word, rule in RULES.items() if word in prompt) or "No rule applies; decide freely."
        on_delta(text)
        return council.Answer(text, usage=council.Usage(len(body) // 4, len(text) // 4), model=self.name)


def main(question: str = "When should we deploy, and how should we name the branch?") -> council.Report:
    member = HouseRules()
    report = council.convene_sync(question, protocol="triad", members=[member], seats={"gamma": member.name})
    report.raise_for_status()
    print(*(f"{seat.name}: {seat.served_by}" for seat in report.seats), report.answer, sep="\n")
    return report


if __name__ == "__main__":
    main(*sys.argv[1:])
