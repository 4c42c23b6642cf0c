"""Blobs as files."""

import asyncio
import gc
import io
import shutil
import unittest

import tyr
from support import AsyncStoreCase, StoreCase, on_each_store

#: More than the pieces that files are read and written in.
LONG = 9 << 20


def content(length):
    return (bytes(range(251)) * (length // 251 + 1))[:length]


class Streams(StoreCase):
    def test_what_is_written_is_read_back_anywhere(self):
        whole = content(LONG)
        with tyr.open_blob(self.data, "a", "wb") as file:
            shutil.copyfileobj(io.BytesIO(whole), file, 1 << 20)
            self.assertEqual(file.tell(), LONG)
            with self.assertRaises(tyr.NotFound):
                self.data.stat("a")
        self.assertEqual(self.data.get("a"), whole)
        with tyr.open_blob(self.data, "a") as file:
            self.assertEqual(file.raw.size, LONG)
            self.assertEqual(file.read(10), whole[:10])
            self.assertEqual(file.seek(-7, io.SEEK_END), LONG - 7)
            self.assertEqual(file.read(), whole[-7:])
            self.assertEqual(file.read(1), b"")
            file.seek(5 << 20)
            self.assertEqual(file.read(300), whole[5 << 20 :][:300])
            file.seek(LONG + 5)
            self.assertEqual(file.read(), b"")
            file.seek(0)
            self.assertEqual(file.read(), whole)

    def test_a_reader_keeps_its_version(self):
        self.data.put("a", content(LONG))
        with tyr.open_blob(self.data, "a") as file:
            self.assertEqual(file.read(4), content(4))
            version = file.raw.version
            self.data.put("a", b"new")
            file.seek(8 << 20)
            self.assertEqual(file.read(), content(LONG)[8 << 20 :])
        self.assertLess(version, self.data.stat("a").version)
        with tyr.open_blob(self.data, "a") as file:
            self.assertEqual(file.readlines(), [b"new"])

    def test_what_is_not_closed_was_not_written(self):
        self.data.put("a", b"old")
        with self.assertRaises(ZeroDivisionError):
            with tyr.open_blob(self.data, "a", "wb") as file:
                file.write(content(LONG))
                raise ZeroDivisionError
        self.assertTrue(file.closed)
        forgotten = tyr.open_blob(self.data, "a", "wb")
        forgotten.write(b"forgotten")
        del forgotten
        gc.collect()
        given_up = tyr.open_blob(self.data, "a", "ab")
        given_up.write(b"given up")
        given_up.discard()
        with self.assertRaises(ValueError):
            given_up.write(b"more")
        self.assertEqual(self.data.get("a"), b"old")

    def test_modes_are_those_of_files(self):
        for text in (b"one\n", b"two\n", b""):
            with tyr.open_blob(self.data, "log", "ab") as file:
                file.write(text)
        self.assertEqual(self.data.get("log"), b"one\ntwo\n")
        with tyr.open_blob(self.data, "log", "wb"):
            pass
        self.assertEqual(self.data.get("log"), b"")
        late = tyr.open_blob(self.data, "log", "xb")
        late.write(b"late")
        with self.assertRaises(tyr.AlreadyExists):
            late.close()
        self.assertTrue(late.closed)
        with tyr.open_blob(self.data, "new", "xb") as file:
            file.write(memoryview(content(40_000))[::2])
        self.assertEqual(self.data.get("new"), content(40_000)[::2])
        with self.assertRaises(tyr.NotFound):
            tyr.open_blob(self.data, "none")
        for mode in ("r", "rb+", "w", ""):
            with self.assertRaises(ValueError):
                tyr.open_blob(self.data, "log", mode)

    def test_an_append_comes_after_what_others_appended_meanwhile(self):
        file = tyr.open_blob(self.data, "log", "ab")
        file.write(content(LONG))
        self.data.append("log", b"first")
        file.close()
        self.assertEqual(self.data.get("log"), b"first" + content(LONG))

    def test_what_comes_in_pieces_is_written_in_one_transaction(self):
        data, whole = self.data, content(LONG)

        def pieces():
            for start in range(0, LONG, 1 << 20):
                with self.assertRaises(tyr.NotFound):
                    data.stat("a")
                yield memoryview(whole)[start : start + (1 << 20)]
            yield b""

        self.assertEqual(data.put_stream("a", pieces()), LONG)
        self.assertEqual(data.get("a"), whole)
        self.assertEqual(data.write_stream("a", 3, [bytearray(b"one"), b"two"]), 6)
        self.assertEqual(data.get("a"), whole[:3] + b"onetwo" + whole[9:])
        self.assertEqual(data.append_stream("a", iter([b"the ", b"end"])), LONG)
        self.assertEqual(data.read("a", LONG, 99), b"the end")
        self.assertEqual(data.put_stream("a", []), 0)
        self.assertEqual(data.get("a"), b"")

    def test_pieces_that_end_with_an_exception_are_not_written(self):
        self.data.put("a", b"old")

        def pieces(last):
            yield content(LONG)
            yield last()

        with self.assertRaises(ZeroDivisionError):
            self.data.put_stream("a", pieces(lambda: 1 / 0))
        for wrong in (lambda: "text", lambda: 7):
            with self.assertRaisesRegex(TypeError, "bytes-like"):
                self.data.append_stream("a", pieces(wrong))
        with self.assertRaisesRegex(TypeError, "iterable"):
            self.data.put_stream("a", 7)
        with self.assertRaises(tyr.InvalidArgument):
            self.data.put_stream("", [])
        self.assertEqual(self.data.get("a"), b"old")


class AsyncStreams(AsyncStoreCase):
    async def pieces(self, whole):
        for start in range(0, len(whole), 1 << 20):
            await asyncio.sleep(0)
            yield whole[start : start + (1 << 20)]

    async def test_what_comes_in_pieces_is_written_in_an_event_loop(self):
        data, whole = self.data, content(LONG)
        both = asyncio.gather(
            data.put_stream("a", self.pieces(whole)), data.put_stream("b", [b"one", b"two"])
        )
        self.assertEqual(await both, [LONG, 6])
        self.assertEqual(await data.get("a"), whole)
        self.assertEqual(await data.append_stream("b", self.pieces(b"three")), 6)
        self.assertEqual(await data.write_stream("b", 3, [b"TWO"]), 3)
        self.assertEqual(await data.get("b"), b"oneTWOthree")
        self.assertEqual(await data.put_stream("b", []), 0)

    async def test_pieces_that_do_not_all_come_are_not_written(self):
        data, wanted = self.data, asyncio.Event()
        await data.put("a", b"old")

        async def pieces(end):
            yield content(LONG)
            await end()

        async def never():
            wanted.set()
            await asyncio.Event().wait()

        async def wrong():
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            await data.put_stream("a", pieces(wrong))
        with self.assertRaisesRegex(TypeError, "bytes-like"):
            await data.put_stream("a", ["text"])
        for unused in ([], [b"one"]):
            with self.assertRaises(tyr.InvalidArgument):
                await data.put_stream("", unused)
        writing = asyncio.ensure_future(data.put_stream("a", pieces(never)))
        await wanted.wait()
        writing.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await writing
        self.assertEqual(await data.get("a"), b"old")


load_tests = on_each_store(Streams, AsyncStreams)

if __name__ == "__main__":
    unittest.main()
