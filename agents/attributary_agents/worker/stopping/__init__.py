"""Stop of the process by a signal, or by the watchdog.

The watchdog stops a process that stands still.
"""
