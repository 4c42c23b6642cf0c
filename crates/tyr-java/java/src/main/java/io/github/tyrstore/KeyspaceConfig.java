package io.github.tyrstore;

import java.util.Locale;

/** What a keyspace is created with, which stays; each method answers another one. */
public final class KeyspaceConfig {
    /** What is usual. */
    public static final KeyspaceConfig DEFAULT = new KeyspaceConfig(new byte[0]);

    private final byte[] packed;

    private KeyspaceConfig(byte[] packed) {
        this.packed = packed;
    }

    private KeyspaceConfig with(String name, Object value) {
        byte[] word = new Packing().word(name, value).done();
        byte[] both = java.util.Arrays.copyOf(packed, packed.length + word.length);
        System.arraycopy(word, 0, both, packed.length, word.length);
        return new KeyspaceConfig(both);
    }

    /** Bytes of a chunk, a power of two from 4 KiB to 256 MiB; 64 MiB by default. */
    public KeyspaceConfig chunkSize(long bytes) {
        return with("chunk_size", Check.count("size", bytes));
    }

    /** How many nodes of a cluster have each chunk; 3 by default. */
    public KeyspaceConfig replication(int replicas) {
        return with("replication", Check.count("number of replicas", replicas));
    }

    /** Live replicas that a write needs; more than half of them by default. */
    public KeyspaceConfig liveReplicasMin(int replicas) {
        return with("live_replicas_min", Check.count("number of replicas", replicas));
    }

    /** What a commit waits for; the disk by default. */
    public KeyspaceConfig durability(Durability durability) {
        return with("durability", durability.name().toLowerCase(Locale.ROOT));
    }

    /** Whether what is written is compressed. */
    public KeyspaceConfig compressed(boolean isCompressed) {
        return with("compressed", isCompressed);
    }

    /** Whether older versions are kept for those who read; so by default. */
    public KeyspaceConfig multiVersioned(boolean isMultiVersioned) {
        return with("multi_versioned", isMultiVersioned);
    }

    /** Whether leases of keys guard what is under them. */
    public KeyspaceConfig guarded(boolean isGuarded) {
        return with("guarded", isGuarded);
    }

    /** By what of their keys blobs are placed, as the command {@code tyr} writes it. */
    public KeyspaceConfig placedBy(String part) {
        return with("placed_by", java.util.Objects.requireNonNull(part));
    }

    byte[] packed() {
        return packed;
    }
}
