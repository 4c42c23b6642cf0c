#!/usr/bin/env python3
"""Executable model of commit, reads, recovery and forgetting (rules C1-C9, R1-R6, F1-F12).

Its page is commit_model.md.  Objects stand for chunks.  A write appends the transaction's id to a list, so every
read shows the exact order in which writes took effect.  A scheduler draws what happens next from a seed: a message
arrives (in any order; it may be lost, doubled, or held back for long), a node hears of a new map, crashes for good
with its disk, looks how far it is done, asks about what is held up; a client submits, asks again, asks again long
after it was answered.  In the end the network is whole, and a checker compares replicas and answers, builds the graph
of what came before what (by data and by real time) and looks for a cycle, and asks that everything has ended.

    python3 commit_model.py --all                          every line of the page, in a minute
    python3 commit_model.py FIRST_SEED LAST_SEED [--nodes N] [--replicas R] [--chunks C] [--txs N] [--reads N]
        [--snapshots N] [--crashes N] [--loss P] [--hold P] [--power N] [--skew N] [--lag] [--forget]
        [--break SWITCH] [--until-bad] [--trace TRANSACTION]

The names are those of the code (crates/tyr-protocol/src/commit, recovery).  An attempt is (epoch, number,
coordinator).  Record.attempt is the newest one that a node has promised to, Record.entered the one whose forward pass
came by.  SWITCHES at the end of the file says what each takes away.
"""
import argparse
import random
import sys
import time
from collections import defaultdict

WAIT, PARK, FENCED, VAL, DEC, APPLIED = "waiting", "parked", "fenced", "validated", "decided", "applied"
NEVER, ZERO = (-1, 0, 0), (0, 0, -1)      # an attempt; a timestamp: (epoch, clock, node)
COMMIT, ABORT, FORGOTTEN, NOTHING = "commit", "abort", "forgotten", "nothing"
CONFLICT, NEVER_BEGUN, TIMED_OUT = "conflict", "never begun", "timed out"
WINDOW = 150                              # for how long outcomes stay at least, in steps (F10)


class Tx:
    """`short`: objects that the client's guess of the chain lacks; the authority of `key` notices (Misplaced)."""
    def __init__(s, tid, reads, writes, conds, short, begun):
        s.tid, s.reads, s.writes, s.conds, s.short, s.begun = tid, reads, writes, conds, short, begun
        s.looks = set(reads) | conds
        s.key = min(writes - short)


class Chain:
    """All replicas of what is written, the authority of what is looked at, in node order."""
    def __init__(s, tx, place, up, is_full, others=()):
        s.is_full, s.reps, s.auth, nodes = is_full, {}, {}, set(others)
        for o in sorted(tx.writes | tx.looks):
            if o in tx.short and not is_full and o not in tx.looks: continue
            live = [n for n in place[o] if n in up]
            s.auth[o] = live[0]
            if o in tx.writes and (is_full or o not in tx.short): s.reps[o] = live; nodes |= set(live)
            if o in tx.looks: nodes.add(live[0])
        s.nodes = tuple(sorted(nodes))
        s.anchors = sorted({s.auth[o] for o in s.reps})
        s.authorities = sorted(set(s.auth.values()))

    def is_same(s, other): return (s.nodes, s.auth, s.reps) == (other.nodes, other.auth, other.reps)


class Record:
    def __init__(s, node, tx, chain, attempt, begun, high, known):
        s.tx, s.chain, s.attempt, s.entered, s.begun, s.high, s.known = tx, chain, attempt, attempt, begun, high, known
        s.pos = chain.nodes.index(node.i)
        s.state, s.p, s.f = WAIT, None, None
        s.here = [o for o in chain.reps if node.i in chain.reps[o]]         # what it writes here
        s.unstable = {chain.auth[o] for o in s.here}
        s.heard, s.anchored, s.behind, s.passed = False, False, False, False
        s.unanchored = {a for a in node.anchors(chain) if a < node.i and node.i in chain.authorities}


class Entry:
    """What is remembered of a transaction that is finished with here, or only promised about."""
    def __init__(s, attempt):
        s.attempt, s.outcome, s.closed, s.full, s.finished_in, s.noted = attempt, None, False, False, None, 0


class Inquiry:
    def __init__(s, attempt, tx, begun, is_question, chains):
        s.attempt, s.tx, s.begun, s.is_question, s.chains = attempt, tx, begun, is_question, chains
        s.promised, s.closing, s.waiting, s.reports = NEVER, None, set(), {}


class Disk:
    """What is durable of a transaction: validated as, promised to, aborted."""
    def __init__(s): s.val, s.fence, s.abort = None, NEVER, None


