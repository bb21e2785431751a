"""The files in deploy/: manifests follow the schemas of Kubernetes, and alerts and dashboard use metrics that exist."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from council.doors.cli.service_commands import SERVE_OPTIONS, worker_command
from council.runs.metrics import render_metrics
from council.store.interface import StoreAddress
from council.store.shared import open_store
from tests.runs.test_metrics import write_run

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes" / "base").glob("*.yaml"))
KUBERNETES = "1.34"


def read_documents() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        if path.name != "kustomization.yaml":
            yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


DOCUMENTS = [pytest.param(one, id=f"{one['kind']} {one['metadata']['name']}") for one in read_documents()]


@pytest.mark.behaviour("32-deploy")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_manifest_follows_the_schema_of_kubernetes(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, KUBERNETES, strict=True)


@pytest.mark.behaviour("32-deploy")
def test_a_manifest_with_an_unknown_field_is_refused() -> None:
    document = next(one for one in read_documents() if one["kind"] == "Job")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document | {"specs": {}}, KUBERNETES, strict=True)


@pytest.mark.behaviour("32-deploy")
def test_every_manifest_is_listed() -> None:
    listed = yaml.safe_load((DEPLOY / "kubernetes/base/kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert sorted(listed) == [path.name for path in MANIFESTS if path.name != "kustomization.yaml"]


@pytest.mark.behaviour("32-deploy")
@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
@pytest.mark.parametrize(("folder", "scaler"), [("base", "HorizontalPodAutoscaler"), ("keda", "ScaledObject")])
def test_the_manifests_can_be_built(folder: str, scaler: str) -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", DEPLOY / "kubernetes" / folder], capture_output=True, text=True, check=True
    )
    built = [(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(done.stdout)]
    assert len(built) == len(set(built)) == 9
    assert [name for kind, name in built if kind in ("HorizontalPodAutoscaler", "ScaledObject")] == ["council-worker"]
    assert scaler in {kind for kind, _ in built}


def list_pods() -> dict[str, dict[str, Any]]:
    """Return the specification of each pod."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in read_documents()
        if "template" in one["spec"]
    }


@pytest.mark.behaviour("32-deploy")
@pytest.mark.parametrize("name", ["council-serve", "council-worker"])
def test_a_pod_has_probes_limits_and_no_rights(name: str) -> None:
    pod = list_pods()[name]
    [container] = pod["containers"]
    assert [container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")] == [
        "/readyz", "/healthz", "/readyz",
    ]  # fmt: skip
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    assert "memory" in container["resources"]["limits"]


@pytest.mark.behaviour("32-deploy")
def test_the_workers_of_a_pod_have_time_to_drain_and_flags_that_exist() -> None:
    known = {flag for option in worker_command().params for flag in option.opts}
    worker = list_pods()["council-worker"]
    flags = dict(word.split("=") for word in worker["containers"][0]["args"] if word.startswith("--"))
    assert set(flags) <= known
    assert worker["terminationGracePeriodSeconds"] > float(flags["--drain"])
    serve = list_pods()["council-serve"]["containers"][0]["args"]
    assert {word.split("=")[0] for word in serve if word.startswith("--")} <= {
        flag for option in SERVE_OPTIONS for flag in option.opts
    }


@pytest.mark.behaviour("32-deploy")
def test_compose_has_health_checks_and_no_default_password() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    assert {name for name, service in services.items() if "healthcheck" in service} == set(services)
    assert not re.search(r"\$\{\w+:-", text)
    assert set(re.findall(r"\$\{(\w+):\?", text)) == {"POSTGRES_PASSWORD"}


# Monitoring


def list_queries() -> dict[str, str]:
    alerts = yaml.safe_load((DEPLOY / "monitoring/alerts.yaml").read_text(encoding="utf-8"))
    dashboard = json.loads((DEPLOY / "monitoring/dashboard.json").read_text(encoding="utf-8"))
    scaled = yaml.safe_load((DEPLOY / "kubernetes/keda/scaled-object.yaml").read_text(encoding="utf-8"))
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    return {
        **{rule["alert"]: rule["expr"] for rule in rules},
        **{
            f"{one['title']} {target['refId']}": target["expr"]
            for one in dashboard["panels"]
            for target in one["targets"]
        },
        "scaling": scaled["spec"]["triggers"][0]["metadata"]["query"],
    }


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The metrics of a store with a run, each with its labels."""
    from council.counters import count

    store = open_store(StoreAddress(tmp_path_factory.mktemp("store")))

    async def scrape() -> str:
        await write_run(store, "r1")
        return (await render_metrics(store))[0].decode()

    count("rate_wait_seconds", "x", 0.0)
    text = asyncio.run(scrape())
    store.close()
    found: dict[str, set[str]] = {
        "council_process_database_connections": set(), "council_process_database_connects_total": set(),
    }  # fmt: skip
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        found[name] = set(re.findall(r"(\w+)=", labels))
    return found


@pytest.mark.behaviour("32-deploy")
@pytest.mark.parametrize("name", list_queries())
def test_a_query_uses_metrics_and_labels_that_exist(name: str, scraped: dict[str, set[str]]) -> None:
    query = list_queries()[name]
    names = set(re.findall(r"\b(?:council|process)_\w+", query))
    assert names
    assert names <= set(scraped)
    labels = set(re.findall(r"\b(\w+)\s*(?:=~|=)\s*\"", query))
    labels |= {label.strip() for group in re.findall(r"by \((.*?)\)", query) for label in group.split(",")}
    assert labels <= set().union(*(scraped[one] for one in names)) | {"instance"}
    if not all(one.startswith(("council_process_", "process_", "council_build")) for one in names):
        assert "max" in query, "each process reports the figures of the store"


@pytest.mark.behaviour("32-deploy")
def test_every_metric_of_the_docs_exists_and_every_metric_is_in_the_docs(scraped: dict[str, set[str]]) -> None:
    page = (DEPLOY.parent / "docs" / "scale.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(council_[a-z_]+[a-z])`", page))
    assert told == {name for name in scraped if name.startswith("council_")} - {"council_build_info"}


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    dashboard = json.loads((DEPLOY / "monitoring/dashboard.json").read_text(encoding="utf-8"))
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in dashboard["panels"]]
    assert len(set(places)) == len(places) == len({one["id"] for one in dashboard["panels"]})
