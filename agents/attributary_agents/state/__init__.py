"""State of models as bytes: codec, seal, store, checkpoints, and the commands that move or reset it.

May import `models`, `kafka`, `config` and `errors`.
"""
