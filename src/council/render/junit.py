"""A run as JUnit XML: an absent seat is an error, a finding a failure, a PASS a passing case."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from council.render.clean import clean, one_line
from council.render.places import absent, found_by
from council.types import Json

ILLEGAL = re.compile("[\ufffe\uffff]")  # characters that `clean` keeps and XML forbids


def render(report: Json) -> str:
    """Render one suite with a case for the verdict, for each seat and for each finding."""
    cases = [_verdict(report), *_seats(report), *(_finding(finding) for finding in report["findings"])]
    suite = Xml.Element("testsuite", name=_line(f"council {report['task']} {report['target'] or ''}"))
    suite.extend(cases)
    counts = {"tests": len(cases)} | {
        kind + "s": len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "error")
    }
    for name, value in {**counts, "skipped": len(suite.findall("testcase/skipped")), "time": report["seconds"]}.items():
        suite.set(name, str(value))
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _verdict(report: Json) -> Xml.Element:
    """Build the verdict case: FAIL and DISAGREE fail, a WARN fails only through its findings."""
    case = _case("verdict", "council")
    verdict = report["verdict"]
    if report["status"] != "complete":
        _add(case, "error", f"the run is {report['status']}", report["status"], "")
    elif verdict is None:
        _add(case, "skipped", "no verdict", "", "")
    elif verdict in ("FAIL", "DISAGREE"):
        _add(case, "failure", f"{verdict}, confidence {report['confidence']}", verdict, report["answer"])
    return case


def _seats(report: Json) -> list[Xml.Element]:
    lost = {seat["name"]: seat for seat in absent(report)}
    cases = []
    for seat in report["seats"]:
        case = _case(seat["name"], "council.seats", seat["seconds"])
        if failed := lost.get(seat["name"]):
            _add(case, "error", failed["reason"] or failed["state"], failed["state"], failed["reason"])
        cases.append(case)
    return cases


def _finding(finding: Json) -> Xml.Element:
    case = _case(f"{finding['location']} {finding['description']}", f"council.findings.{finding['category']}")
    message = f"{finding['severity']}: {finding['description']} ({found_by(finding)})"
    caveat = [] if finding["verified"] else ["The location was not found in the packet."]
    fields = [f"{name}: {finding[name.lower()]}" for name in ("Location", "Fix", "Why", "Ref")]
    _add(case, "failure", message, finding["severity"], "\n".join([finding["description"], *fields, *caveat]))
    return case


def _case(name: str, kind: str, seconds: float = 0) -> Xml.Element:
    return Xml.Element("testcase", name=_line(name), classname=_line(kind), time=str(seconds))


def _add(case: Xml.Element, kind: str, message: str, type_: str, text: str) -> None:
    typed = {"type": _line(type_)} if type_ else {}
    Xml.SubElement(case, kind, {"message": _line(message), **typed}).text = _legal(text) or None


def _line(text: str) -> str:
    return one_line(_legal(text))


def _legal(text: str) -> str:
    return ILLEGAL.sub("\ufffd", clean(text))
