"""The plain data of a verdict and of a report has the fields of their classes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from pydantic import BaseModel

from council.engine import records
from council.protocols.adaptive.report import AdaptiveFields
from council.protocols.adversarial.report import AdversarialFields
from council.protocols.judges.details import ReviewFields
from council.protocols.panel.report import PanelFields
from council.protocols.ranking.report import RankingFields
from council.protocols.refine.report import RefineFields
from council.render import report_object
from council.runs.ci_gate import GateDecision
from council.types import (
    CheckedError,
    CheckedErrorRow,
    Difference,
    OutcomeFacts,
    Side,
    TrustFact,
    TrustFactRow,
    Verdict,
)


def names_of(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (records.VerdictObject, Verdict),
        (records.SideRow, Side),
        (records.DifferenceRow, Difference),
        (records.OutcomeRow, OutcomeFacts),
        (CheckedErrorRow, CheckedError),
        (TrustFactRow, TrustFact),
    ],
)
def test_a_row_has_the_fields_of_its_class(row: Any, kind: Any) -> None:
    assert list(row.__annotations__) == [field.name for field in fields(kind)]


PROTOCOL_FIELDS = (AdaptiveFields, AdversarialFields, PanelFields, RankingFields, RefineFields, ReviewFields)


def test_a_report_has_the_fields_of_its_object_and_those_that_protocols_and_the_gate_add() -> None:
    added = {name for row in PROTOCOL_FIELDS for name in row.__annotations__}
    assert names_of(report_object.Report) == {*records.ReportObject.__annotations__, *added, "gate"}
    assert names_of(report_object.Gate) == set(GateDecision.__annotations__)


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (records.ReportSeatRow, report_object.ReportSeat),
        (records.SeatLookupRow, report_object.SeatLookup),
        (records.HedgeRow, report_object.Hedge),
        (records.DegradedRow, report_object.Degraded),
        (records.QuorumCounts, report_object.Quorum),
        (records.CallCounts, report_object.Calls),
        (records.CostRow, report_object.Cost),
        (records.StopRow, report_object.Stop),
        (records.TrustRow, report_object.Trust),
        (TrustFactRow, report_object.TrustFactRow),
        (records.CheckRow, report_object.Check),
        (CheckedErrorRow, report_object.CheckedErrorRow),
        (records.StrongestRow, report_object.StrongestSeat),
        (records.PositionCell, report_object.SeatPosition),
        (records.SectionRow, report_object.AnswerSection),
        (records.ClosestDraft, report_object.ClosestDraft),
        (records.OneModelCost, report_object.OneModel),
        (records.ChangedRow, report_object.Changed),
    ],
)
def test_a_row_has_the_fields_of_its_part_of_a_report(row: Any, part: type[BaseModel]) -> None:
    assert set(row.__annotations__) == names_of(part)
