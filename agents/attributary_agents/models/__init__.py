"""Models of a worker: state, handling of observations, deployments.

May import `config` and `errors`. It knows nothing of Kafka clients.
"""
