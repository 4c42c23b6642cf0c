package io.github.tyrstore;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Reads what the native library has packed; {@code src/packed.rs} has the other side. */
final class Unpacking {
    private final ByteBuffer in;

    Unpacking(Object answer) {
        in = ByteBuffer.wrap((byte[]) answer);
    }

    boolean isEnd() {
        return !in.hasRemaining();
    }

    byte small() {
        return in.get();
    }

    long number() {
        return in.getLong();
    }

    Version version() {
        return new Version(in.getLong(), in.getLong());
    }

    /** Bytes, or null. */
    byte[] bytes() {
        int length = in.getInt();
        if (length < 0) {
            return null;
        }
        byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }

    static List<String> texts(Object answer) {
        Unpacking packed = new Unpacking(answer);
        List<String> texts = new ArrayList<>();
        while (!packed.isEnd()) {
            texts.add(new String(packed.bytes(), StandardCharsets.UTF_8));
        }
        return List.copyOf(texts);
    }
}
