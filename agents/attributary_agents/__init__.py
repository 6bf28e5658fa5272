"""The Faust application: configuration, agents, state, metrics, commands.

`create_app(config)` in `app` builds it; `prequential` is what happens to one observation.
"""

from attributary_topics import __version__

__all__ = ["__version__"]
