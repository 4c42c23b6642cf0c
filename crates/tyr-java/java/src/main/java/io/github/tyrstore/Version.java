package io.github.tyrstore;

/** The version of a blob, of a transaction, of a snapshot: later ones are greater. */
public final class Version implements Comparable<Version> {
    private final long clock;
    /** Epoch and node together. */
    private final long place;

    Version(long clock, long place) {
        this.clock = clock;
        this.place = place;
    }

    long clock() {
        return clock;
    }

    long place() {
        return place;
    }

    /**
     * The clock of the node that gave it, in microseconds since 1970; never before that of what it
     * comes after, so ahead of the day where clocks differ.
     */
    public long clockMicros() {
        return clock;
    }

    @Override
    public int compareTo(Version other) {
        int order = Long.compare(place >>> 16, other.place >>> 16);
        if (order == 0) {
            order = Long.compareUnsigned(clock, other.clock);
        }
        return order == 0 ? Long.compare(place & 0xFFFF, other.place & 0xFFFF) : order;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Version && compareTo((Version) other) == 0;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(clock) * 31 + Long.hashCode(place);
    }

    @Override
    public String toString() {
        return (place >>> 16) + "." + Long.toUnsignedString(clock) + "." + (place & 0xFFFF);
    }
}
