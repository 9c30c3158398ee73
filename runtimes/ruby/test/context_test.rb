require_relative "child_program"
require "json"

# What is published, as the process itself sees it.
class ContextTest < Minitest::Test
  include ChildProgram

  # Programs print what `span` says; 0 is "no context".
  PRELUDE = <<-'RUBY'.freeze
    Spanprof.init(ctxstorage: "profiler")
    def span
      Spanprof.current_context[:span_id].to_i(16)
    end
  RUBY

  def assert_prints(expected, program)
    assert_equal expected, run_program(PRELUDE + program).split("\n").map(&:strip)
  end

  def test_blocks_nest_and_give_the_parent_back
    assert_prints %w[0 1 2 1 0], <<-'RUBY'
      puts span
      Spanprof.with_context(span_id: 1) do
        puts span
        Spanprof.with_context(span_id: 2) { puts span }
        puts span
      end
      puts span
    RUBY
  end

  def test_a_block_may_be_left_in_any_way
    assert_prints %w[1 1 1 1], <<-'RUBY'
      def returns
        Spanprof.with_context(span_id: 2) { return }
      end
      Spanprof.with_context(span_id: 1) do
        begin
          Spanprof.with_context(span_id: 2) { raise "x" }
        rescue
          puts span
        end
        catch(:out) { Spanprof.with_context(span_id: 2) { throw :out } }
        puts span
        [1].each { Spanprof.with_context(span_id: 2) { break } }
        puts span
        returns
        puts span
      end
    RUBY
  end

  def test_a_block_returns_its_value
    assert_prints ["42"], "puts Spanprof.with_context(span_id: 1) { 42 }"
  end

  def test_ids_are_integers_or_hexadecimal_digits
    assert_prints [
      "4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7 00000000000000ff",
      "ffffffffffffffffffffffffffffffff ffffffffffffffff ffffffffffffffff"
    ], <<-'RUBY'
      Spanprof.set(trace_id: "4bf92f3577b34da6a3ce929d0e0e4736", span_id: "00f067aa0ba902b7", root_span_id: 255)
      puts Spanprof.current_context.values_at(:trace_id, :span_id, :root_span_id).join(" ")
      Spanprof.clear
      Spanprof.set(trace_id: 2**128 - 1, span_id: 2**64 - 1)
      puts Spanprof.current_context.values_at(:trace_id, :span_id, :root_span_id).join(" ")
    RUBY
  end

  # Each refused call leaves what was there.
  def test_what_cannot_be_an_id_is_refused_and_changes_nothing
    assert_prints %w[ArgumentError 7 RangeError 7 RangeError 7 TypeError 7 ArgumentError 7 TypeError 7 ArgumentError 7], <<-'RUBY'
      Spanprof.set(span_id: 7)
      [{span_id: "xyz"}, {span_id: -1}, {span_id: 2**64}, {span_id: 1.5}, {}, {span_id: 1, tags: 3},
       {span_id: 1, spam_id: 2}].each do |arguments|
        begin
          Spanprof.with_context(**arguments) { puts "called" }
        rescue => e
          puts e.class
        end
        puts span
      end
    RUBY
  end

  def test_a_fiber_has_its_own_context
    assert_prints %w[0 2 1 2 3 1], <<-'RUBY'
      fiber = Fiber.new do
        puts span
        Spanprof.with_context(span_id: 2) do
          puts span
          Fiber.yield
          puts span
          Spanprof.set(span_id: 3)
          puts span
          Fiber.yield
        end
      end
      Spanprof.with_context(span_id: 1) do
        fiber.resume
        puts span
        fiber.resume
        puts span
      end
    RUBY
  end

  def test_an_enumerators_context_does_not_leak
    assert_prints %w[1 1 9], <<-'RUBY'
      seen = nil
      enumerator = Enumerator.new { |y| Spanprof.set(span_id: 9); y << 1; seen = span; y << 2 }
      Spanprof.with_context(span_id: 1) do
        enumerator.next
        puts span
        enumerator.next
        puts span
      end
      puts seen
    RUBY
  end

  def test_many_fibers_keep_their_contexts_through_collections
    assert_prints ["0 wrong"], <<-'RUBY'
      GC.stress = false
      wrong = 0
      fibers = (1..200).map do |id|
        Fiber.new do
          Spanprof.set(span_id: id)
          20.times { Fiber.yield; wrong += 1 if span != id }
          Fiber.yield :done
        end
      end
      20.times { |round| fibers.each(&:resume); GC.start; GC.compact if round % 5 == 0 }
      puts "#{wrong} wrong"
    RUBY
  end

  def test_a_fiber_switched_within_a_trace_hook_has_its_own_context
    assert_prints %w[0 5 1], <<-'RUBY'
      def traced; end
      fiber = Fiber.new { puts span; Spanprof.set(span_id: 5); puts span; Fiber.yield }
      trace = TracePoint.new(:call) { |t| fiber.resume if t.method_id == :traced && fiber.alive? && !$done; $done = true if t.method_id == :traced }
      Spanprof.with_context(span_id: 1) do
        trace.enable { traced }
        puts span
      end
    RUBY
  end

  # Native threads are used again; a thread that is killed does not say that it ends.
  def test_a_thread_starts_without_a_context
    assert_prints ["0 of 200"], <<-'RUBY'
      inherited = 0
      200.times do |i|
        Thread.new { inherited += 1 if span != 0; Spanprof.set(span_id: 1000 + i); Thread.exit if i.odd? }.join
      end
      puts "#{inherited} of 200"
    RUBY
  end

  def test_a_forked_child_goes_on_with_its_context
    assert_prints %w[1 2 1], <<-'RUBY'
      $stdout.sync = true
      Spanprof.with_context(span_id: 1) do
        pid = fork { puts span; Spanprof.with_context(span_id: 2) { puts span } }
        Process.wait(pid)
        puts span
      end
    RUBY
  end

  def test_a_foreign_value_in_the_fibers_variable_does_no_harm
    assert_prints %w[0 2], <<-'RUBY'
      Spanprof.set(span_id: 1)
      Thread.current[:__spanprof] = "mine"
      Fiber.new {}.resume
      puts span
      Spanprof.set(span_id: 2)
      puts span
    RUBY
  end

  def test_nothing_is_kept_before_init
    assert_equal "0000000000000000 nil\n", run_program(<<-'RUBY')
      Spanprof.with_context(span_id: 1, tags: {"a" => "b"}) do
        puts "#{Spanprof.current_context[:span_id]} #{Spanprof.status[:context_storage].inspect}"
      end
    RUBY
  end

  # The command reads the process's memory.
  def test_a_reader_outside_the_process_sees_span_trace_and_tags
    works = system(COMMAND, "--version", :out => File::NULL, :err => File::NULL)
    skip "there is no #{COMMAND}, or it does not run here" unless works
    program = <<-'RUBY'
      Spanprof.init(ctxstorage: "otel", attributes: ["http.route", "tenant"])
      Spanprof.set_endpoint(0xabc, "GET /cart")
      Spanprof.with_context(span_id: 0xabc, trace_id: "4bf92f3577b34da6a3ce929d0e0e4736", tags: {"tenant" => "acme"}) do
        Fiber.new { Spanprof.set(span_id: 1) }.resume
        Spanprof.with_context(span_id: 0xdef, tags: {"http.route" => "/cart"}) { puts "ready"; $stdout.flush; $stdin.read }
      end
    RUBY
    Open3.popen2(*ruby("-rspanprof", "-e", program)) do |input, output, thread|
      assert_equal "ready\n", output.gets
      text, status = Open3.capture2e(COMMAND, "context", "--json", thread.pid.to_s)
      input.close
      assert status.success?, text
      %w[0000000000000def 0000000000000abc 4bf92f3577b34da6a3ce929d0e0e4736 acme /cart].each do |expected|
        assert_includes text, expected
      end
      assert thread.value.success?
    end
  end
end
