package io.github.tyrstore;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.CancellationException;

/** Makes exceptions of failures; {@code src/failure.rs} has the same numbers. */
final class Failures {
    /** No kind of error of Týr's. */
    static final int NO_KIND = Integer.MAX_VALUE;

    private Failures() {}

    static Throwable exception(int number, byte[] said, byte[] key, int operation, long cause) {
        String text = new String(said, StandardCharsets.UTF_8);
        switch (number) {
            case 100: return new IllegalStateException(text);
            case 101: return new CancellationException(text);
            default: return ours(number, text).with(number, key, operation, cause);
        }
    }

    private static TyrException ours(int number, String text) {
        switch (number) {
            case 0: return new NotFoundException(text);
            case 1: return new AlreadyExistsException(text);
            case 2: return new ConflictException(text);
            case 3: return new UnavailableException(text);
            case 4: return new TimedOutException(text);
            case 5: return new SnapshotTooOldException(text);
            case 6: return new InvalidArgumentException(text);
            case 7: return new PermissionDeniedException(text);
            case 8: return new QuotaExceededException(text);
            case 9: return new CorruptException(text);
            case 102: return new CallInterruptedException(text);
            default: return new BugException(text);
        }
    }
}
