"""What batch explainers cost beside others: error against exact values, processor time, model calls."""
