package io.github.tyrstore;

/** What a commit waits for, in a store of a folder. */
public enum Durability {
    /** The disk has it. */
    SYNC,
    /** The operating system has it. */
    BUFFERED,
    /** This process has it: the keyspace is empty after a restart. */
    MEMORY
}
