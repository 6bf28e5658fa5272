"""Builds the dashboard of one model: what it relies on now, how that has moved, and its incidents."""

from __future__ import annotations

from . import variables
from .board import MODEL, Board, choice, variable
from .chosen import OF, OF_EXPLAINER, OF_FEATURE, UNIT
from .labels import labels
from .losses import losses
from .panels import GREEN, RED, YELLOW, Query, band, graph, number, states
from .queries import latest, per_second, ranks, series
from .reference import reference, shifts
from .tables import Column, compared, rows

PLACES = 10
EXPLAINERS = ("pfi", "sage", "mdi")
THEN = " @ $change offset $before"
"""Goes after a selector: `before` the last incident began."""


def model() -> Board:
    """Return the dashboard `attributary-model`."""
    board = Board(MODEL, "Attributary / Model", "One model: importances, what a change has done to them, losses.")
    changed = latest("incident_since_timestamp_seconds", **OF)
    board.variables(
        variables.job(),
        variables.model(),
        variables.explainer("$model_id"),
        variable(
            "feature",
            "Feature",
            f"label_values({series('feature_importance', **OF_EXPLAINER)}, feature)",
            multi=True,
            all_value=".+",
        ),
        choice("before", "Before an incident", ("30s", "1m", "5m", "15m", "1h", "6h", "1d"), "1m"),
        # The text is `{labels} value time`. Where there has been no change, now: a query needs some time.
        variable(
            "change",
            "Last incident",
            f"query_result(max({changed}) or vector(time()))",
            hidden=True,
            regex="/.* ([0-9.]+) .*/",
        ),
        *variables.loss("$model_id"),
    )
    board.annotations(variables.incidents("$model_id"), variables.deployments("$model_id"))
    importance = latest("feature_importance", **OF_FEATURE)
    half_width = latest("feature_importance_half_width", **OF_FEATURE)
    board.line(
        number(
            "Version",
            "The model's version as it is now.",
            Query(latest("model_info", **OF), "{{version}}"),
            empty="no model",
            name_only=True,
            size=(3, 4),
        ),
        number(
            "Observations per second",
            "Over the last step of the graph behind it.",
            Query(per_second("model_observations_total", **OF)),
            size=(3, 4),
            empty="no data",
            trend=True,
            decimals=1,
        ),
        number(
            "Loss / baseline",
            "Above 1 the model does worse than a mean that knows no feature: its importances mean little. Anomaly "
            "detectors have no baseline.",
            Query(f"{latest('model_loss', **OF)} / {latest('model_baseline_loss', **OF)}"),
            size=(3, 4),
            empty="no loss yet, or an anomaly detector",
            decimals=2,
            steps=((None, GREEN), (0.9, YELLOW), (1, RED)),
        ),
        number(
            "Features shifted",
            "Features and groups whose importance has moved, lastingly, and has not been released.",
            Query(f"sum({latest('importance_shifted', **OF_EXPLAINER)})"),
            size=(3, 4),
            empty="not watched yet",
            decimals=0,
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Discrepancy / threshold",
            "Above 1 the model is another one than its reference: it has learnt, or follows a change.",
            Query(f"{latest('model_discrepancy', **OF)} / {latest('model_discrepancy_threshold', **OF)}"),
            size=(3, 4),
            empty="no discrepancy yet",
            decimals=2,
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Behind the importance",
            "Observations that the importance is made of. Below a few hundred, wait.",
            Query(latest("explainer_observations", **OF_EXPLAINER)),
            size=(3, 4),
            empty="none yet",
            decimals=0,
        ),
        number(
            "Open incident",
            "What happened, of an incident that is confirmed, or suspected and critical.",
            Query(latest("incident_open", **OF), "{{what}}"),
            size=(3, 4),
            name_only=True,
            steps=((None, GREEN), (1, RED)),
        ),
        number(
            "Last incident",
            "Time of the observation that showed it.",
            Query(f"{changed} * 1000"),
            unit="dateTimeFromNow",
            size=(3, 4),
            empty="never",
        ),
    )
    board.line(
        states(
            "Incidents",
            "By headline, from where it was told to where it was over.",
            Query(latest("incident_info", **OF), "{{headline}}"),
            size=(24, 5),
            most=1,
            empty="no incident in this time range",
        )
    )
    board.line(
        graph(
            "Importance",
            f"{UNIT}. Red marks are incidents of the model.",
            Query(importance, "{{feature}}"),
            size=(14, 10),
            empty="no importance yet",
        ),
        rows(
            "Importance now",
            f"{UNIT}. With half the width of its 95 % interval; `__other__` sums the features without a series of "
            "their own and has none.",
            "feature",
            Query(importance, "importance"),
            Query(half_width, "±"),
            Query(latest("feature_importance_share_ratio", **OF_FEATURE), "share"),
            hidden=("model_id", "explainer"),
            sort_by="importance",
            size=(10, 10),
            empty="no importance yet",
            columns=(
                Column("importance", decimals=4, bar=True),
                Column("±", decimals=4),
                Column("share", "percentunit", decimals=0),
            ),
        ),
    )
    before = latest("feature_importance", THEN, **OF_FEATURE)
    squares = f"{half_width} ^ 2 + {latest('feature_importance_half_width', THEN, **OF_FEATURE)} ^ 2"
    board.heading("What has changed")
    board.line(
        compared(
            "Before the last incident, and now",
            f"{UNIT}. Importance `$before` before the last incident of the model began, beside that of the end of the "
            "time range. Without an incident in Prometheus, both are of about now.",
            "feature",
            Query(before, "before"),
            Query(importance, "now"),
            hidden=("model_id", "explainer"),
            size=(12, 9),
        ),
        rows(
            "What has changed",
            f"{UNIT}. Now less before, with half the width of that difference's 95 % interval: within it, it may be "
            "chance. The explanation in the incident compares both models on the same observations, which is sharper.",
            "feature",
            Query(before, "before"),
            Query(importance, "now"),
            Query(f"{importance} - {before}", "difference"),
            Query(f"sqrt({squares})", "±"),
            hidden=("model_id", "explainer"),
            sort_by="difference",
            size=(12, 9),
            empty="no importance yet",
            columns=tuple(Column(name, decimals=4) for name in ("before", "now", "difference", "±")),
        ),
    )
    place = ranks("feature_importance", PLACES, **OF_EXPLAINER)
    board.heading("Share and rank")
    board.line(
        graph(
            "Share of importance",
            "Part of the sum of importances, negatives counted as 0.",
            Query(latest("feature_importance_share_ratio", **OF_FEATURE), "{{feature}}"),
            unit="percentunit",
            stacked=True,
            least=0,
            most=1,
            empty="no importance yet",
        ),
        states(
            "Rank",
            f"1 is the most important. Drawn are the first {PLACES}, and each while 0 is below its 95 % interval: else "
            "its rank is chance.",
            Query(f"{place} and {importance} > {half_width}", "{{feature}}"),
            size=(12, 8),
            most=PLACES,
        ),
    )
    shares = {name: latest("feature_importance_share_ratio", **OF, explainer=name) for name in EXPLAINERS}
    board.line(
        compared(
            "Share of importance, by explainer",
            "Each by its own measure: what the loss rises by without the feature (pfi), its part of what all are worth "
            "(sage), how much its splits lower the impurity (mdi, of trees). Partial dependence is drawn by "
            "`attributary serve`: a series for each point of a curve would be too many.",
            "feature",
            *(Query(share, name) for name, share in shares.items()),
            hidden=("model_id", "explainer"),
            size=(24, 8),
        )
    )
    reference(board)
    losses(board)
    shifts(board)
    labels(board)
    board.heading("Importance with its 95 % interval")
    board.line(
        band(
            "$feature",
            f"{UNIT}. Importance of this feature, and its 95 % interval.",
            importance,
            half_width,
            repeat="feature",
        )
    )
    board.line(
        graph(
            "By how much the interval may be off",
            "Where values move so slowly that the stored ones, which replace them, follow them. Above 5 % the worker's "
            "log names the features: give the explainer a longer `gap` and `reach`.",
            Query(latest("importance_locality_ratio", **OF_EXPLAINER), "locality"),
            unit="percentunit",
            size=(12, 6),
            least=0,
            empty="known from 5000 observations on",
        ),
        graph(
            "By how much observational importance is off at least",
            f"{UNIT}. Where draws are found to miss a part of how features depend on each other.",
            Query(latest("feature_importance_doubt", **OF_FEATURE), "{{feature}}"),
            size=(12, 6),
            least=0,
            empty="only with observational removal",
        ),
    )
    return board
