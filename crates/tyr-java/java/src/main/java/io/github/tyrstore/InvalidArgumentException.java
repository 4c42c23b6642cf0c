package io.github.tyrstore;

/** The request itself is wrong. Nothing changed. */
public final class InvalidArgumentException extends TyrException {
    private static final long serialVersionUID = 1;

    InvalidArgumentException(String text) {
        super(text);
    }
}
