"""council.testing: a test has its own runs and settings, and no vendor is asked."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

import council
from council.members.scripted import Scripted
from council.testing import isolate
from tests.trusted_project import write_user_file
from tests.vendor_trap import vendor_trap

SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
FAILING = {"merge/chair": {"fail": "server"}}
pytestmark = pytest.mark.behaviour("30-examples-ask-no-vendor")


def convene(**options: object) -> council.Report:
    return council.convene_sync("Tabs or spaces?", protocol="triad", **options)  # type: ignore[arg-type]


def test_without_isolation_a_failing_member_is_replaced_at_a_vendor() -> None:
    """The trap of the other tests catches that."""
    with pytest.raises(AssertionError, match="asked a vendor"), vendor_trap():
        convene(members=[Scripted(script=FAILING)], seats=SEATS)


def test_an_isolated_test_asks_no_vendor_whatever_fails(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    with vendor_trap(), isolate(folder):
        assert convene(members=[Scripted(script=FAILING)], seats=SEATS).status == "incomplete"
        assert {seat.served_by for seat in convene().seats} == {"scripted:"}
        assert Path.cwd() == folder
        assert not any(name.endswith("_API_KEY") for name in os.environ)


def test_isolation_ends_with_the_environment_the_folder_and_the_runs_of_before(tmp_path: Path) -> None:
    write_user_file('[seats.alpha]\nmodel = "scripted:"\n')
    own = convene(models=["scripted:"]).run
    before, folder = dict(os.environ), Path.cwd()
    with pytest.raises(ZeroDivisionError), isolate(tmp_path / "work"):
        assert convene().run != own
        raise ZeroDivisionError
    assert (dict(os.environ), Path.cwd()) == (before, folder)
    assert len(_list_runs()) == 1


def test_isolation_takes_the_settings_of_the_test(tmp_path: Path) -> None:
    with isolate(tmp_path, 'vendors = ["scripted"]\n[models]\ndefault = "scripted:"\n[budget]\nmax_cost = 0.5\n'):
        assert convene(models=["scripted:"]).cost.cap == 0.5


def _list_runs() -> list[object]:
    async def read() -> list[object]:
        async with council.Client() as client:
            return list(await client.runs())

    return asyncio.run(read())
