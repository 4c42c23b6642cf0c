import io.github.tyrstore.*;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Virtual threads, where Java has them; on Java before 21 it does the same in usual ones. */
public final class VirtualTest extends StoreCase {
    public void manyThreadsWaitForTheirAnswers() throws Exception {
        ExecutorService threads;
        try {
            threads = (ExecutorService) Executors.class
                    .getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        } catch (NoSuchMethodException none) {
            threads = Executors.newFixedThreadPool(50);
        }
        List<Future<Long>> all = new ArrayList<>();
        for (int thread = 0; thread < 200; thread++) {
            all.add(threads.submit((Callable<Long>) () -> {
                data.append("log", new byte[5]);
                NotFoundException none = Expect.thrown(NotFoundException.class, "none",
                        () -> data.get("none"));
                Expect.isTrue(none.getStackTrace().length > 0, "it tells who waited");
                java.nio.ByteBuffer direct = java.nio.ByteBuffer.allocateDirect(5);
                Expect.equal(5, data.read("log", 0, direct));
                return store.transact(t -> t.apply(data, "n", 0, Transform.add(1))).value();
            }));
        }
        long sum = 0;
        for (Future<Long> one : all) {
            sum += one.get();
        }
        threads.shutdown();
        Expect.equal(200L * 201 / 2, sum);
        Expect.equal(1000L, data.stat("log").size());
    }
}
