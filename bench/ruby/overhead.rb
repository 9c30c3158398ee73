# One row's workload in a process of its own: prints CPU seconds, those since the start, samples, and how many of 40 polls were interrupted.

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

def cpu_seconds
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

POLL = Fiddle::Function.new(Fiddle.dlopen(nil)["poll"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_LONG, Fiddle::TYPE_INT],
                            Fiddle::TYPE_INT, :need_gvl => true)

start, stop = PROFILERS.fetch(ARGV.fetch(0))
3.times { work }
GC.start
start.call
started = cpu_seconds
10.times { work } # What is done once (maps of code, names of methods) is not what it costs to go on.
began = cpu_seconds
80.times { work }
used = cpu_seconds - began
recorded = cpu_seconds - started
interrupted = ARGV[1] == "polls" ? (1..40).count { POLL.call(nil, 0, 5) < 0 && Fiddle.last_error == Errno::EINTR::Errno } : 0
puts "#{used} #{recorded} #{stop.call} #{interrupted}"
