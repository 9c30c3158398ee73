# The rows: how each profiler is started, and stopped, which tells how many samples it has taken since, and how many seconds of CPU time it
# has to settle before it is measured.

Profiler = Struct.new(:start, :stop, :settle)
# What is done once: maps of code, names of methods.
SETTLE = 0.15
# Once a second it is looked at what sampling costs, and from the second time on what its threads cost, which is most of wall time's.
SETTLE_WITHIN_LIMIT = 1.2
SETTLE_WALL = 2.3

PROFILERS = { "nothing" => Profiler.new(-> {}, -> { 0 }, SETTLE) }

def add_stackprof(name, mode, interval)
  PROFILERS[name] = Profiler.new(
    lambda {
      require "stackprof"
      StackProf.start(:mode => mode, :interval => interval)
    },
    lambda {
      StackProf.stop
      StackProf.results[:samples]
    },
    SETTLE
  )
end

def add_spanprof(name, options, settle = SETTLE)
  file = "/dev/shm/spanprof-bench-#{$$}.pb.gz"
  PROFILERS[name] = Profiler.new(
    lambda {
      require "spanprof"
      Spanprof.start(options.merge(:file => file))
    },
    lambda {
      Spanprof.stop
      require_relative "../../runtimes/ruby/test/pprof_profile"
      # Each has its time, so none are added up; one that stands for several intervals was taken once.
      samples = PprofProfile.read(file).samples.size
      File.delete(file)
      samples
    },
    settle
  )
end

add_stackprof("stackprof cpu 10 ms", :cpu, 10_000)
add_spanprof("spanprof cpu 10 ms", :cpu => "10ms")
# Timers of CPU time are looked at once a kernel's tick, stackprof's too; ours are events of perf below that if these are within the limit.
add_stackprof("stackprof cpu 1 ms", :cpu, 1000)
add_spanprof("spanprof cpu 1 ms", { :cpu => "1ms" }, SETTLE_WITHIN_LIMIT)
add_spanprof("spanprof cpu 4 ms, no limit", :cpu => "4ms", :maxcpu => 0)
add_spanprof("spanprof cpu 1 ms, no limit", :cpu => "1ms", :maxcpu => 0)
add_stackprof("stackprof wall 10 ms", :wall, 10_000)
add_spanprof("spanprof wall 10 ms", { :wall => "10ms" }, SETTLE_WALL)
add_stackprof("stackprof wall 1 ms", :wall, 1000)
add_spanprof("spanprof wall 1 ms", { :wall => "1ms" }, SETTLE_WALL)
# Until all names are known its thread often waits for the VM's lock.
add_spanprof("spanprof wall 1 ms, no limit", { :wall => "1ms", :maxcpu => 0 }, SETTLE_WALL)
# Both are called for every object, whether it is sampled or not.
add_stackprof("stackprof object, each 1000th", :object, 1000)
add_spanprof("spanprof alloc 512k", :alloc => "512k")
