package io.github.tyrstore;

/** An invariant of Týr is broken: stop this process. */
public final class BugException extends TyrException {
    private static final long serialVersionUID = 1;

    BugException(String text) {
        super(text);
    }
}
