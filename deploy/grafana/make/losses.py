"""Adds to the dashboard of one model whether its loss has shifted, of which kind, and how far beyond its own doubt."""

from __future__ import annotations

from .board import Board
from .chosen import OF
from .panels import Query, graph, states
from .queries import latest


def losses(board: Board) -> None:
    """Add the shifts of the loss that last, the excess loss with its interval, and whether it is guarded."""
    board.heading("Lasting shifts of the loss")
    board.line(
        states(
            "Shift of the loss",
            "From a shift that was told to its release. worse: wronger than it was, given what it predicts. level: the "
            "base rate moved, the order is as good. harder: no more is lost than its own doubt says. rose: the loss "
            "rose, and labels or numbers do not say why.",
            Query(f"{latest('loss_shift_open', **OF)} == 1", "{{kind}}"),
            size=(8, 8),
            most=1,
            empty="the loss has not shifted in this time range",
        ),
        graph(
            "Excess loss",
            "Loss beyond what was to be expected of the predictions, less what that was in the reference, with its "
            "95 % interval. About 0: the model is as right as it was. n counts the observations before it.",
            Query(latest("model_excess_loss", **OF), "excess"),
            Query(latest("model_excess_loss_low", **OF), "low"),
            Query(latest("model_excess_loss_high", **OF), "high"),
            Query(latest("loss_reference_observations", **OF), "n"),
            size=(8, 8),
            right=("n", "short"),
            empty="no reference yet, or the model gives labels or numbers",
        ),
        graph(
            "Loss under guard",
            "1 where shifts of the loss can be told, 0 while too few labels have come.",
            Query(latest("model_watch_armed", **OF), "guarded"),
            unit="none",
            least=0,
            most=1,
            size=(8, 8),
            empty="the loss is not watched",
        ),
    )
