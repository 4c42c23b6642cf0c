"""fsspec's own tests on a store, and what is Týr's: transactions over files.

By pytest, with fsspec: `cargo xtask python` has them."""

import pickle

import fsspec
import pytest
from fsspec.tests.abstract import (
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractOpenTests,
    AbstractPipeTests,
    AbstractPutTests,
)

import tyr
from tyr.fsspec import TyrFileSystem


class Fixtures(AbstractFixtures):
    @pytest.fixture(scope="class")
    @classmethod
    def fs(cls, tmp_path_factory):
        fs = TyrFileSystem(str(tmp_path_factory.mktemp("fsspec") / "store"))
        fs.mkdir("space")
        yield fs
        fs.store.close()

    @pytest.fixture
    def fs_path(self):
        return "space/folder"

    @pytest.fixture
    def supports_empty_directories(self):
        return False


class TestCopy(AbstractCopyTests, Fixtures):
    pass


class TestGet(AbstractGetTests, Fixtures):
    pass


class TestOpen(AbstractOpenTests, Fixtures):
    pass


class TestPipe(AbstractPipeTests, Fixtures):
    pass


class TestPut(AbstractPutTests, Fixtures):
    pass


@pytest.fixture
def fs(tmp_path):
    fs = TyrFileSystem(str(tmp_path / "store"))
    fs.mkdir("space")
    yield fs
    fs.store.close()


def test_files_are_blobs_and_folders_are_what_keys_begin_with(fs):
    with fs.open("space/a/one", "wb") as file:
        file.write(b"0123456789")
    with fs.open("space/a/one", "ab") as file:
        assert file.tell() == 10
        file.write(b"abc")
    keyspace = fs.store.keyspace("space")
    assert keyspace.get("a/one") == b"0123456789abc"
    assert fs.ls("space", detail=False) == ["space/a"]
    assert fs.ls("", detail=False) == ["space"]
    assert fs.info("space/a")["type"] == "directory"
    assert fs.info("space/a/one")["size"] == 13
    assert fs.ukey("space/a/one") == str(keyspace.stat("a/one").version)
    assert fs.modified("space/a/one").year >= 2024
    assert fs.cat_file("space/a/one", -4, -1) == b"9ab"
    assert fs.cat_ranges(["space/a/one"] * 2, [0, 11], [2, 99]) == [b"01", b"bc"]
    assert isinstance(fs.cat_ranges(["space/none"], [0], [1])[0], FileNotFoundError)
    with pytest.raises(FileExistsError):
        fs.open("space/a/one", "xb")
    for path in ("space/none", "none/none", "Wrong Name/none"):
        with pytest.raises(FileNotFoundError):
            fs.open(path, "rb")
    with pytest.raises(IsADirectoryError):
        fs.open("space", "wb")
    with pytest.raises(FileExistsError):
        fs.mkdir("space")
    with pytest.raises(OSError, match="there are files in it"):
        fs.rmdir("space")
    fs.mv("space/a", "space/b", recursive=True)
    assert fs.find("space") == ["space/b/one"]
    fs.rm("space/b", recursive=True)
    fs.rmdir("space")
    assert fs.ls("", detail=False) == []


def test_a_file_is_read_at_one_version(fs):
    fs.pipe("space/a", b"old" * 1_000_000)
    with fs.open("space/a", "rb", block_size=1 << 16) as file:
        first = file.read(3)
        fs.pipe("space/a", b"new" * 1_000_000)
        rest = file.read()
    assert first + rest == b"old" * 1_000_000
    with fs.open("space/b", "wb", block_size=1 << 16) as file:
        for _ in range(10):
            file.write(b"x" * 100_000)
            assert not fs.exists("space/b")
    assert fs.info("space/b")["size"] == 1_000_000


