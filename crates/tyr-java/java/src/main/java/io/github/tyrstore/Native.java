package io.github.tyrstore;

import java.nio.ByteBuffer;

/** The border to the native library; {@code src/border/mod.rs} has the other side. */
final class Native {
    static {
        Library.load();
    }

    private Native() {}

    /**
     * A call. Without a tag the thread waits; with one it answers null when the answer is to be
     * taken later. An answer is a {@code long[]} or a {@code byte[]}.
     */
    static native Object call(
            long tag,
            int op,
            long handle,
            long keyspace,
            byte[] key,
            long a,
            long b,
            byte[] data,
            byte[] more);

    /** Runs an attempt in transactions until one commits; what its operations answered. */
    static native Object transact(long store, Attempt<?> attempt);

    /** Reads into a direct buffer; how many bytes. */
    static native int readInto(
            long handle, byte[] key, long offset, ByteBuffer buffer, int position, int length);

    /** Takes calls that are over: tags, and answers or exceptions; waits for the first. */
    static native int take(long[] tags, Object[] answers);

    /** Cancels a call that was started. */
    static native void cancel(long tag);

    /** Takes a handle back. */
    static native void free(long handle);

    /** How many handles there are. */
    static native long handles();

    /** Called by the library: the exception for a failure. */
    static Throwable exception(int number, byte[] text, byte[] key, int operation, long cause) {
        return Failures.exception(number, text, key, operation, cause);
    }

    /** Called by the library: whether a thread that waits is to stop waiting. */
    static boolean isInterrupted() {
        return Thread.currentThread().isInterrupted();
    }
}