class Node:
    def __init__(s, w, i):
        s.w, s.i = w, i
        s.alive, s.epoch, s.up = True, 0, frozenset(range(w.N))
        s.skew = w.rng.randrange(w.skew)
        s.clock = (0, s.day(), i)
        s.objs = defaultdict(list)                # obj -> [(timestamp, tid)]
        s.recs, s.mem, s.inq, s.reads = {}, {}, {}, []
        s.disk, s.log, s.synced = defaultdict(Disk), [], 0
        s.floor, s.done_to, s.past, s.since = 0, 0, [(0, s.clock[1])], 0

    # -- clocks, maps, sending --------------------------------------------------------------------------------
    def day(s): return s.w.now + s.skew
    def observe(s, t): s.clock = max(s.clock, t)
    def observe_day(s, clock): s.clock = max(s.clock, (s.clock[0], clock, s.i))
    def replicas(s, o): return [n for n in s.w.place[o] if n in s.up]
    def authority(s, o): return s.replicas(o)[0]
    def chain(s, tx, is_full, others=()): return Chain(tx, s.w.place, s.up, is_full, others)
    def send(s, to, kind, *a): s.w.send(s.i, to, s.epoch, kind, *a)

    def tell(s, to, kind, *a):
        if to == s.i: getattr(s, "on_" + kind)(s.i, *a)
        else: s.send(to, kind, *a)

    def anchors(s, chain):
        if s.w.bug == "no-C9" or s.w.R == s.w.N: return []
        return chain.anchors[:1] if s.w.bug == "one-anchor" else chain.anchors

    def is_affected(s, chain, tx, attempt):
        """F1: the map does not give this chain any more, or a node of it started again since."""
        if attempt[0] >= s.epoch: return False
        gone = any(n not in s.up for n in chain.nodes)
        return gone or attempt[0] < s.since or not chain.is_same(s.chain(tx, chain.is_full))

    # -- what is remembered (F2, F4, F10) -----------------------------------------------------------------------
    def entry(s, tid, attempt):
        e = s.mem.get(tid) or s.mem.setdefault(tid, Entry(attempt))
        e.attempt, e.noted = max(e.attempt, attempt), s.clock[1]
        return e

    def note(s, tid, attempt, outcome):
        e = s.entry(tid, attempt)
        if e.outcome is None or outcome[0] == COMMIT and s.is_nothing(e.outcome): e.outcome = outcome
        assert e.outcome[0] == outcome[0], f"tx {tid} has two outcomes at node {s.i}: {e.outcome} and {outcome}"
        return e

    def is_nothing(s, outcome):
        """That nobody could tell is no outcome: who knows of a commit still may say so (F11)."""
        return outcome is None or outcome == (ABORT, TIMED_OUT) and s.w.bug != "timed-out-stays"

    def remove(s, r, outcome):
        """Forgets the record; remembers what became of it, or only the promise."""
        tid = r.tx.tid
        if outcome is None: s.entry(tid, r.attempt)
        else:
            e = s.note(tid, r.attempt, outcome)
            e.full, e.finished_in = r.chain.is_full, r.entered
        if s.recs.get(tid) is r: del s.recs[tid]

    def is_forgotten(s, begun): return s.floor > 0 and begun <= s.floor and s.w.bug != "no-F11"

    def promised(s, tid):
        if tid in s.recs: return s.recs[tid].attempt
        return s.mem[tid].attempt if tid in s.mem else NEVER

    def next_attempt(s, tid):
        top = s.promised(tid)
        if tid in s.inq: top = max(top, s.inq[tid].attempt, s.inq[tid].promised)
        return (s.epoch, top[1] + 1 if top[0] == s.epoch else 1, s.i)

    def promise(s, tid, attempt):
        """F8: whoever begins an attempt promises to it in that moment."""
        if s.w.bug == "no-F8": return
        if tid in s.recs: s.recs[tid].attempt = max(s.recs[tid].attempt, attempt)
        else: s.entry(tid, attempt)

    def fence_disk(s, tid, attempt, is_cleared):
        d = s.disk[tid]
        d.fence = max(d.fence, attempt)
        if is_cleared: d.val = None

    # -- from a client ------------------------------------------------------------------------------------------
    def on_SUBMIT(s, frm, tx, is_full, is_retry):
        tid = tx.tid
        chain = s.chain(tx, is_full)
        if chain.nodes[0] != s.i: return                              # NotHere: it looks the chain up again
        if tid not in s.recs and tid not in s.mem and s.is_forgotten(tx.begun):
            return s.w.reply(s, tx, (ABORT, TIMED_OUT))
        s.observe_day(tx.begun)
        if is_retry and s.w.bug != "blind-retry": return s.retry(tx, chain)
        if tid in s.recs: return
        e = s.mem.get(tid)
        if e:
            if e.outcome: s.w.reply(s, tx, e.outcome)
            return
        s.enter(tx, chain, (s.epoch, 0, s.i), tx.begun, ZERO, None)

    def retry(s, tx, chain):
        """F4: a client asks again."""
        tid, r = tx.tid, s.recs.get(tx.tid)
        if tid in s.inq: return
        if r is None:
            e = s.mem.get(tid)
            if e and e.outcome and (e.outcome[0] == COMMIT or e.closed or s.w.bug == "no-F9"):
                return s.w.reply(s, tx, e.outcome)
            return s.inquire(tx, chain, tx.begun, True)
        if r.state == APPLIED and r.passed: return s.w.reply(s, tx, (COMMIT, r.f))
        s.inquire(tx, chain, r.begun, False)

    # -- the forward pass ---------------------------------------------------------------------------------------
    def on_FORWARD(s, frm, tx, chain, attempt, begun, high, known):
        if s.is_affected(chain, tx, attempt): return
        s.observe(high)
        if known: s.observe(known)
        tid, r, e = tx.tid, s.recs.get(tx.tid), s.mem.get(tx.tid)
        it = (tx, chain, attempt, begun, high, known)
        if r:
            if (attempt >= r.attempt or s.w.bug == "no-F2") and attempt != r.entered: s.enter_again(r, *it)
            return
        if e and attempt < e.attempt and s.w.bug != "no-F2": return
        if e and e.outcome and known and s.is_nothing(e.outcome): return s.enter_applied(known, *it)
        if e and e.outcome:
            if e.finished_in == attempt: return
            if e.outcome[0] == COMMIT: return s.enter_applied(e.outcome[1], *it)
            k = chain.nodes.index(s.i)
            if k: s.send(chain.nodes[k - 1], "BACKWARD", tid, attempt, e.outcome)
            return
        if s.is_forgotten(begun):
            if known: s.enter_applied(known, *it)
            return
        s.enter(*it)

    def enter(s, *it):
        r = s.recs[it[0].tid] = Record(s, *it)
        s.admit(r)
        s.wake()

    def enter_again(s, old, *it):
        r = Record(s, *it)
        s.recs[r.tx.tid] = r
        if old.state not in (DEC, APPLIED): s.admit(r); return s.wake()
        r.state, r.f, r.known, r.high = old.state, old.f, old.f, max(r.high, old.f)
        if old.state == APPLIED and old.unstable <= r.unstable: r.unstable = set(old.unstable)
        s.pass_on(r)
        s.wake()

    def enter_applied(s, at, tx, chain, attempt, begun, high, known):
        """Another pass of what this node has finished with: it only passes it on, and back."""
        r = s.recs[tx.tid] = Record(s, tx, chain, attempt, begun, max(high, at), at)
        r.state, r.f = APPLIED, at
        s.pass_on(r)
        s.wake()

    def admit(s, r):
        """Validates what comes in or waits, if it can be; what is known to be committed is not asked."""
        if r.known: return s.propose(r, r.known)
        verdict = s.validate(r)
        if verdict == WAIT: return
        if verdict == PARK:
            if r.state != PARK:
                r.state = PARK
                s.send(r.chain.nodes[r.pos - 1], "WITHDRAWN", r.tx.tid, r.entered)
            return
        if r.state == PARK:
            s.send(r.chain.nodes[0], "AGAIN", r.tx.tid, r.entered)
            return s.leave(r)
        if verdict == ABORT: return s.give_up(r, CONFLICT, False)
        if verdict == "misplaced": return s.misplaced(r)
        e, c, _ = s.clock
        s.clock = (e, max(c + 1, s.day()), s.i)
        s.propose(r, s.clock)

    def validate(s, r):
        t, i = r.tx, s.i
        others = [q for q in s.recs.values() if q is not r]
        worst = VAL
        for o in t.looks:
            if r.chain.auth[o] != i: continue
            for q in others:
                if o not in q.here or q.state not in (VAL, DEC): continue
                if o in t.reads and s.w.bug != "no-C1": return ABORT
                if o in t.conds and worst != PARK: worst = PARK if q.state == DEC and r.pos else WAIT
            if o in t.reads and [x for _, x in s.objs[o]] != t.reads[o]: return ABORT
        for o in r.here:                                            # C2
            for q in others:
                if o in q.tx.looks and q.chain.auth[o] == i and q.state == VAL and s.w.bug != "no-C2" and worst == VAL:
                    worst = WAIT
        if worst != VAL: return worst
        if t.short and not r.chain.is_full and r.chain.auth[t.key] == i: return "misplaced"
        for o in t.conds:
            if r.chain.auth[o] != i: continue
            if len(s.objs[o]) % 4 == 3: return ABORT                # it does not hold
            s.w.hist[t.tid]["saw"].setdefault(r.entered, {})[o] = [x for _, x in s.objs[o]]
        return VAL

    def propose(s, r, p):
        r.state, r.p, r.high = VAL, p, max(r.high, p)
        d = s.disk[r.tx.tid]
        d.val = (r.tx, r.chain, r.entered, r.begun, p)
        if r.attempt == r.entered or s.w.bug == "no-F2": s.pass_on(r)

    def pass_on(s, r):
        if r.pos + 1 < len(r.chain.nodes):
            return s.send(r.chain.nodes[r.pos + 1], "FORWARD", r.tx, r.chain, r.entered, r.begun, r.high, r.known)
        r.behind = True                                             # the tail (C5)
        at = r.known or r.high
        if not r.known: s.w.decided(r.tx.tid, r.entered, at)
        s.hear(r, at)

    # -- decision and the way back ------------------------------------------------------------------------------
    def taking_part(s, tid, attempt):
        r = s.recs.get(tid)
        return r if r and (r.attempt == r.entered == attempt or s.w.bug == "no-F2") else None

    def hear(s, r, at):
        """This attempt has reached the tail; the tail tells all (a relay, in long chains, does)."""
        if not r.heard and r.pos == len(r.chain.nodes) - 1 and s.anchors(r.chain):
            for n in r.chain.nodes[:-1]: s.send(n, "DECIDED", r.tx.tid, r.entered, at)
        r.heard = True
        s.observe(at)
        if r.state in (DEC, APPLIED): assert r.f == at, f"tx {r.tx.tid} decided at {r.f} and at {at}"
        elif r.state == VAL: r.state, r.f = DEC, at
        s.wake()

    def on_DECIDED(s, frm, tid, attempt, at):
        r = s.taking_part(tid, attempt)
        if r: s.hear(r, at)

    def on_BACKWARD(s, frm, tid, attempt, outcome):
        r = s.taking_part(tid, attempt)
        if not r: return
        if outcome[0] == ABORT: return s.give_up(r, outcome[1], False)
        r.behind = True
        s.hear(r, outcome[1])

    def on_ANCHORED(s, frm, tid, attempt):
        r = s.taking_part(tid, attempt)
        if r: r.unanchored.discard(frm); s.wake()

    def is_blocked(s, r):
        """C6, C9: whether something comes before it here, or may, and is not shown."""
        for q in s.recs.values():
            if q is r: continue
            for o in r.here:
                if o in q.here:
                    if q.state == VAL and q.p < r.f and s.w.bug != "no-C6": return True
                    if q.state == DEC and q.f < r.f: return True
                is_read = o in q.tx.looks and q.chain.auth[o] == s.i
                if is_read and q.state == DEC and q.f < r.f and s.w.bug != "no-C9-C2": return True
        return False

    def tell_anchored(s, r):
        if r.anchored or not r.heard or s.i not in s.anchors(r.chain): return
        r.anchored = True
        for n in r.chain.authorities:
            if n > s.i: s.send(n, "ANCHORED", r.tx.tid, r.entered)

    def pass_back(s, r):
        r.passed = True
        r.unstable.discard(s.i)
        s.tell_stable(r, s.i)
        s.answer(r, (COMMIT, r.f))

    def answer(s, r, outcome):
        if r.pos: s.send(r.chain.nodes[r.pos - 1], "BACKWARD", r.tx.tid, r.entered, outcome)
        else: s.w.reply(s, r.tx, outcome)

    def tell_stable(s, r, by):
        for n in {n for o, ns in r.chain.reps.items() if r.chain.auth[o] == by for n in ns}:
            if n != s.i: s.send(n, "STABLE", r.tx.tid, by)

    def on_STABLE(s, frm, tid, by):
        r = s.recs.get(tid)
        if r: r.unstable.discard(by); s.wake()

    def authority_now(s, r, by):
        return next((s.authority(o) for o in r.here if r.chain.auth[o] == by), by)

    def stable_here(s, r, by):
        if r.passed: s.tell_stable(r, by); r.unstable.discard(by)

    def on_ASK_STABLE(s, frm, tid, by):
        if tid not in s.recs or s.recs[tid].passed: s.send(frm, "STABLE", tid, by)

    def wake(s):
        """Goes on with whatever can go on."""
        if s.is_waking: s.again = True; return
        s.is_waking, s.again = True, True
        while s.again:
            s.again = False
            for r in sorted((q for q in s.recs.values() if q.f), key=lambda q: (q.f, q.tx.tid)):
                if s.recs.get(r.tx.tid) is not r: continue
                if r.state == DEC:
                    if s.w.bug == "anchor-knows": s.tell_anchored(r)
                    if s.w.bug == "early-ack" and r.behind and not r.passed: s.pass_back(r)
                    if s.is_blocked(r): continue
                    s.tell_anchored(r)
                    if not r.behind or r.unanchored: continue
                    r.state, s.again = APPLIED, True
                    for o in r.here: s.objs[o].append((r.f, r.tx.tid))
                    s.log.append((r.tx.tid, r.f, r.here, r.tx, r.chain, r.entered, r.begun))
                s.tell_anchored(r)
                if r.behind and not r.passed: s.pass_back(r)
                if r.state == APPLIED and r.passed and not r.unstable: s.remove(r, (COMMIT, r.f))
            for r in list(s.recs.values()):
                if r.state in (WAIT, PARK) and s.recs.get(r.tx.tid) is r:
                    s.admit(r)
                    if s.recs.get(r.tx.tid) is not r or r.state not in (WAIT, PARK): s.again = True
        s.is_waking = False
        reads, s.reads = s.reads, []
        for kind, a in reads: getattr(s, kind)(*a)
    is_waking = again = False

    # -- coming again: parked (C9), or the chain was too short --------------------------------------------------
    def on_WITHDRAWN(s, frm, tid, attempt):
        r = s.taking_part(tid, attempt)
        if not r or r.state in (DEC, APPLIED): return
        if r.pos == 0: r.state, r.p = FENCED, None; return s.wake()
        s.send(r.chain.nodes[r.pos - 1], "WITHDRAWN", tid, r.entered)
        s.leave(r)

    def leave(s, r):
        """Takes no part in this attempt any more; the head makes another."""
        r.attempt = max(r.attempt, (r.entered[0], r.entered[1] + 1, 0))
        s.fence_disk(r.tx.tid, r.attempt, True)
        s.remove(r, None)
        s.wake()

    def on_AGAIN(s, frm, tid, attempt):
        r = s.taking_part(tid, attempt)
        if r and r.pos == 0 and r.state in (FENCED, VAL): s.begin_again(r, r.chain)

    def attempt_after(s, r):
        if s.w.bug == "no-F8": return (s.epoch, r.attempt[1] + 1, s.i)
        return s.next_attempt(r.tx.tid)

    def begin_again(s, r, chain):
        if s.w.bug == "again-late":                                 # begun now, promised to when it comes by
            att = (s.epoch, r.attempt[1] + 1, s.i)
            return s.send(s.i, "FORWARD", r.tx, chain, att, r.begun, ZERO, None)
        s.enter_again(r, r.tx, chain, s.attempt_after(r), r.begun, ZERO, None)

    def misplaced(s, r):
        if r.pos == 0: return s.reroute(r)
        s.send(r.chain.nodes[r.pos - 1], "MISPLACED", r.tx.tid, r.entered)
        s.leave(r)

    def on_MISPLACED(s, frm, tid, attempt):
        r = s.taking_part(tid, attempt)
        if r and r.state not in (DEC, APPLIED): s.misplaced(r)

    def reroute(s, r):
        """At the head: another chain, whose head may be another node."""
        chain = s.chain(r.tx, True)
        if chain.nodes[0] == s.i: return s.begin_again(r, chain)
        tid, attempt = r.tx.tid, s.attempt_after(r)
        if s.w.bug != "no-F8": r.attempt = attempt
        s.fence_disk(tid, attempt if s.w.bug != "no-F8" else r.attempt, True)
        s.remove(r, None)
        s.send(chain.nodes[0], "FORWARD", r.tx, chain, attempt, r.begun, ZERO, None)
        s.wake()

    # -- aborts (F4, F9) ----------------------------------------------------------------------------------------
    def give_up(s, r, why, is_told):
        if r.state in (DEC, APPLIED): return
        tid, d = r.tx.tid, s.disk[r.tx.tid]
        is_head, is_later = r.pos == 0, r.attempt[1] > 0
        is_first_here = not is_later and r.state != VAL
        s.remove(r, (ABORT, why))
        if is_told: d.abort = why; return s.wake()                  # durable; the coordinator hears of it
        if not is_head:
            is_durable = s.w.bug != "no-F9-back" or s.w.rng.random() < 0.5          # else written, not synced
            if not is_first_here and is_durable: d.abort = why
            s.send(r.chain.nodes[r.pos - 1], "BACKWARD", tid, r.entered, (ABORT, why))
            return s.wake()
        if not is_first_here: d.abort = why
        if is_first_here or r.entered[1] == 0 or s.w.bug == "no-F9":
            s.mem[tid].closed = True
            s.w.reply(s, r.tx, (ABORT, why))
        else: s.inquire(r.tx, r.chain, r.begun, False)              # F9: everyone first
        s.wake()

    def on_ABORT(s, frm, tid, attempt, why):
        top = s.promised(tid)
        if attempt < top: return s.tell(frm, "BEHIND", tid, attempt, top)
        r, e = s.recs.get(tid), s.mem.get(tid)
        if r and r.state in (DEC, APPLIED) or e and e.outcome and e.outcome[0] == COMMIT: return
        if r: r.attempt = attempt; s.give_up(r, why, True)
        else: s.note(tid, attempt, (ABORT, why)); s.disk[tid].abort = why
        s.fence_disk(tid, attempt, False)
        s.tell(frm, "ABORTED", tid, attempt)

    def on_ABORTED(s, frm, tid, attempt):
        q = s.inq.get(tid)
        if not q or q.attempt != attempt or q.closing is None: return
        q.waiting.discard(frm)
        if q.waiting: return
        del s.inq[tid]
        if tid in s.mem: s.mem[tid].closed = True
        s.w.reply(s, q.tx, (ABORT, q.closing))

    # -- ballots (F2, F3) ---------------------------------------------------------------------------------------
    def inquire(s, tx, chain, begun, is_question):
        attempt = s.next_attempt(tx.tid)
        s.promise(tx.tid, attempt)
        old = s.inq.pop(tx.tid, None)
        chains = old.chains if old else []
        if not any(c.is_same(chain) for c in chains): chains = chains + [chain]
        s.inq[tx.tid] = Inquiry(attempt, tx, begun, old.is_question if old else is_question, chains)
        s.w.ballots += 1
        s.ask_members(tx.tid)

    def ask_members(s, tid):
        q = s.inq[tid]
        members = {n for c in q.chains for n in c.nodes if n in s.up} | {s.i}
        members |= set(s.chain(q.tx, q.chains[0].is_full).nodes)
        fresh = sorted(members - q.waiting - set(q.reports))
        q.waiting |= set(fresh)
        for n in fresh: s.tell(n, "QUERY", tid, q.attempt, q.begun)

    def on_QUERY(s, frm, tid, attempt, begun):
        if attempt[0] < s.epoch: return
        top = s.promised(tid)
        if attempt < top: return s.tell(frm, "BEHIND", tid, attempt, top)
        if s.w.bug != "noted-early": s.observe_day(begun)       # so that the promise is noted after that (F10)
        r, was_here = s.recs.get(tid), tid in s.recs
        if r:
            if attempt == r.attempt == r.entered: return            # it has come by already
            r.attempt = attempt
            if r.state in (WAIT, PARK) or r.state == VAL and s.w.bug == "early-reset" and not r.known:
                r.state, r.p = FENCED, None
        else: s.entry(tid, attempt)
        says = s.known(tid)
        if says[0] == NOTHING and not was_here and s.is_forgotten(begun): says = (FORGOTTEN,)
        else: s.fence_disk(tid, attempt, False)
        s.tell(frm, "REPORT", tid, attempt, says)
        s.wake()

    def known(s, tid):
        r, e = s.recs.get(tid), s.mem.get(tid)
        if r and (r.state in (DEC, APPLIED) or r.known): return (COMMIT, r.f or r.known, r.chain.is_full)
        if e and e.outcome and s.w.bug != "no-F4":
            return (COMMIT, e.outcome[1], e.full) if e.outcome[0] == COMMIT else e.outcome
        if r and r.state == VAL: return (VAL, r.entered, r.p, r.chain)
        return (NOTHING,)

    def on_BEHIND(s, frm, tid, attempt, top):
        q = s.inq.get(tid)
        if not q or q.attempt != attempt: return
        q.promised = max(q.promised, top)
        if s.i <= top[2]: s.inquire(q.tx, q.chains[0], q.begun, False)

    def on_REPORT(s, frm, tid, attempt, says):
        q = s.inq.get(tid)
        if not q or q.attempt != attempt or q.closing is not None or frm not in q.waiting: return
        q.waiting.discard(frm)
        if says[0] == VAL and not any(c.is_same(says[3]) for c in q.chains): q.chains.append(says[3])
        q.reports[frm] = says
        s.ask_members(tid)
        if tid in s.inq and not q.waiting: del s.inq[tid]; s.conclude(q)

    def conclude(s, q):
        tid, told, bug = q.tx.tid, q.reports, s.w.bug
        for x in told.values():
            if x[0] == COMMIT: return s.drive(q, x[1], x[2])
        for x in told.values():
            if x[0] == ABORT: return s.close_with(q, x[1])
        for n in sorted(told):                                      # decided, whoever has heard of it (C5)
            x = told[n]
            if x[0] == VAL and x[3].nodes[-1] == n and bug != "no-C5":
                s.w.decided(tid, x[1], x[2])
                return s.drive(q, x[2], x[3].is_full)
        if any(x[0] == FORGOTTEN for x in told.values()): return s.close_with(q, TIMED_OUT)         # F11
        if q.is_question and all(x[0] == NOTHING for x in told.values()) and bug != "no-F12":
            return s.close_with(q, NEVER_BEGUN)
        if bug not in ("no-reset", "early-reset"):
            for n in sorted(told): s.tell(n, "CLEAR", tid, q.attempt)
        s.drive(q, None, q.chains[0].is_full)

    def close_with(s, q, why):
        """F9: it is aborted, and nobody hears so before all who were asked have it durably."""
        q.closing, q.waiting, q.reports, everyone = why, set(q.reports), {}, sorted(q.reports)
        s.inq[q.tx.tid] = q
        if s.w.bug == "no-F9":
            s.inq.pop(q.tx.tid)
            s.on_ABORT(s.i, q.tx.tid, q.attempt, why)
            return s.w.reply(s, q.tx, (ABORT, why))
        for n in everyone: s.tell(n, "ABORT", q.tx.tid, q.attempt, why)

    def drive(s, q, known, is_full):
        chain = s.chain(q.tx, is_full)
        if known:
            others = {n for c in q.chains for n in c.nodes if n in s.up}
            if not others <= set(chain.nodes): chain = s.chain(q.tx, is_full, others)
        s.tell(chain.nodes[0], "FORWARD", q.tx, chain, q.attempt, q.begun, ZERO, known)

    def drive_known(s, tx, chain, begun, outcome, is_full):
        attempt = s.next_attempt(tx.tid)
        s.promise(tx.tid, attempt)
        if outcome[0] == COMMIT: return s.drive(Inquiry(attempt, tx, begun, False, [chain]), outcome[1], is_full)
        for n in chain.nodes: s.tell(n, "ABORT", tx.tid, attempt, outcome[1])

    def on_CLEAR(s, frm, tid, attempt):
        r = s.recs.get(tid)
        if r and r.attempt == attempt != r.entered and r.state == VAL and not r.known:
            s.fence_disk(tid, attempt, True)
            r.state, r.p = FENCED, None
        s.wake()

    # -- asking (F6), maps (F1, F5), restarts -------------------------------------------------------------------
    def on_ASK(s, frm, tx, chain, begun):
        tid, r, e = tx.tid, s.recs.get(tx.tid), s.mem.get(tx.tid)
        if tid in s.inq: return
        if r is None:
            is_old = s.w.bug == "timed-out-stays"
            if e and e.outcome and (e.outcome[0] == COMMIT or is_old):
                return s.drive_known(tx, chain, begun, e.outcome, e.full)
            return s.inquire(tx, chain, begun, False)
        if r.state in (WAIT, PARK) and not r.known and r.entered == r.attempt:
            for n in chain.nodes:
                if n != s.i: s.send(n, "CLEAR", tid, r.attempt)
        if r.state in (DEC, APPLIED): return s.drive_known(tx, chain, begun, (COMMIT, r.f), r.chain.is_full)
        s.inquire(tx, chain, begun, False)

    def ask(s, r):
        """It has not got further for long."""
        if r.state in (WAIT, PARK) or r.state == DEC and r.behind and not r.unanchored: return
        if r.state == APPLIED and r.passed:
            for by in sorted(r.unstable):
                to = s.authority_now(r, by)
                if to == s.i: s.stable_here(r, by)
                else: s.send(to, "ASK_STABLE", r.tx.tid, by)
            return s.wake()
        first = next((n for n in r.chain.nodes if n in s.up), s.i)
        if first != s.i: s.send(first, "ASK", r.tx, r.chain, r.begun)
        elif r.tx.tid not in s.inq: s.inquire(r.tx, r.chain, r.begun, False)

    def ask_all(s):
        for q in list(s.inq.values()): s.inquire(q.tx, q.chains[0], q.begun, False)
        for r in list(s.recs.values()):
            if s.recs.get(r.tx.tid) is r: s.ask(r)

    def install(s, epoch, up, since):
        if epoch <= s.epoch: return
        s.epoch, s.up, s.since = epoch, up, max(s.since, since)
        if s.w.bug != "old-proposals": s.clock = (epoch, s.clock[1], s.i)
        for r in list(s.recs.values()):
            if s.recs.get(r.tx.tid) is not r or not s.is_affected(r.chain, r.tx, r.attempt): continue
            if r.state == APPLIED:
                for by in sorted(r.unstable):
                    if s.authority_now(r, by) == s.i: s.stable_here(r, by)
            elif r.state != DEC:
                if next((n for n in r.chain.nodes if n in up), s.i) == s.i: s.inquire(r.tx, r.chain, r.begun, False)
                elif r.state in (WAIT, PARK): s.remove(r, None)
        for q in list(s.inq.values()):
            if q.attempt[0] < epoch: s.inquire(q.tx, q.chains[0], q.begun, False)
        s.wake()

    def restart(s):
        """The log comes back: what was validated, promised, aborted; of what was applied what is surely durable, and
        perhaps more of it."""
        del s.log[s.w.rng.randint(s.synced, len(s.log)):]
        s.recs, s.mem, s.inq, s.reads, s.objs = {}, {}, {}, [], defaultdict(list)
        seen = [d.val[4] for d in s.disk.values() if d.val] + [f for _, f, *_ in s.log]
        s.clock = (s.epoch, max([f[1] for f in seen] + [0]), s.i)
        s.past, s.done_to = [(s.w.now, s.clock[1])], 0
        for tid, d in s.disk.items():
            if d.val and not d.abort:
                tx, chain, entered, begun, p = d.val
                r = s.recs[tid] = Record(s, tx, chain, entered, begun, p, None)
                r.state, r.p, r.attempt = VAL, p, max(entered, d.fence)
            elif d.fence != NEVER or d.abort:
                e = s.entry(tid, d.fence)
                if d.abort: e.outcome = (ABORT, d.abort)
        for tid, f, here, tx, chain, entered, begun in s.log:
            for o in here: s.objs[o].append((f, tid))
            if begun <= s.floor and tid not in s.recs: continue
            r = s.recs[tid] = s.recs.get(tid) or Record(s, tx, chain, entered, begun, f, None)
            r.state, r.f, r.behind, r.passed, r.anchored = APPLIED, f, True, True, True
            r.unanchored = set()
            r.unstable.discard(s.i)

    # -- forgetting (F10, F11) ----------------------------------------------------------------------------------
    def review(s):
        """With each tick: how far this node is done; says so to the monitors with its lease."""
        s.clock = max(s.clock, (s.clock[0], s.day(), s.i))
        s.past.append((s.w.now, s.clock[1]))
        before = [c for then, c in s.past if then + WINDOW <= s.w.now]
        s.past = s.past[max(len(before) - 1, 0):]
        horizon = before[-1] if before else 0
        begun = [r.begun for r in s.recs.values()] + [q.begun for q in s.inq.values()]
        s.done_to = max(s.done_to, min([horizon] + [b - 1 for b in begun]), s.floor)
        if s.w.bug == "no-F10": s.floor = max(s.floor, horizon)
        s.synced = len(s.log)                                       # it says so when that is durable
        s.send("monitors", "RENEW", s.clock[1], s.done_to)
        s.let_go()

    def on_GRANTED(s, frm, clock, floor):
        s.observe_day(clock)
        s.floor = max(s.floor, floor)

    def let_go(s):
        for tid in [t for t, e in s.mem.items() if e.noted <= s.floor and t not in s.recs]:
            if s.mem[tid].outcome: s.w.forgot += 1
            del s.mem[tid]
            s.disk.pop(tid, None)

    # -- reads --------------------------------------------------------------------------------------------------
    def writers(s, o, *states): return [q for q in s.recs.values() if o in q.here and q.state in states]

    def on_READ(s, frm, rid, o, seen=None):
        if s.i not in s.replicas(o): return
        mine, bug = s.writers(o, VAL, DEC), s.w.bug
        if s.authority(o) == s.i:
            if seen is None: seen = {q.tx.tid for q in mine}        # what was in flight on arrival
            if any(q.tx.tid in seen and (q.state == DEC or bug != "no-wait") for q in mine):
                s.reads.append(("on_READ", (frm, rid, o, seen))); return
        elif bug != "dirty-read":
            unstable = [q for q in s.writers(o, APPLIED) if q.chain.auth[o] in q.unstable]
            if mine or unstable and bug != "unstable": return s.send(s.authority(o), "READ", rid, o)
        s.w.read_done(rid, [x for _, x in s.objs[o]])

    def on_CLOCK(s, frm, rid, o, seen=None):
        """The clock of o's authority once everything in flight on arrival is shown (R6)."""
        if s.i not in s.replicas(o): return
        if s.authority(o) != s.i: return s.send(s.authority(o), "CLOCK", rid, o)
        mine = s.writers(o, VAL, DEC)
        if seen is None: seen = {q.tx.tid for q in mine}
        if any(q.tx.tid in seen for q in mine): s.reads.append(("on_CLOCK", (frm, rid, o, seen))); return
        s.w.clock_done(rid, o, s.clock)

    def on_SNAP(s, frm, rid, o, S, seen=None):
        """Read o as of timestamp S (R5); S is None on a snapshot's first read."""
        if s.i not in s.replicas(o): return
        if s.authority(o) != s.i:                                   # clean up to S: answer here
            at = S or s.clock
            late = [q for q in s.writers(o, VAL, DEC) if (q.p if q.state == VAL else q.f) <= at]
            late += [q for q in s.writers(o, APPLIED) if q.f <= at and q.chain.auth[o] in q.unstable]
            if late: return s.send(s.authority(o), "SNAP", rid, o, S)
        S = S or s.clock
        s.observe(S)
        mine = s.writers(o, VAL, DEC)
        if seen is None: seen = {q.tx.tid for q in mine}
        late = [q for q in mine if q.tx.tid in seen and (q.p if q.state == VAL else q.f) <= S]
        if late and s.w.bug != "snap-no-wait": s.reads.append(("on_SNAP", (frm, rid, o, S, seen))); return
        s.w.snap_done(rid, o, S, [x for ts, x in s.objs[o] if ts <= S])


