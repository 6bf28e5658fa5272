"""Builds the dashboard of one model: what it relies on now, how that has moved, and what a change did."""

from __future__ import annotations

from . import variables
from .board import MODEL, Board, choice, variable
from .panels import GREEN, RED, YELLOW, Query, band, graph, note, number, states
from .queries import grown, happened, known, latest, per_second, ranks, rate, series
from .tables import Column, compared, rows

OF = {"model_id": "$model_id"}
OF_EXPLAINER = {**OF, "explainer": "$explainer"}
OF_FEATURE = {**OF_EXPLAINER, "feature": "~$feature"}
PLACES = 10
UNIT = "$loss loss: $loss_unit, at most $loss_largest"
"""What importances and losses are in; the labels are those of `model_info`."""
THEN = " @ $change offset $before"
"""Goes after a selector: `before` the last change."""

HOW_TO_READ = """\
**Importance** is how much worse the loss gets without the feature, in $loss_unit; the loss (`$loss`) of one observation
is at most $loss_largest, +Inf where there is none. It says what *this model* needs, not what is true of the world:
read it only while the model's loss is below the baseline's.

**The band** is the 95 % interval: on a stationary stream it holds the exact value about 95 times in 100. While
the model learns or the stream drifts, importance also lags by its window, which no standard error says.

**Share** is the part of all importance, negatives counted as 0; **rank** 1 is the most important.

**A red line** is a change of the model: the *discrepancy*, the smoothed distance of its predictions from those of
the model at the reference, went over its threshold. *What has changed* compares `$before` before that with now. A
blue line is a new version. If shift or loss moves without a red line, the data may have changed and not the model.

**The explanation** of each change is an event on the changes topic: a sentence, importances before, crossed and after,
and what of the difference is the model's and what the data's. `attributary changes $model_id` prints it. The worker has
the last one, too: *What has changed* links to it.
"""


