import io.github.tyrstore.*;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** Calls that are started. */
public final class FuturesTest extends StoreCase {
    public void everyCallHasAFormThatAnswersAFuture() throws Exception {
        data.createAsync("empty").get();
        data.putAsync("a", Expect.utf8("hello")).get();
        Expect.equal(5L, data.appendAsync("a", Expect.utf8("!")).get());
        Expect.equal(6L, data.appendAtAsync("a", 6, Expect.utf8("?")).get());
        data.writeAsync("a", 0, Expect.utf8("H")).get();
        data.compareAndSwapAsync("a", 6, Expect.utf8("?"), Expect.utf8("!")).get();
        Expect.equal("Hello!!", Expect.text(data.getAsync("a").get()));
        Expect.equal("ell", Expect.text(data.readAsync(Key.of("a"), 1, 3).get()));
        data.clearAsync("a", 0, 1).get();
        data.truncateAsync("a", 2).get();
        Expect.equal(2L, data.statAsync("a").get().size());
        Expect.equal(3L, data.applyAsync("n", 0, Transform.add(3)).get());
        Expect.equal(3, data.scanPageAsync(Scan.ALL).get().entries().size());
        Expect.equal(2L, store.copyAsync(data, Key.of("a"), data, Key.of("b")).get());
        List<ReadRequest> wanted = List.of(new ReadRequest(data, "b", 0, 9));
        Expect.equal(2, store.readManyAsync(wanted).get().get(0).length);
        Expect.equal(true, data.deleteAsync("a").get());
        store.syncAsync().get();
        try (Keyspace more = store.createKeyspaceAsync("more", KeyspaceConfig.DEFAULT).get()) {
            Expect.equal("more", more.name());
        }
        store.keyspaceAsync("more").get().close();
        store.keyspaceOrCreateAsync("more", KeyspaceConfig.DEFAULT).get().close();
        Expect.equal(List.of("data", "more"), store.keyspacesAsync().get());
        store.dropKeyspaceAsync("more").get();
        try (Snapshot snapshot = store.snapshotAsync().get()) {
            data.put("b", new byte[9]);
            Expect.equal(2, snapshot.getAsync(data, "b").get().length);
            Expect.equal(1, snapshot.readAsync(data, "b", 1, 9).get().length);
            Expect.equal(2L, snapshot.statAsync(data, "b").get().size());
            Expect.equal(3, snapshot.scanPageAsync(data, Scan.ALL).get().entries().size());
        }
        try (Transaction t = store.begin()) {
            Expect.equal(9, t.getAsync(data, "b").get().length);
            Expect.equal(8, t.readAsync(data, "b", 1, 9).get().length);
            Expect.equal(9L, t.statAsync(data, "b").get().size());
            Operation<Long> offset = t.append(data, "b", new byte[1]);
            Committed committed = t.commitAsync().get();
            Expect.equal(9L, offset.value());
            Expect.equal(committed.version(), data.stat("b").version());
        }
        Expect.equal(1L, store.transactAsync(t -> t.apply(data, "m", 0, Transform.add(1)))
                .get().value());
        try (Tyr other = Tyr.openOptions().openAsync(folder.resolve("other")).get()) {
            Expect.equal(List.of(), other.keyspaces());
        }
    }

    public void whatMemoryAnswersIsCompleteAtOnce() {
        data.put("a", Expect.utf8("here"));
        Expect.equal(true, data.readAsync("a", 0, 9).isDone());
        Expect.equal("here", Expect.text(data.readAsync("a", 0, 9).join()));
    }

    public void whatFailsIsInTheFuture() {
        CompletableFuture<byte[]> none = data.getAsync("none");
        ExecutionException thrown = Expect.thrown(ExecutionException.class, "none", none::get);
        Expect.equal(NotFoundException.class, thrown.getCause().getClass());
        Expect.equal("other", data.getAsync("none")
                .handle((bytes, error) -> error == null ? "bytes" : "other").join());
        store.close();
        thrown = Expect.thrown(ExecutionException.class, "closed",
                () -> data.putAsync("a", new byte[1]).get());
        Expect.equal(IllegalStateException.class, thrown.getCause().getClass());
    }

