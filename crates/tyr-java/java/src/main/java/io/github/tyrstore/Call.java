package io.github.tyrstore;

import java.lang.ref.Reference;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/** A call of the native library: awaited by the thread that calls, or started. */
final class Call<T> {
    private static final AtomicLong TAGS = new AtomicLong(1);

    private final int op;
    private final Handle of;
    private final Function<Object, T> decode;
    private Handle keyspace;
    private Handle other;
    private boolean isOfHandles;
    private byte[] key;
    private long a;
    private long b;
    private byte[] data;
    private byte[] more;

    Call(int op, Handle of, Function<Object, T> decode) {
        this.op = op;
        this.of = of;
        this.decode = decode;
    }

    Call<T> in(Keyspace keyspace) {
        this.keyspace = keyspace;
        return this;
    }

    Call<T> key(Key key) {
        this.key = key.bytes();
        return this;
    }

    /** An offset or a size. */
    Call<T> at(long offset) {
        this.a = Check.count("offset or size", offset);
        return this;
    }

    Call<T> length(long length) {
        this.b = Check.count("length", length);
        return this;
    }

    Call<T> numbers(long a, long b) {
        this.a = a;
        this.b = b;
        return this;
    }

    Call<T> data(byte[] data) {
        this.data = data;
        return this;
    }

    Call<T> more(byte[] more) {
        this.more = more;
        return this;
    }

    /** Handles in the place of numbers: what is copied from and to, or what is asked about. */
    Call<T> handles(Handle first, Handle second) {
        this.keyspace = first;
        this.other = second;
        this.isOfHandles = true;
        return this;
    }

    private Object call(long tag) {
        try {
            long number = of == null ? 0 : of.number();
            long space = keyspace == null ? 0 : keyspace.number();
            if (isOfHandles) {
                a = space;
                b = other == null ? 0 : other.number();
            }
            return Native.call(tag, op, number, space, key, a, b, data, more);
        } finally {
            Reference.reachabilityFence(of);
            Reference.reachabilityFence(keyspace);
            Reference.reachabilityFence(other);
        }
    }

    /** Has it done by this thread, whichever that is: it waits for nothing. */
    T here() {
        return decode.apply(call(0));
    }

    /** Waits for the answer. */
    T await() {
        if (VirtualThreads.isCurrent()) {
            // A thread that waits in native code would keep its carrier.
            return join(start(Runnable::run));
        }
        return here();
    }

    /** Starts it. Whatever it fails with is in the future. */
    CompletableFuture<T> start(Executor executor) {
        long tag = TAGS.getAndIncrement();
        Pending<T> pending = new Pending<>(tag, decode, executor);
        try {
            Object answer = call(tag);
            if (answer == null) {
                Taker.await(pending);
            } else {
                pending.finish(answer);
            }
        } catch (Throwable thrown) {
            pending.completeExceptionally(thrown);
        }
        return pending;
    }

    private static <T> T join(CompletableFuture<T> future) {
        try {
            return future.get();
        } catch (InterruptedException interrupted) {
            future.cancel(true);
            Thread.currentThread().interrupt();
            throw new CallInterruptedException(
                    "the thread was interrupted: what was to change something may have taken"
                            + " effect all the same");
        } catch (ExecutionException failed) {
            Throwable cause = failed.getCause();
            // Where it was thrown is of no interest, but who waited is.
            cause.fillInStackTrace();
            if (cause instanceof RuntimeException) {
                throw (RuntimeException) cause;
            }
            if (cause instanceof Error) {
                throw (Error) cause;
            }
            throw new CompletionException(cause);
        }
    }

    /** A call that is under way. Cancelling it takes a read back. */
    static final class Pending<T> extends CompletableFuture<T> {
        private final long tag;
        private final Function<Object, T> decode;
        private final Executor executor;

        Pending(long tag, Function<Object, T> decode, Executor executor) {
            this.tag = tag;
            this.decode = decode;
            this.executor = executor;
        }

        long tag() {
            return tag;
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            boolean isNew = !isDone();
            boolean isCancelled = super.cancel(mayInterrupt);
            if (isNew && isCancelled) {
                Native.cancel(tag);
            }
            return isCancelled;
        }

        /** Completes it where the program wants that. */
        void finishElsewhere(Object answer) {
            try {
                executor.execute(() -> finish(answer));
            } catch (RuntimeException refused) {
                // The program has shut its executor down: somebody may wait all the same.
                finish(answer);
            }
        }

        void finish(Object answer) {
            if (answer instanceof Throwable) {
                completeExceptionally((Throwable) answer);
                return;
            }
            try {
                T value = decode.apply(answer);
                // It was cancelled: nobody will close what has come of it.
                if (!complete(value) && value instanceof Handle) {
                    ((Handle) value).give();
                }
            } catch (Throwable thrown) {
                completeExceptionally(thrown);
            }
        }
    }
}
