"""One vendor is down: fallbacks answer, both names are shown, and seats share a vendor only if necessary."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.acceptance.helpers import EVERYONE, QUESTION, SEATS, FixedAnswers, Json, Terminal, Workspace
from tests.fake_provider import Reply
from tests.trusted_project import trust_project

DOWN = {
    "503": Reply(status=503),
    "500": Reply(status=500),
    "quota": Reply(status=429, error={"error": {"message": "no credit left", "code": "insufficient_quota"}}),
    "401": Reply(status=401),
    "cut": Reply(cut=10),
}


class Families:
    """Alpha, beta and gamma on three vendors, the chair on alpha's; other configured vendors are unused."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        workspace.provider.answer = workspace.answers = FixedAnswers()
        self.dead: dict[str, Reply] = {}
        workspace.provider.answer = self

    def __call__(self, seen: object) -> Reply:
        model = str(getattr(seen, "model", ""))
        return self.dead.get(model.partition("-")[0]) or Reply(text=f"The words of {model}.")

    def configure(self, *free: str, unreachable: str = "") -> None:
        vendors = ["a", "b", "c", *free]
        lines = []
        for vendor in vendors:
            url = unreachable if unreachable and vendor == "a" else self.workspace.provider.base_url
            lines += [f"[providers.{vendor}]", f'base_url = "{url}"', "backoff = 0.001"]
        lines += [
            "[models]",
            *(
                f'{row} = "{vendor}:{vendor}-m"'
                for row, vendor in zip(("default", "other", "strong", "fast"), free, strict=False)
            ),
        ]
        for seat, vendor in zip(EVERYONE, ("a", "b", "c", "a"), strict=True):
            lines += [f"[seats.{seat}]" if seat in SEATS else "[chair]", f'model = "{vendor}:{vendor}-m"']
        (self.workspace.folder / "council.toml").write_text("\n".join(lines), encoding="utf-8")
        trust_project(self.workspace.folder)


@pytest.fixture
def families(workspace: Workspace) -> Families:
    return Families(workspace)


@pytest.fixture
def closed_address() -> Iterator[str]:
    """Yield the address of a closed port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def served(report: Json) -> dict[str, str]:
    return {seat["name"]: str(seat["served_by"]).partition(":")[0] for seat in [*report["seats"], report["chair"]]}


@pytest.mark.behaviour("issue-5-one-vendor-down", "40-fallback-families")
@pytest.mark.parametrize("death", DOWN)
def test_its_seat_is_served_by_an_unused_vendor(families: Families, council: Terminal, death: str) -> None:
    families.configure("d")
    families.dead["a"] = DOWN[death]
    done = council("--json", "--protocol", "collaborative", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete")
    assert served(done.json) == {"alpha": "d", "beta": "b", "gamma": "c", "chair": "d"}
    rows = {row["seat"]: row["reason"] for row in done.json["degraded"] if row["state"] == "fallback"}
    assert rows.keys() == {"alpha", "chair"}
    assert rows["alpha"].startswith("requested a:a-m, ") and rows["alpha"].endswith("d:d-m answered instead")


@pytest.mark.behaviour("issue-5-one-vendor-down")
def test_both_names_are_shown_on_standard_error(families: Families, council: Terminal, closed_address: str) -> None:
    families.configure("d", unreachable=closed_address)
    done = council("--protocol", "triad", QUESTION)
    assert done.code == 0
    assert "! alpha and chair requested a:a-m (could not be reached): d:d-m answered instead." in done.err
    assert "instead" not in done.out


@pytest.mark.behaviour("issue-5-one-vendor-down", "40-fallback-families")
def test_without_an_unused_vendor_the_seat_shares_one_and_the_report_shows_it(
    families: Families, council: Terminal
) -> None:
    families.configure()
    families.dead["a"] = DOWN["401"]
    done = council("--json", "--protocol", "triad", QUESTION)
    by = served(done.json)
    assert by["alpha"] in ("b", "c")
    assert any("so their agreement means less" in row["reason"] for row in done.json["degraded"])


@pytest.mark.behaviour("issue-5-one-vendor-down", "40-fallback-families")
def test_with_two_vendors_down_and_two_free_every_seat_has_a_different_vendor(
    families: Families, council: Terminal
) -> None:
    families.configure("d", "e")
    families.dead |= {"a": DOWN["503"], "b": DOWN["401"]}
    done = council("--json", "--protocol", "collaborative", QUESTION)
    assert done.json["status"] == "complete"
    by = served(done.json)
    assert sorted(by[seat] for seat in SEATS) == ["c", "d", "e"]


@pytest.mark.behaviour("issue-5-one-vendor-down")
def test_a_vendor_that_fails_after_the_first_phase_is_replaced(families: Families, council: Terminal) -> None:
    families.configure("d")

    def dies(seen: object) -> Reply:
        return DOWN["500"] if getattr(seen, "model", "") == "a-m" and getattr(seen, "nth", 0) > 1 else families(seen)

    families.workspace.provider.answer = dies
    done = council("--json", "--protocol", "collaborative", QUESTION)
    assert served(done.json)["alpha"] == "d"
    (row,) = (row for row in done.json["degraded"] if row["seat"] == "alpha")
    assert (row["phase"], row["state"]) == ("improve", "fallback")


@pytest.mark.behaviour("issue-5-one-vendor-down", "40-mixed-stays-strict")
def test_mixed_never_falls_back_to_the_other_vendor(families: Families, council: Terminal) -> None:
    families.configure("d", "e")
    (families.workspace.folder / "code.py").write_text("x = 1\n")
    families.dead |= {"e": DOWN["401"]}
    families.workspace.provider.values = {"verdict": "PASS", "confidence": "HIGH"}
    families.workspace.provider.answer = lambda seen: families.dead.get(seen.model.partition("-")[0])
    done = council("--mixed", "validate", "code.py", "--json")
    report = done.json
    assert {seat["served_by"] for seat in report["seats"]} == {"d:d-m", None}
    assert {seat["state"] for seat in report["seats"] if seat["served_by"] is None} == {"failed(auth)"}
