package io.github.tyrstore;

/** There is no such blob, keyspace or snapshot. Nothing changed. */
public final class NotFoundException extends TyrException {
    private static final long serialVersionUID = 1;

    NotFoundException(String text) {
        super(text);
    }
}
