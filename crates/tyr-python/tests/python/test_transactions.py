"""Transactions take effect entirely or not at all, and run again when they met a conflict."""

import threading
import unittest

import tyr
from support import StoreCase, on_each_store


class Transactions(StoreCase):
    def test_with_commits_at_the_end_and_tells_what_operations_answered(self):
        with self.store.begin() as t:
            at = t.append(self.data, "log", b"one")
            count = t.apply(self.data, "count", 0, tyr.Transform.add("u64", 1))
            gone = t.delete(self.data, "none")
            self.assertEqual(t.get(self.data, "log"), b"one")
            with self.assertRaisesRegex(tyr.InvalidArgument, "once its transaction has committed"):
                count.value
        self.assertEqual((at.offset, count.value, gone.existed), (0, 1, False))
        self.assertEqual((at.value, count.offset), (None, None))
        self.assertEqual(self.data.get("log"), b"one")
        with self.assertRaisesRegex(tyr.InvalidArgument, "was committed"):
            t.put(self.data, "late", b"")

    def test_an_exception_rolls_back(self):
        with self.assertRaises(ZeroDivisionError):
            with self.store.begin() as t:
                t.put(self.data, "a", b"one")
                1 / 0
        with self.assertRaises(tyr.NotFound):
            self.data.get("a")
        with self.assertRaisesRegex(tyr.InvalidArgument, "was rolled back"):
            t.commit()
        t.rollback()

    def test_conditions_tell_which_of_them_did_not_hold(self):
        self.data.put("a", b"one")
        version = self.data.stat("a").version
        t = self.store.begin()
        t.expect_present(self.data, "a")
        t.compare(self.data, "a", 0, b"one")
        enough = t.compare_number(self.data, "stock", 0, ">=", "u64", 1)
        with self.assertRaises(tyr.Conflict) as raised:
            t.commit()
        self.assertEqual(raised.exception.operation, enough.id)
        self.data.put("a", b"two")
        t = self.store.begin()
        t.expect_version(self.data, "a", version)
        t.put(self.data, "b", b"")
        with self.assertRaises(tyr.Conflict):
            t.commit()
        t = self.store.begin()
        t.expect_absent(self.data, "a")
        with self.assertRaises(tyr.AlreadyExists):
            t.commit()

    def test_what_is_known_without_a_read_is_a_condition(self):
        self.data.put("a", bytes(1 << 20))
        version = self.data.stat("a").version
        self.data.write("a", 1 << 19, b"new")
        for offset, is_changed in ((0, False), (1 << 19, True)):
            t = self.store.begin()
            t.assume(self.data, "a", offset, 3, version)
            t.put(self.data, "b", b"")
            if is_changed:
                self.assertRaises(tyr.Conflict, t.commit)
            else:
                t.commit()

    def test_what_was_read_and_changed_meanwhile_is_a_conflict(self):
        self.data.put("a", b"one")
        t = self.store.begin()
        self.assertEqual(t.read(self.data, "a", 0, 9), b"one")
        self.data.put("a", b"two")
        t.put(self.data, "b", b"of one")
        with self.assertRaises(tyr.Conflict):
            t.commit()

    def test_transact_runs_again_and_gives_what_the_body_returns(self):
        self.data.put("n", (0).to_bytes(8, "little"))
        runs = []

        def increment(t, by, *, name):
            runs.append(name)
            value = int.from_bytes(t.get(self.data, "n"), "little") + by
            if len(runs) < 3:
                self.data.apply("n", 0, tyr.Transform.add("u64", 10))
            t.put(self.data, "n", value.to_bytes(8, "little"))
            return value

        self.assertEqual(self.store.transact(increment, 1, name="x"), 21)
        self.assertEqual(runs, ["x"] * 3)
        self.assertEqual(self.data.apply("n", 0, tyr.Transform.add("u64", 0)), 21)

    def test_an_exception_in_the_body_is_that_exception_and_nothing_changed(self):
        class Mine(Exception):
            pass

        def body(t):
            t.put(self.data, "a", b"one")
            raise Mine("of the body")

        with self.assertRaisesRegex(Mine, "of the body"):
            self.store.transact(body)
        with self.assertRaises(tyr.NotFound):
            self.store.transact(lambda t: t.get(self.data, "a"))
        with self.assertRaises(KeyboardInterrupt):
            self.store.transact(lambda t: (_ for _ in ()).throw(KeyboardInterrupt()))

    def test_a_conflict_that_stays_ends_after_64_runs(self):
        runs = []

        def body(t):
            runs.append(None)
            raise tyr.Conflict("never")

        # What has no cause of ours is the program's own: it is not tried again.
        self.assertRaises(tyr.Conflict, self.store.transact, body)
        self.assertEqual(len(runs), 1)

        def never(t):
            runs.append(None)
            t.compare(self.data, "a", 0, b"what is not there")

        self.assertRaises(tyr.Conflict, self.store.transact, never)
        self.assertEqual(len(runs), 65)

    def test_the_body_neither_commits_nor_keeps_its_transaction(self):
        kept = []

        def body(t):
            kept.append(t)
            with self.assertRaisesRegex(tyr.InvalidArgument, "transact ends"):
                t.commit()
            with self.assertRaisesRegex(tyr.InvalidArgument, "transact ends"):
                t.rollback()
            t.put(self.data, "a", b"one")

        self.store.transact(body)
        self.assertEqual(self.data.get("a"), b"one")
        with self.assertRaisesRegex(tyr.InvalidArgument, "body that is over"):
            kept[0].put(self.data, "a", b"two")

    def test_threads_count_together(self):
        def count():
            for _ in range(20):
                self.store.transact(step)

        def step(t):
            value = int.from_bytes(t.read(self.data, "n", 0, 8), "little")
            t.write(self.data, "n", 0, (value + 1).to_bytes(8, "little"))

        self.data.put("n", bytes(8))
        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(int.from_bytes(self.data.get("n"), "little"), 80)

    def test_a_copy_and_a_listing_are_of_the_transaction(self):
        data = self.store.create_keyspace(self.unused_name(), placed_by="up-to:/")
        data.put("x/a", b"one")
        with self.store.begin() as t:
            self.assertEqual(t.copy(data, "x/a", data, "x/b"), 3)
            t.put(data, "x/c", b"")
            keys = [entry.key for entry in t.scan_page(data, prefix="x/").entries]
            self.assertEqual(keys, [b"x/a", b"x/b", b"x/c"])
        self.assertEqual(data.get("x/b"), b"one")


load_tests = on_each_store(Transactions)

if __name__ == "__main__":
    unittest.main()
