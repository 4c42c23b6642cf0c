"""Makes calls as it is told, for `cargo xtask steady` and `call-costs`, whose
`xtask/src/callers.rs` has the words. The arguments are a folder, the cache in MiB, and a seed."""

import asyncio
import math
import random
import sys

import tyr
import tyr.aio

BLOBS, READ, OPERATIONS, UNDER_WAY = 1000, 800, 6, 32
KEYS, PAYLOAD_MAX, LOG_MAX = 256, 4096, 64 << 10


class Caller:
    def __init__(self, store, runner, seed):
        self.store, self.runner = store, runner
        # In Python's development mode it would complain of a machine that is busy.
        runner.get_loop().slow_callback_duration = math.inf
        self.memory = store.create_keyspace("memory", durability="memory")
        self.buffered = store.create_keyspace("buffered", durability="buffered")
        self.random = random.Random(seed)
        self.keys = [f"key {at}" for at in range(BLOBS)]
        self.others = [f"other {at}" for at in range(BLOBS)]
        self.large_buffer = bytearray(4 << 20)
        for key in self.keys:
            self.memory.put(key, bytes(4096))
        self.memory.put("large", self.large_buffer)

    def read(self, count):
        read, keys = self.memory.read, self.keys
        for at in range(count):
            assert len(read(keys[at % BLOBS], 1024, READ)) == READ

    def put(self, count):
        put, keys, data = self.memory.put, self.others, bytes(100)
        for at in range(count):
            put(keys[at % BLOBS], data)

    def transaction(self, count):
        memory, keys, data = self.memory, self.others, bytes(100)
        for at in range(count):
            with self.store.begin() as t:
                for place in range(OPERATIONS):
                    t.put(memory, keys[(at + place) % BLOBS], data)

    def large(self, count):
        for _ in range(count):
            assert self.memory.read_into("large", 0, self.large_buffer) == len(self.large_buffer)

    def run_async(self, count):
        self.runner.run(self.read_beside(count))

    async def read_beside(self, count):
        memory, keys = tyr.aio.here(self.memory), self.keys

        async def read_some(some):
            for at in range(some):
                assert len(await memory.read(keys[at % BLOBS], 1024, READ)) == READ

        await asyncio.gather(*(read_some((count + at) // UNDER_WAY) for at in range(UNDER_WAY)))

    def mix(self, count):
        self.runner.run(self.mix_in_the_loop(count))

    async def mix_in_the_loop(self, count):
        data, made = tyr.aio.here(self.buffered), 0
        while made < count:
            if self.random.randrange(16) == 0:
                made += await self.start_some(data)
            else:
                self.wait_for_one(self.buffered)
                made += 1

    def any_key(self):
        return self.keys[self.random.randrange(KEYS)]

    def payload(self):
        return bytes(self.random.randrange(PAYLOAD_MAX))

    def wait_for_one(self, data):
        key = self.any_key()
        try:
            match self.random.randrange(10):
                case 0 | 1:
                    data.read(key, self.random.randrange(2000), READ)
                case 2:
                    data.get(key)
                case 3:
                    data.put(key, self.payload())
                case 4:
                    data.delete(key)
                case 5:
                    if data.append("log", self.payload()) > LOG_MAX:
                        data.truncate("log", 0)
                case 6:
                    data.apply("n", 0, tyr.Transform.add("u64", 1))
                case 7:
                    data.scan_page(limit=20)
                case 8:
                    with self.store.snapshot() as snapshot:
                        snapshot.get(data, key)
                case _:
                    self.store.transact(self.write_and_look, key)
        except tyr.NotFound as none:
            assert str(none)

    def write_and_look(self, t, key):
        t.put(self.buffered, self.any_key(), self.payload())
        t.stat(self.buffered, key)

    def call(self, data):
        key = self.any_key()
        match self.random.randrange(8):
            case 0:
                return data.get(key)
            case 1 | 2:
                return data.put(key, self.payload())
            case 3:
                return data.delete(key)
            case 4:
                return data.stat(key)
            case 5:
                return data.apply("n", 0, tyr.Transform.add("u64", 1))
            case 6:
                return data.scan_page(limit=20)
            case _:
                return data.read(key, self.random.randrange(2000), PAYLOAD_MAX)

    async def start_some(self, data):
        """Calls as tasks, of which some are cancelled once all have been started."""
        count = 1 + self.random.randrange(UNDER_WAY)
        tasks = [asyncio.ensure_future(self.call(data)) for _ in range(count)]
        if self.random.randrange(4) > 0:
            await asyncio.sleep(0)
        for task in tasks:
            if self.random.randrange(4) == 0:
                task.cancel()
        for answer in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(answer, BaseException):
                assert isinstance(answer, tyr.NotFound | asyncio.CancelledError), repr(answer)
        return count


def main():
    folder, cache_mib, seed = sys.argv[1:]
    with (
        asyncio.Runner() as runner,
        tyr.open(folder, cache_bytes=int(cache_mib) << 20) as store,
    ):
        caller = Caller(store, runner, int(seed))
        kinds = {
            "read": caller.read,
            "put": caller.put,
            "transaction": caller.transaction,
            "async": caller.run_async,
            "large": caller.large,
            "mix": caller.mix,
        }
        print("ready", flush=True)
        for line in sys.stdin:
            kind, count = line.split()
            kinds[kind](int(count))
            print("done", flush=True)


main()
