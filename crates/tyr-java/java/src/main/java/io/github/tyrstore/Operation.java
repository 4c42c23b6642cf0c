package io.github.tyrstore;

/**
 * An operation that a transaction has gathered.
 *
 * @param <T> what it answers: the offset of an append, the new number of arithmetic, whether there
 *     was a blob to delete; else nothing
 */
public final class Operation<T> {
    private final Transaction transaction;
    private final int place;

    Operation(Transaction transaction, int place) {
        this.transaction = transaction;
        this.place = place;
    }

    int place() {
        return place;
    }

    /**
     * What it has answered; null where that is nothing.
     *
     * @throws IllegalStateException before the transaction has committed
     */
    public T value() {
        Committed committed = transaction.committed();
        if (committed == null) {
            throw new IllegalStateException(
                    "what an operation answered is known once its transaction has committed");
        }
        return committed.value(this);
    }
}
