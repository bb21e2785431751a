"""A run as JUnit XML: an absent seat is an error, a finding a failure, a PASS a passing case."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from council.engine.layout import format_found_by, list_absent_seats
from council.engine.records import FindingRow, ReportObject
from council.render.report import FinishedRun
from council.text_cleanup import clean, neutralize_commands, single_line

ILLEGAL_XML_CHARS = re.compile("[\ufffe\uffff]")  # characters that `clean` keeps and XML forbids


def render(report: ReportObject) -> str:
    """Render one suite with a case for the verdict, for each seat and for each finding."""
    cases = [
        _build_verdict_case(report),
        *_build_seat_cases(report),
        *(_build_finding_case(finding) for finding in report["findings"]),
    ]
    suite = Xml.Element("testsuite", name=_format_line(f"council {report['task']} {report['target'] or ''}"))
    suite.extend(cases)
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: len(suite.findall(f"testcase/{kind}")) for name, kind in kinds.items()}
    for name, value in {"tests": len(cases), **counts, "time": report["seconds"]}.items():
        suite.set(name, str(value))
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    text = neutralize_commands(Xml.tostring(root, encoding="unicode"), "xml")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def render_run(run: FinishedRun) -> str:
    return render(run.report)


def _build_verdict_case(report: ReportObject) -> Xml.Element:
    """Build the verdict case: FAIL and DISAGREE fail, a WARN fails only through its findings."""
    case = _build_case("verdict", "council")
    verdict = report["verdict"]
    if report["status"] is None:
        _add_result(case, "error", "the run has not ended", "running", "")
    elif report["status"] != "complete":
        _add_result(case, "error", f"the run is {report['status']}", report["status"], "")
    elif verdict is None:
        _add_result(case, "skipped", "no verdict", "", "")
    elif verdict in ("FAIL", "DISAGREE"):
        _add_result(case, "failure", f"{verdict}, confidence {report['confidence']}", verdict, report["answer"])
    return case


def _build_seat_cases(report: ReportObject) -> list[Xml.Element]:
    lost = {seat["name"]: seat for seat in list_absent_seats(report)}
    cases = []
    for seat in report["seats"]:
        case = _build_case(seat["name"], "council.seats", seat["seconds"])
        if failed := lost.get(seat["name"]):
            _add_result(case, "error", failed["reason"] or failed["state"], failed["state"], failed["reason"])
        cases.append(case)
    return cases


def _build_finding_case(finding: FindingRow) -> Xml.Element:
    case = _build_case(f"{finding['location']} {finding['description']}", f"council.findings.{finding['category']}")
    message = f"{finding['severity']}: {finding['description']} ({format_found_by(finding)})"
    caveat = [_describe_location(finding)] if not finding["verified"] else []
    facts = {"Location": finding["location"], "Fix": finding["fix"], "Why": finding["why"], "Ref": finding["ref"]}
    fields = [f"{name}: {fact}" for name, fact in facts.items()]
    _add_result(case, "failure", message, finding["severity"], "\n".join([finding["description"], *fields, *caveat]))
    return case


def _describe_location(finding: FindingRow) -> str:
    if finding.get("location_note"):
        return f"Evidence: {finding['location_note']}."
    if finding.get("location_state") == "located":
        return "The line exists, but the finding does not quote it."
    return "The location was not found in the packet."


def _build_case(name: str, kind: str, seconds: float = 0) -> Xml.Element:
    return Xml.Element("testcase", name=_format_line(name), classname=_format_line(kind), time=str(seconds))


def _add_result(case: Xml.Element, kind: str, message: str, type_: str, text: str) -> None:
    typed = {"type": _format_line(type_)} if type_ else {}
    Xml.SubElement(case, kind, {"message": _format_line(message), **typed}).text = _replace_illegal(text) or None


def _format_line(text: str) -> str:
    return single_line(_replace_illegal(text))


def _replace_illegal(text: str) -> str:
    return ILLEGAL_XML_CHARS.sub("\ufffd", clean(text))
