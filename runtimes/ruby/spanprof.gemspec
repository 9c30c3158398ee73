# Parses as Ruby 2.1. In spanprof's tree, pack.rb makes a folder of what belongs into the gem and builds it there.

require File.expand_path("../lib/spanprof/version", __FILE__)

Gem::Specification.new do |gem|
  gem.name = "spanprof"
  gem.version = Spanprof::VERSION
  gem.summary = "A profiler whose samples carry the active trace, span and tags"
  gem.description = "Samples CPU and wall time of all threads, Ruby and native frames, and gives each sample the " \
                    "trace, span and tags that were active at that instant, on threads and fibers."
  gem.authors = ["The spanprof authors"]
  gem.license = "Apache-2.0"
  gem.files = Dir.chdir(File.expand_path("..", __FILE__)) do
    Dir.glob("{lib,ext}/**/*").select { |file| File.file?(file) } + Dir.glob("{README.md,LICENSE}")
  end
  gem.extensions = ["ext/spanprof/extconf.rb"]
  gem.require_paths = ["lib"]
  # No required_ruby_version: where the extension cannot work, the gem installs and says so.
end
