require_relative "child_program"
require_relative "pprof_profile"

# The active span of opentelemetry-ruby is the context. Against a stand-in: see opentelemetry_stand_in.
class OpenTelemetryTest < Minitest::Test
  include ChildProgram

  STAND_IN = File.expand_path("../opentelemetry_stand_in", __FILE__)
  TRACE = "4bf92f3577b34da6a3ce929d0e0e4736".freeze

  PRELUDE = <<-RUBY.freeze
    $LOAD_PATH.unshift #{STAND_IN.inspect}
    require "spanprof/opentelemetry"
    Trace = OpenTelemetry::Trace
    def span(id, name = "span", trace = "#{TRACE}")
      Trace::RecordingSpan.new(name, trace, id)
    end
    def in_span(id, name = "span", trace = "#{TRACE}", &block)
      Trace.with_span(span(id, name, trace), &block)
    end
    # Span and local root.
    def ids
      Spanprof.current_context.values_at(:span_id, :root_span_id).map { |id| id.to_i(16) }.join("/")
    end
    Spanprof.init(ctxstorage: "profiler")
  RUBY

  def assert_prints(expected, program)
    assert_equal expected, run_program(PRELUDE + program).split("\n")
  end

  def test_spans_nest_and_the_local_root_stays
    assert_prints ["0/0", "1/1", "2/1", "3/1", "2/1", "1/1", "0/0"], <<-'RUBY'
      puts ids
      in_span(1) do
        puts ids
        in_span(2) do
          puts ids
          begin
            in_span(3) { puts ids; raise "x" }
          rescue RuntimeError
            puts ids
          end
        end
        puts ids
      end
      puts ids
    RUBY
  end

  def test_the_trace_id_is_there
    assert_prints [TRACE, "0" * 32], <<-'RUBY'
      in_span(1) { puts Spanprof.current_context[:trace_id] }
      puts Spanprof.current_context[:trace_id]
    RUBY
  end

  # What came with a request has its root elsewhere; another trace has one of its own.
  def test_a_parent_elsewhere_is_no_local_root
    assert_prints ["9/9", "5/5", "6/5", "8/8"], <<-RUBY
      remote = Trace::Span.new(Trace::SpanContext.new(trace_id: ["#{TRACE}"].pack("H*"), span_id: [9].pack("Q>"), remote: true))
      Trace.with_span(remote) do
        puts ids
        in_span(5) { puts ids; in_span(6) { puts ids }; in_span(8, "other", "0123456789abcdef0123456789abcdef") { puts ids } }
      end
    RUBY
  end

  def test_each_fiber_and_thread_has_its_own
    assert_prints ["0/0", "2/2", "1/1", "2/2", "1/1", "0/0"], <<-'RUBY'
      fiber = Fiber.new { puts ids; in_span(2) { puts ids; Fiber.yield; puts ids }; Fiber.yield }
      in_span(1) do
        fiber.resume
        puts ids
        fiber.resume
        puts ids
        Thread.new { puts ids }.join
      end
    RUBY
  end

  # A context that is carried to another thread by hand.
  def test_an_attached_context_brings_its_root_along
    assert_prints ["2/1", "0/0"], <<-'RUBY'
      carried = in_span(1) { in_span(2) { OpenTelemetry::Context.current } }
      Thread.new do
        token = OpenTelemetry::Context.attach(carried)
        puts ids
        OpenTelemetry::Context.detach(token)
        puts ids
      end.join
    RUBY
  end

  def test_samples_have_span_trace_and_endpoint
    in_folder do |folder|
      file = File.join(folder, "p.pb.gz")
      run_program(PRELUDE + <<-RUBY)
        def burn
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.3
          nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
        end
        Spanprof.start(cpu: "1ms", file: #{file.inspect})
        in_span(0x11, "GET /cart") { in_span(0x12, "render") { burn } }
        Spanprof.stop
      RUBY
      burning = PprofProfile.read(file).samples.select { |sample| sample.frames.any? { |f| f.name.end_with?("burn") } }
      refute_empty burning
      burning.each do |sample|
        assert_equal "0000000000000012", sample.labels["span_id"]
        assert_equal TRACE, sample.labels["trace_id"]
        assert_includes sample.labels.values, "GET /cart"
      end
    end
  end
end
