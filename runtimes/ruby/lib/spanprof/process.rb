# What the extension has to hear of, and the VM has no hook for.

module Spanprof
  module Native
    # At the end of the program, where nobody can handle an error.
    def self.finish
      stop
    rescue Error, ArgumentError => e
      warn "spanprof: the last profile was not written: #{e.message}"
    end

    # The extension's calls are for the main Ractor.
    def self.callable?
      !defined?(Ractor) || Ractor.current == Ractor.main
    end
  end

  # In a forked child the core goes on recording by itself, and the Ruby thread that tells it names has to be
  # started again.
  module ForkHook
    def _fork
      child = super
      Native.after_fork if child == 0 && Native.callable?
      child
    end

    # It forks without asking _fork.
    def daemon(*arguments)
      result = super
      Native.after_fork if Native.callable?
      result
    end
  end

  # Workers that are forked for one job end so (Resque's do): no at_exit is called.
  module ExitHook
    def exit!(*arguments)
      Native.finish if Native.callable? && Native.recording?
      super
    end
  end

  # For a call without a receiver. Between Object and Kernel: with a module before Kernel, Ruby would tell other names
  # of Kernel's methods.
  module ObjectExitHook
    private

    def exit!(*arguments)
      Native.finish if Native.callable? && Native.recording?
      super
    end
  end

  # Handlers must not look at objects that are being moved. From the first Ractor on they take it that objects may
  # always be, so that calls in other Ractors need not tell.
  module CompactionHook
    def compact(*arguments)
      Native.expect_compaction(true) if (tell = Native.callable?)
      super
    ensure
      Native.expect_compaction(false) if tell
    end

    def verify_compaction_references(*arguments, **options)
      Native.expect_compaction(true) if (tell = Native.callable?)
      super
    ensure
      Native.expect_compaction(false) if tell
    end

    def auto_compact=(value)
      Native.expect_automatic_compaction(true) if (tell = Native.callable?)
      super
    ensure
      Native.expect_automatic_compaction(GC.auto_compact) if tell
    end
  end

  # It compacts too, from 3.3 on.
  module WarmupHook
    def warmup
      Native.expect_compaction(true) if (tell = Native.callable?)
      super
    ensure
      Native.expect_compaction(false) if tell
    end
  end

  # A JIT that is switched on while the program runs.
  module JitHook
    def enable(*arguments, **options)
      Native.expect_jit if Native.callable?
      super
    end
  end

  module RactorHook
    def new(*arguments, **options, &block)
      Native.before_ractor if Native.callable?
      super
    end
  end
end

Process.singleton_class.send(:prepend, Spanprof::ForkHook)
[Process.singleton_class, Kernel.singleton_class].each { |place| place.send(:prepend, Spanprof::ExitHook) }
Object.send(:include, Spanprof::ObjectExitHook)
Process.singleton_class.send(:prepend, Spanprof::WarmupHook) if Process.respond_to?(:warmup)
Ractor.singleton_class.send(:prepend, Spanprof::RactorHook) if defined?(Ractor)
if defined?(RubyVM::YJIT)
  Spanprof::Native.expect_jit if RubyVM::YJIT.enabled?
  RubyVM::YJIT.singleton_class.send(:prepend, Spanprof::JitHook) if RubyVM::YJIT.respond_to?(:enable)
end
if GC.respond_to?(:compact)
  GC.singleton_class.send(:prepend, Spanprof::CompactionHook)
  Spanprof::Native.expect_automatic_compaction(GC.auto_compact)
end
