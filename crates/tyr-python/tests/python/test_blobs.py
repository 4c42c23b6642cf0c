"""Single operations, snapshots and listings answer as the public crate does."""

import array
import unittest

import tyr
from support import StoreCase, on_each_store


class Blobs(StoreCase):
    def test_bytes_are_written_and_read_anywhere(self):
        data = self.data
        data.put("greeting", b"hello")
        self.assertEqual(data.append("greeting", b" world"), 5)
        data.write("greeting", 20, b"!")
        self.assertEqual(data.read("greeting", 6, 5), b"world")
        self.assertEqual(data.get(b"greeting"), b"hello world" + bytes(9) + b"!")
        stat = data.stat("greeting")
        self.assertEqual(stat.size, 21)
        data.truncate("greeting", 5)
        self.assertGreater(data.stat("greeting").version, stat.version)
        data.clear("greeting", 1, 2)
        self.assertEqual(data.get("greeting"), b"h\0\0lo")
        self.assertTrue(data.delete("greeting"))
        self.assertFalse(data.delete("greeting"))

    def test_large_payloads_of_every_kind_of_buffer_come_back(self):
        large = bytes(range(256)) * 8192
        numbers = array.array("d", [1.5, 2.5] * 4096)
        for given in (large, bytearray(large), memoryview(large)[::2], numbers):
            self.data.put("large", given)
            self.assertEqual(self.data.get("large"), memoryview(given).tobytes())

    def test_reads_go_into_memory_of_the_program(self):
        self.data.put("a", b"0123456789")
        room = bytearray(b"." * 12)
        self.assertEqual(self.data.read_into("a", 2, room), 8)
        self.assertEqual(room, b"23456789....")
        doubles = array.array("d", [0.0, 0.0])
        self.data.put("d", array.array("d", [1.5, -2.0]))
        self.assertEqual(self.data.read_into("d", 0, doubles), 16)
        self.assertEqual(list(doubles), [1.5, -2.0])
        self.assertEqual(self.data.read_into("d", 0, bytearray()), 0)

    def test_bytes_come_with_what_the_blob_was_like_then(self):
        self.data.put("a", b"0123456789")
        read, stat = self.data.read_with_stat("a", 7, 9)
        self.assertEqual((read, stat.size), (b"789", 10))
        self.assertEqual(stat.version, self.data.stat("a").version)
        with self.assertRaises(tyr.NotFound):
            self.data.read_with_stat("b", 0, 1)

    def test_it_is_told_where_holes_are(self):
        mib = 1 << 20
        self.data.write("disk", mib, bytes(3 * mib))
        self.data.write("disk", 7 * mib, b"end")
        page = self.data.stretches("disk")
        self.assertEqual(page.written, [(mib, 4 * mib), (7 * mib, 7 * mib + 3)])
        self.assertIsNone(page.resume)
        self.assertEqual(self.data.allocated("disk"), 3 * mib + 3)
        with self.store.snapshot() as before:
            self.data.clear("disk", 2 * mib, mib)
            written = [(mib, 2 * mib), (3 * mib, 4 * mib)]
            self.assertEqual(self.data.stretches("disk", 0, 6 * mib).written, written)
            self.assertEqual(self.data.stretches("disk", 5 * mib, mib).written, [])
            self.assertEqual(before.stretches(self.data, "disk", length=6 * mib).written,
                             [(mib, 4 * mib)])
            self.assertEqual(before.allocated(self.data, "disk"), 3 * mib + 3)
        with self.assertRaises(tyr.NotFound):
            self.data.stretches("none")
        with self.assertRaisesRegex(tyr.InvalidArgument, "length"):
            self.data.stretches("disk", -1)

    def test_numbers_are_changed_in_place(self):
        add = tyr.Transform.add("u64", 2)
        self.assertEqual(self.data.apply("n", 0, add), 2)
        self.assertEqual(self.data.apply("n", 0, add), 4)
        self.assertEqual(self.data.apply("n", 8, tyr.Transform("max", "f32", 1.5)), 1.5)
        self.assertEqual(self.data.apply("n", 0, tyr.Transform.swap("i8", -3)), -3)
        self.assertEqual(self.data.read("n", 0, 2), b"\xfd\0")

    def test_conditions_refuse_what_is_not_expected(self):
        self.assertEqual(self.data.append("log", b"first", at=0), 0)
        with self.assertRaises(tyr.Conflict) as raised:
            self.data.append("log", b"late", at=0)
        self.assertEqual(raised.exception.key, b"log")
        self.data.compare_and_swap("log", 0, b"first", b"FIRST")
        with self.assertRaises(tyr.Conflict):
            self.data.compare_and_swap("log", 0, b"first", b"third")
        with self.assertRaises(tyr.AlreadyExists):
            self.data.create("log")

    def test_listings_are_in_key_order_page_by_page(self):
        for number in range(25):
            self.data.put(f"a/{number:02}", bytes(number))
        self.data.put("b", b"xyz")
        keys = [entry.key for entry in self.data.list(prefix="a/", limit=7)]
        self.assertEqual(keys, [f"a/{number:02}".encode() for number in range(25)])
        page = self.data.scan_page(delimiter="/", first_bytes=2)
        self.assertEqual((page.groups, page.resume), ([b"a/"], None))
        [entry] = page.entries
        self.assertEqual((entry.key, entry.size, entry.bytes), (b"b", 3, b"xy"))
        self.assertEqual(entry.version, self.data.stat("b").version)
        rest = self.data.list(start="a/20", after="a/20", end="a/24", keys_only=True)
        self.assertEqual([entry.key[-2:] for entry in rest], [b"21", b"22", b"23"])

    def test_a_snapshot_sees_one_moment(self):
        self.data.put("a", b"one")
        with self.store.snapshot() as snapshot:
            self.data.put("a", b"two")
            self.data.put("b", b"new")
            self.assertEqual(snapshot.get(self.data, "a"), b"one")
            self.assertEqual(snapshot.read(self.data, "a", 1, 9), b"ne")
            self.assertEqual([entry.key for entry in snapshot.list(self.data)], [b"a"])
            self.assertLessEqual(snapshot.stat(self.data, "a").version, snapshot.version)
        with self.assertRaisesRegex(tyr.InvalidArgument, "given back"):
            snapshot.get(self.data, "a")

    def test_a_kept_snapshot_has_a_name(self):
        name = self.data.name
        self.data.put("a", b"one")
        self.store.keep(name)
        self.data.put("a", b"two")
        self.assertIn(name, self.store.kept())
        self.assertEqual(self.store.kept_snapshot(name).get(self.data, "a"), b"one")
        self.store.drop_kept(name)
        with self.assertRaises(tyr.NotFound):
            self.store.kept_snapshot(name)

    def test_many_blobs_are_read_at_one_moment_and_copied_inside(self):
        other = self.store.create_keyspace(self.unused_name(), chunk_size=1 << 20)
        self.data.put("a", b"0123456789")
        self.assertEqual(self.store.copy(self.data, "a", other, "b"), 10)
        wanted = [(self.data, "a", 1, 3), (other, "b", 8, 100), (other, "none", 0, 1)]
        self.assertEqual(self.store.read_many(wanted), [b"123", b"89", None])

    def test_keyspaces_are_found_made_and_dropped(self):
        name = self.unused_name()
        with self.assertRaises(tyr.NotFound):
            self.store.keyspace(name)
        made = self.store.keyspace(name, create=True, is_compressed=True, chunk_size=4096)
        self.assertEqual((made.name, made.chunk_size), (name, 4096))
        with self.assertRaisesRegex(tyr.AlreadyExists, "chunk size 4096"):
            self.store.keyspace(name, create=True, is_compressed=True)
        self.assertIn(name, self.store.keyspaces())
        self.store.drop_keyspace(name)
        self.assertNotIn(name, self.store.keyspaces())


load_tests = on_each_store(Blobs)

if __name__ == "__main__":
    unittest.main()
