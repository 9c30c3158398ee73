require_relative "child_program"
require_relative "pprof_profile"

# Samples of new objects, against what the program is known to have allocated.
class AllocationTest < Minitest::Test
  include ChildProgram

  WORK = <<-'RUBY'.freeze
    class Thing; end
    def makes_things
      i = 0
      (Thing.new; i += 1) while i < 200_000
    end
    def makes_arrays
      i = 0
      (last = [i]; i += 1) while i < 100_000
      last
    end
  RUBY

  def record(program, options = {})
    in_folder do |folder|
      file = File.join(folder, "allocations.pb.gz")
      run_program(WORK + <<-RUBY)
        Spanprof.start(#{{alloc: "4k", file: file}.merge(options).inspect})
        #{program}
        Spanprof.stop
      RUBY
      return PprofProfile.read(file)
    end
  end

  # Bytes by class and method.
  def bytes_by(profile)
    index = profile.value_types.index("alloc_space")
    profile.samples.each_with_object(Hash.new(0)) do |sample, bytes|
      names = sample.frames.map(&:name)
      bytes[[names.first, names[1..-1].find { |name| name.include?("makes_") }]] += sample.values[index]
    end
  end

  def test_samples_stand_for_the_bytes_that_were_allocated
    bytes = bytes_by(record("makes_things; makes_arrays"))
    # 4,000,000 bytes in samples of 4,096: one standard deviation is 3 in 100.
    assert_in_delta 8_000_000, bytes[["Thing", "Object#makes_things"]], 1_000_000, bytes.inspect
    assert_in_delta 4_000_000, bytes[["Array", "Object#makes_arrays"]], 800_000, bytes.inspect
  end

  def test_samples_have_context_and_thread
    profile = record(<<-'RUBY')
      Thread.new do
        Thread.current.name = "maker"
        Spanprof.with_context(span_id: 7, tags: {"tenant" => "acme"}) { makes_things }
        Spanprof.with_context(span_id: 8) { Fiber.new { Spanprof.set(span_id: 9); makes_arrays }.resume }
      end.join
    RUBY
    spans = Hash.new { |hash, key| hash[key] = [] }
    made = profile.samples.select { |sample| sample.frames.any? { |frame| frame.name.include?("makes_") } }
    assert_equal ["maker"], made.map { |sample| sample.labels["thread_name"] }.uniq
    made.each do |sample|
      spans[sample.frames.first.name] |= [[sample.labels["span_id"].to_s.to_i(16), sample.labels["tenant"]]]
    end
    assert_equal [[7, "acme"]], spans["Thing"]
    assert_equal [[9, nil]], spans["Array"]
  end

  def test_nothing_is_sampled_unless_it_is_asked_for
    profile = record("makes_things", alloc: nil, cpu: "1ms")
    refute_includes profile.value_types, "alloc_space"
  end

  # The hook goes on in the child, and reports to the child's recording.
  def test_a_forked_child_has_its_own
    in_folder do |folder|
      run_program(WORK + <<-RUBY)
        Spanprof.start(alloc: "4k", file: "#{folder}/p-%p.pb.gz")
        makes_things
        Process.wait(fork { sleep 0.3; makes_arrays })
      RUBY
      makers = Dir.glob(File.join(folder, "*.pb.gz")).map { |file| bytes_by(PprofProfile.read(file)).keys.map(&:last).compact.uniq }
      assert_equal [["Object#makes_arrays"], ["Object#makes_things"]], makers.sort
    end
  end

  def test_recordings_with_and_without_follow_each_other
    in_folder do |folder|
      run_program(WORK + <<-RUBY)
        [{cpu: "1ms"}, {alloc: "4k"}, {cpu: "1ms"}, {alloc: "4k"}].each_with_index do |options, i|
          Spanprof.start(options.merge(file: "#{folder}/\#{i}.pb.gz"))
          makes_things
          Spanprof.stop
          makes_arrays
        end
      RUBY
      kinds = (0..3).map { |i| PprofProfile.read("#{folder}/#{i}.pb.gz") }
      assert_equal [false, true, false, true], kinds.map { |profile| profile.value_types.include?("alloc_space") }
      assert_in_delta 8_000_000, bytes_by(kinds[3])[["Thing", "Object#makes_things"]], 1_000_000
      assert_empty bytes_by(kinds[3]).keys.map(&:last) & ["Object#makes_arrays"]
    end
  end

  def test_collections_and_ractors_do_no_harm
    output = run_program(WORK + <<-'RUBY', options: ["-W0", "-rspanprof"])
      Spanprof.start(alloc: "1k", cpu: "100us", maxcpu: 0)
      GC.stress = true
      20.times { Class.new { define_method(:x) { "y" * 3 } }.new.x }
      GC.stress = false
      GC.auto_compact = true
      2.times { makes_things; GC.compact }
      ractors = (1..2).map { Ractor.new { 50_000.times { |i| "text #{i}" } } }
      makes_arrays
      ractors.each(&:take)
      puts Spanprof.status[:counters]["ruby.allocations_ended_by_ractors"].inspect
      Spanprof.stop
    RUBY
    assert_equal "1\n", output
  end
end
