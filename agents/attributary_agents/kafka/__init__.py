"""Kafka consumers, producers and topics.

May import `config`, `errors` and `logs`.
"""
