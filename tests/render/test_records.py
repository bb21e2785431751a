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
from council.render import report_parts
from council.render.report_object import Report
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
    assert names_of(Report) == {*records.ReportObject.__annotations__, *added, "gate"}
    assert names_of(report_parts.Gate) == set(GateDecision.__annotations__)


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (records.ReportSeatRow, report_parts.ReportSeat),
        (records.SeatLookupRow, report_parts.SeatLookup),
        (records.HedgeRow, report_parts.Hedge),
        (records.DegradedRow, report_parts.Degraded),
        (records.QuorumCounts, report_parts.Quorum),
        (records.CallCounts, report_parts.Calls),
        (records.CostRow, report_parts.Cost),
        (records.StopRow, report_parts.Stop),
        (records.TrustRow, report_parts.Trust),
        (TrustFactRow, report_parts.TrustFactRow),
        (records.CheckRow, report_parts.Check),
        (CheckedErrorRow, report_parts.CheckedErrorRow),
        (records.StrongestRow, report_parts.StrongestSeat),
        (records.PositionCell, report_parts.SeatPosition),
        (records.SectionRow, report_parts.AnswerSection),
        (records.ClosestDraft, report_parts.ClosestDraft),
        (records.OneModelCost, report_parts.OneModel),
        (records.ChangedRow, report_parts.Changed),
    ],
)
def test_a_row_has_the_fields_of_its_part_of_a_report(row: Any, part: type[BaseModel]) -> None:
    assert set(row.__annotations__) == names_of(part)
