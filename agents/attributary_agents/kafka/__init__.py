"""Kafka clients: options, topics, reading, sending, and the corrections to Faust and aiokafka.

May import `config`, `errors` and `logs`.
"""
