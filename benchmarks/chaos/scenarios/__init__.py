"""One module per way of breaking things."""
