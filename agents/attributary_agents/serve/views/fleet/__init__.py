"""View of the fleet: all models by attention, with a summary sentence.

The sentence says whether anything is wrong.
"""
