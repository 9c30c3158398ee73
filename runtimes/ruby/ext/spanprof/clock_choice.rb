# Which of the C files finds the CPU clocks of threads (clock_id.h). SPANPROF_CPU_CLOCKS asks for one by name. For
# extconf.rb, which has loaded mkmf. Parses as Ruby 2.1.

require "rbconfig"

class ClockChoice
  # What each needs is asked in this order; the last needs nothing.
  FILES = {
    "public" => "clock_id_from_tid.c",
    "private" => "clock_id_from_pthread.c",
    "none" => "clock_id_noop.c"
  }.freeze
  # Gems that carry Ruby's private headers: a folder for each version.
  HEADER_GEMS = {
    "datadog-ruby_core_source" => "lib/datadog/ruby_core_source",
    "debase-ruby_core_source" => "lib/debase/ruby_core_source"
  }.freeze

  attr_reader :name, :flags

  # compiles: called with a C file's text and flags, says whether they compile.
  def initialize(folder, compiles, wanted = ENV["SPANPROF_CPU_CLOCKS"])
    @folder = folder
    @compiles = compiles
    @flags = ""
    wanted = wanted.to_s.strip
    names = FILES.key?(wanted) ? [wanted, "none"] : FILES.keys
    @name = names.find { |name| possible?(name) }
  end

  def file
    FILES.fetch(name)
  end

  private

  def possible?(name)
    case name
    when "public" then Thread.method_defined?(:native_thread_id)
    when "private" then !(@flags = private_header_flags.to_s).empty?
    else true
    end
  end

  # nil: there are no private headers that work.
  def private_header_flags
    text = File.read(File.join(@folder, FILES.fetch("private")))
    candidates.find { |flags| @compiles.call(text, flags) }
  end

  def candidates
    header = "rb_mjit_min_header-#{RUBY_VERSION}.h"
    of_gems = HEADER_GEMS.map { |gem, headers| headers_of(gem, headers) }.compact
    [with_header(header)] + of_gems.map { |folder| with_header("vm_core.h") + " -I#{folder}" }
  end

  def with_header(name)
    "-DSPANPROF_PRIVATE_HEADER='\"#{name}\"'"
  end

  # Of this very version: the structures of another one may be different.
  def headers_of(gem, headers)
    folder = File.join(Gem::Specification.find_by_name(gem).gem_dir, headers)
    Dir.glob(File.join(folder, "ruby-#{RUBY_VERSION}-*")).find { |path| File.directory?(path) }
  rescue LoadError
    nil
  end
end
