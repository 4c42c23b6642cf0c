import io.github.tyrstore.*;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/** Transactions: what they do, together or not at all, and what becomes of conflicts. */
public final class TransactionsTest extends StoreCase {
    public void everyOperationTakesEffectAtTheCommit() {
        data.put("old", Expect.utf8("0123456789"));
        data.put("number", new byte[8]);
        try (Transaction t = store.begin()) {
            Operation<Boolean> gone = t.delete(data, "gone");
            t.create(data, "made");
            t.put(data, "put", Expect.utf8("put"));
            t.write(data, "old", 2, Expect.utf8("zwei"));
            Operation<Long> offset = t.append(data, "old", Expect.utf8("!"));
            Operation<Long> at = t.appendAt(data, "log", 0, Expect.utf8("first"));
            t.truncate(data, "cut", 3);
            t.clear(data, "old", 0, 1);
            Operation<Long> count = t.apply(data, "count", 0, Transform.add(7));
            Operation<Double> half = t.apply(data, "half", 0, Transform.add(0.5));
            t.compare(data, Key.of("number"), 0, new byte[8]);
            t.compareNumber(data, "number", 0, Relation.LESS, NumberType.I64, 1);
            t.compareNumber(data, "none", 0, Relation.EQUAL, NumberType.F64, 0.0);
            t.expectAbsent(data, "absent");
            t.expectPresent(data, "old");
            t.expectVersion(data, "number", data.stat("number").version());
            Expect.thrown(IllegalStateException.class, "once its transaction", offset::value);
            Expect.thrown(NotFoundException.class, "", () -> data.get("put"));
            Committed committed = t.commit();
            Expect.equal(10L, offset.value());
            Expect.equal(0L, at.value());
            Expect.equal(7L, count.value());
            Expect.equal(0.5, half.value());
            Expect.equal(false, gone.value());
            Expect.equal(committed.version(), data.stat("put").version());
            Expect.equal(Arrays.asList(false, null, null, null, 10L, 0L, null, null, 7L, 0.5,
                    null, null, null, null, null), committed.answers());
        }
        Expect.equal("\0" + "1zwei6789!", Expect.text(data.get("old")));
        Expect.equal(3L, data.stat("cut").size());
        Expect.equal("first", Expect.text(data.get("log")));
    }

    public void readsSeeWhatTheTransactionHasWritten() {
        data.put("a", Expect.utf8("old"));
        try (Transaction t = store.begin()) {
            t.append(data, "a", Expect.utf8("er"));
            Expect.equal("older", Expect.text(t.get(data, "a")));
            Expect.equal("er", Expect.text(t.read(data, "a", 3, 9)));
            Expect.equal(5L, t.stat(data, "a").size());
            Expect.thrown(NotFoundException.class, "none", () -> t.get(data, "none"));
            t.rollback();
            t.rollback();
            Expect.thrown(IllegalStateException.class, "was rolled back", t::commit);
        }
        Expect.equal("old", Expect.text(data.get("a")));
        try (Transaction t = store.begin()) {
            Expect.equal(3L, t.copy(data, "a", data, "b"));
            t.commit();
            Expect.thrown(IllegalStateException.class, "was committed", t::commit);
            Expect.thrown(IllegalStateException.class, "was committed", () -> t.get(data, "a"));
        }
        Expect.equal("old", Expect.text(data.get("b")));
        try (Transaction t = store.begin()) {
            t.put(data, "never", new byte[1]);
        }
        Expect.thrown(NotFoundException.class, "never", () -> data.get("never"));
    }

    public void listingsOfAGroupAreValidated() {
        Keyspace groups = store.keyspaceOrCreate("groups",
                KeyspaceConfig.DEFAULT.placedBy("up-to:/"));
        groups.put("a/1", new byte[1]);
        try (Transaction t = store.begin()) {
            t.put(groups, "a/2", new byte[2]);
            Page page = t.scanPage(groups, Scan.ALL.prefix("a/"));
            Expect.equal(2, page.entries().size());
            groups.put("a/3", new byte[3]);
            Expect.thrown(ConflictException.class, "", t::commit);
        }
    }

    public void aConditionThatDoesNotHoldIsTold() {
        data.put("a", new byte[1]);
        try (Transaction t = store.begin()) {
            t.put(data, "b", new byte[1]);
            Operation<Void> absent = t.expectAbsent(data, "c");
            Operation<Void> number = t.compareNumber(
                    data, "a", 0, Relation.GREATER, NumberType.U8, 0);
            ConflictException error = Expect.thrown(ConflictException.class, "", t::commit);
            Expect.equal(true, error.isOf(number));
            Expect.equal(false, error.isOf(absent));
            Expect.equal(Key.of("a"), error.key().get());
        }
        try (Transaction t = store.begin()) {
            t.create(data, "a");
            Expect.thrown(AlreadyExistsException.class, "\"a\"", t::commit);
        }
        try (Transaction t = store.begin()) {
            t.expectPresent(data, "none");
            Expect.thrown(NotFoundException.class, "none", t::commit);
        }
    }