class World:
    def __init__(s, seed, N=5, objs=4, R=3, ntx=14, nreads=30, nsnaps=6, crashes=0, bug=None, loss=0.0, hold=0.0,
                 power=0, lag=False, forget=False, skew=40):
        s.rng, s.N, s.R, s.bug, s.now, s.skew = random.Random(seed), N, R, bug, 0, skew
        s.place = {o: sorted(s.rng.sample(range(N), R)) for o in range(objs)}
        s.nodes = [Node(s, i) for i in range(N)]
        s.epoch, s.up, s.since = 0, frozenset(range(N)), 0
        s.q, s.held, s.hist, s.said = [], [], {}, {}
        s.rids, s.snaps, s.started, s.rstarted = {}, {}, 0, 0
        s.ntx, s.nreads, s.nsnaps, s.crashes, s.loss, s.hold, s.power = ntx, nreads, nsnaps, crashes, loss, hold, power
        s.lag, s.forget, s.is_whole, s.last = lag, forget, False, None
        s.trace = None
        s.ballots = s.forgot = s.closed = s.unknown = 0

    # -- the network, the monitors ------------------------------------------------------------------------------
    def send(s, frm, to, epoch, kind, *a): s.q.append((frm, to, epoch, kind, a))

    def deliver(s):
        k = s.rng.randrange(len(s.q))
        s.q[k], s.q[-1] = s.q[-1], s.q[k]
        frm, to, epoch, kind, a = m = s.q.pop()
        if kind != "MAP" and not s.is_whole:
            r = s.rng.random()
            if r < s.hold and kind not in ("READ", "SNAP", "CLOCK", "RENEW", "GRANTED"):
                s.held.append(m)                                    # the network has it for long, perhaps twice
                if s.rng.random() < 0.5: return
            elif r < s.hold + s.loss: return
        if to == "monitors":
            if not s.nodes[frm].alive: return
            s.said[frm] = a
            floor = min(s.said.get(n, (0, 0))[1] for n in s.up)
            return s.send(None, frm, 0, "GRANTED", max(c for c, _ in s.said.values()), floor)
        n = s.nodes[to]
        if not n.alive: return
        if kind == "MAP": return n.install(*a)
        if epoch > n.epoch: s.q.append(m); return
        if s.trace is not None: s.show(frm, to, kind, a)
        if frm is None or frm in n.up: getattr(n, "on_" + kind)(frm, *a)

    def show(s, frm, to, kind, a):
        about = [x.tid if isinstance(x, Tx) else x for x in a]
        if s.trace in about[:1]:
            rest = [x.nodes if isinstance(x, Chain) else x for x in about[1:]]
            r, e = s.nodes[to].recs.get(s.trace), s.nodes[to].mem.get(s.trace)
            knows = f"{r.state} in {r.entered}, promised {r.attempt}" if r else \
                f"{e.outcome}, promised {e.attempt}, noted {e.noted}" if e else "nothing"
            print(f"{s.now}: {frm} -> {to} {kind} {rest}; floor {s.nodes[to].floor}; knew {knows}")

    def release(s):
        if s.held: s.q.append(s.held.pop(s.rng.randrange(len(s.held))))

    # -- clients ------------------------------------------------------------------------------------------------
    def client_map(s):
        if not s.lag: return s.epoch, s.up
        n = s.nodes[s.rng.choice(sorted(s.up))]
        return n.epoch, n.up

    def submit(s, tid):
        h = s.hist[tid]
        epoch, up = s.client_map()
        is_full = not h["tx"].short or s.rng.random() < 0.3
        to = Chain(h["tx"], s.place, up, is_full).nodes[0]
        s.send(None, to, epoch, "SUBMIT", h["tx"], is_full, h["tries"] > 0)
        h["tries"] += 1

    def ask_again(s):
        """A client is impatient, or asks long after it was answered: the reply was lost, or the user asks."""
        tids = [t for t, h in s.hist.items() if h["tx"]]
        if tids: s.submit(s.rng.choice(tids[-6:] if s.rng.random() < 0.6 else tids))

    def reply(s, node, tx, outcome):
        s.last = node.i
        if s.rng.random() < s.loss and not s.is_whole: return
        h = s.hist[tx.tid]
        h["acks"].append(outcome)
        if h["end"] is not None: return
        h["end"], h["ok"] = s.now, outcome[0] == COMMIT
        if outcome[1] == TIMED_OUT: h["ok"] = None; s.unknown += 1
        if outcome[1] == NEVER_BEGUN and s.started < 3 * s.ntx:     # F12: the library commits it anew
            s.closed += 1
            s.start_tx(set(tx.writes), list(tx.reads), set(tx.conds), set(tx.short))

    def decided(s, tid, attempt, at): s.hist[tid]["in"].setdefault(at, attempt)

    def new_tx(s):
        objs = list(s.place)
        kind = s.rng.random()
        ws = set(s.rng.sample(objs, min(len(objs), s.rng.choice([1, 1, 2, 3]))))
        rs = s.rng.sample(objs, min(len(objs), s.rng.choice([1, 2]))) if kind >= 0.55 else []
        cs = set(s.rng.sample(objs, 1)) if s.rng.random() < 0.2 else set()
        short = {s.rng.choice(sorted(ws))} if len(ws) > 1 and s.rng.random() < 0.3 else set()
        s.start_tx(ws, rs, cs, short)

    def start_tx(s, ws, rs, cs, short):
        tid = s.started; s.started += 1
        h = s.hist[tid] = dict(start=s.now, end=None, ok=None, reads={}, writes=ws, tx=None, saw={}, acks=[], tries=0)
        h["in"], got = {}, {}
        def go():
            n = s.nodes[s.rng.choice(sorted(s.up))]                 # whose clock the client has heard of
            h["tx"], h["reads"] = Tx(tid, dict(got), ws, cs, short, max(n.clock[1], n.day())), dict(got)
            s.submit(tid)
        def then(o, v):
            got[o] = v
            if len(got) == len(rs): go()
        for o in rs: s.new_read(o, then)
        if not rs: go()

    def new_read(s, o, then=None):
        rid = (1, s.rstarted); s.rstarted += 1
        s.rids[rid] = dict(o=o, start=s.now, end=None, val=None, then=then)
        s.ask_read(rid)

    def any_of(s, o): return s.rng.choice([n for n in s.place[o] if n in s.up])
    def ask_read(s, rid): s.send(None, s.any_of(s.rids[rid]["o"]), s.epoch, "READ", rid, s.rids[rid]["o"])

    def read_done(s, rid, val):
        h = s.rids[rid]
        if h["end"] is not None: return
        h["end"], h["val"] = s.now, val
        if h["then"]: h["then"](h["o"], val)

    def new_snap(s):
        rid = (2, len(s.snaps))
        os = s.rng.sample(list(s.place), min(len(s.place), 2 + (s.rng.random() < .5)))
        s.snaps[rid] = dict(os=os, S=None, got={}, start=s.now, end=None, fresh=s.rng.random() < 0.5, clocks={})
        s.snap_next(rid)

    def snap_next(s, rid):
        h = s.snaps[rid]
        left = [o for o in h["os"] if o not in h["got"]]
        if not left: h["end"] = h["end"] or s.now; return
        if h["fresh"] and h["S"] is None:
            need = [o for o in h["os"] if o not in h["clocks"]]
            for o in need: s.send(None, s.any_of(o), s.epoch, "CLOCK", rid, o)
            if need: return
            h["S"] = max(h["clocks"].values())
        s.send(None, s.any_of(left[0]), s.epoch, "SNAP", rid, left[0], h["S"])

    def clock_done(s, rid, o, c):
        h = s.snaps[rid]
        if o in h["clocks"] or h["S"] is not None: return
        h["clocks"][o] = c
        if len(h["clocks"]) == len(h["os"]): s.snap_next(rid)

    def snap_done(s, rid, o, S, val):
        h = s.snaps[rid]
        if o in h["got"] or (h["S"] is not None and S != h["S"]): return
        h["S"] = S; h["got"][o] = val; s.snap_next(rid)

    # -- faults -------------------------------------------------------------------------------------------------
    def new_map(s):
        s.epoch += 1
        for n in sorted(s.up): s.send(None, n, s.epoch, "MAP", s.epoch, s.up, s.since)

    def crash(s):
        """Half of the time who has just answered a client: what only it knows is lost with its disk."""
        k = s.last if s.last in s.up and s.rng.random() < 0.5 else s.rng.choice(sorted(s.up))
        s.nodes[k].alive = False
        s.up, s.crashes = s.up - {k}, s.crashes - 1
        s.new_map()

    def power_loss(s):
        s.power -= 1
        s.q, s.held, s.since = [], [], s.epoch + 1
        for n in s.nodes:
            if n.alive: n.restart()
        s.new_map()

    # -- a run --------------------------------------------------------------------------------------------------
    def run(s):
        idle = 0
        while True:
            s.now += 1
            r = s.rng.random()
            if s.started < s.ntx and r < 0.1: s.new_tx()
            elif s.rstarted < s.nreads + s.ntx and r < 0.18: s.new_read(s.rng.choice(list(s.place)))
            elif len(s.snaps) < s.nsnaps and 0.18 <= r < 0.21: s.new_snap()
            elif s.forget and 0.21 <= r < 0.27: s.nodes[s.rng.choice(sorted(s.up))].review()
            elif not s.is_whole and 0.27 <= r < 0.29: s.release()
            elif (s.loss or s.hold) and not s.is_whole and 0.29 <= r < 0.30: s.ask_again()
            elif (s.loss or s.hold) and not s.is_whole and 0.30 <= r < 0.31: s.nodes[s.rng.choice(sorted(s.up))].ask_all()
            elif s.crashes and r > 0.985 and s.now > 20 and not s.is_whole: s.crash()
            elif s.power and r > 0.975 and s.now > 60 and not s.is_whole: s.power_loss()
            elif s.q: s.deliver()
            elif s.started >= s.ntx:
                idle += 1
                if s.is_whole and s.is_over(): break
                if idle > 60: return s.two_ends() or s.what_is_open()
                s.is_whole = idle > 8
                s.stir(idle)
            if s.now > 60000: return "it does not end: " + str(s.what_is_open())
        return s.check()

    def stir(s, idle):
        """No message is on its way: time passes, and all that waits asks."""
        s.now += 40
        if s.is_whole: s.q += s.held; s.held = []
        else: s.release()
        if s.forget:
            for n in sorted(s.up): s.nodes[n].review()
        for tid, h in list(s.hist.items()):
            if h["end"] is None and h["tx"]: s.submit(tid)
        for n in sorted(s.up): s.nodes[n].ask_all()
        for rid, h in s.rids.items():
            if h["end"] is None: s.ask_read(rid)
        for rid, h in s.snaps.items():
            if h["end"] is None: s.snap_next(rid)

    def what_is_open(s):
        for tid, h in s.hist.items():
            if h["end"] is None: return f"tx {tid} is never answered"
        for name, all in (("read", s.rids), ("snapshot", s.snaps)):
            for rid, h in all.items():
                if h["end"] is None: return f"{name} {rid} is never answered"
        for n in s.nodes:
            if not n.alive: continue
            for tid, r in n.recs.items(): return f"node {n.i} holds tx {tid}, {r.state}, for ever"
            for tid in n.inq: return f"node {n.i} asks about tx {tid} for ever"

    def two_ends(s):
        """Decided at one node, aborted at another."""
        ends = defaultdict(dict)
        for n in s.nodes:
            if not n.alive: continue
            for tid, r in n.recs.items():
                if r.f or r.known: ends[tid][COMMIT] = n.i
            for tid, e in n.mem.items():
                if e.outcome: ends[tid][e.outcome[0]] = n.i
        for tid, of in sorted(ends.items()):
            if len(of) > 1: return f"tx {tid} is committed at node {of[COMMIT]} and aborted at node {of[ABORT]}"

    def is_over(s): return not s.held and not s.what_is_open()

    # -- the checker --------------------------------------------------------------------------------------------
    def check(s):
        final, at = {}, {}
        for o, pl in s.place.items():
            ls = [s.nodes[n].objs[o] for n in pl if s.nodes[n].alive]
            final[o] = [x for _, x in ls[0]]
            if any([x for _, x in l] != final[o] for l in ls): return f"replicas of {o} differ: {ls}"
            if len(set(final[o])) != len(final[o]): return f"a tx took effect twice on {o}: {final[o]}"
            for f, x in ls[0]:
                if at.setdefault(x, f) != f: return f"tx {x} took effect at {f} and at {at[x]}"
        for t, h in s.hist.items():
            for what, why in h["acks"]:
                if what == COMMIT and at.get(t, why) != why: return f"tx {t}: committed at {why} was answered, it is at {at[t]}"
                if what == COMMIT and t not in at: return f"tx {t}: committed was answered, it took no effect"
                if what == ABORT and why != TIMED_OUT and t in at: return f"tx {t}: aborted ({why}) was answered, it took effect"
            if t in at and any(t not in final[o] for o in h["writes"]): return f"tx {t} took effect in part"
            if h["ok"] is None: h["end"] = s.now + 1
            tx, whys = h["tx"], {why for what, why in h["acks"] if what == ABORT}
            if not tx.reads and not tx.conds and CONFLICT in whys: return f"tx {t} only writes, and was aborted"
            if t in at and tx.conds: h["reads"] = {**h["saw"][h["in"][at[t]]], **h["reads"]}
        committed = set(at)
        # transactions and single reads: strictly serializable; with all snapshots: serializable; those that name
        # their keys up front are fresh, too
        for rid, h in s.snaps.items():
            for o, v in h["got"].items():
                for t in committed:
                    if h["fresh"] and o in s.hist[t]["writes"] and s.hist[t]["end"] < h["start"] and t not in v:
                        return f"snapshot {rid} misses tx {t} in {o}, which was answered before"
        return s.cycle(final, committed, True) or s.cycle(final, committed, False)

    def cycle(s, final, committed, strict):
        E = defaultdict(dict)                     # in the order of insertion, so that a seed says the same always
        seen = [(t, s.hist[t]["reads"]) for t in sorted(committed)]
        seen += [(r, {h["o"]: h["val"]}) for r, h in s.rids.items()]
        seen += [] if strict else [(r, h["got"]) for r, h in s.snaps.items()]
        for o in final:
            for a, b in zip(final[o], final[o][1:]): E[a][b] = True
        for name, got in seen:
            for o, v in got.items():
                if final[o][:len(v)] != v: return f"{name} saw {v} of {o}, which is {final[o]} in the end"
                if v and v[-1] != name: E[v[-1]][name] = True
                rest = [x for x in final[o][len(v):] if x != name]
                if rest: E[name][rest[0]] = True
        if strict:
            ev = [(s.hist[t]["start"], s.hist[t]["end"], t) for t in sorted(committed)]
            ev += [(h["start"], h["end"], r) for r, h in s.rids.items()]
            for a in ev:
                for b in ev:
                    if a[1] < b[0]: E[a[2]][b[2]] = True
        col = {}
        for u in list(E):
            if u in col: continue
            stack = [(u, iter(E[u]))]; col[u] = 1
            while stack:
                x, it = stack[-1]
                for y in it:
                    if col.get(y) == 1:
                        p = [z for z, _ in stack]
                        return f"{'in real time ' if strict else ''}a cycle: {p[p.index(y):]}"
                    if y not in col: col[y] = 1; stack.append((y, iter(E[y]))); break
                else: col[x] = 2; stack.pop()
        return None


