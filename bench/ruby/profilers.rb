# The rows: how each profiler is started and stopped, and how many samples it got.

PROFILERS = {
  "nothing" => [-> {}, -> { 0 }],
  "spanprof, loaded only" => [-> { require "spanprof" }, -> { 0 }]
}

def add_stackprof(name, mode, interval)
  PROFILERS[name] = [
    lambda {
      require "stackprof"
      StackProf.start(:mode => mode, :interval => interval)
    },
    lambda {
      StackProf.stop
      StackProf.results[:samples]
    }
  ]
end

def add_spanprof(name, options)
  PROFILERS[name] = [
    lambda {
      require "spanprof"
      Spanprof.start(options.merge(:file => "/dev/shm/spanprof-bench-#{$$}.pb.gz"))
    },
    lambda {
      Spanprof.stop
      file = "/dev/shm/spanprof-bench-#{$$}.pb.gz"
      $LOAD_PATH.unshift File.expand_path("../../../runtimes/ruby/test", __FILE__)
      require "pprof_profile"
      samples = PprofProfile.read(file).samples.sum { |sample| sample.values.first }
      File.delete(file)
      samples
    }
  ]
end

add_stackprof("stackprof cpu 10 ms", :cpu, 10_000)
add_spanprof("spanprof cpu 10 ms", :cpu => "10ms")
# Its timer is looked at once a kernel's tick; ours is an event of perf below that. The first of ours has about as
# many samples as a tick of 4 ms gives it.
add_stackprof("stackprof cpu 1 ms", :cpu, 1000)
add_spanprof("spanprof cpu 4 ms", :cpu => "4ms")
add_spanprof("spanprof cpu 1 ms", :cpu => "1ms")
add_spanprof("spanprof cpu 1 ms, no limit", :cpu => "1ms", :maxcpu => 0)
add_stackprof("stackprof wall 1 ms", :wall, 1000)
add_spanprof("spanprof wall 1 ms", :wall => "1ms")
add_spanprof("spanprof alloc 512k", :alloc => "512k")
