"""Defines the alert about incidents of models."""

from __future__ import annotations

from .alerts import MODEL_DASHBOARD, Alert, ask, ask_label
from .recorded import recorded

_OPEN = recorded("incident_open")
_SINCE = "incident_since_timestamp_seconds"
_ID = ask_label(
    "incident_info", "id", "model_id", form='urlquery | reReplaceAll "[+]" "%20"', text="incidents/{}", otherwise=""
)


def incident_alerts() -> list[Alert]:
    """Return the alert that fires while an incident is open; it is of the area `incident`.

    What happened is no label of it, but stands in its text, with what to do: when more is known of the same incident,
    that is the same alert. Only another severity makes another one, for it may be for somebody else.
    """
    return [
        Alert(
            "ModelIncident",
            "incident",
            ("critical", "warning", "info"),
            # While a model is on no worker, as its partition moves, what was said last holds. `keep_firing_for` would
            # keep it beside the same incident of another severity, and after its end.
            f"max without (what) (\n"
            f"    {_OPEN}\n"
            f"  or\n"
            f"    last_over_time({_OPEN}[5m])\n"
            f"  unless on (job, model_id)\n"
            f"    {recorded('model_observations_total')}\n"
            f")",
            ask_label("incident_info", "headline", "model_id", otherwise="{{ $labels.model_id }} has an incident")
            + ask_label("incident_info", "action", "model_id", text=". {}", otherwise=""),
            ask(
                "incident_since_timestamp_seconds",
                "model_id",
                form="humanizeTimestamp",
                text="Began {}. ",
                otherwise="",
            )
            + ask_label("incident_info", "details", "model_id", otherwise="More stands in the incident."),
            keep=None,
            dashboard=MODEL_DASHBOARD,
            annotations={"explanation": "attributary incidents {{ $labels.model_id }}"},
            page=_ID,
        )
    ]
