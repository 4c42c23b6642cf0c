"""Watches in an event loop: what those of keys and those of service metadata have in common."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from tyr._calls import Calls
from tyr._errors import Error

Told = TypeVar("Told")


class Watching(Generic[Told]):
    """A watch, which tells things of this type to one who waits at a time."""

    def __init__(self, inner: Any, calls: Calls) -> None:
        self._inner, self._calls = inner, calls
        self._untold: Told | None = None
        self._is_closed = False

    async def changed(self, timeout: float | None = None) -> Told | None:
        """Waits until there is something to tell; `None` when nothing was in time."""
        told, self._untold = self._untold, None
        if told is None:
            told = await self._calls.run_within(timeout, self._keep, self._inner.changed)
        return told

    def _keep(self, told: Told) -> None:
        self._untold = told

    def close(self) -> None:
        self._is_closed = True
        self._inner.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Told:
        try:
            told = await self.changed()
        except Error:
            if self._is_closed:
                raise StopAsyncIteration from None
            raise
        assert told is not None, "it was waited for as long as it took"
        return told

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        class_: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tyr.aio {self._inner!r}>"
