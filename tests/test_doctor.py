"""The doctor speaks also where a council could not sit."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.convene import Convener
from council.doctor import seating


@pytest.mark.behaviour("00-members-missing-key-is-named")
def test_a_seat_whose_key_is_missing_is_a_notice_of_the_doctor() -> None:
    lines = ["[providers.sim]", 'base_url = "http://127.0.0.1:9/v1"', 'api_key_env = "SIM_API_KEY"']
    Path("council.toml").write_text("\n".join([*lines, "[seats.alpha]", 'model = "sim:m1"']))
    found = seating(Convener())
    assert found["seats"] == []
    assert "set SIM_API_KEY" in found["notices"][0]
