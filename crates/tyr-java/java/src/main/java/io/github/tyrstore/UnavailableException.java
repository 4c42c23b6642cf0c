package io.github.tyrstore;

/** The store, a disk or a node cannot do it now. Nothing changed. */
public final class UnavailableException extends TyrException {
    private static final long serialVersionUID = 1;

    UnavailableException(String text) {
        super(text);
    }
}
