require_relative "child_program"

# What is kept for ever, though nobody needs it.
class MemoryTest < Minitest::Test
  include ChildProgram

  # Bytes that malloc has given out. The process's size would tell of Ruby's heap and of holes in it, too.
  ALLOCATED = <<-'RUBY'.freeze
    require "fiddle"
    require "tempfile"
    LIBC = Fiddle.dlopen(nil)
    def libc(name, result, *arguments)
      Fiddle::Function.new(LIBC[name], arguments, result)
    end
    OPEN = libc("fopen", Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP)
    CLOSE = libc("fclose", Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP)
    MALLOC_INFO = libc("malloc_info", Fiddle::TYPE_INT, Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP)
    REPORT = Tempfile.new("malloc").path
    def allocated
      # A thread of Ruby's has a megabyte, and ours may be about to end.
      sleep 0.001 until Thread.list.size == 1
      3.times { GC.start }
      file = OPEN.call(REPORT, "w")
      MALLOC_INFO.call(0, file)
      CLOSE.call(file)
      totals = File.read(REPORT)[/.*<\/heap>(.*)/m, 1] # The last lines are of all arenas.
      size = ->(what) { Integer(totals[/#{what}[^>]* size="(\d+)"/, 1]) }
      size.call('system type="current"') + size.call('total type="mmap"') - size.call('total type="fast"') - size.call('total type="rest"')
    end
  RUBY

  # A Ruby exception skips destructors: what it skips would be lost each time.
  def test_calls_that_raise_leak_nothing
    assert_equal "", run_program(ALLOCATED + <<-'RUBY')
      Spanprof.init(ctxstorage: "profiler")
      long = "x" * 5000
      calls = {
        "an id that is none" => -> { Spanprof.with_context(span_id: "q") {} },
        "a block that raises" => -> { Spanprof.with_context(span_id: 1) { raise "x" } },
        "an id that is too large" => -> { Spanprof.set(span_id: 1, trace_id: 2**128) },
        "a tag without a name" => -> { Spanprof.set(span_id: 1, tags: {1 => "x"}) },
        "a tag that is no text" => -> { Spanprof.set(span_id: 1, tags: {"t" => Object.new}) },
        "a tag with a long name" => -> { Spanprof.set(span_id: 1, tags: {long => "x"}) },
        "no arguments" => -> { Spanprof.set({}) },
        "a wrong option" => -> { Spanprof.start(cpu: "never") },
        "an option with a zero byte" => -> { Spanprof.start_text("cpu=1ms\0") },
        "stop without start" => -> { Spanprof.stop },
        "dump without start" => -> { Spanprof.dump("/nonexistent/x.pb.gz") },
        "init once more" => -> { Spanprof.init(ctxstorage: "otel") },
        "an endpoint that is no text" => -> { Spanprof.set_endpoint("x", 1) },
        "a thread that is none" => -> { Spanprof.thread_cpu_time(3) }
      }
      times = 1000
      raise_often = lambda do |name, call|
        times.times do
          begin
            call.call
            abort "#{name} did not raise"
          rescue ArgumentError, TypeError, RangeError, RuntimeError, Spanprof::Error
          end
        end
        allocated
      end
      calls.each do |name, call|
        sizes = (1..4).map { raise_often.call(name, call) }
        growth = sizes.each_cons(2).map { |before, after| after - before }
        # The smallest thing that can be lost is 24 bytes.
        puts "#{name}: #{growth.inspect} bytes for #{times} calls each" unless growth.min < 8 * times
      end
    RUBY
  end

  # On Ruby 3.3 each has a kernel id of its own.
  def test_threads_that_have_ended_are_let_go_of
    output = run_program(<<-'RUBY')
      Thread.report_on_exception = false
      ends = [-> { 1 }, -> { Thread.exit }, -> { raise "x" }, -> { Thread.current.kill }]
      15.times do
        threads = (0...100).map { |i| Thread.new { sleep 0.01; ends[i % ends.size].call } }
        threads.each { |thread| thread.join rescue nil }
      end
      GC.start
      puts ObjectSpace.each_object(Thread).count
    RUBY
    assert_operator output.to_i, :<, 500
  end

  # Names of threads are a megabyte a round, and what else is lost each time is seen too. What malloc has given out goes up
  # and down by half of one.
  def test_recordings_leak_nothing
    in_folder do |folder|
      output = run_program(ALLOCATED + <<-RUBY)
        record = lambda do
          Spanprof.start(cpu: "1ms", wall: "1ms", file: #{File.join(folder, 'x.pb.gz').inspect})
          threads = (1..20).map { Thread.new { Thread.current.name = "of a long name" * 400; sleep 0.005 } }
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.02
          (1..100).map(&:to_s) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
          threads.each(&:join)
          Spanprof.stop
        end
        sizes = (1..6).map { 10.times { record.call }; allocated }
        puts sizes.last - sizes.first
      RUBY
      assert_operator output.to_i, :<, 2_000_000
    end
  end
end
