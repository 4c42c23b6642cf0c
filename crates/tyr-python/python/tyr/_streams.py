"""Blobs as files of Python, of any length: read at one version, written by one transaction."""

from __future__ import annotations

import io
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from tyr import _tyr
from tyr._errors import SnapshotTooOld

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["BlobReader", "BlobWriter", "open_blob"]

#: Bytes that are read ahead, and that a piece of what is written has.
_PIECE = 4 << 20
#: Bytes that one read asks for at most.
_READ_MAX = 64 << 20


class BlobReader(io.RawIOBase):
    """A blob of one version, as a file that is read. It is its own snapshot."""

    def __init__(self, keyspace: _tyr.Keyspace, key: str | bytes) -> None:
        self._keyspace, self._key, self._at = keyspace, key, 0
        self._snapshot = keyspace.store.snapshot()
        try:
            self._stat = self._snapshot.stat(keyspace, key)
        except BaseException:
            self._snapshot.release()
            raise

    @property
    def size(self) -> int:
        """How long the blob is."""
        return self._stat.size

    @property
    def version(self) -> _tyr.Version:
        """The version that is read."""
        return self._stat.version

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check()
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check()
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        at = offset + (0, self._at, self.size)[whence]
        if at < 0:
            raise ValueError(f"a position is not negative: {at}")
        self._at = at
        return at

    def readinto(self, buffer: Buffer) -> int:
        self._check()
        with memoryview(buffer).cast("B") as room:
            length = max(0, min(len(room), self.size - self._at, _READ_MAX))
            if length:
                room[:length] = self._read(self._at, length)
        self._at += length
        return length

    def _read(self, start: int, length: int) -> bytes:
        try:
            return self._snapshot.read(self._keyspace, self._key, start, length)
        except SnapshotTooOld:
            # It goes on as long as nobody has written the blob since.
            later = self._keyspace.store.snapshot()
            if later.stat(self._keyspace, self._key).version != self.version:
                later.release()
                raise
            self._snapshot.release()
            self._snapshot = later
            return later.read(self._keyspace, self._key, start, length)

    def _check(self) -> None:
        if self.closed:
            raise ValueError("the blob was closed")

    def close(self) -> None:
        if not self.closed:
            self._snapshot.release()
        super().close()


class BlobWriter(io.BufferedIOBase):
    """A blob that is written from its beginning, or its end, to the end: nothing of it is seen
    before `close`, where the transaction commits. Whoever leaves `with` by an exception, or forgets
    it, has written nothing."""

    def __init__(
        self, keyspace: _tyr.Keyspace, key: str | bytes, mode: Literal["wb", "xb", "ab"]
    ) -> None:
        self._keyspace, self._key, self._at = keyspace, key, 0
        self._is_append = mode == "ab"
        self._piece = bytearray()
        self._transaction: _tyr.Transaction | None = keyspace.store.begin()
        if mode == "xb":
            self._transaction.create(keyspace, key)
        elif mode == "wb":
            self._transaction.put(keyspace, key, b"")

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """How many bytes were written here."""
        self._open()
        return self._at + len(self._piece)

    def write(self, data: Buffer) -> int:
        self._open()
        view = memoryview(data)
        with view.cast("B") if view.c_contiguous else memoryview(view.tobytes()) as given:
            for start in range(0, len(given), _PIECE):
                self._piece += given[start : start + _PIECE]
                if len(self._piece) >= _PIECE:
                    self._send()
            return len(given)

    def _send(self) -> None:
        """A piece goes to the transaction, which has it on disk where the store is a folder."""
        transaction, piece = self._open(), bytes(self._piece)
        self._piece.clear()
        if self._is_append:
            transaction.append(self._keyspace, self._key, piece)
        elif piece:
            transaction.write(self._keyspace, self._key, self._at, piece)
        self._at += len(piece)

    def _open(self) -> _tyr.Transaction:
        if self.closed or self._transaction is None:
            raise ValueError("the blob was closed")
        return self._transaction

    def flush(self) -> None:
        """Nothing: what was written is seen when it is closed."""
        if self.closed:
            raise ValueError("the blob was closed")

    def close(self) -> None:
        """Commits it."""
        if self.closed:
            return
        try:
            if self._transaction is not None:
                if self._piece or (self._is_append and self._at == 0):
                    self._send()
                transaction, self._transaction = self._transaction, None
                transaction.commit()
        finally:
            self.discard()

    def discard(self) -> None:
        """Closes it without writing anything."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.rollback()
        self._piece.clear()
        super().close()

    def __exit__(
        self,
        class_: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if class_ is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # Python closes files that are forgotten; half of a blob is not to be committed.
        if not self.closed:
            self.discard()


def open_blob(
    keyspace: _tyr.Keyspace, key: str | bytes, mode: Literal["rb", "wb", "xb", "ab"] = "rb"
) -> io.BufferedReader | BlobWriter:
    """Opens a blob as a file: `rb` reads it, at one version, wherever that is wanted; `wb` makes it
    anew, `xb` makes it if there is none (else `close` raises `tyr.AlreadyExists`), `ab` appends.

        with tyr.open_blob(data, "backup", "wb") as file:
            shutil.copyfileobj(source, file)

    What is written is one transaction, committed by `close`. A store in a folder has it on disk by
    then, so it may be longer than memory; of a cluster it is kept here until it is committed.
    """
    match mode:
        case "rb":
            return io.BufferedReader(BlobReader(keyspace, key), _PIECE)
        case "wb" | "xb" | "ab":
            return BlobWriter(keyspace, key, mode)
        case _:
            raise ValueError(f"a blob is opened with rb, wb, xb or ab, not {mode!r}")
