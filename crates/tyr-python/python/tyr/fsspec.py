"""A file system for fsspec, and with it for pandas, pyarrow, dask and others.

    fs = fsspec.filesystem("tyr", place="tyr://node-1:7070")     # or a folder; default is TYR_DATA
    with fs.transaction:
        frame.to_parquet("tyr://data/2026/11.parquet", filesystem=fs)
        fs.pipe("data/2026/latest", b"11")

A path is a keyspace, `/`, and a key. Folders are not kept: there is one as long as some key begins
with it, and `mkdir` makes keyspaces only. A URL may name a cluster: `tyr://host:port/keyspace/key`.

`with fs.transaction` is one transaction: what is written, copied, moved and removed in it takes
effect at once at its end, or not at all. What is read in it is of one version, with what was written
before, and if somebody else has changed it meanwhile, the end raises `tyr.Conflict`. Listings (`ls`,
`find`, `glob`) show what is committed.

`with fs.snapshot() as then` is a file system of one moment, to be read, listings too, by any number of
threads: for whoever reads several files that belong together.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from fsspec.transaction import Transaction as _FsspecTransaction

import tyr
from tyr._places import place_of_environment, store_at

__all__ = ["TyrFile", "TyrFileSystem", "TyrTransaction"]

#: Bytes that one read answers at most.
_READ_MAX = 64 << 20
#: Blobs that are removed or moved by one transaction.
_TRANSACTION_MAX = 5_000


@contextlib.contextmanager
def _as_os_errors(path: str) -> Iterator[None]:
    """Raises what programs that use files expect."""
    try:
        yield
    except tyr.NotFound as error:
        raise FileNotFoundError(errno.ENOENT, str(error), path) from error
    except tyr.AlreadyExists as error:
        raise FileExistsError(errno.EEXIST, str(error), path) from error


class TyrTransaction(_FsspecTransaction):  # type: ignore[misc]
    """One transaction of Týr's over everything that is done in it."""

    files: Any

    def start(self) -> None:
        self.fs._check_writable()
        super().start()
        self.fs._begun = self.fs.store.begin()

    def complete(self, commit: bool = True) -> None:
        fs = self.fs
        begun, fs._begun = fs._begun, None
        files, self.files = list(self.files), type(self.files)()
        try:
            for file in files:
                # One that was left open would be written by halves.
                if not file.closed:
                    file.close() if commit else file.abandon()
            if commit:
                begun.commit()
        finally:
            begun.rollback()
            super().complete(commit=False)


class TyrFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Blobs of a store as files.

    `place` is a folder or the address of a cluster, by default what TYR_DATA names; other options
    are those of `tyr.open` and `tyr.connect`.
    """

    protocol = "tyr"
    root_marker = ""
    transaction_type = TyrTransaction

    def __init__(self, place: str | None = None, **options: Any) -> None:
        super().__init__(place=place, **options)
        known = {"asynchronous", "loop", "use_listings_cache", "listings_expiry_time"}
        known |= {"max_paths", "skip_instance_cache"}
        self._options = {name: it for name, it in options.items() if name not in known}
        self._place = place_of_environment(place)
        self._begun: tyr.Transaction | None = None
        self._moment: tyr.Snapshot | None = None

    @contextlib.contextmanager
    def snapshot(self, kept: str | None = None) -> Iterator[TyrFileSystem]:
        """This file system at one moment, to be read: now, or that of the kept snapshot of this
        name. Its files cannot be read any more after the block."""
        moment = self.store.snapshot() if kept is None else self.store.kept_snapshot(kept)
        then = type(self)(self._place, skip_instance_cache=True, **self._options)
        then._moment = moment
        # By this fsspec tells file systems apart, and others what they keep of their files.
        then._fs_token_ = f"{self._fs_token}@{moment.version}"
        try:
            yield then
        finally:
            moment.release()

    def __reduce__(self) -> Any:
        if self._moment is not None:
            raise TypeError("a snapshot is of one process: pickle the file system that it is of")
        return super().__reduce__()

    def _check_writable(self) -> None:
        if self._moment is not None:
            raise OSError(errno.EROFS, "a snapshot is only read")

    @property
    def store(self) -> tyr.Store:
        """The store that its files are in."""
        return store_at(self._place, **self._options)

    # Paths.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(it) for it in path]
        path = os.fspath(path)
        if path.startswith("tyr://"):
            path = path[len("tyr://") :]
            address, _, rest = path.partition("/")
            # The name of a keyspace has no colon, and a place has one.
            if ":" in address:
                path = rest
        return path.strip("/") or cls.root_marker

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        address = path.removeprefix("tyr://").partition("/")[0]
        return {"place": f"tyr://{address}"} if ":" in address else {}

    def _split(self, path: str) -> tuple[tyr.Keyspace, str]:
        """The keyspace of a path and the key in it, empty for the keyspace itself."""
        name, _, key = self._strip_protocol(path).partition("/")
        if not name:
            raise IsADirectoryError(errno.EISDIR, "the root has keyspaces only", path)
        with _as_os_errors(path):
            try:
                return self.store.keyspace(name), key
            except tyr.InvalidArgument as error:
                raise tyr.NotFound(str(error)) from error

    def _of_blob(self, path: str) -> tuple[tyr.Keyspace, str]:
        keyspace, key = self._split(path)
        if not key:
            raise IsADirectoryError(errno.EISDIR, "a keyspace is no file", path)
        return keyspace, key

    # Reads: of the transaction or the snapshot, if there is one.

    def _stat(self, keyspace: tyr.Keyspace, key: str) -> tyr.Stat:
        reader = self._begun or self._moment
        return reader.stat(keyspace, key) if reader else keyspace.stat(key)

    def _pages(self, keyspace: tyr.Keyspace, **words: Any) -> Iterator[tyr.Page]:
        """What is committed, in a transaction too: it lists only keys that lie together."""
        while True:
            moment = self._moment
            page = moment.scan_page(keyspace, **words) if moment else keyspace.scan_page(**words)
            yield page
            if page.resume is None:
                return
            words = {**words, "start": page.resume}

    def _file(self, keyspace: tyr.Keyspace, key: str, stat: tyr.Stat) -> dict[str, Any]:
        name = f"{keyspace.name}/{key}"
        at = stat.version.clock_us / 1e6
        return {"name": name, "size": stat.size, "type": "file", "mtime": at} | {
            "version": str(stat.version)
        }

    def _folder(self, name: str) -> dict[str, Any]:
        return {"name": name.rstrip("/"), "size": 0, "type": "directory"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        if not path:
            found = [self._folder(name) for name in self.store.keyspaces()]
            return found if detail else [it["name"] for it in found]
        keyspace, key = self._split(path)
        prefix = key and key + "/"
        found = []
        for page in self._pages(keyspace, prefix=prefix, delimiter="/"):
            for group in page.groups:
                found.append(self._folder(f"{keyspace.name}/{os.fsdecode(group)}"))
            for entry in page.entries:
                name = os.fsdecode(entry.key)
                if entry.stat is not None and name != prefix:
                    found.append(self._file(keyspace, name, entry.stat))
        if key and not found:
            with _as_os_errors(path):
                found = [self._file(keyspace, key, self._stat(keyspace, key))]
        found.sort(key=lambda it: it["name"])
        return found if detail else [it["name"] for it in found]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if not path:
            return self._folder("")
        keyspace, key = self._split(path)
        if not key:
            return self._folder(path)
        with _as_os_errors(path):
            try:
                return self._file(keyspace, key, self._stat(keyspace, key))
            except tyr.NotFound:
                page = next(self._pages(keyspace, prefix=key + "/", limit=1))
                if not page.entries:
                    raise
                return self._folder(path)

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **options: Any,
    ) -> Any:
        path = self._strip_protocol(path)
        if maxdepth is not None or withdirs or not path:
            return super().find(path, maxdepth, withdirs, detail=detail, **options)
        try:
            keyspace, key = self._split(path)
        except FileNotFoundError:
            return {} if detail else []
        found: dict[str, Any] = {}
        if key:
            with contextlib.suppress(tyr.NotFound):
                file = self._file(keyspace, key, self._stat(keyspace, key))
                found[file["name"]] = file
        for page in self._pages(keyspace, prefix=key and key + "/"):
            for entry in page.entries:
                if entry.stat is not None:
                    file = self._file(keyspace, os.fsdecode(entry.key), entry.stat)
                    found[file["name"]] = file
        return found if detail else sorted(found)

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=timezone.utc)

    def ukey(self, path: str) -> str:
        return str(self.info(path)["version"])

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        with self.open(path, "rb", cache_type="none") as file:
            first, last = _bounds(start, end, file.size)
            return bytes(file._fetch_range(first, last))

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **options: Any,
    ) -> list[Any]:
        """All ranges of all files at one moment: by one trip, but in a snapshot."""
        starts = starts if isinstance(starts, list) else [starts] * len(paths)
        ends = ends if isinstance(ends, list) else [ends] * len(paths)
        if len(starts) != len(paths) or len(ends) != len(paths):
            raise ValueError("as many starts and ends are wanted as paths")
        if self._begun or self._moment or any(it is None or it < 0 for it in [*starts, *ends]):
            one_by_one = super().cat_ranges(paths, starts, ends, max_gap, on_error, **options)
            return list(one_by_one)
        wanted, failed = [], {}
        for place, (path, start, end) in enumerate(zip(paths, starts, ends, strict=True)):
            try:
                wanted.append((*self._of_blob(path), start, max(0, end - start)))
            except OSError as error:
                failed[place] = error
        read = iter(self.store.read_many(wanted))
        answers: list[Any] = []
        for place, path in enumerate(paths):
            part = failed[place] if place in failed else next(read)
            if part is None:
                part = FileNotFoundError(errno.ENOENT, "no such blob", path)
            if isinstance(part, OSError) and on_error == "raise":
                raise part
            answers.append(part)
        return answers

    # Writes: gathered in the transaction, if there is one.

    def _transact(self, body: Any) -> Any:
        self._check_writable()
        return body(self._begun) if self._begun else self.store.transact(body)

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **_: Any) -> None:
        keyspace, key = self._of_blob(path)

        def put(t: tyr.Transaction) -> None:
            if mode == "create":
                t.create(keyspace, key)
            t.put(keyspace, key, value)

        with _as_os_errors(path):
            self._transact(put)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if self.isdir(path1):
            return
        (source, source_key), (target, target_key) = self._of_blob(path1), self._of_blob(path2)
        with _as_os_errors(path1):
            self._transact(lambda t: t.copy(source, source_key, target, target_key))

    def mv(
        self,
        path1: str,
        path2: str,
        recursive: bool = False,
        maxdepth: int | None = None,
        **options: Any,
    ) -> None:
        """Moves a file, or all under a folder, in one transaction."""
        if isinstance(path1, list) or isinstance(path2, list) or maxdepth is not None:
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)
            return
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if path1 == path2:
            return
        moves = [(path1, path2)]
        if self.isdir(path1):
            if not recursive:
                raise IsADirectoryError(errno.EISDIR, "say recursive=True to move it", path1)
            moves = [(name, path2 + name[len(path1) :]) for name in self.find(path1)]
        elif self.isdir(path2):
            moves = [(path1, f"{path2}/{path1.rsplit('/', 1)[-1]}")]
        if len(moves) > _TRANSACTION_MAX:
            raise ValueError(f"one transaction moves up to {_TRANSACTION_MAX} files: move parts")
        blobs = [(*self._of_blob(one), *self._of_blob(other)) for one, other in moves]

        def move(t: tyr.Transaction) -> None:
            for source, source_key, target, target_key in blobs:
                t.copy(source, source_key, target, target_key)
                t.delete(source, source_key)

        with _as_os_errors(path1):
            self._transact(move)

    def rm_file(self, path: str) -> None:
        keyspace, key = self._of_blob(path)

        def remove(t: tyr.Transaction) -> None:
            t.expect_present(keyspace, key)
            t.delete(keyspace, key)

        with _as_os_errors(path):
            self._transact(remove)

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files; what is under folders, if `recursive`. Up to 5,000 at once."""
        names = []
        for one in path if isinstance(path, list) else [path]:
            one = self._strip_protocol(one)
            for name in self.expand_path(one, recursive=recursive, maxdepth=maxdepth):
                if self.isfile(name):
                    names.append(name)
                elif not recursive:
                    raise IsADirectoryError(errno.EISDIR, "say recursive=True", name)
        blobs = [self._of_blob(name) for name in dict.fromkeys(names)]
        for first in range(0, len(blobs), _TRANSACTION_MAX):

            def remove(t: tyr.Transaction, first: int = first) -> None:
                for keyspace, key in blobs[first : first + _TRANSACTION_MAX]:
                    t.delete(keyspace, key)

            self._transact(remove)

    def mkdir(self, path: str, create_parents: bool = True, **config: Any) -> None:
        """Makes a keyspace; of what is below one, nothing, for folders are not kept."""
        self._check_writable()
        name, _, key = self._strip_protocol(path).partition("/")
        if name and (not key or create_parents):
            try:
                self.store.create_keyspace(name, **config)
            except tyr.AlreadyExists as error:
                if not key:
                    raise FileExistsError(errno.EEXIST, str(error), path) from error

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        try:
            self.mkdir(path)
        except FileExistsError:
            if not exist_ok:
                raise

    def rmdir(self, path: str) -> None:
        """Drops a keyspace that is empty."""
        self._check_writable()
        keyspace, key = self._split(path)
        if next(self._pages(keyspace, prefix=key and key + "/", limit=1)).entries:
            raise OSError(errno.ENOTEMPTY, "there are files in it", path)
        if not key:
            self.store.drop_keyspace(keyspace.name)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Any = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **options: Any,
    ) -> TyrFile:
        return TyrFile(
            self,
            path,
            mode,
            block_size or "default",
            autocommit=autocommit,
            cache_options=cache_options,
            **options,
        )

    def invalidate_cache(self, path: str | None = None) -> None:
        """Nothing of listings is kept."""


