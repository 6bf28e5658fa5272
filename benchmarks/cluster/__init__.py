"""Measures on real Apache Kafka what a worker does while brokers come and go."""
