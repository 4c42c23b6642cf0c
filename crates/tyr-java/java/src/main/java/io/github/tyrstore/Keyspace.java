package io.github.tyrstore;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * A namespace of blobs: every operation on single blobs. Each takes effect at once, and is on disk
 * when it answers. To close it is a courtesy: one that is forgotten costs little, and goes with
 * what refers to it.
 */
public final class Keyspace extends Handle implements AutoCloseable {
    private final Tyr tyr;
    private final String name;
    private final long chunkSize;

    Keyspace(Tyr tyr, String name, Object answer) {
        super("keyspace", ((long[]) answer)[0], false);
        this.tyr = tyr;
        this.name = name;
        this.chunkSize = ((long[]) answer)[1];
    }

    /** Its name. */
    public String name() {
        return name;
    }

    /** Bytes of a chunk. */
    public long chunkSize() {
        return chunkSize;
    }

    /** The store that it is of. */
    public Tyr store() {
        return tyr;
    }

    /** Closes this handle; the keyspace stays. */
    @Override
    public void close() {
        give();
    }

    /** Makes an empty blob; throws {@link AlreadyExistsException} if there is one. */
    public void create(Key key) {
        createCall(key).await();
    }

    /** The same for a text: {@link #create}. */
    public void create(String key) {
        create(Key.of(key));
    }

    /** The same, started: {@link #create}. */
    public CompletableFuture<Void> createAsync(Key key) {
        return createCall(key).start(executor());
    }

    /** The same, started: {@link #create}. */
    public CompletableFuture<Void> createAsync(String key) {
        return createAsync(Key.of(key));
    }

    private Call<Void> createCall(Key key) {
        return new Call<>(Op.CREATE, this, Answers::nothing).key(key);
    }

    /** Makes a blob's content this and nothing else. */
    public void put(Key key, byte[] data) {
        putCall(key, data).await();
    }

    /** The same for a text: {@link #put}. */
    public void put(String key, byte[] data) {
        put(Key.of(key), data);
    }

    /** The same, started: {@link #put}. */
    public CompletableFuture<Void> putAsync(Key key, byte[] data) {
        return putCall(key, data).start(executor());
    }

    /** The same, started: {@link #put}. */
    public CompletableFuture<Void> putAsync(String key, byte[] data) {
        return putAsync(Key.of(key), data);
    }

    private Call<Void> putCall(Key key, byte[] data) {
        return new Call<>(Op.PUT, this, Answers::nothing).key(key).data(Check.bytes(data));
    }

    /** Writes at an offset; makes the blob if there is none; a gap reads as zeros. */
    public void write(Key key, long offset, byte[] data) {
        writeCall(key, offset, data).await();
    }

    /** The same for a text: {@link #write}. */
    public void write(String key, long offset, byte[] data) {
        write(Key.of(key), offset, data);
    }

    /** The same, started: {@link #write}. */
    public CompletableFuture<Void> writeAsync(Key key, long offset, byte[] data) {
        return writeCall(key, offset, data).start(executor());
    }

    /** The same, started: {@link #write}. */
    public CompletableFuture<Void> writeAsync(String key, long offset, byte[] data) {
        return writeAsync(Key.of(key), offset, data);
    }

    private Call<Void> writeCall(Key key, long offset, byte[] data) {
        return new Call<>(Op.WRITE, this, Answers::nothing)
                .key(key).at(offset).data(Check.bytes(data));
    }

    /** Appends; makes the blob if there is none. Answers the offset that it got. */
    public long append(Key key, byte[] data) {
        return appendCall(key, data).await();
    }

    /** The same for a text: {@link #append}. */
    public long append(String key, byte[] data) {
        return append(Key.of(key), data);
    }

    /** The same, started: {@link #append}. */
    public CompletableFuture<Long> appendAsync(Key key, byte[] data) {
        return appendCall(key, data).start(executor());
    }

    /** The same, started: {@link #append}. */
    public CompletableFuture<Long> appendAsync(String key, byte[] data) {
        return appendAsync(Key.of(key), data);
    }

    private Call<Long> appendCall(Key key, byte[] data) {
        return new Call<>(Op.APPEND, this, Answers::number).key(key).data(Check.bytes(data));
    }

    /**
     * Appends if the blob ends at this offset, 0 for none; else throws {@link
     * ConflictException}.
     */
    public long appendAt(Key key, long offset, byte[] data) {
        return appendAtCall(key, offset, data).await();
    }

    /** The same for a text: {@link #appendAt}. */
    public long appendAt(String key, long offset, byte[] data) {
        return appendAt(Key.of(key), offset, data);
    }

    /** The same, started: {@link #appendAt}. */
    public CompletableFuture<Long> appendAtAsync(Key key, long offset, byte[] data) {
        return appendAtCall(key, offset, data).start(executor());
    }

