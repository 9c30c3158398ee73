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

  def record(options)
    in_folder do |folder|
      file = File.join(folder, "p.pb.gz")
      output = run_program(PROGRAM + <<-RUBY)
        Spanprof.start(#{options.merge(file: file).inspect})
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        nest(300) { burn(3.5) }
        puts Spanprof.status[:slowdown], Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - began
        Spanprof.stop
      RUBY
      [PprofProfile.read(file), *output.split.map(&:to_i)]
    end
  end

  def test_it_slows_down_and_says_so
    profile, slowdown = record(cpu: "100us")
    assert_operator slowdown, :>, 1
    assert_operator profile.counter("sampler.slowed_down"), :>, 0
    assert_operator profile.counter("sampler.slowed_down_ns"), :>, 500_000_000
    # Fewer samples stand for the same time.
    time = profile.samples.sum { |sample| sample.values[1] }
    assert_in_delta 3.5e9, time, 0.7e9
  end

  def test_it_does_not_where_it_may_take_what_it_takes
    profile, slowdown = record(cpu: "100us", maxcpu: 0)
    assert_equal 1, slowdown
    assert_equal 0, profile.counter("sampler.slowed_down")
    assert_operator profile.samples.sum { |sample| sample.values[0] }, :>, 20_000
  end

  def test_wall_time_is_sampled_less_often_too
    profile, slowdown, elapsed = record(wall: "1ms", maxcpu: 1)
    assert_operator slowdown, :>, 1
    burning = profile.samples.select { |sample| sample.frames.any? { |frame| frame.name.end_with?("burn") } }
    assert_in_delta elapsed, burning.sum { |sample| sample.values.last }, elapsed / 5
  end
end
