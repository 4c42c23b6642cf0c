package io.github.tyrstore;

/** The type of a number in a blob, little-endian; in the order of {@code NumberType::ALL}. */
public enum NumberType {
    /** One byte, with a sign. */
    I8(-0x80, 0x7F),
    /** Two bytes, with a sign. */
    I16(-0x8000, 0x7FFF),
    /** A Java {@code int}. */
    I32(Integer.MIN_VALUE, Integer.MAX_VALUE),
    /** A Java {@code long}. */
    I64(Long.MIN_VALUE, Long.MAX_VALUE),
    /** One byte, without a sign. */
    U8(0, 0xFF),
    /** Two bytes, without a sign. */
    U16(0, 0xFFFF),
    /** Four bytes, without a sign. */
    U32(0, 0xFFFF_FFFFL),
    /** Eight bytes, without a sign: a {@code long} whose bits are meant, see {@link Long}. */
    U64(Long.MIN_VALUE, Long.MAX_VALUE),
    /** A Java {@code float}. */
    F32(0, 0),
    /** A Java {@code double}. */
    F64(0, 0);

    private final long least;
    private final long greatest;

    NumberType(long least, long greatest) {
        this.least = least;
        this.greatest = greatest;
    }

    boolean isFloat() {
        return this == F32 || this == F64;
    }

    /** What is to be done, or compared, and with which number, as the native library reads it. */
    byte[] packed(int kind, long value) {
        if (isFloat()) {
            throw new IllegalArgumentException(this + " is for floats: give a double");
        }
        if (value < least || value > greatest) {
            throw new IllegalArgumentException(value + " does not fit into " + this);
        }
        return packedBits(kind, value);
    }

    /** The same for a float. */
    byte[] packed(int kind, double value) {
        if (!isFloat()) {
            throw new IllegalArgumentException(this + " is for integers: give a long");
        }
        return packedBits(kind, Double.doubleToRawLongBits(value));
    }

    private byte[] packedBits(int kind, long bits) {
        byte[] packed = new byte[2 + Long.BYTES];
        java.nio.ByteBuffer.wrap(packed).put((byte) kind).put((byte) ordinal()).putLong(bits);
        return packed;
    }
}
