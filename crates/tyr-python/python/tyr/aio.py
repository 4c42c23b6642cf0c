"""Týr for asyncio: the same names, awaited.

    async with tyr.aio.connect("tyr://node-1:7070") as store:
        data = await store.keyspace("data")
        await data.append("log", b"hello")

A store belongs to the event loop that it was opened in. Calls are started at once, in the order in
which they are awaited, and answered through a descriptor that the loop watches: no thread waits.
What memory can answer is there without a trip through the loop.

Cancelling a task takes back what it was reading. What was to change something may take effect all
the same; a transaction that was not committed does not. A lock or a lease that a task was waiting
for is given back if it was got, and what a watch told is told again.
"""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar


from tyr import _tyr
from tyr._aio_held import Lease, Lock, Watch, key_watch, lease, lock
from tyr._aio_metadata import Metadata, MetadataWatch, Presence
from tyr._aio_stream import Pieces, stream
from tyr._calls import Awaited, Calls
from tyr._errors import Conflict, SnapshotTooOld
from tyr._tyr import (
    Committed,
    Entry,
    LockInfo,
    Notified,
    Operation,
    Page,
    Stat,
    Stretches,
    Transform,
    Version,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "Keyspace",
    "Lease",
    "Lock",
    "Metadata",
    "MetadataWatch",
    "Presence",
    "Snapshot",
    "Store",
    "Transaction",
    "Watch",
    "connect",
    "here",
    "here_at",
    "open",
]

_Key = str | bytes
_P = ParamSpec("_P")
_T = TypeVar("_T")

#: How often `Store.transact` runs a function that meets conflicts.
_ATTEMPTS_MAX = 64


async def _open(begin: Callable[..., Any], place: Any, options: dict[str, Any]) -> Store:
    calls = Calls()
    try:
        inner = await calls.run(begin, place, **options, queue=calls.queue)
    except BaseException:
        await calls.close()
        raise
    return Store(inner, calls)


def open(path: Any, **options: Any) -> Awaited[Store]:
    """Opens the store in a folder, with the options of `tyr.open`."""
    return Awaited(partial(_open, _tyr.open, path, options))


def connect(address: str, **options: Any) -> Awaited[Store]:
    """Connects to a cluster, with the options of `tyr.connect`."""
    return Awaited(partial(_open, _tyr.connect, address, options))


#: The calls of each event loop that `here` and `here_at` were used in.
_of_loop: weakref.WeakKeyDictionary[Any, Calls] = weakref.WeakKeyDictionary()


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


def _calls_here() -> Calls:
    loop = asyncio.get_running_loop()
    calls = _of_loop.get(loop)
    if calls is None:
        calls = _of_loop[loop] = Calls()
    return calls


