"""Calls that block, in threads that nobody waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(function: Callable[..., Result], *args: object) -> Result:
    """Return the result of a blocking call, while the event loop goes on.

    Where the caller is cancelled, the call goes on for nobody. Its thread holds up no end of the process, as one of
    `asyncio.to_thread` would.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def deliver(result: Result | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # the function's

    def call() -> None:
        result, failure = None, None
        try:
            result = function(*args)
        except BaseException as error:  # noqa: BLE001 - the caller's
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, result, failure)

    threading.Thread(target=call, name=function.__name__, daemon=True).start()
    return await done
