package io.github.tyrstore;

/** What was read has changed, or a condition does not hold: run it again. Nothing changed. */
public final class ConflictException extends TyrException {
    private static final long serialVersionUID = 1;

    ConflictException(String text) {
        super(text);
    }
}
