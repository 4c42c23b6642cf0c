package io.github.tyrstore;

/** How two numbers are compared; in the order of {@code Relation::ALL}. */
public enum Relation {
    /** {@code ==} */
    EQUAL,
    /** {@code !=} */
    NOT_EQUAL,
    /** {@code <} */
    LESS,
    /** {@code <=} */
    LESS_OR_EQUAL,
    /** {@code >} */
    GREATER,
    /** {@code >=} */
    GREATER_OR_EQUAL
}
