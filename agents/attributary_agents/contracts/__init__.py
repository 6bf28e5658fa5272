"""JSON Schema and AsyncAPI of the topics, for their readers and writers."""
