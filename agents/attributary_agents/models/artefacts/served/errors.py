"""The errors of asking a model that is served.

None of them is an `ExplainerError`: an explainer takes them for what a model raises on some rows.
"""

from __future__ import annotations


class ServedError(Exception):
    """Final refusal of rows by a served model, or a useless answer.

    The model has no prediction for the rows, and will have none.
    """


class UnnamedError(ServedError):
    """Address that is neither configured nor allowed, so it is not asked.

    Parameters
    ----------
    url
        Which one.
    """

    def __init__(self, url: str) -> None:
        super().__init__(f"{url} is neither the model's address in the configuration nor in control.allowed")


class NotNowError(ServedError):
    """No answer from the endpoint now; a later request may succeed."""
