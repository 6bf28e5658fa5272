"""Models that tests and benchmarks are given: as files of ONNX, in a registry of MLflow, and served over HTTP."""
