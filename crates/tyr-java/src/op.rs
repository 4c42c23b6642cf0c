//! What a call of Java's asks for, by number. `Op.java` has the same numbers.

/// Makes the constants, and a list of them that a test compares with Java's.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $number:literal),* $(,)?) => {
        $($(#[$doc])* pub const $name: i32 = $number;)*

        /// All of them.
        #[cfg(test)]
        const ALL: &[(&str, i32)] = &[$((stringify!($name), $number)),*];
    };
}

operations! {
    // Of no handle.
    OPEN = 1,
    CONNECT = 2,
    // Of a store.
    CLOSE = 10,
    SYNC = 11,
    KEYSPACE = 12,
    KEYSPACE_OR_CREATE = 13,
    CREATE_KEYSPACE = 14,
    DROP_KEYSPACE = 15,
    KEYSPACES = 16,
    BEGIN = 17,
    SNAPSHOT = 18,
    KEEP = 19,
    KEPT = 20,
    KEPT_SNAPSHOT = 21,
    DROP_KEPT = 22,
    COPY = 23,
    READ_MANY = 24,
    OUTCOME = 25,
    // Of a keyspace.
    CREATE = 40,
    PUT = 41,
    WRITE = 42,
    APPEND = 43,
    APPEND_AT = 44,
    TRUNCATE = 45,
    CLEAR = 46,
    DELETE = 47,
    APPLY = 48,
    COMPARE_AND_SWAP = 49,
    READ = 50,
    GET = 51,
    STAT = 52,
    SCAN = 53,
    // Of a snapshot.
    SNAPSHOT_READ = 60,
    SNAPSHOT_GET = 61,
    SNAPSHOT_STAT = 62,
    SNAPSHOT_SCAN = 63,
    // Of a transaction.
    TXN_CREATE = 80,
    TXN_PUT = 81,
    TXN_WRITE = 82,
    TXN_APPEND = 83,
    TXN_APPEND_AT = 84,
    TXN_TRUNCATE = 85,
    TXN_CLEAR = 86,
    TXN_DELETE = 87,
    TXN_APPLY = 88,
    TXN_COMPARE = 89,
    TXN_COMPARE_NUMBER = 90,
    TXN_EXPECT_ABSENT = 91,
    TXN_EXPECT_PRESENT = 92,
    TXN_EXPECT_VERSION = 93,
    TXN_READ = 94,
    TXN_GET = 95,
    TXN_STAT = 96,
    TXN_SCAN = 97,
    TXN_COPY = 98,
    TXN_COMMIT = 99,
    TXN_ROLLBACK = 100,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_has_the_same_numbers() {
        let java = include_str!("../java/src/main/java/io/github/tyrstore/Op.java");
        let constants = java.lines().filter_map(|line| {
            let (name, number) =
                line.trim().strip_prefix("static final int ")?.split_once(" = ")?;
            Some((name, number.trim_end_matches(';').parse::<i32>().unwrap()))
        });
        assert_eq!(constants.collect::<Vec<_>>(), ALL);
    }
}