    /** The same, started: {@link #appendAt}. */
    public CompletableFuture<Long> appendAtAsync(String key, long offset, byte[] data) {
        return appendAtAsync(Key.of(key), offset, data);
    }

    private Call<Long> appendAtCall(Key key, long offset, byte[] data) {
        return new Call<>(Op.APPEND_AT, this, Answers::number)
                .key(key).at(offset).data(Check.bytes(data));
    }

    /** Cuts a blob to a size, or extends it with zeros; makes it if there is none. */
    public void truncate(Key key, long size) {
        truncateCall(key, size).await();
    }

    /** The same for a text: {@link #truncate}. */
    public void truncate(String key, long size) {
        truncate(Key.of(key), size);
    }

    /** The same, started: {@link #truncate}. */
    public CompletableFuture<Void> truncateAsync(Key key, long size) {
        return truncateCall(key, size).start(executor());
    }

    /** The same, started: {@link #truncate}. */
    public CompletableFuture<Void> truncateAsync(String key, long size) {
        return truncateAsync(Key.of(key), size);
    }

    private Call<Void> truncateCall(Key key, long size) {
        return new Call<>(Op.TRUNCATE, this, Answers::nothing).key(key).at(size);
    }

    /**
     * Makes a hole, which reads as zeros and takes no space. What is behind the end stays as it
     * is.
     */
    public void clear(Key key, long offset, long length) {
        clearCall(key, offset, length).await();
    }

    /** The same for a text: {@link #clear}. */
    public void clear(String key, long offset, long length) {
        clear(Key.of(key), offset, length);
    }

    /** The same, started: {@link #clear}. */
    public CompletableFuture<Void> clearAsync(Key key, long offset, long length) {
        return clearCall(key, offset, length).start(executor());
    }

    /** The same, started: {@link #clear}. */
    public CompletableFuture<Void> clearAsync(String key, long offset, long length) {
        return clearAsync(Key.of(key), offset, length);
    }

    private Call<Void> clearCall(Key key, long offset, long length) {
        return new Call<>(Op.CLEAR, this, Answers::nothing).key(key).at(offset).length(length);
    }

    /** Removes a blob; answers whether there was one. */
    public boolean delete(Key key) {
        return deleteCall(key).await();
    }

    /** The same for a text: {@link #delete}. */
    public boolean delete(String key) {
        return delete(Key.of(key));
    }

    /** The same, started: {@link #delete}. */
    public CompletableFuture<Boolean> deleteAsync(Key key) {
        return deleteCall(key).start(executor());
    }

    /** The same, started: {@link #delete}. */
    public CompletableFuture<Boolean> deleteAsync(String key) {
        return deleteAsync(Key.of(key));
    }

    private Call<Boolean> deleteCall(Key key) {
        return new Call<>(Op.DELETE, this, Answers::truth).key(key);
    }

    /**
     * Replaces bytes at an offset, if exactly those are there; else throws {@link
     * ConflictException}.
     */
    public void compareAndSwap(Key key, long offset, byte[] expected, byte[] data) {
        compareAndSwapCall(key, offset, expected, data).await();
    }

    /** The same for a text: {@link #compareAndSwap}. */
    public void compareAndSwap(String key, long offset, byte[] expected, byte[] data) {
        compareAndSwap(Key.of(key), offset, expected, data);
    }

    /** The same, started: {@link #compareAndSwap}. */
    public CompletableFuture<Void> compareAndSwapAsync(
            Key key, long offset, byte[] expected, byte[] data) {
        return compareAndSwapCall(key, offset, expected, data).start(executor());
    }

    /** The same, started: {@link #compareAndSwap}. */
    public CompletableFuture<Void> compareAndSwapAsync(
            String key, long offset, byte[] expected, byte[] data) {
        return compareAndSwapAsync(Key.of(key), offset, expected, data);
    }

    private Call<Void> compareAndSwapCall(Key key, long offset, byte[] expected, byte[] data) {
        return new Call<>(Op.COMPARE_AND_SWAP, this, Answers::nothing)
                .key(key).at(offset).data(Check.bytes(expected)).more(Check.bytes(data));
    }

    /** Reads up to so many bytes at an offset, 64 MiB at most; fewer where the blob ends. */
    public byte[] read(Key key, long offset, long length) {
        return readCall(key, offset, length).await();
    }

    /** The same for a text: {@link #read}. */
    public byte[] read(String key, long offset, long length) {
        return read(Key.of(key), offset, length);
    }

    /** The same, started: {@link #read}. */
    public CompletableFuture<byte[]> readAsync(Key key, long offset, long length) {
        return readCall(key, offset, length).start(executor());
    }

    /** The same, started: {@link #read}. */
    public CompletableFuture<byte[]> readAsync(String key, long offset, long length) {
        return readAsync(Key.of(key), offset, length);
    }

