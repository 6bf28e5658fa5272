"""What observational removal by shifted rows computes: moments, regressions, and draws."""
