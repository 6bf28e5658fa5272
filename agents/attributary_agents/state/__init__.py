"""Stored state of models: codec, seal, store, checkpoints, commands.

The commands move or reset the state.

May import `models`, `kafka`, `config` and `errors`.
"""
