"""Web server: store of the output topics, page, REST API and webhooks.

The output topics of the whole group are read into the store, from which questions are answered.

`attributary serve` is a process of its own, so that history survives workers and costs them nothing. It may import
`kafka`, `config` and what is below them, never `worker`. `replay` writes the same page through it as one file.
"""
