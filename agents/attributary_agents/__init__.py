"""The Faust application: configuration, agents, state, metrics, and the command line.

`create_app(config)` in `app` builds it; `prequential` is what happens to one observation.
"""

import os

from attributary_topics import __version__

# What a worker publishes, and a replay of it, must not depend on when a kernel was compiled: calls wait for it.
os.environ.setdefault("ATTRIBUTARY_KERNELS", "wait")

__all__ = ["__version__"]