# What each switch takes away, and a run in which that is noticed: the options and the seed.
A = "--crashes 2 --loss 0.03 --hold 0.05 --forget"
B = "--hold 0.3 --forget --nodes 2 --replicas 1 --chunks 3 --txs 30 --reads 5 --snapshots 0 --skew 150"
C = "--crashes 2 --loss 0.03"
D = "--nodes 6 --replicas 1 --chunks 5"
E = "--hold 0.1 --loss 0.05 --replicas 1 --chunks 3 --txs 30 --reads 5 --snapshots 0"
SWITCHES = {
    "no-C1": ("C1: reads and conditions do not look at what is in flight", C, 3),
    "no-C2": ("C2: a write does not wait for the validated read", C, 6),
    "no-C5": ("C5: what the tail has validated is not taken for decided", "--power 1 --loss 0.02", 15),
    "no-C6": ("C6: applied in any order", C, 4),
    "early-ack": ("C7: passed back before it is applied", C, 780),
    "no-C9": ("C9: applied on the backward message alone", D, 296),
    "dirty-read": ("R1: a replica shows what is not clean", C, 0),
    "no-wait": ("R1: the authority does not wait for what is undecided", C, 3),
    "unstable": ("R2: shown before it is stable", C, 713),
    "snap-no-wait": ("R5: a read at S does not wait", C, 0),
    "no-F2": ("F2: older attempts are taken part in", C, 115),
    "early-reset": ("F3: what was validated is withdrawn with the answer to a query", C, 4),
    "no-F4": ("F4: a ballot does not hear of outcomes", C, 7),
    "blind-retry": ("F4: a client's retry is a new submission", C, 3),
    "no-F8": ("F8: an attempt is promised to when its pass comes by", E, 497),
    "no-F9": ("F9: the head or coordinator answers an abort that it alone has", A, 196),
    "no-F10": ("F10: nodes forget by themselves", A, 1415),
    "noted-early": ("F10: a promise is noted by a clock that is behind", B, 172),
    "no-F11": ("F11: forgotten is taken for never seen", A, 0),
    "timed-out-stays": ("F11: too late to tell is taken for an abort", B, 882),
    "no-F12": ("F12: a question runs what nobody has", A, 593),
}
# Kept to try with; not noticed in a thousand seeds or more of the settings above.
NOT_NOTICED = ("again-late", "no-F9-back", "no-C9-C2", "anchor-knows", "one-anchor", "old-proposals", "no-reset")

