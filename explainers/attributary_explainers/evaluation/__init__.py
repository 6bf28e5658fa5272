"""Fast evaluation of many rows: schemas, evaluators and their registry.

May import `core`, `predictions`, `ordering`, `typing` and `errors`. It knows no single kind of model:
`fast_paths` does.
"""
