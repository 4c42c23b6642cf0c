"""Service metadata, watches of it and presences, for threads and in an event loop."""

import asyncio
import gc
import threading
import time
import unittest

import tyr
import tyr.aio
from support import AsyncStoreCase, StoreCase, on_each_store

LONG = 60.0


class Metadata(StoreCase):
    def setUp(self):
        super().setUp()
        self.metadata = self.store.metadata
        self.prefix = f"service/{self.unused_name()}/"

    def test_a_path_has_what_was_put_last(self):
        metadata, leader = self.metadata, self.prefix + "leader"
        self.assertIsNone(metadata.get(leader))
        first = metadata.put(leader, b"alice")
        second = metadata.put(leader, bytearray(b"bob"))
        self.assertGreater(second, first)
        entry = metadata.get(leader)
        self.assertEqual((entry.path, entry.value), (leader, b"bob"))
        self.assertEqual((entry.created, entry.changed), (first, second))
        self.assertGreater(metadata.delete(leader), second)
        self.assertIsNone(metadata.get(leader))

    def test_of_two_who_have_seen_the_same_one_changes_it(self):
        metadata, leader = self.metadata, self.prefix + "leader"
        with self.assertRaises(tyr.Conflict):
            metadata.put(leader, b"", expected="present")
        seen = metadata.put(leader, b"alice", expected="absent")
        with self.assertRaises(tyr.Conflict):
            metadata.put(leader, b"alice", expected="absent")
        metadata.put(leader, b"bob", expected=seen)
        for call in (
            lambda: metadata.put(leader, b"carol", expected=seen),
            lambda: metadata.delete(leader, expected=seen),
        ):
            with self.assertRaises(tyr.Conflict):
                call()
        self.assertEqual(metadata.get(leader).value, b"bob")
        metadata.delete(leader, expected="present")
        self.assertIsNone(metadata.get(leader))

    def test_a_transaction_takes_effect_entirely_or_not_at_all(self):
        metadata, prefix = self.metadata, self.prefix
        change = tyr.MetadataTransaction().when(prefix + "a", "absent").put(prefix + "a", b"1")
        change.put(prefix + "b", b"2").delete(prefix + "c")
        revision = metadata.transact(change)
        self.assertEqual({metadata.get(prefix + it).changed for it in "ab"}, {revision})
        again = tyr.MetadataTransaction().put(prefix + "b", b"3").when(prefix + "a", revision - 1)
        with self.assertRaises(tyr.Conflict):
            metadata.transact(again)
        self.assertEqual(metadata.get(prefix + "b").value, b"2")

    def test_what_is_there_is_listed_and_what_changes_is_told(self):
        metadata, prefix = self.metadata, self.prefix
        for at in range(5):
            metadata.put(f"{prefix}{at}", str(at).encode())
        page = metadata.list(prefix, limit=3)
        self.assertEqual([it.path[-1] for it in page.entries], ["0", "1", "2"])
        rest = metadata.list(prefix, after=page.entries[-1].path)
        self.assertEqual([it.value for it in rest.entries], [b"3", b"4"])
        with metadata.watch(prefix, after=rest.revision) as watch:
            self.assertIsNone(watch.changed(0.01))
            metadata.put(prefix + "0", b"new")
            revision = metadata.delete(prefix + "1")
            told = []
            while len(told) < 2:
                changes = watch.changed(LONG)
                told += changes.changes
            self.assertEqual(changes.revision, revision)
            found = [(it.path[-1], it.value) for it in told]
            self.assertEqual(found, [("0", b"new"), ("1", None)])
            self.assertEqual(told[1].revision, revision)
        with self.assertRaisesRegex(tyr.InvalidArgument, "was closed"):
            watch.changed()

    def test_a_watch_is_gone_through_until_it_is_closed(self):
        watch, told = self.metadata.watch(self.prefix, after=self.metadata.list().revision), []
        waiting = threading.Thread(target=lambda: told.extend(watch))
        waiting.start()
        self.metadata.put(self.prefix + "a", b"")
        while not told:
            time.sleep(0.001)
        watch.close()
        waiting.join()
        self.assertEqual([it.path for it in told[0].changes], [self.prefix + "a"])

    def test_what_a_program_says_of_itself_goes_when_it_ends(self):
        metadata, web = self.metadata, self.prefix + "web"
        with metadata.presence(1.0) as presence:
            self.assertTrue(presence.is_there)
            presence.put(web, b"10.0.0.1:80", expected="absent")
            presence.transact(tyr.MetadataTransaction().put(web + "2", b""))
            self.assertEqual(metadata.get(web).value, b"10.0.0.1:80")
            self.assertFalse(presence.lost(0.01))
            with self.assertRaises(tyr.Conflict):
                presence.put(web, b"", expected="absent")
        self.assertFalse(presence.is_there)
        for path in (web, web + "2"):
            self.assertIsNone(metadata.get(path))
        for call in (presence.end, presence.lost, lambda: presence.put(web, b"")):
            with self.assertRaisesRegex(tyr.InvalidArgument, "was ended"):
                call()
        with self.assertRaises(ZeroDivisionError):
            with metadata.presence() as presence:
                presence.put(web, b"")
                1 / 0
        self.assertIsNone(metadata.get(web))

    def test_a_presence_that_is_forgotten_ends(self):
        web = self.prefix + "web"
        presence = self.metadata.presence()
        revision = presence.put(web, b"")
        del presence
        gc.collect()
        with self.metadata.watch(web, after=revision) as watch:
            (change,) = watch.changed(LONG).changes
        self.assertEqual((change.path, change.value), (web, None))

    def test_wrong_words_are_refused(self):
        metadata, path = self.metadata, self.prefix + "a"
        for call, words in [
            (lambda: metadata.get(""), "path|key"),
            (lambda: metadata.get("x" * 600), "512"),
            (lambda: metadata.put(path, b"", expected="there"), "is expected, not 'there'"),
            (lambda: metadata.put(path, b"", expected=1.5), "is expected, not 1.5"),
            (lambda: metadata.put(path, b"", expected=-1), "is expected, not -1"),
            (lambda: metadata.presence(-1), "ttl is a time in seconds"),
            (lambda: tyr.MetadataTransaction().put("", b""), "path|key"),
        ]:
            with self.assertRaisesRegex(tyr.InvalidArgument, words):
                call()
        if self.is_cluster:
            with self.assertRaisesRegex(tyr.InvalidArgument, "60"):
                metadata.presence(0.5)
        for call in (
            lambda: metadata.put(path, "text"),
            lambda: metadata.transact(path),
            lambda: metadata.watch(path),
        ):
            with self.assertRaises(TypeError):
                call()


