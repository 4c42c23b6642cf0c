#!/usr/bin/env python3
"""Executable model of the commit, read and recovery protocols (rules C1-C9, R1-R6, F1-F7; see commit.md, read.md).

Objects stand for chunks.  A write appends the transaction's id to a list, so every read shows the exact order
in which writes took effect.  The scheduler delivers messages in random order (no FIFO links), crashes nodes for
good, and installs new cluster maps at each node at a random time.  The checker then builds the dependency graph
(write-write, write-read, read-write, real time) and looks for a cycle; it also compares replicas, checks that every
committed transaction is everywhere and no aborted one anywhere, that write-only transactions never abort, and that
everything is answered.

    pypy3 commit_model.py FIRST_SEED LAST_SEED [--nodes N] [--replicas R] [--chunks C] [--reads N] [--snapshots N]
        [--crashes N] [--loss P] [--power N] [--lag] [--break SWITCH] [--until-bad]

--loss is the probability that a message disappears; what stays open is then asked about (F6).  --power loses the
power of all nodes at once: messages and memory are gone, decisions perhaps; proposals, promises and aborts stay.
--lag lets clients use the map of any live node.  Crashes must be fewer than replicas (F7).

Rules that chunks on disjoint nodes and repeated attempts need:

C9  The anchors of a transaction are the authorities of the chunks that it writes.  It is ordered at an anchor when
    its decision is known there and all that comes before it on what it writes there is shown: overlapping writes
    of lower timestamps, and decided transactions of lower timestamps that read what it writes.  A node that is the
    authority of something the transaction writes or reads shows (applies) it when the backward message has come
    and it is ordered at every anchor.  The tail tells each anchor the decision (ANCHOR); once ordered, the anchor
    tells the authorities after it in the chain (ANCHORED).  Those after a node are known by the backward message.
    ANCHOR and a forward message with a known decision record the decision; neither applies anything.
C2  waits for the decision only; that the reader is shown first is the business of C9.
F2  An attempt is (epoch, number, coordinator).  The coordinator asks all live nodes of the old and new chain,
    itself too.  A node answers with what it knows: COMMIT, ABORT, or validated (attempt, proposal, chain), and
    promises to take part in no older attempt.  Claims stay.  Attempts not above the promise are ignored, but for
    the very same query while no forward message of it has come.
F3  Any COMMIT: forward pass with the decision.  Else any ABORT: told to all.  Else, if all nodes of one attempt's
    chain validated in it, it is decided at the highest of those proposals (C5).  Else RESET to all, which drops
    the claims of older attempts, and a forward pass from scratch, validated everywhere like a new arrival.

--break takes one rule away, and the checker must notice (some need a crash or loss, and thousands of seeds):
  no-C1 no-C2 no-C6 early-ack(C7) dirty-read(R1) no-wait(R1) unstable(R2) snap-no-wait(R5)
  no-F2(loss) old-proposals(F1,F3; 2 crashes) blind-retry forget-abort(F4; loss)
  no-C9          apply on the backward message alone
  no-C9-C2       decided readers do not count as coming before a write
  anchor-knows   an anchor answers when it knows the decision, whatever comes before it there
  one-anchor     only the first authority is an anchor
  early-reset    claims dropped when a query is answered, before it is known that nobody decided
  no-C5          validated everywhere in one attempt is not taken for decided (power)
Not noticed so far, kept to try with:
  early-apply    ANCHOR, or a forward pass that knows, counts as the backward message
  C2-anchored    C2 waits until the reader may be shown
  same-attempts  attempts without the coordinator
  no-reset       older claims stay, and are only proposed afresh
"""
import argparse, random
from collections import defaultdict

SWITCHES = """no-C1 no-C2 no-C6 early-ack dirty-read no-wait unstable snap-no-wait no-F2 old-proposals blind-retry
forget-abort no-C9 no-C9-C2 C2-anchored anchor-knows one-anchor early-apply same-attempts no-reset early-reset no-C5""".split()

FREE, WAIT, VAL, DEC, ABORT = "free", "wait", "validated", "decided", "aborted"
NEVER = (-1, 0, 0)                                # an attempt is (epoch, number, coordinator)

class Tx:
    def __init__(s, tid, reads, writes, client):
        s.tid, s.reads, s.writes, s.client = tid, reads, writes, client  # reads: {obj: list seen}