def _bounds(start: int | None, end: int | None, size: int) -> tuple[int, int]:
    first, last, _ = slice(start, end).indices(size)
    return first, max(first, last)


class TyrFile(AbstractBufferedFile):  # type: ignore[misc]
    """A blob as a file: read at one version, written by one transaction."""

    DEFAULT_BLOCK_SIZE = 4 << 20

    size: int

    def __init__(self, fs: TyrFileSystem, path: str, mode: str = "rb", *args: Any, **kw: Any):
        if mode != "rb":
            fs._check_writable()
        self._keyspace, self._key = fs._of_blob(path)
        self._details = None
        self._shared = fs._begun
        self._own: tyr.Transaction | None = None
        self._snapshot: tyr.Snapshot | None = None
        with _as_os_errors(path):
            if mode == "rb":
                if self._shared is None:
                    self._snapshot = fs._moment or fs.store.snapshot()
                self._stat = self._look()
                kw["size"] = self._stat.size
                self._details = fs._file(self._keyspace, self._key, self._stat)
            elif mode == "xb" and fs.exists(path):
                raise FileExistsError(errno.EEXIST, "there is such a blob", path)
            super().__init__(fs, path, mode, *args, **kw)
        if mode == "ab":
            with contextlib.suppress(tyr.NotFound):
                self.loc = fs._stat(self._keyspace, self._key).size

    def _look(self) -> tyr.Stat:
        if self._snapshot is not None:
            return self._snapshot.stat(self._keyspace, self._key)
        return self._within().stat(self._keyspace, self._key)

    def _within(self) -> tyr.Transaction:
        assert self._shared is not None, "what has no snapshot is read in a transaction"
        return self._shared

    _stat: tyr.Stat

    def _read(self, start: int, length: int) -> bytes:
        if self._snapshot is None:
            return self._within().read(self._keyspace, self._key, start, length)
        try:
            return self._snapshot.read(self._keyspace, self._key, start, length)
        except tyr.SnapshotTooOld:
            if self._snapshot is self.fs._moment:
                raise
            # The file goes on as long as nobody has written it since.
            later: tyr.Snapshot = self.fs.store.snapshot()
            if later.stat(self._keyspace, self._key).version != self._stat.version:
                raise
            self._snapshot = later
            return later.read(self._keyspace, self._key, start, length)

    def _fetch_range(self, start: int, end: int) -> bytes:
        end = min(end, self.size)
        pieces = range(start, end, _READ_MAX)
        if len(pieces) <= 1:
            return self._read(start, end - start) if pieces else b""
        return b"".join(self._read(at, min(_READ_MAX, end - at)) for at in pieces)

    @property
    def _writer(self) -> tyr.Transaction:
        writer = self._shared or self._own
        assert writer is not None, "it is there from the first block on"
        return writer

    def _initiate_upload(self) -> None:
        if self._shared is None:
            self._own = self.fs.store.begin()
        if self.mode == "xb":
            self._writer.create(self._keyspace, self._key)
        elif self.mode == "wb":
            self._writer.put(self._keyspace, self._key, b"")

    def _upload_chunk(self, final: bool = False) -> bool:
        block = self.buffer.getbuffer()
        try:
            if self.mode == "ab":
                self._writer.append(self._keyspace, self._key, block)
            elif block:
                self._writer.write(self._keyspace, self._key, self.offset, block)
        finally:
            block.release()
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        if self._own is not None:
            own, self._own = self._own, None
            with _as_os_errors(self.path):
                own.commit()

    def discard(self) -> None:
        if self._own is not None:
            self._own.rollback()
            self._own = None

    def abandon(self) -> None:
        """Closes it without writing what is not written."""
        self.discard()
        self.closed = True

    def close(self) -> None:
        super().close()
        snapshot = self._snapshot
        if snapshot is None or snapshot is self.fs._moment or self.fs.store.is_closed:
            return
        snapshot.release()
