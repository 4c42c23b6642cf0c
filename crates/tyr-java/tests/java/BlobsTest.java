import io.github.tyrstore.*;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Every call of stores, keyspaces and snapshots. */
public final class BlobsTest extends StoreCase {
    public void everyCallOfABlobDoesWhatItSays() {
        data.create("empty");
        Expect.equal(0L, data.stat("empty").size());
        data.put("a", Expect.utf8("hello"));
        Expect.equal(5L, data.append("a", Expect.utf8(" world")));
        Expect.equal(11L, data.appendAt("a", 11, Expect.utf8("!")));
        data.write("a", 0, Expect.utf8("H"));
        Expect.equal("Hello world!", Expect.text(data.get("a")));
        Expect.equal("world", Expect.text(data.read("a", 6, 5)));
        Expect.equal("!", Expect.text(data.read("a", 11, 100)));
        data.compareAndSwap("a", 0, Expect.utf8("Hello"), Expect.utf8("Adieu"));
        data.clear("a", 5, 1);
        data.truncate("a", 7);
        Expect.equal("Adieu\0w", Expect.text(data.get("a")));
        Stat before = data.stat("a");
        data.put("a", new byte[0]);
        Stat after = data.stat("a");
        Expect.isTrue(before.version().compareTo(after.version()) < 0, "versions rise");
        Expect.equal(after, data.stat(Key.of("a")));
        Expect.isTrue(after.version().clockMicros() > 0, "a version has a clock");
        Expect.equal(true, data.delete("a"));
        Expect.equal(false, data.delete("a"));
        Expect.equal("data", data.name());
        Expect.equal(64L << 20, data.chunkSize());
        Expect.equal(store, data.store());
    }

    public void keysAreTextsOrAnyBytes() {
        Key binary = Key.of(new byte[] {0, -1, 7});
        data.put(binary, Expect.utf8("one"));
        Expect.equal("one", Expect.text(data.get(binary)));
        data.put("größe", Expect.utf8("two"));
        Expect.equal("two", Expect.text(data.get(Key.of(Expect.utf8("größe")))));
        List<Key> keys = new ArrayList<>();
        data.list().forEach(entry -> keys.add(entry.key()));
        Expect.equal(List.of(binary, Key.of("größe")), keys);
        Expect.isTrue(binary.compareTo(Key.of("a")) < 0, "bytes have no sign");
        Expect.equal(binary.hashCode(), Key.of(binary.toBytes()).hashCode());
        Expect.equal("größe", keys.get(1).toString());
    }

    public void arithmeticOfEveryKindAndType() {
        for (NumberType type : NumberType.values()) {
            boolean isFloat = type == NumberType.F32 || type == NumberType.F64;
            for (Transform.Kind kind : Transform.Kind.values()) {
                String key = type + "." + kind;
                boolean isBitwise = kind == Transform.Kind.AND || kind == Transform.Kind.OR
                        || kind == Transform.Kind.XOR;
                if (isFloat && isBitwise) {
                    Expect.thrown(InvalidArgumentException.class, "",
                            () -> data.apply(key, 0, Transform.of(kind, type, 1.0)));
                } else if (isFloat) {
                    data.apply(key, 0, Transform.of(Transform.Kind.SWAP, type, 7.5));
                    double wanted = floats(kind);
                    Expect.equal(wanted, data.apply(key, 0, Transform.of(kind, type, 2.5)));
                } else {
                    data.apply(key, 0, Transform.of(Transform.Kind.SWAP, type, 6));
                    Expect.equal(integers(kind), data.apply(key, 0, Transform.of(kind, type, 3)));
                }
            }
        }
        Expect.equal(-1L, data.apply("below", 0, Transform.add(-1)));
        byte[] stored = new byte[8];
        Arrays.fill(stored, (byte) -1);
        Expect.equal(stored, data.get("below"));
        Expect.equal(0.5, data.apply("half", 8, Transform.add(0.5)));
        Expect.equal(255L, data.apply("wraps", 0,
                Transform.of(Transform.Kind.SUB, NumberType.U8, 1)));
    }

