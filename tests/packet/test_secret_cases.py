"""Secrets and look-alikes in the files of authors who had not seen the rules."""

from __future__ import annotations

import pytest

from council.packet.files import has_secret_name
from council.packet.secret_filter import find_secrets, redact_text
from tests.packet.secret_cases import SETS, Case, load_cases

MIN_STOPPED = 0.92
MAX_REFUSED = 0.03


def is_stopped(case: Case) -> bool:
    return has_secret_name(case.path) or bool(find_secrets(case.text))


@pytest.mark.behaviour("packet-secret-cases")
@pytest.mark.parametrize("name", SETS)
def test_files_with_secrets_are_stopped_and_files_without_are_sent(name: str) -> None:
    secrets, look_alikes = load_cases(name)
    assert len(secrets) >= 100 and len(look_alikes) >= 110
    missed = [case.name for case in secrets if not is_stopped(case)]
    assert len(missed) <= (1 - MIN_STOPPED) * len(secrets), missed
    refused = [case.name for case in look_alikes if find_secrets(case.text)]
    assert len(refused) <= MAX_REFUSED * len(look_alikes), refused


@pytest.mark.behaviour("packet-secret-cases")
@pytest.mark.parametrize("name", SETS)
def test_a_secret_that_is_found_is_masked(name: str) -> None:
    found = [case for case in load_cases(name)[0] if find_secrets(case.text)]
    shown = [
        case.name
        for case in found
        if any(len(line.strip()) > 3 and line in redact_text(case.text) for line in case.secret.splitlines())
    ]
    assert len(shown) <= 0.03 * len(found), shown
