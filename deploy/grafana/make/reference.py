"""Adds to the dashboard of one model how it stands to its reference, its incidents, and which shifts last."""

from __future__ import annotations

from .board import Board
from .chosen import OF, OF_EXPLAINER, OF_FEATURE, UNIT
from .panels import Panel, Query, graph, note, states
from .queries import grown, known, latest, per_second, rate

HOW_TO_READ = """\
**Importance** is how much worse the loss gets without the feature, in $loss_unit; the loss (`$loss`) of one observation
is at most $loss_largest, +Inf where there is none. It says what *this model* needs, not what is true of the world:
read it only while the model's loss is below the baseline's. Of an *anomaly detector* it is what the feature's values
add to its score: its mean score stands where other models have their loss, and there is no baseline.

**The band** is the 95 % interval: on a stationary stream it holds the exact value about 95 times in 100. While
the model learns or the stream drifts, importance also lags by its window, which no standard error says.

**Share** is the part of all importance, negatives counted as 0; **rank** 1 is the most important.

**A red mark** is an incident, from where it was told to where it was over; a blue line is a new version. What happened
is one of: *inputs*, values of a feature broke; *worse*, the model makes more mistakes; *changed*, the data follow
another rule, and it adapts; *level*, the base rate moved; *harder*, more is lost, no more than its own doubt says;
*relies_differently*, importances moved and the loss did not; *version*, another one took over; *recovered*, it went
back to an earlier state. *What has changed* compares `$before` before the last incident with now.

**A shifted feature** has moved lastingly, beyond what noise does however long one looks. A change smaller than the
least that can be told is not told.

**The whole of an incident** is an event on the incidents topic: since when, how much, which features, what to do, and
the explanation of the change. `attributary incidents $model_id` prints it.
"""


def quality() -> Panel:
    """Return the panel with River's metrics of the model's predictions, and what they were over the reference."""
    return graph(
        "Quality",
        "By River's metrics, before the model learns each observation, smoothed; and over the reference: the first "
        "2 / alpha observations of the model's version, of a model that learns the next as many.",
        Query(latest("model_quality", **OF), "{{metric}}"),
        Query(latest("model_quality_reference", **OF), "{{metric}}, reference"),
        size=(6, 8),
        empty="no metric is configured, or none fits the model",
    )


def reference(board: Board) -> None:
    """Add losses, quality, discrepancy, incidents by kind, and what explaining takes."""
    board.heading("Model and reference")
    discrepancy, threshold = latest("model_discrepancy", **OF), latest("model_discrepancy_threshold", **OF)
    board.line(
        graph(
            "Loss, or mean score",
            f"{UNIT}. Smoothed, before the model learns each observation, beside that of a mean that knows no feature. "
            "Of an anomaly detector it is the mean of its scores, without a baseline.",
            Query(latest("model_loss", **OF), "model"),
            Query(latest("model_baseline_loss", **OF), "baseline"),
            size=(6, 8),
            dashed="baseline",
        ),
        quality(),
        graph(
            "Discrepancy",
            "Distance of the model's predictions from those of its reference, in spreads of the targets: 0 is the same "
            "model, 1 is as far apart as two observed targets. A model that learns leaves its reference. n counts the "
            "observations in it.",
            Query(discrepancy, "discrepancy"),
            Query(threshold, "threshold"),
            Query(latest("model_discrepancy_observations", **OF), "n"),
            size=(6, 8),
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
            size=(6, 8),
            least=0,
            most=1,
            empty="no reference yet",
        ),
    )
    board.line(
        graph(
            "Incidents confirmed",
            "In each step, by what happened and how bad it was when it was confirmed.",
            Query(
                f"{grown('incidents_total', '$__interval', **OF)} and {latest('incidents_total', **OF)} > 0",
                "{{what}} ({{severity}})",
            ),
            bars=True,
            least=0,
            size=(16, 8),
            empty="no incident yet",
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
            "Observed, those of the chosen explainer that were not explained, by reason, values that were missing, "
            "categories beyond the bound, and observations that the model forgot when it went back to a good state. "
            "Of a sharded model, how many shards the importance is made of.",
            Query(per_second("model_observations_total", **OF), "observed"),
            Query(known(skipped, ever, "reason"), "skipped: {{reason}}"),
            Query(per_second("model_missing_values_total", **OF), "missing values"),
            Query(per_second("model_other_categories_total", **OF), "categories as __other__"),
            Query(per_second("model_observations_forgotten_total", **OF), "forgotten"),
            Query(latest("explainer_shards", **OF_EXPLAINER), "shards"),
            unit="ops",
            least=0,
            size=(8, 8),
            right=("shards", "short"),
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
            size=(6, 6),
        ),
        graph(
            "Trend or recurring change",
            "1 while it goes on. Either is told once, and again when it is twice as large.",
            Query(latest("model_pattern", **OF), "{{pattern}}"),
            unit="none",
            least=0,
            most=1,
            size=(6, 6),
            empty="this model has no change explanation",
        ),
        graph(
            "Figures that stand still",
            "1 where no figure has been updated since the last event: observations come, and none could be explained.",
            Query(latest("explainer_stale", **OF_EXPLAINER), "stale"),
            unit="none",
            least=0,
            most=1,
            size=(6, 6),
        ),
    )


def shifts(board: Board) -> None:
    """Add the shifts of importance that last, and how small one can be told."""
    board.heading("Lasting shifts of importance")
    board.line(
        states(
            "Shifted features",
            "From a shift that was told to its release: the importance came back, or is the reference from then on.",
            Query(f"{latest('importance_shifted', **OF_FEATURE)} == 1", "{{feature}}"),
            size=(12, 8),
            most=1,
            empty="no feature has shifted in this time range",
        ),
        graph(
            "Least change that can be told",
            f"{UNIT}. It shrinks while the reference grows. Smaller changes exist and are not told.",
            Query(latest("importance_least_shift", **OF_FEATURE), "{{feature}}"),
            least=0,
            size=(12, 8),
            empty="the reference is still short",
        ),
    )
