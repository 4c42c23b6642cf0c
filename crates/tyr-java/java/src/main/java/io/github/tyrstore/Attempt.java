package io.github.tyrstore;

/** A function that is run in transactions until one commits. */
final class Attempt<T> {
    private final Tyr tyr;
    private final Transactional<T, ?> body;
    private T value;
    private Throwable thrown;
    private Transaction last;

    Attempt(Tyr tyr, Transactional<T, ?> body) {
        this.tyr = tyr;
        this.body = body;
    }

    /** Called by the library: a negative number, or that of what it failed with. */
    int run(long handle) {
        thrown = null;
        last = new Transaction(tyr, handle, true);
        try {
            value = body.run(last);
            return -1;
        } catch (TyrException error) {
            thrown = error;
            return error.number();
        } catch (Throwable error) {
            thrown = error;
            return Failures.NO_KIND;
        } finally {
            // The library gives the handle back.
            last.take();
        }
    }

    T committed(Object answer) {
        last.committed(answer);
        return value;
    }

    /** What the function has thrown the last time that it ran; null if nothing. */
    Throwable thrown() {
        return thrown;
    }
}
