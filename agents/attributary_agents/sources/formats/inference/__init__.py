"""Logs of model servers: requests and responses of the Open Inference Protocol, in JSON and in Protobuf."""
