"""Models that follow MLflow's registry.

One process looks at aliases, each worker fetches the versions that it builds.
"""
