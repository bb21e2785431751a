"""Input cost of each protocol with a packet of 6,000 tokens, at list prices, with the prompt caches of the vendors.

Real runs against an endpoint that caches by the documented rules of each vendor (`tests/fakes/prompt_cache.py`). All
seats use one vendor, or the seats use three vendors as by default. Run it from the repository:

    PYTHONPATH=. python benchmarks/prompt_cache.py

`plain` is the input at list price without a cache, `billed` what the vendors charge, `possible` the share of the input
tokens that an earlier request of the same model began with, in the order in which the vendor reads a request, and
`cached` the share that was read from the cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from measure import isolated_environment, print_table
from tests.fake_provider import FakeProvider
from tests.fakes.prompt_cache import MIN_TOKENS, PromptCache, list_blocks, measure_prefix
from tests.fakes.replies import Seen

from council.calling.pricing import _lookup_list_price
from council.money import Price, exact_cost
from council.types import Usage

COMMAND = str(Path(sys.executable).parent / "council")
PACKET_TOKENS = 6_000
DELAY_S = 0.25  # before the first byte, so that the requests of a phase are under way together
WIRES = {"anthropic": "anthropic", "openai": "openai-responses", "google": "google"}
MODELS = {"anthropic": "claude-opus-5.5", "openai": "gpt-6.1-sol", "google": "gemini-3.1-pro-preview"}
REPAIR = "Your reply could not be used"  # the endpoint makes its replies up, so these turns are left out
ASK = "Should we adopt plan.md?"
CASES = {
    "triad": ["--protocol", "triad", ASK],
    "collaborative": ["--protocol", "collaborative", ASK],
    "collaborative --check": ["--protocol", "collaborative", "--check", ASK],
    "adversarial": ["--protocol", "adversarial", ASK],
    "advisors --rounds 3": ["--protocol", "advisors", "--rounds", "3", ASK],
    "general": ["--protocol", "general", "--no-search", ASK],
    "ranking": ["--protocol", "ranking", ASK],
    "refine": ["--protocol", "refine", ASK],
    "solo": ["--protocol", "solo", ASK],
    "validate": ["validate", "plan.md"],
    "validate --deep": ["validate", "plan.md", "--deep"],
    "validate --debate": ["validate", "plan.md", "--debate"],
    "validate --explorers=2": ["validate", "plan.md", "--explorers=2"],
    "collaborative --look": ["--protocol", "collaborative", "--look", ASK],
}
ROSTERS = ("three vendors", *MODELS)


def write_files(folder: Path, provider: FakeProvider, roster: str, extra: str) -> None:
    """Write the packet and the user's configuration."""
    lines = [
        f"Step {n}: move shelf {n} of the archive, check its list, and report what is missing.\n" for n in range(400)
    ]
    text = "".join(lines)[: PACKET_TOKENS * 4]
    (folder / "plan.md").write_text(text, encoding="utf-8")
    (folder / "notes.md").write_text(text[:8000], encoding="utf-8")
    config = folder.parent / "config" / "council" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    providers = "".join(
        f'[providers.{name}]\nwire = "{wire}"\nbase_url = "{provider.base(wire)}"\n{extra}'
        for name, wire in WIRES.items()
    )
    seats = ""
    if roster in MODELS:
        member = f"{roster}:{MODELS[roster]}"
        seats = f'[models]\ndefault = "{member}"\nstrong = "{member}"\nfast = "{member}"\nother = "{member}"\n'
        places = ("seats.alpha", "seats.beta", "seats.gamma", "chair")
        seats += "".join(f'[{place}]\nmodel = "{member}"\nfallback = []\n' for place in places)
    config.write_text(f"model_lists = false\n[budget]\nconfirm_above = false\n{providers}{seats}", encoding="utf-8")


def find_price(seen: Seen) -> Price:
    vendor = seen.wire.removesuffix("-responses")
    price = _lookup_list_price(vendor, seen.model, "")
    if price is None:
        raise SystemExit(f"no list price for {vendor}:{seen.model}")
    return price


def list_labels(seen: Seen) -> list[str]:
    """Return the labels that a reply has to order, each once."""
    order: dict[str, Any] = (seen.schema or {})["properties"]["order"]
    return list(order["items"]["enum"])


def measure(arguments: list[str], roster: str, extra: str) -> dict[str, Any]:
    """Run one council and return its input cost without and with caches, and the cached shares."""
    with FakeProvider(delay=DELAY_S) as provider, isolated_environment() as (folder, env):
        provider.cache = PromptCache(dict(MIN_TOKENS))
        provider.values = {
            "files": lambda seen: [{"path": "notes.md", "first": 1, "last": 80}],
            "order": list_labels,
            "edits": lambda seen: [],
        }
        env |= dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "sk-test-0123456789")
        write_files(folder, provider, roster, extra)
        members = ["-m", f"{roster}:{MODELS[roster]}"] if roster in MODELS else []
        command = [COMMAND, "--json", "--no-stdin", "--yes", *members, *arguments]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        report = json.loads(done.stdout)
        if report.get("status") != "complete":
            raise SystemExit(f"{arguments}: {done.stdout[:500]} {done.stderr[:500]}")
        log = [seen for seen in provider.log if REPAIR not in seen.prompt]
    plain = billed = Decimal(0)
    total = possible = cached = 0
    for n, seen in enumerate(log):
        tokens, price = seen.tokens, find_price(seen)
        plain += exact_cost(Usage(tokens["in"]), price)
        billed += exact_cost(Usage(tokens["in"], 0, tokens.get("cached", 0), True, tokens.get("written", 0)), price)
        earlier = [list_blocks(other) for other in log[:n] if (other.wire, other.model) == (seen.wire, seen.model)]
        total += tokens["in"]
        possible += measure_prefix(list_blocks(seen), earlier)
        cached += tokens.get("cached", 0)
    return {
        "calls": len(log), "plain": float(plain), "billed": float(billed), "possible": possible / total,
        "cached": cached / total, "saving": report["cost"].get("cached_saving"),
    }  # fmt: skip


def format_row(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    shares = (1 - row["billed"] / row["plain"], row["possible"], row["cached"])
    return (
        name,
        str(row["calls"]),
        f"${row['plain']:.4f}",
        f"${row['billed']:.4f}",
        *(f"{share:.0%}" for share in shares),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--config", default="prompt_cache = true\\n", help="further lines of each provider's table")
    options = parser.parse_args()
    extra = options.config.replace("\\n", "\n")
    results = {
        name: {roster: measure(arguments, roster, extra) for roster in ROSTERS}
        for name, arguments in CASES.items()
        if options.only in name
    }
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for roster in ROSTERS:
        print(f"\n{roster}")
        head = ("protocol", "calls", "plain", "billed", "saved", "possible", "cached")
        print_table(head, [format_row(name, of_roster[roster]) for name, of_roster in results.items()])


if __name__ == "__main__":
    main()
