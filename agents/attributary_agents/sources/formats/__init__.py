"""Formats: how the value of a record becomes an object that expressions read.

`making.new_format` makes one by its name. May import `errors`, `config` and `sources.records`.
"""
