# Stands in for the gems opentelemetry-api and opentelemetry-sdk, which Debian does not have: what
# spanprof/opentelemetry uses of their documented interface, and what a program does with it.

module OpenTelemetry
  class Context
    STACK = :__opentelemetry_context_storage__

    class << self
      def current
        stack.last || ROOT
      end

      def attach(context)
        stack.push(context)
        stack.size
      end

      def detach(token)
        matches = token == stack.size
        stack.pop
        matches
      end

      def with_value(key, value)
        context = current.set_value(key, value)
        token = attach(context)
        yield context, value
      ensure
        detach(token)
      end

      def clear
        stack.clear
      end

      private

      # Thread#[] is of the fiber.
      def stack
        Thread.current[STACK] ||= []
      end
    end

    def initialize(entries)
      @entries = entries.freeze
    end

    def value(key)
      @entries[key]
    end

    def set_value(key, value)
      Context.new(@entries.merge(key => value))
    end

    ROOT = new({}).freeze
  end

  module Trace
    KEY = Object.new

    SpanContext = Struct.new(:trace_id, :span_id, :remote, :keyword_init => true) do
      def remote?
        remote == true
      end

      def valid?
        trace_id != "\0" * 16 && span_id != "\0" * 8
      end
    end

    # As the API has it: it has no name. Those of the SDK have.
    class Span
      attr_reader :context

      def initialize(span_context)
        @context = span_context
      end

      INVALID = new(SpanContext.new(:trace_id => "\0" * 16, :span_id => "\0" * 8)).freeze
    end

    class RecordingSpan < Span
      attr_accessor :name

      def initialize(name, trace_id, span_id)
        super(SpanContext.new(:trace_id => [trace_id].pack("H*"), :span_id => [span_id].pack("Q>")))
        @name = name
      end
    end

    class << self
      def current_span(context = nil)
        (context || Context.current).value(KEY) || Span::INVALID
      end

      def with_span(span)
        Context.with_value(KEY, span) { |context, active| yield active, context }
      end
    end
  end
end
