"""Serves the page: reads the output topics of the whole group into a store, answers from it, and tells others.

`attributary serve` is a process of its own, so that history survives workers and costs them nothing. It may import
`kafka`, `config` and what is below them, never `worker`. `replay` writes the same page through it as one file.
"""
