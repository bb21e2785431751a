"""Plan objects are the same as those that were recorded: their fields, the order of the fields, and what they say.

A change of the plan object is deliberate: write the recording again with `UPDATE_PLANS=1 pytest
tests/planning/test_recorded_plans.py` and read its diff. Numbers that depend on the length of the prompts are not
recorded.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from council.planning.plan import Material
from council.runs.service import Convener
from tests.paths import DATA

pytestmark = pytest.mark.anyio
RECORDING = DATA / "plans.json"
SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
WIRE = 'wire = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
CONFIG = f"""
[providers.north]
{WIRE}
[providers.south]
{WIRE}
vendor = "pole"
[providers.east]
wire = "anthropic"
base_url = "http://127.0.0.1:9"
[prices."north:one"]
input = 3
output = 15
[prices."south:two"]
input = 1
output = 5
[prices."east:three"]
input = 2
output = 10
[seats.alpha]
model = "north:one"
fallback = ["south:two"]
[seats.beta]
model = "south:two"
fallback = []
[seats.gamma]
model = "east:three"
fallback = ["north:one", "south:two"]
[chair]
model = "north:one"
[members."north:one"]
images = true
"""
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NUMBERS = ("low", "expected", "worst", "tokens", "usd")  # they depend on the length of the prompts
Case = tuple[list[str], dict[str, Any], dict[str, Any], Material | None]
CASES: dict[str, Case] = {
    "collaborative": (["Tabs or spaces?"], {}, {"protocol": "collaborative"}, None),
    "adversarial": (["Tabs or spaces?"], {"check": True}, {"protocol": "adversarial"}, None),
    "ranking": (["Tabs or spaces?"], {"effort": "low"}, {"protocol": "ranking"}, None),
    "adaptive": (["Tabs or spaces?"], {"hedge": True}, {"protocol": "adaptive"}, None),
    "refine": (["Tabs or spaces?"], {"exclude_family": "east"}, {"protocol": "refine"}, None),
    "general": (["Tabs or spaces?"], {}, {"protocol": "general"}, None),
    "judges": (["review", "src"], {}, {}, None),
    "cap": (["Tabs or spaces?"], {"max_cost": 0.35}, {"protocol": "collaborative"}, None),
    "shortfall": (["Tabs or spaces?"], {"max_cost": 0.01}, {"protocol": "collaborative"}, None),
    "look": (["Is src/app.py ready?"], {}, {}, Material(look=True)),
    "picture": (["What is this?"], {}, {}, Material(attachments=(("plan.png", PICTURE),))),
    "unpriced": (["Tabs or spaces?"], {"seats": SEATS, "chair": "scripted:"}, {"protocol": "triad"}, None),
    "large": (["Tabs or spaces?"], {}, {"protocol": "collaborative"}, Material(stdin="a long text " * 3000)),
}


def make_project() -> None:
    Path("council.toml").write_text(CONFIG, encoding="utf-8")
    Path("src").mkdir()
    Path("src/app.py").write_text("x = 1\n", encoding="utf-8")
    Path("src/model.bin").write_bytes(bytes(range(256)))
    subprocess.run(["git", "init", "-q"], check=True)


def mask(value: Any, name: str = "") -> Any:
    """Return a plan with 0 for the numbers that depend on the prompts."""
    if isinstance(value, Mapping):
        is_cost = name in ("cost", "limits")
        inside = {"seats": "cost", "phases": "cost"} if name == "cost" else {}
        return {key: mask(item, inside.get(key, "cost" if is_cost else key)) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [mask(item) for item in value]
    if isinstance(value, str) and "$" in value:
        return re.sub(r"\d[\d,.]*", "0", value)
    if name in NUMBERS or (name == "cost" and isinstance(value, float)):
        return 0.0 if isinstance(value, float) else 0
    return value


async def record_plan(case: Case) -> Any:
    words, flags, how, material = case
    convener = Convener(Path.cwd(), {}, flags=flags, config=Path("council.toml"))
    try:
        plan = await convener.plan(words, None, material=material, **how)
    finally:
        await convener.close()
    return json.loads(json.dumps(plan.as_json()))


@pytest.mark.parametrize("name", CASES)
async def test_a_plan_is_as_recorded(name: str) -> None:
    make_project()
    made = mask(await record_plan(CASES[name]))
    recorded = json.loads(RECORDING.read_text(encoding="utf-8")) if RECORDING.exists() else {}
    if os.environ.get("UPDATE_PLANS"):
        RECORDING.write_text(json.dumps(recorded | {name: made}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        assert json.dumps(made, indent=1) == json.dumps(recorded[name], indent=1)
