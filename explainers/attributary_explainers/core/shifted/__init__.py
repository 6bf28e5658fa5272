"""Observational removal by shifted rows: moments, regressions, draws."""
