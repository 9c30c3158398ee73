# require "spanprof/opentelemetry": the active span of opentelemetry-ruby is spanprof's context, on each fiber.
#
# Contexts of OpenTelemetry are attached and detached, each fiber's on its own; whatever makes a span active
# (in_span, with_span, with_current) comes through there. So these two are followed, and nothing is asked for when a
# sample is taken. Spans are named by their ids; the local root is the outermost one that began in this process,
# and when it ends its name becomes the request's endpoint.

require "spanprof"
begin
  require "opentelemetry"
rescue LoadError
  require "opentelemetry-api"
end

module Spanprof
  module OpenTelemetry
    # Where a span keeps the id of its local root.
    ROOT = :@spanprof_root_span_id

    # Goes before the methods of OpenTelemetry::Context.
    module Follow
      def attach(context)
        parent = Spanprof::OpenTelemetry.active_span
        token = super
        Spanprof::OpenTelemetry.entered(parent)
        token
      end

      def detach(token)
        left = Spanprof::OpenTelemetry.active_span
        matched = super
        Spanprof::OpenTelemetry.left(left)
        matched
      end

      def clear
        result = super
        Spanprof::OpenTelemetry.publish
        result
      end
    end

    class << self
      # Nil: none, or one that is nobody's.
      def active_span
        span = ::OpenTelemetry::Trace.current_span
        span.context.valid? ? span : nil
      end

      def entered(parent)
        span = active_span
        remember_root(span, parent) if span && !known_root(span)
        publish(span)
      rescue StandardError => e
        failed(e)
      end

      # What was active is not any more: the one below it is.
      def left(span)
        root = span && known_root(span)
        if root && root == id_of(span) && span.respond_to?(:name) && !span.equal?(active_span)
          Spanprof.set_endpoint(root, span.name.to_s)
        end
        publish
      rescue StandardError => e
        failed(e)
      end

      def publish(span = active_span)
        return Spanprof.clear unless span
        context = span.context
        Spanprof.set(:span_id => id_of(span), :root_span_id => known_root(span) || id_of(span),
                     :trace_id => context.trace_id.unpack("H*").first)
      end

      private

      # The bytes as a number.
      def id_of(span)
        span.context.span_id.unpack("Q>").first
      end

      def known_root(span)
        span.instance_variable_get(ROOT)
      end

      # A parent in another process, or of another trace, has its own root there.
      def remember_root(span, parent)
        return if span.frozen?
        local = parent && !parent.context.remote? && parent.context.trace_id == span.context.trace_id
        span.instance_variable_set(ROOT, local ? known_root(parent) || id_of(parent) : id_of(span))
      end

      # A program is never told that its profiler has failed, but once.
      def failed(error)
        return if @warned
        @warned = true
        warn "spanprof: spans of OpenTelemetry are not followed: #{error.class}: #{error.message}"
      end
    end
  end
end

OpenTelemetry::Context.singleton_class.send(:prepend, Spanprof::OpenTelemetry::Follow)
