"""Locks, leases and watches of keys in an event loop: what `tyr.aio` has of them."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tyr import _tyr
from tyr._calls import Calls
from tyr._errors import Error
from tyr._tyr import Event, Notice
from tyr._watching import Watching

if TYPE_CHECKING:
    from typing_extensions import Buffer

_Key = str | bytes


async def lock(
    calls: Calls, take: Callable[..., Any], key: _Key, options: dict[str, Any]
) -> Lock:
    """Takes a lock. A task that is cancelled gives it back if it has got it."""
    return Lock(await calls.run(take, key, **options, unwanted=_tyr.Lock.give_back), calls)


async def lease(
    calls: Calls, take: Callable[..., Any], key: _Key, options: dict[str, Any]
) -> Lease:
    """Takes a lease of a key or a group, like `lock`."""
    return Lease(await calls.run(take, key, **options, unwanted=_tyr.Lease.give_back), calls)


async def key_watch(calls: Calls, begin: Callable[..., Any], key: _Key) -> Watch:
    """Begins a watch."""
    return Watch(await calls.run(begin, key, unwanted=_tyr.Watch.close), calls)


class _Holding:
    """What locks and leases have in common."""

    _inner: _tyr.Lock | _tyr.Lease
    _calls: Calls

    @property
    def key(self) -> bytes:
        return self._inner.key

    @property
    def is_held(self) -> bool:
        return self._inner.is_held

    @property
    def is_recalled(self) -> bool:
        return self._inner.is_recalled

    async def recalled(self, timeout: float | None = None) -> bool:
        return await self._calls.run_within(timeout, None, self._inner.recalled) is True

    async def lost(self, timeout: float | None = None) -> bool:
        return await self._calls.run_within(timeout, None, self._inner.lost) is True

    def give_back(self) -> None:
        self._inner.give_back()

    async def __aenter__(self) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<tyr.aio {self._inner!r}>"


class Lease(_Holding):
    """A lease of a key or a group that is held, in an event loop."""

    _inner: _tyr.Lease

    def __init__(self, inner: _tyr.Lease, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    async def __aexit__(
        self,
        class_: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._inner.give_back()


class Lock(_Holding):
    """A lock that is held, in an event loop."""

    _inner: _tyr.Lock

    def __init__(self, inner: _tyr.Lock, calls: Calls) -> None:
        self._inner, self._calls = inner, calls
        self._is_over = False

    @property
    def token(self) -> int:
        return self._inner.token

    async def unlock(self) -> None:
        self._is_over = True
        await self._calls.run(self._inner.unlock)

    def give_back(self) -> None:
        self._is_over = True
        self._inner.give_back()

    async def __aexit__(
        self,
        class_: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_over:
            return
        try:
            await self.unlock()
        except Error:
            # The exception that the block ends with says more.
            if class_ is None:
                raise


class Watch(Watching[Event]):
    """A watch of a key, or of all keys with a prefix, in an event loop."""

    def acknowledge(self, notice: Notice, reply: Buffer = b"") -> None:
        self._inner.acknowledge(notice, reply)
