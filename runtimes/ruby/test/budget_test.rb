require_relative "child_program"
require_relative "pprof_profile"

# Sampling that would cost too much becomes less frequent by itself, and says so.
class BudgetTest < Minitest::Test
  include ChildProgram

  # Deep stacks of many different methods, so that a sample is dear.
  PROGRAM = <<-'RUBY'.freeze
    def nest(depth, &block)
      depth == 0 ? block.call : nest(depth - 1, &block)
    end
    def burn(seconds)
      deadline = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < deadline
    end
  RUBY

  # They have to be sent a signal each time that they have woken up, so wall time is dear.
  WAITING = <<-'RUBY'.freeze
    16.times { Thread.new { loop { sleep 0.01 } } }
  RUBY

  def record(options, prelude = "")
    in_folder do |folder|
      file = File.join(folder, "p.pb.gz")
      output = run_program(PROGRAM + prelude + <<-RUBY)
        Spanprof.start(#{options.merge(file: file).inspect})
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        nest(300) { burn(3.5) }
        puts Spanprof.status[:slowdown], Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - began
        Spanprof.stop
      RUBY
      [PprofProfile.read(file), *output.split.map(&:to_i)]
    end
  end

  def perf_events?
    paranoid = "/proc/sys/kernel/perf_event_paranoid"
    File.exist?(paranoid) && (Process.uid == 0 || File.read(paranoid).to_i <= 2)
  end

  # Fewer samples stand for the same time.
  def cpu_time(profile)
    profile.samples.sum { |sample| sample.values[1] }
  end

  # In wall time too, which costs more than a timer's samples do.
  def test_it_slows_down_and_says_so
    profile, slowdown = record({cpu: "4ms", wall: "1ms", maxcpu: 1}, WAITING)
    assert_operator slowdown, :>, 1
    assert_operator profile.counter("sampler.slowed_down"), :>, 0
    assert_operator profile.counter("sampler.slowed_down_ns"), :>, 500_000_000
    assert_in_delta 3.5e9, cpu_time(profile), 0.7e9
  end

  # An event of perf takes more than 2 us everywhere, which is more than 2 % of 100 us.
  def test_it_does_without_events_that_alone_would_take_more
    skip "this process gets no events of perf" unless perf_events?
    profile, = record({cpu: "100us"})
    assert_operator profile.counter("sampler.perf_event_too_dear_ns"), :>, 2_000
    assert_in_delta 3.5e9, cpu_time(profile), 0.7e9
  end

  def test_it_does_not_where_it_may_take_what_it_takes
    profile, slowdown = record({cpu: "100us", maxcpu: 0})
    assert_equal 1, slowdown
    assert_equal 0, profile.counter("sampler.slowed_down")
    assert_operator profile.samples.sum { |sample| sample.values[0] }, :>, 20_000
  end

  def test_wall_time_is_sampled_less_often_too
    profile, slowdown, elapsed = record({wall: "1ms", maxcpu: 1}, WAITING)
    assert_operator slowdown, :>, 1
    burning = profile.samples.select { |sample| sample.frames.any? { |frame| frame.name.end_with?("burn") } }
    assert_in_delta elapsed, burning.sum { |sample| sample.values.last }, elapsed / 5
  end
end
