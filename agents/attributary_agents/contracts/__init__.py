"""Writes down what is on the topics for those who read or write them: JSON Schema and AsyncAPI."""
