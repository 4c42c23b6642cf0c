"""Calls of `tyr.aio`: started at once, answered through a descriptor that the event loop watches."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from tyr import _tyr
from tyr._errors import Closed

__all__ = ["Awaited", "Calls"]


class Calls:
    """The calls of a store that are under way in an event loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        # It knows us, as whom it tells of answers.
        self._loop_of = weakref.ref(loop)
        self.queue = _tyr.Queue()
        self._descriptor = self.queue.descriptor()
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._is_closed = False
        loop.add_reader(self._descriptor, self._take)

    async def run(
        self,
        call: Callable[..., Any],
        /,
        *arguments: Any,
        unwanted: Callable[[Any], None] | None = None,
        **words: Any,
    ) -> Any:
        """Starts a call and waits for its answer. `unwanted` gets an answer that is there though
        the task was cancelled, so that nothing is held, or told, that nobody knows of."""
        if self._is_closed:
            raise Closed("the store is closed: open it again")
        loop = asyncio.get_running_loop()
        if loop is not self._loop_of():
            raise RuntimeError(
                "this store of tyr.aio belongs to another event loop: open one in this loop"
            )
        tag: int = call(*arguments, **words)
        future = loop.create_future()
        self._futures[tag] = future
        self._take()
        try:
            return await future
        except asyncio.CancelledError:
            left = self._futures.pop(tag, None)
            if left is future:
                # A call that is under way is withdrawn. If its answer was there before, that comes.
                left = self._futures[tag] = loop.create_future()
                self.queue.cancel(tag)
                self._take()
                try:
                    # Its task goes on when nothing of it is under way any more: soon.
                    await asyncio.wait([left])
                except asyncio.CancelledError:
                    left.add_done_callback(partial(_forget, unwanted))
                    raise
            _forget(unwanted, future if left is None else left)
            del future, left
            raise

    async def run_within(
        self,
        timeout: float | None,
        unwanted: Callable[[Any], None] | None,
        call: Callable[..., Any],
        /,
    ) -> Any:
        """The same for so long at most; `None` when that has passed."""
        try:
            async with asyncio.timeout(timeout) as bound:
                return await self.run(call, unwanted=unwanted)
        except TimeoutError:
            if not bound.expired():
                raise
            return None

    def _take(self) -> None:
        for tag, is_good, answer in self.queue.take():
            future = self._futures.pop(tag, None)
            if future is None:
                continue
            if future.cancelled():
                # Its task has yet to hear of that, and finds the answer then.
                future = self._futures[tag] = future.get_loop().create_future()
            if is_good:
                future.set_result(answer)
            elif answer is None:
                future.cancel()
            else:
                future.set_exception(answer)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._descriptor)
        await loop.run_in_executor(None, self.queue.close)
        for future in self._futures.values():
            future.cancel()
        self._futures.clear()


def _forget(unwanted: Callable[[Any], None] | None, future: asyncio.Future[Any]) -> None:
    """Does away with an answer that came though its task was cancelled."""
    if future.cancelled():
        return
    # An error that nobody looks at is told to the user.
    if future.exception() is None and unwanted is not None:
        unwanted(future.result())


class _Ended(Protocol):
    """What is used in `async with`."""

    async def __aexit__(
        self,
        class_: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...


_E = TypeVar("_E", bound=_Ended)


class Awaited(Generic[_E]):
    """What is being opened or taken: await it, or use it in `async with`."""

    def __init__(self, begin: Callable[[], Awaitable[_E]]) -> None:
        self._begin = begin
        self._made: _E | None = None

    def __await__(self) -> Generator[Any, None, _E]:
        return self._begin().__await__()

    async def __aenter__(self) -> _E:
        self._made = await self._begin()
        return self._made

    async def __aexit__(
        self,
        class_: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        made, self._made = self._made, None
        if made is not None:
            await made.__aexit__(class_, value, traceback)
