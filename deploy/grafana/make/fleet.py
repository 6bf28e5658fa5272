"""Builds the dashboard of all models: which has changed, does badly, or has a firing alert."""

from __future__ import annotations

from . import variables
from .board import FLEET, HERE, MODEL, Board
from .panels import GREEN, RED, YELLOW, Query, gauges, graph, note, number
from .queries import dead_letters, firing, grown, happened, known, latest, per_second
from .tables import Column, rows

OF = {"model_id": "~$model_id"}
OF_EXPLAINER = {**OF, "explainer": "~$explainer"}
TOLD = {**OF, "verdict": "!matured"}

HOW_TO_READ = """\
One row per model. Begin with what is red.

- **loss / baseline** above 1: the model does worse than a mean that knows no feature, so its importances mean little.
- **shifted** counts the features whose importance has moved, lastingly: beyond what noise does.
- **worse** is 1 while the model's loss is lastingly above what it was, and no more doubt of its own says why.
- **stale** is 1 where figures stand still: observations come, and none could be explained.
- **discrepancy / threshold** above 1: the model is another one than its reference, an earlier copy of itself. It may
  have learnt, or follow a change; the verdict of a change says which.
- **shift** is the share of importance that has moved since the reference, **NDCG** whether the order at the top is
  the same. Read both: of ten equal features one dying leaves NDCG at 1. Neither knows what is noise.

A click on a model opens its own dashboard. Red lines are changes, blue ones new versions; `attributary changes` prints
what explains them.
"""


