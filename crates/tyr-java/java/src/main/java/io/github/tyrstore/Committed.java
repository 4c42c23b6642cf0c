package io.github.tyrstore;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A transaction that has committed. */
public final class Committed {
    private final Version version;
    private final List<Object> answers = new ArrayList<>();

    Committed(Object answer) {
        Unpacking packed = new Unpacking(answer);
        version = packed.version();
        while (!packed.isEnd()) {
            byte kind = packed.small();
            answers.add(answer(kind, packed.number()));
        }
    }

    private static Object answer(byte kind, long bits) {
        switch (kind) {
            case 1:
            case 2: return bits;
            case 3: return Double.longBitsToDouble(bits);
            case 4: return bits != 0;
            default: return null;
        }
    }

    /** The version of everything that it wrote. */
    public Version version() {
        return version;
    }

    /** What its operations have answered, in their order; null for those that answer nothing. */
    public List<Object> answers() {
        return Collections.unmodifiableList(answers);
    }

    /** What an operation of it has answered. */
    @SuppressWarnings("unchecked")
    <T> T value(Operation<T> operation) {
        return (T) answers.get(operation.place());
    }
}
