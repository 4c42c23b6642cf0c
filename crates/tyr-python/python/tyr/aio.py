"""Týr for asyncio: the same names, awaited.

    async with tyr.aio.connect("tyr://node-1:7070") as store:
        data = await store.keyspace("data")
        await data.append("log", b"hello")

A store belongs to the event loop that it was opened in. Calls are started at once, in the order in
which they are awaited, and answered through a descriptor that the loop watches: no thread waits.
What memory can answer is there without a trip through the loop.

Cancelling a task takes back what it was reading. What was to change something may take effect all
the same; a transaction that was not committed does not.
"""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar


from tyr import _tyr
from tyr._errors import Closed, Conflict, SnapshotTooOld
from tyr._tyr import Committed, Entry, Operation, Page, Stat, Transform, Version

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Keyspace", "Snapshot", "Store", "Transaction", "connect", "here", "here_at", "open"]

_Key = str | bytes
_P = ParamSpec("_P")
_T = TypeVar("_T")

#: How often `Store.transact` runs a function that meets conflicts.
_ATTEMPTS_MAX = 64


class _Calls:
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

    async def run(self, call: Callable[..., Any], /, *arguments: Any, **words: Any) -> Any:
        """Starts a call and waits for its answer."""
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
            if tag in self._futures:
                # Its task goes on when nothing of it is under way any more: soon.
                ended = self._futures[tag] = loop.create_future()
                self.queue.cancel(tag)
                self._take()
                await asyncio.wait([ended])
                if not ended.cancelled():
                    # It was answered first. An error that nobody looks at is told to the user.
                    ended.exception()
            raise

    def _take(self) -> None:
        for tag, is_good, answer in self.queue.take():
            future = self._futures.pop(tag, None)
            if future is None or future.done():
                continue
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


class _Opening:
    """A store that is being opened: await it, or use it in `async with`."""

    def __init__(self, start: Callable[..., Any], arguments: tuple[Any, ...], words: Any) -> None:
        self._start, self._arguments, self._words = start, arguments, words
        self._store: Store | None = None

    async def _open(self) -> Store:
        calls = _Calls()
        try:
            words = {**self._words, "queue": calls.queue}
            inner = await calls.run(self._start, *self._arguments, **words)
        except BaseException:
            await calls.close()
            raise
        return Store(inner, calls)

    def __await__(self) -> Any:
        return self._open().__await__()

    async def __aenter__(self) -> Store:
        self._store = await self._open()
        return self._store

    async def __aexit__(self, *_raised: object) -> None:
        if self._store is not None:
            await self._store.close()


def open(path: Any, **options: Any) -> _Opening:
    """Opens the store in a folder, with the options of `tyr.open`."""
    return _Opening(_tyr.open, (path,), options)


def connect(address: str, **options: Any) -> _Opening:
    """Connects to a cluster, with the options of `tyr.connect`."""
    return _Opening(_tyr.connect, (address,), options)


#: The calls of each event loop that `here` and `here_at` were used in.
_of_loop: weakref.WeakKeyDictionary[Any, _Calls] = weakref.WeakKeyDictionary()


def here(keyspace: _tyr.Keyspace) -> Keyspace:
    """A keyspace that was found without asyncio, for the event loop that runs here. It is open as
    long as its store is."""
    calls = _calls_here()
    return Keyspace(keyspace.through(calls.queue), calls)


def here_at(snapshot: _tyr.Snapshot) -> Snapshot:
    """A snapshot that was taken without asyncio, for the event loop that runs here. What it keeps
    may go when both were given back."""
    calls = _calls_here()
    return Snapshot(snapshot.through(calls.queue), calls)


def _calls_here() -> _Calls:
    loop = asyncio.get_running_loop()
    calls = _of_loop.get(loop)
    if calls is None:
        calls = _of_loop[loop] = _Calls()
    return calls


