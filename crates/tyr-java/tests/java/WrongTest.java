import io.github.tyrstore.*;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** Wrong input of every kind is an exception with words: no crash, no hang, nothing lost. */
public final class WrongTest extends StoreCase {
    public void nullIsANullPointerException() {
        Transaction t = store.begin();
        Snapshot snapshot = store.snapshot();
        for (Expect.Throwing call : List.<Expect.Throwing>of(
                () -> data.put((Key) null, new byte[1]),
                () -> data.put((String) null, new byte[1]),
                () -> data.put("a", null),
                () -> data.putAsync("a", null),
                () -> data.write("a", 0, null),
                () -> data.append("a", null),
                () -> data.compareAndSwap("a", 0, null, new byte[1]),
                () -> data.compareAndSwap("a", 0, new byte[1], null),
                () -> data.get((String) null),
                () -> data.read("a", 0, (ByteBuffer) null),
                () -> data.apply("a", 0, (Transform<Long>) null),
                () -> data.list(null),
                () -> data.scanPage(null),
                () -> t.put(null, "a", new byte[1]),
                () -> t.put(data, "a", null),
                () -> t.get(null, "a"),
                () -> t.expectVersion(data, "a", null),
                () -> t.compareNumber(data, "a", 0, null, NumberType.U8, 1),
                () -> t.compareNumber(data, "a", 0, Relation.LESS, null, 1),
                () -> t.copy(data, "a", null, "b"),
                () -> snapshot.get(null, "a"),
                () -> snapshot.list(null, Scan.ALL),
                () -> store.transact(null),
                () -> store.transactAsync(null),
                () -> store.keyspace(null),
                () -> store.keyspaceOrCreate("a", null),
                () -> store.keep(null),
                () -> store.copy(null, "a", data, "b"),
                () -> store.readMany(null),
                () -> store.readMany(Arrays.asList((ReadRequest) null)),
                () -> store.outcome(null),
                () -> new ReadRequest(null, "a", 0, 1),
                () -> Tyr.open((String) null),
                () -> Tyr.open((Path) null),
                () -> Tyr.connect(null),
                () -> Tyr.openOptions().executor(null),
                () -> Tyr.connectOptions().user("ann", (String) null),
                () -> KeyspaceConfig.DEFAULT.durability(null),
                () -> Key.of((byte[]) null),
                () -> Transform.of(null, NumberType.I64, 1))) {
            Expect.thrown(NullPointerException.class, "", call);
        }
        snapshot.close();
        t.close();
    }

    public void wrongNumbersAreIllegalArguments() {
        Transaction t = store.begin();
        for (Expect.Throwing call : List.<Expect.Throwing>of(
                () -> data.read("a", -1, 1),
                () -> data.read("a", 0, -1),
                () -> data.readAsync("a", -1, 1),
                () -> data.read("a", -1, ByteBuffer.allocateDirect(1)),
                () -> data.write("a", Long.MIN_VALUE, new byte[1]),
                () -> data.truncate("a", -1),
                () -> data.clear("a", 0, -1),
                () -> t.write(data, "a", -1, new byte[1]),
                () -> new ReadRequest(data, "a", 0, -1),
                () -> Scan.ALL.limit(-1),
                () -> Transform.of(Transform.Kind.ADD, NumberType.U8, 256),
                () -> Transform.of(Transform.Kind.ADD, NumberType.I8, -129),
                () -> Transform.of(Transform.Kind.ADD, NumberType.F64, 1),
                () -> Transform.of(Transform.Kind.ADD, NumberType.I64, 1.0),
                () -> t.compareNumber(data, "a", 0, Relation.LESS, NumberType.U8, -1),
                () -> KeyspaceConfig.DEFAULT.replication(-1),
                () -> Tyr.openOptions().snapshotTimeout(Duration.ofMillis(-1)))) {
            Expect.thrown(IllegalArgumentException.class, "", call);
        }
        t.close();
    }

    public void wrongValuesAreInvalidArguments() {
        data.put("a", new byte[10]);
        byte[] long_ = new byte[5000];
        Arrays.fill(long_, (byte) 'k');
        for (Expect.Throwing call : List.<Expect.Throwing>of(
                () -> data.put("", new byte[1]),
                () -> data.put(Key.of(long_), new byte[1]),
                () -> data.read("a", 0, 1L << 40),
                () -> data.write("a", Long.MAX_VALUE, new byte[1]),
                () -> data.scanPage(Scan.ALL.limit(0)),
                () -> data.apply("a", 0, Transform.of(Transform.Kind.AND, NumberType.F32, 1.0)),
                () -> store.keyspace("Data"),
                () -> store.createKeyspace("x", KeyspaceConfig.DEFAULT.chunkSize(5)),
                () -> store.createKeyspace("x", KeyspaceConfig.DEFAULT.replication(200)),
                () -> store.createKeyspace("x", KeyspaceConfig.DEFAULT.placedBy("colour")),
                () -> store.keep("no name"),
                () -> Tyr.connect("http://one:80"))) {
            Expect.thrown(InvalidArgumentException.class, "", call);
        }
        Expect.thrown(UnavailableException.class, "open", () -> Tyr.open(folder.resolve("store")));
    }

    public void keyspacesOfAnotherStoreAreRefused() {
        try (Tyr other = Tyr.open(folder.resolve("other"));
                Keyspace foreign = other.keyspaceOrCreate("data");
                Snapshot snapshot = store.snapshot();
                Transaction t = store.begin()) {
            for (Expect.Throwing call : List.<Expect.Throwing>of(
                    () -> t.put(foreign, "a", new byte[1]),
                    () -> t.get(foreign, "a"),
                    () -> snapshot.get(foreign, "a"),
                    () -> store.copy(data, "a", foreign, "a"),
                    () -> store.readMany(List.of(new ReadRequest(foreign, "a", 0, 1))))) {
                Expect.thrown(InvalidArgumentException.class, "another store", call);
            }
        }
    }

