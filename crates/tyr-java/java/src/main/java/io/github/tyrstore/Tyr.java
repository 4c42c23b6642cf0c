package io.github.tyrstore;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.function.Function;

/**
 * A store: a folder that this process has open, or a cluster that it is connected to.
 *
 * <p>It may be used by any number of threads, and so may all that is got of it, but a
 * {@link Transaction}, which is for one call at a time. A call waits for its answer; one whose name
 * ends with {@code Async} answers a future. Arguments that cannot be, such as null and negative
 * offsets, are refused with Java's own exceptions, and a handle that is closed is an
 * {@link IllegalStateException}; all else is a {@link TyrException}. An interrupt ends a call that
 * waits; to cancel a future takes back what was being read.
 */
public final class Tyr extends Handle implements AutoCloseable {
    static final Executor DEFAULT_EXECUTOR =
            ForkJoinPool.getCommonPoolParallelism() > 0 ? ForkJoinPool.commonPool() : Runnable::run;

    private final String place;
    private final Executor executor;

    Tyr(String place, Object answer, Executor executor) {
        super("store", Answers.number(answer), true);
        this.place = place;
        this.executor = executor;
    }

    /** Opens the store in a folder, or makes one there. One process at a time has it open. */
    public static Tyr open(String folder) {
        return openOptions().open(folder);
    }

    /** The same for a path. */
    public static Tyr open(Path folder) {
        return openOptions().open(folder);
    }

    /** How a store can be opened otherwise. */
    public static OpenOptions openOptions() {
        return new OpenOptions();
    }

    /** Connects to a cluster: {@code tyr://host:port,host:port}, some of its nodes. */
    public static Tyr connect(String address) {
        return connectOptions().connect(address);
    }

    /** How a cluster can be connected to otherwise. */
    public static ConnectOptions connectOptions() {
        return new ConnectOptions();
    }

    /** Finds a keyspace; throws {@link NotFoundException} if there is none. */
    public Keyspace keyspace(String name) {
        return found(Op.KEYSPACE, name, KeyspaceConfig.DEFAULT).await();
    }

    /** The same, started: {@link #keyspace}. */
    public CompletableFuture<Keyspace> keyspaceAsync(String name) {
        return found(Op.KEYSPACE, name, KeyspaceConfig.DEFAULT).start(executor);
    }

    /** Finds a keyspace, or makes it. Of several programs that ask at once one makes it. */
    public Keyspace keyspaceOrCreate(String name, KeyspaceConfig config) {
        return found(Op.KEYSPACE_OR_CREATE, name, config).await();
    }

    /** The same with what is usual. */
    public Keyspace keyspaceOrCreate(String name) {
        return keyspaceOrCreate(name, KeyspaceConfig.DEFAULT);
    }

    /** The same, started: {@link #keyspaceOrCreate}. */
    public CompletableFuture<Keyspace> keyspaceOrCreateAsync(String name, KeyspaceConfig config) {
        return found(Op.KEYSPACE_OR_CREATE, name, config).start(executor);
    }

    /** Makes a keyspace; throws {@link AlreadyExistsException} if there is one. */
    public Keyspace createKeyspace(String name, KeyspaceConfig config) {
        return found(Op.CREATE_KEYSPACE, name, config).await();
    }

    /** The same, started: {@link #createKeyspace}. */
    public CompletableFuture<Keyspace> createKeyspaceAsync(String name, KeyspaceConfig config) {
        return found(Op.CREATE_KEYSPACE, name, config).start(executor);
    }

    private Call<Keyspace> found(int op, String name, KeyspaceConfig config) {
        byte[] packed = Packing.utf8(name);
        return new Call<>(op, this, answer -> new Keyspace(this, name, answer))
                .data(packed).more(config.packed());
    }

    /** Removes a keyspace and everything in it, for good. */
    public void dropKeyspace(String name) {
        named(Op.DROP_KEYSPACE, name, Answers::nothing).await();
    }

    /** The same, started: {@link #dropKeyspace}. */
    public CompletableFuture<Void> dropKeyspaceAsync(String name) {
        return named(Op.DROP_KEYSPACE, name, Answers::nothing).start(executor);
    }

    /** The names of all keyspaces, in order. */
    public List<String> keyspaces() {
        return named(Op.KEYSPACES, "", Unpacking::texts).await();
    }

    /** The same, started: {@link #keyspaces}. */
    public CompletableFuture<List<String>> keyspacesAsync() {
        return named(Op.KEYSPACES, "", Unpacking::texts).start(executor);
    }

    private <T> Call<T> named(int op, String name, Function<Object, T> decode) {
        return new Call<>(op, this, decode).data(Packing.utf8(name));
    }

    /** Begins a transaction, to be committed, or closed. */
    public Transaction begin() {
        Call<Long> call = new Call<>(Op.BEGIN, this, Answers::number);
        return new Transaction(this, call.here(), false);
    }

    /**
     * Runs a function in a transaction and commits it; runs it again, after a pause that grows,
     * when it met a conflict, up to 64 times. What its operations answered is known then. A
     * function that only reads does not starve, however often others write what it reads.
     *
     * <p>It runs in the thread that calls, and on a virtual thread keeps its carrier.
     *
     * @param <T> what the function answers
     * @param <E> what it throws besides: nothing was changed then
     */
    public <T, E extends Exception> T transact(Transactional<T, E> body) throws E {
        Attempt<T> attempt = new Attempt<>(this, Objects.requireNonNull(body));
        Object answer;
        try {
            answer = Native.transact(number(), attempt);
        } catch (CallInterruptedException interrupted) {
            throw interrupted;
        } catch (RuntimeException refused) {
            if (attempt.thrown() == null) {
                throw refused;
            }
            throw Tyr.<E>unchecked(attempt.thrown());
        } finally {
            java.lang.ref.Reference.reachabilityFence(this);
        }
        return attempt.committed(answer);
    }