# What must be clean: options, and the seeds.
CLEAN = (
    ("", 0, 60),
    (D, 0, 60),
    ("--crashes 1 --loss 0.03", 0, 60),
    (A, 0, 120),
    (A + " --lag --nodes 4 --skew 150", 0, 60),
    (A + " --nodes 3", 0, 60),
    (B, 0, 60),
    (E, 0, 40),
    ("--power 1 --loss 0.02 --forget --hold 0.03", 0, 60),
    ("--power 2 --loss 0.03 --forget --hold 0.05 --replicas 2 --nodes 4", 0, 60),
)


def explore(first, last, a):
    """Runs seeds; answers what happened how often, how many failed, and what failed first."""
    total, bad, found = defaultdict(int), 0, None
    for seed in range(first, last):
        w = World(seed, N=a.nodes, objs=a.chunks, R=a.replicas, ntx=a.txs, nreads=a.reads, nsnaps=a.snapshots,
                  crashes=a.crashes, bug=a.bug, loss=a.loss, hold=a.hold, power=a.power, lag=a.lag, forget=a.forget,
                  skew=a.skew)
        w.trace = a.trace
        try: e = w.run()
        except AssertionError as x: e = str(x)
        for name, n in (("seeds", 1), ("steps", w.now), ("transactions", len(w.hist)), ("ballots", w.ballots),
                        ("never begun", w.closed), ("outcomes forgotten", w.forgot), ("told too late", w.unknown),
                        ("aborted", sum(1 for h in w.hist.values() if h["ok"] is False))): total[name] += n
        if e:
            bad += 1
            found = found or (seed, e)
            if a.until_bad: break
    return total, bad, found


