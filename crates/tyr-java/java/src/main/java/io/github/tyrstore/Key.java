package io.github.tyrstore;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The name of a blob in its keyspace: 1 to 4096 bytes, in the order of their unsigned values. */
public final class Key implements Comparable<Key> {
    private final byte[] bytes;

    private Key(byte[] bytes) {
        this.bytes = bytes;
    }

    /** A text as UTF-8. */
    public static Key of(String text) {
        return new Key(Packing.utf8(text));
    }

    /** Any bytes, which are copied. */
    public static Key of(byte[] bytes) {
        return new Key(bytes.clone());
    }

    /** The bytes, which nobody may change. */
    byte[] bytes() {
        return bytes;
    }

    /** A copy of its bytes. */
    public byte[] toBytes() {
        return bytes.clone();
    }

    @Override
    public int compareTo(Key other) {
        return Arrays.compareUnsigned(bytes, other.bytes);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Key && Arrays.equals(bytes, ((Key) other).bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    /** The text that it is in UTF-8; what is none is replaced. */
    @Override
    public String toString() {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
