"""Watches of keys and notices, for threads and in an event loop."""

import asyncio
import threading
import time
import unittest

import tyr
import tyr.aio
from support import AsyncStoreCase, StoreCase, on_each_store

LONG = 60.0


class Watches(StoreCase):
    def test_who_watches_is_told_which_keys_have_changed(self):
        data = self.data
        with data.watch_prefix("jobs/") as watch, data.watch("jobs/b") as one:
            first = watch.changed(LONG)
            self.assertTrue(first.is_anew)
            self.assertEqual((first.keys, first.is_more, first.notices), ([], False, []))
            self.assertTrue(one.changed(LONG).is_anew)
            self.assertIsNone(watch.changed(0.01))
            for key in ("jobs/b", "jobs/a", "other"):
                data.put(key, b"")
            keys = set()
            while len(keys) < 2:
                event = watch.changed(LONG)
                keys.update(event.keys)
            self.assertEqual(keys, {b"jobs/a", b"jobs/b"})
            self.assertGreaterEqual(event.version, data.stat("jobs/b").version)
            self.assertEqual(one.changed(LONG).keys, [b"jobs/b"])
            self.assertIsNone(one.changed(0))

    def test_a_watch_is_gone_through_until_it_is_closed(self):
        watch, told = self.data.watch_prefix(), []
        waiting = threading.Thread(target=lambda: told.extend(watch))
        waiting.start()
        while not told:
            time.sleep(0.001)
        watch.close()
        waiting.join()
        self.assertEqual([event.is_anew for event in told], [True])
        self.assertEqual(list(watch), [])
        for call in (watch.changed, lambda: watch.changed(0)):
            with self.assertRaisesRegex(tyr.InvalidArgument, "was closed"):
                call()
        watch.close()

    def test_one_call_at_a_time_waits_for_a_watch(self):
        watch, raised = self.data.watch("a"), []
        watch.changed(LONG)

        def wait():
            try:
                watch.changed(LONG)
            except tyr.Error as error:
                raised.append(str(error))

        threads = [threading.Thread(target=wait) for _ in range(2)]
        for thread in threads:
            thread.start()
        while not raised:
            time.sleep(0.001)
        self.assertIn("one at a time may", raised[0])
        self.data.put("a", b"")
        for thread in threads:
            thread.join()
        self.assertEqual(len(raised), 1)

    def test_who_sends_a_notice_hears_who_has_acknowledged_it(self):
        data = self.data
        self.assertEqual(data.notify("limits", b"anybody?").acknowledged, [])
        with data.watch("limits") as one, data.watch_prefix("lim") as other:
            for watch in (one, other):
                watch.changed(LONG)
            answers = []
            sending = threading.Thread(
                target=lambda: answers.append(data.notify("limits", b"read it", timeout=20))
            )
            sending.start()
            for watch, reply in ((one, b"done"), (other, None)):
                event = watch.changed(LONG)
                (notice,) = event.notices
                self.assertEqual((notice.key, notice.payload), (b"limits", b"read it"))
                watch.acknowledge(notice, reply)
            sending.join()
            (notified,) = answers
            replies = [reply for _, reply in notified.acknowledged]
            self.assertEqual((sorted(replies), notified.missed), ([b"", b"done"], []))
            names = {who for who, _ in notified.acknowledged}
            self.assertEqual(len(names), 2)
            notified = data.notify("limits", timeout=0.01)
            self.assertEqual((notified.acknowledged, set(notified.missed)), ([], names))
            with self.assertRaisesRegex(tyr.InvalidArgument, "4096"):
                one.acknowledge(notice, bytes(4097))
        with self.assertRaisesRegex(tyr.InvalidArgument, "was closed"):
            one.acknowledge(notice)

    def test_wrong_words_are_refused(self):
        data = self.data
        for call, words in [
            (lambda: data.watch(""), "key"),
            (lambda: data.watch_prefix("x" * 1025), "1024"),
            (lambda: data.notify("a", bytes(65537)), "65536"),
            (lambda: data.notify("a", timeout=31), "30s"),
            (lambda: data.watch("a").changed(-1), "timeout is a time in seconds"),
        ]:
            with self.assertRaisesRegex(tyr.InvalidArgument, words):
                call()
        with self.assertRaises(TypeError):
            data.watch("a").acknowledge("notice")

    def test_a_keyspace_that_is_dropped_ends_its_watches(self):
        name = self.unused_name()
        with self.store.create_keyspace(name).watch("a") as watch:
            watch.changed(LONG)
            self.store.drop_keyspace(name)
            with self.assertRaises(tyr.NotFound):
                while True:
                    watch.changed(LONG)


