package io.github.tyrstore;

import java.util.concurrent.ConcurrentHashMap;

/** The thread that takes calls that are over from the native library, one for the process. */
final class Taker implements Runnable {
    private static final int AT_ONCE = 64;

    /** By tag: calls under way, or answers that came before their call was put here. */
    private static final ConcurrentHashMap<Long, Object> MET = new ConcurrentHashMap<>();

    static {
        Thread thread = new Thread(null, new Taker(), "tyr-taker", 0, false);
        thread.setDaemon(true);
        thread.start();
    }

    private Taker() {}

    /** Has a call completed once its answer is there. */
    static void await(Call.Pending<?> pending) {
        meet(pending.tag(), pending);
    }

    /** The second of a call and its answer takes the first. */
    private static void meet(long tag, Object one) {
        Object other = MET.putIfAbsent(tag, one);
        if (other == null) {
            return;
        }
        MET.remove(tag);
        if (one instanceof Call.Pending) {
            ((Call.Pending<?>) one).finish(other);
        } else {
            ((Call.Pending<?>) other).finishElsewhere(one);
        }
    }

    @Override
    public void run() {
        long[] tags = new long[AT_ONCE];
        Object[] answers = new Object[AT_ONCE];
        while (true) {
            int count = Native.take(tags, answers);
            for (int place = 0; place < count; place++) {
                Object answer = answers[place];
                answers[place] = null;
                meet(tags[place], answer);
            }
        }
    }
}
