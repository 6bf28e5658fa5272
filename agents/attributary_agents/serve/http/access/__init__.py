"""Says who is let in: the token, the form that asks for it, and pages of other hosts."""
