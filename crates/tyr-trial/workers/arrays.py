"""A program of users on arrays and tables: `arrays.py ROLE PLACE NUMBER [WITHOUT...]`.

ROLE is `fields`, which writes regions of an array through xarray and reads all of it; `tables`,
which replaces the Parquet files of a table through pyarrow; or `queries`, which asks duckdb what is
in them. It is told `make`, if it is to make what is read, and `go`. What it does and sees then
it says in lines of JSON, of which src/arrays/told.rs has the words, until it is told one line
more. What is right it does not know.

All cells that are written at once get one stamp, a number that nobody else writes. WITHOUT says
what is left out: `transactions`, so that what is written comes piece by piece, or `snapshots`, so
that what is read is.
"""

import contextlib
import faulthandler
import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import tyr

#: The array: regions are of so many rows, chunks of fewer, so that neighbours share some.
REGIONS, ROWS, COLUMNS, CHUNK = 4, 24, 96, 16
#: A table has up to so many files, and each so many rows.
FILES_MAX, FILE_ROWS = 5, 500
#: Writers and readers wait so long after each thing they do, on average.
PACE_S = 0.05
#: No step takes so long: a transaction is tried 64 times, each for some seconds at most.
STUCK_S = 300
#: What is no error of ours: nodes are away or slow, or others were faster.
PASSING = (tyr.Unavailable, tyr.TimedOut, tyr.Conflict, tyr.SnapshotTooOld)
#: And that of which whoever wrote knows that it took no effect.
REFUSED = (tyr.Unavailable, tyr.Conflict, tyr.SnapshotTooOld)


def say(what: str, **words: Any) -> None:
    print(json.dumps({"is": what, **words}), flush=True)


