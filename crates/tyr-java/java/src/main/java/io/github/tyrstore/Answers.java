package io.github.tyrstore;

/** What the native library answers, as the program has it. */
final class Answers {
    private Answers() {}

    static Void nothing(Object answer) {
        return null;
    }

    static Long number(Object answer) {
        return ((long[]) answer)[0];
    }

    static Boolean truth(Object answer) {
        return number(answer) != 0;
    }

    static byte[] bytes(Object answer) {
        return (byte[]) answer;
    }
}
