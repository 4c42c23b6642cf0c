"""A store for Zarr.

    store = TyrStore("tyr://node-1:7070", "arrays", "temperature")   # place, keyspace, prefix
    array = zarr.create_array(store, shape=(1000, 1000), chunks=(100, 100), dtype="f8")
    with store.transaction():
        array[:500] = 1.0            # over many chunks, and all of them appear at once
    with store.snapshot() as then:
        zarr.open_array(then)[:500]  # of many chunks, and all of them are of one moment

Each object of Zarr's is a blob. In a transaction what Zarr reads is of one version, with what it has
written; if somebody else has changed it meanwhile, the end raises `tyr.Conflict`. `transact` then
runs the function again. Listings show what is committed. Outside of transactions and snapshots each
object is read as it is when its turn comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, TypeVar

from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.core.buffer.core import default_buffer_prototype

import tyr
from tyr import aio
from tyr._places import store_at

__all__ = ["TyrStore"]

_T = TypeVar("_T")

#: Bytes that one read answers at most.
_READ_MAX = 64 << 20
#: Blobs that one transaction removes.
_TRANSACTION_MAX = 5_000


class _Within:
    """What a store and all its read-only views are used in."""

    def __init__(self) -> None:
        self.begun: tyr.Transaction | None = None
        self.moment: tyr.Snapshot | None = None
        self.is_over = False
        #: The snapshot in each event loop that has read at it.
        self.in_loop: weakref.WeakKeyDictionary[Any, aio.Snapshot] = weakref.WeakKeyDictionary()

    @property
    def reader(self) -> tyr.Transaction | tyr.Snapshot | None:
        """What is read in, if that is not the newest."""
        return self.begun or self.moment

    def moment_here(self) -> aio.Snapshot | None:
        """The snapshot in this event loop."""
        if self.moment is None:
            return None
        loop = asyncio.get_running_loop()
        found = self.in_loop.get(loop)
        if found is None:
            found = self.in_loop[loop] = aio.here_at(self.moment)
        return found

    def release(self) -> None:
        """Gives the snapshot back."""
        self.is_over = True
        for moment in [self.moment, *self.in_loop.values()]:
            if moment is not None:
                moment.release()


class TyrStore(Store):
    """Objects of Zarr's as blobs of a keyspace, under a prefix.

    `place` is a folder or the address of a cluster, `keyspace` is made if there is none, and other
    options are those of `tyr.open` and `tyr.connect`. A process has a place open once, for all.
    """

    supports_writes: bool = True
    supports_deletes: bool = True
    supports_listing: bool = True

    def __init__(
        self,
        place: str,
        keyspace: str,
        prefix: str = "",
        *,
        read_only: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(read_only=read_only)
        prefix = prefix.strip("/")
        self._prefix = prefix and prefix + "/"
        self._place, self._options = str(place), options
        store = store_at(self._place, **options)
        try:
            self._keyspace = store.keyspace(keyspace)
        except tyr.NotFound:
            self._keyspace = store.keyspace(keyspace, create=True)
        self._within = _Within()
        #: The keyspace in each event loop that has used it.
        self._in_loop: weakref.WeakKeyDictionary[Any, aio.Keyspace] = weakref.WeakKeyDictionary()

    @property
    def _begun(self) -> tyr.Transaction | None:
        return self._within.begun

    def _words(self) -> tuple[Any, ...]:
        return (self._place, self._keyspace.name, self._prefix, tuple(self._options.items()))

    def with_read_only(self, read_only: bool = False) -> TyrStore:
        """The same store, in the same transaction: Zarr makes such views for what it only reads."""
        words = (self._place, self._keyspace.name, self._prefix)
        if self._within.moment is not None and not read_only:
            raise ValueError("a snapshot is only read: write to the store that it is of")
        view = type(self)(*words, read_only=read_only, **self._options)
        view._within = self._within
        return view

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TyrStore):
            return False
        mine, others = (self._words(), self.read_only), (other._words(), other.read_only)
        return mine == others and self._within.moment is other._within.moment

    def __hash__(self) -> int:
        return hash(self._words()[:3])

    def __str__(self) -> str:
        name = f"tyr: {self._place} {self._keyspace.name}/{self._prefix}".rstrip("/")
        return name if self._within.moment is None else f"{name} at {self._within.moment.version}"

    def __repr__(self) -> str:
        return f"TyrStore('{self}')"

    def __reduce__(self) -> Any:
        if self._within.moment is not None:
            raise TypeError("a snapshot is of one process: pickle the store that it is of")
        words = (self._place, self._keyspace.name, self._prefix)
        return _made, (type(self), words, self.read_only, self._options)

    # Transactions.

    @contextlib.contextmanager
    def transaction(self) -> Iterator[tyr.Transaction]:
        """Everything that is done with this store in the block takes effect at once."""
        self._check_writable()
        if self._begun is not None:
            raise tyr.InvalidArgument("this store is in a transaction already")
        with self._keyspace.store.begin() as begun:
            self._within.begun = begun
            try:
                yield begun
            finally:
                self._within.begun = None

    def transact(self, body: Callable[[], _T]) -> _T:
        """Runs a function in a transaction; again, when it met a conflict."""
        self._check_writable()
        if self._begun is not None:
            raise tyr.InvalidArgument("this store is in a transaction already")

        def run(begun: tyr.Transaction) -> _T:
            self._within.begun = begun
            try:
                return body()
            finally:
                self._within.begun = None

        return self._keyspace.store.transact(run)

    @contextlib.contextmanager
    def snapshot(self, kept: str | None = None) -> Iterator[TyrStore]:
        """This store at one moment, to be read: now, or that of the kept snapshot of this name.

        What was opened on it cannot be read any more after the block.
        """
        store, then = self._keyspace.store, self.with_read_only(True)
        then._within = _Within()
        then._within.moment = store.snapshot() if kept is None else store.kept_snapshot(kept)
        try:
            yield then
        finally:
            then._within.release()

    # Reads.

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        await self._ensure_open()
        if self._begun is not None:
            return self.get_sync(key, prototype=prototype, byte_range=byte_range)
        try:
            read = await self._read(self._prefix + key, byte_range)
        except tyr.NotFound:
            return None
        return (prototype or default_buffer_prototype()).buffer.from_bytes(read)

    async def _read(self, name: str, byte_range: ByteRequest | None) -> bytes:
        keyspace, moment = self._here(), self._within.moment_here()
        offset, length = _range(byte_range)
        if offset is not None:
            read = (
                await keyspace.read(name, offset, length)
                if moment is None
                else await moment.read(keyspace, name, offset, length)
            )
            if len(read) < _READ_MAX:
                return read
        # What has to know the size, at one moment.
        if moment is not None:
            return await _parts_of(moment, keyspace, name, byte_range)
        with await aio.Store(keyspace._inner.store, keyspace._calls).snapshot() as moment:
            return await _parts_of(moment, keyspace, name, byte_range)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        self._is_open = True
        name, reader = self._prefix + key, self._within.reader
        try:
            offset, length = _range(byte_range)
            if reader is not None:
                size = reader.stat(self._keyspace, name).size
                parts = _parts(byte_range, size)
                read = b"".join(reader.read(self._keyspace, name, *it) for it in parts)
            elif offset is not None and length < _READ_MAX:
                read = self._keyspace.read(name, offset, length)
            else:
                with self._keyspace.store.snapshot() as snapshot:
                    parts = _parts(byte_range, snapshot.stat(self._keyspace, name).size)
                    read = b"".join(snapshot.read(self._keyspace, name, *it) for it in parts)
        except tyr.NotFound:
            return None
        return (prototype or default_buffer_prototype()).buffer.from_bytes(read)

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        wanted = [self.get(key, prototype, byte_range) for key, byte_range in key_ranges]
        return list(await asyncio.gather(*wanted))

    async def exists(self, key: str) -> bool:
        await self._ensure_open()
        try:
            await self._stat(key)
        except tyr.NotFound:
            return False
        except tyr.InvalidArgument:
            if self._within.is_over:
                raise
            return False
        return True

    async def _stat(self, key: str) -> tyr.Stat:
        name, keyspace, moment = self._prefix + key, self._here(), self._within.moment_here()
        if self._begun is not None:
            return self._begun.stat(self._keyspace, name)
        return await (keyspace.stat(name) if moment is None else moment.stat(keyspace, name))

    async def getsize(self, key: str) -> int:
        try:
            return (await self._stat(key)).size
        except tyr.NotFound as error:
            raise FileNotFoundError(key) from error

    # Writes.

    async def set(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await self._ensure_open()
        data = _data(value)
        if self._begun is not None:
            self._begun.put(self._keyspace, self._prefix + key, data)
        else:
            await self._here().put(self._prefix + key, data)

    def set_sync(self, key: str, value: Buffer) -> None:
        self._check_writable()
        self._is_open = True
        if self._begun is not None:
            self._begun.put(self._keyspace, self._prefix + key, _data(value))
        else:
            self._keyspace.put(self._prefix + key, _data(value))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await self._ensure_open()
        name, data = self._prefix + key, _data(value)
        if self._begun is not None:
            if not await self.exists(key):
                self._begun.put(self._keyspace, name, data)
            return
        begun = self._keyspace.store.begin()
        begun.create(self._keyspace, name)
        begun.put(self._keyspace, name, data)
        with contextlib.suppress(tyr.AlreadyExists):
            await asyncio.to_thread(begun.commit)

    async def delete(self, key: str) -> None:
        self._check_writable()
        await self._ensure_open()
        if self._begun is not None:
            self._begun.delete(self._keyspace, self._prefix + key)
        else:
            await self._here().delete(self._prefix + key)

    def delete_sync(self, key: str) -> None:
        self._check_writable()
        self._is_open = True
        if self._begun is not None:
            self._begun.delete(self._keyspace, self._prefix + key)
        else:
            self._keyspace.delete(self._prefix + key)

    async def delete_dir(self, prefix: str) -> None:
        """Removes all under a prefix, up to 5,000 at once."""
        self._check_writable()
        await self._ensure_open()
        prefix = prefix and prefix.rstrip("/") + "/"
        keys = [key async for key in self.list_prefix(prefix)]
        for first in range(0, len(keys), _TRANSACTION_MAX):
            begun = self._begun or self._keyspace.store.begin()
            for key in keys[first : first + _TRANSACTION_MAX]:
                begun.delete(self._keyspace, self._prefix + key)
            if self._begun is None:
                await asyncio.to_thread(begun.commit)

    # Listings.

    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        words: dict[str, Any] = {"prefix": self._prefix + prefix, "keys_only": True}
        async for page in self._pages(words):
            for entry in page.entries:
                yield entry.key.decode()[len(self._prefix) :]

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        below = self._prefix + (prefix.rstrip("/") and prefix.rstrip("/") + "/")
        words: dict[str, Any] = {"prefix": below, "delimiter": "/", "keys_only": True}
        async for page in self._pages(words):
            for group in page.groups:
                yield group.decode()[len(below) :].rstrip("/")
            for entry in page.entries:
                yield entry.key.decode()[len(below) :]

    async def _pages(self, words: dict[str, Any]) -> AsyncIterator[tyr.Page]:
        while True:
            keyspace, moment = self._here(), self._within.moment_here()
            page = await (
                keyspace.scan_page(**words)
                if moment is None
                else moment.scan_page(keyspace, **words)
            )
            yield page
            if page.resume is None:
                return
            words = {**words, "start": page.resume}

    def _here(self) -> aio.Keyspace:
        """The keyspace in this event loop."""
        loop = asyncio.get_running_loop()
        found = self._in_loop.get(loop)
        if found is None:
            found = self._in_loop[loop] = aio.here(self._keyspace)
        return found


def _made(
    cls: type[TyrStore], words: tuple[str, ...], read_only: bool, options: dict[str, Any]
) -> TyrStore:
    return cls(*words, read_only=read_only, **options)


async def _parts_of(
    moment: aio.Snapshot, keyspace: aio.Keyspace, name: str, byte_range: ByteRequest | None
) -> bytes:
    size = (await moment.stat(keyspace, name)).size
    pieces = [await moment.read(keyspace, name, *it) for it in _parts(byte_range, size)]
    return b"".join(pieces)


def _data(value: Buffer) -> Any:
    if not isinstance(value, Buffer):
        raise TypeError(f"a Buffer of Zarr's is wanted, not {type(value).__name__}")
    return value.as_numpy_array()


def _range(byte_range: ByteRequest | None) -> tuple[int | None, int]:
    """Offset and length; no offset, where the size has to be known for it."""
    match byte_range:
        case None:
            return 0, _READ_MAX
        case RangeByteRequest(start, end):
            return start, min(max(0, end - start), _READ_MAX)
        case OffsetByteRequest(offset):
            return offset, _READ_MAX
        case SuffixByteRequest():
            return None, 0
    raise ValueError(f"Unexpected byte_range, got {byte_range}.")


def _parts(byte_range: ByteRequest | None, size: int) -> list[tuple[int, int]]:
    """What is to be read of a blob of this size, in parts of up to 64 MiB."""
    match byte_range:
        case None:
            first, last = 0, size
        case RangeByteRequest(start, end):
            first, last = start, min(end, size)
        case OffsetByteRequest(offset):
            first, last = offset, size
        case SuffixByteRequest(suffix):
            first, last = max(0, size - suffix), size
        case _:
            raise ValueError(f"Unexpected byte_range, got {byte_range}.")
    return [(at, min(_READ_MAX, last - at)) for at in range(first, last, _READ_MAX)]