    private static double floats(Transform.Kind kind) {
        switch (kind) {
            case ADD: return 10.0;
            case SUB: return 5.0;
            case MUL: return 18.75;
            case DIV: return 3.0;
            case MIN: return 2.5;
            case MAX: return 7.5;
            case SWAP: return 2.5;
            default: throw new AssertionError(kind);
        }
    }

    private static long integers(Transform.Kind kind) {
        switch (kind) {
            case ADD: return 9;
            case SUB: return 3;
            case MUL: return 18;
            case DIV: return 2;
            case MIN: return 3;
            case MAX: return 6;
            case AND: return 2;
            case OR: return 7;
            case XOR: return 5;
            case SWAP: return 3;
            default: throw new AssertionError(kind);
        }
    }

    public void listingsArePagedAndNarrowed() {
        for (String key : List.of("a/1", "a/2", "a/3", "b", "c/1", "d")) {
            data.put(key, Expect.utf8("value of " + key));
        }
        Expect.equal("a/1 a/2 a/3 b c/1 d", keys(data.list(Scan.ALL.limit(2))));
        Expect.equal("a/1 a/2 a/3", keys(data.list(Scan.ALL.prefix("a/"))));
        Expect.equal("a/2 a/3", keys(data.list(Scan.ALL.from("a/2").to("b"))));
        Expect.equal("a/3 b c/1 d", keys(data.list(Scan.ALL.after("a/2").limit(1))));
        Page page = data.scanPage(Scan.ALL.delimiter("/").firstBytes(5));
        Expect.equal(List.of(Key.of("a/"), Key.of("c/")), page.groups());
        Expect.equal("b d", keys(page.entries()));
        Entry b = page.entries().get(0);
        Expect.equal("value", Expect.text(b.bytes()));
        Expect.equal(data.stat("b"), b.stat().get());
        Expect.equal(true, page.resume().isEmpty());
        Page first = data.scanPage(Scan.ALL.limit(1).keysOnly());
        Expect.equal(true, first.entries().get(0).stat().isEmpty());
        Expect.equal("a/2", keys(data.scanPage(
                Scan.ALL.from(first.resume().get()).limit(1)).entries()));
        Expect.equal("", keys(data.list(Scan.ALL.prefix("none"))));
        Expect.thrown(java.util.NoSuchElementException.class, "that was all",
                () -> data.list(Scan.ALL.prefix("none")).iterator().next());
    }

    private static String keys(Iterable<Entry> entries) {
        List<String> keys = new ArrayList<>();
        entries.forEach(entry -> keys.add(entry.key().toString()));
        return String.join(" ", keys);
    }

    public void bytesAreReadIntoBuffersOfEveryKind() {
        data.put("a", Expect.utf8("0123456789"));
        byte[] around = new byte[12];
        ByteBuffer direct = ByteBuffer.allocateDirect(12);
        ByteBuffer part = ByteBuffer.wrap(around, 2, 8).slice();
        for (ByteBuffer buffer : List.of(direct, ByteBuffer.allocate(12), part)) {
            buffer.position(1);
            int room = buffer.remaining();
            int wanted = Math.min(room, 8);
            Expect.equal(wanted, data.read("a", 2, buffer));
            Expect.equal(1 + wanted, buffer.position());
            buffer.position(1);
            byte[] read = new byte[wanted];
            buffer.get(read);
            Expect.equal("23456789".substring(0, wanted), Expect.text(read));
        }
        Expect.equal(0, around[0] + around[1] + around[10] + around[11]);
        direct.clear().limit(3);
        Expect.equal(3, data.read("a", 0, direct));
        Expect.equal(0, data.read("a", 0, direct));
        direct.clear();
        Expect.equal(0, data.read("a", 10, direct));
        ByteBuffer fixed = direct.asReadOnlyBuffer();
        Expect.thrown(ReadOnlyBufferException.class, "", () -> data.read("a", 0, fixed));
        Expect.thrown(NotFoundException.class, "none", () -> data.read("none", 0, direct));
    }

