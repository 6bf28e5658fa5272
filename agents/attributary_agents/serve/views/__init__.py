"""Views: functions from a store, the configuration and a time to answers.

They read no clock and no network, and change nothing.
"""