    private Call<byte[]> readCall(Key key, long offset, long length) {
        return new Call<>(Op.READ, this, Answers::bytes).key(key).at(offset).length(length);
    }

    /** Reads a whole blob of up to 64 MiB. */
    public byte[] get(Key key) {
        return getCall(key).await();
    }

    /** The same for a text: {@link #get}. */
    public byte[] get(String key) {
        return get(Key.of(key));
    }

    /** The same, started: {@link #get}. */
    public CompletableFuture<byte[]> getAsync(Key key) {
        return getCall(key).start(executor());
    }

    /** The same, started: {@link #get}. */
    public CompletableFuture<byte[]> getAsync(String key) {
        return getAsync(Key.of(key));
    }

    private Call<byte[]> getCall(Key key) {
        return new Call<>(Op.GET, this, Answers::bytes).key(key);
    }

    /** Size and version of a blob. */
    public Stat stat(Key key) {
        return statCall(key).await();
    }

    /** The same for a text: {@link #stat}. */
    public Stat stat(String key) {
        return stat(Key.of(key));
    }

    /** The same, started: {@link #stat}. */
    public CompletableFuture<Stat> statAsync(Key key) {
        return statCall(key).start(executor());
    }

    /** The same, started: {@link #stat}. */
    public CompletableFuture<Stat> statAsync(String key) {
        return statAsync(Key.of(key));
    }

    private Call<Stat> statCall(Key key) {
        return new Call<>(Op.STAT, this, Stat::of).key(key);
    }

    /**
     * Does arithmetic in place; answers the new number. What is not there yet is zero.
     *
     * @param <N> what the new number is
     */
    public <N extends Number> N apply(Key key, long offset, Transform<N> transform) {
        return applyCall(key, offset, transform).await();
    }

    /**
     * The same for a text: {@link #apply}.
     *
     * @param <N> what the new number is
     */
    public <N extends Number> N apply(String key, long offset, Transform<N> transform) {
        return apply(Key.of(key), offset, transform);
    }

    /**
     * The same, started: {@link #apply}.
     *
     * @param <N> what the new number is
     */
    public <N extends Number> CompletableFuture<N> applyAsync(
            Key key, long offset, Transform<N> transform) {
        return applyCall(key, offset, transform).start(executor());
    }

    /**
     * The same, started: {@link #apply}.
     *
     * @param <N> what the new number is
     */
    public <N extends Number> CompletableFuture<N> applyAsync(
            String key, long offset, Transform<N> transform) {
        return applyAsync(Key.of(key), offset, transform);
    }

    private <N extends Number> Call<N> applyCall(Key key, long offset, Transform<N> transform) {
        return new Call<>(Op.APPLY, this, transform::value)
                .key(key).at(offset).data(transform.packed());
    }

    /**
     * Reads at an offset into a buffer, from its position on and up to its limit; answers how many
     * bytes, fewer where the blob ends. The position moves behind them.
     *
     * @throws java.nio.ReadOnlyBufferException for a buffer that is only to be read
     */
    public int read(Key key, long offset, ByteBuffer buffer) {
        if (buffer.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        int read;
        if (buffer.isDirect() && !VirtualThreads.isCurrent()) {
            Check.count("offset", offset);
            read = readDirect(key, offset, buffer);
        } else {
            byte[] bytes = read(key, offset, buffer.remaining());
            buffer.duplicate().put(bytes);
            read = bytes.length;
        }
        buffer.position(buffer.position() + read);
        return read;
    }

    /** The same for a text: {@link #read(Key, long, ByteBuffer)}. */
    public int read(String key, long offset, ByteBuffer buffer) {
        return read(Key.of(key), offset, buffer);
    }

    private int readDirect(Key key, long offset, ByteBuffer buffer) {
        try {
            return Native.readInto(
                    number(), key.bytes(), offset, buffer, buffer.position(), buffer.remaining());
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(buffer);
        }
    }

    /** A page of a listing, all of one moment. */
    public Page scanPage(Scan scan) {
        return scanCall(scan).await();
    }

    /** The same, started: {@link #scanPage}. */
    public CompletableFuture<Page> scanPageAsync(Scan scan) {
        return scanCall(scan).start(executor());
    }

    private Call<Page> scanCall(Scan scan) {
        return new Call<>(Op.SCAN, this, Page::new).data(scan.packed());
    }

    /** All blobs of a listing, page by page as they are asked for, each of its own moment. */
    public Iterable<Entry> list(Scan scan) {
        number();
        return new Listing(Objects.requireNonNull(scan), this::scanPage);
    }

    /** All blobs of the keyspace. */
    public Iterable<Entry> list() {
        return list(Scan.ALL);
    }

    @Override
    public String toString() {
        return "keyspace " + name + " of " + tyr.place();
    }

    private Executor executor() {
        return tyr.executor();
    }
}
