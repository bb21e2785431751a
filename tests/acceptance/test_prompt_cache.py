"""Prompt caches in the real command: requests, bill, estimate and resume, with endpoints that cache by the vendors'
rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.helpers import Json, Terminal, kill, wait_for_exit
from tests.fake_provider import FakeProvider, Reply, Seen
from tests.fakes.prompt_cache import PromptCache, list_blocks, measure_prefix
from tests.fork_server import Process
from tests.trusted_project import trust_project, write_user_file

RATES = {"in": 4.0, "cached": 0.2, "written": 5.0}
PRICES = '[prices."lab:*"]\ninput = 4.0\ncached = 0.2\nwrite = 5.0\noutput = 20.0\n'
MODELS = {"anthropic": "claude-opus-5-5", "openai-responses": "gpt-6.1-sol", "google": "gemini-3.1-pro-preview"}
PACKET_TOKENS = 6_000
ASK = "Should we adopt plan.md?"
PROTOCOLS = {
    "triad": ["--protocol", "triad", ASK],
    "collaborative": ["--protocol", "collaborative", ASK],
    "collaborative --look": ["--protocol", "collaborative", "--look", ASK],
    "advisors": ["--protocol", "advisors", "--rounds", "3", ASK],
    "adversarial": ["--protocol", "adversarial", ASK],
    "refine": ["--protocol", "refine", ASK],
    "ranking": ["--protocol", "ranking", ASK],
    "solo": ["--protocol", "solo", ASK],
    "judges": ["validate", "plan.md", "--deep"],
    "judges --debate": ["validate", "plan.md", "--debate"],
    "judges --explorers": ["validate", "plan.md", "--explorers=2"],
}
Lab = Callable[..., FakeProvider]


@pytest.fixture
def lab(provider: FakeProvider) -> Lab:
    """Return a function that makes a project whose seats ask one model of a vendor about a packet of 6,000 tokens."""

    def make(wire: str, *, prompt_cache: bool = True) -> FakeProvider:
        member = f"lab:{MODELS[wire]}"
        Path("council.toml").write_text(
            f'model_lists = false\n[providers.lab]\nwire = "{wire}"\nbase_url = "{provider.base(wire)}"\n'
            f"backoff = 0.01\nprompt_cache = {json.dumps(prompt_cache)}\n"
            f'[models]\ndefault = "{member}"\nstrong = "{member}"\nfast = "{member}"\n[chair]\nmodel = "{member}"\n',
            encoding="utf-8",
        )
        write_user_file(PRICES)
        text = "".join(f"Step {n}: move shelf {n} of the archive and check its list.\n" for n in range(800))
        Path("plan.md").write_text(text[: PACKET_TOKENS * 4], encoding="utf-8")
        Path("notes.md").write_text("A note.\n" * 100, encoding="utf-8")
        trust_project()
        provider.cache = PromptCache()
        provider.values = {
            "files": lambda seen: [{"path": "notes.md", "first": 1, "last": 80}],
            "order": lambda seen: (seen.schema or {})["properties"]["order"]["items"]["enum"],
            "edits": lambda seen: [],
        }
        return provider

    return make


def bill(seen: Seen, *, plain: bool = False) -> float:
    """Return the cost of the input, computed by hand; if `plain`, as if there were no cache."""
    cached, written = (0, 0) if plain else (seen.tokens.get("cached", 0), seen.tokens.get("written", 0))
    counts = {"in": seen.tokens["in"] - cached - written, "cached": cached, "written": written}
    return sum(counts[name] * rate for name, rate in RATES.items()) / 1e6


def total(log: list[Seen], *, plain: bool = False) -> float:
    return sum(bill(seen, plain=plain) for seen in log)


def measure_saving(log: list[Seen]) -> float:
    return total(log, plain=True) - total(log)


def possible(log: list[Seen]) -> int:
    """Return the input tokens that an earlier request began with."""
    blocks = [list_blocks(seen) for seen in log]
    return sum(measure_prefix(one, blocks[:n]) for n, one in enumerate(blocks))


@pytest.mark.behaviour("29-cache-achieved")
@pytest.mark.parametrize("wire", ["anthropic", "openai-responses"])
@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_nearly_everything_that_was_sent_before_is_read_from_the_cache(
    lab: Lab, council: Terminal, wire: str, protocol: str
) -> None:
    provider = lab(wire)
    report = council("--json", *PROTOCOLS[protocol]).json
    assert report["status"] == "complete"
    log = [seen for seen in provider.log if "could not be used" not in seen.prompt]  # repair turns cannot be foreseen
    read = sum(seen.tokens.get("cached", 0) for seen in log)
    assert read >= PACKET_TOKENS
    assert read >= 0.97 * possible(log)
    assert total(log) < 0.8 * total(log, plain=True)


@pytest.mark.behaviour("29-cache-points")
@pytest.mark.parametrize("wire", ["anthropic", "openai-responses"])
def test_a_packet_that_is_sent_once_is_not_written_to_the_cache(lab: Lab, council: Terminal, wire: str) -> None:
    provider = lab(wire)
    report = council("--json", "validate", "plan.md", "--quick").json
    assert [seen.tokens.keys() & {"cached", "written"} for seen in provider.log] == [set()]
    assert "cached_saving" not in report["cost"]


@pytest.mark.behaviour("29-cache-points")
def test_without_the_warm_start_seats_that_start_together_write_nothing(lab: Lab, council: Terminal) -> None:
    provider = lab("anthropic")
    council("--no-warm", "validate", "plan.md", "--deep")
    assert sum(seen.tokens.get("written", 0) for seen in provider.log) == 0


# The bill


@pytest.mark.behaviour("29-cache-saving")
@pytest.mark.parametrize("wire", list(MODELS))
def test_the_report_and_the_spending_have_the_saving(lab: Lab, council: Terminal, wire: str) -> None:
    provider = lab(wire)
    cost = council("--json", *PROTOCOLS["collaborative"]).json["cost"]
    saved = measure_saving(provider.log)
    assert saved > 0.01
    assert cost["cached_saving"] == pytest.approx(saved, abs=1e-9)
    assert council("spend", "--json").json["total"]["cached_saving"] == pytest.approx(saved, abs=1e-9)
    assert f"${saved:.2f} saved by the vendors' caches" in council("spend").out
    sent = len(provider.log)
    progress = council("-v", *PROTOCOLS["collaborative"]).err
    assert f"${measure_saving(provider.log[sent:]):.2f} saved by the vendors' caches" in progress
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("29-cache-saving")
def test_writing_that_is_not_read_is_a_negative_saving(lab: Lab, council: Terminal) -> None:
    provider = lab("openai-responses")
    details = {"cached_tokens": 0, "cache_write_tokens": 5000}
    usage = {"prompt_tokens": 6000, "completion_tokens": 100, "prompt_tokens_details": details}
    provider.answer = lambda seen: Reply(usage=[usage])
    done = council("-v", "--json", "--protocol", "quick", ASK)
    assert done.json["cost"]["cached_saving"] == pytest.approx(-0.005)
    assert "$0.0050 more for writing to the vendors' caches" in council("spend").out


@pytest.mark.behaviour("29-cache-saving")
@pytest.mark.parametrize(
    "usage",
    [
        [],  # none
        [
            {"prompt_tokens": 10, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 5000}}
        ],  # not plausible
    ],
)
def test_unknown_or_implausible_usage_saves_nothing(lab: Lab, council: Terminal, usage: list[Json]) -> None:
    lab("openai-responses").answer = lambda seen: Reply(usage=usage)
    cost = council("--json", "--protocol", "quick", ASK).json["cost"]
    assert cost["estimated"] and "cached_saving" not in cost


# The estimate


@pytest.mark.behaviour("29-cache-estimate")
@pytest.mark.parametrize("wire", list(MODELS))
def test_the_estimate_includes_the_cache_except_at_worst(lab: Lab, council: Terminal, wire: str) -> None:
    plans = {}
    for prompt_cache in (True, False):
        lab(wire, prompt_cache=prompt_cache)
        plans[prompt_cache] = council("--dry-run", "--json", *PROTOCOLS["collaborative"]).json["cost"]
    assert plans[True]["worst"] == plans[False]["worst"]
    for name in ("low", "expected"):
        assert plans[True][name] < plans[False][name] - 0.03  # four reads of a packet that costs more than 2 cents
    assert plans[True]["low"] < plans[True]["expected"]


@pytest.mark.behaviour("29-cache-estimate")
def test_the_expected_saving_is_near_that_of_the_run(lab: Lab, council: Terminal) -> None:
    expected = {}
    for prompt_cache in (False, True):
        lab("anthropic", prompt_cache=prompt_cache)
        expected[prompt_cache] = council("--dry-run", "--json", *PROTOCOLS["triad"]).json["cost"]["expected"]
    saved = council("--json", *PROTOCOLS["triad"]).json["cost"]["cached_saving"]
    assert expected[False] - expected[True] == pytest.approx(saved, rel=0.5)  # 3 bytes per token instead of 4


@pytest.mark.behaviour("29-cache-estimate")
def test_a_reservation_does_not_count_on_the_cache(lab: Lab, council: Terminal) -> None:
    provider = lab("anthropic")
    report = council("--json", "--max-cost", "5", *PROTOCOLS["triad"]).json
    assert report["cost"]["cached_saving"] > 0
    sent = [
        event for event in council("runs", "replay", "--jsonl", report["run"]).out.splitlines() if '"attempt"' in event
    ]
    most = [json.loads(event)["most"] for event in sent]
    assert len(most) == len(provider.log)
    for seen, reserved in zip(provider.log, most, strict=True):
        assert reserved > len(seen.raw) / 4 * RATES["written"] / 1e6


# Resume


@pytest.mark.behaviour("29-cache-openai")
def test_a_resumed_run_has_the_same_key_and_breakpoints(lab: Lab, council: Terminal) -> None:
    provider = lab("openai-responses")
    gate = provider.hold(nth=4)
    run = Process(["--quiet", *PROTOCOLS["triad"]], Path.cwd())
    gate.wait()
    kill(run)
    gate.release()
    assert wait_for_exit(Process(["resume", "--quiet"], Path.cwd())).code == 0
    *_, sent, again = provider.log
    assert sent.raw == again.raw
    assert {seen.body["prompt_cache_key"] for seen in provider.log} == {sent.body["prompt_cache_key"]}
    assert all(seen.raw.count(b"prompt_cache_breakpoint") == 1 for seen in provider.log)
    council(*PROTOCOLS["triad"])
    assert provider.log[-1].body["prompt_cache_key"] != sent.body["prompt_cache_key"]


@pytest.mark.behaviour("29-cache-openai")
def test_an_endpoint_that_rejects_the_parameters_is_asked_without_them(lab: Lab, council: Terminal) -> None:
    provider = lab("openai-responses")
    error = {"error": {"message": "Unknown parameter: 'prompt_cache_options'.", "code": "unknown_parameter"}}
    provider.answer = lambda seen: Reply(status=400, error=error) if b"prompt_cache" in seen.raw else None
    report = council("--json", *PROTOCOLS["triad"]).json
    assert report["status"] == "complete"
    assert [b"prompt_cache" in seen.raw for seen in provider.log].count(False) == 4


@pytest.mark.behaviour("29-cache-points")
def test_a_fork_with_other_members_marks_nothing(lab: Lab, council: Terminal) -> None:
    """Its plan is not rehearsed again, so nothing is known about what its members are sent twice."""
    provider = lab("anthropic")
    run = council("--json", *PROTOCOLS["triad"]).json["run"]
    sent = len(provider.log)
    assert council("fork", run, "--seat", "alpha=lab:claude-sonnet-5-5", "--json").json["status"] == "complete"
    assert len(provider.log) > sent
    assert all(b"cache_control" not in seen.raw for seen in provider.log[sent:])
