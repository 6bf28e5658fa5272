"""Defines the alerts about figures that stand still, labels that are not joined, and models that are not in service."""

from __future__ import annotations

from .alerts import MODEL_DASHBOARD, Alert, ask, number, percent
from .options import Thresholds
from .recorded import JOINED, ORPHANED, UNLABELLED, recorded, rise

_N = f"n = {ask('model_observations_total', 'model_id')} observations"


def quality_alerts(at: Thresholds) -> list[Alert]:
    """Return the alerts of the area `quality`."""
    mirrored = (
        f"{{{{ $value | humanizePercentage }}}} of the logged predictions' loss is explained by the mirror, less than "
        f"its limit of {{}}; {_N}. Its importances say little of the model in service."
    )
    differs = (
        f"{{{{ $value | humanizePercentage }}}} of the logged predictions are not its own, more than "
        f"{percent(at.mismatch_ratio)}; {_N}. Another version is in service, or other features."
    )
    return [
        _alert(
            "FiguresStale",
            f"{recorded('explainer_stale')} == 1",
            "The figures of {{ $labels.model_id }} stand still ({{ $labels.explainer }})",
            "None has been updated since the last event: observations come, and none could be explained. The figures "
            f"are made of {ask('explainer_observations', 'model_id', 'explainer')} observations.",
            wait="10m",
        ),
        _alert(
            "LabelsNotJoined",
            _lost(at),
            "Labels and observations of {{ $labels.model_id }} do not find each other",
            f"{{{{ $value | humanizePercentage }}}} of the observations, or of the labels, that ended within "
            f"{at.labels_window} had no partner in time, more than {percent(at.labels_lost_ratio)} of "
            f"{number(at.labels_ended)} or more. Only the others are learnt and explained.",
        ),
        _alert(
            "PredictionMismatch",
            f"(\n"
            f"    {recorded('model_prediction_mismatch_ratio')} > {number(at.mismatch_ratio)}\n"
            f"  or\n"
            f"    {recorded('model_fidelity_ratio')} < {recorded('model_fidelity_limit_ratio')}\n"
            f")\n"
            f"and {recorded('model_observations_total')} >= {number(at.min_observations)}",
            "{{ $labels.model_id }} does not predict as the model in service does",
            ask(
                "model_fidelity_limit_ratio",
                "model_id",
                form="humanizePercentage",
                text=mirrored,
                otherwise=differs,
            ),
        ),
    ]


def _lost(at: Thresholds) -> str:
    """Return the share that has had no partner, of the observations that ended or else of the labels."""
    joined = rise(JOINED, at.labels_window)
    return "\nor\n".join(
        f"(\n"
        f"    {lost}\n"
        f"  / (\n"
        f"      {lost}\n"
        f"    +\n"
        f"      {joined}\n"
        f"    >= {number(at.labels_ended)}\n"
        f"  ) > {number(at.labels_lost_ratio)}\n"
        f")"
        for lost in (rise(UNLABELLED, at.labels_window), rise(ORPHANED, at.labels_window))
    )


def _alert(name: str, expr: str, summary: str, description: str, wait: str = "15m") -> Alert:
    return Alert(name, "quality", "warning", expr, summary, description, wait=wait, dashboard=MODEL_DASHBOARD)
