"""Týr, a transactional blob store.

A store is a folder that this process opens, or a cluster that it connects to. It has keyspaces of
blobs: sparse arrays of bytes, named by keys, written at any byte. Transactions are over any blobs.

Every function and method blocks the thread that calls it until it has its answer, without Python's
lock; Ctrl-C gets through. `tyr.aio` is the same for asyncio.
"""

from tyr._errors import (
    AlreadyExists,
    Bug,
    Closed,
    Conflict,
    Corrupt,
    Error,
    Forked,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    QuotaExceeded,
    SnapshotTooOld,
    TimedOut,
    Unavailable,
)
from tyr._streams import BlobReader, BlobWriter, open_blob
from tyr._tyr import (
    Committed,
    Entries,
    Entry,
    Keyspace,
    Operation,
    Page,
    Snapshot,
    Stat,
    Store,
    Transaction,
    Transform,
    Version,
    connect,
    open,
)

__all__ = [
    "AlreadyExists",
    "BlobReader",
    "BlobWriter",
    "Bug",
    "Closed",
    "Committed",
    "Conflict",
    "Corrupt",
    "Entries",
    "Entry",
    "Error",
    "Forked",
    "InvalidArgument",
    "Keyspace",
    "NotFound",
    "Operation",
    "Page",
    "PermissionDenied",
    "QuotaExceeded",
    "Snapshot",
    "SnapshotTooOld",
    "Stat",
    "Store",
    "TimedOut",
    "Transaction",
    "Transform",
    "Unavailable",
    "Version",
    "connect",
    "open",
    "open_blob",
]
