"""The Faust application: configuration, agents, state, metrics, and the command line.

`create_app(config)` in `app` builds it; `prequential` is what happens to one observation.
"""
