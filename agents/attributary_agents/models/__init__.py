"""Models of a worker: their state, how one observation goes through them, what is published of it, deployments.

May import `config` and `errors`. It knows nothing of Kafka clients.
"""
