"""Kafka clients: consumers, producers, topics, and the corrections to Faust and aiokafka.

May import `config`, `errors` and `logs`.
"""
