package io.github.tyrstore;

/** Size and version of a blob. */
public final class Stat {
    private final long size;
    private final Version version;

    Stat(long size, Version version) {
        this.size = size;
        this.version = version;
    }

    static Stat of(Object answer) {
        long[] numbers = (long[]) answer;
        return new Stat(numbers[0], new Version(numbers[1], numbers[2]));
    }

    /** How many bytes it has, holes among them. */
    public long size() {
        return size;
    }

    /** The version of what was last done to it. */
    public Version version() {
        return version;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Stat && size == ((Stat) other).size
                && version.equals(((Stat) other).version);
    }

    @Override
    public int hashCode() {
        return Long.hashCode(size) * 31 + version.hashCode();
    }

    @Override
    public String toString() {
        return size + " bytes, version " + version;
    }
}
