"""Locks, fences and leases, for threads and in an event loop."""

import asyncio
import gc
import os
import signal
import threading
import time
import unittest

import tyr
import tyr.aio
from support import AsyncStoreCase, StoreCase, on_each_store

LONG = 60.0


class Locks(StoreCase):
    def later(self, work):
        """Does something in another thread; what it answered is there once it is joined."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(work()))
        thread.start()
        return thread, answers

    def test_a_lock_is_held_by_one_and_given_back_at_the_end(self):
        data = self.data
        with data.lock("nightly", holder="first") as lock:
            self.assertTrue(lock.is_held)
            self.assertEqual((lock.key, lock.token), (b"nightly", 1))
            info = data.inspect_lock("nightly")
            self.assertEqual((info.token, info.holder), (1, "first"))
            with self.assertRaises(tyr.Conflict):
                data.lock("nightly", wait=0)
            with self.assertRaises(tyr.Conflict):
                data.lock("nightly", wait=0.02)
            thread, answers = self.later(lambda: data.lock("nightly", wait=LONG))
            self.assertTrue(lock.recalled(LONG))
            self.assertTrue(lock.is_recalled and lock.is_held)
            self.assertFalse(lock.lost(0.01))
        thread.join()
        self.assertEqual((answers[0].token, lock.is_held), (2, False))
        answers[0].unlock()
        info = data.inspect_lock("nightly")
        self.assertEqual((info.token, info.holder), (2, None))
        for call in (lock.unlock, lock.lost):
            with self.assertRaisesRegex(tyr.InvalidArgument, "was given back"):
                call()
        lock.give_back()

    def test_an_exception_goes_through_and_gives_the_lock_back(self):
        with self.assertRaises(ZeroDivisionError):
            with self.data.lock("nightly"):
                1 / 0
        with self.data.lock("nightly", wait=0) as lock:
            lock.unlock()
        self.data.lock("nightly", wait=0).give_back()

    def test_a_lock_that_is_forgotten_is_given_back(self):
        lock = self.data.lock("nightly", holder="forgetful")
        self.assertEqual(lock.token, 1)
        del lock
        gc.collect()
        with self.data.lock("nightly", wait=LONG) as lock:
            self.assertEqual(lock.token, 2)

    def test_ctrl_c_ends_the_wait_for_a_lock_and_it_is_not_got(self):
        # Shells have programs in the background ignore it, and Python leaves it so.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        held = self.data.lock("nightly")

        def interrupt():
            held.recalled(LONG)
            os.kill(os.getpid(), signal.SIGINT)

        thread, _ = self.later(interrupt)
        with self.assertRaises(KeyboardInterrupt):
            self.data.lock("nightly", wait=LONG)
        thread.join()
        held.unlock()
        with self.data.lock("nightly", wait=LONG) as lock:
            self.assertEqual(lock.token, 2)

    def test_what_is_fenced_takes_effect_while_nobody_else_has_got_the_lock(self):
        data = self.data
        lock = data.lock("nightly")
        with self.store.begin() as t:
            t.fence(lock)
            t.put(data, "report", b"all is well")
        # As if this program had stood still, and another had got the lock.
        data.apply("nightly", 8, tyr.Transform.add("u64", 1))
        with self.assertRaises(tyr.Conflict) as raised:
            with self.store.begin() as t:
                fence = t.fence(lock)
                t.put(data, "report", b"too late")
        self.assertEqual(raised.exception.operation, fence.id)
        self.assertEqual(data.get("report"), b"all is well")
        with self.assertRaises(tyr.Conflict):
            lock.unlock()
        with self.assertRaisesRegex(tyr.InvalidArgument, "was given back"):
            self.store.begin().fence(lock)

    def test_the_end_of_a_block_tells_that_another_has_got_the_lock(self):
        with self.assertRaises(tyr.Conflict):
            with self.data.lock("nightly"):
                self.data.apply("nightly", 8, tyr.Transform.add("u64", 1))
        with self.assertRaises(ZeroDivisionError):
            with self.data.lock("nightly"):
                self.data.apply("nightly", 8, tyr.Transform.add("u64", 1))
                1 / 0

    def test_leases_are_shared_or_held_alone(self):
        data = self.data
        with data.lease("a", is_shared=True) as one, data.lease("a", is_shared=True) as two:
            self.assertTrue(one.is_held and two.is_held)
            with self.assertRaises(tyr.Conflict):
                data.lease("a", wait=0)
        with data.lease("a", wait=LONG, duration=2) as alone:
            self.assertEqual((alone.key, alone.is_recalled), (b"a", False))
            with self.assertRaises(tyr.Conflict):
                data.lease("a", is_shared=True, wait=0)
            # Who waits is told when it is given back, and holds up nobody.
            thread, answers = self.later(lambda: alone.lost(LONG))
            alone.give_back()
            thread.join()
            self.assertEqual((answers, alone.is_held), ([True], False))

    def test_a_lease_of_a_group_is_one_of_its_keys(self):
        groups = self.store.create_keyspace(self.unused_name(), placed_by="up-to:/")
        with groups.lease_group("home/") as lease:
            self.assertEqual(lease.key, b"home/")
            with self.assertRaises(tyr.Conflict):
                groups.lease("home/new", wait=0)
            groups.lease("mail/new", wait=0).give_back()
        with self.assertRaisesRegex(tyr.InvalidArgument, "placed-by"):
            self.data.lease_group("home/")

    def test_wrong_words_are_refused(self):
        data = self.data
        data.put("plain", b"no lock, but long enough to be one")
        for call, words in [
            (lambda: data.lock("a", wait=-1), "wait is a time in seconds"),
            (lambda: data.lock("a", wait=float("nan")), "wait is a time in seconds"),
            (lambda: data.lock("a", duration=11), "1 to 10 s"),
            (lambda: data.lock("a", holder="x" * 257), "256 bytes"),
            (lambda: data.lock("plain"), "no lock"),
            (lambda: data.inspect_lock("plain"), "no lock"),
            (lambda: data.lock("a").lost(-1), "timeout is a time in seconds"),
        ]:
            with self.assertRaisesRegex(tyr.InvalidArgument, words):
                call()
        with self.assertRaises(tyr.NotFound):
            data.inspect_lock("none")
        for call in (lambda: data.lock("a", is_shared=True), lambda: self.store.begin().fence(1)):
            with self.assertRaises(TypeError):
                call()


class AsyncLocks(AsyncStoreCase):
    async def test_many_get_a_lock_one_after_the_other(self):
        inside, tokens = [], []

        async def work():
            for _ in range(5):
                async with self.data.lock("nightly", wait=LONG) as lock:
                    inside.append(lock)
                    self.assertEqual(len(inside), 1)
                    tokens.append(lock.token)
                    await asyncio.sleep(0)
                    inside.pop()

        await asyncio.gather(*(work() for _ in range(8)))
        self.assertEqual(tokens, list(range(1, 41)))
        self.assertIsNone((await self.data.inspect_lock("nightly")).holder)

    async def test_a_task_that_is_cancelled_gives_the_lock_back(self):
        """Wherever it is: before it asked, while it waits, just when it has got it."""
        for round in range(60):
            held = await self.data.lock("nightly", wait=LONG)
            tasks = [asyncio.ensure_future(self.locked()) for _ in range(3)]
            for _ in range(round % 4):
                await asyncio.sleep(0)
            if round % 2:
                await held.unlock()
            for task in tasks:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            for answer in answers:
                self.assertTrue(answer is None or isinstance(answer, asyncio.CancelledError))
            held.give_back()
            # `answers` has the exceptions, and what their frames know.
            async with self.data.lock("nightly", wait=LONG) as lock:
                self.assertTrue(lock.is_held)

    async def locked(self):
        await self.data.lock("nightly", wait=LONG)
        await asyncio.sleep(0)

    async def test_a_lock_that_comes_as_its_task_is_cancelled_is_given_back(self):
        calls, given_back = self.data._calls, []

        def give_back(lock):
            given_back.append(lock.token)
            lock.give_back()

        take = calls.run(self.data._inner.lock, "nightly", unwanted=give_back)
        task = asyncio.ensure_future(take)
        await asyncio.sleep(0)
        # It is answered without its task having a chance to go on.
        while calls._futures:
            time.sleep(0.001)
            calls._take()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError) as raised:
            await task
        self.assertEqual(given_back, [1])
        async with self.data.lock("nightly", wait=LONG):
            self.assertIsNotNone(raised.exception)

    async def test_a_lock_is_watched_and_fences_transactions(self):
        data = self.data
        async with data.lock("nightly", holder="here") as lock:
            self.assertEqual((lock.key, lock.is_held, lock.is_recalled), (b"nightly", True, False))
            self.assertFalse(await lock.lost(0.01))
            async with self.store.begin() as t:
                t.fence(lock)
                t.put(data, "report", b"all is well")
            waiting = asyncio.ensure_future(data.lock("nightly", wait=LONG)._begin())
            self.assertTrue(await lock.recalled(LONG))
        async with await waiting as lock:
            self.assertEqual(lock.token, 2)
            await lock.unlock()
        with self.assertRaisesRegex(TypeError, "a lock of tyr.aio is wanted, not int"):
            self.store.begin().fence(7)
        with self.assertRaises(tyr.Conflict):
            async with data.lock("nightly"):
                await data.apply("nightly", 8, tyr.Transform.add("u64", 1))
        with self.assertRaises(ZeroDivisionError):
            async with data.lock("nightly"):
                1 / 0

    async def test_leases_are_told_of_who_waits(self):
        async with self.data.lease("a", is_shared=True) as lease:
            with self.assertRaises(tyr.Conflict):
                await self.data.lease("a", wait=0)
            waiting = asyncio.ensure_future(self.data.lease("a", wait=LONG)._begin())
            self.assertTrue(await lease.recalled())
            lost = asyncio.ensure_future(lease.lost())
            await asyncio.sleep(0)
            lease.give_back()
            self.assertTrue(await lost)
            (await waiting).give_back()
        with self.assertRaisesRegex(tyr.InvalidArgument, "async with"):
            with (await self.data.lease("a"))._inner:
                pass


load_tests = on_each_store(Locks, AsyncLocks)

if __name__ == "__main__":
    unittest.main()
