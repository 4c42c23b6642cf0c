package io.github.tyrstore;

import java.util.Objects;

/** What is to be listed: all of a keyspace, which each method narrows. It never changes itself. */
public final class Scan {
    /** All of a keyspace. */
    public static final Scan ALL = new Scan();

    private Key prefix;
    private Key from;
    private Key to;
    private Key after;
    private Key delimiter;
    private int limit = -1;
    private long firstBytes = -1;
    private boolean isKeysOnly;

    private Scan() {}

    private Scan(Scan scan) {
        prefix = scan.prefix;
        from = scan.from;
        to = scan.to;
        after = scan.after;
        delimiter = scan.delimiter;
        limit = scan.limit;
        firstBytes = scan.firstBytes;
        isKeysOnly = scan.isKeysOnly;
    }

    /** Only keys that begin so. */
    public Scan prefix(Key prefix) {
        Scan scan = new Scan(this);
        scan.prefix = Objects.requireNonNull(prefix);
        return scan;
    }

    /** The same for a text. */
    public Scan prefix(String prefix) {
        return prefix(Key.of(prefix));
    }

    /** Only this key and those behind it. */
    public Scan from(Key from) {
        Scan scan = new Scan(this);
        scan.from = Objects.requireNonNull(from);
        return scan;
    }

    /** The same for a text. */
    public Scan from(String from) {
        return from(Key.of(from));
    }

    /** Only keys before this one. */
    public Scan to(Key to) {
        Scan scan = new Scan(this);
        scan.to = Objects.requireNonNull(to);
        return scan;
    }

    /** The same for a text. */
    public Scan to(String to) {
        return to(Key.of(to));
    }

    /** Only keys behind this one. */
    public Scan after(Key after) {
        Scan scan = new Scan(this);
        scan.after = Objects.requireNonNull(after);
        return scan;
    }

    /** The same for a text. */
    public Scan after(String after) {
        return after(Key.of(after));
    }

    /** One line for all keys that are the same up to this, behind the prefix. */
    public Scan delimiter(Key delimiter) {
        Scan scan = new Scan(this);
        scan.delimiter = Objects.requireNonNull(delimiter);
        return scan;
    }

    /** The same for a text. */
    public Scan delimiter(String delimiter) {
        return delimiter(Key.of(delimiter));
    }

    /** How many lines a page has at most, 1 to 10,000. */
    public Scan limit(int limit) {
        Scan scan = new Scan(this);
        scan.limit = (int) Check.count("limit", limit);
        return scan;
    }

    /** How many of its first bytes each blob comes with. */
    public Scan firstBytes(long count) {
        Scan scan = new Scan(this);
        scan.firstBytes = Check.count("length", count);
        return scan;
    }

    /** Without size and version, which costs less. */
    public Scan keysOnly() {
        Scan scan = new Scan(this);
        scan.isKeysOnly = true;
        return scan;
    }

    /** The same from where a page ended. */
    Scan resumed(Key from) {
        Scan scan = from(from);
        scan.after = null;
        return scan;
    }

    byte[] packed() {
        Packing packing = new Packing();
        pack(packing, "prefix", prefix);
        pack(packing, "from", from);
        pack(packing, "to", to);
        pack(packing, "after", after);
        pack(packing, "delimiter", delimiter);
        if (limit >= 0) {
            packing.word("limit", limit);
        }
        if (firstBytes >= 0) {
            packing.word("first_bytes", firstBytes);
        }
        if (isKeysOnly) {
            packing.word("keys_only", true);
        }
        return packing.done();
    }

    private static void pack(Packing packing, String name, Key value) {
        if (value != null) {
            packing.word(name, value.bytes());
        }
    }
}
