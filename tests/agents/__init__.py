"""The application without a broker: every module that is plain Python."""