def passing(error: BaseException) -> tyr.Error | None:
    """The error of ours that is behind one of a library's, if that may pass."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, PASSING):
            return seen
        seen = seen.__cause__
    if "duckdb" in type(error).__module__:
        # It tells an exception of Python's by its words alone.
        for kind in PASSING:
            if f"{kind.__name__}: " in str(error):
                return kind(str(error))
    return None


class Program:
    """What all roles do: something again and again, of which each time is told."""

    def __init__(self, number: int, without: list[str]) -> None:
        self.random = random.Random(number)
        self.stamps = itertools.count(number, 16)
        self.has_transactions = "transactions" not in without
        self.has_snapshots = "snapshots" not in without

    def make(self) -> None:
        """Makes what is read, with the stamp 0."""
        raise NotImplementedError

    def step(self) -> None:
        """Does what is done again and again."""
        raise NotImplementedError

    def write(self, of: str, body: Callable[[int], None]) -> None:
        stamp, begun = next(self.stamps), time.monotonic_ns()
        say("begins", of=of, stamp=stamp, at=begun)
        try:
            body(stamp)
        except Exception as error:
            known = passing(error)
            if known is None:
                raise
            end = "refused" if isinstance(known, REFUSED) else "unknown"
            say(end, of=of, stamp=stamp, at=time.monotonic_ns(), error=type(known).__name__)
        else:
            say("written", of=of, stamp=stamp, at=time.monotonic_ns())

    def read(self, body: Callable[[], Iterator[dict[str, Any]]]) -> None:
        begun = time.monotonic_ns()
        try:
            seen = list(body())
        except Exception as error:
            known = passing(error) or error
            # Of files that go while they are read some are not found.
            if self.has_snapshots and not isinstance(known, PASSING):
                raise
            say("unread", at=time.monotonic_ns(), error=type(known).__name__)
            return
        at = time.monotonic_ns()
        for words in seen:
            say("read", begun=begun, at=at, **words)

    def rest(self) -> None:
        time.sleep(self.random.uniform(0, 2 * PACE_S))


class Fields(Program):
    def __init__(self, place: str, number: int, without: list[str]) -> None:
        import numpy
        import xarray

        from tyr.zarr import TyrStore

        super().__init__(number, without)
        self.numpy, self.xarray = numpy, xarray
        self.store = TyrStore(place, "fields", "weather")

    def dataset(self, stamp: int, rows: int) -> Any:
        cells = self.numpy.full((rows, COLUMNS), stamp, dtype="i8")
        variables = {"cells": (("row", "column"), cells), "rows": (("row",), cells[:, 0])}
        return self.xarray.Dataset(variables)

    def make(self) -> None:
        encoding = {"cells": {"chunks": (CHUNK, CHUNK)}, "rows": {"chunks": (CHUNK,)}}
        everything = self.dataset(0, REGIONS * ROWS)
        everything.to_zarr(self.store, mode="w", encoding=encoding, consolidated=False)

    def step(self) -> None:
        region = self.random.randrange(REGIONS)
        self.write(f"region-{region}", lambda stamp: self.write_region(region, stamp))
        self.rest()
        self.read(self.regions)

    def write_region(self, region: int, stamp: int) -> None:
        rows = {"row": slice(region * ROWS, (region + 1) * ROWS)}

        def write() -> None:
            self.dataset(stamp, ROWS).to_zarr(self.store, region=rows, consolidated=False)

        if self.has_transactions:
            self.store.transact(write)
        else:
            write()

    def regions(self) -> Iterator[dict[str, Any]]:
        view = self.store.snapshot() if self.has_snapshots else contextlib.nullcontext(self.store)
        with view as store, self.xarray.open_zarr(store, chunks=None, consolidated=False) as found:
            found.load()
        for region in range(REGIONS):
            part = found.isel(row=slice(region * ROWS, (region + 1) * ROWS))
            stamps = self.numpy.unique(part.cells.values).tolist()
            stamps += self.numpy.unique(part.rows.values).tolist()
            yield {"of": f"region-{region}", "stamps": sorted(set(stamps))}


class Tables(Program):
    def __init__(self, place: str, number: int, without: list[str]) -> None:
        import pyarrow
        import pyarrow.parquet

        from tyr.fsspec import TyrFileSystem

        super().__init__(number, without)
        self.arrow = pyarrow
        self.fs = TyrFileSystem(place)

    def make(self) -> None:
        self.fs.makedirs("tables", exist_ok=True)
        self.write_table(0)

    def step(self) -> None:
        self.write("table", self.write_table)
        self.rest()

    def write_table(self, stamp: int) -> None:
        """A table of several files, now more, now fewer, and a file with what is in them."""
        files = self.random.randint(1, FILES_MAX)
        numbers = [[self.random.randrange(1000) for _ in range(FILE_ROWS)] for _ in range(files)]
        with self.fs.transaction if self.has_transactions else contextlib.nullcontext():
            for file, values in enumerate(numbers):
                self.put(f"tables/parts/{file}.parquet", {"value": values}, stamp)
            for file in range(files, FILES_MAX):
                if self.fs.exists(f"tables/parts/{file}.parquet"):
                    self.fs.rm_file(f"tables/parts/{file}.parquet")
            total = {"total": [sum(map(sum, numbers))], "files": [files]}
            self.put("tables/total.parquet", total, stamp)

    def put(self, path: str, columns: dict[str, list[int]], stamp: int) -> None:
        rows = len(next(iter(columns.values())))
        table = self.arrow.table({**columns, "stamp": [stamp] * rows})
        self.arrow.parquet.write_table(table, path, filesystem=self.fs)


class Queries(Program):
    """It makes nothing."""

    ASKED = """
        SELECT low, high, sum, rows, total, files, stamp FROM
            (SELECT min(stamp) AS low, max(stamp) AS high, sum(value)::BIGINT AS sum,
                count(*) AS rows FROM 'tyr://tables/parts/*.parquet'),
            'tyr://tables/total.parquet'
    """

    def __init__(self, place: str, number: int, without: list[str]) -> None:
        import duckdb

        from tyr.fsspec import TyrFileSystem

        super().__init__(number, without)
        self.fs = TyrFileSystem(place)
        self.duckdb = duckdb.connect()

    def step(self) -> None:
        self.read(self.ask)
        self.rest()

    def ask(self) -> Iterator[dict[str, Any]]:
        view = self.fs.snapshot() if self.has_snapshots else contextlib.nullcontext(self.fs)
        with view as fs:
            self.duckdb.register_filesystem(fs)
            try:
                found = self.duckdb.execute(self.ASKED).fetchall()
            finally:
                self.duckdb.unregister_filesystem("tyr")
        for low, high, total, rows, expected, files, stamp in found:
            yield {
                "of": "table",
                "stamps": sorted({low, high, stamp}),
                "sums": [[total, expected], [rows, files * FILE_ROWS]],
            }


def main(role: str, place: str, number: str, *without: str) -> None:
    roles: dict[str, Any] = {"fields": Fields, "tables": Tables, "queries": Queries}
    program: Program = roles[role](place, int(number), list(without))
    if sys.stdin.readline() == "make\n":
        program.make()
        say("made")
        sys.stdin.readline()
    has_ended = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        has_ended.set()

    threading.Thread(target=listen, daemon=True).start()
    while not has_ended.is_set():
        # What stands still says where, and ends.
        faulthandler.dump_traceback_later(STUCK_S, exit=True)
        program.step()
    say("ended")


main(*sys.argv[1:])
