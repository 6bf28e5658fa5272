"""Says what a load needs: workers, cores, memory, partitions, latency and bytes, by a capacity model and a simulation.

Times the configured models on this machine, because what was measured on another one does not travel. May import
`rehearsal` and what that may import.
"""
