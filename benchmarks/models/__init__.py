"""One trained model, given to a worker in every way: whether it says the same, and what each way costs."""
