"""Tables and figures of the iPFI paper."""
