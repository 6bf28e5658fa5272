"""Models that do harm: those of a package that `control.allowed` names, for attacks that need code of their own."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from river import naive_bayes


class EndsWhenMade(naive_bayes.GaussianNB):
    """Ends its process when it is made."""

    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class NeverMade(naive_bayes.GaussianNB):
    """Is never made."""

    def __init__(self) -> None:
        while True:
            time.sleep(1)


class EndsAtASign(naive_bayes.GaussianNB):
    """Ends its process at an observation that says so: `{"kill": 1}`."""

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one observation, or end."""
        if x.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        super().learn_one(x, y)  # type: ignore[no-untyped-call]
