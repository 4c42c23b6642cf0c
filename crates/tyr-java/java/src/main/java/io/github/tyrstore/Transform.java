package io.github.tyrstore;

/**
 * Arithmetic in place: what is done to a number in a blob, with which other.
 *
 * @param <N> what the new number is answered as: {@link Long}, or {@link Double} for floats
 */
public final class Transform<N extends Number> {
    /** What is done; in the order of {@code TransformKind::ALL}. */
    public enum Kind {
        /** x + y, which wraps around. */
        ADD,
        /** x - y, which wraps around. */
        SUB,
        /** x * y, which wraps around. */
        MUL,
        /** x / y. */
        DIV,
        /** The smaller one. */
        MIN,
        /** The greater one. */
        MAX,
        /** Bitwise and, of integers. */
        AND,
        /** Bitwise or, of integers. */
        OR,
        /** Bitwise exclusive or, of integers. */
        XOR,
        /** y, whatever x was. */
        SWAP
    }

    private final Kind kind;
    private final byte[] packed;
    private final boolean isFloat;

    private Transform(Kind kind, byte[] packed, boolean isFloat) {
        this.kind = kind;
        this.packed = packed;
        this.isFloat = isFloat;
    }

    /** Adds to a {@code long}. */
    public static Transform<Long> add(long value) {
        return of(Kind.ADD, NumberType.I64, value);
    }

    /** Adds to a {@code double}. */
    public static Transform<Double> add(double value) {
        return of(Kind.ADD, NumberType.F64, value);
    }

    /**
     * Any of integers.
     *
     * @throws IllegalArgumentException for a number that does not fit into the type
     */
    public static Transform<Long> of(Kind kind, NumberType type, long value) {
        return new Transform<>(kind, type.packed(kind.ordinal(), value), false);
    }

    /**
     * Any of floats.
     *
     * @throws IllegalArgumentException for a type of integers
     */
    public static Transform<Double> of(Kind kind, NumberType type, double value) {
        return new Transform<>(kind, type.packed(kind.ordinal(), value), true);
    }

    byte[] packed() {
        return packed;
    }

    @SuppressWarnings("unchecked")
    N value(Object answer) {
        long bits = ((long[]) answer)[0];
        return (N) (isFloat ? (Number) Double.longBitsToDouble(bits) : (Number) bits);
    }

    @Override
    public String toString() {
        return "Transform." + kind;
    }
}
