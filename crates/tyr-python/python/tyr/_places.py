"""Stores by their places, for what is made of words alone: file systems by their URLs, arrays that
were pickled. A process has each place open once, until it ends."""

import os
import threading
from typing import Any

import tyr

_lock = threading.Lock()
_stores: dict[Any, "tyr.Store"] = {}


def store_at(place: "str | os.PathLike[str]", **options: Any) -> "tyr.Store":
    """The store at a place: a folder, or a cluster's address `tyr://...`."""
    place = os.fspath(place)
    is_cluster = place.startswith("tyr://")
    known = (place if is_cluster else os.path.abspath(place), tuple(sorted(options.items())))
    with _lock:
        store = _stores.get(known)
        if store is None or store.is_closed:
            store = tyr.connect(place, **options) if is_cluster else tyr.open(place, **options)
            _stores[known] = store
        return store


def place_of_environment(place: "str | None") -> str:
    """The place that was given, or that TYR_DATA names."""
    found = place or os.environ.get("TYR_DATA")
    if not found:
        raise ValueError("give place=, a folder or an address tyr://host:port, or set TYR_DATA")
    return found
