package io.github.tyrstore;

/** What was to be read is no longer kept: run it again. Nothing changed. */
public final class SnapshotTooOldException extends TyrException {
    private static final long serialVersionUID = 1;

    SnapshotTooOldException(String text) {
        super(text);
    }
}
