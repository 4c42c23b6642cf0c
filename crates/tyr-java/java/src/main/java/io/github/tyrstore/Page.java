package io.github.tyrstore;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** A page of a listing. */
public final class Page {
    private final List<Entry> entries = new ArrayList<>();
    private final List<Key> groups = new ArrayList<>();
    private final Key resume;

    Page(Object answer) {
        Unpacking packed = new Unpacking(answer);
        byte[] from = packed.bytes();
        resume = from == null ? null : Key.of(from);
        for (long left = packed.number(); left > 0; left--) {
            groups.add(Key.of(packed.bytes()));
        }
        for (long left = packed.number(); left > 0; left--) {
            Key key = Key.of(packed.bytes());
            Stat stat = packed.small() == 0 ? null : new Stat(packed.number(), packed.version());
            entries.add(new Entry(key, stat, packed.bytes()));
        }
    }

    /** The blobs, in the order of their keys. */
    public List<Entry> entries() {
        return List.copyOf(entries);
    }

    /** What keys up to the delimiter begin with, one for all of them. */
    public List<Key> groups() {
        return List.copyOf(groups);
    }

    /** From where on to go on, for {@link Scan#from}; none when that was all. */
    public Optional<Key> resume() {
        return Optional.ofNullable(resume);
    }
}
