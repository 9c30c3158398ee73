// Computes for three seconds in a thread called "busy", for a flight recording of it.

public final class Busy {
    private static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        Thread busy = new Thread(() -> spin(System.nanoTime() + 3_000_000_000L), "busy");
        busy.start();
        busy.join();
    }

    private static void spin(long end) {
        long sum = 0;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 100_000; i++) {
                sum = sum * 31 + Integer.toString(i & 1023).hashCode();
            }
            sink = sum;
        }
    }
}
