package io.github.tyrstore;

/** Nobody said in time what became of it: {@link Tyr#outcome} asks again. */
public final class TimedOutException extends TyrException {
    private static final long serialVersionUID = 1;

    private transient Handle cause;

    TimedOutException(String text) {
        super(text);
    }

    @Override
    TyrException with(int number, byte[] key, int operation, long cause) {
        this.cause = new Handle("call", cause, false);
        return super.with(number, key, operation, cause);
    }

    /** What is asked again with. */
    Handle call() {
        return cause;
    }
}
