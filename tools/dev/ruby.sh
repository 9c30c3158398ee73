# shellcheck shell=bash
# The Ruby gem: its extension and its tests. Sourced by ./dev.

RUBY_BUILD=$ROOT/build/ruby
# What the tests and `ruby -I` find the extension in: spanprof/spanprof_native.so.
RUBY_BUILT=$RUBY_BUILD/lib

part_ruby() {
  need
  build_preset release -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF # The outside reader.
  build_ruby_extension
  SPANPROF_RUBY_BUILT=$RUBY_BUILT SPANPROF_COMMAND=$ROOT/build/release/bin/spanprof \
    record_script ruby runtimes/ruby/test/run.rb
}

# As gem install does it, except that the core's sources are the tree's and warnings are errors. Makefiles of
# mkmf know nothing of headers, so everything is compiled again; ccache makes that a matter of seconds.
build_ruby_extension() (
  mkdir -p "$RUBY_BUILD/objects"
  cd "$RUBY_BUILD/objects" || exit
  SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION=true SPANPROF_WARNINGS_ARE_ERRORS=true \
    ruby "$ROOT/runtimes/ruby/ext/spanprof/extconf.rb"
  make clean
  make -j "$JOBS" CXX="$(command -v ccache || true) g++"
  make install sitearchdir="$RUBY_BUILT" sitelibdir="$RUBY_BUILT"
)

# pack_gem: prints the file. Installing that is what the part ruby_gem tests.
pack_gem() {
  ruby runtimes/ruby/pack.rb "$RUBY_BUILD/gem"
}

# The packed file, installed by RubyGems from outside the tree, without CMake: it takes minutes, as it does for
# users, so it is not in every run.
part_ruby_gem() {
  need
  record_command pack pack_gem
  local home
  home=$(mktemp -d)
  record_command install env GEM_HOME="$home" MAKEFLAGS="-j$JOBS" \
    SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION=true \
    gem install --local --no-document "$RUBY_BUILD"/gem/spanprof-*.gem
  # shellcheck disable=SC2016 # Ruby's.
  (cd "$home" && record_command use env GEM_HOME="$home" ruby -e '
    require "spanprof"
    abort Spanprof.status.inspect unless Spanprof.status[:extension]
    Spanprof.start(cpu: "1ms", file: "profile.folded")
    Spanprof.with_context(span_id: 1) { 3_000_000.times { |i| i.to_s } }
    Spanprof.stop
    abort File.read("profile.folded") unless File.read("profile.folded").include?("Integer#times")')
  rm -rf "$home"
}
