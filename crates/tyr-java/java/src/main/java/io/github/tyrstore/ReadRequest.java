package io.github.tyrstore;

import java.util.Objects;

/** Part of a blob that {@link Tyr#readMany} shall read. */
public final class ReadRequest {
    private final Keyspace keyspace;
    private final Key key;
    private final long offset;
    private final long length;

    /** Up to so many bytes at an offset. */
    public ReadRequest(Keyspace keyspace, Key key, long offset, long length) {
        this.keyspace = Objects.requireNonNull(keyspace);
        this.key = Objects.requireNonNull(key);
        this.offset = Check.count("offset", offset);
        this.length = Check.count("length", length);
    }

    /** The same for a text. */
    public ReadRequest(Keyspace keyspace, String key, long offset, long length) {
        this(keyspace, Key.of(key), offset, length);
    }

    void pack(Packing packing) {
        packing.number(keyspace.number()).bytes(key.bytes()).number(offset).number(length);
    }
}
