"""Logs of model servers: Open Inference Protocol in JSON and Protobuf.

They hold requests and responses.
"""