def fleet() -> Board:
    """Return the dashboard `attributary-fleet`."""
    board = Board(FLEET, "Attributary / Fleet", "All models: losses, changes, shifts, alerts.")
    board.variables(variables.job(), variables.model(multi=True), variables.explainer("~$model_id", multi=True))
    board.annotations(variables.changes("~$model_id"), variables.deployments("~$model_id"))
    losses = f"{latest('model_loss', **OF)} / {latest('model_baseline_loss', **OF)}"
    distance = f"{latest('model_discrepancy', **OF)} / {latest('model_discrepancy_threshold', **OF)}"
    board.line(
        number(
            "Models",
            "Models with series. A model that is configured and has had no observation is not among them.",
            Query(f"count({latest('model_info', **OF)}) or vector(0)"),
        ),
        number(
            "Observations per second",
            "Of all chosen models, over the last step of the graph behind it.",
            Query(f"sum({per_second('model_observations_total', **OF)}) or vector(0)"),
            trend=True,
        ),
        number(
            "Changes",
            "Changes that were explained in the dashboard's time range, by any route; not that a model has learnt.",
            Query(f"sum({happened('model_changes_total', **TOLD)}) or vector(0)"),
            decimals=0,
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Alerts firing",
            "Of the shipped rules, each once for each model. Without those rules this is always 0.",
            Query(f"count({firing()}) or vector(0)"),
            steps=((None, GREEN), (1, RED)),
        ),
        number(
            "Worse than the baseline",
            "Models whose smoothed loss is above that of a mean that knows no feature.",
            Query(f"count({latest('model_loss', **OF)} > {latest('model_baseline_loss', **OF)}) or vector(0)"),
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Dead letters",
            "Records of the time range that could not be used, of all models.",
            Query(f"sum({happened('dead_letters_total')}) or vector(0)"),
            decimals=0,
            steps=((None, GREEN), (1, RED)),
        ),
    )
    now = (
        (latest("model_info", **OF), ""),
        (f"sum by (model_id) ({per_second('model_observations_total', **OF)})", "obs / s"),
        (latest("model_loss", **OF), "loss"),
        (latest("model_baseline_loss", **OF), "baseline loss"),
        (losses, "loss / baseline"),
        (f"max by (model_id) ({latest('importance_shift_ratio', **OF_EXPLAINER)})", "shift"),
        (f"min by (model_id) ({latest('importance_ndcg_ratio', **OF_EXPLAINER)})", "NDCG"),
        (latest("model_discrepancy", **OF), "discrepancy"),
        (latest("model_discrepancy_threshold", **OF), "threshold"),
        (latest("model_discrepancy_observations", **OF), "n"),
        (f"sum by (model_id) ({happened('model_changes_total', **TOLD)})", "changes"),
        (f"sum by (model_id) ({latest('importance_shifted', **OF_EXPLAINER)})", "shifted"),
        (f"sum by (model_id) ({latest('loss_shift_open', **OF, kind='~worse|rose')})", "worse"),
        (f"max by (model_id) ({latest('explainer_stale', **OF_EXPLAINER)})", "stale"),
        (f"{latest('model_last_change_timestamp_seconds', **OF)} * 1000", "last change"),
        (f"{latest('last_observation_timestamp_seconds', **OF)} * 1000", "last observation"),
        (latest("model_state_bytes", **OF), "state"),
    )
    board.line(
        rows(
            "All models",
            "What is so now; changes are those of the time range. Shift is the largest and NDCG the smallest over the "
            "chosen explainers; shifted counts the features of all of them; n is the number of observations in the "
            "discrepancy. The loss of an anomaly detector is its mean score.",
            "model_id",
            *(Query(expr, name) for expr, name in now),
            hidden=("loss", "loss_unit", "loss_largest"),
            sort_by="discrepancy",
            empty="no model has had an observation yet",
            size=(24, 9),
            columns=(
                Column("model_id", link=("The model", f"/d/{MODEL}?{HERE}&var-model_id=${{__value.raw}}")),
                Column("obs / s", decimals=1),
                Column("loss", decimals=3),
                Column("baseline loss", decimals=3),
                Column("loss / baseline", decimals=2, steps=((None, GREEN), (0.9, YELLOW), (1, RED))),
                Column("shift", "percentunit", decimals=0, steps=((None, GREEN), (0.25, YELLOW), (0.5, RED))),
                Column("NDCG", decimals=2, steps=((None, RED), (0.8, YELLOW), (0.95, GREEN))),
                Column("discrepancy", decimals=3),
                Column("threshold", decimals=3),
                Column("n", decimals=0),
                Column("changes", decimals=0, steps=((None, GREEN), (1, YELLOW))),
                Column("shifted", decimals=0, steps=((None, GREEN), (1, YELLOW))),
                Column("worse", decimals=0, steps=((None, GREEN), (1, RED))),
                Column("stale", decimals=0, steps=((None, GREEN), (1, RED))),
                Column("last change", "dateTimeFromNow"),
                Column("last observation", "dateTimeFromNow"),
                Column("state", "bytes"),
            ),
        )
    )
    board.line(
        graph(
            "Changes over time",
            "Explained in each step, by verdict, and by what raised it: drift detector, discrepancy, a new version, or "
            "a look from time to time.",
            Query(
                known(grown("model_changes_total", "$__interval", **OF), latest("model_changes_total", **OF), "route"),
                "{{model_id}}: {{verdict}} ({{route}})",
                exemplars=True,
            ),
            bars=True,
            least=0,
            empty="no change in this time range",
        ),
        gauges(
            "Largest shifts",
            "Share of importance that has moved since the reference.",
            Query(f"topk(10, {latest('importance_shift_ratio', **OF_EXPLAINER)})", "{{model_id}} ({{explainer}})"),
            unit="percentunit",
            most=1,
            steps=((None, GREEN), (0.25, YELLOW), (0.5, RED)),
            empty="no reference yet",
        ),
        rows(
            "Alerts that fire",
            "Of the shipped rules; their runbooks say what to do.",
            "alertname",
            Query(firing()),
            size=(6, 8),
            empty="no alert fires, or Prometheus has no rules",
            columns=(Column("model_id", link=("The model", f"/d/{MODEL}?{HERE}&var-model_id=${{__value.raw}}")),),
        ),
    )
    board.line(
        graph(
            "Loss / baseline loss",
            "Above 1 the model does worse than a mean that knows no feature.",
            Query(losses, "{{model_id}}"),
            least=0,
            steps=((None, GREEN), (1, RED)),
        ),
        graph(
            "Discrepancy / threshold",
            "Above 1 the model is another one than its reference: it has learnt, or follows a change.",
            Query(distance, "{{model_id}}"),
            least=0,
            steps=((None, GREEN), (1, YELLOW)),
            empty="no model has change explanation",
        ),
    )
    board.line(
        graph(
            "Dead letters by reason",
            "In each step, by topic and reason; each says in its headers why it is there.",
            Query(dead_letters(), "{{reason}} {{topic}}"),
            bars=True,
            least=0,
            size=(8, 8),
        ),
        graph(
            "State",
            "Size of each model's stored state.",
            Query(latest("model_state_bytes", **OF), "{{model_id}}"),
            unit="bytes",
            least=0,
            size=(8, 8),
            empty="nothing is stored yet",
        ),
        note("How to read this", HOW_TO_READ, size=(8, 8)),
    )
    return board
