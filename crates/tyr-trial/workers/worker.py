"""A client of a trial in Python: `worker.py MODE PLACE KEYSPACE...`.

What it is told and what it answers is in src/worker/order.rs. MODE is `blocking`, for the package
`tyr`, or `started`, for `tyr.aio`, whose event loop then runs for each order.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tyr
import tyr.aio

KINDS = [
    tyr.NotFound,
    tyr.AlreadyExists,
    tyr.Conflict,
    tyr.TimedOut,
    tyr.SnapshotTooOld,
    tyr.InvalidArgument,
    tyr.PermissionDenied,
    tyr.QuotaExceeded,
    tyr.Corrupt,
    tyr.Unavailable,
]


class Client:
    """Calls as they are written here; `wait` is what makes an answer of what a call gives."""

    def __init__(self, wait: Callable[[Any], Any], store: Any, keyspaces: list[Any]) -> None:
        self.wait, self.store, self.keyspaces = wait, store, keyspaces
        self.open: Any = None
        self.changes: list[tuple[Any, str]] = []
        self.last: tyr.TimedOut | None = None

    def wanted(self, words: Iterator[str]) -> tuple[Any, str, int, int]:
        return self.keyspaces[int(next(words))], next(words), int(next(words)), int(next(words))

    def all_wanted(self, words: list[str]) -> list[tuple[Any, str, int, int]]:
        left = iter(words)
        return [self.wanted(left) for _ in range(len(words) // 4)]

    def read(self, words: list[str]) -> list[str]:
        keyspace, key, start, length = self.wanted(iter(words))
        return [told(lambda: self.wait(keyspace.read(key, start, length)))]

    def size(self, words: list[str]) -> list[str]:
        try:
            return [str(self.wait(self.keyspaces[int(words[0])].stat(words[1])).size)]
        except tyr.NotFound:
            return ["0"]

    def many(self, words: list[str]) -> list[str]:
        found = self.wait(self.store.read_many(self.all_wanted(words)))
        return ["-" if it is None else "=" + it.hex() for it in found]

    def snapshot(self, words: list[str]) -> list[str]:
        snapshot = self.wait(self.store.snapshot())
        try:
            return [
                told(lambda: self.wait(snapshot.read(keyspace, key, start, length)))
                for keyspace, key, start, length in self.all_wanted(words)
            ]
        finally:
            snapshot.release()

    def begin(self, _words: list[str]) -> list[str]:
        if self.open is not None:
            self.open.rollback()
        self.open = self.store.begin()
        return []

    def read_in(self, words: list[str]) -> list[str]:
        keyspace, key, start, length = self.wanted(iter(words))
        return [told(lambda: self.wait(self.open.read(keyspace, key, start, length)))]

    def commit(self, words: list[str]) -> list[str]:
        transaction = self.open or self.store.begin()
        self.open, self.last, self.changes = None, None, []
        left = iter(words)
        for verb in left:
            keyspace, key, last = self.keyspaces[int(next(left))], next(left), next(left)
            match verb:
                case "append":
                    change = transaction.append(keyspace, key, bytes.fromhex(last[1:]))
                case "put":
                    change = transaction.put(keyspace, key, bytes.fromhex(last[1:]))
                case "compare":
                    change = transaction.compare(keyspace, key, 0, bytes.fromhex(last[1:]))
                case "add":
                    add = tyr.Transform.add("u64", int(last))
                    change = transaction.apply(keyspace, key, 0, add)
                case _:
                    raise SystemExit(f"no such change: {verb}")
            self.changes.append((change, verb))
        return self.ended(transaction.commit)

    def outcome(self, _words: list[str]) -> list[str]:
        error, self.last = self.last, None
        if error is None:
            raise tyr.InvalidArgument("the outcome of the last commit is known")
        return self.ended(lambda: self.store.outcome(error))

    def ended(self, call: Callable[[], Any]) -> list[str]:
        try:
            committed = self.wait(call())
        except tyr.TimedOut as error:
            self.last = error
            raise
        answers = []
        for change, verb in self.changes:
            match verb:
                case "append":
                    answers.append(str(committed.offset(change)))
                case "add":
                    answers.append(str(committed.value(change)))
                case _:
                    answers.append(".")
        return answers

    def follow(self, line: str) -> str:
        verb, *words = line.split()
        orders: dict[str, Callable[[list[str]], list[str]]] = {
            "read": self.read,
            "size": self.size,
            "many": self.many,
            "snapshot": self.snapshot,
            "begin": self.begin,
            "in": self.read_in,
            "commit": self.commit,
            "outcome": self.outcome,
        }
        try:
            return " ".join(["ok", *orders[verb](words)])
        except tyr.Error as error:
            kinds = [kind.__name__ for kind in KINDS if isinstance(error, kind)]
            return f"error {(kinds or ['Corrupt'])[0]} " + str(error).replace("\n", " ")


def told(call: Callable[[], bytes]) -> str:
    try:
        return "=" + call().hex()
    except tyr.NotFound:
        return "-"


def found(store: tyr.Store, name: str) -> tyr.Keyspace:
    try:
        return store.keyspace(name)
    except tyr.NotFound:
        return store.create_keyspace(name)


def serve(client: Client) -> None:
    print("ok", flush=True)
    for line in sys.stdin:
        print(client.follow(line), flush=True)


def main(mode: str, place: str, *names: str) -> None:
    is_cluster = place.startswith("tyr://")
    if mode == "blocking":
        with tyr.connect(place) if is_cluster else tyr.open(place) as store:
            keyspaces = [found(store, name) for name in names]
            serve(Client(lambda answer: answer, store, keyspaces))
        return
    with asyncio.Runner() as runner:

        async def start() -> tuple[Any, list[Any]]:
            store = await (tyr.aio.connect(place) if is_cluster else tyr.aio.open(place))
            keyspaces = []
            for name in names:
                try:
                    keyspaces.append(await store.keyspace(name))
                except tyr.NotFound:
                    keyspaces.append(await store.create_keyspace(name))
            return store, keyspaces

        def wait(answer: Any) -> Any:
            async def whole() -> Any:
                return await answer

            return runner.run(whole())

        store, keyspaces = runner.run(start())
        serve(Client(wait, store, keyspaces))
        runner.run(store.close())


main(*sys.argv[1:])
