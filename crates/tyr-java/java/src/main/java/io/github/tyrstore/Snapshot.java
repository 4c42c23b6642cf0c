package io.github.tyrstore;

import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * Everything as it was at one moment. Writers go on; they do not wait for it, nor it for them.
 * Closing it lets the old versions go.
 */
public final class Snapshot extends Handle implements AutoCloseable {
    private final Tyr tyr;
    private final Version version;

    Snapshot(Tyr tyr, Object answer) {
        super("snapshot", ((long[]) answer)[0], true);
        this.tyr = tyr;
        this.version = new Version(((long[]) answer)[1], ((long[]) answer)[2]);
    }

    /** Its moment. */
    public Version version() {
        return version;
    }

    /** Gives it back: what it kept may go. */
    @Override
    public void close() {
        give();
    }

    /** Reads up to so many bytes at an offset, 64 MiB at most; fewer where the blob ends. */
    public byte[] read(Keyspace keyspace, Key key, long offset, long length) {
        return readCall(keyspace, key, offset, length).await();
    }

    /** The same for a text: {@link #read}. */
    public byte[] read(Keyspace keyspace, String key, long offset, long length) {
        return read(keyspace, Key.of(key), offset, length);
    }

    /** The same, started: {@link #read}. */
    public CompletableFuture<byte[]> readAsync(
            Keyspace keyspace, Key key, long offset, long length) {
        return readCall(keyspace, key, offset, length).start(executor());
    }

    /** The same, started: {@link #read}. */
    public CompletableFuture<byte[]> readAsync(
            Keyspace keyspace, String key, long offset, long length) {
        return readAsync(keyspace, Key.of(key), offset, length);
    }

    private Call<byte[]> readCall(Keyspace keyspace, Key key, long offset, long length) {
        return new Call<>(Op.SNAPSHOT_READ, this, Answers::bytes)
                .in(Check.keyspace(keyspace)).key(key).at(offset).length(length);
    }

    /** Reads a whole blob of up to 64 MiB. */
    public byte[] get(Keyspace keyspace, Key key) {
        return getCall(keyspace, key).await();
    }

    /** The same for a text: {@link #get}. */
    public byte[] get(Keyspace keyspace, String key) {
        return get(keyspace, Key.of(key));
    }

    /** The same, started: {@link #get}. */
    public CompletableFuture<byte[]> getAsync(Keyspace keyspace, Key key) {
        return getCall(keyspace, key).start(executor());
    }

    /** The same, started: {@link #get}. */
    public CompletableFuture<byte[]> getAsync(Keyspace keyspace, String key) {
        return getAsync(keyspace, Key.of(key));
    }

    private Call<byte[]> getCall(Keyspace keyspace, Key key) {
        return new Call<>(Op.SNAPSHOT_GET, this, Answers::bytes)
                .in(Check.keyspace(keyspace)).key(key);
    }

    /** Size and version of a blob then. */
    public Stat stat(Keyspace keyspace, Key key) {
        return statCall(keyspace, key).await();
    }

    /** The same for a text: {@link #stat}. */
    public Stat stat(Keyspace keyspace, String key) {
        return stat(keyspace, Key.of(key));
    }

    /** The same, started: {@link #stat}. */
    public CompletableFuture<Stat> statAsync(Keyspace keyspace, Key key) {
        return statCall(keyspace, key).start(executor());
    }

    /** The same, started: {@link #stat}. */
    public CompletableFuture<Stat> statAsync(Keyspace keyspace, String key) {
        return statAsync(keyspace, Key.of(key));
    }

    private Call<Stat> statCall(Keyspace keyspace, Key key) {
        return new Call<>(Op.SNAPSHOT_STAT, this, Stat::of).in(Check.keyspace(keyspace)).key(key);
    }

    /** A page of a listing as of then. */
    public Page scanPage(Keyspace keyspace, Scan scan) {
        return scanCall(keyspace, scan).await();
    }

    /** The same, started: {@link #scanPage}. */
    public CompletableFuture<Page> scanPageAsync(Keyspace keyspace, Scan scan) {
        return scanCall(keyspace, scan).start(executor());
    }

    private Call<Page> scanCall(Keyspace keyspace, Scan scan) {
        return new Call<>(Op.SNAPSHOT_SCAN, this, Page::new)
                .in(Check.keyspace(keyspace)).data(scan.packed());
    }

    /** All blobs of a listing as of then, page by page as they are asked for. */
    public Iterable<Entry> list(Keyspace keyspace, Scan scan) {
        number();
        Check.keyspace(keyspace).number();
        return new Listing(Objects.requireNonNull(scan), next -> scanPage(keyspace, next));
    }

    @Override
    public String toString() {
        return "snapshot of " + tyr.place() + " at " + version;
    }

    private Executor executor() {
        return tyr.executor();
    }
}