def test_a_transaction_takes_effect_at_once_or_not_at_all(fs):
    fs.pipe({"space/a": b"1", "space/gone": b""})
    with fs.transaction:
        fs.pipe("space/a", b"2")
        with fs.open("space/b", "wb") as file:
            file.write(b"3")
        fs.cp_file("space/gone", "space/copied")
        fs.rm_file("space/gone")
        assert fs.cat("space/a") == b"2"
        assert fs.exists("space/b") and not fs.exists("space/gone")
        assert fs.find("space") == ["space/a", "space/gone"]
        assert fs.store.keyspace("space").get("a") == b"1"
    assert fs.cat(["space/a", "space/b"]) == {"space/a": b"2", "space/b": b"3"}
    with pytest.raises(ZeroDivisionError):
        with fs.transaction:
            fs.pipe("space/a", b"9")
            left_open = fs.open("space/c", "wb")
            left_open.write(b"9")
            1 / 0
    assert fs.cat("space/a") == b"2" and not fs.exists("space/c")
    fs.pipe("space/a", b"4")
    assert fs.cat("space/a") == b"4"


def test_a_transaction_that_read_what_has_changed_is_a_conflict(fs):
    fs.pipe("space/a", b"1")
    with pytest.raises(tyr.Conflict):
        with fs.transaction:
            read = fs.cat("space/a")
            fs.store.keyspace("space").put("a", b"2")
            fs.pipe("space/b", read)
    assert fs.cat("space/a") == b"2" and not fs.exists("space/b")


def test_a_snapshot_is_all_files_of_one_moment_listings_too(fs):
    fs.pipe({"space/a": b"1", "space/b": b"1"})
    fs.store.keep("first")
    with fs.snapshot() as then:
        held = then.open("space/a", "rb")
        with fs.transaction:
            fs.pipe({"space/a": b"22", "space/c": b"22"})
            fs.rm_file("space/b")
        assert then.cat(["space/a", "space/b"]) == {"space/a": b"1", "space/b": b"1"}
        assert then.cat_ranges(["space/a", "space/b"], [0, 0], [9, 9]) == [b"1", b"1"]
        assert then.glob("space/*") == ["space/a", "space/b"]
        assert then.info("space/a")["size"] == 1 and not then.exists("space/c")
        assert held.read() == b"1"
        held.close()
        assert then.cat("space/b") == b"1"
        assert then != fs and TyrFileSystem(fs._place) == fs
        for wrong in (
            lambda: then.pipe("space/a", b"3"),
            lambda: then.open("space/d", "wb"),
            lambda: then.rm("space/a"),
            lambda: then.mv("space/a", "space/d"),
            lambda: then.cp_file("space/a", "space/d"),
            lambda: then.mkdir("another"),
            lambda: then.rmdir("space"),
            lambda: then.transaction.__enter__(),
        ):
            with pytest.raises(OSError, match="a snapshot is only read"):
                wrong()
        with pytest.raises(TypeError, match="of one process"):
            pickle.dumps(then)
    with pytest.raises(tyr.InvalidArgument, match="given back"):
        then.cat("space/a")
    assert fs.cat(["space/a", "space/c"]) == {"space/a": b"22", "space/c": b"22"}
    with fs.snapshot(kept="first") as then:
        assert then.find("space") == ["space/a", "space/b"]
        assert then.cat("space/a") == b"1"
    with pytest.raises(tyr.NotFound):
        with fs.snapshot(kept="none"):
            pass


def test_urls_name_keyspaces_or_clusters(fs, monkeypatch):
    assert fs._strip_protocol("tyr://data/a/b") == "data/a/b"
    assert fs._strip_protocol("tyr://one:7070,two:7070/data/a") == "data/a"
    assert fs._get_kwargs_from_urls("tyr://one:7070/data") == {"place": "tyr://one:7070"}
    monkeypatch.setenv("TYR_DATA", fs._place)
    with fsspec.open("tyr://space/by-url", "wb") as file:
        file.write(b"here")
    assert fs.cat("space/by-url") == b"here"
    assert pickle.loads(pickle.dumps(fs)).cat("space/by-url") == b"here"
    monkeypatch.delenv("TYR_DATA")
    with pytest.raises(ValueError, match="TYR_DATA"):
        TyrFileSystem(skip_instance_cache=True)
