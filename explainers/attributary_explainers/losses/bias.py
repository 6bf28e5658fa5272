"""A warning about losses and numbers of draws under which SAGE values are biased."""

from __future__ import annotations

from ..errors import BiasedImportanceWarning, warn_caller
from .losses import Loss


def warn_of_bias(loss: Loss, n_samples: int) -> None:
    """Warn where SAGE values under this loss, from so many draws, are biased in a way that nothing corrects."""
    if n_samples == 1 and not loss.is_linear:
        text = "one draw: importance is that of a random replacement, not SAGE; take 2 or more"
    elif loss.name == "zero_one":
        text = (
            f"zero_one counts the most probable label of a mean over draws; with {n_samples} draws it is biased where "
            "that label is nearly a tie; expected_zero_one is not"
        )
    else:
        return
    warn_caller(BiasedImportanceWarning(text))
