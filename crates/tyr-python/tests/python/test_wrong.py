"""Wrong input of every kind is an exception with words: no crash, no hang, nothing lost."""

import gc
import os
import pickle
import signal
import socket
import sys
import threading
import time
import unittest

import tyr
from support import StoreCase


class WrongInput(StoreCase):
    def test_wrong_types_are_type_errors(self):
        data, t = self.data, self.store.begin()
        for call, words in [
            (lambda: data.put(7, b""), "a key is str or bytes, not int"),
            (lambda: data.put(None, b""), "a key is str or bytes, not NoneType"),
            (lambda: data.put("a", "text"), "bytes-like object is required, not 'str'"),
            (lambda: data.put("a", [1]), "bytes-like object is required, not 'list'"),
            (lambda: data.put("a"), "missing 1 required positional argument"),
            (lambda: data.read("a", "0", 1), "a length is an int, not"),
            (lambda: data.read("a", 0.5, 1), "offset"),
            (lambda: data.apply("a", 0, "add"), "Transform"),
            (lambda: data.list(prefix=7), "part of a key is str or bytes, not int"),
            (lambda: data.read_into("a", 0, b"fixed"), "this bytes is read-only"),
            (lambda: data.read_into("a", 0, memoryview(bytearray(9))[::2]), "C-contiguous"),
            (lambda: t.put("data", "a", b""), "Keyspace"),
            (lambda: t.expect_version(data, "a", 7), "Version"),
            (lambda: self.store.transact(None), "not callable"),
            (lambda: tyr.Transform.add("u64", "1"), "str"),
            (lambda: tyr.Store(), "Store"),
            (lambda: tyr.open(7), "PathLike"),
            (lambda: tyr.open(self.place, colour="red"), "colour"),
            (lambda: self.store.read_many([data]), "tuple"),
            (lambda: pickle.dumps(self.store), "pickle"),
        ]:
            with self.assertRaises(TypeError) as raised:
                call()
            self.assertIn(words, str(raised.exception))

    def test_wrong_values_are_invalid_arguments(self):
        data, t = self.data, self.store.begin()
        for call, words in [
            (lambda: data.put("", b""), "key"),
            (lambda: data.put("k" * 5000, b""), "key"),
            (lambda: data.read("a", -1, 1), "0 to 2^63-1, not -1"),
            (lambda: data.read("a", 0, 1 << 70), "0 to 2^63-1"),
            (lambda: data.read("a", 0, 1 << 40), "64 MiB"),
            (lambda: data.write("a", 1 << 63, b"x"), "2^63"),
            (lambda: data.list(colour="red"), "not \"colour\""),
            (lambda: data.scan_page(limit=0), "limit"),
            (lambda: tyr.Transform.add("u8", 256), "256 does not fit into u8"),
            (lambda: tyr.Transform.add("u7", 1), "not \"u7\""),
            (lambda: tyr.Transform("pow", "u8", 2), "not \"pow\""),
            (lambda: tyr.Transform("and", "f64", 1.0), "f64"),
            (lambda: t.compare_number(data, "a", 0, "=>", "u8", 1), "not \"=>\""),
            (lambda: self.store.keyspace("Data"), "a keyspace's name"),
            (lambda: self.store.keyspace("x", chunk_size=4096), "create=True"),
            (lambda: self.store.create_keyspace("x", chunk_size=5), "power of two"),
            (lambda: self.store.create_keyspace("x", color=5), "not \"color\""),
            (lambda: self.store.create_keyspace("x", durability="firm"), "durability"),
            (lambda: self.store.outcome(ValueError()), "tyr.TimedOut"),
            (lambda: self.store.keep("no name"), "name"),
            (lambda: tyr.connect("http://one:80"), "no address"),
            (lambda: tyr.connect("tyr://one:1", user="ann"), "has no key"),
            (lambda: tyr.connect("tyr://one:1", timeout=-1.0), "timeout"),
            (lambda: tyr.open(self.place, snapshot_timeout=float("nan")), "snapshot_timeout"),
        ]:
            with self.assertRaises(tyr.InvalidArgument) as raised:
                call()
            self.assertIn(words, str(raised.exception))
            self.assertIsInstance(raised.exception, ValueError)

    def test_exceptions_are_pythons_too(self):
        self.assertTrue(issubclass(tyr.TimedOut, TimeoutError))
        self.assertTrue(issubclass(tyr.NotFound, LookupError))
        self.assertTrue(issubclass(tyr.PermissionDenied, PermissionError))
        with self.assertRaisesRegex(tyr.NotFound, 'blob "none"'):
            self.data.get("none")
        with self.assertRaisesRegex(tyr.NotFound, "there is no"):
            tyr.open(self.place + "-none", must_exist=True)
        with self.assertRaisesRegex(tyr.Unavailable, "open"):
            tyr.open(self.place)

    def test_keyspaces_of_another_store_are_refused(self):
        with tyr.open(self.place + "-other") as other:
            foreign = other.create_keyspace("data")
            with self.assertRaisesRegex(tyr.InvalidArgument, "another store"):
                self.store.begin().put(foreign, "a", b"")
            with self.assertRaisesRegex(tyr.InvalidArgument, "another store"):
                self.store.snapshot().get(foreign, "a")
            with self.assertRaisesRegex(tyr.InvalidArgument, "another store"):
                self.store.copy(self.data, "a", foreign, "a")

    def test_closed_handles_say_so(self):
        self.data.put("a", b"one")
        t, snapshot = self.store.begin(), self.store.snapshot()
        listing = self.data.list()
        self.store.close()
        self.store.close()
        self.assertTrue(self.store.is_closed)
        for call in [
            lambda: self.data.get("a"),
            lambda: self.data.put("a", b""),
            lambda: self.data.read_into("a", 0, bytearray(1)),
            lambda: self.data.list(),
            lambda: next(listing),
            lambda: t.put(self.data, "a", b""),
            lambda: t.commit(),
            lambda: snapshot.get(self.data, "a"),
            lambda: self.store.keyspace("data"),
            lambda: self.store.begin(),
            lambda: self.store.transact(lambda t: None),
            lambda: self.store.__enter__(),
        ]:
            with self.assertRaisesRegex(tyr.Closed, "is closed: open it again"):
                call()
        with tyr.open(self.place) as again:
            self.assertEqual(again.keyspace(self.data.name).get("a"), b"one")

    def test_a_store_that_is_closed_under_way_ends_calls_with_words(self):
        raised = []

        def write():
            try:
                while True:
                    self.data.append("log", b"x")
            except Exception as error:
                raised.append(error)

        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        while not self.data.list(prefix="log").__next__().size:
            pass
        self.store.close()
        for thread in threads:
            thread.join(30)
            self.assertFalse(thread.is_alive())
        self.assertEqual(len(raised), 3)
        for error in raised:
            # What was sent and not answered is left open.
            self.assertIsInstance(error, (tyr.Unavailable, tyr.TimedOut))

    def test_a_transaction_is_used_by_one_call_at_a_time(self):
        self.data.put("a", os.urandom(1 << 20))
        t, refused = self.store.begin(), []

        def read():
            for _ in range(200):
                try:
                    self.assertEqual(len(t.get(self.data, "a")), 1 << 20)
                except tyr.InvalidArgument as error:
                    refused.append(str(error))

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(all("one at a time may" in it for it in refused), refused[:1])
        t.put(self.data, "b", b"two")
        t.commit()
        self.assertEqual(self.data.get("b"), b"two")

    def test_a_buffer_may_change_once_the_call_has_returned(self):
        given = bytearray(b"a" * (1 << 20))
        with self.store.begin() as t:
            t.put(self.data, "large", given)
            given[:] = b"b" * len(given)
            t.put(self.data, "small", memoryview(given)[:10])
            given[:] = b"c" * len(given)
            # It is not locked: a buffer that was lent could not be resized.
            given.clear()
        self.assertEqual(self.data.get("large"), b"a" * (1 << 20))
        self.assertEqual(self.data.get("small"), b"b" * 10)

    def test_nothing_is_lost_by_calls_that_fail_and_calls_that_do_not(self):
        scratch = self.store.create_keyspace("scratch", durability="memory")
        large = os.urandom(100_000)

        def round():
            for _ in range(300):
                scratch.put("a", large)
                scratch.put("b", bytearray(large[:1000]))
                scratch.get("b")
                with self.assertRaises(tyr.NotFound):
                    scratch.get("none")
                self.store.begin().put(scratch, "c", large)
                next(scratch.list())

        round()
        before = sys.getrefcount(large), len(gc.get_objects())
        round()
        scratch.get("b")
        self.assertEqual(sys.getrefcount(large), before[0])
        self.assertLess(len(gc.get_objects()) - before[1], 50)


