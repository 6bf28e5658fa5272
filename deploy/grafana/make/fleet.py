"""Builds the dashboard of all models: which has an incident, does badly, or has a firing alert."""

from __future__ import annotations

from . import variables
from .board import FLEET, HERE, MODEL, Board
from .panels import GREEN, RED, YELLOW, Query, gauges, graph, note, number, states
from .queries import dead_letters, firing, happened, latest, open_incidents, per_second, seen_incidents
from .tables import Column, rows

OF = {"model_id": "~$model_id"}
OF_EXPLAINER = {**OF, "explainer": "~$explainer"}

HOW_TO_READ = """\
Begin with the open incidents: each is one thing that happened to one model, and goes on until it is over.
`attributary incidents` prints them. Then, one row per model:

- **loss / baseline** above 1: the model does worse than a mean that knows no feature, so its importances mean little.
- **shifted** counts the features whose importance has moved, lastingly: beyond what noise does.
- **stale** is 1 where figures stand still: observations come, and none could be explained.
- **discrepancy / threshold** above 1: the model is another one than its reference, an earlier copy of itself. It may
  have learnt, or follow a change.
- **shift** is the share of importance that has moved since the reference, **NDCG** whether the order at the top is
  the same. Read both: of ten equal features one dying leaves NDCG at 1. Neither knows what is noise.

A click on a model opens its own dashboard. Red marks are incidents, blue lines new versions.
"""


def fleet() -> Board:
    """Return the dashboard `attributary-fleet`."""
    board = Board(FLEET, "Attributary / Fleet", "All models: incidents, losses, shifts, alerts.")
    board.variables(variables.job(), variables.model(multi=True), variables.explainer("~$model_id", multi=True))
    board.annotations(variables.incidents("~$model_id"), variables.deployments("~$model_id"))
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
            "Open incidents",
            "Each is one thing that happened to one model.",
            Query(f"count({latest('incident_open', **OF)}) or vector(0)"),
            steps=((None, GREEN), (1, RED)),
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
    board.line(
        rows(
            "What is open",
            "Incidents that are confirmed, or suspected and critical. `attributary incidents` prints since when, how "
            "much and which features.",
            "model_id",
            Query(open_incidents(**OF)),
            size=(12, 6),
            empty="no incident is open",
            columns=(Column("model_id", link=("The model", f"/d/{MODEL}?{HERE}&var-model_id=${{__value.raw}}")),),
        ),
        states(
            "Incidents",
            "From where they were told to where they were over.",
            Query(latest("incident_open", **OF), "{{model_id}}: {{what}} ({{severity}})"),
            size=(12, 6),
            most=1,
            empty="no incident in this time range",
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
        (f"{seen_incidents(**OF)} or 0 * {latest('model_observations_total', **OF)}", "incidents"),
        (f"sum by (model_id) ({latest('importance_shifted', **OF_EXPLAINER)})", "shifted"),
        (f"max by (model_id) ({latest('explainer_stale', **OF_EXPLAINER)})", "stale"),
        (f"{latest('incident_since_timestamp_seconds', **OF)} * 1000", "last incident"),
        (f"{latest('last_observation_timestamp_seconds', **OF)} * 1000", "last observation"),
        (latest("model_state_bytes", **OF), "state"),
    )
    board.line(
        rows(
            "All models",
            "What is so now; incidents are those of the time range. Shift is the largest and NDCG the smallest over "
            "the chosen explainers; shifted counts the features of all of them; n is the number of observations in the "
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
                Column("incidents", decimals=0, steps=((None, GREEN), (1, YELLOW))),
                Column("shifted", decimals=0, steps=((None, GREEN), (1, YELLOW))),
                Column("stale", decimals=0, steps=((None, GREEN), (1, RED))),
                Column("last incident", "dateTimeFromNow"),
                Column("last observation", "dateTimeFromNow"),
                Column("state", "bytes"),
            ),
        )
    )
    board.line(
        gauges(
            "Largest shifts",
            "Share of importance that has moved since the reference.",
            Query(f"topk(10, {latest('importance_shift_ratio', **OF_EXPLAINER)})", "{{model_id}} ({{explainer}})"),
            unit="percentunit",
            size=(12, 8),
            most=1,
            steps=((None, GREEN), (0.25, YELLOW), (0.5, RED)),
            empty="no reference yet",
        ),
        rows(
            "Alerts that fire",
            "Of the shipped rules; their runbooks say what to do.",
            "alertname",
            Query(firing()),
            size=(12, 8),
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
        note("How to read this", HOW_TO_READ, size=(8, 10)),
    )
    return board