    public void keyspacesAreMadeFoundListedAndDropped() {
        KeyspaceConfig config = KeyspaceConfig.DEFAULT.chunkSize(8192).replication(1)
                .liveReplicasMin(1).durability(Durability.BUFFERED).compressed(true)
                .multiVersioned(true).guarded(false).placedBy("key");
        try (Keyspace made = store.createKeyspace("made", config)) {
            Expect.equal(8192L, made.chunkSize());
            made.put("a", Expect.utf8("one"));
        }
        Expect.equal("one", Expect.text(store.keyspaceOrCreate("made", config).get("a")));
        Expect.thrown(AlreadyExistsException.class, "made",
                () -> store.createKeyspace("made", config));
        Expect.thrown(AlreadyExistsException.class, "made", () -> store.keyspaceOrCreate("made"));
        Expect.equal(List.of("data", "made"), store.keyspaces());
        store.dropKeyspace("made");
        Expect.equal(List.of("data"), store.keyspaces());
        Expect.thrown(NotFoundException.class, "made", () -> store.keyspace("made"));
    }

    public void snapshotsStayAsTheyAre() {
        data.put("a", Expect.utf8("old"));
        try (Snapshot snapshot = store.snapshot()) {
            data.put("a", Expect.utf8("new one"));
            data.put("b", Expect.utf8("new"));
            Expect.equal("old", Expect.text(snapshot.get(data, "a")));
            Expect.equal("ld", Expect.text(snapshot.read(data, Key.of("a"), 1, 9)));
            Expect.equal(3L, snapshot.stat(data, "a").size());
            Expect.equal("a", keys(snapshot.list(data, Scan.ALL)));
            Expect.equal(1, snapshot.scanPage(data, Scan.ALL).entries().size());
            Expect.isTrue(snapshot.version().compareTo(data.stat("b").version()) < 0, "before");
        }
        store.keep("then");
        data.delete("a");
        Expect.equal(List.of("then"), store.kept());
        try (Snapshot then = store.keptSnapshot("then")) {
            Expect.equal("new one", Expect.text(then.get(data, "a")));
        }
        store.dropKept("then");
        Expect.equal(List.of(), store.kept());
    }

    public void blobsAreCopiedAndReadManyAtOnce() {
        data.put("a", Expect.utf8("hello"));
        Expect.equal(5L, store.copy(data, "a", data, "b"));
        List<byte[]> read = store.readMany(List.of(
                new ReadRequest(data, "b", 1, 3),
                new ReadRequest(data, "none", 0, 9),
                new ReadRequest(data, Key.of("a"), 0, 100)));
        Expect.equal("ell", Expect.text(read.get(0)));
        Expect.equal(null, read.get(1));
        Expect.equal("hello", Expect.text(read.get(2)));
        Expect.equal(0, store.readMany(List.of()).size());
    }

    public void aStoreIsClosedAndOpenedAgain() {
        data.put("a", Expect.utf8("kept"));
        store.sync();
        store.close();
        store.close();
        Expect.equal(true, store.isClosed());
        OpenOptions options = Tyr.openOptions().cacheBytes(64 << 20).mustExist().readOnly()
                .snapshotTimeout(Duration.ofSeconds(9)).executor(Runnable::run);
        try (Tyr again = options.open(folder.resolve("store"))) {
            Expect.equal("kept", Expect.text(again.keyspace("data").get("a")));
            Expect.thrown(PermissionDeniedException.class, "read-only",
                    () -> again.keyspace("data").put("a", new byte[1]));
        }
        Expect.thrown(NotFoundException.class, "none",
                () -> Tyr.openOptions().mustExist().open(folder.resolve("none").toString()));
    }
}