def arguments(words):
    a = argparse.ArgumentParser(description="see the top of this file")
    a.add_argument("first", type=int, nargs="?", default=0)
    a.add_argument("last", type=int, nargs="?", default=100)
    for name, default in (("nodes", 5), ("replicas", 3), ("chunks", 4), ("txs", 14), ("reads", 30), ("snapshots", 6),
                          ("crashes", 0), ("power", 0), ("skew", 40)):
        a.add_argument("--" + name, type=int, default=default)
    a.add_argument("--loss", type=float, default=0.0, help="the probability that a message is lost")
    a.add_argument("--hold", type=float, default=0.0, help="the probability that it comes very late, perhaps twice")
    a.add_argument("--lag", action="store_true", help="clients use the map of any node")
    a.add_argument("--forget", action="store_true", help="nodes say how far they are done, and forget")
    a.add_argument("--break", dest="bug", choices=[*SWITCHES, *NOT_NOTICED])
    a.add_argument("--until-bad", action="store_true", help="end at the first seed that fails")
    a.add_argument("--trace", type=int, help="a transaction whose messages are printed")
    a.add_argument("--all", action="store_true", help="what must be clean, and every switch")
    return a.parse_args(words)


def check_all():
    """Every line of the page; answers whether it is as it must be."""
    began, sum_of, is_good = time.time(), defaultdict(int), True
    print("| options | " + " | ".join(("seeds", "steps", "transactions", "ballots", "forgotten", "wrong")) + " |")
    for options, first, last in CLEAN:
        total, bad, found = explore(first, last, arguments([str(first), str(last), *options.split()]))
        for name, n in total.items(): sum_of[name] += n
        of = [total[name] for name in ("seeds", "steps", "transactions", "ballots", "outcomes forgotten")]
        print(f"| {options or 'no faults'} | " + " | ".join(f"{n:,}" for n in of) + f" | {bad} |", found or "")
        is_good &= not bad
    print(f"together {sum_of['seeds']:,} seeds, {sum_of['steps']:,} steps, {sum_of['transactions']:,} transactions, "
          f"{sum_of['ballots']:,} ballots, {sum_of['outcomes forgotten']:,} outcomes forgotten\n")
    for switch, (what, options, seed) in SWITCHES.items():
        words = [str(seed), str(seed + 1), *options.split()]
        clean = explore(seed, seed + 1, arguments(words))
        total, _, found = explore(seed, seed + 1, arguments([*words, "--break", switch]))
        says = found[1] if found else "NOT NOTICED"
        says += f" (AND WITH ALL RULES: {clean[2][1]})" if clean[2] else ""
        print(f"| {switch} | {what} | seed {seed} of {options or 'no faults'}, {total['steps']:,} steps | {says[:160]} |")
        is_good &= bool(found) and not clean[2]
    print(f"{time.time() - began:.0f} s: {'as it must be' if is_good else 'NOT as it must be'}")
    return is_good


def main():
    a = arguments(None)
    if a.all: sys.exit(0 if check_all() else 1)
    total, bad, found = explore(a.first, a.last, a)
    if found: print(f"seed {found[0]}: {found[1]}")
    print(", ".join(f"{n} {name}" for name, n in total.items()) + f"; {bad} wrong")


if __name__ == "__main__": main()
