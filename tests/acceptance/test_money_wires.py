"""The ledger's charges equal the provider's bill on each wire, with caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.helpers import Terminal, Workspace
from tests.fake_provider import Reply, Seen
from tests.trusted_project import trust_project, write_user_file

RATES = {"in": 3.0, "cached": 0.3, "written": 3.75, "out": 15.0}
CONFIG = """
[providers.sim]
wire = "{wire}"
base_url = "{url}"
backoff = 0.01
[models]
default = "sim:m1"
"""
PRICES = """
[prices."sim:m1"]
input = 3.0
cached = 0.3
write = 3.75
output = 15.0
"""


def bill(seen: Seen) -> float:
    """Return the cost computed by hand. Tokens neither read from nor written to a cache are charged as input."""
    tokens = {"cached": 0, "written": 0} | seen.tokens
    tokens["in"] -= tokens["cached"] + tokens["written"]
    return sum(tokens[name] * rate for name, rate in RATES.items()) / 1e6


def saving(seen: Seen) -> float:
    """Return what the cache saved, computed by hand: the same tokens as plain input, minus their bill."""
    plain = seen.tokens["in"] * RATES["in"] + seen.tokens["out"] * RATES["out"]
    return plain / 1e6 - bill(seen)


@pytest.mark.behaviour("29-cache-saving")
@pytest.mark.behaviour("40-four-price-classes")
@pytest.mark.parametrize("wire", ["openai", "anthropic", "google"])
def test_on_every_wire_the_report_and_the_store_equal_the_providers_bill(
    workspace: Workspace, council: Terminal, wire: str
) -> None:
    Path("council.toml").write_text(CONFIG.format(wire=wire, url=workspace.provider.base(wire)), encoding="utf-8")
    write_user_file(PRICES)
    trust_project()
    Path("app.py").write_text("print('hello')\n" * 600, encoding="utf-8")
    workspace.provider.answer = (lambda seen: Reply(cached=128)) if wire != "anthropic" else None
    report = council("validate", "app.py", "--debate", "--json").json
    log = workspace.provider.log
    assert len(log) == report["calls"]["made"] == 5  # two rounds of two judges, and the clerk
    assert sum(seen.tokens.get("cached", 0) for seen in log) > 0
    assert (wire == "anthropic") == (sum(seen.tokens.get("written", 0) for seen in log) > 0)
    usd, saved = pytest.approx(sum(map(bill, log)), abs=1e-9), pytest.approx(sum(map(saving, log)), abs=1e-9)
    assert report["cost"] == {"usd": usd, "estimated": False, "unpriced": [], "cached_saving": saved}
    spent = council("spend", "--json").json["total"]
    assert (spent["usd"], spent["cached_saving"]) == (usd, saved)
    ((charged,),) = workspace.rows("SELECT sum(charged) FROM spending")
    assert charged / 1e9 == pytest.approx(sum(map(bill, log)), abs=1e-9)
    assert council("runs", "fsck").code == 0
