"""The exceptions: one class a kind of error. Their text says what was wrong and what to do.

Where Python has a class for the same, ours is one of it too: `except TimeoutError` catches
`tyr.TimedOut`. State changes only when there is no exception, but after `TimedOut`, which leaves it
open, and where a call is interrupted or cancelled that was to change something.
"""


class Error(Exception):
    """What Týr raises."""

    #: The key of the blob it is about, where it is about one.
    key: "bytes | None" = None
    #: The condition that did not hold, as `Operation.id` has it.
    operation: "tuple[int, int] | None" = None


class NotFound(Error, LookupError):
    """There is no such blob or keyspace."""


class AlreadyExists(Error):
    """There is such a blob or keyspace."""


class Conflict(Error):
    """Something that was read has changed, or a condition does not hold. Run the transaction again."""


class Unavailable(Error):
    """The store, a disk or a node cannot do it now. Nothing changed."""


class Closed(Unavailable, ValueError):
    """The store was closed in this process."""


class Forked(Unavailable, RuntimeError):
    """This process was forked of one that used Týr."""


class TimedOut(Error, TimeoutError):
    """Nobody said in time what became of it: `Store.outcome` asks again."""


class SnapshotTooOld(Error):
    """What was to be read is no longer kept. Run the transaction again, take another snapshot."""


class InvalidArgument(Error, ValueError):
    """The request itself is wrong."""


class PermissionDenied(Error, PermissionError):
    """The cluster does not let this user do it."""


class QuotaExceeded(Error):
    """The keyspace is as large as it may be."""


class Corrupt(Error):
    """What is on disk is damaged; the text names file and place."""


class Bug(Error):
    """An invariant of Týr is broken: stop this process."""
