"""Models of MLflow: versions of aliases, files of versions, loading.

MLflow's client is asked in a process of its own (`process`): its import takes a second and 150 MB, it has threads, and
it needs secrets, none of which a worker should have. A process that builds a model is given files and no secrets.
"""
