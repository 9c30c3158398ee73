# Nanoseconds of a fiber switch and of context calls, with the gem or (argument "without") not.

def cpu
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

COUNT = 200_000

def nanoseconds_each(count)
  began = cpu
  yield
  (cpu - began) / count * 1e9
end

def best
  (1..9).map { yield }.min
end

unless ARGV[0] == "without"
  require "spanprof"
  Spanprof.init
end
fiber = Fiber.new { loop { Fiber.yield } }
in_span = Fiber.new { Spanprof.set(:span_id => 1); loop { Fiber.yield } }
rows = { "fiber switch" => best { nanoseconds_each(2 * COUNT) { i = 0; (fiber.resume; i += 1) while i < COUNT } } }
if defined?(Spanprof)
  Spanprof.set(:span_id => 2)
  rows["fiber switch between spans"] = best { nanoseconds_each(2 * COUNT) { i = 0; (in_span.resume; i += 1) while i < COUNT } }
  rows["set(span_id:, root_span_id:)"] = best { nanoseconds_each(COUNT) { i = 0; (Spanprof.set(:span_id => 1, :root_span_id => 2); i += 1) while i < COUNT } }
  rows["with_context(span_id:) { }"] = best { nanoseconds_each(COUNT) { i = 0; (Spanprof.with_context(:span_id => 1) {}; i += 1) while i < COUNT } }
end
rows.each { |name, value| puts "#{name}\t#{value}" }
