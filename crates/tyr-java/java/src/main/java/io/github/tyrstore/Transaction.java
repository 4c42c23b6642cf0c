package io.github.tyrstore;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.UnaryOperator;

/**
 * Operations on any blobs of any keyspaces of a store that take effect together or not at all.
 *
 * <p>Writes are gathered here and sent at the commit. Reads are at one version, see what this
 * transaction has written, and are validated at the commit. One call at a time may use it.
 * {@link #close} takes back what was not committed.
 */
public final class Transaction extends Handle implements AutoCloseable {
    private final Tyr tyr;
    private final boolean isLent;
    private volatile Committed committed;

    /** @param isLent whether {@link Tyr#transact} ends it */
    Transaction(Tyr tyr, long number, boolean isLent) {
        super("transaction", number, !isLent);
        this.tyr = tyr;
        this.isLent = isLent;
    }

    /** Makes an empty blob; the commit throws {@link AlreadyExistsException} if there is one. */
    public Operation<Void> create(Keyspace keyspace, Key key) {
        return gather(Op.TXN_CREATE, keyspace, key, call -> call);
    }

    /** The same for a text: {@link #create}. */
    public Operation<Void> create(Keyspace keyspace, String key) {
        return create(keyspace, Key.of(key));
    }

    /** Makes a blob's content this and nothing else. */
    public Operation<Void> put(Keyspace keyspace, Key key, byte[] data) {
        return gather(Op.TXN_PUT, keyspace, key, call -> call.data(Check.bytes(data)));
    }

    /** The same for a text: {@link #put}. */
    public Operation<Void> put(Keyspace keyspace, String key, byte[] data) {
        return put(keyspace, Key.of(key), data);
    }

    /** Writes at an offset; makes the blob if there is none; a gap reads as zeros. */
    public Operation<Void> write(Keyspace keyspace, Key key, long offset, byte[] data) {
        return gather(Op.TXN_WRITE, keyspace, key, call -> call.at(offset).data(Check.bytes(data)));
    }

    /** The same for a text: {@link #write}. */
    public Operation<Void> write(Keyspace keyspace, String key, long offset, byte[] data) {
        return write(keyspace, Key.of(key), offset, data);
    }

    /** Appends; answers the offset that it got. */
    public Operation<Long> append(Keyspace keyspace, Key key, byte[] data) {
        return gather(Op.TXN_APPEND, keyspace, key, call -> call.data(Check.bytes(data)));
    }

    /** The same for a text: {@link #append}. */
    public Operation<Long> append(Keyspace keyspace, String key, byte[] data) {
        return append(keyspace, Key.of(key), data);
    }

    /**
     * Appends if the blob ends at this offset then; else the commit throws {@link
     * ConflictException}.
     */
    public Operation<Long> appendAt(Keyspace keyspace, Key key, long offset, byte[] data) {
        return gather(
                Op.TXN_APPEND_AT, keyspace, key, call -> call.at(offset).data(Check.bytes(data)));
    }

    /** The same for a text: {@link #appendAt}. */
    public Operation<Long> appendAt(Keyspace keyspace, String key, long offset, byte[] data) {
        return appendAt(keyspace, Key.of(key), offset, data);
    }

    /** Cuts a blob to a size, or extends it with zeros. */
    public Operation<Void> truncate(Keyspace keyspace, Key key, long size) {
        return gather(Op.TXN_TRUNCATE, keyspace, key, call -> call.at(size));
    }

    /** The same for a text: {@link #truncate}. */
    public Operation<Void> truncate(Keyspace keyspace, String key, long size) {
        return truncate(keyspace, Key.of(key), size);
    }

    /** Makes a hole, which reads as zeros and takes no space. */
    public Operation<Void> clear(Keyspace keyspace, Key key, long offset, long length) {
        return gather(Op.TXN_CLEAR, keyspace, key, call -> call.at(offset).length(length));
    }

    /** The same for a text: {@link #clear}. */
    public Operation<Void> clear(Keyspace keyspace, String key, long offset, long length) {
        return clear(keyspace, Key.of(key), offset, length);
    }

