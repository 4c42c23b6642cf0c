package io.github.tyrstore;

/**
 * What is done in a transaction. It is run again after a conflict, so it does nothing but what the
 * transaction does.
 *
 * @param <T> what it answers
 * @param <E> what it throws besides
 */
@FunctionalInterface
public interface Transactional<T, E extends Exception> {
    /** Runs it. An exception rolls the transaction back, and goes through. */
    T run(Transaction transaction) throws E;
}
