"""Reading of topics written by others: mapped records, or directly."""
