"""Service metadata in an event loop: what `tyr.aio` has of it."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from tyr import _tyr
from tyr._calls import Awaited, Calls
from tyr._errors import Error
from tyr._tyr import MetadataChanges, MetadataEntry, MetadataPage, MetadataTransaction
from tyr._watching import Watching

if TYPE_CHECKING:
    from typing_extensions import Buffer

_Expected = int | Literal["absent", "present"] | None


class Metadata:
    """The service metadata of a store, in an event loop."""

    def __init__(self, inner: _tyr.Metadata, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    async def get(self, path: str) -> MetadataEntry | None:
        found: MetadataEntry | None = await self._calls.run(self._inner.get, path)
        return found

    async def put(self, path: str, value: Buffer, *, expected: _Expected = None) -> int:
        revision: int = await self._calls.run(self._inner.put, path, value, expected=expected)
        return revision

    async def delete(self, path: str, *, expected: _Expected = None) -> int:
        revision: int = await self._calls.run(self._inner.delete, path, expected=expected)
        return revision

    async def transact(self, transaction: MetadataTransaction) -> int:
        revision: int = await self._calls.run(self._inner.transact, transaction)
        return revision

    async def list(
        self, prefix: str = "", *, after: str | None = None, limit: int = 1024
    ) -> MetadataPage:
        call = partial(self._inner.list, prefix, after=after, limit=limit)
        page: MetadataPage = await self._calls.run(call)
        return page

    def watch(self, prefix: str = "", *, after: int) -> MetadataWatch:
        return MetadataWatch(self._inner.watch(prefix, after=after), self._calls)

    def presence(self, ttl: float = 10.0) -> Awaited[Presence]:
        """That this program is there: await it, or use it in `async with`."""
        return Awaited(partial(self._presence, ttl))

    async def _presence(self, ttl: float) -> Presence:
        # One that nobody gets ends when it is forgotten.
        return Presence(await self._calls.run(self._inner.presence, ttl), self._calls)

    def __repr__(self) -> str:
        return f"<tyr.aio {self._inner!r}>"


class MetadataWatch(Watching[MetadataChanges]):
    """A watch of what changes under a prefix, in an event loop."""


class Presence:
    """That this program is there, in an event loop."""

    def __init__(self, inner: _tyr.Presence, calls: Calls) -> None:
        self._inner, self._calls = inner, calls
        self._is_over = False

    @property
    def is_there(self) -> bool:
        return self._inner.is_there

    async def put(self, path: str, value: Buffer, *, expected: _Expected = None) -> int:
        revision: int = await self._calls.run(self._inner.put, path, value, expected=expected)
        return revision

    async def transact(self, transaction: MetadataTransaction) -> int:
        revision: int = await self._calls.run(self._inner.transact, transaction)
        return revision

    async def lost(self, timeout: float | None = None) -> bool:
        return await self._calls.run_within(timeout, None, self._inner.lost) is True

    async def end(self) -> None:
        self._is_over = True
        await self._calls.run(self._inner.end)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        class_: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_over:
            return
        try:
            await self.end()
        except Error:
            # The exception that the block ends with says more.
            if class_ is None:
                raise

    def __repr__(self) -> str:
        return f"<tyr.aio {self._inner!r}>"
