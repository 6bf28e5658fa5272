"""Commands that show a claim."""

import os

# A broker that a shell exports is somebody's cluster. By hand and not by `forget_settings` of the product, which loops
# written without it are measured beside: they import nothing of it.
for _name in [one for one in os.environ if one.startswith("ATTRIBUTARY_") and one != "ATTRIBUTARY_KAFKA_LIB"]:
    del os.environ[_name]
