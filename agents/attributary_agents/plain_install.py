"""Detection of a plain install, which is the library alone.

Other installs can run the command and workers.

Imports nothing that the plain install has not.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

WORKER_MODULES = (
    *("faust", "aiokafka", "aiohttp", "pydantic", "yaml", "click", "jmespath", "rich", "zstandard"),
    "cramjam",  # unpacks batches; aiokafka's codecs bring it
)
"""What the extra `worker` brings and the plain install has not, as modules."""

NEEDS_WORKER = "the command needs the worker: pip install 'attributary[worker]'"


def end_without_worker() -> None:
    """End the process if a package of the extra `worker` is missing.

    It ends with one line and exit code 2.
    """
    if any(name not in sys.modules and find_spec(name) is None for name in WORKER_MODULES):
        print(NEEDS_WORKER, file=sys.stderr)
        sys.exit(2)