class Store:
    """A store, in an event loop."""

    def __init__(self, inner: _tyr.Store, calls: Calls) -> None:
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

    @property
    def metadata(self) -> Metadata:
        """The service metadata."""
        return Metadata(self._inner.metadata, self._calls)

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

    def __init__(self, inner: _tyr.Keyspace, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    @property
    def name(self) -> str:
        return self._inner.name

    async def create(self, key: _Key) -> None:
        await self._calls.run(self._inner.create, key)

    async def put(self, key: _Key, data: Buffer) -> None:
        await self._calls.run(self._inner.put, key, data)

    async def put_stream(self, key: _Key, pieces: Pieces) -> int:
        """Puts what comes of `async for`, or of `for`, in one transaction; how many bytes."""
        return await stream(self._calls, partial(self._inner.put_stream, key), pieces)

    async def write(self, key: _Key, offset: int, data: Buffer) -> None:
        await self._calls.run(self._inner.write, key, offset, data)

    async def write_stream(self, key: _Key, offset: int, pieces: Pieces) -> int:
        """Writes what comes, like `put_stream`."""
        return await stream(self._calls, partial(self._inner.write_stream, key, offset), pieces)

    async def append_stream(self, key: _Key, pieces: Pieces) -> int:
        """Appends what comes, like `put_stream`; where it is."""
        return await stream(self._calls, partial(self._inner.append_stream, key), pieces)

    async def append(self, key: _Key, data: Buffer, *, at: int | None = None) -> int:
        offset: int = await self._calls.run(self._inner.append, key, data, at=at)
        return offset

    async def read(self, key: _Key, offset: int, length: int) -> bytes:
        read: bytes = await self._calls.run(self._inner.read, key, offset, length)
        return read

    async def read_with_stat(self, key: _Key, offset: int, length: int) -> tuple[bytes, Stat]:
        read: tuple[bytes, Stat] = await self._calls.run(
            self._inner.read_with_stat, key, offset, length
        )
        return read

    async def get(self, key: _Key) -> bytes:
        read: bytes = await self._calls.run(self._inner.get, key)
        return read

    async def stat(self, key: _Key) -> Stat:
        stat: Stat = await self._calls.run(self._inner.stat, key)
        return stat

    async def stretches(
        self, key: _Key, offset: int | None = None, length: int | None = None
    ) -> Stretches:
        page: Stretches = await self._calls.run(self._inner.stretches, key, offset, length)
        return page

    async def allocated(self, key: _Key) -> int:
        length: int = await self._calls.run(self._inner.allocated, key)
        return length

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

    def lock(self, key: _Key, **options: Any) -> Awaited[Lock]:
        """A lock, with the options of `tyr.Keyspace.lock`: await it, or use it in `async with`."""
        return Awaited(partial(lock, self._calls, self._inner.lock, key, options))

    def lease(self, key: _Key, **options: Any) -> Awaited[Lease]:
        """A lease, with the options of `tyr.Keyspace.lease`, like `lock`."""
        return Awaited(partial(lease, self._calls, self._inner.lease, key, options))

    def lease_group(self, group: _Key, **options: Any) -> Awaited[Lease]:
        """A lease of all keys of a group, like `lock`."""
        return Awaited(partial(lease, self._calls, self._inner.lease_group, group, options))

    async def inspect_lock(self, key: _Key) -> LockInfo:
        info: LockInfo = await self._calls.run(self._inner.inspect_lock, key)
        return info

    def watch(self, key: _Key) -> Awaited[Watch]:
        """A watch of a key: await it, or use it in `async with`."""
        return Awaited(partial(key_watch, self._calls, self._inner.watch, key))

    def watch_prefix(self, prefix: _Key = b"") -> Awaited[Watch]:
        """A watch of all keys that begin so, like `watch`."""
        return Awaited(partial(key_watch, self._calls, self._inner.watch_prefix, prefix))

    async def notify(
        self, key: _Key, payload: Buffer = b"", *, timeout: float = 10.0
    ) -> Notified:
        call = partial(self._inner.notify, key, payload, timeout=timeout)
        notified: Notified = await self._calls.run(call)
        return notified

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
    _calls: Calls

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

    def __init__(self, inner: _tyr.Transaction, calls: Calls) -> None:
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

    def assume(
        self, keyspace: Keyspace, key: _Key, offset: int, length: int, version: Version
    ) -> None:
        self._inner.assume(_inner(keyspace), key, offset, length, version)

    def fence(self, lock: Lock) -> Operation:
        if not isinstance(lock, Lock):
            raise TypeError(f"a lock of tyr.aio is wanted, not {type(lock).__name__}")
        return self._inner.fence(lock._inner)

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

    def __init__(self, inner: _tyr.Snapshot, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    @property
    def version(self) -> Version:
        return self._inner.version

    async def stretches(
        self,
        keyspace: Keyspace,
        key: _Key,
        offset: int | None = None,
        length: int | None = None,
    ) -> Stretches:
        call = partial(self._inner.stretches, _inner(keyspace), key, offset, length)
        page: Stretches = await self._calls.run(call)
        return page

    async def allocated(self, keyspace: Keyspace, key: _Key) -> int:
        length: int = await self._calls.run(self._inner.allocated, _inner(keyspace), key)
        return length

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
