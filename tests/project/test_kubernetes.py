"""deploy/kubernetes/workers.yaml: names, probes, rights and times as the worker needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.compose import image_environment, read_env

from attributary_agents.config.reading import EXAMPLE, load_config

ROOT = Path(__file__).resolve().parents[2]
SERVICE, WORKERS = yaml.safe_load_all((ROOT / "deploy/kubernetes/workers.yaml").read_text())
POD: dict[str, Any] = WORKERS["spec"]["template"]["spec"]
(WORKER,) = POD["containers"]


def test_each_worker_has_its_pods_name_in_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert WORKERS["kind"] == "StatefulSet", "only there a pod keeps its name"
    (variable,) = WORKER["env"]
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    monkeypatch.setenv(variable["name"], "attributary-0")
    path = tmp_path / "attributary.yaml"
    path.write_text(EXAMPLE)
    assert load_config(path).kafka.instance_id == "attributary-0"


def test_pods_are_found_and_have_time_and_probes(tmp_path: Path) -> None:
    labels = WORKERS["spec"]["template"]["metadata"]["labels"]
    assert labels == SERVICE["spec"]["selector"] == WORKERS["spec"]["selector"]["matchLabels"]
    assert WORKERS["spec"]["serviceName"] == SERVICE["metadata"]["name"]
    path = tmp_path / "attributary.yaml"
    path.write_text(EXAMPLE)
    config = load_config(path)
    assert POD["terminationGracePeriodSeconds"] > config.watchdog.stop_within_s
    (port,) = WORKER["ports"]
    assert port["containerPort"] == config.web.port == SERVICE["spec"]["ports"][0]["port"]
    probes = {kind: WORKER[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness", "startup")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "liveness": "/livez",
        "readiness": "/readyz",
        "startup": "/livez",
    }
    assert {probe["port"] for probe in probes.values()} == {port["name"]}


def test_the_image_is_that_of_this_release_and_has_no_rights() -> None:
    assert WORKER["image"] == f"attributary:{read_env()['ATTRIBUTARY_VERSION']}"
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert WORKER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["name"] for mount in WORKER["volumeMounts"]} == {volume["name"] for volume in POD["volumes"]}


PAGE_SERVICE, PAGE = yaml.safe_load_all((ROOT / "deploy/kubernetes/page.yaml").read_text())
PAGE_POD: dict[str, Any] = PAGE["spec"]["template"]["spec"]
(PAGE_CONTAINER,) = PAGE_POD["containers"]


def test_the_page_is_found_and_watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labels = PAGE["spec"]["template"]["metadata"]["labels"]
    assert labels == PAGE_SERVICE["spec"]["selector"] == PAGE["spec"]["selector"]["matchLabels"]
    assert labels != SERVICE["spec"]["selector"], "Prometheus would take it for a worker"
    path = tmp_path / "attributary.yaml"
    path.write_text(EXAMPLE)
    for variable in PAGE_CONTAINER["env"]:
        if variable["name"].startswith("ATTRIBUTARY_"):
            monkeypatch.setenv(variable["name"], variable["value"])
    serve = load_config(path).serve
    (port,) = PAGE_CONTAINER["ports"]
    assert port["containerPort"] == serve.port == PAGE_SERVICE["spec"]["ports"][0]["port"]
    assert PAGE_SERVICE["spec"]["ports"][0]["targetPort"] == port["name"]
    probes = {kind: PAGE_CONTAINER[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness", "startup")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "liveness": "/livez",
        "readiness": "/readyz",
        "startup": "/livez",
    }
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    (secret,) = [variable for variable in PAGE_CONTAINER["env"] if variable["name"] == serve.token_env]
    assert "value" not in secret, "a token is in no file"
    assert set(secret["valueFrom"]) == {"secretKeyRef"}


def test_the_page_has_the_workers_image_and_configuration_and_no_more_rights() -> None:
    for name in ("image", "securityContext"):
        assert PAGE_CONTAINER[name] == WORKER[name]
    assert PAGE_POD["securityContext"] == POD["securityContext"]
    assert PAGE_POD["automountServiceAccountToken"] is False
    assert "memory" in PAGE_CONTAINER["resources"]["limits"]
    volumes = {volume["name"]: volume for volume in PAGE_POD["volumes"]}
    assert {mount["name"] for mount in PAGE_CONTAINER["volumeMounts"]} == set(volumes)
    assert volumes["configuration"] in POD["volumes"]
    mounted = {mount["name"]: mount["mountPath"] for mount in PAGE_CONTAINER["volumeMounts"]}
    assert mounted["store"] == f"{image_environment()['XDG_CACHE_HOME']}/attributary"
