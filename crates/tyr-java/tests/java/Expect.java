import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/** What tests expect. */
final class Expect {
    private Expect() {}

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    static void equal(Object wanted, Object given) {
        boolean isEqual = wanted instanceof byte[] && given instanceof byte[]
                ? Arrays.equals((byte[]) wanted, (byte[]) given)
                : Objects.equals(wanted, given);
        isTrue(isEqual, "wanted " + wanted + ", given " + given);
    }

    static void isTrue(boolean isSo, String words) {
        if (!isSo) {
            throw new AssertionError(words);
        }
    }

    /** Something that throws, whatever it is. */
    interface Throwing {
        void run() throws Throwable;
    }

    /** What it throws, which is of this class and says these words. */
    static <E extends Throwable> E thrown(Class<E> wanted, String words, Throwing body) {
        try {
            body.run();
        } catch (Throwable thrown) {
            if (!wanted.isInstance(thrown)) {
                throw new AssertionError("wanted " + wanted + ", not " + thrown, thrown);
            }
            String said = String.valueOf(thrown.getMessage());
            if (!said.contains(words)) {
                throw new AssertionError("wanted \"" + words + "\" in: " + said, thrown);
            }
            return wanted.cast(thrown);
        }
        throw new AssertionError("wanted " + wanted + ", but nothing was thrown");
    }

    /** A number once what others have left is collected: the same for many rounds. */
    static long settled(LongSupplier number) {
        long last = number.getAsLong();
        for (int same = 0; same < 20; same++) {
            System.gc();
            Thread.yield();
            long now = number.getAsLong();
            if (now != last) {
                last = now;
                same = 0;
            }
        }
        return last;
    }

    /** Comes true while garbage is collected and other threads go on. */
    static void comesTrue(String words, BooleanSupplier isSo) {
        for (int round = 0; round < 2_000; round++) {
            if (isSo.getAsBoolean()) {
                return;
            }
            System.gc();
            Thread.yield();
        }
        throw new AssertionError("it never came true: " + words);
    }

    /** Runs it in so many threads; throws what one of them has thrown. */
    static void inThreads(int count, Callable<?> body) throws Exception {
        Throwable[] thrown = new Throwable[count];
        Thread[] threads = new Thread[count];
        for (int place = 0; place < count; place++) {
            int own = place;
            threads[place] = new Thread(() -> {
                try {
                    body.call();
                } catch (Throwable error) {
                    thrown[own] = error;
                }
            });
            threads[place].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (Throwable error : thrown) {
            if (error != null) {
                throw new AssertionError("in a thread: " + error, error);
            }
        }
    }
}
