"""Defines the alerts about labels that come by themselves, and about predictions that were logged."""

from __future__ import annotations

from .alerts import MODEL_DASHBOARD, Alert, ask, number, percent
from .options import Thresholds
from .recorded import JOINED, ORPHANED, UNLABELLED, recorded, rise

_N = f"n = {ask('model_observations_total', 'model_id')} observations"


def label_alerts(at: Thresholds) -> list[Alert]:
    """Return the alerts about labels that come later, and about models without labels; of the area `quality`."""
    enough = f"and {recorded('model_observations_total')} >= {number(at.min_observations)}"
    return [
        _alert(
            "WaitingFull",
            f"{recorded('observations_waiting')} / {recorded('observations_waiting_limit')} >= "
            f"{number(at.waiting_ratio)}",
            "As many observations of {{ $labels.model_id }} wait for labels as may",
            f"{{{{ $value | humanizePercentage }}}} of {ask('observations_waiting_limit', 'model_id')} places are "
            f"taken, {percent(at.waiting_ratio)} or more. Beyond the limit the oldest one gives way, and its label "
            "comes too late.",
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
            "MirrorUnfaithful",
            f"{recorded('model_fidelity_ratio')} < {recorded('model_fidelity_limit_ratio')}\n{enough}",
            "{{ $labels.model_id }} does not mirror the model in service well",
            f"Its fidelity is {{{{ $value | humanizePercentage }}}}, below its limit of "
            f"{ask('model_fidelity_limit_ratio', 'model_id', form='humanizePercentage')}; {_N}. Its importances are of "
            "the mirror, and say little of the model in service.",
        ),
        _alert(
            "PredictionMismatch",
            f"{recorded('model_prediction_mismatch_ratio')} > {number(at.mismatch_ratio)}\n{enough}",
            "{{ $labels.model_id }} is not the model in service",
            f"{{{{ $value | humanizePercentage }}}} of the logged predictions are not its own, more than "
            f"{percent(at.mismatch_ratio)}; {_N}. Another version is in service, or other features.",
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


def _alert(name: str, expr: str, summary: str, description: str) -> Alert:
    return Alert(name, "quality", "warning", expr, summary, description, wait="15m", dashboard=MODEL_DASHBOARD)
