"""Answers what the page asks: functions from a store, the configuration and a moment to the types of `answers`.

They read no clock and no network, and change nothing.
"""
