package io.github.tyrstore;

import java.util.Optional;

/**
 * What Týr throws: one class a kind of error, with a text that says what was wrong and what to do.
 *
 * <p>State changes only where there is no exception, but after {@link TimedOutException}, which
 * leaves it open, and where a call is interrupted or cancelled that was to change something.
 */
public abstract class TyrException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private int number = Failures.NO_KIND;
    private int operation = -1;
    private byte[] key;

    TyrException(String text) {
        super(text);
    }

    TyrException with(int number, byte[] key, int operation, long cause) {
        this.number = number;
        this.key = key;
        this.operation = operation;
        return this;
    }

    /** The number of its kind. */
    int number() {
        return number;
    }

    /** The key of the blob that it is about, where it is about one. */
    public Optional<Key> key() {
        return key == null ? Optional.empty() : Optional.of(Key.of(key));
    }

    /** Whether it is this operation of the transaction whose condition did not hold. */
    public boolean isOf(Operation<?> operation) {
        return operation.place() == this.operation;
    }
}
