"""What a call at one mount did, the next call at the other sees: so many pairs of such calls.

Usage: stale.py ONE TWO PAIRS. ONE and TWO are directories of two mounts of one file system. Prints
how often each kind of change was made and looked for; ends with 1 and what was seen at the first
look that saw something older.
"""

import mmap
import os
import sys
import time
from collections import Counter

LEN = 3 * mmap.PAGESIZE
# Three files are open at both mounts all the time, and in the kernel's cache at both.
FILES = 3


class Stale(Exception):
    pass


def expect(what, seen, wanted):
    if seen != wanted:
        raise Stale(f"{what}: {seen!r}, not {wanted!r}")


class Side:
    """A mount, with its files open and one of them mapped."""

    def __init__(self, at):
        self.at = at
        self.files = [os.open(f"{at}/file{n}", os.O_RDWR) for n in range(FILES)]
        self.mapped = mmap.mmap(self.files[0], LEN)
        for file in self.files:
            os.pread(file, LEN, 0)

    def close(self):
        self.mapped.close()
        for file in self.files:
            os.close(file)


def write(writer, reader, n):
    word, at = n.to_bytes(8, "big"), n * 8 % (LEN - 8)
    os.pwrite(writer.files[n % FILES], word, at)
    expect("pwrite, pread", os.pread(reader.files[n % FILES], 8, at), word)


def write_and_put_times_back(writer, reader, n):
    word, at, file = n.to_bytes(8, "big"), n * 8 % (LEN - 8), writer.files[n % FILES]
    before = os.fstat(file)
    os.pwrite(file, word, at)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    expect("pwrite, futimens, pread", os.pread(reader.files[n % FILES], 8, at), word)
    expect("futimens, fstat", os.fstat(reader.files[n % FILES]).st_mtime_ns, before.st_mtime_ns)


def store_mapped(writer, reader, n):
    word, at = n.to_bytes(8, "big"), n * 8 % (LEN - 8)
    writer.mapped[at : at + 8] = word
    writer.mapped.flush()
    expect("store, msync, pread", os.pread(reader.files[0], 8, at), word)


def load_mapped(writer, reader, n):
    word, at = n.to_bytes(8, "big"), n * 8 % (LEN - 8)
    os.pwrite(writer.files[0], word, at)
    # A load is no call: it sees what the last call for this file saw.
    os.fstat(reader.files[0])
    expect("pwrite, fstat, load", reader.mapped[at : at + 8], word)


def cut_and_extend(writer, reader, n):
    file, other = writer.files[1], reader.files[1]
    os.ftruncate(file, LEN - 1 - n % mmap.PAGESIZE)
    expect("ftruncate, fstat", os.fstat(other).st_size, LEN - 1 - n % mmap.PAGESIZE)
    os.ftruncate(file, LEN)
    tail = 1 + n % mmap.PAGESIZE
    expect("ftruncate, pread", os.pread(other, tail + 1, LEN - tail), bytes(tail))


def make_and_remove(writer, reader, n):
    name = f"made{n % 5}"
    os.close(os.open(f"{writer.at}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    expect("open, stat", os.stat(f"{reader.at}/{name}").st_size, 0)
    os.unlink(f"{reader.at}/{name}")
    expect("unlink, stat", os.path.exists(f"{writer.at}/{name}"), False)


def replace(writer, reader, n):
    word = n.to_bytes(8, "big")
    with open(f"{writer.at}/new", "wb") as file:
        file.write(word)
    os.rename(f"{writer.at}/new", f"{writer.at}/replaced")
    with open(f"{reader.at}/replaced", "rb") as file:
        expect("rename, read", file.read(), word)


def change_rights(writer, reader, n):
    os.fchmod(writer.files[2], 0o600 | n % 8)
    expect("fchmod, fstat", os.fstat(reader.files[2]).st_mode & 0o777, 0o600 | n % 8)


KINDS = [
    (write, 8),
    (write_and_put_times_back, 1),
    (store_mapped, 2),
    (load_mapped, 2),
    (cut_and_extend, 1),
    (make_and_remove, 1),
    (replace, 1),
    (change_rights, 1),
]


def main():
    one, two, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for n in range(FILES):
        with open(f"{one}/file{n}", "wb") as file:
            file.write(bytes(LEN))
    sides = [Side(one), Side(two)]
    plan = [kind for kind, weight in KINDS for _ in range(weight)]
    done, begin, told = Counter(), time.monotonic(), time.monotonic()
    for n in range(1, pairs + 1):
        # By turns: who looked writes next, so that both have what they look at in their cache.
        kind = plan[n // 2 * 7 % len(plan)]
        try:
            kind(sides[n % 2], sides[(n + 1) % 2], n)
        except Stale as stale:
            print(f"pair {n}: {stale}")
            sys.exit(1)
        done[kind.__name__] += 1
        if time.monotonic() > told + 30:
            told = time.monotonic()
            print(f"{n} of {pairs} after {told - begin:.0f} s", flush=True)
    for side in sides:
        side.close()
    parts = ", ".join(f"{name} {count}" for name, count in sorted(done.items()))
    print(f"{pairs} pairs, none stale, in {time.monotonic() - begin:.1f} s: {parts}")


main()
