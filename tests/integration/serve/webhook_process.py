"""Webhooks as a process of their own, as a server runs them: `python -m … CONFIG`; SIGTERM ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path

from attributary_agents.config.reading import load_config
from attributary_agents.logs import configure_logging
from attributary_agents.serve.webhooks.webhooks import Webhooks


async def _run(path: Path) -> None:
    webhooks = Webhooks(load_config(path), first_s=0.05)
    running = asyncio.create_task(webhooks.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running
    print(json.dumps([count.model_dump() for count in webhooks.counts()]), flush=True)


if __name__ == "__main__":
    configure_logging("INFO")
    asyncio.run(_run(Path(sys.argv[1])))