class Rec:
    def __init__(s, tx, chain):
        s.tx, s.chain = tx, chain
        s.state, s.p, s.f = FREE, 0, None
        s.pep, s.pchain = NEVER, chain            # attempt and chain that it was validated in
        s.back, s.open = False, False             # the backward message came; shown once, so for good (C9)
        s.ordered = set()                         # authorities at which all that comes before it is shown
        s.applied = set()
        s.stable = set()

class Node:
    def __init__(s, w, i):
        s.w, s.i = w, i
        s.alive, s.epoch, s.up = True, 0, set(range(w.N))
        s.clock = w.rng.randrange(5) * 10
        s.recs, s.objs = {}, defaultdict(list)   # objs: obj -> [(ts, tid)]
        s.waiting = []                            # forward messages parked
        s.reads = []                              # parked reads at the authority
        s.held = []                               # decided, backward pass held until applied
        s.asked = []                              # anchors asked for, not ordered yet
        s.recov, s.fences = {}, {}                # fences: also for transactions not seen here yet
        s.begun = {}                              # the last attempt of which a forward message came

    def replicas(s, o): return [n for n in s.w.place[o] if n in s.up]
    def authority(s, o): return s.replicas(o)[0]

    # -- forward pass ------------------------------------------------------
    def on_F(s, tx, chain, ep, pmax, known):
        if ep[0] > s.epoch: return s.w.requeue(s.i, "F", tx, chain, ep, pmax, known)
        if any(n not in s.up for n in chain): return            # re-driven under a newer map
        r = s.recs.get(tx.tid)
        if r is None: r = s.recs[tx.tid] = Rec(tx, chain)
        if known is None:
            if ep < s.fence(tx.tid) and s.w.bug != "no-F2": return
            if r.state == DEC or r.state == VAL and r.pep == ep: return
            s.fences[tx.tid] = s.begun[tx.tid] = max(ep, s.fence(tx.tid))
        r.chain = chain
        if known is not None: s.decide(r, known)
        elif r.state == VAL and s.w.bug in ("old-proposals", "no-reset"):
            if s.w.bug == "no-reset": s.propose(r, chain, ep)
            pmax = max(pmax, r.p)
        else:
            if r.state == ABORT and s.w.bug != "forget-abort": return s.back(r, chain, ep, None)
            r.state = FREE                                      # like a new arrival
            r.state = s.validate(r)
            if r.state == WAIT: s.waiting.append((tx, chain, ep, pmax)); return
            if r.state == ABORT: return s.back(r, chain, ep, None)
            s.propose(r, chain, ep)
            pmax = max(pmax, r.p)
        k = chain.index(s.i)
        if k + 1 < len(chain):
            s.w.send(s.i, chain[k + 1], "F", tx, chain, ep, pmax, known)
            if known is not None and s.w.bug == "early-apply": r.back = True
        else:
            if known is None: s.decide(r, pmax)
            s.send_anchor(r, chain, ep)
            s.after_decision(r, chain, ep)

    def fence(s, tid): return s.fences.get(tid, NEVER)

    def propose(s, r, chain, ep):
        s.clock += 1
        r.state, r.p, r.pep, r.pchain = VAL, s.clock, ep, chain

    def validate(s, r):
        t = r.tx
        for o in t.reads:
            if s.authority(o) != s.i: continue
            # stale if a newer write was applied, or any other writer is in flight here
            if [x for _, x in s.objs[o]] != t.reads[o]: return ABORT
            for q in s.recs.values():
                if q is not r and o in q.tx.writes and (q.state == VAL or (q.state == DEC and not s.shown(q, o))):
                    if s.w.bug != "no-C1": return ABORT
        for o in t.writes:
            if s.i not in s.replicas(o): continue
            for q in s.recs.values():
                if q is r or o not in q.tx.reads or s.authority(o) != s.i: continue
                late = q.state == DEC and s.w.bug == "C2-anchored" and not s.gate(q)
                if (q.state == VAL or late) and s.w.bug != "no-C2": return WAIT
        return VAL

    # -- decision and backward pass -----------------------------------------
    def decide(s, r, f):
        if r.state == DEC:
            assert r.f == f, ("two decisions", r.tx.tid, r.f, f)
            return
        r.state, r.f = DEC, f
        s.clock = max(s.clock, f)

    def after_decision(s, r, chain, ep):
        """The backward message is here, or this is the tail: those later in the chain have applied it."""
        r.back = True
        r.ordered |= set(chain[chain.index(s.i) + 1:])
        s.apply_all()
        if s.w.bug == "early-ack" or s.done_here(r): s.pass_back(r, chain, ep)
        else: s.held.append((r, chain, ep))
        s.wake()

    def done_here(s, r): return s.gate(r) and all(o in r.applied for o in r.tx.writes if s.i in s.w.place[o])

    # -- anchors (C9) ---------------------------------------------------------
    def is_authority(s, r): return any(s.authority(o) == s.i for o in r.tx.writes | set(r.tx.reads))

    def gate(s, r):
        """May r be applied here, as far as C9 goes?"""
        if r.open: return True
        if not r.back: return False
        if s.w.bug == "no-C9" or not s.is_authority(r): return True
        if s.w.bug == "one-anchor":
            k = min((s.authority(o) for o in r.tx.writes), default=s.i)
            r.open = s.is_ordered(r) and (k >= s.i or k in r.ordered)
        else: r.open = s.is_ordered(r) and all(s.authority(o) in r.ordered | {s.i} for o in r.tx.writes)
        return r.open

    def is_ordered(s, r):
        """Is everything that comes before r on what it writes under this node's authority shown?"""
        if s.w.bug == "anchor-knows": return True
        for o in r.tx.writes:
            if s.authority(o) != s.i: continue
            for q in s.recs.values():
                if q is r: continue
                if o in q.tx.writes:
                    if q.state == VAL and (q.p, q.tx.tid) < (r.f, r.tx.tid): return False
                    if q.state == DEC and (q.f, q.tx.tid) < (r.f, r.tx.tid) and not s.shown(q, o): return False
                if o in q.tx.reads and q.state == DEC and q.f < r.f and not s.gate(q) and s.w.bug != "no-C9-C2":
                    return False
        return True

    def shown(s, r, o): return o in r.applied and s.gate(r)

    def send_anchor(s, r, chain, ep):
        anchors = {s.authority(o) for o in r.tx.writes}
        early = anchors | {s.authority(o) for o in r.tx.reads}
        for a in sorted(anchors) if s.w.bug != "one-anchor" else [min(anchors, default=s.i)]:
            to = [n for n in early if n > a]
            if to: s.w.send(s.i, a, "ANCHOR", r.tx.tid, chain, ep, r.f, to)

    def on_ANCHOR(s, tid, chain, ep, f, early):
        if ep[0] > s.epoch: return s.w.requeue(s.i, "ANCHOR", tid, chain, ep, f, early)
        if any(n not in s.up for n in chain): return
        r = s.recs[tid]
        s.decide(r, f)
        if s.w.bug == "early-apply": r.back = True
        s.asked.append((r, early))
        s.wake()

    def on_ANCHORED(s, tid, n):
        s.recs[tid].ordered.add(n)
        s.wake()

    def pass_back(s, r, chain, ep):
        for o in r.tx.writes:
            if s.i in s.replicas(o) and s.authority(o) == s.i:
                r.stable.add(o)
                for n in s.replicas(o):
                    if n != s.i: s.w.send(s.i, n, "STABLE", r.tx.tid, o)
        s.back(r, chain, ep, r.f)

    def back(s, r, chain, ep, f):
        k = chain.index(s.i)
        if k > 0: s.w.send(s.i, chain[k - 1], "B", r.tx.tid, chain, ep, f)
        else: s.w.ack(r.tx, f)
        s.wake()

    def on_B(s, tid, chain, ep, f):
        if ep[0] > s.epoch: return s.w.requeue(s.i, "B", tid, chain, ep, f)
        if any(n not in s.up for n in chain): return
        r = s.recs.get(tid)
        if r is None: return
        if f is None:
            if ep < s.fence(tid) and s.w.bug != "no-F2": return
            assert r.state != DEC, ("abort of what is decided", tid)
            r.state = ABORT
            return s.back(r, chain, ep, None)
        s.decide(r, f)
        s.after_decision(r, chain, ep)

    def on_STABLE(s, tid, o):
        r = s.recs.get(tid)
        if r: r.stable.add(o)
        s.wake()

    def apply_all(s):
        again = True
        while again:
            again = False
            for r in sorted((q for q in s.recs.values() if q.state == DEC), key=lambda q: (q.f, q.tx.tid)):
                for o in r.tx.writes if s.gate(r) else ():
                    if o in r.applied or s.i not in s.w.place[o]: continue
                    blocked = False
                    for q in s.recs.values():
                        if q is r or o not in q.tx.writes: continue
                        if q.state == VAL and (q.p, q.tx.tid) < (r.f, r.tx.tid) and s.w.bug != "no-C6": blocked = True
                        if q.state == DEC and o not in q.applied and (q.f, q.tx.tid) < (r.f, r.tx.tid): blocked = True
                    if not blocked:
                        s.objs[o].append((r.f, r.tx.tid)); r.applied.add(o); again = True

    def wake(s):
        s.apply_all()
        h, s.asked = s.asked, []
        for r, early in h:
            if s.is_ordered(r):
                for n in early: s.w.send(s.i, n, "ANCHORED", r.tx.tid, s.i)
            else: s.asked.append((r, early))
        h, s.held = s.held, []
        for r, chain, ep in h:
            if s.done_here(r):
                if all(n in s.up for n in chain): s.pass_back(r, chain, ep)
            else: s.held.append((r, chain, ep))
        w, s.waiting = s.waiting, []
        for tx, chain, ep, pmax in w:
            s.on_F(tx, chain, ep, pmax, None)
        rs, s.reads = s.reads, []
        for a in rs:
            if a[-1] == "snap": s.on_SNAP(*a[:-1])
            elif a[-1] == "clock": s.on_CLOCK(*a[:-1])
            else: s.on_READ(*a)

    # -- reads ----------------------------------------------------------------
    def on_READ(s, rid, o, ep, seen=None):
        if s.i not in s.replicas(o): return
        mine = [q for q in s.recs.values() if o in q.tx.writes and q.state in (VAL, DEC)]
        if s.authority(o) == s.i:
            if seen is None: seen = {q.tx.tid for q in mine}      # what was in flight on arrival
            if s.w.bug == "no-wait": seen = {q.tx.tid for q in mine if q.state == DEC}
            if any(q.tx.tid in seen and not s.shown(q, o) for q in mine):
                s.reads.append((rid, o, ep, seen)); return
            return s.w.read_done(rid, [x for _, x in s.objs[o]])
        if s.w.bug == "dirty-read":
            return s.w.read_done(rid, [x for _, x in s.objs[o]])
        if s.w.bug == "wait-anywhere":
            if seen is None: seen = {q.tx.tid for q in mine}
            if any(q.tx.tid in seen and not s.shown(q, o) for q in mine):
                s.reads.append((rid, o, ep, seen)); return
            return s.w.read_done(rid, [x for _, x in s.objs[o]])
        if any(q.state == VAL or (o not in q.stable and s.w.bug != "unstable") or o not in q.applied for q in mine):
            return s.w.send(s.i, s.authority(o), "READ", rid, o, ep)
        s.w.read_done(rid, [x for _, x in s.objs[o]])

    def on_CLOCK(s, rid, o, seen=None):
        """The clock of o's authority once everything in flight on arrival is decided."""
        if s.i not in s.replicas(o): return
        if s.authority(o) != s.i: return s.w.send(s.i, s.authority(o), "CLOCK", rid, o)
        mine = [q for q in s.recs.values() if o in q.tx.writes and q.state in (VAL, DEC)]
        if seen is None: seen = {q.tx.tid for q in mine}
        if any(q.tx.tid in seen and not s.shown(q, o) for q in mine):
            s.reads.append((rid, o, seen, "clock")); return
        s.w.clock_done(rid, o, s.clock)

    def on_SNAP(s, rid, o, S, seen=None):
        """Read o as of timestamp S at its authority; S is None on a snapshot's first read."""
        if s.i not in s.replicas(o): return
        if s.authority(o) != s.i:                       # clean up to S: answer here; else the authority does
            at = s.clock if S is None else S
            if any(o in q.tx.writes and (q.state == VAL and q.p <= at or q.state == DEC and q.f <= at and
                   (o not in q.applied or o not in q.stable)) for q in s.recs.values()):
                return s.w.send(s.i, s.authority(o), "SNAP", rid, o, S)
        if S is None: S = s.clock
        s.clock = max(s.clock, S)
        mine = [q for q in s.recs.values() if o in q.tx.writes and q.state in (VAL, DEC) and not s.shown(q, o)]
        if seen is None: seen = {q.tx.tid for q in mine}
        late = [q for q in mine if q.tx.tid in seen and
                (q.state == VAL and q.p <= S or q.state == DEC and q.f <= S)]
        if late and s.w.bug != "snap-no-wait":
            s.reads.append((rid, o, S, seen, "snap")); return
        s.w.snap_done(rid, o, S, [x for ts, x in s.objs[o] if ts <= S])

    # -- failures ---------------------------------------------------------------
    def on_MAP(s, ep, up):
        if ep <= s.epoch: return
        s.epoch, s.up = ep, set(up)
        if s.w.bug != "old-proposals": s.clock = max(s.clock, ep * 1000)
        s.waiting = [x for x in s.waiting if all(n in s.up for n in x[1])]
        for r in list(s.recs.values()):
            if s.is_open(r) and any(n not in s.up for n in r.chain):
                live = [n for n in r.chain if n in s.up]
                if live and live[0] == s.i: s.recover(r)
        # a new authority tells the other replicas about what it knows decided
        for r in s.recs.values():
            if r.state == DEC and s.gate(r):
                for o in r.tx.writes:
                    if s.i in s.replicas(o) and s.authority(o) == s.i:
                        r.stable.add(o)
                        for n in s.replicas(o):
                            if n != s.i: s.w.send(s.i, n, "STABLE", r.tx.tid, o)
        s.wake()

    def is_open(s, r):
        """To be asked about when it stays so: undecided, or decided and not anchored."""
        return r.state in (VAL, WAIT) or r.state == DEC and not s.gate(r)

    def on_RETRY(s, tx, ep):
        if ep > s.epoch: return s.w.requeue(s.i, "RETRY", tx, ep)
        if ep < s.epoch: return
        r = s.recs.get(tx.tid)
        if r is None: r = s.recs[tx.tid] = Rec(tx, s.w.chain(tx, s.up))
        s.recover(r)

    def recover(s, r):
        last = s.fence(r.tx.tid)
        att = (s.epoch, last[1] + 1 if last[0] == s.epoch else 1, s.i if s.w.bug != "same-attempts" else 0)
        members = set(s.w.chain(r.tx, s.up)) | {n for n in r.chain if n in s.up} | {s.i}
        if r.state == ABORT and s.w.bug != "forget-abort": return s.abort_all(r, members)
        if r.state == DEC: return s.redrive(r, att, r.f)
        s.recov[r.tx.tid] = (att, set(members), {}, members)
        for n in members - {s.i}: s.w.send(s.i, n, "Q", r.tx, att, s.i)
        s.on_Q(r.tx, att, s.i)

    def on_Q(s, tx, ep, frm):
        if ep[0] > s.epoch: return s.w.requeue(s.i, "Q", tx, ep, frm)
        tid = tx.tid
        if ep[0] < s.epoch or ep < s.fence(tid) or ep == s.begun.get(tid): return
        s.fences[tid] = ep
        r = s.recs.get(tid)
        says = None
        if r and r.state == DEC: says = (DEC, r.f)
        elif r and r.state == ABORT and s.w.bug != "forget-abort": says = (ABORT,)
        elif r and r.state == VAL: says = (VAL, r.pep, r.p, r.pchain)
        if r and (r.state == WAIT or r.state == VAL and s.w.bug == "early-reset"): r.state = FREE
        s.w.send(s.i, frm, "QR", tid, ep, s.i, says)
        s.wake()

    def on_QR(s, tid, ep, frm, says):
        if ep[0] != s.epoch or tid not in s.recov or s.recov[tid][0] != ep: return
        _, need, got, members = s.recov[tid]
        need.discard(frm); got[frm] = says
        if need: return
        del s.recov[tid]
        r = s.recs[tid]
        told = [x for x in got.values() if x]
        for x in told:
            if x[0] == DEC: return s.redrive(r, ep, x[1])
        if any(x[0] == ABORT for x in told): return s.abort_all(r, members)
        for _, b, _, chain in told:                             # all validated in one attempt: decided (C5)
            same = [got.get(n) for n in chain]
            if all(x and x[1] == b for x in same) and s.w.bug != "no-C5":
                return s.redrive(r, ep, max(x[2] for x in same))
        if s.w.bug not in ("no-reset", "early-reset"):
            for n in members: s.w.send(s.i, n, "RESET", tid, ep)
        s.redrive(r, ep, None)

    def on_RESET(s, tid, ep):
        if ep[0] > s.epoch: return s.w.requeue(s.i, "RESET", tid, ep)
        r = s.recs.get(tid)
        if r and r.state == VAL and r.pep < ep == s.fence(tid): r.state = FREE
        s.wake()

    def abort_all(s, r, members):
        for n in members: s.w.send(s.i, n, "ABORT", r.tx, r.chain)
        s.on_ABORT(r.tx, r.chain)
        s.w.ack(r.tx, None)

    def on_ABORT(s, tx, chain):
        r = s.recs.get(tx.tid)
        if r is None: r = s.recs[tx.tid] = Rec(tx, chain)
        assert r.state != DEC, ("abort of what is decided", tx.tid)
        r.state = ABORT
        s.wake()

    def redrive(s, r, ep, known):
        live = [n for n in r.chain if n in s.up]
        chain = sorted(set(s.w.chain(r.tx, s.up)) | set(live))
        s.w.send(s.i, chain[0], "F", r.tx, chain, ep, 0, known)

    def restart(s, ep):
        """After a loss of power: proposals, promises and aborts are durable, decisions perhaps, nothing else."""
        s.epoch, s.clock = ep, max(s.clock, ep * 1000)
        s.waiting, s.reads, s.held, s.asked, s.recov = [], [], [], [], {}
        s.objs.clear()
        for r in s.recs.values():
            r.back, r.open, r.ordered, r.applied, r.stable = False, False, set(), set(), set()
            if r.state == WAIT: r.state = FREE
            if r.state == DEC and s.w.rng.random() < 0.7: r.state, r.f = VAL if r.pep != NEVER else FREE, None

