"""Has models follow MLflow's registry: one process looks at aliases, each worker fetches what it builds."""
