#!/usr/bin/env ruby
# Packs the gem: pack.rb OUTPUT_FOLDER. It carries the core's sources and the headers that they need, so that it
# compiles with a C++ compiler and zlib alone, without CMake and this tree.

require "fileutils"
require "rubygems/package"
require "tmpdir"
require_relative "ext/spanprof/core_sources"

class GemPacker
  HERE = __dir__
  ROOT = File.expand_path("../..", HERE)

  def initialize(folder)
    @folder = folder
  end

  def pack(output)
    %w[lib ext spanprof.gemspec README.md].each { |name| FileUtils.cp_r(File.join(HERE, name), @folder) }
    FileUtils.cp(File.join(ROOT, "LICENSE"), @folder)
    copy_core
    Dir.chdir(@folder) do
      # RubyGems would tell at length; what is printed is the file's name.
      file = Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) do
        Gem::Package.build(Gem::Specification.load("spanprof.gemspec"))
      end
      FileUtils.mkdir_p(output)
      FileUtils.mv(file, output)
      File.join(output, file)
    end
  end

  private

  def copy_core
    core = File.join(@folder, "ext", "spanprof", "core")
    abort "the core could not be packed" unless system(File.join(ROOT, CoreSources::LISTING), "--pack", core)
  end
end

if $PROGRAM_NAME == __FILE__
  output = ARGV.fetch(0) { abort "usage: pack.rb OUTPUT_FOLDER" }
  Dir.mktmpdir("spanprof-gem") { |folder| puts GemPacker.new(folder).pack(File.expand_path(output)) }
end
