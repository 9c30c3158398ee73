require_relative "child_program"
require_relative "pprof_profile"

# Threads that wait for the VM's lock.
class GvlWaitTest < Minitest::Test
  include ChildProgram

  # Two threads that burn take turns; the third sleeps, and waits only to be told that it is awake.
  PROGRAM = <<-'RUBY'.freeze
    def burn(seconds)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
    end
    def burns_beside; burn(1.5); end
    def burns_first; burn(1.5); end
    def sleeps; sleep 1.5; end
    beside = Thread.new { Thread.current.name = "beside"; burns_beside }
    sleeper = Thread.new { Thread.current.name = "sleeper"; sleeps }
    burns_first
    waits = Spanprof.status[:gvl_waits]
    [beside, sleeper].each(&:join)
  RUBY

  def reports?
    (RUBY_VERSION.split(".").first(2).map(&:to_i) <=> [3, 2]) >= 0
  end

  def test_status_says_whether_waits_are_known
    output = run_program(<<-'RUBY')
      waits = Spanprof.status[:gvl_waits]
      puts waits[:available], waits[:reason].inspect
    RUBY
    expected = reports? ? "true\nnil\n" : "false\n\"this Ruby does not report them: 3.2 and newer do\"\n"
    assert_equal expected, output
  end

  def test_each_threads_waits_are_counted
    skip "Ruby #{RUBY_VERSION} does not report waits" unless reports?
    output = run_program(<<-RUBY)
      Spanprof.start(cpu: "10ms")
      #{PROGRAM}
      Spanprof.stop
      main, other = [Thread.main, beside].map { |thread| waits[:threads][thread.native_thread_id] || {} }
      puts main[:count].to_i > 3, main[:nanoseconds].to_i > 200_000_000
      puts Spanprof.status[:counters]["ruby.gvl_waits"] >= main[:count]
      puts Spanprof.status[:counters]["ruby.gvl_wait_ns"] >= main[:nanoseconds]
    RUBY
    assert_equal %w[true true true true], output.split
  end

  def test_waiting_is_a_state_of_its_own
    skip "Ruby #{RUBY_VERSION} does not report waits" unless reports?
    in_folder do |folder|
      file = File.join(folder, "waits.pb.gz")
      run_program(<<-RUBY)
        Spanprof.start(wall: "5ms", file: #{file.inspect})
        #{PROGRAM}
        Spanprof.stop
      RUBY
      profile = PprofProfile.read(file)
      time = Hash.new(0)
      profile.samples.each do |sample|
        method = sample.frames.map { |frame| frame.name[/(burns_beside|burns_first|sleeps)\z/] }.compact.first
        waits = sample.frames.first && sample.frames.first.name == "[waiting for the GVL]"
        time[[method, sample.labels["thread_state"], waits]] += sample.values.last if method
      end
      # Each of the two has the lock for about half of the time.
      %w[burns_beside burns_first].each do |method|
        assert_operator time[[method, "blocked", true]], :>, 200_000_000, time.inspect
        assert_operator time[[method, "running", false]], :>, 200_000_000, time.inspect
        assert_equal 0, time[[method, "blocked", false]] + time[[method, "running", true]], time.inspect
      end
      assert_operator time[["sleeps", "waiting", false]], :>, 1_000_000_000, time.inspect
    end
  end
end