    public void aVersionIsACondition() {
        data.put("a", Expect.utf8("one"));
        Version one = data.stat("a").version();
        data.write("a", 0, Expect.utf8("two"));
        try (Transaction t = store.begin()) {
            t.expectVersion(data, "a", one);
            t.put(data, "b", new byte[0]);
            Expect.thrown(ConflictException.class, "", t::commit);
        }
        try (Transaction t = store.begin()) {
            t.expectVersion(data, Key.of("a"), data.stat("a").version());
            t.put(data, "b", new byte[0]);
            t.commit();
        }
    }

    public void aConflictRunsTheFunctionAgain() {
        data.put("a", Expect.utf8("1"));
        AtomicInteger runs = new AtomicInteger();
        Operation<Long> offset = store.transact(t -> {
            byte[] read = t.get(data, "a");
            if (runs.incrementAndGet() < 4) {
                data.put("a", Expect.utf8("" + runs.get()));
            }
            return t.append(data, "a", read);
        });
        Expect.equal(4, runs.get());
        Expect.equal(1L, offset.value());
        Expect.equal("33", Expect.text(data.get("a")));
    }

    public void aFunctionThatOnlyReadsDoesNotStarve() {
        data.put("a", Expect.utf8("0"));
        data.put("b", Expect.utf8("0"));
        AtomicInteger runs = new AtomicInteger();
        store.transact(t -> {
            int run = runs.incrementAndGet();
            Expect.isTrue(run < 10, "it starves");
            t.get(data, "a");
            data.put("a", Expect.utf8("" + run));
            return t.get(data, "b");
        });
    }

    public void whatAFunctionThrowsGoesThroughAndNothingChanges() throws Exception {
        IOException own = new IOException("its own");
        Throwable thrown = Expect.thrown(IOException.class, "its own", () -> store.transact(t -> {
            t.put(data, "a", new byte[1]);
            throw own;
        }));
        Expect.isTrue(thrown == own, "it is the same one");
        AssertionError error = new AssertionError("an error");
        Expect.thrown(AssertionError.class, "an error", () -> store.transact(t -> {
            throw error;
        }));
        Expect.thrown(NotFoundException.class, "none",
                () -> store.transact(t -> t.get(data, "none")));
        AtomicInteger runs = new AtomicInteger();
        ConflictException conflict = Expect.thrown(ConflictException.class, "", () ->
                store.transact(t -> {
                    runs.incrementAndGet();
                    t.put(data, "a", new byte[1]);
                    t.compare(data, "b", 0, new byte[1]);
                    return null;
                }));
        Expect.equal(64, runs.get());
        Expect.equal(Key.of("b"), conflict.key().get());
        Expect.thrown(NotFoundException.class, "", () -> data.get("a"));
    }

    public void aFunctionDoesNotEndItsTransaction() {
        Transaction[] kept = new Transaction[1];
        store.transact(t -> {
            kept[0] = t;
            Expect.thrown(IllegalStateException.class, "transact ends", t::commit);
            Expect.thrown(IllegalStateException.class, "transact ends", t::rollback);
            t.put(data, "a", new byte[1]);
            return null;
        });
        Expect.equal(1L, data.stat("a").size());
        Expect.thrown(IllegalStateException.class, "closed", () -> kept[0].get(data, "a"));
        Expect.thrown(IllegalStateException.class, "transact ends", () -> store.transact(t -> {
            t.close();
            return null;
        }));
    }

    public void transactionsNestWhereTheyDoNotMeet() {
        long inner = store.transact(outer -> {
            outer.put(data, "outer", new byte[1]);
            Operation<Long> count = store.transact(t -> t.apply(data, "n", 0, Transform.add(1)));
            return count.value();
        });
        Expect.equal(1L, inner);
        Expect.equal(1L, data.stat("outer").size());
    }

    public void sumsOfManyThreadsAreRight() throws Exception {
        Expect.inThreads(4, () -> {
            for (int round = 0; round < 25; round++) {
                store.transact(t -> {
                    t.apply(data, "blind", 0, Transform.add(1));
                    byte[] read = new byte[1];
                    try {
                        read = t.get(data, "read");
                    } catch (NotFoundException none) {
                        // The first one.
                    }
                    read[0]++;
                    return t.put(data, "read", read);
                });
            }
            return null;
        });
        Expect.equal(100L, data.apply("blind", 0, Transform.add(0)));
        Expect.equal(100, (int) data.get("read")[0]);
    }
}