class AsyncWatches(AsyncStoreCase):
    async def test_who_watches_is_told_in_the_event_loop(self):
        data, keys = self.data, set()
        async with data.watch_prefix("jobs/") as watch:
            async for event in watch:
                if event.is_anew:
                    await asyncio.gather(*(data.put(f"jobs/{at}", b"") for at in range(9)))
                keys.update(event.keys)
                if len(keys) == 9:
                    break
            self.assertIsNone(await watch.changed(0.01))
            waiting = asyncio.ensure_future(watch.changed())
            await asyncio.sleep(0)
            with self.assertRaisesRegex(tyr.InvalidArgument, "one at a time may"):
                await watch.changed()
            watch.close()
            with self.assertRaisesRegex(tyr.InvalidArgument, "was closed"):
                await waiting
            self.assertEqual([event async for event in watch], [])

    async def test_what_comes_as_a_task_is_cancelled_is_told_to_the_next(self):
        data, calls = self.data, self.data._calls
        async with data.watch("a") as watch:
            self.assertTrue((await watch.changed()).is_anew)
            waiting = asyncio.ensure_future(watch.changed())
            await asyncio.sleep(0)
            # Nobody waits for this. It is told without the task having a chance to go on.
            data._inner.put("a", b"")
            while calls._futures:
                time.sleep(0.001)
                calls._take()
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            self.assertEqual((await watch.changed(LONG)).keys, [b"a"])

    async def test_what_comes_before_a_cancelled_task_hears_of_that_is_told_to_the_next(self):
        data, calls = self.data, self.data._calls
        async with data.watch("a") as watch:
            self.assertTrue((await watch.changed()).is_anew)
            waiting = asyncio.ensure_future(watch.changed())
            await asyncio.sleep(0)
            (tag,) = calls._futures
            data._inner.put("a", b"")
            waiting.cancel()
            self.assertTrue(calls._futures[tag].cancelled())
            while calls._futures[tag].cancelled():
                time.sleep(0.001)
                calls._take()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            self.assertNotIn(tag, calls._futures)
            self.assertEqual((await watch.changed(LONG)).keys, [b"a"])

    async def test_nothing_is_lost_however_short_the_wait(self):
        data, seen = self.data, []
        async with data.watch("n") as watch:
            await watch.changed()

            async def count():
                for _ in range(200):
                    await data.apply("n", 0, tyr.Transform.add("u64", 1))
                    await asyncio.sleep(0)

            counting = asyncio.ensure_future(count())
            while not seen or seen[-1] < 200:
                if await watch.changed(0.0001) is not None:
                    seen.append(int.from_bytes(await data.read("n", 0, 8), "little"))
            await counting

    async def test_notices_are_acknowledged_while_another_task_waits(self):
        data = self.data
        async with data.watch("limits") as watch:
            await watch.changed()
            sending = asyncio.ensure_future(data.notify("limits", b"read it", timeout=20))
            (notice,) = (await watch.changed()).notices
            waiting = asyncio.ensure_future(watch.changed())
            await asyncio.sleep(0)
            watch.acknowledge(notice, b"done")
            notified = await sending
            self.assertEqual([reply for _, reply in notified.acknowledged], [b"done"])
            await data.put("limits", b"")
            self.assertEqual((await waiting).keys, [b"limits"])


load_tests = on_each_store(Watches, AsyncWatches)

if __name__ == "__main__":
    unittest.main()
