"""Tables and figures of the iSAGE paper."""
