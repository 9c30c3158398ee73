# Programs that use the gem, each in a process of its own: what a crash, a hook or a fork does stays there.

require "minitest/autorun"
require "open3"
require "rbconfig"
require "tmpdir"

module ChildProgram
  ROOT = File.expand_path("../../../..", __FILE__)
  LIB = File.expand_path("../../lib", __FILE__)
  EXTENSION = File.expand_path("../../ext/spanprof", __FILE__)
  # Where ./dev has installed the extension: its folder has spanprof/spanprof_native.so.
  BUILT = ENV["SPANPROF_RUBY_BUILT"] || File.join(ROOT, "build", "ruby", "lib")
  COMMAND = ENV["SPANPROF_COMMAND"] || File.join(ROOT, "build", "release", "bin", "spanprof")

  # What the programs are to preload: AddressSanitizer's library, where the extension is built with it.
  PRELOAD = ENV["SPANPROF_RUBY_PRELOAD"] ? ["env", "LD_PRELOAD=#{ENV['SPANPROF_RUBY_PRELOAD']}"] : []

  # For programs that fork: work whose methods say whose it is.
  BURN = <<-'RUBY'.freeze
    # Of CPU time, however busy the machine is.
    def burn(seconds)
      deadline = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < deadline
    end
    def parents_work(seconds = 0.4) burn(seconds) end
    def childs_work(seconds = 0.4) burn(seconds) end
  RUBY

  def ruby(*arguments)
    [*PRELOAD, RbConfig.ruby, "-W1", "-I", LIB, "-I", BUILT, *arguments]
  end

  # One that hangs is ended, with the children it has made.
  PATIENCE = %w[timeout --kill-after=5 240]

  # Runs the program and returns what it printed. It has to end well.
  def run_program(program, environment: {}, options: ["-rspanprof"])
    output, errors, status = Open3.capture3(environment, *PATIENCE, *ruby(*options, "-e", program))
    assert status.success?, "#{status.inspect}\n#{output}\n#{errors[0, 6000]}"
    output
  end

  def in_folder
    Dir.mktmpdir("spanprof-test") { |folder| yield folder }
  end
end
