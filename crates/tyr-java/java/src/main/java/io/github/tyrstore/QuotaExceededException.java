package io.github.tyrstore;

/** The keyspace is as large as it may be. Nothing changed. */
public final class QuotaExceededException extends TyrException {
    private static final long serialVersionUID = 1;

    QuotaExceededException(String text) {
        super(text);
    }
}