    /** Removes a blob; answers whether there was one. */
    public Operation<Boolean> delete(Keyspace keyspace, Key key) {
        return gather(Op.TXN_DELETE, keyspace, key, call -> call);
    }

    /** The same for a text: {@link #delete}. */
    public Operation<Boolean> delete(Keyspace keyspace, String key) {
        return delete(keyspace, Key.of(key));
    }

    /**
     * A condition: the commit throws {@link ConflictException} unless exactly this is at the
     * offset.
     */
    public Operation<Void> compare(Keyspace keyspace, Key key, long offset, byte[] expected) {
        return gather(
                Op.TXN_COMPARE, keyspace, key, call -> call.at(offset).data(Check.bytes(expected)));
    }

    /** The same for a text: {@link #compare}. */
    public Operation<Void> compare(Keyspace keyspace, String key, long offset, byte[] expected) {
        return compare(keyspace, Key.of(key), offset, expected);
    }

    /**
     * A condition: the commit throws {@link ConflictException} unless the number at the offset
     * stands so to this one, before the writes of this transaction: {@code x relation value}.
     * One that was never written is zero.
     */
    public Operation<Void> compareNumber(
            Keyspace keyspace,
            Key key,
            long offset,
            Relation relation,
            NumberType type,
            long value) {
        byte[] packed = type.packed(relation.ordinal(), value);
        return gather(
                Op.TXN_COMPARE_NUMBER, keyspace, key, call -> call.at(offset).data(packed));
    }

    /** The same for a text. */
    public Operation<Void> compareNumber(
            Keyspace keyspace,
            String key,
            long offset,
            Relation relation,
            NumberType type,
            long value) {
        return compareNumber(keyspace, Key.of(key), offset, relation, type, value);
    }

    /** The same for floats. */
    public Operation<Void> compareNumber(
            Keyspace keyspace,
            Key key,
            long offset,
            Relation relation,
            NumberType type,
            double value) {
        byte[] packed = type.packed(relation.ordinal(), value);
        return gather(
                Op.TXN_COMPARE_NUMBER, keyspace, key, call -> call.at(offset).data(packed));
    }

    /** The same for a text. */
    public Operation<Void> compareNumber(
            Keyspace keyspace,
            String key,
            long offset,
            Relation relation,
            NumberType type,
            double value) {
        return compareNumber(keyspace, Key.of(key), offset, relation, type, value);
    }

    /** A condition: the commit throws {@link AlreadyExistsException} if there is a blob. */
    public Operation<Void> expectAbsent(Keyspace keyspace, Key key) {
        return gather(Op.TXN_EXPECT_ABSENT, keyspace, key, call -> call);
    }

    /** The same for a text: {@link #expectAbsent}. */
    public Operation<Void> expectAbsent(Keyspace keyspace, String key) {
        return expectAbsent(keyspace, Key.of(key));
    }

    /** A condition: the commit throws {@link NotFoundException} unless there is a blob. */
    public Operation<Void> expectPresent(Keyspace keyspace, Key key) {
        return gather(Op.TXN_EXPECT_PRESENT, keyspace, key, call -> call);
    }

    /** The same for a text: {@link #expectPresent}. */
    public Operation<Void> expectPresent(Keyspace keyspace, String key) {
        return expectPresent(keyspace, Key.of(key));
    }

    /**
     * Does arithmetic in place; answers the new number.
     *
     * @param <N> what the new number is
     */
    public <N extends Number> Operation<N> apply(
            Keyspace keyspace, Key key, long offset, Transform<N> transform) {
        byte[] packed = transform.packed();
        return gather(Op.TXN_APPLY, keyspace, key, call -> call.at(offset).data(packed));
    }

    /**
     * The same for a text: {@link #apply}.
     *
     * @param <N> what the new number is
     */
    public <N extends Number> Operation<N> apply(
            Keyspace keyspace, String key, long offset, Transform<N> transform) {
        return apply(keyspace, Key.of(key), offset, transform);
    }

