package io.github.tyrstore;

/** The thread was interrupted while it waited, as it is still marked to be. */
public final class CallInterruptedException extends TyrException {
    private static final long serialVersionUID = 1;

    CallInterruptedException(String text) {
        super(text);
    }
}
