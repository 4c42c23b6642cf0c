package io.github.tyrstore;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** Whether a thread is virtual, in releases of Java that have such. */
final class VirtualThreads {
    private static final MethodHandle IS_VIRTUAL = find();

    private VirtualThreads() {}

    private static MethodHandle find() {
        try {
            MethodType type = MethodType.methodType(boolean.class);
            return MethodHandles.publicLookup().findVirtual(Thread.class, "isVirtual", type);
        } catch (ReflectiveOperationException none) {
            return null;
        }
    }

    static boolean isCurrent() {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable thrown) {
            throw new IllegalStateException(thrown);
        }
    }
}
