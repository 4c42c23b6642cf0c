"""A program whose cluster dies: it says `ready`, is told so by a line, and ends with what it got."""

import os
import signal
import sys
import threading
import time

import tyr

store = tyr.connect(sys.argv[1], timeout=3.0)
data = store.keyspace("python-dying", create=True)
data.put("a", b"one")
t = store.begin()
t.put(data, "b", b"two")
print("ready", flush=True)
sys.stdin.readline()

begun = time.monotonic()
for call in (lambda: data.put("a", b"late"), lambda: data.get("a"), t.commit):
    try:
        call()
        sys.exit("a call was answered by nobody")
    except (tyr.Unavailable, tyr.TimedOut) as error:
        assert str(error), "it has words"
assert time.monotonic() - begun < 60, "calls end in time"

patient = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
patient.start()
try:
    store.snapshot().get(data, "a")
    sys.exit("a read was answered by nobody")
except KeyboardInterrupt:
    print("interrupted")
except (tyr.Unavailable, tyr.TimedOut):
    print("ended")
patient.join()
store.close()
