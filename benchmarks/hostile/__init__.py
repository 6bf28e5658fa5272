"""Attacks workers on a real Apache Kafka, as the security team of a user would, and as a broken producer does."""
