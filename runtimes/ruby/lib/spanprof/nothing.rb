# What stands in for the extension where there is none: every call is there, and does nothing.

module Spanprof
  module Native
    module_function

    def init(_options)
      nil
    end

    def start(_options)
      unless @warned
        @warned = true
        warn "spanprof: nothing is recorded: #{MISSING_EXTENSION}"
      end
      nil
    end

    def stop
      nil
    end

    def dump(_file)
      nil
    end

    def recording?
      false
    end

    def native_only
      nil
    end

    def context_storage
      nil
    end

    def counters
      {}
    end

    def slowdown
      1
    end

    def gvl_waits
      nil
    end

    def cpu_clocks
      nil
    end

    def thread_cpu_time(_thread)
      nil
    end
  end

  class << self
    def set(_context = {})
      nil
    end

    def with_context(_context = {})
      yield
    end

    def clear
      nil
    end

    def current_context
      {}
    end

    def set_endpoint(_root_span_id, _name)
      false
    end
  end
end
