package io.github.tyrstore;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Writes what the native library unpacks; {@code src/packed.rs} has the other side. */
final class Packing {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    Packing number(long number) {
        out.writeBytes(ByteBuffer.allocate(Long.BYTES).putLong(number).array());
        return this;
    }

    Packing bytes(byte[] bytes) {
        out.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).array());
        out.writeBytes(bytes);
        return this;
    }

    Packing word(String name, byte[] value) {
        return bytes(utf8(name)).bytes(value);
    }

    Packing word(String name, Object value) {
        return word(name, utf8(String.valueOf(value)));
    }

    /** What another has packed. */
    Packing raw(Packing other) {
        out.writeBytes(other.done());
        return this;
    }

    byte[] done() {
        return out.toByteArray();
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
