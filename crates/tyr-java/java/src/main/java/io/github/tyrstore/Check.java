package io.github.tyrstore;

import java.util.Objects;

/** What is looked at before a call. */
final class Check {
    private Check() {}

    static long count(String what, long given) {
        if (given < 0) {
            throw new IllegalArgumentException("a " + what + " is 0 or more, not " + given);
        }
        return given;
    }

    static byte[] bytes(byte[] given) {
        return Objects.requireNonNull(given, "the data is null");
    }

    static Keyspace keyspace(Keyspace given) {
        return Objects.requireNonNull(given, "the keyspace is null");
    }
}
