package io.github.tyrstore;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/** How a store in a folder is opened; see {@link Tyr#openOptions}. */
public final class OpenOptions {
    private final Packing words = new Packing();
    private Executor executor = Tyr.DEFAULT_EXECUTOR;

    OpenOptions() {}

    /** Memory for recent operations and cache, in bytes; 128 MiB by default. */
    public OpenOptions cacheBytes(long bytes) {
        words.word("cache_bytes", Check.count("size", bytes));
        return this;
    }

    /** Changes nothing on disk. */
    public OpenOptions readOnly() {
        words.word("read_only", true);
        return this;
    }

    /** Makes no store where there is none. */
    public OpenOptions mustExist() {
        words.word("must_exist", true);
        return this;
    }

    /** After this long a snapshot is too old; 5 minutes by default. */
    public OpenOptions snapshotTimeout(Duration timeout) {
        words.word("snapshot_timeout_ms", Check.count("time", timeout.toMillis()));
        return this;
    }

    /** What completes futures; {@link java.util.concurrent.ForkJoinPool#commonPool} by default. */
    public OpenOptions executor(Executor executor) {
        this.executor = Objects.requireNonNull(executor);
        return this;
    }

    /** Opens the store in a folder, or makes one there. */
    public Tyr open(Path folder) {
        return call(folder).await();
    }

    /** The same for a text. */
    public Tyr open(String folder) {
        return open(Path.of(folder));
    }

    /** The same, started. */
    public CompletableFuture<Tyr> openAsync(Path folder) {
        return call(folder).start(executor);
    }

    private Call<Tyr> call(Path folder) {
        String place = folder.toString();
        byte[] packed = new Packing().raw(words).word("path", place).done();
        Executor with = executor;
        return new Call<>(Op.OPEN, null, answer -> new Tyr(place, answer, with)).data(packed);
    }
}