def model() -> Board:
    """Return the dashboard `attributary-model`."""
    board = Board(MODEL, "Attributary / Model", "One model: importances, what a change has done to them, losses.")
    changed = latest("model_last_change_timestamp_seconds", **OF)
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
        choice("before", "Before a change", ("30s", "1m", "5m", "15m", "1h", "6h", "1d"), "1m"),
        # The text is `{labels} value time`. Where there has been no change, now: a query needs some time.
        variable(
            "change",
            "Last change",
            f"query_result(max({changed}) or vector(time()))",
            hidden=True,
            regex="/.* ([0-9.]+) .*/",
        ),
        variables.worker("$model_id"),
        *variables.loss("$model_id"),
    )
    board.annotations(variables.changes("$model_id"), variables.deployments("$model_id"))
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
            "Above 1 the model does worse than a mean that knows no feature: its importances mean little.",
            Query(f"{latest('model_loss', **OF)} / {latest('model_baseline_loss', **OF)}"),
            size=(3, 4),
            empty="no loss yet",
            decimals=2,
            steps=((None, GREEN), (0.9, YELLOW), (1, RED)),
        ),
        number(
            "Shift",
            "Share of importance that has moved since the reference.",
            Query(latest("importance_shift_ratio", **OF_EXPLAINER)),
            unit="percentunit",
            size=(3, 4),
            empty="no reference yet",
            decimals=0,
            steps=((None, GREEN), (0.25, YELLOW), (0.5, RED)),
        ),
        number(
            "Discrepancy / threshold",
            "Above 1 a change is explained once the window is full.",
            Query(f"{latest('model_discrepancy', **OF)} / {latest('model_discrepancy_threshold', **OF)}"),
            size=(3, 4),
            empty="no discrepancy yet",
            decimals=2,
            steps=((None, GREEN), (0.8, YELLOW), (1, RED)),
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
            "Changes",
            "Changes of the model that were explained in the dashboard's time range.",
            Query(f"sum({happened('model_changes_total', **OF)}) or vector(0)"),
            size=(3, 4),
            decimals=0,
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Last change",
            "Time of the observation that showed it.",
            Query(f"{changed} * 1000"),
            unit="dateTimeFromNow",
            size=(3, 4),
            empty="never",
        ),
    )
    board.line(
        graph(
            "Importance",
            f"{UNIT}. Red lines are changes of the model.",
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
            "Before the last change, and now",
            f"{UNIT}. Importance `$before` before the last change of the model beside that of the end of the time "
            "range. Without a change in Prometheus, both are of about now.",
            "feature",
            Query(before, "before"),
            Query(importance, "now"),
            hidden=("model_id", "explainer"),
            size=(12, 9),
        ),
        rows(
            "What has changed",
            f"{UNIT}. Now less before, with half the width of that difference's 95 % interval: within it, it may be "
            "chance. The event on the changes topic compares both models on the same observations, which is sharper.",
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
            link=("The event, from the worker (where this browser reaches it)", "http://${worker}/changes/${model_id}"),
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
    board.heading("Model and reference")
    discrepancy, threshold = latest("model_discrepancy", **OF), latest("model_discrepancy_threshold", **OF)
    board.line(
        graph(
            "Loss",
            f"{UNIT}. Smoothed, before the model learns each observation, beside that of a mean that knows no feature.",
            Query(latest("model_loss", **OF), "model"),
            Query(latest("model_baseline_loss", **OF), "baseline"),
            size=(8, 8),
            dashed="baseline",
        ),
        graph(
            "Discrepancy",
            "Distance of the model's predictions from those of the model at the reference. Over the threshold once the "
            "window is full: a change, and this model is the new reference. n counts the observations since.",
            Query(discrepancy, "discrepancy"),
            Query(threshold, "threshold"),
            Query(latest("model_discrepancy_observations", **OF), "n"),
            size=(8, 8),
            least=0,
            dashed="threshold",
            right=("n", "short"),
            empty="this model has no change explanation",
        ),
        graph(
            "Shift and NDCG",
            "Against the importances of the reference. NDCG alone is blind: of ten equal features one dying gives 1.",
            Query(latest("importance_shift_ratio", **OF_EXPLAINER), "shift"),
            Query(latest("importance_ndcg_ratio", **OF_EXPLAINER), "NDCG"),
            unit="percentunit",
            size=(8, 8),
            least=0,
            most=1,
            empty="no reference yet",
        ),
    )
    board.line(
        graph(
            "What became of alarms",
            "In each step: model changes by route, changes of the data alone, and alarms whose discrepancy stayed "
            "within the threshold.",
            Query(grown("model_changes_total", "$__interval", **OF), "change ({{route}})", exemplars=True),
            Query(grown("model_data_changes_total", "$__interval", **OF), "data change"),
            Query(grown("model_changes_rejected_total", "$__interval", **OF), "rejected ({{route}})"),
            bars=True,
            least=0,
            size=(8, 8),
            empty="this model has no change explanation",
        ),
        graph(
            "Discrepancy of rejected alarms",
            "Whether alarms are rejected by a little or by far.",
            Query(latest("model_rejected_discrepancy", **OF), "last rejected"),
            Query(threshold, "threshold"),
            least=0,
            size=(8, 8),
            dashed="threshold",
            empty="no alarm was rejected",
        ),
        note("How to read this", HOW_TO_READ, size=(8, 16)),
    )
    # The text is as high as two lines of panels: the next line stands beside it.
    board.move_up(8)
    skipped = per_second("explainer_skipped_total", **OF_EXPLAINER)
    ever = latest("explainer_skipped_total", **OF_EXPLAINER)
    board.line(
        graph(
            "Observations",
            "Observed, and those of the chosen explainer that were not explained, by reason.",
            Query(per_second("model_observations_total", **OF), "observed"),
            Query(known(skipped, ever, "reason"), "skipped: {{reason}}"),
            unit="ops",
            least=0,
            size=(8, 8),
        ),
        graph(
            "What explaining takes",
            "Share of the time, the budget for it where there is one, and one in how many observations is explained.",
            Query(latest("explain_share_ratio", **OF), "share of the time"),
            Query(latest("explain_budget_ratio", **OF), "budget"),
            Query(latest("explain_every_observations", **OF), "one in"),
            unit="percentunit",
            least=0,
            size=(8, 8),
            dashed="budget",
            right=("one in", "short"),
        ),
    )
    board.line(
        graph(
            "Evaluations",
            "Observations of the workers by how they were evaluated: fast, or naive, one call of the model per row.",
            Query(rate("model_evaluations_total", **OF), "{{path}}"),
            unit="ops",
            least=0,
            stacked=True,
            size=(8, 6),
        ),
        graph(
            "Alarms",
            "Raised in each step, by the drift detector or by the discrepancy.",
            Query(grown("model_alarms_total", "$__interval", **OF), "{{route}}"),
            bars=True,
            least=0,
            size=(8, 6),
            empty="this model has no change explanation",
        ),
        graph(
            "Collecting",
            "1 while observations are collected, for a reference or after an alarm: only then a change is explained.",
            Query(latest("model_collecting", **OF), "collecting"),
            unit="none",
            least=0,
            most=1,
            size=(8, 6),
            empty="this model has no change explanation",
        ),
    )
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