class Store:
    """A store, in an event loop."""

    def __init__(self, inner: _tyr.Store, calls: _Calls) -> None:
        self._inner, self._calls = inner, calls

    async def keyspace(self, name: str, *, create: bool = False, **config: Any) -> Keyspace:
        found = await self._calls.run(self._inner.keyspace, name, create=create, **config)
        return Keyspace(found, self._calls)

    async def create_keyspace(self, name: str, **config: Any) -> Keyspace:
        made = await self._calls.run(self._inner.create_keyspace, name, **config)
        return Keyspace(made, self._calls)

    async def drop_keyspace(self, name: str) -> None:
        await self._calls.run(self._inner.drop_keyspace, name)

    async def keyspaces(self) -> list[str]:
        names: list[str] = await self._calls.run(self._inner.keyspaces)
        return names

    def begin(self) -> Transaction:
        """Begins a transaction: `async with` commits it at the end."""
        return Transaction(self._inner.begin(), self._calls)

    async def transact(
        self,
        body: Callable[Concatenate[Transaction, _P], Awaitable[_T]],
        *arguments: _P.args,
        **words: _P.kwargs,
    ) -> _T:
        """Awaits `body(transaction, ...)` and commits; again, up to 64 times, after a conflict."""
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                async with self.begin() as transaction:
                    return await body(transaction, *arguments, **words)
            except (Conflict, SnapshotTooOld):
                if attempt == _ATTEMPTS_MAX:
                    raise
            await asyncio.sleep(random.uniform(0.5, 1.0) * min(20e-6 * 2**attempt, 10e-3))
        raise AssertionError("the last attempt answers or raises")

    async def snapshot(self) -> Snapshot:
        return Snapshot(await self._calls.run(self._inner.snapshot), self._calls)

    async def keep(self, name: str) -> None:
        await self._calls.run(self._inner.keep, name)

    async def kept(self) -> list[str]:
        names: list[str] = await self._calls.run(self._inner.kept)
        return names

    async def kept_snapshot(self, name: str) -> Snapshot:
        return Snapshot(await self._calls.run(self._inner.kept_snapshot, name), self._calls)

    async def drop_kept(self, name: str) -> None:
        await self._calls.run(self._inner.drop_kept, name)

    async def copy(
        self, source: Keyspace, source_key: _Key, target: Keyspace, target_key: _Key
    ) -> int:
        one, other = _inner(source), _inner(target)
        copied: int = await self._calls.run(self._inner.copy, one, source_key, other, target_key)
        return copied

    async def read_many(
        self, wanted: Sequence[tuple[Keyspace, _Key, int, int]]
    ) -> list[bytes | None]:
        parts = [(_inner(keyspace), *rest) for keyspace, *rest in wanted]
        read: list[bytes | None] = await self._calls.run(self._inner.read_many, parts)
        return read

    async def outcome(self, error: BaseException) -> Committed:
        committed: Committed = await self._calls.run(self._inner.outcome, error)
        return committed

    async def sync(self) -> None:
        await self._calls.run(self._inner.sync)

    async def close(self) -> None:
        """Cancels what is under way, and closes the store."""
        if not self._inner.is_closed:
            await self._calls.run(self._inner.close)
        await self._calls.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<tyr.aio {self._inner!r}>"


def _inner(keyspace: Keyspace) -> _tyr.Keyspace:
    if not isinstance(keyspace, Keyspace):
        raise TypeError(f"a keyspace of tyr.aio is wanted, not {type(keyspace).__name__}")
    return keyspace._inner


class Keyspace:
    """A keyspace, in an event loop."""

    def __init__(self, inner: _tyr.Keyspace, calls: _Calls) -> None:
        self._inner, self._calls = inner, calls

    @property
    def name(self) -> str:
        return self._inner.name

    async def create(self, key: _Key) -> None:
        await self._calls.run(self._inner.create, key)

    async def put(self, key: _Key, data: Buffer) -> None:
        await self._calls.run(self._inner.put, key, data)

    async def write(self, key: _Key, offset: int, data: Buffer) -> None:
        await self._calls.run(self._inner.write, key, offset, data)

    async def append(self, key: _Key, data: Buffer, *, at: int | None = None) -> int:
        offset: int = await self._calls.run(self._inner.append, key, data, at=at)
        return offset

    async def read(self, key: _Key, offset: int, length: int) -> bytes:
        read: bytes = await self._calls.run(self._inner.read, key, offset, length)
        return read

    async def get(self, key: _Key) -> bytes:
        read: bytes = await self._calls.run(self._inner.get, key)
        return read

    async def stat(self, key: _Key) -> Stat:
        stat: Stat = await self._calls.run(self._inner.stat, key)
        return stat

    async def truncate(self, key: _Key, size: int) -> None:
        await self._calls.run(self._inner.truncate, key, size)

    async def clear(self, key: _Key, offset: int, length: int) -> None:
        await self._calls.run(self._inner.clear, key, offset, length)

    async def delete(self, key: _Key) -> bool:
        existed: bool = await self._calls.run(self._inner.delete, key)
        return existed

    async def apply(self, key: _Key, offset: int, transform: Transform) -> int | float:
        value: int | float = await self._calls.run(self._inner.apply, key, offset, transform)
        return value

    async def compare_and_swap(
        self, key: _Key, offset: int, expected: Buffer, new: Buffer
    ) -> None:
        await self._calls.run(self._inner.compare_and_swap, key, offset, expected, new)

    async def scan_page(self, **words: Any) -> Page:
        page: Page = await self._calls.run(self._inner.scan_page, **words)
        return page

    async def list(self, **words: Any) -> AsyncIterator[Entry]:
        """All that a scan finds, page by page."""
        while True:
            page = await self.scan_page(**words)
            for entry in page.entries:
                yield entry
            if page.resume is None:
                return
            words = {**words, "start": page.resume, "after": None}

    def __repr__(self) -> str:
        return f"<tyr.aio {self._inner!r}>"


