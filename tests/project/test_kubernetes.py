"""deploy/kubernetes/workers.yaml: names, probes, rights and times as the worker needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.compose import read_env

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
