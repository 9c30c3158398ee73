# A profiler whose samples carry the trace, span and tags that were active at that instant.
#
#   Spanprof.start(cpu: "10ms", file: "profile.pb.gz")
#   Spanprof.with_context(span_id: 0x1234, trace_id: "4bf92f3577b34da6a3ce929d0e0e4736") { handle(request) }
#   Spanprof.stop
#
# Where the extension could not be compiled, every call is there and does nothing; Spanprof.status says why.
# Parses as Ruby 2.1.

require "spanprof/version"
require "spanprof/options"

module Spanprof
  class Error < StandardError; end
end

begin
  require "spanprof/missing_extension"
rescue LoadError
  begin
    require "spanprof/spanprof_native"
  rescue LoadError => e
    Spanprof::MISSING_EXTENSION = "the extension cannot be loaded: #{e.message}".freeze
  end
end

if defined?(Spanprof::Native)
  require "spanprof/process"
else
  require "spanprof/nothing"
end

module Spanprof
  class << self
    # Publishes contexts without recording, e.g. ctxstorage: "otel" for readers outside the process. Once.
    def init(options = {})
      Native.init(Options.to_text(options))
    end

    # Begins a recording. The options are those of every runtime: cpu:, wall:, file:, to:, every:, service: and
    # so on; see docs/profiling.md. Without cpu: and wall:, CPU time is sampled every 10 ms.
    def start(options = {})
      start_text(Options.to_text(options))
    end

    # The same with an option string, as in the variable SPANPROF.
    def start_text(text)
      Native.start(text)
      stop_at_exit
      nil
    end

    # Ends the recording. Its last profile has been written and sent when this returns.
    def stop
      Native.stop
    end

    # Writes what was recorded so far, and goes on. The format is that of the name.
    def dump(file)
      Native.dump(file.to_s)
    end

    def recording?
      Native.recording?
    end

    # What works here, and what was given up, by reason.
    def status
      {
        :version => VERSION,
        :extension => !defined?(MISSING_EXTENSION),
        :reason => defined?(MISSING_EXTENSION) ? MISSING_EXTENSION : nil,
        :recording => recording?,
        :native_only => Native.native_only,
        :context_storage => Native.context_storage,
        :slowdown => Native.slowdown,
        :cpu_clocks => Native.cpu_clocks,
        :gvl_waits => gvl_waits,
        :counters => Native.counters
      }
    end

    # CPU time that a thread has used, in nanoseconds. Nil: it has ended, or cannot be asked.
    def thread_cpu_time(thread = Thread.current)
      Native.thread_cpu_time(thread)
    end

    private

    # Since the first recording began.
    def gvl_waits
      waits = Native.gvl_waits
      return {:available => false, :reason => "this Ruby does not report them: 3.2 and newer do"} unless waits
      threads = waits.map { |tid, (count, nanoseconds)| [tid, {:count => count, :nanoseconds => nanoseconds}] }
      {:available => true, :threads => Hash[threads]}
    end

    # While the VM can still be asked for names.
    def stop_at_exit
      return if @stops_at_exit
      @stops_at_exit = true
      at_exit { Native.finish if Native.recording? }
    end
  end
end
