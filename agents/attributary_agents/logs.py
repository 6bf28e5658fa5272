"""Where logs go, and how much of what other libraries have to say."""

from __future__ import annotations

import logging
import sys


def configure_logging(level: str) -> None:
    """Log to stderr: stdout is for data."""
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    # A constant loss, a model that raises while it is explained: warnings of the explainers are log lines here.
    logging.captureWarnings(capture=True)
    # Faust logs under the module of the subclass.
    for chatty in ("faust", "mode", "aiokafka", "attributary_agents.faust_fixes"):
        logging.getLogger(chatty).setLevel(max(logging.getLevelName(level), logging.WARNING))
