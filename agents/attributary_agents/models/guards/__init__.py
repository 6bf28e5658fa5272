"""Guards against worker crashes, ruined models and endless growth.

May import what `models` may.
"""
