"""Five faults in a network of sensors: which sensor is it? After Section 4.1 of the iSAGE paper."""
