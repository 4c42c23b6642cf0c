package io.github.tyrstore;

/** What tests see of the inside. */
public final class Inside {
    private Inside() {}

    /** How many handles the native library has. */
    public static long handles() {
        return Native.handles();
    }
}