    public void closedHandlesSaySo() {
        data.put("a", new byte[1]);
        Transaction t = store.begin();
        Snapshot snapshot = store.snapshot();
        Iterable<Entry> listing = data.list();
        Transaction early = store.begin();
        early.close();
        early.close();
        Expect.thrown(IllegalStateException.class, "this transaction is closed",
                () -> early.put(data, "a", new byte[1]));
        store.close();
        for (Expect.Throwing call : List.<Expect.Throwing>of(
                () -> data.get("a"),
                () -> data.put("a", new byte[1]),
                () -> data.read("a", 0, ByteBuffer.allocateDirect(1)),
                () -> listing.iterator().next(),
                () -> t.put(data, "a", new byte[1]),
                () -> t.commit(),
                () -> snapshot.get(data, "a"),
                () -> store.keyspace("data"),
                () -> store.begin(),
                () -> store.transact(none -> null),
                () -> store.snapshot())) {
            Expect.thrown(IllegalStateException.class, "closed", call);
        }
        data.close();
        data.close();
        snapshot.close();
        t.close();
        Expect.thrown(IllegalStateException.class, "this keyspace is closed", () -> data.get("a"));
        Expect.thrown(IllegalStateException.class, "this keyspace is closed", () -> data.list());
    }

    public void handlesAreClosedWhileManyThreadsUseThem() throws Exception {
        long before = Expect.settled(Inside::handles);
        for (int round = 0; round < 5; round++) {
            Tyr shared = Tyr.open(folder.resolve("shared"));
            Keyspace there = shared.keyspaceOrCreate("there",
                    KeyspaceConfig.DEFAULT.durability(Durability.MEMORY));
            Snapshot snapshot = shared.snapshot();
            Transaction t = shared.begin();
            List<AutoCloseable> all = List.of(t, snapshot, there, shared);
            CountDownLatch inUse = new CountDownLatch(6);
            AtomicInteger own = new AtomicInteger();
            Expect.inThreads(8, () -> {
                int number = own.getAndIncrement();
                if (number < 2) {
                    inUse.await();
                    for (AutoCloseable one : all) {
                        one.close();
                    }
                    return null;
                }
                for (int calls = 0; ; calls++) {
                    try {
                        use(number, shared, there, snapshot, t);
                    } catch (IllegalStateException closed) {
                        if (shared.isClosed()) {
                            return null;
                        }
                    } catch (TyrException early) {
                        // What is closed in the middle of a call says so in ways of its own.
                        Expect.isTrue(!(early instanceof BugException), "" + early);
                    }
                    if (calls == 3) {
                        inUse.countDown();
                    }
                }
            });
        }
        Expect.comesTrue("handles are given back", () -> Inside.handles() == before);
    }

    private static void use(
            int number, Tyr shared, Keyspace there, Snapshot snapshot, Transaction t) {
        switch (number) {
            case 2: there.put("a", new byte[100]); break;
            case 3: there.get("a"); break;
            case 4: snapshot.get(there, "a"); break;
            case 5: t.put(there, "a", new byte[1]); break;
            case 6: there.read("a", 0, ByteBuffer.allocateDirect(100)); break;
            default: shared.transact(own -> own.put(there, "b", new byte[1])); break;
        }
    }

    public void aTransactionIsForOneCallAtATime() throws Exception {
        data.put("a", new byte[1]);
        try (Transaction t = store.begin()) {
            Expect.inThreads(4, () -> {
                for (int round = 0; round < 200; round++) {
                    try {
                        t.get(data, "a");
                    } catch (IllegalStateException busy) {
                        Expect.isTrue(busy.getMessage().contains("another call"), "" + busy);
                    }
                }
                return null;
            });
            t.append(data, "a", new byte[1]);
            t.commit();
        }
        Expect.equal(2L, data.stat("a").size());
    }

    public void anInterruptEndsACallThatWaits() throws Exception {
        try (ServerSocket silent = new ServerSocket(0)) {
            String address = "tyr://127.0.0.1:" + silent.getLocalPort();
            Throwable[] thrown = new Throwable[1];
            Thread thread = new Thread(() -> {
                try {
                    Tyr.connectOptions().connectTimeout(Duration.ofMinutes(10)).connect(address);
                } catch (Throwable error) {
                    thrown[0] = error;
                    Expect.equal(true, Thread.currentThread().isInterrupted());
                }
            });
            thread.start();
            // It waits once it has come.
            silent.accept();
            thread.interrupt();
            thread.join();
            Expect.equal(CallInterruptedException.class, thrown[0].getClass());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public void aCallThatIsCancelledStopsConnecting() throws Exception {
        try (ServerSocket silent = new ServerSocket(0)) {
            String address = "tyr://127.0.0.1:" + silent.getLocalPort();
            var connecting = Tyr.connectOptions().connectTimeout(Duration.ofMinutes(10))
                    .connectAsync(address);
            silent.accept();
            Expect.equal(true, connecting.cancel(true));
            Expect.thrown(java.util.concurrent.CancellationException.class, "", connecting::get);
        }
    }

    public void exceptionsAreOfTheirKind() {
        NotFoundException none = Expect.thrown(NotFoundException.class, "blob \"none\"",
                () -> data.get("none"));
        Expect.equal(true, (Object) none instanceof TyrException);
        Expect.equal(true, (Object) none instanceof RuntimeException);
        Expect.equal(true, Expect.thrown(InvalidArgumentException.class, "",
                () -> store.keyspace("Data")).key().isEmpty());
    }
}