    /**
     * A condition: the commit throws {@link ConflictException} if anything of the blob was written
     * after this version, which a {@link Stat} or a commit told.
     */
    public void expectVersion(Keyspace keyspace, Key key, Version version) {
        new Call<>(Op.TXN_EXPECT_VERSION, this, Answers::nothing).in(Check.keyspace(keyspace))
                .key(key).numbers(version.clock(), version.place()).await();
    }

    /** The same for a text: {@link #expectVersion}. */
    public void expectVersion(Keyspace keyspace, String key, Version version) {
        expectVersion(keyspace, Key.of(key), version);
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
        return new Call<>(Op.TXN_READ, this, Answers::bytes)
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
        return new Call<>(Op.TXN_GET, this, Answers::bytes).in(Check.keyspace(keyspace)).key(key);
    }

    /**
     * Size, with what this transaction has written, and the version that was read. Both are
     * validated at the commit: whatever others write of the blob meanwhile is a conflict.
     */
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
        return new Call<>(Op.TXN_STAT, this, Stat::of).in(Check.keyspace(keyspace)).key(key);
    }

    /**
     * A page of the keys of one group, with what this transaction has written. What it shows is
     * validated at the commit.
     */
    public Page scanPage(Keyspace keyspace, Scan scan) {
        return scanCall(keyspace, scan).await();
    }

    /** The same, started: {@link #scanPage}. */
    public CompletableFuture<Page> scanPageAsync(Keyspace keyspace, Scan scan) {
        return scanCall(keyspace, scan).start(executor());
    }

    private Call<Page> scanCall(Keyspace keyspace, Scan scan) {
        return new Call<>(Op.TXN_SCAN, this, Page::new)
                .in(Check.keyspace(keyspace)).data(scan.packed());
    }

    /** Copies a blob with this transaction; answers how many bytes. It is a read of the source. */
    public long copy(Keyspace source, Key sourceKey, Keyspace target, Key targetKey) {
        return new Call<>(Op.TXN_COPY, this, Answers::number).key(sourceKey)
                .data(targetKey.bytes())
                .handles(Check.keyspace(source), Check.keyspace(target)).await();
    }

    /** The same for texts: {@link #copy}. */
    public long copy(Keyspace source, String sourceKey, Keyspace target, String targetKey) {
        return copy(source, Key.of(sourceKey), target, Key.of(targetKey));
    }

    /**
     * Commits: everything takes effect, at once, or nothing. The transaction is over then.
     *
     * @throws ConflictException when something that was read has changed, or a condition does not
     *     hold, which {@link TyrException#isOf} tells
     */
    public Committed commit() {
        return commitCall().await();
    }

    /** The same, started: {@link #commit}. */
    public CompletableFuture<Committed> commitAsync() {
        return commitCall().start(executor());
    }

    private Call<Committed> commitCall() {
        settle();
        return new Call<>(Op.TXN_COMMIT, this, this::committed);
    }

    Committed committed(Object answer) {
        committed = new Committed(answer);
        return committed;
    }

    /** What it has committed; null before. */
    Committed committed() {
        return committed;
    }

    /** Takes everything back. One that is over stays as it is. */
    public void rollback() {
        settle();
        new Call<>(Op.TXN_ROLLBACK, this, Answers::nothing).await();
    }

    /** Takes everything back, unless it is over. */
    @Override
    public void close() {
        if (isLent) {
            throw new IllegalStateException("transact ends this transaction: leave it to it");
        }
        give();
    }

    private <T> Operation<T> gather(
            int op, Keyspace keyspace, Key key, UnaryOperator<Call<Integer>> add) {
        Call<Integer> call = new Call<>(op, this, answer -> (int) ((long[]) answer)[0]);
        return new Operation<>(this, add.apply(call.in(Check.keyspace(keyspace)).key(key)).here());
    }

    @Override
    public String toString() {
        return "transaction of " + tyr.place();
    }

    private Executor executor() {
        return tyr.executor();
    }
}