class Interrupted(unittest.TestCase):
    def test_ctrl_c_ends_a_call_that_waits(self):
        # Who is started in the background by a shell without job control ignores it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = "tyr://127.0.0.1:%d" % silent.getsockname()[1]
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            begun = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                tyr.connect(address, connect_timeout=30.0)
            self.assertLess(time.monotonic() - begun, 10)
            timer.join()

    def test_other_threads_run_while_a_call_waits(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = "tyr://127.0.0.1:%d" % silent.getsockname()[1]
            ran = threading.Event()
            threading.Timer(0.05, ran.set).start()
            with self.assertRaises((tyr.Unavailable, tyr.TimedOut)):
                tyr.connect(address, connect_timeout=0.5)
            self.assertTrue(ran.is_set())


class Forked(StoreCase):
    def in_child(self, body):
        """Runs `body` in a forked child, which ends as programs do; answers what it said."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(30)
                os.close(reader)
                os.write(writer, body().encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        with os.fdopen(reader) as said:
            text = said.read()
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, text)
        return text

    def test_a_child_gets_errors_and_the_parent_goes_on(self):
        t = self.store.begin()
        t.put(self.data, "a", b"one")
        snapshot = self.store.snapshot()

        def body():
            nonlocal t, snapshot
            for call in [
                lambda: self.data.get("a"),
                lambda: self.data.name,
                lambda: t.commit(),
                lambda: snapshot.get(self.data, "a"),
                lambda: self.store.close(),
                lambda: self.store.begin(),
                lambda: tyr.open("elsewhere"),
            ]:
                try:
                    call()
                    return "it was let through"
                except tyr.Forked as error:
                    text = str(error)
            # What goes in the child is left alone.
            del t, snapshot, self.data, self.store
            gc.collect()
            return text

        self.assertIn("was forked of one that used Týr", self.in_child(body))
        t.commit()
        self.assertEqual(self.data.get("a"), b"one")

    def test_a_child_of_multiprocessing_ends(self):
        import multiprocessing

        child = multiprocessing.get_context("fork").Process(target=self._try)
        child.start()
        child.join(30)
        self.assertEqual(child.exitcode, 0)

    def _try(self):
        with self.assertRaises(tyr.Forked):
            self.data.put("a", b"")


if __name__ == "__main__":
    unittest.main()
