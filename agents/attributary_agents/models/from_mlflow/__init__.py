"""Gets models from MLflow: which version an alias names, the files of a version, and the model in them.

MLflow's client is asked in a process of its own (`process`): its import takes a second and 150 MB, it has threads, and
it needs secrets, none of which a worker should have. A process that builds a model is given files and no secrets.
"""