class World:
    def __init__(s, seed, N=5, objs=4, R=3, ntx=14, nreads=16, nsnaps=6, crashes=1, bug=None, loss=0.0,
                 power=0, lag=False):
        s.rng = random.Random(seed); s.N, s.bug = N, bug
        s.place = {o: sorted(s.rng.sample(range(N), R)) for o in range(objs)}
        s.nodes = [Node(s, i) for i in range(N)]
        s.q, s.now, s.hist = [], 0, {}
        s.epoch, s.up = 0, set(range(N))
        s.snaps = {}
        s.rids, s.ntx, s.nreads, s.R = {}, ntx, nreads, R
        s.crashes, s.loss = crashes, loss
        s.started = 0; s.rstarted = 0
        s.nsnaps, s.power, s.lag = nsnaps, power, lag
        s.out = {}
    def send(s, frm, to, kind, *a): s.q.append((to, kind, a))
    def requeue(s, to, kind, *a): s.q.append((to, kind, a))
    def chain(s, tx, up):
        c = set()
        for o in tx.writes: c |= {n for n in s.place[o] if n in up}
        for o in tx.reads: c.add([n for n in s.place[o] if n in up][0])
        return sorted(c)
    def ack(s, tx, f):
        h = s.hist[tx.tid]
        if h["end"] is None:
            h["end"], h["ok"] = s.now, f is not None
    def read_done(s, rid, val):
        h = s.rids[rid]
        if h["end"] is None: h["end"], h["val"] = s.now, val
        if h["then"]: t, h["then"] = h["then"], None; t(val)
    def submit(s, tx, retry=False):
        epoch, up = s.epoch, s.up
        if s.lag and not retry:                                 # the client may have an older map
            n = s.nodes[s.rng.choice(sorted(s.up))]
            epoch, up = n.epoch, n.up
        ch = s.chain(tx, up)
        s.hist[tx.tid]["start"] = s.hist[tx.tid]["start"] or s.now
        if retry and s.bug != "blind-retry": s.send(None, ch[0], "RETRY", tx, epoch)
        else: s.send(None, ch[0], "F", tx, ch, (epoch, 0, ch[0]), 0, None)
    def new_read(s, o, then=None):
        rid = ("r", s.rstarted); s.rstarted += 1
        s.rids[rid] = dict(o=o, start=s.now, end=None, val=None, then=then)
        s.ask(rid); return rid
    def ask(s, rid):
        o = s.rids[rid]["o"]
        s.send(None, s.rng.choice([n for n in s.place[o] if n in s.up]), "READ", rid, o, s.epoch)
    def new_snap(s):
        rid = ("s", len(s.snaps))
        os = s.rng.sample(list(s.place), 2 + (s.rng.random() < .5))
        fresh = s.rng.random() < 0.5
        s.snaps[rid] = dict(os=os, S=None, got={}, start=s.now, end=None, fresh=fresh, clocks={})
        s.snap_next(rid)
    def snap_next(s, rid):
        h = s.snaps[rid]
        left = [o for o in h["os"] if o not in h["got"]]
        if not left: h["end"] = h["end"] or s.now; return
        if h["fresh"] and h["S"] is None:
            need = [o for o in h["os"] if o not in h["clocks"]]
            if need:
                for o in need: s.send(None, s.rng.choice([n for n in s.place[o] if n in s.up]), "CLOCK", rid, o)
                return
            h["S"] = max(h["clocks"].values())
        s.send(None, s.rng.choice([n for n in s.place[left[0]] if n in s.up]), "SNAP", rid, left[0], h["S"])
    def clock_done(s, rid, o, c):
        h = s.snaps[rid]
        if o in h["clocks"] or h["S"] is not None: return
        h["clocks"][o] = c
        if len(h["clocks"]) == len(h["os"]): s.snap_next(rid)
    def snap_done(s, rid, o, S, val):
        h = s.snaps[rid]
        if o in h["got"] or (h["S"] is not None and S != h["S"]): return
        h["S"] = S; h["got"][o] = val; s.snap_next(rid)
    def new_tx(s):
        tid = s.started; s.started += 1
        kind = s.rng.random()
        ws = set(s.rng.sample(list(s.place), s.rng.choice([1, 1, 2, 3])))
        s.hist[tid] = dict(start=s.now, end=None, ok=None, reads={}, writes=ws, tx=None)
        if kind < 0.5:
            tx = Tx(tid, {}, ws, None); s.hist[tid]["tx"] = tx; s.submit(tx)
        else:
            rs = s.rng.sample(list(s.place), s.rng.choice([1, 2]))
            got = {}
            def mk(o):
                def then(v):
                    got[o] = v
                    if len(got) == len(rs):
                        tx = Tx(tid, dict(got), ws, None)
                        s.hist[tid]["tx"] = tx; s.hist[tid]["reads"] = dict(got); s.submit(tx)
                return then
            for o in rs: s.new_read(o, mk(o))
    def crash(s):
        k = s.rng.choice(sorted(s.up))
        s.nodes[k].alive = False
        s.up = s.up - {k}; s.epoch += 1; s.crashes -= 1
        up = frozenset(s.up)
        for n in up: s.q.append((n, "MAP", (s.epoch, up)))
    def power_loss(s):
        s.power -= 1; s.epoch += 1
        s.q = []
        for n in s.nodes:
            if n.alive: n.up = set(s.up); n.restart(s.epoch)

    def run(s):
        idle = 0
        while True:
            s.now += 1
            r = s.rng.random()
            if s.started < s.ntx and r < 0.12: s.new_tx()
            elif s.rstarted < s.nreads + s.ntx and r < 0.2: s.new_read(s.rng.choice(list(s.place)))
            elif len(s.snaps) < s.nsnaps and r < 0.24: s.new_snap()
            elif s.crashes and r > 0.985 and s.now > 20: s.crash(); idle = 0
            elif s.power and r > 0.975 and s.now > 60: s.power_loss(); idle = 0
            elif s.q:
                k = s.rng.randrange(len(s.q)); s.q[k], s.q[-1] = s.q[-1], s.q[k]
                to, kind, a = s.q.pop()
                n = s.nodes[to]
                if kind not in ("MAP", "READ", "SNAP", "CLOCK", "RETRY") and s.rng.random() < s.loss: continue
                if n.alive: getattr(n, "on_" + kind)(*a)
            else:
                if s.started < s.ntx: continue
                # client retries whatever is unanswered
                idle += 1
                if idle > (60 if s.loss or s.power else 6): break
                for tid, h in s.hist.items():
                    if h["end"] is None and h["tx"]: s.submit(h["tx"], True)
                for n in s.nodes:                            # F6: what stays undecided is asked about
                    if not n.alive: continue
                    for r in n.recs.values():
                        if n.is_open(r): s.send(n.i, [x for x in r.chain if x in n.up][0], "RETRY", r.tx, n.epoch)
                        for o in r.tx.writes:                # and what is not known stable
                            if r.state == DEC and n.i in n.replicas(o) and n.authority(o) == n.i and o in r.stable:
                                for m in n.replicas(o):
                                    if m != n.i: s.send(n.i, m, "STABLE", r.tx.tid, o)
                for rid, h in s.rids.items():
                    if h["end"] is None: s.ask(rid)
                for rid, h in s.snaps.items():
                    if h["end"] is None: s.snap_next(rid)
            if s.now > 200000: raise Exception("livelock")
        return s.check()
    def check(s):
        for tid, h in s.hist.items():
            if h["tx"] and h["end"] is None: return f"tx {tid} never answered (state {[ (n.i,n.recs[tid].state) for n in s.nodes if n.alive and tid in n.recs]})"
        for rid, h in s.rids.items():
            if h["end"] is None: return f"read {rid} of {h['o']} never answered"
        final = {}
        for o, pl in s.place.items():
            ls = [[x for _, x in s.nodes[n].objs[o]] for n in pl if s.nodes[n].alive]
            if any(l != ls[0] for l in ls): return f"replicas of {o} differ {ls}"
            final[o] = ls[0]
            if len(set(ls[0])) != len(ls[0]): return f"duplicate apply {o} {ls[0]}"
        for rid, h in s.snaps.items():
            if h["end"] is None: return f"snapshot {rid} never answered"
        committed = {t for t, h in s.hist.items() if h["ok"]}
        for t, h in s.hist.items():
            for o in h["writes"]:
                if (t in final[o]) != (t in committed): return f"tx {t} ok={h['ok']} but in {o}: {t in final[o]}"
            if h["tx"] and not h["reads"] and not h["ok"]: return f"write-only tx {t} aborted"
        # transactions and single reads: strictly serializable (real-time edges);
        # with all snapshots: serializable (no real-time edges); read_many snapshots are also fresh
        for rid, h in s.snaps.items():
            for o, v in h["got"].items():
                for t in committed:
                    if h["fresh"] and o in s.hist[t]["writes"] and s.hist[t]["end"] < h["start"] and t not in v:
                        return f"stale snapshot {rid}: misses {t} in {o}"
        return s.cycle(final, committed, True) or s.cycle(final, committed, False)

    def cycle(s, final, committed, strict):
        E = defaultdict(set)
        def obs(name, o, val):
            if final[o][:len(val)] != val: return f"{name} saw {val} of {o}, final {final[o]}"
            if val and val[-1] != name: E[val[-1]].add(name)
            rest = [x for x in final[o][len(val):] if x != name]
            if rest: E[name].add(rest[0])
        for o in final:
            for a, b in zip(final[o], final[o][1:]): E[a].add(b)
        seen = [(t, s.hist[t]["reads"]) for t in committed]
        seen += [(r, {h["o"]: h["val"]}) for r, h in s.rids.items()]
        snaps = {} if strict else s.snaps
        seen += [(r, h["got"]) for r, h in snaps.items()]
        for name, got in seen:
            for o, v in got.items():
                e = obs(name, o, v)
                if e: return e
        if strict:
            ev = [(s.hist[t]["start"], s.hist[t]["end"], t) for t in committed]
            ev += [(h["start"], h["end"], r) for r, h in s.rids.items()]
            for a in ev:
                for b in ev:
                    if a[1] < b[0]: E[a[2]].add(b[2])
        col = {}
        for u in list(E):
            if u in col: continue
            stack = [(u, iter(E[u]))]; col[u] = 1
            while stack:
                x, it = stack[-1]
                for y in it:
                    if col.get(y) == 1: p = [z for z, _ in stack]; return f"{'strict ' if strict else ''}cycle {p[p.index(y):]}"
                    if y not in col: col[y] = 1; stack.append((y, iter(E[y]))); break
                else: col[x] = 2; stack.pop()
        return None

