require_relative "child_program"
require_relative "pprof_profile"

# Profiles of programs whose methods are named after the context that they run in. Every sample is then checked
# by itself: what its stack says and what it carries have to agree.
class SamplingTest < Minitest::Test
  include ChildProgram

  # work_N runs in span N and in no other. While enter_N is the innermost of these methods the span is being
  # changed, and may be N's or the one from before.
  NAMED_WORK = <<-'RUBY'.freeze
    def burn(rounds)
      x = 0
      i = 0
      while i < rounds
        x ^= i
        i += 1
      end
      x
    end
    eval((1..400).map do |n|
      "def enter_#{n}(&block)\n Spanprof.with_context(span_id: #{n}, tags: {'kind' => 'k#{n}'}) { work_#{n}(&block) }\nend\n" \
      "def work_#{n}\n burn(300)\n yield if block_given?\n burn(300)\nend\n"
    end.join)
  RUBY

  THREADS = <<-'RUBY'.freeze
    threads = (0...3).map do |t|
      Thread.new do
        Thread.current.name = "worker number #{t} of three"
        while running.call
          send("enter_#{1 + t}") { send("enter_#{11 + t}") { send("enter_#{21 + t}") } }
        end
      end
    end
    while running.call
      enter_31 { Thread.new { enter_41 { enter_42 } }.join }
      enter_32 { killed = Thread.new { loop { enter_43 } }; Thread.pass; killed.kill; killed.join }
    end
    threads.each(&:join)
  RUBY

  # A tight loop of switches: without looking at the fiber, one sample in eight was wrong.
  FIBERS = <<-'RUBY'.freeze
    fibers = (0...8).map do |f|
      Fiber.new { loop { send("enter_#{101 + f}") { Fiber.yield; send("enter_#{121 + f}") { Fiber.yield } } } }
    end
    empty = Fiber.new { loop { Fiber.yield } }
    numbers = Enumerator.new { |y| loop { enter_151 { y << 1 } } }
    while running.call
      enter_141 { fibers.each(&:resume); 50.times { empty.resume }; numbers.next }
      fibers.each(&:resume)
    end
  RUBY

  EXCEPTIONS = <<-'RUBY'.freeze
    while running.call
      enter_201 do
        begin
          enter_202 { enter_203 { raise ArgumentError, "on purpose" } }
        rescue ArgumentError
          burn(50)
        end
      end
      catch(:done) { enter_204 { enter_205 { throw :done } } }
      enter_206 { [1, 2].each { |n| enter_207; break if n == 1 } }
      enter_208 { (1..20).map { |n| n.to_s * 20 } }
    end
  RUBY

  # Fibers that a scheduler switches where they sleep and read, each in the middle of its spans. (A Queue in such a
  # program makes Ruby 3.1.2 crash by itself.)
  SCHEDULER = <<-RUBY.freeze
    require #{File.expand_path("../select_scheduler", __FILE__).inspect}
    Thread.new do
      Fiber.set_scheduler(SelectScheduler.new)
      pipes = (0...3).map { IO.pipe }
      3.times do |f|
        Fiber.schedule do
          while running.call
            send("enter_\#{221 + f}") { sleep 0.0005; send("enter_\#{231 + f}") { pipes[f][1].write("x") } }
          end
          pipes[f][1].close
        end
        Fiber.schedule do
          send("enter_\#{241 + f}") { send("enter_\#{251 + f}") } while pipes[f][0].read(1)
        end
      end
      Fiber.schedule { enter_261 { sleep 0; enter_271 } while running.call }
      Fiber.schedule { 2.times { enter_281 { Array(1..20).each.tap { |e| 20.times { e.next; enter_282 } }; sleep 0 } } while running.call }
    end.join
  RUBY

  def record(workload, seconds:, options: {cpu: "100us"}, prelude: "")
    in_folder do |folder|
      file = File.join(folder, "profile.pb.gz")
      output = run_program(prelude + NAMED_WORK + <<-RUBY)
        Spanprof.start(#{options.inspect}.merge(file: #{file.inspect}, maxmem: "512m", maxcpu: 0))
        # Of CPU time: as many samples on a busy machine.
        deadline = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + #{seconds}
        running = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < deadline }
        #{workload}
        Spanprof.stop
        Spanprof.status[:counters].each { |name, value| puts "\#{name}=\#{value}" }
      RUBY
      [PprofProfile.read(file), output.scan(/^(\S+)=(\d+)$/).to_h.transform_values(&:to_i)]
    end
  end

  # What the checked samples were like: in a method of known span, of these without a context, without Ruby frames.
  Checked = Struct.new(:known, :without_context, :without_frames)

  def check_contexts(profile)
    checked = Checked.new(0, 0, 0)
    wrong = profile.samples.reject { |sample| agrees?(sample, checked) }
    report = wrong.first(3).map { |sample| [sample.labels, sample.frames.map(&:name)] }
    assert_empty report, "#{wrong.size} of #{profile.samples.size} samples have another's context"
    checked
  end

  def agrees?(sample, checked)
    span = sample.labels["span_id"] && sample.labels["span_id"].to_i(16)
    # Every Ruby stack has it at its end, or a block of it.
    unless sample.frames.any? { |frame| frame.name.include?("<main>") }
      # One of a thread that runs Ruby should have Ruby's frames; a new thread does not run any yet.
      checked.without_frames += 1 if sample.frames.any? { |frame| frame.name == "rb_vm_exec" }
      return true
    end
    method = sample.frames.map { |frame| frame.name[/\b(?:enter|work)_\d+\z/] }.compact.first
    return span.nil? if method.nil?
    return true if method.start_with?("enter")
    checked.known += 1
    checked.without_context += 1 if span.nil?
    number = method[/\d+/].to_i
    span.nil? || (span == number && sample.labels["kind"] == "k#{number}")
  end

  { "threads" => THREADS, "fibers" => FIBERS, "exceptions" => EXCEPTIONS, "a_scheduler" => SCHEDULER }.each do |name, workload|
    define_method("test_no_sample_has_another_context_over_#{name}") do
      profile, counters = record(workload, seconds: Float(ENV["SPANPROF_RUBY_STRESS_SECONDS"] || 4))
      checked = check_contexts(profile)
      puts "#{name}: #{profile.samples.size} samples, #{checked.to_h}, #{counters}" if ENV["SPANPROF_VERBOSE"]
      assert_operator checked.known, :>, 7_000, counters.inspect
      # Whatever a sample lacks has been counted, with the reason.
      may_lack_context = counters.fetch("ruby.context_switching", 0) + profile.counter("context.in_progress")
      assert_operator checked.without_context, :<=, may_lack_context
      may_lack_frames = counters.values_at("ruby.between_threads", "ruby.around_collections").compact.sum
      assert_operator checked.without_frames, :<=, may_lack_frames
    end
  end

  def test_frames_have_names_files_and_lines
    profile, = record("burn(5_000_000); [3, 1, 2].cycle.first(2_000_000).sort_by { |x| -x }", seconds: 0)
    names = profile.samples.flat_map { |sample| sample.frames.map(&:name) }.tally
    assert_operator names.fetch("Object#burn", 0), :>, 0, names.inspect
    assert names.keys.any? { |n| n =~ /Array#(cycle|sort_by)|Enumerable#(first|sort_by)/ }, names.inspect
    frame = profile.samples.flat_map(&:frames).find { |f| f.name == "Object#burn" }
    assert_equal "-e", frame.file
    assert_includes 2..7, frame.line
  end

  def test_threads_have_rubys_names
    profile, = record(THREADS, seconds: 1.5, options: {cpu: "1ms"})
    names = profile.samples.map { |sample| sample.labels["thread_name"] || sample.labels["thread name"] }.tally
    assert_includes names.keys, "worker number 1 of three"
  end

  # The VM gives a native thread to one Ruby thread after the other: here that of the profiler's own.
  def test_a_thread_on_the_profilers_former_native_thread_is_sampled
    in_folder do |folder|
      file = File.join(folder, "again.pb.gz")
      run_program(NAMED_WORK + <<-RUBY)
        Spanprof.start(cpu: "1ms")
        own = Thread.list.find { |thread| thread.name == "spanprof" }
        tid = own.native_thread_id
        Spanprof.stop
        own.join
        heirs = (1..5).map { Thread.new { sleep 0.2; Thread.stop; burn(4_000_000); (1..20_000).map { |i| [i] } } }
        sleep 0.1 until heirs.all? { |thread| thread.native_thread_id }
        heir = heirs.find { |thread| thread.native_thread_id == tid }
        puts heir ? "used again" : "not used again"
        sleep 0.01 until heirs.all?(&:stop?)
        sleep 0.3
        Spanprof.start(cpu: "1ms", alloc: "1k", file: #{file.inspect})
        File.write(#{(file + ".tid").inspect}, heir ? tid : 0)
        heirs.each { |thread| sleep 0.01 until thread.stop?; thread.run; thread.join }
        Spanprof.stop
      RUBY
      tid = File.read(file + ".tid").to_i
      skip "the VM did not use the native thread again" if tid == 0
      profile = PprofProfile.read(file)
      of_heir = profile.samples.select { |sample| sample.labels["thread_id"].to_i == tid }
      assert of_heir.any? { |sample| sample.frames.any? { |frame| frame.name == "Object#burn" } }
      index = profile.value_types.index("alloc_space")
      assert_operator of_heir.sum { |sample| sample.values[index] }, :>, 400_000
    end
  end

  def test_garbage_collection_is_told_apart
    profile, = record("enter_301 { 300.times { GC.start } }", seconds: 0)
    collecting = profile.samples.select { |sample| sample.frames.first && sample.frames.first.name == "[GC]" }
    assert_operator collecting.size, :>, profile.samples.size / 3
    # It is the work of whoever asked for it.
    assert collecting.any? { |s| s.frames.any? { |f| f.name.end_with?("work_301") } && s.labels["span_id"].to_i(16) == 301 }
  end

  def test_native_code_of_extensions_stands_above_its_method
    profile, = record(<<-'RUBY', seconds: 0, prelude: "require 'zlib'\n")
      data = Random.bytes(4_000_000)
      4.times { enter_302 { Zlib::Deflate.deflate(data) } }
    RUBY
    deflating = profile.samples.select { |s| s.frames.any? { |f| f.name =~ /Deflate/ } }
    refute_empty deflating
    above = deflating.map { |s| s.frames.take_while { |f| f.name !~ /Deflate/ }.map(&:file) }
    refute_empty above.flatten, "no native frames above Zlib::Deflate"
  end

  def test_wall_time_shows_who_sleeps_and_in_which_span
    profile, = record(<<-'RUBY', seconds: 0, options: {wall: "5ms"})
      sleeper = Thread.new { enter_303 { sleep 1 } }
      enter_304 { sleep 1 }
      sleeper.join
    RUBY
    asleep = profile.samples.select { |s| s.frames.any? { |f| f.name == "Kernel#sleep" } }
    [303, 304].each do |span|
      of_span = asleep.select { |s| s.labels["span_id"] && s.labels["span_id"].to_i(16) == span }
      assert of_span.all? { |s| s.frames.any? { |f| f.name.end_with?("work_#{span}") } }
      time = of_span.sum { |s| s.values.last }
      assert_operator time, :>, 500_000_000, "span #{span}"
    end
  end

  # Threads that run are sampled by their timers, those that wait for the VM's lock or each other by the sampler's thread.
  def test_wall_samples_of_threads_that_run_and_wait_have_their_span
    profile, = record(THREADS, seconds: 2, options: {wall: "4ms"})
    assert_operator check_contexts(profile).known, :>, 300
  end

  # Frames are objects of the VM, and it moves and frees them.
  def test_names_stay_right_while_objects_move_and_methods_go
    profile, counters = record(<<-'RUBY', seconds: 4)
      GC.auto_compact = true
      i = 0
      while running.call
        i += 1
        holder = Class.new { class_eval("def short_lived_#{i}\n x = 0\n 20_000.times { |k| x ^= k }\n x\nend") }
        holder.new.send("short_lived_#{i}")
        holder = nil
        enter_305 { (1..200).map { |n| "text #{n}" * 3 } }
        GC.compact if i % 50 == 0
        GC.start if i % 50 == 25
      end
    RUBY
    check_contexts(profile)
    names = profile.samples.flat_map { |sample| sample.frames.map(&:name) }.tally
    assert names.keys.count { |n| n =~ /short_lived_\d+\z/ } > 20, names.keys.first(30).inspect
    assert_equal 0, counters.fetch("ruby.frames_without_name", 0)
    # What is read of an object that is gone is nothing that a method could be called.
    strange = names.keys.reject { |name| name.valid_encoding? && name =~ /\A[[:print:]]+\z/ && name != "[unnamed]" }
    assert_empty strange
  end

  # Native threads are used again, and keep pointers to threads that are gone.
  def test_threads_that_end_in_every_way_do_no_harm
    run_program(NAMED_WORK + <<-'RUBY')
      Spanprof.start(cpu: "100us", wall: "1ms", maxcpu: 0)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 3
      def nest(depth, &block)
        depth == 0 ? block.call : nest(depth - 1, &block)
      end
      threads = (1..4).map do |t|
        Thread.new do
          while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
            case rand(7)
            when 0 then Thread.new { Spanprof.set(span_id: 5); Thread.exit }.join
            when 1
              killed = Thread.new { loop { enter_6 } }
              sleep 0.001
              killed.kill.join
            when 2
              failed = Thread.new { Thread.current.report_on_exception = false; enter_7 { raise "on purpose" } }
              failed.join rescue nil
            when 3 then (fiber = Fiber.new { enter_8 { 9.times { Fiber.yield } } }) && 5.times { fiber.resume }
            when 4 then nest(300) { "abc".gsub(/b/, &:upcase) }
            when 5 then [1, 2].each.tap(&:next).next
            when 6 then sleep 0.002
            end
            GC.start if rand(100) == 0
            GC.compact if rand(300) == 0
          end
        end
      end
      threads.each(&:join)
      Spanprof.stop
    RUBY
  end

  def test_ractors_do_no_harm
    run_program(NAMED_WORK + <<-'RUBY', options: ["-W0", "-rspanprof"])
      Spanprof.start(cpu: "100us", wall: "1ms", maxcpu: 0)
      GC.auto_compact = true
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 2
      ractors = (1..3).map do
        Ractor.new(deadline) do |until_then|
          while Process.clock_gettime(Process::CLOCK_MONOTONIC) < until_then
            (1..1000).map { |i| "text #{i}" }
            GC.start if rand(100) == 0
            GC.compact if rand(1000) == 0
          end
        end
      end
      enter_1 { (1..1000).map { |i| "text #{i}" } } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
      ractors.each(&:take)
      Spanprof.stop
    RUBY
  end

  def test_a_jit_does_no_harm
    has_jit = system(RbConfig.ruby, "--yjit", "-e", "exit RubyVM::YJIT.enabled?", :err => File::NULL)
    skip "this Ruby #{RUBY_VERSION} was built without YJIT" unless has_jit
    in_folder do |folder|
      file = File.join(folder, "jit.pb.gz")
      run_program(NAMED_WORK + <<-RUBY, options: ["--yjit", "-rspanprof"])
        Spanprof.start(cpu: "100us", maxcpu: 0, file: #{file.inspect})
        deadline = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 2
        running = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < deadline }
        #{EXCEPTIONS}
        Spanprof.stop
      RUBY
      assert_operator check_contexts(PprofProfile.read(file)).known, :>, 1000
    end
  end

  def test_collection_stress_does_no_harm
    run_program(NAMED_WORK + <<-'RUBY')
      Spanprof.start(cpu: "100us", wall: "1ms", maxcpu: 0)
      GC.stress = true
      fiber = Fiber.new { loop { enter_1 { Fiber.yield } } }
      30.times { enter_2 { fiber.resume; Thread.new { enter_3 }.join } }
      GC.stress = false
      Spanprof.stop
    RUBY
  end
end
