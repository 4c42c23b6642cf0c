"""Stores that tests run on: a folder of its own for each test, and the cluster that the environment
names as TYR_TEST_CLUSTER, where each test has keyspaces of its own."""

import itertools
import os
import tempfile
import unittest

import tyr
import tyr.aio

CLUSTER = os.environ.get("TYR_TEST_CLUSTER")

_numbers = itertools.count()


class StoreCase(unittest.TestCase):
    """A test with an empty keyspace `data` of a store."""

    is_cluster = False

    def setUp(self):
        if self.is_cluster:
            self.place = CLUSTER
            self.store = tyr.connect(CLUSTER)
        else:
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            self.place = os.path.join(folder.name, "store")
            self.store = tyr.open(self.place)
        self.addCleanup(self.store.close)
        self.data = self.store.create_keyspace(self.unused_name())

    @staticmethod
    def unused_name():
        return f"python-{os.getpid()}-{next(_numbers)}"


class AsyncStoreCase(unittest.IsolatedAsyncioTestCase):
    """The same in an event loop."""

    is_cluster = False

    async def asyncSetUp(self):
        if self.is_cluster:
            self.place = CLUSTER
            self.store = await tyr.aio.connect(CLUSTER)
        else:
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            self.place = os.path.join(folder.name, "store")
            self.store = await tyr.aio.open(self.place)
        self.addAsyncCleanup(self.store.close)
        self.data = await self.store.create_keyspace(StoreCase.unused_name())


def on_each_store(*cases):
    """The tests of classes on a folder, and on the cluster where there is one."""

    def load_tests(loader, _tests, _pattern):
        suite = unittest.TestSuite()
        for case in cases:
            suite.addTests(loader.loadTestsFromTestCase(case))
            if CLUSTER:
                name = f"{case.__name__}OnACluster"
                case = type(name, (case,), {"is_cluster": True})
                suite.addTests(loader.loadTestsFromTestCase(case))
        return suite

    return load_tests
