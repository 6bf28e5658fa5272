"""What thousands of ordinary models on one worker cost: a restart, and a checkpoint of all of them."""
