"""Formats: how the value of a record becomes an object for expressions.

`making.new_format` makes one by its name. May import `errors`, `config` and `sources.records`.
"""
