package io.github.tyrstore;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Something that the native library holds, by number. It is given back once: by whoever closes it,
 * or when nothing refers to it any more. With {@code -Dtyr.leaks=true} the latter is told, with
 * where it was made.
 */
class Handle {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final boolean TELLS_LEAKS = Boolean.getBoolean("tyr.leaks");

    private final State state;
    private final Cleaner.Cleanable cleanable;

    /** @param isToBeClosed whether it is a leak when nobody has closed it */
    Handle(String name, long number, boolean isToBeClosed) {
        Throwable made = null;
        if (TELLS_LEAKS && isToBeClosed) {
            made = new Throwable("a " + name + " was made here and never closed");
        }
        state = new State(name, number, made);
        cleanable = CLEANER.register(this, state);
    }

    /** Its number. */
    final long number() {
        long number = state.get();
        if (number == 0) {
            throw new IllegalStateException("this " + state.name + " is closed");
        }
        return number;
    }

    final boolean isOpen() {
        return state.get() != 0;
    }

    /** Takes the number away: 0 if somebody has. Whoever gets it gives it back. */
    final long take() {
        long number = state.getAndSet(0);
        cleanable.clean();
        return number;
    }

    /** Says that nothing is lost when it is not closed. */
    final void settle() {
        state.made = null;
    }

    /** Gives it back, if nobody has. */
    final void give() {
        long number = take();
        if (number != 0) {
            Native.free(number);
        }
    }

    /** What is left when nothing refers to the handle: it must not. */
    private static final class State extends AtomicLong implements Runnable {
        private static final long serialVersionUID = 1;

        private final String name;
        private transient volatile Throwable made;

        State(String name, long number, Throwable made) {
            super(number);
            this.name = name;
            this.made = made;
        }

        @Override
        public void run() {
            long number = getAndSet(0);
            if (number == 0) {
                return;
            }
            Throwable leak = made;
            if (leak != null) {
                System.Logger log = System.getLogger("io.github.tyrstore");
                log.log(System.Logger.Level.WARNING, leak.getMessage(), leak);
            }
            Native.free(number);
        }
    }
}
