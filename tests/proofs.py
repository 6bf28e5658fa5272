# ruff: noqa: E501 - tests have the names that they have
"""The proofs that take minutes each: `make proofs` runs them before a release, `make test-all` leaves them out."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

PROOFS = {
    "tests/browser/test_on_kafka.py": "tests/browser/test_views.py",
    "tests/benchmarks/test_scale.py::test_the_worker_stands_beside_a_bare_agent": "tests/benchmarks/test_scale.py",
    "tests/benchmarks/test_serve_page.py": "tests/browser/test_views.py",
    "tests/agents/serve/store/test_naive.py::test_windows_are_those_of_a_naive_store_in_many_cases": (
        "tests/agents/serve/store/test_naive.py"
    ),
    "tests/integration/sources/test_exact.py": "tests/integration/sources/test_run.py",
    "tests/integration/sources/test_replayed.py": "tests/integration/sources/test_run.py",
    "tests/integration/test_any_model.py": "tests/integration/test_deployments.py",
    "tests/integration/test_broker_away.py::TestAnOutageWithObservationsPending": (
        "tests/integration/test_broker_away.py"
    ),
    "tests/integration/test_chaos.py": "tests/integration/test_exactly_once.py",
    "tests/integration/test_cluster.py": "tests/integration/test_broker_away.py",
    "tests/integration/test_cluster_log.py": "tests/integration/test_broker_away.py",
    "tests/integration/test_dashboards.py": "tests/agents/monitoring/test_dashboards.py",
    "tests/integration/test_dead_letters_command.py::test_a_replay_that_is_killed_and_begun_again_counts_each_record_once": (
        "tests/integration/test_dead_letters_command.py"
    ),
    "tests/integration/test_demo.py::test_the_readme_begins_with_what_the_demo_prints": "tests/integration/test_demo.py",
    "tests/integration/test_deployments.py::test_a_kill_around_a_deployment_leaves_the_same_events[once taken over]": (
        "tests/integration/test_deployments.py"
    ),
    "tests/integration/test_first_hour.py": "tests/integration/test_one_path.py",
    "tests/integration/test_hostile.py": "tests/integration/test_garbage.py",
    "tests/integration/test_long_steps.py::test_a_worker_asked_to_stop_while_the_broker_is_gone_ends_in_time": (
        "tests/integration/test_long_steps.py"
    ),
    "tests/integration/test_long_steps.py::test_what_a_worker_stores_that_was_thought_dead_for_three_sessions_is_not_taken": (
        "tests/integration/test_long_steps.py"
    ),
    "tests/integration/test_many_models.py": "tests/integration/test_late_labels.py",
    "tests/integration/test_mlflow.py::test_an_alias_moves_around_kills_and_while_the_registry_is_away": (
        "tests/integration/test_mlflow.py"
    ),
    "tests/integration/test_monitoring_simulated.py": "tests/integration/test_monitoring.py",
    "tests/integration/test_polls.py": "tests/integration/test_deployments.py",
    "tests/integration/test_sensor_network.py": "tests/examples/test_service.py",
    "tests/integration/test_templates.py::test_models_that_rest_and_workers_that_are_killed_leave_what_an_undisturbed_run_leaves": (
        "tests/integration/test_late_labels.py"
    ),
    "tests/integration/test_writes_unacknowledged.py": "tests/integration/test_exactly_once.py",
}
"""Files and tests that are left out, with what shows something near in `make test-all`."""


def leave_to_the_proofs(items: Iterable[pytest.Item]) -> None:
    """Mark as `proof` what `PROOFS` names: a file, a class or test in it, or one with these parameters."""
    for item in items:
        for name in _names(item.nodeid):
            if name in PROOFS:
                item.add_marker(pytest.mark.proof)


def _names(nodeid: str) -> Iterable[str]:
    file, *parts = nodeid.split("::")
    yield file
    for i, part in enumerate(parts):
        yield "::".join([file, *parts[:i], part.split("[")[0]])
    yield nodeid
