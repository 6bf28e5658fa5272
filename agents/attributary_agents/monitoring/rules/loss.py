"""Defines the alerts about shifts of the loss, which a worker itself tells, with a bound on false ones.

A shift of the kind `harder` alerts nobody: no more is lost than the model itself said.
"""

from __future__ import annotations

from .alerts import DIGITS, MODEL_DASHBOARD, Alert, Severity, ask, ask_within
from .recorded import recorded

_LOSS = f"Its loss is {ask('model_loss', 'model_id', form=DIGITS)} now"
_N = f"n = {ask('loss_reference_observations', 'model_id')} observations before it"
_EXCESS = ask_within(
    ", of which {} is beyond what its own predictions say and was not there before",
    "model_excess_loss",
    "model_id",
    form=DIGITS,
)
_ROSE = (
    '{{ if eq $labels.kind "rose" }}. A model that gives labels or numbers does not say whether that is its fault'
    "{{ end }}"
)


def loss_alerts() -> list[Alert]:
    """Return the alerts about shifts of the loss; they are of the area `quality`."""
    return [
        _alert(
            "ModelWorse",
            "warning",
            "worse|rose",
            "{{ $labels.model_id }} is worse than it was",
            f"{_LOSS}{_EXCESS}; {_N}{_ROSE}. Since when, by how much and which features have to do with it stands in "
            "the event.",
        ),
        _alert(
            "LevelMoved",
            "info",
            "level",
            "What {{ $labels.model_id }} predicts comes more often or more rarely than it did",
            f"{_LOSS}, and the order in which it puts observations is as good as before; {_N}. Which labels have "
            "moved, and what to add to the model's intercept, stands in the event.",
        ),
    ]


def _alert(name: str, severity: Severity, kinds: str, summary: str, description: str) -> Alert:
    return Alert(
        name,
        "quality",
        severity,
        f'{recorded("loss_shift_open")}{{kind=~"{kinds}"}} == 1',
        summary,
        description,
        dashboard=MODEL_DASHBOARD,
        annotations={"explanation": "attributary changes {{ $labels.model_id }}"},
    )