    public void manyAreUnderWayAtOnceAndCompleteWhereTheProgramWants() throws Exception {
        ExecutorService own = Executors.newSingleThreadExecutor(body -> new Thread(body, "own"));
        try (Tyr other = Tyr.openOptions().executor(own).open(folder.resolve("other"));
                Keyspace there = other.keyspaceOrCreate("there")) {
            List<CompletableFuture<Long>> all = new ArrayList<>();
            List<String> threads = new ArrayList<>();
            for (int round = 0; round < 500; round++) {
                CompletableFuture<Long> one = there.appendAsync("log", new byte[10]);
                if (!one.isDone()) {
                    one.thenRun(() -> {
                        synchronized (threads) {
                            threads.add(Thread.currentThread().getName());
                        }
                    });
                }
                all.add(one);
            }
            CompletableFuture.allOf(all.toArray(CompletableFuture<?>[]::new)).get();
            Expect.equal(500L, all.stream().map(CompletableFuture::join).distinct().count());
            Expect.equal(5000L, there.stat("log").size());
            synchronized (threads) {
                Expect.equal(true, threads.contains("own"));
            }
        } finally {
            own.shutdown();
        }
    }

    public void aFutureThatIsCancelledHarmsNobody() throws Exception {
        long before = Expect.settled(Inside::handles);
        Random random = new Random(7);
        List<CompletableFuture<?>> all = new ArrayList<>();
        for (int round = 0; round < 500; round++) {
            List<CompletableFuture<?>> some = List.of(
                    data.putAsync("a", new byte[100]),
                    store.snapshotAsync(),
                    store.keyspaceOrCreateAsync("data", KeyspaceConfig.DEFAULT),
                    data.getAsync("data"));
            for (CompletableFuture<?> one : some) {
                if (random.nextBoolean()) {
                    one.cancel(true);
                }
                all.add(one);
            }
        }
        int cancelled = 0;
        for (CompletableFuture<?> one : all) {
            try {
                Object value = one.get();
                if (value instanceof AutoCloseable) {
                    ((AutoCloseable) value).close();
                }
            } catch (CancellationException error) {
                cancelled++;
            } catch (ExecutionException error) {
                Expect.equal(NotFoundException.class, error.getCause().getClass());
            }
        }
        Expect.isTrue(cancelled > 0, "some were cancelled in time");
        Expect.comesTrue("handles are given back", () -> Inside.handles() == before);
        data.put("a", Expect.utf8("goes on"));
        Expect.equal("goes on", Expect.text(data.getAsync("a").get()));
    }

    public void eightThreadsOfMixedCallsWithCancels() throws Exception {
        long before = Expect.settled(Inside::handles);
        AtomicInteger seed = new AtomicInteger();
        Expect.inThreads(8, () -> {
            Random random = new Random(seed.incrementAndGet());
            for (int round = 0; round < 60; round++) {
                mixed(random);
            }
            return null;
        });
        Expect.comesTrue("handles are given back", () -> Inside.handles() == before);
        Expect.equal(true, data.apply("count", 0, Transform.add(0)) > 0);
    }

    private void mixed(Random random) {
        String key = "k" + random.nextInt(5);
        switch (random.nextInt(8)) {
            case 0:
                data.put(key, new byte[random.nextInt(50_000)]);
                break;
            case 1:
                data.append(key, new byte[10]);
                break;
            case 2:
                data.putAsync(key, new byte[10]).cancel(random.nextBoolean());
                break;
            case 3:
                store.transact(t -> {
                    t.put(data, key, new byte[1]);
                    return t.apply(data, "count", 0, Transform.add(1));
                });
                break;
            case 4:
                try (Snapshot snapshot = store.snapshot()) {
                    snapshot.list(data, Scan.ALL.limit(2)).forEach(Entry::key);
                }
                break;
            case 5:
                store.snapshotAsync().thenAccept(Snapshot::close);
                break;
            case 6:
                data.getAsync(key).exceptionally(none -> null).join();
                break;
            default:
                data.delete(key);
                break;
        }
    }
}
