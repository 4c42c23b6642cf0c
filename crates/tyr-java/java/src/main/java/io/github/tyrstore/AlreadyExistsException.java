package io.github.tyrstore;

/** There is such a blob, keyspace or snapshot already. Nothing changed. */
public final class AlreadyExistsException extends TyrException {
    private static final long serialVersionUID = 1;

    AlreadyExistsException(String text) {
        super(text);
    }
}
