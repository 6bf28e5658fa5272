"""Webhooks: signed POSTs on incidents, at most once per event and address."""
