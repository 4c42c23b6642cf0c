import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Comparator;

/**
 * Runs tests, so that nothing is needed but a JDK: every public method of these classes, each on an
 * object of its own, which is closed after it.
 */
final class Suite {
    private Suite() {}

    public static void main(String[] classes) throws Exception {
        int failed = 0;
        int ran = 0;
        for (String name : classes) {
            Class<?> type = Class.forName(name);
            Method[] methods = type.getDeclaredMethods();
            Arrays.sort(methods, Comparator.comparing(Method::getName));
            for (Method method : methods) {
                // `close` that Java makes for the base class, for one, is no test.
                if (!Modifier.isPublic(method.getModifiers()) || method.isSynthetic()) {
                    continue;
                }
                ran++;
                System.out.println(name + "." + method.getName());
                try (StoreCase test = (StoreCase) type.getDeclaredConstructor().newInstance()) {
                    method.invoke(test);
                } catch (InvocationTargetException thrown) {
                    failed++;
                    thrown.getCause().printStackTrace(System.out);
                }
            }
        }
        System.out.println(ran + " tests, " + failed + " failed");
        if (failed > 0 || ran == 0) {
            System.exit(1);
        }
        System.out.println("OK");
    }
}
