# One row's workload in a process of its own, in stretches with the profiler and without it by turns: differences between two processes
# (addresses, hash seeds) are greater than what is measured. Prints for each turn what the profiler added, relative to the program's CPU
# time without it, then samples a second of CPU time. With "polls": how many of 40 were interrupted.
#   overhead.rb ROW [polls]

require_relative "profilers"
require "fiddle"

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def nest(depth, &block)
  depth == 0 ? block.call : nest(depth - 1, &block)
end

def work
  nest(30) do
    fib(21)
    numbers = (0...20_000).map { |i| (i * 7919) % 10_007 }
    numbers.sort!
    counts = Hash.new(0)
    numbers.each { |number| counts[number] += 1 }
    text = +""
    10_000.times { |i| text << "k#{i % 97}," }
    text.split(",").size + counts.size
  end
end

def cpu_seconds(clock = Process::CLOCK_PROCESS_CPUTIME_ID)
  Process.clock_gettime(clock)
end

POLL = Fiddle::Function.new(Fiddle.dlopen(nil)["poll"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_LONG, Fiddle::TYPE_INT],
                            Fiddle::TYPE_INT, :need_gvl => true)

TURNS = 5
STRETCH = 40 # times the work: about a third of a second

def median(values)
  sorted = values.sort
  (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2
end

# CPU time of the program's thread for one piece of work, and what other threads, the profiler's, took besides. The median leaves out
# what only some pieces had: collections, and what the machine did meanwhile.
Stretch = Struct.new(:work, :others)

def stretch
  began = [cpu_seconds, cpu_seconds(Process::CLOCK_THREAD_CPUTIME_ID)]
  times = [began.last]
  STRETCH.times do
    work
    times << cpu_seconds(Process::CLOCK_THREAD_CPUTIME_ID)
  end
  used = times.last - began.last
  others = cpu_seconds - began.first - used
  Stretch.new(median(times.each_cons(2).map { |before, after| after - before }), others / used)
end

# The same before and after, whichever profiler it is: the collector's work depends on it.
def run_with(profiler)
  profiler.start.call
  began = cpu_seconds
  work while cpu_seconds < began + profiler.settle
  result = yield
  recorded = cpu_seconds - began
  samples = profiler.stop.call
  GC.start
  [result, samples, recorded]
end

nothing = PROFILERS.fetch("nothing")
profiler = PROFILERS.fetch(ARGV.fetch(0))
[nothing, profiler].each { |each| run_with(each) { work } } # What is loaded is not measured.
if ARGV[1] == "polls"
  puts run_with(profiler) { (1..40).count { POLL.call(nil, 0, 5) < 0 && Fiddle.last_error == Errno::EINTR::Errno } }.first
  exit
end

rates = []
added = (1..TURNS).map do |turn|
  stretches = {}
  # Each is first in every other turn.
  (turn.odd? ? [nothing, profiler] : [profiler, nothing]).each_with_index do |each, i|
    stretches[turn.odd? ? i : 1 - i], samples, recorded = run_with(each) { stretch }
    rates << samples / recorded if each != nothing
  end
  stretches[1].work / stretches[0].work * (1 + stretches[1].others) - 1
end
puts (added + [rates.empty? ? 0 : median(rates)]).join(" ")
