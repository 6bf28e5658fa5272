"""Findings from the rehearsal of a single model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from attributary_topics import ModelGuard

MADE_UP = "made-up rows"


@dataclass
class Rehearsal:
    """Findings from the rehearsal of a model.

    Attributes
    ----------
    registered
        Which version of MLflow's registry was tried; None where the model is from elsewhere.
    rows
        Where the rows come from; None where there were none, and nothing was tried but to make the model.
    n_rows, n_used
        Rows, and those that were predicted, explained and learnt.
    dead_letters
        Rows that a worker would send to the dead letters, by reason; `examples` has what the first of each says.
    skipped
        By explainer, rows that it did not explain, by reason.
    prediction, label
        What the model predicts for the last row before learning it, and the row's label.
    loss, is_score, loss_value, why
        The loss in words, whether it is the score of an anomaly detector, its mean over the rows, and why it is that
        one.
    positive
        Which of two classes counts as positive without being named; None where that matters to nothing or is plain.
    evaluated
        How the model is evaluated: by its fast path, or why not.
    guard, guarded_from
        From when on shifts of its loss would be told, or what that waits for; None where its loss is not watched. And
        from about which observation on, at the rate of the rows; None where that is known, or they do not say.
    step_s
        Median time of a step in seconds: decode, predict, explain, learn.
    state_bytes
        Size of the stored state.
    restored
        What was equal when the stored state took the last row as well.
    doubts
        What is worth a look.
    sought
        Where rows of the model were looked for in vain; None where none were, or some were found.
    untried
        Why the rows say nothing of the model, although some were used; None where they do.
    problem
        Why the model cannot work, and what to do; None where it can. No value of a row is in it.
    said
        What the exception behind the problem says, which may hold values of a row; None where there is none.
    """

    model_id: str
    registered: str | None = None
    rows: str | None = None
    n_rows: int = 0
    n_used: int = 0
    n_explained: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, dict[str, int]] = field(default_factory=dict)
    prediction: Any = None
    label: Any = None
    loss: str | None = None
    is_score: bool = False
    loss_value: float | None = None
    why: str | None = None
    positive: str | None = None
    evaluated: str | None = None
    guard: ModelGuard | None = None
    guarded_from: int | None = None
    step_s: float | None = None
    state_bytes: int | None = None
    restored: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    sought: str | None = None
    untried: str | None = None
    problem: str | None = None
    said: str | None = None

    @property
    def works(self) -> bool:
        """Whether the model was tried, and nothing speaks against it."""
        return self.problem is None and self.untried is None and self.n_used > 0
