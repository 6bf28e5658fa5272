"""A web service that holds its model, and shows what the model relies on."""
