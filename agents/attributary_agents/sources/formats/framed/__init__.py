"""Formats with a schema id in front: Avro and Protobuf with a registry."""