class _Reading:
    """What a transaction and a snapshot read in the same way."""

    _inner: _tyr.Transaction | _tyr.Snapshot
    _calls: _Calls

    async def read(self, keyspace: Keyspace, key: _Key, offset: int, length: int) -> bytes:
        inner = _inner(keyspace)
        read: bytes = await self._calls.run(self._inner.read, inner, key, offset, length)
        return read

    async def get(self, keyspace: Keyspace, key: _Key) -> bytes:
        read: bytes = await self._calls.run(self._inner.get, _inner(keyspace), key)
        return read

    async def stat(self, keyspace: Keyspace, key: _Key) -> Stat:
        stat: Stat = await self._calls.run(self._inner.stat, _inner(keyspace), key)
        return stat

    async def scan_page(self, keyspace: Keyspace, **words: Any) -> Page:
        page: Page = await self._calls.run(self._inner.scan_page, _inner(keyspace), **words)
        return page


class Transaction(_Reading):
    """A transaction, in an event loop. One call at a time may use it."""

    _inner: _tyr.Transaction

    def __init__(self, inner: _tyr.Transaction, calls: _Calls) -> None:
        self._inner, self._calls = inner, calls

    @property
    def is_open(self) -> bool:
        return self._inner.is_open

    def create(self, keyspace: Keyspace, key: _Key) -> Operation:
        return self._inner.create(_inner(keyspace), key)

    def put(self, keyspace: Keyspace, key: _Key, data: Buffer) -> Operation:
        return self._inner.put(_inner(keyspace), key, data)

    def write(self, keyspace: Keyspace, key: _Key, offset: int, data: Buffer) -> Operation:
        return self._inner.write(_inner(keyspace), key, offset, data)

    def append(
        self, keyspace: Keyspace, key: _Key, data: Buffer, *, at: int | None = None
    ) -> Operation:
        return self._inner.append(_inner(keyspace), key, data, at=at)

    def truncate(self, keyspace: Keyspace, key: _Key, size: int) -> Operation:
        return self._inner.truncate(_inner(keyspace), key, size)

    def clear(self, keyspace: Keyspace, key: _Key, offset: int, length: int) -> Operation:
        return self._inner.clear(_inner(keyspace), key, offset, length)

    def delete(self, keyspace: Keyspace, key: _Key) -> Operation:
        return self._inner.delete(_inner(keyspace), key)

    def apply(
        self, keyspace: Keyspace, key: _Key, offset: int, transform: Transform
    ) -> Operation:
        return self._inner.apply(_inner(keyspace), key, offset, transform)

    def compare(
        self, keyspace: Keyspace, key: _Key, offset: int, expected: Buffer
    ) -> Operation:
        return self._inner.compare(_inner(keyspace), key, offset, expected)

    def compare_number(
        self, keyspace: Keyspace, key: _Key, offset: int, relation: Any, type: Any, value: Any
    ) -> Operation:
        inner = _inner(keyspace)
        return self._inner.compare_number(inner, key, offset, relation, type, value)

    def expect_absent(self, keyspace: Keyspace, key: _Key) -> Operation:
        return self._inner.expect_absent(_inner(keyspace), key)

    def expect_present(self, keyspace: Keyspace, key: _Key) -> Operation:
        return self._inner.expect_present(_inner(keyspace), key)

    def expect_version(self, keyspace: Keyspace, key: _Key, version: Version) -> None:
        self._inner.expect_version(_inner(keyspace), key, version)

    async def copy(
        self, source: Keyspace, source_key: _Key, target: Keyspace, target_key: _Key
    ) -> int:
        one, other = _inner(source), _inner(target)
        copied: int = await self._calls.run(self._inner.copy, one, source_key, other, target_key)
        return copied

    async def commit(self) -> Committed:
        committed: Committed = await self._calls.run(self._inner.commit)
        return committed

    def rollback(self) -> None:
        self._inner.rollback()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        class_: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if class_ is not None:
            self.rollback()
        elif self.is_open:
            await self.commit()


class Snapshot(_Reading):
    """A snapshot, in an event loop."""

    _inner: _tyr.Snapshot

    def __init__(self, inner: _tyr.Snapshot, calls: _Calls) -> None:
        self._inner, self._calls = inner, calls

    @property
    def version(self) -> Version:
        return self._inner.version

    async def list(self, keyspace: Keyspace, **words: Any) -> AsyncIterator[Entry]:
        while True:
            page = await self.scan_page(keyspace, **words)
            for entry in page.entries:
                yield entry
            if page.resume is None:
                return
            words = {**words, "start": page.resume, "after": None}

    def release(self) -> None:
        self._inner.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.release()
