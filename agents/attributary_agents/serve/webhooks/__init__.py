"""Tells others of incidents as they come: signed POSTs, at most one for an event and an address."""
