#!/usr/bin/env ruby
# Packs the gem: pack.rb OUTPUT_FOLDER. It carries the core's sources and the headers that they need, so that it
# compiles with a C++ compiler and zlib alone, without CMake and this tree.

require "fileutils"
require "rubygems/package"
require "tmpdir"
require_relative "ext/spanprof/core_sources"

class GemPacker
  HERE = __dir__
  # Header-only libraries: the folder or file below an include folder, and the Debian package that says whose it is.
  THIRD_PARTY = {
    "protozero" => "libprotozero-dev",
    "tl" => "libexpected-dev",
    "tsl" => "robin-map-dev"
  }.freeze
  INCLUDE_FOLDERS = ["/usr/include", "/usr/local/include"].freeze

  def initialize(folder)
    @folder = folder
    @core = CoreSources.new(File.expand_path("../..", HERE))
  end

  def pack(output)
    %w[lib ext spanprof.gemspec README.md].each { |name| FileUtils.cp_r(File.join(HERE, name), @folder) }
    FileUtils.cp(File.join(@core.root, "LICENSE"), @folder)
    copy_core
    THIRD_PARTY.each { |name, package| copy_third_party(name, package) }
    Dir.chdir(@folder) do
      file = Gem::Package.build(Gem::Specification.load("spanprof.gemspec"))
      FileUtils.mkdir_p(output)
      FileUtils.mv(file, output)
      File.join(output, file)
    end
  end

  private

  def core_folder
    File.join(@folder, "ext", "spanprof", "core")
  end

  def copy(file)
    target = File.join(core_folder, file)
    FileUtils.mkdir_p(File.dirname(target))
    FileUtils.cp(File.join(@core.root, file), target)
  end

  def copy_core
    files = @core.files
    files.each { |file| copy(file) }
    folders = files.map { |file| File.dirname(file) }.uniq + ["include"]
    headers = Dir.chdir(@core.root) { Dir.glob(folders.map { |folder| "#{folder}/**/*.{h,hpp,inc}" }) }
    headers.reject { |file| file =~ /_(fixture|testing|workloads|self_sampler)\.h\z/ }.each { |file| copy(file) }
    File.write(File.join(core_folder, CoreSources::LIST), files.join("\n") + "\n")
  end

  def copy_third_party(name, package)
    found = INCLUDE_FOLDERS.map { |folder| File.join(folder, name) }.find { |path| File.exist?(path) }
    abort "the headers #{name}/ are missing: install #{package}" unless found
    target = File.join(core_folder, "third_party", name)
    FileUtils.mkdir_p(File.dirname(target))
    FileUtils.cp_r(found, target)
    licence = File.join("/usr/share/doc", package, "copyright")
    FileUtils.cp(licence, File.join(target, "COPYRIGHT")) if File.exist?(licence)
  end
end

if $PROGRAM_NAME == __FILE__
  output = ARGV.fetch(0) { abort "usage: pack.rb OUTPUT_FOLDER" }
  Dir.mktmpdir("spanprof-gem") { |folder| puts GemPacker.new(folder).pack(File.expand_path(output)) }
end
