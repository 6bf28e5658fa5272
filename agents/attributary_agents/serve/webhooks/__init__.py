"""Webhooks: signed POSTs on incidents, once per event and address.

At most once: an event may also be lost, which is counted.
"""
