"""Values that begin with the id of their schema, which a schema registry has: Avro and Protobuf."""
