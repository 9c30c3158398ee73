// Loads a JFR file with JDK Mission Control's parser and prints how many events of each type it
// found, with the sum of `weight`, the frames of their stacks, and whose threads they are.
//
//   java -cp (jars of org.openjdk.jmc:flightrecorder) JmcReader.java profile.jfr

import java.io.File;
import java.util.TreeMap;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.IMCThread;
import org.openjdk.jmc.common.item.IAttribute;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.item.IType;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.flightrecorder.JfrAttributes;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;

public final class JmcReader {
    private static final class Totals {
        long events;
        long weight;
        long frames;
        long threads;
        long times;
        long contexts;
    }

    public static void main(String[] arguments) throws Exception {
        IItemCollection events = JfrLoaderToolkit.loadEvents(new File(arguments[0]));
        TreeMap<String, Totals> byType = new TreeMap<>();
        for (IItemIterable items : events) {
            Totals totals = byType.computeIfAbsent(
                    items.getType().getIdentifier(), name -> new Totals());
            add(items, items.getType(), totals);
        }
        byType.forEach((name, totals) -> System.out.println(name + " " + totals.events + " "
                + totals.weight + " " + totals.frames + " " + totals.threads + " "
                + totals.times + " " + totals.contexts));
    }

    private static void add(IItemIterable items, IType<IItem> type, Totals totals) {
        IMemberAccessor<IMCStackTrace, IItem> stack =
                JfrAttributes.EVENT_STACKTRACE.getAccessor(type);
        IMemberAccessor<IMCThread, IItem> thread = JfrAttributes.EVENT_THREAD.getAccessor(type);
        IMemberAccessor<IQuantity, IItem> start = JfrAttributes.START_TIME.getAccessor(type);
        IMemberAccessor<?, IItem> weight = find(type, "weight");
        IMemberAccessor<?, IItem> context = find(type, "context");
        for (IItem item : items) {
            totals.events++;
            if (stack != null && stack.getMember(item) != null) {
                totals.frames += stack.getMember(item).getFrames().size();
            }
            if (thread != null && thread.getMember(item) != null
                    && thread.getMember(item).getThreadName() != null) {
                totals.threads++;
            }
            if (start != null && start.getMember(item) != null) {
                totals.times++;
            }
            if (weight != null && weight.getMember(item) instanceof IQuantity) {
                totals.weight += ((IQuantity) weight.getMember(item)).longValue();
            } else if (weight != null && weight.getMember(item) instanceof Number) {
                totals.weight += ((Number) weight.getMember(item)).longValue();
            }
            if (context != null && context.getMember(item) != null) {
                totals.contexts++;
            }
        }
    }

    private static IMemberAccessor<?, IItem> find(IType<IItem> type, String name) {
        for (IAttribute<?> attribute : type.getAttributes()) {
            if (attribute.getIdentifier().equals(name)) {
                return attribute.getAccessor(type);
            }
        }
        return null;
    }
}
