package io.github.tyrstore;

/** The cluster does not let this user do it. Nothing changed. */
public final class PermissionDeniedException extends TyrException {
    private static final long serialVersionUID = 1;

    PermissionDeniedException(String text) {
        super(text);
    }
}
