"""Tells others of alarms, changes and shifts as they come: signed POSTs, at most one for an event and an address."""
