require_relative "child_program"
require_relative "pprof_profile"

# A guest that forks, execs and waits as if the profiler were not there.
class ProcessTest < Minitest::Test
  include ChildProgram

  # By file, the methods that its samples are in.
  def methods_by_file(folder)
    Dir.glob(File.join(folder, "*.pb.gz")).to_h do |file|
      profile = PprofProfile.read(file)
      names = profile.samples.flat_map { |sample| sample.frames.map(&:name) }.uniq
      [file, names.map { |name| name[/(parents|childs|grandchilds)_work/] }.compact.uniq.sort]
    end
  end

  def assert_children_have_their_own(program)
    in_folder do |folder|
      run_program(BURN + "Spanprof.start(cpu: '1ms', file: #{File.join(folder, 'p-%p.pb.gz').inspect})\n" + program)
      files = methods_by_file(folder)
      yield files
    end
  end

  def test_a_forked_child_is_recorded_in_a_file_of_its_own
    assert_children_have_their_own("pid = fork { childs_work }; parents_work; Process.wait(pid)") do |files|
      assert_equal [["childs_work"], ["parents_work"]], files.values.sort
    end
  end

  # Without it the child's sampler would wait for names in vain.
  def test_a_forked_child_has_the_thread_that_tells_names
    output = run_program(<<-'RUBY')
      $stdout.sync = true
      names = -> { puts Thread.list.map(&:name).compact.inspect }
      Process.wait(fork { names.call })
      Spanprof.start(cpu: "10ms")
      Process.wait(fork { names.call })
      Spanprof.stop
      Process.wait(fork { names.call })
    RUBY
    assert_equal %w[[] ["spanprof"] []], output.split
  end

  def test_a_grandchild_and_a_fork_in_a_thread
    program = <<-'RUBY'
      parents_work
      Thread.new do
        pid = fork { childs_work; Process.wait(fork { Spanprof.with_context(span_id: 9) { childs_work } }) }
        Process.wait(pid)
      end.join
    RUBY
    assert_children_have_their_own(program) do |files|
      assert_equal [["childs_work"], ["childs_work"], ["parents_work"]], files.values.sort
    end
  end

  def test_workers_that_are_forked_again_and_again
    program = <<-'RUBY'
      def parents_work; burn(0.1); end
      5.times { parents_work; fork { childs_work } }
      codes = Process.waitall.map { |_, status| status.exitstatus }
      abort codes.inspect unless codes == [0] * 5
    RUBY
    assert_children_have_their_own(program) do |files|
      assert_equal [["childs_work"]] * 5 + [["parents_work"]], files.values.sort
    end
  end

  def test_a_daemon_goes_on
    in_folder do |folder|
      run_program(BURN + <<-RUBY)
        Spanprof.start(cpu: "1ms", file: #{File.join(folder, 'p-%p.pb.gz').inspect})
        Process.daemon(true, true)
        childs_work
        Spanprof.stop
        File.write(#{File.join(folder, 'done').inspect}, "")
      RUBY
      200.times { break if File.exist?(File.join(folder, "done")); sleep 0.05 }
      assert_includes methods_by_file(folder).values, ["childs_work"]
    end
  end

  def test_what_is_executed_never_dies_of_our_signals
    output = run_program(BURN + <<-'RUBY')
      Spanprof.start(cpu: "100us", wall: "1ms", maxcpu: 0)
      failed = 0
      300.times do
        pid = fork { x = 0; rand(20_000).times { x += 1 }; exec("/bin/true") }
        Process.wait(pid)
        failed += 1 unless $?.success?
      end
      50.times { failed += 1 unless system("/bin/true") }
      puts "#{failed} failed"
    RUBY
    assert_equal "0 failed\n", output
  end

  # A native call that holds the VM's lock, as an extension would.
  def test_native_calls_do_not_see_our_signals
    begin
      require "fiddle"
    rescue LoadError
      skip "there is no fiddle"
    end
    output = run_program(<<-'RUBY')
      require "fiddle"
      poll = Fiddle::Function.new(Fiddle.dlopen(nil)["poll"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_LONG, Fiddle::TYPE_INT],
                                  Fiddle::TYPE_INT, need_gvl: true)
      interrupted = lambda do
        (1..20).count { poll.call(nil, 0, 20) < 0 && Fiddle.last_error == Errno::EINTR::Errno }
      end
      # Timers or events of perf, events of perf, timers beside signals that a thread of ours sends to who waits, such signals alone.
      [{cpu: "1ms"}, {cpu: "1ms", maxcpu: 0}, {wall: "1ms"}, {wall: "1ms", maxcpu: 0}].each do |options|
        Spanprof.start(**options)
        puts interrupted.call
        Spanprof.stop
      end
    RUBY
    assert_equal "0\n" * 4, output
  end

  def test_a_program_is_recorded_without_a_change
    in_folder do |folder|
      file = File.join(folder, "auto.pb.gz")
      run_program(BURN + "parents_work", environment: {"SPANPROF" => "cpu=1ms,file=#{file}"}, options: ["-rspanprof/auto"])
      assert_equal [["parents_work"]], methods_by_file(folder).values
    end
  end

  def test_wrong_options_do_not_stop_the_program
    output, errors, status = Open3.capture3({"SPANPROF" => "cpu=never"}, *ruby("-rspanprof/auto", "-e", "puts 1"))
    assert status.success?
    assert_equal "1\n", output
    assert_match(/nothing is recorded: .*cpu/, errors)
  end

  def test_refusals_are_exceptions
    output = run_program(<<-'RUBY')
      begin
        Spanprof.stop
      rescue Spanprof::Error => e
        puts e.message
      end
      begin
        Spanprof.start(cpu: "never")
      rescue ArgumentError => e
        puts e.message
      end
      Spanprof.start(cpu: "10ms")
      begin
        Spanprof.start(cpu: "10ms")
      rescue Spanprof::Error => e
        puts e.message
      end
      Spanprof.start(alloc: "1m") rescue puts $!.message
      p Spanprof.recording?
    RUBY
    assert_match(/\Anothing is being recorded.*\n.*never.*\na recording is under way already.*\n.*\ntrue\n\z/, output)
  end

  # What a recording counts is its own, and not what its parent or the one before it had counted.
  def test_counters_begin_with_each_recording
    in_folder do |folder|
      run_program(<<-RUBY)
        Spanprof.start(cpu: "1ms", maxcpu: 0, file: "#{folder}/a-%p.pb.gz")
        100.times { GC.start }
        parent = Process.pid
        Process.wait(fork { sleep 0.1; x = 0; 300_000.times { |i| x ^= i } })
        Spanprof.stop
        Spanprof.start(cpu: "1ms", maxcpu: 0, file: "#{folder}/b.pb.gz")
        x = 0
        300_000.times { |i| x ^= i }
        Spanprof.stop
        File.rename("#{folder}/a-\#{parent}.pb.gz", "#{folder}/parent.pb.gz")
      RUBY
      counts = Dir.glob(File.join(folder, "*.pb.gz")).to_h do |file|
        [File.basename(file)[/\A\w+/], PprofProfile.read(file).counter("ruby.gc_samples")]
      end
      assert_operator counts["parent"], :>, 20, counts.inspect
      assert_operator counts["a"], :<, 10, counts.inspect
      assert_operator counts["b"], :<, 10, counts.inspect
    end
  end

  def test_recordings_follow_each_other_and_dumps_come_in_between
    in_folder do |folder|
      run_program(BURN + <<-RUBY)
        3.times do |i|
          Spanprof.start(cpu: "1ms", file: "#{folder}/\#{i}.pb.gz")
          parents_work
          Spanprof.dump("#{folder}/dump\#{i}.pb.gz")
          Spanprof.stop
        end
      RUBY
      assert_equal [["parents_work"]] * 6, methods_by_file(folder).values
    end
  end

  # Whoever kills all threads kills ours too: names are then not to be had, and nobody waits for ever.
  def test_a_program_that_kills_every_thread_still_gets_its_profile
    in_folder do |folder|
      run_program(BURN + <<-RUBY)
        Spanprof.start(cpu: "1ms", file: "#{folder}/p.pb.gz")
        parents_work
        Thread.list.each { |thread| thread.kill unless thread == Thread.current }
        childs_work
        Spanprof.stop
      RUBY
      assert File.size?(File.join(folder, "p.pb.gz"))
    end
  end
end
