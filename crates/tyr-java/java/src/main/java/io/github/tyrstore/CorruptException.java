package io.github.tyrstore;

/** What is on disk is damaged; the text names file and place. Nothing changed. */
public final class CorruptException extends TyrException {
    private static final long serialVersionUID = 1;

    CorruptException(String text) {
        super(text);
    }
}
