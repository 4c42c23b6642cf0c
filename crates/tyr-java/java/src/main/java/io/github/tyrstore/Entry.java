package io.github.tyrstore;

import java.util.Optional;

/** A blob in a listing. */
public final class Entry {
    private final Key key;
    private final Stat stat;
    private final byte[] bytes;

    Entry(Key key, Stat stat, byte[] bytes) {
        this.key = key;
        this.stat = stat;
        this.bytes = bytes;
    }

    /** Its key. */
    public Key key() {
        return key;
    }

    /** Its size and version; none in a listing of keys only. */
    public Optional<Stat> stat() {
        return Optional.ofNullable(stat);
    }

    /** Its first bytes, if they were asked for. */
    public byte[] bytes() {
        return bytes.clone();
    }

    @Override
    public String toString() {
        return stat == null ? key.toString() : key + " (" + stat + ")";
    }
}
