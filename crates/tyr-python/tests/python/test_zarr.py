"""Zarr's own tests of stores, and what is Týr's: regions over many chunks that appear at once.

By pytest, with zarr: `cargo xtask python` has them."""

import pickle

import numpy
import pytest
import zarr
from zarr.abc.store import SuffixByteRequest
from zarr.core.buffer import cpu
from zarr.testing.store import StoreTests

import tyr
from tyr.zarr import TyrStore


class TestStore(StoreTests[TyrStore, cpu.Buffer]):
    store_cls = TyrStore
    buffer_cls = cpu.Buffer

    async def set(self, store, key, value):
        store._keyspace.put("root/" + key, value.to_bytes())

    async def get(self, store, key):
        return self.buffer_cls.from_bytes(store._keyspace.get("root/" + key))

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        return {"place": str(tmp_path / "store"), "keyspace": "arrays", "prefix": "root"}

    def test_store_repr(self, store):
        assert repr(store) == f"TyrStore('tyr: {store._place} arrays/root')"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


@pytest.fixture
def store(tmp_path):
    return TyrStore(str(tmp_path / "store"), "arrays")


def array_in(store):
    words = {"shape": (100, 100), "chunks": (10, 10), "dtype": "i4"}
    return zarr.create_array(store, **words)


def test_a_region_over_many_chunks_appears_at_once(store):
    array = array_in(store)
    with store.transaction():
        array[5:95, 5:95] = 7
        assert int(array[50, 50]) == 7
        assert not list(store._keyspace.list(prefix="c/"))
    assert int(numpy.sum(array[:])) == 7 * 90 * 90
    with pytest.raises(ZeroDivisionError):
        with store.transaction():
            array[:] = 1
            1 / 0
    assert int(numpy.sum(array[:])) == 7 * 90 * 90


def test_what_is_opened_to_be_read_is_in_the_transaction(store):
    array_in(store)[:] = 1
    with store.transaction():
        zarr.open_array(store)[:] = 2
        read = zarr.open_array(store, mode="r")
        assert read.read_only and int(read[50, 50]) == 2
        assert int(zarr.open_array(TyrStore(store._place, "arrays"), mode="r")[50, 50]) == 1
    assert int(read[50, 50]) == 2
    with pytest.raises(tyr.Conflict):
        with store.transaction():
            old = read[0, 0]
            zarr.open_array(TyrStore(store._place, "arrays"))[0, 0] = 5
            zarr.open_array(store)[20, 20] = old


def test_a_snapshot_is_all_chunks_of_one_moment(store):
    array_in(store)[:] = 1
    store._keyspace.store.keep("ones")
    with store.snapshot() as then:
        array = zarr.open_array(then, mode="r")
        assert int(array[0, 0]) == 1
        zarr.open_array(store)[:] = 2
        assert int(numpy.sum(array[:])) == 100 * 100
        assert int(numpy.sum(zarr.open_array(then, mode="r")[50:])) == 100 * 50
    with pytest.raises(tyr.InvalidArgument, match="given back"):
        array[:]
    assert int(numpy.sum(zarr.open_array(store)[:])) == 2 * 100 * 100
    with store.snapshot(kept="ones") as then:
        assert int(numpy.sum(zarr.open_array(then, mode="r")[:])) == 100 * 100


async def test_a_snapshot_tells_and_lists_what_there_was_and_is_not_written(store):
    await store.set("a/b", cpu.Buffer.from_bytes(b"old"))
    with store.snapshot() as then:
        await store.set("a/b", cpu.Buffer.from_bytes(b"newer"))
        await store.set("a/c", cpu.Buffer.from_bytes(b"new"))
        assert [key async for key in then.list()] == ["a/b"]
        assert [key async for key in then.list_dir("a")] == ["b"]
        assert await then.getsize("a/b") == 3 and await store.getsize("a/b") == 5
        assert await then.exists("a/b") and not await then.exists("a/c")
        assert (await then.get("a/b")).to_bytes() == b"old"
        assert (await then.get("a/b", byte_range=SuffixByteRequest(2))).to_bytes() == b"ld"
        assert then.get_sync("a/b").to_bytes() == b"old" and then.get_sync("a/c") is None
        assert then.with_read_only(True) == then and then != store.with_read_only(True)
        with pytest.raises(ValueError):
            await then.set("a/b", cpu.Buffer.from_bytes(b"newest"))
        for wrong in (lambda: then.with_read_only(False), lambda: then.transact(list)):
            with pytest.raises(ValueError, match="read"):
                wrong()
        with pytest.raises(TypeError, match="of one process"):
            pickle.dumps(then)
    with pytest.raises(tyr.InvalidArgument, match="given back"):
        await then.exists("a/b")


def test_two_writers_of_one_region_are_a_conflict_and_transact_runs_again(store):
    array, runs = array_in(store), []
    array[:] = 1

    def add():
        runs.append(None)
        old = array[0:20, 0:20]
        if len(runs) == 1:
            other = TyrStore(store._place, "arrays")
            zarr.open_array(other)[0:5, 0:5] = 10
        array[0:20, 0:20] = old + 1

    store.transact(add)
    assert len(runs) == 2
    assert int(numpy.sum(array[0:20, 0:20])) == 25 * 11 + 375 * 2
    with pytest.raises(tyr.Conflict):
        with store.transaction():
            old = array[0:20, 0:20]
            store._keyspace.delete("c/0/0")
            array[0:20, 0:20] = old


def test_objects_of_more_than_one_read_come_back(store):
    large = numpy.arange(9 << 20, dtype="i8")
    array = zarr.create_array(store, data=large, chunks=large.shape, compressors=None, name="big")
    assert numpy.array_equal(array[:], large)
    assert int(array[5]) == 5
