"""Models of MLflow: its registry, files of versions, loading."""
