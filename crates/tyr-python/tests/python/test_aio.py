"""The same for asyncio: many calls under way, cancelled ones, wrong use."""

import asyncio
import os
import unittest

import tyr
import tyr.aio
from support import CLUSTER, AsyncStoreCase, StoreCase, on_each_store


class Async(AsyncStoreCase):
    async def test_a_thousand_calls_at_once(self):
        data = self.data
        offsets = await asyncio.gather(*(data.append("log", b"12345") for _ in range(1000)))
        self.assertEqual(sorted(offsets), [5 * number for number in range(1000)])
        parts = await asyncio.gather(*(data.read("log", 5 * n, 5) for n in range(1000)))
        self.assertEqual(set(parts), {b"12345"})

    async def test_the_names_are_those_of_the_blocking_classes(self):
        alone = {"is_closed", "read_into", "chunk_size", "store", "through"}
        handles = ("Store", "Keyspace", "Transaction", "Snapshot", "Lock", "Lease", "Watch")
        for name in (*handles, "Metadata", "MetadataWatch", "Presence"):
            public = {it for it in dir(getattr(tyr, name)) if not it.startswith("_")}
            here = {it for it in dir(getattr(tyr.aio, name)) if not it.startswith("_")}
            self.assertEqual(public - here - alone, set(), name)

    async def test_operations_answer_as_without_asyncio(self):
        data = self.data
        await data.put("a", b"one")
        await data.write("a", 5, bytearray(b"x" * 50_000))
        self.assertEqual((await data.stat("a")).size, 50_005)
        await data.truncate("a", 3)
        self.assertEqual(await data.get("a"), b"one")
        read, stat = await data.read_with_stat("a", 1, 9)
        self.assertEqual((read, stat.size), (b"ne", 3))
        self.assertEqual((await data.stretches("a", 0, 9)).written, [(0, 3)])
        self.assertEqual(await data.allocated("a"), 3)
        self.assertEqual(await data.apply("n", 0, tyr.Transform.add("i32", -1)), -1)
        await data.compare_and_swap("a", 0, b"one", b"two")
        await data.clear("a", 0, 1)
        self.assertEqual([it.key async for it in data.list(limit=1)], [b"a", b"n"])
        with await self.store.snapshot() as snapshot:
            self.assertTrue(await data.delete("a"))
            self.assertEqual(await snapshot.get(data, "a"), b"\0wo")
            # The first byte is a hole; a block of which some is written may count as a whole.
            self.assertEqual((await snapshot.stretches(data, "a")).written[-1][1], 3)
            self.assertIn(await snapshot.allocated(data, "a"), (2, 3))
            self.assertEqual([it.key async for it in snapshot.list(data)], [b"a", b"n"])
        wanted = [(data, "a", 0, 9), (data, "n", 0, 1)]
        self.assertEqual(await self.store.read_many(wanted), [None, b"\xff"])
        self.assertIn(data.name, await self.store.keyspaces())
        with self.assertRaisesRegex(tyr.NotFound, 'blob "none"'):
            await data.get("none")
        with self.assertRaisesRegex(TypeError, "a key is str or bytes"):
            await data.get(7)

    async def test_a_snapshot_that_was_taken_without_asyncio_is_read_here(self):
        blocking = tyr.connect(CLUSTER) if self.is_cluster else tyr.open(self.place + "-2")
        with blocking as store:
            data = store.keyspace(StoreCase.unused_name(), create=True)
            here = tyr.aio.here(data)
            data.put("a", b"old")
            with store.snapshot() as snapshot:
                data.put("a", b"new")
                at = tyr.aio.here_at(snapshot)
                self.assertEqual(await here.get("a"), b"new")
                self.assertEqual(await at.get(here, "a"), b"old")
                self.assertEqual(at.version, snapshot.version)
            self.assertEqual(await at.get(here, "a"), b"old", "each is given back by itself")
            at.release()
            with self.assertRaisesRegex(tyr.InvalidArgument, "given back"):
                await at.get(here, "a")
            with self.assertRaisesRegex(tyr.InvalidArgument, "given back"):
                tyr.aio.here_at(snapshot)

    async def test_a_buffer_may_change_once_the_call_is_under_way(self):
        given = bytearray(b"a" * 100_000)
        writing = asyncio.ensure_future(self.data.put("a", given))
        await asyncio.sleep(0)
        given[:] = b"b" * len(given)
        await writing
        self.assertEqual(await self.data.get("a"), b"a" * 100_000)

    async def test_transactions_commit_and_roll_back(self):
        async with self.store.begin() as t:
            count = t.apply(self.data, "n", 0, tyr.Transform.add("u64", 3))
            self.assertEqual(await t.read(self.data, "n", 0, 1), b"\3")
        self.assertEqual(count.value, 3)
        with self.assertRaises(ZeroDivisionError):
            async with self.store.begin() as t:
                t.put(self.data, "a", b"")
                1 / 0
        with self.assertRaises(tyr.NotFound):
            await self.data.get("a")

    async def test_transact_runs_again(self):
        async def step(t, by):
            value = int.from_bytes(await t.read(self.data, "n", 0, 8), "little")
            t.write(self.data, "n", 0, (value + by).to_bytes(8, "little"))
            return value

        await self.data.put("n", bytes(8))
        await asyncio.gather(*(self.store.transact(step, 2) for _ in range(8)))
        self.assertEqual(await self.store.transact(step, 0), 16)

    async def test_one_call_at_a_time_uses_a_transaction(self):
        await self.data.put("a", os.urandom(1 << 20))
        t = self.store.begin()
        answers = await asyncio.gather(
            *(t.get(self.data, "a") for _ in range(50)), return_exceptions=True
        )
        refused = [it for it in answers if isinstance(it, Exception)]
        for error in refused:
            self.assertRegex(str(error), "one at a time may")
        self.assertLess(len(refused), 50)
        self.assertEqual(len(await t.get(self.data, "a")), 1 << 20)

    async def test_calls_that_are_cancelled_leave_everything_usable(self):
        await self.data.put("a", bytes(1 << 20))
        t = self.store.begin()
        for round in range(200):
            calls = [
                asyncio.ensure_future(call)
                for call in (
                    self.data.get("a"),
                    self.data.append("log", b"x" * 40_000),
                    t.read(self.data, "a", 0, 1 << 20),
                )
            ]
            if round % 2:
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            answers = await asyncio.gather(*calls, return_exceptions=True)
            for answer in answers:
                self.assertIsInstance(answer, (bytes, int, asyncio.CancelledError))
        # A read that was taken back has given the transaction back.
        t.put(self.data, "b", b"two")
        await t.commit()
        self.assertEqual(await self.data.get("b"), b"two")
        try:
            size = (await self.data.stat("log")).size
        except tyr.NotFound:
            size = 0
        self.assertEqual(size % 40_000, 0)
        self.assertLessEqual(size, 200 * 40_000)

    async def test_a_task_that_is_cancelled_in_a_transaction_rolls_it_back(self):
        entered = asyncio.Event()

        async def work():
            async with self.store.begin() as t:
                t.put(self.data, "a", b"")
                entered.set()
                await asyncio.sleep(3600)

        task = asyncio.ensure_future(work())
        await entered.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        with self.assertRaises(tyr.NotFound):
            await self.data.get("a")

    async def test_wrong_use_has_words(self):
        data, store = self.data, self.store
        with self.assertRaisesRegex(tyr.InvalidArgument, "async with"):
            with store.begin()._inner:
                pass
        with self.assertRaisesRegex(TypeError, "a keyspace of tyr.aio is wanted, not str"):
            await store.begin().get("data", "a")

        def elsewhere():
            with self.assertRaisesRegex(RuntimeError, "another event loop"):
                asyncio.run(data.get("a"))

        await asyncio.get_running_loop().run_in_executor(None, elsewhere)
        await store.close()
        await store.close()
        with self.assertRaisesRegex(tyr.Closed, "is closed"):
            await data.get("a")

    async def test_closing_ends_what_is_under_way(self):
        calls = [asyncio.ensure_future(self.data.append("log", b"x")) for _ in range(100)]
        await asyncio.sleep(0)
        await asyncio.wait_for(self.store.close(), 30)
        answers = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 30)
        for answer in answers:
            self.assertIsInstance(
                answer, (int, tyr.Unavailable, tyr.TimedOut, asyncio.CancelledError)
            )

    async def test_opening_that_fails_and_opening_for_a_block(self):
        with self.assertRaises(tyr.InvalidArgument):
            async with tyr.aio.connect("nowhere"):
                pass
        with self.assertRaises(TypeError):
            await tyr.aio.open("x", colour="red")


load_tests = on_each_store(Async)

if __name__ == "__main__":
    unittest.main()
