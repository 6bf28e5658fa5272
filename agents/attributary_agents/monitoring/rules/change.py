"""Defines the alerts about changes of a model, and about its quality."""

from __future__ import annotations

from .alerts import DIGITS, MODEL_DASHBOARD, Alert, ask, ask_rise, number, percent
from .options import Thresholds
from .recorded import recorded, rise

_CHANGES = recorded("model_changes_total")
_DRIFT = f'{_CHANGES}{{verdict=~"followed|harder|none"}}'
"""Changes of the data, and new versions, which have no verdict."""
_OBSERVATIONS = recorded("model_observations_total")
_LAST = recorded("model_last_change_timestamp_seconds")
_EXPLAINED = {"explanation": "attributary changes {{ $labels.model_id }}"}
"""The command that prints the change event."""


_THROUGH_A_GAP = "2m"
"""A rebalance does not end the alert and begin it again as if there were another change."""


def change_alerts(at: Thresholds) -> list[Alert]:
    """Return the alerts of the area `change`."""
    window = at.change_window
    by_itself = f'{_CHANGES}{{route!="version", verdict!="matured"}}'
    return [
        Alert(
            "ChangeDetected",
            "change",
            "info",
            # A change is one rare event. Counters of a known model start at 0, so its first change is a rise. Where the
            # first scrape of a model comes behind its first change, the time of the change tells; it is the
            # observation's own, so only for a stream that is not far behind. It tells for half as long: were it the
            # last to tell of a change that is counted, the alert would end as another one, without a route. Of a model
            # that was there before the window it says nothing: what is late there may have been another verdict.
            f"{rise(_DRIFT, window)} > 0\n"
            f"or ignoring (route, verdict)\n"
            f"0 * ((time() - {_LAST} > -60) < {_seconds(window) // 2}) + 1\n"
            f"and\n"
            f"sum without (route, verdict) ({_DRIFT}) > 0\n"
            f"unless\n"
            f"{_OBSERVATIONS} offset {window}",
            "{{ $labels.model_id }} has changed",
            f"{{{{ $value }}}} change(s) in {window}{{{{ with $labels.route }}}}, raised by: {{{{ . }}}}{{{{ end }}}}"
            '{{ with $labels.verdict }}{{ if ne . "none" }}, verdict: {{ . }}{{ end }}{{ end }}. '
            "Which features it relies on more or less stands in the change event.",
            keep=_THROUGH_A_GAP,
            dashboard=MODEL_DASHBOARD,
            annotations=_EXPLAINED,
        ),
        Alert(
            "ModelDegraded",
            "change",
            "warning",
            f"sum without (route, verdict) ({rise(_degraded(), window)}) > 0",
            "{{ $labels.model_id }} has become worse than it was",
            f"Told {{{{ $value }}}} time(s) in {window}: on the same observations, which neither had learnt, its loss "
            "is above that of its reference, an earlier copy of itself.",
            keep=_THROUGH_A_GAP,
            dashboard=MODEL_DASHBOARD,
            annotations=_EXPLAINED,
        ),
        Alert(
            "ChangeStorm",
            "change",
            "warning",
            f"sum without (route, verdict) ({rise(by_itself, at.storm_window)}) >= {number(at.storm_changes)}",
            "{{ $labels.model_id }} does not come to rest",
            f"{{{{ $value }}}} changes in {at.storm_window}, {number(at.storm_changes)} or more.",
            dashboard=MODEL_DASHBOARD,
            annotations=_EXPLAINED,
        ),
    ]


def quality_alerts(at: Thresholds) -> list[Alert]:
    """Return the alerts of the area `quality`."""
    consumed = recorded("records_consumed_total")
    missing = f"sum without (partition, reason) ({rise(_letters('missing_label'), at.dead_letters_window)})"
    not_finite = f"sum without (partition, reason) ({rise(_letters('prediction_not_finite'), at.dead_letters_window)})"
    records = f"sum without (partition) ({rise(consumed, at.dead_letters_window)})"
    margin = f"{number(1 + at.baseline_margin)} * " if at.baseline_margin else ""
    by = f", by more than {percent(at.baseline_margin)}" if at.baseline_margin else ""
    return [
        Alert(
            "WorseThanBaseline",
            "quality",
            "warning",
            f"{recorded('model_loss')} > {margin}{recorded('model_baseline_loss')}\n"
            f"and {recorded('model_observations_total')} >= {number(at.min_observations)}",
            "{{ $labels.model_id }} is worse than a prediction that knows no feature",
            'Its loss is {{ printf "%.3g" $value }}, above '
            f"{ask('model_baseline_loss', 'model_id', form=DIGITS)}{by}; "
            f"n = {ask('model_observations_total', 'model_id')} observations. Its importances say little now.",
            wait="15m",
            dashboard=MODEL_DASHBOARD,
        ),
        Alert(
            "LabelsMissing",
            "quality",
            "warning",
            f"{missing} / {records} > {number(at.labels_missing_ratio)}",
            "Observations come without labels on {{ $labels.topic }}",
            f"{{{{ $value | humanizePercentage }}}} of the records in {at.dead_letters_window} have no label, more "
            f"than {percent(at.labels_missing_ratio)}; n = "
            f"{ask_rise('records_consumed_total', at.dead_letters_window, 'topic')} records. "
            "They are dead letters with the reason missing_label.",
            wait="5m",
        ),
        Alert(
            "PredictionsNotFinite",
            "quality",
            "warning",
            f"{not_finite} >= {number(at.not_finite_predictions)}",
            "A model on {{ $labels.topic }} predicts NaN or infinity",
            f"{{{{ $value }}}} observation(s) in {at.dead_letters_window}, {number(at.not_finite_predictions)} or "
            "more, became dead letters with the reason prediction_not_finite. One absurd number can do that to a "
            "model for ever; each dead letter names its model.",
        ),
        Alert(
            "FiguresStale",
            "quality",
            "warning",
            f"{recorded('explainer_stale')} == 1",
            "The figures of {{ $labels.model_id }} stand still ({{ $labels.explainer }})",
            "None has been updated since the last event: observations come, and none could be explained. The figures "
            f"are made of {ask('explainer_observations', 'model_id', 'explainer')} observations.",
            wait="10m",
            dashboard=MODEL_DASHBOARD,
        ),
    ]


def _degraded() -> str:
    return f'{_CHANGES}{{verdict="degraded"}}'


def _letters(reason: str) -> str:
    return f'{recorded("dead_letters_total")}{{reason="{reason}"}}'


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]
