"""Adds to the dashboard of one model what waits for labels, what became of them, and how it does without them."""

from __future__ import annotations

from .board import Board
from .chosen import OF, UNIT
from .panels import Query, graph
from .queries import grown, latest

OVER = "10m"
"""Over so much time delays are counted: a step of the panel holds few labels."""

QUANTILES = (("half", 0.5), ("9 in 10", 0.9), ("99 in 100", 0.99))


def labels(board: Board) -> None:
    """Add what waits, what became of it, how late labels are, and what is said without them."""
    board.heading("Labels")
    delays = grown("label_delay_seconds_bucket", OVER, **OF)
    board.line(
        graph(
            "Observations and their labels",
            "In each step. Observations are joined with their label, or expire: ttl is beyond the time, cap because "
            "too many wait, pair is a request whose response has not come.",
            Query(grown("observations_observed_total", "$__interval", **OF), "observed"),
            Query(grown("labels_total", "$__interval", outcome="joined", **OF), "joined"),
            Query(grown("observations_expired_total", "$__interval", **OF), "expired: {{reason}}"),
            size=(8, 8),
            least=0,
            empty="labels come in the observation, or never",
        ),
        graph(
            "Labels that joined nothing, or an old version",
            "In each step, by what became of them. orphaned: no observation in time; late: the observation had "
            "expired; duplicate, changed: it had its label already, the same or another; joined_old_version: "
            "predicted by a version before, and not in the loss of the present one.",
            Query(grown("labels_total", "$__interval", outcome="!joined", **OF), "{{outcome}}"),
            bars=True,
            least=0,
            size=(8, 8),
            empty="labels come in the observation, or never",
        ),
        graph(
            "Waiting",
            "Beyond the limit the oldest observation gives way (expired: cap).",
            Query(latest("observations_waiting", **OF), "observations"),
            Query(latest("labels_early", **OF), "labels"),
            Query(latest("observations_waiting_limit", **OF), "limit"),
            least=0,
            dashed="limit",
            size=(8, 8),
            empty="labels come in the observation, or never",
        ),
    )
    board.line(
        graph(
            "How late labels are",
            f"Time of the stream from observation to label, of the labels of {OVER}, to the buckets' width.",
            *(Query(f"histogram_quantile({part}, {delays})", name) for name, part in QUANTILES),
            unit="s",
            least=0,
            size=(6, 8),
            empty="no labels by themselves in this time",
        ),
        graph(
            "The longest wait",
            "By the clock. It grows beyond the ttl where the model has no more records: only they move its time.",
            Query(latest("observations_waiting_oldest_seconds", **OF), "oldest"),
            unit="s",
            least=0,
            size=(6, 8),
            empty="labels come in the observation, or never",
        ),
        graph(
            "What was predicted, and what would be now",
            f"{UNIT}. The loss counts what was predicted when the observation came. The present one is of the model as "
            "it is when the label comes: far below means that it has learnt from what came after.",
            Query(latest("model_loss", **OF), "as predicted"),
            Query(latest("model_present_loss", **OF), "present"),
            size=(6, 8),
            empty="labels come in the observation, or never",
        ),
        graph(
            "Is it the model in service?",
            "Mismatch: share of the logged predictions that are not the model's own. Of a mirror: fidelity, the share "
            "of the logged predictions' loss that it explains; below the limit its importances are doubted.",
            Query(latest("model_prediction_mismatch_ratio", **OF), "mismatch"),
            Query(latest("model_fidelity_ratio", **OF), "fidelity"),
            Query(latest("model_fidelity_limit_ratio", **OF), "limit"),
            unit="percentunit",
            most=1,
            dashed="limit",
            size=(6, 8),
            empty="no predictions are logged",
        ),
    )
