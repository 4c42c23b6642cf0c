package io.github.tyrstore;

/** What a native call asks for, by number; {@code src/op.rs} has the same. */
final class Op {
    static final int OPEN = 1;
    static final int CONNECT = 2;
    static final int CLOSE = 10;
    static final int SYNC = 11;
    static final int KEYSPACE = 12;
    static final int KEYSPACE_OR_CREATE = 13;
    static final int CREATE_KEYSPACE = 14;
    static final int DROP_KEYSPACE = 15;
    static final int KEYSPACES = 16;
    static final int BEGIN = 17;
    static final int SNAPSHOT = 18;
    static final int KEEP = 19;
    static final int KEPT = 20;
    static final int KEPT_SNAPSHOT = 21;
    static final int DROP_KEPT = 22;
    static final int COPY = 23;
    static final int READ_MANY = 24;
    static final int OUTCOME = 25;
    static final int CREATE = 40;
    static final int PUT = 41;
    static final int WRITE = 42;
    static final int APPEND = 43;
    static final int APPEND_AT = 44;
    static final int TRUNCATE = 45;
    static final int CLEAR = 46;
    static final int DELETE = 47;
    static final int APPLY = 48;
    static final int COMPARE_AND_SWAP = 49;
    static final int READ = 50;
    static final int GET = 51;
    static final int STAT = 52;
    static final int SCAN = 53;
    static final int SNAPSHOT_READ = 60;
    static final int SNAPSHOT_GET = 61;
    static final int SNAPSHOT_STAT = 62;
    static final int SNAPSHOT_SCAN = 63;
    static final int TXN_CREATE = 80;
    static final int TXN_PUT = 81;
    static final int TXN_WRITE = 82;
    static final int TXN_APPEND = 83;
    static final int TXN_APPEND_AT = 84;
    static final int TXN_TRUNCATE = 85;
    static final int TXN_CLEAR = 86;
    static final int TXN_DELETE = 87;
    static final int TXN_APPLY = 88;
    static final int TXN_COMPARE = 89;
    static final int TXN_COMPARE_NUMBER = 90;
    static final int TXN_EXPECT_ABSENT = 91;
    static final int TXN_EXPECT_PRESENT = 92;
    static final int TXN_EXPECT_VERSION = 93;
    static final int TXN_READ = 94;
    static final int TXN_GET = 95;
    static final int TXN_STAT = 96;
    static final int TXN_SCAN = 97;
    static final int TXN_COPY = 98;
    static final int TXN_COMMIT = 99;
    static final int TXN_ROLLBACK = 100;

    private Op() {}
}