def main():
    a = argparse.ArgumentParser(description="see the top of this file")
    a.add_argument("first", type=int)
    a.add_argument("last", type=int)
    a.add_argument("--nodes", type=int, default=5)
    a.add_argument("--replicas", type=int, default=3)
    a.add_argument("--chunks", type=int, default=4)
    a.add_argument("--reads", type=int, default=30)
    a.add_argument("--snapshots", type=int, default=6)
    a.add_argument("--crashes", type=int, default=0)
    a.add_argument("--loss", type=float, default=0.0)
    a.add_argument("--power", type=int, default=0)
    a.add_argument("--lag", action="store_true")
    a.add_argument("--break", dest="bug", choices=SWITCHES)
    a.add_argument("--until-bad", action="store_true", help="end at the first seed that fails")
    a = a.parse_args()
    bad = ab = tot = n = 0
    for seed in range(a.first, a.last):
        w = World(seed, N=a.nodes, objs=a.chunks, R=a.replicas, nreads=a.reads, nsnaps=a.snapshots,
                  crashes=a.crashes, bug=a.bug, loss=a.loss, power=a.power, lag=a.lag)
        try: e = w.run()
        except AssertionError as x: e = str(x)
        n += 1
        tot += len(w.hist); ab += sum(1 for h in w.hist.values() if h["ok"] is False)
        if e:
            bad += 1
            if bad <= 5: print("seed", seed, e)
            if a.until_bad: break
    print(f"N={a.nodes} R={a.replicas} crashes={a.crashes} loss={a.loss} power={a.power} lag={a.lag} "
          f"broken={a.bug}: {n} seeds, {bad} bad; {ab}/{tot} aborted")


if __name__ == "__main__": main()
