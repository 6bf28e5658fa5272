"""The fleet: how each model is doing, in the order of attention, and whether anything is wrong, in a sentence."""
