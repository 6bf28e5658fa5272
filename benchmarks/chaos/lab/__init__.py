"""What scenarios work with: brokers, workers, proxies, observations."""
