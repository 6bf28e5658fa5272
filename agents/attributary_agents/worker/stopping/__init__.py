"""Stops the process: at a signal, and where the watchdog sees that it stands still."""