    /** An exception that the function has declared, or that needs no declaring. */
    @SuppressWarnings("unchecked")
    private static <E extends Exception> E unchecked(Throwable thrown) throws E {
        if (thrown instanceof Error) {
            throw (Error) thrown;
        }
        return (E) thrown;
    }

    /**
     * The same, by the executor of this store, a thread of which it keeps until it is over.
     *
     * @param <T> what the function answers
     */
    public <T> CompletableFuture<T> transactAsync(Transactional<T, RuntimeException> body) {
        Objects.requireNonNull(body);
        return CompletableFuture.supplyAsync(() -> transact(body), executor);
    }

    /** A read-only view of everything at one moment, to be closed. */
    public Snapshot snapshot() {
        return snapshot(Op.SNAPSHOT, "").await();
    }

    /** The same, started: {@link #snapshot}. */
    public CompletableFuture<Snapshot> snapshotAsync() {
        return snapshot(Op.SNAPSHOT, "").start(executor);
    }

    private Call<Snapshot> snapshot(int op, String name) {
        return named(op, name, answer -> new Snapshot(this, answer));
    }

    /** Keeps everything as it is now, under a name, until it is dropped, across restarts. */
    public void keep(String name) {
        named(Op.KEEP, name, Answers::nothing).await();
    }

    /** The names of all kept snapshots, oldest first. */
    public List<String> kept() {
        return named(Op.KEPT, "", Unpacking::texts).await();
    }

    /** Opens a kept snapshot, to be read for as long as it is kept. */
    public Snapshot keptSnapshot(String name) {
        return snapshot(Op.KEPT_SNAPSHOT, name).await();
    }

    /** Drops a kept snapshot. */
    public void dropKept(String name) {
        named(Op.DROP_KEPT, name, Answers::nothing).await();
    }

    /** Copies a blob in one transaction; answers how many bytes. It never conflicts. */
    public long copy(Keyspace source, Key sourceKey, Keyspace target, Key targetKey) {
        return copyCall(source, sourceKey, target, targetKey).await();
    }

    /** The same for texts: {@link #copy}. */
    public long copy(Keyspace source, String sourceKey, Keyspace target, String targetKey) {
        return copy(source, Key.of(sourceKey), target, Key.of(targetKey));
    }

    /** The same, started: {@link #copy}. */
    public CompletableFuture<Long> copyAsync(
            Keyspace source, Key sourceKey, Keyspace target, Key targetKey) {
        return copyCall(source, sourceKey, target, targetKey).start(executor);
    }

    private Call<Long> copyCall(Keyspace source, Key sourceKey, Keyspace target, Key targetKey) {
        return new Call<>(Op.COPY, this, Answers::number).key(sourceKey).data(targetKey.bytes())
                .handles(Check.keyspace(source), Check.keyspace(target));
    }

    /** Reads parts of many blobs at one moment; null for a blob that is not there. */
    public List<byte[]> readMany(List<ReadRequest> wanted) {
        return readManyCall(wanted).await();
    }

    /** The same, started: {@link #readMany}. */
    public CompletableFuture<List<byte[]>> readManyAsync(List<ReadRequest> wanted) {
        return readManyCall(wanted).start(executor);
    }

    private Call<List<byte[]>> readManyCall(List<ReadRequest> wanted) {
        Packing packing = new Packing();
        List<ReadRequest> requests = List.copyOf(wanted);
        requests.forEach(request -> request.pack(packing));
        return new Call<>(Op.READ_MANY, this, answer -> {
            Unpacking packed = new Unpacking(answer);
            // The requests are held until here, and so their keyspaces.
            List<byte[]> read = new ArrayList<>(requests.size());
            while (!packed.isEnd()) {
                read.add(packed.bytes());
            }
            return read;
        }).data(packing.done());
    }

    /**
     * What became of a call of a cluster that ended as {@link TimedOutException}. It takes effect
     * once at most, however often it is asked for, and can be asked for within half a minute.
     *
     * @throws TyrException why it did not take effect; {@link TimedOutException} when nobody knows
     *     yet
     */
    public Committed outcome(TimedOutException error) {
        return new Call<>(Op.OUTCOME, this, Committed::new).handles(error.call(), null).await();
    }

    /** The same, started: {@link #outcome}. */
    public CompletableFuture<Committed> outcomeAsync(TimedOutException error) {
        return new Call<>(Op.OUTCOME, this, Committed::new).handles(error.call(), null)
                .start(executor);
    }

    /** Everything that was acknowledged before is on disk when it returns. */
    public void sync() {
        new Call<>(Op.SYNC, this, Answers::nothing).await();
    }

    /** The same, started: {@link #sync}. */
    public CompletableFuture<Void> syncAsync() {
        return new Call<>(Op.SYNC, this, Answers::nothing).start(executor);
    }

    /** Writes everything back and closes the store, and with it what was got of it. */
    @Override
    public void close() {
        long number = take();
        if (number == 0) {
            return;
        }
        try {
            Native.call(0, Op.CLOSE, number, 0, null, 0, 0, null, null);
        } finally {
            Native.free(number);
        }
    }

    /** Whether it was closed. */
    public boolean isClosed() {
        return !isOpen();
    }

    /** What it was opened with. */
    public String place() {
        return place;
    }

    Executor executor() {
        return executor;
    }

    @Override
    public String toString() {
        return "store " + place;
    }
}
