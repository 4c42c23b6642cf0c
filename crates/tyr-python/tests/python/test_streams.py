"""Blobs as files."""

import gc
import io
import shutil
import unittest

import tyr
from support import StoreCase, on_each_store

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


load_tests = on_each_store(Streams)

if __name__ == "__main__":
    unittest.main()
