"""Streams into blobs in an event loop: each piece is given by a call of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

from tyr import _tyr
from tyr._calls import Calls

if TYPE_CHECKING:
    from typing_extensions import Buffer

Pieces: TypeAlias = "AsyncIterable[Buffer] | Iterable[Buffer]"


async def stream(calls: Calls, write: Callable[[Any], Any], pieces: Pieces) -> int:
    """Writes what comes of an iterator. What that raises, or a task that is cancelled, ends it, and
    nothing is written."""
    feed = _tyr.Feed(calls.queue)
    writing = asyncio.ensure_future(calls.run(write, feed))
    try:
        # What is refused, is before the first piece is asked for.
        await asyncio.sleep(0)
        async with aclosing(_each(pieces)) as each:
            async for piece in each:
                if writing.done():
                    break
                await calls.run(feed.give, piece)
        if not writing.done():
            await calls.run(feed.end)
        written: int = await writing
        return written
    except BaseException:
        writing.cancel()
        await asyncio.wait([writing])
        if not writing.cancelled():
            # It failed itself. An error that nobody looks at is told to the user.
            writing.exception()
        raise


async def _each(pieces: Pieces) -> AsyncGenerator[Buffer, None]:
    if isinstance(pieces, AsyncIterable):
        async for piece in pieces:
            yield piece
    else:
        for piece in pieces:
            yield piece