class AsyncMetadata(AsyncStoreCase):
    async def test_it_is_the_same_in_an_event_loop(self):
        metadata, prefix = self.store.metadata, f"service/{StoreCase.unused_name()}/"
        seen = await metadata.put(prefix + "leader", b"alice", expected="absent")
        with self.assertRaises(tyr.Conflict):
            await metadata.put(prefix + "leader", b"bob", expected=seen - 1)
        self.assertEqual((await metadata.get(prefix + "leader")).changed, seen)
        change = tyr.MetadataTransaction().when(prefix + "leader", seen).put(prefix + "a", b"1")
        await metadata.transact(change)
        page = await metadata.list(prefix)
        self.assertEqual([it.path for it in page.entries], [prefix + "a", prefix + "leader"])
        async with metadata.watch(prefix, after=page.revision) as watch:
            self.assertIsNone(await watch.changed(0.01))
            waiting = asyncio.ensure_future(watch.changed())
            await asyncio.sleep(0)
            await metadata.delete(prefix + "a")
            (change,) = (await waiting).changes
            self.assertEqual((change.path, change.value), (prefix + "a", None))
            async with metadata.presence() as presence:
                await presence.put(prefix + "web", b"here")
                self.assertTrue(presence.is_there)
                self.assertFalse(await presence.lost(0.01))
            self.assertIsNone(await metadata.get(prefix + "web"))
            told = []
            async for changes in watch:
                told += changes.changes
                if len(told) == 2:
                    break
            self.assertEqual([it.value for it in told], [b"here", None])

    async def test_what_comes_as_a_task_is_cancelled_is_told_to_the_next(self):
        metadata, prefix = self.store.metadata, f"service/{StoreCase.unused_name()}/"
        calls, revision = metadata._calls, (await metadata.list(prefix)).revision
        async with metadata.watch(prefix, after=revision) as watch:
            waiting = asyncio.ensure_future(watch.changed())
            await asyncio.sleep(0)
            # Nobody waits for this. It is told without the task having a chance to go on.
            metadata._inner.put(prefix + "a", b"")
            while calls._futures:
                time.sleep(0.001)
                calls._take()
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            (change,) = (await watch.changed(LONG)).changes
            self.assertEqual(change.path, prefix + "a")


load_tests = on_each_store(Metadata, AsyncMetadata)

if __name__ == "__main__":
    unittest.main()
