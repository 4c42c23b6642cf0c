import io.github.tyrstore.*;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;

/**
 * Makes calls as it is told, for {@code cargo xtask steady} and {@code call-costs}, whose
 * {@code xtask/src/callers.rs} has the words. The arguments are a folder, the cache in MiB, and a
 * seed.
 */
final class Caller {
    private static final int BLOBS = 1000;
    private static final int READ = 800;
    private static final int OPERATIONS = 6;
    private static final int UNDER_WAY = 32;
    private static final int KEYS = 256;
    private static final int PAYLOAD_MAX = 4096;
    private static final long LOG_MAX = 64 << 10;

    private final Tyr store;
    private final Keyspace memory;
    private final Keyspace buffered;
    private final Random random;
    private final String[] keys = named("key ");
    private final String[] others = named("other ");
    private final ByteBuffer large = ByteBuffer.allocateDirect(4 << 20);

    private Caller(Tyr store, Keyspace memory, Keyspace buffered, long seed) {
        this.store = store;
        this.memory = memory;
        this.buffered = buffered;
        random = new Random(seed);
        for (String key : keys) {
            memory.put(key, new byte[4096]);
        }
        memory.put("large", new byte[4 << 20]);
    }

    private static String[] named(String prefix) {
        return IntStream.range(0, BLOBS).mapToObj(at -> prefix + at).toArray(String[]::new);
    }

    public static void main(String[] words) throws Exception {
        long before = Inside.handles();
        long cacheBytes = Long.parseLong(words[1]) << 20;
        try (Tyr store = Tyr.openOptions().cacheBytes(cacheBytes).open(words[0]);
                Keyspace memory = store.createKeyspace("memory",
                        KeyspaceConfig.DEFAULT.durability(Durability.MEMORY));
                Keyspace buffered = store.createKeyspace("buffered",
                        KeyspaceConfig.DEFAULT.durability(Durability.BUFFERED))) {
            Caller caller = new Caller(store, memory, buffered, Long.parseLong(words[2]));
            System.out.println("ready");
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] told = line.split(" ");
                caller.obey(told[0], Integer.parseInt(told[1]));
                System.out.println("done");
            }
        }
        Expect.comesTrue("handles are given back", () -> Inside.handles() == before);
    }

    private void obey(String kind, int count) throws Exception {
        switch (kind) {
            case "read":
                read(count);
                break;
            case "put":
                put(count);
                break;
            case "transaction":
                transaction(count);
                break;
            case "async":
                async(count);
                break;
            case "large":
                large(count);
                break;
            case "mix":
                mix(count);
                break;
            default:
                throw new IllegalArgumentException("there are no calls of the kind " + kind);
        }
    }

    private void read(int count) {
        for (int at = 0; at < count; at++) {
            Expect.isTrue(memory.read(keys[at % BLOBS], 1024, READ).length == READ, "short");
        }
    }

    private void put(int count) {
        byte[] data = new byte[100];
        for (int at = 0; at < count; at++) {
            memory.put(others[at % BLOBS], data);
        }
    }

    private void transaction(int count) {
        byte[] data = new byte[100];
        for (int at = 0; at < count; at++) {
            try (Transaction t = store.begin()) {
                for (int place = 0; place < OPERATIONS; place++) {
                    t.put(memory, others[(at + place) % BLOBS], data);
                }
                t.commit();
            }
        }
    }

    private void async(int count) throws Exception {
        List<CompletableFuture<byte[]>> underWay = new ArrayList<>();
        for (int at = 0; at < count + UNDER_WAY; at++) {
            int place = at % UNDER_WAY;
            if (at >= UNDER_WAY && place < underWay.size()) {
                Expect.isTrue(underWay.get(place).get().length == READ, "short");
            }
            if (at < count) {
                CompletableFuture<byte[]> one = memory.readAsync(keys[at % BLOBS], 1024, READ);
                if (at < UNDER_WAY) {
                    underWay.add(one);
                } else {
                    underWay.set(place, one);
                }
            }
        }
    }

    private void large(int count) {
        for (int at = 0; at < count; at++) {
            large.clear();
            Expect.isTrue(memory.read("large", 0, large) == large.capacity(), "short");
        }
    }

    private void mix(int count) throws Exception {
        for (int made = 0; made < count;) {
            if (random.nextInt(16) == 0) {
                made += startSome();
            } else {
                waitForOne();
                made++;
            }
        }
    }

    private String anyKey() {
        return keys[random.nextInt(KEYS)];
    }

    private byte[] payload() {
        return new byte[random.nextInt(PAYLOAD_MAX)];
    }

    private void waitForOne() {
        String key = anyKey();
        try {
            switch (random.nextInt(10)) {
                case 0:
                case 1:
                    buffered.read(key, random.nextInt(2000), READ);
                    break;
                case 2:
                    buffered.get(key);
                    break;
                case 3:
                    buffered.put(key, payload());
                    break;
                case 4:
                    buffered.delete(key);
                    break;
                case 5:
                    if (buffered.append("log", payload()) > LOG_MAX) {
                        buffered.truncate("log", 0);
                    }
                    break;
                case 6:
                    buffered.apply("n", 0, Transform.add(1L));
                    break;
                case 7:
                    buffered.scanPage(Scan.ALL.limit(20));
                    break;
                case 8:
                    try (Snapshot snapshot = store.snapshot()) {
                        snapshot.get(buffered, key);
                    }
                    break;
                default:
                    store.transact(t -> {
                        t.put(buffered, anyKey(), payload());
                        return t.stat(buffered, key);
                    });
            }
        } catch (NotFoundException none) {
            Expect.isTrue(!none.getMessage().isEmpty(), "it says what is not there");
        }
    }

    private CompletableFuture<?> startOne() {
        String key = anyKey();
        switch (random.nextInt(9)) {
            case 0:
                return buffered.getAsync(key);
            case 1:
            case 2:
                return buffered.putAsync(key, payload());
            case 3:
                return buffered.deleteAsync(key);
            case 4:
                return buffered.statAsync(key);
            case 5:
                return buffered.applyAsync("n", 0, Transform.add(1L));
            case 6:
                return buffered.scanPageAsync(Scan.ALL.limit(20));
            case 7:
                return store.transactAsync(t -> t.apply(buffered, "n", 0, Transform.add(1L)));
            default:
                return buffered.readAsync(key, random.nextInt(2000), PAYLOAD_MAX);
        }
    }

    private int startSome() throws InterruptedException {
        List<CompletableFuture<?>> all = new ArrayList<>();
        int count = 1 + random.nextInt(UNDER_WAY);
        for (int at = 0; at < count; at++) {
            all.add(startOne());
            if (random.nextInt(4) == 0) {
                all.get(random.nextInt(at + 1)).cancel(true);
            }
        }
        for (CompletableFuture<?> one : all) {
            try {
                one.get();
            } catch (CancellationException cancelled) {
                Expect.isTrue(one.isCancelled(), "it was cancelled");
            } catch (ExecutionException thrown) {
                Expect.equal(NotFoundException.class, thrown.getCause().getClass());
            }
        }
        return count;
    }
}
