"""Kafka consumers, producers and topics; fixes to Faust and aiokafka.

May import `config`, `errors` and `logs`.
"""
