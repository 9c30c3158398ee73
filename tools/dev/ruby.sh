# shellcheck shell=bash
# The Ruby gem: its extension and its tests. Sourced by ./dev.

RUBY_BUILD=$ROOT/build/ruby
# What the tests and `ruby -I` find the extension in: spanprof/spanprof_native.so.
RUBY_BUILT=$RUBY_BUILD/lib

# A newer Ruby than Debian 12's, in a system of its own. The packed gem is installed there as its users do it.
NEWER_RUBY_SUITE=trixie # It has 3.3.
NEWER_RUBY_PACKAGES=ruby,ruby-dev,ruby-minitest,ruby-whitequark-parser,g++,make,zlib1g-dev,ccache,puma
NEWER_RUBY_HOME=$CACHE/ruby-$NEWER_RUBY_SUITE
NEWER_RUBY_SYSTEM=$NEWER_RUBY_HOME/system

part_ruby() {
  need
  ensure_sets ruby_server || record skipped 0 "puma: $INSTALL_PROBLEM"
  build_preset release -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF # The outside reader.
  with_core_archives build_ruby_extension
  RUBY_GEM=$(pack_gem)
  record skipped 1 "the same in the Ruby of Debian $NEWER_RUBY_SUITE: run by ./dev test ruby_newer and ./dev soak"
  run_ruby_tests
}

# The same tests, where the packed gem was installed. Making that system and compiling there take minutes, so it
# is not in every run.
part_ruby_newer() {
  need
  ensure_newer_ruby || skip_part "the newer Ruby of Debian $NEWER_RUBY_SUITE: $INSTALL_PROBLEM"
  RUBY_GEM=$(pack_gem)
  echo "-- $(in_newer_ruby ruby --version)"
  install_in_newer_ruby env CXX="ccache g++" CC="ccache gcc" CCACHE_DIR=/ccache
  record_script in_newer_ruby env SPANPROF_GEM=/spanprof.gem ruby "$NEWER_RUBY_TESTS/run.rb"
}

# run_ruby_tests [ARGUMENT...]: with the extension in RUBY_BUILT, the gem in RUBY_GEM and minitest's arguments.
run_ruby_tests() {
  SPANPROF_RUBY_BUILT=$RUBY_BUILT SPANPROF_COMMAND=$ROOT/build/release/bin/spanprof SPANPROF_GEM=$RUBY_GEM \
    record_script ruby runtimes/ruby/test/run.rb "$@"
}

ensure_newer_ruby() {
  ensure_debian_system "$NEWER_RUBY_HOME" "$NEWER_RUBY_SUITE" "$NEWER_RUBY_PACKAGES"
}

in_newer_ruby() {
  in_debian_system_with_network "$NEWER_RUBY_HOME" GEM_HOME=/gems \
    SPANPROF_RUBY_STRESS_SECONDS="${SPANPROF_RUBY_STRESS_SECONDS:-4}" "$@"
}

# install_in_newer_ruby [COMMAND...]: the packed gem, by way of a command such as env, and the tests beside what was
# installed. Nothing else of this tree is there. Sets NEWER_RUBY_TESTS, the folder as that system sees it.
NEWER_RUBY_TESTS=
install_in_newer_ruby() {
  local installed
  as_root rm -rf "$NEWER_RUBY_SYSTEM/gems"
  as_root cp "$RUBY_GEM" "$NEWER_RUBY_SYSTEM/spanprof.gem"
  in_newer_ruby "$@" env MAKEFLAGS="-j$JOBS" SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION=true \
    gem install --local --no-document /spanprof.gem
  installed=$(echo "$NEWER_RUBY_SYSTEM"/gems/gems/spanprof-*)
  as_root cp -r runtimes/ruby/test "$installed/test"
  NEWER_RUBY_TESTS=${installed#"$NEWER_RUBY_SYSTEM"}/test
}

# As gem install does it, except that the core is the tree's and warnings are errors. Makefiles of mkmf know nothing
# of headers, so everything is compiled again; ccache makes that a matter of seconds.
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

# What a program does with a gem that was installed.
# shellcheck disable=SC2016 # Ruby's.
USE_OF_GEM='
  require "spanprof"
  abort Spanprof.status.inspect unless Spanprof.status[:extension]
  Spanprof.start(cpu: "1ms", file: "/tmp/spanprof-gem-#{$$}.folded")
  Spanprof.with_context(span_id: 1) { 3_000_000.times { |i| i.to_s } }
  Spanprof.stop
  text = File.read("/tmp/spanprof-gem-#{$$}.folded")
  File.delete("/tmp/spanprof-gem-#{$$}.folded")
  abort text unless text.include?("Integer#times")'

# The packed file, installed by RubyGems from outside the tree, without CMake: it takes minutes, as it does for
# users, so it is not in every run. Here, in a system that has nothing of this tree and only g++, and in JRuby.
part_ruby_gem() {
  need
  RUBY_GEM=$(pack_gem)
  local home
  home=$(mktemp -d)
  record_command install env GEM_HOME="$home" MAKEFLAGS="-j$JOBS" \
    SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION=true gem install --local --no-document "$RUBY_GEM"
  (cd "$home" && record_command use env GEM_HOME="$home" ruby -e "$USE_OF_GEM")
  rm -rf "$home"
  if ensure_newer_ruby; then
    record_command install_elsewhere install_in_newer_ruby
    record_command use_elsewhere in_newer_ruby ruby -e "$USE_OF_GEM"
  else
    record skipped 2 "the newer Ruby of Debian $NEWER_RUBY_SUITE: $INSTALL_PROBLEM"
  fi
  ensure_sets jruby || record skipped 0 "jruby: $INSTALL_PROBLEM"
  SPANPROF_RUBY_SLOW=1 run_ruby_tests --name=/^test_jruby/
}

# The extension's own use of memory, and its core's inside Ruby. Ruby is not instrumented, and keeps what it has
# allocated to the end: leaks are looked for by the tests themselves. Ruby's threads have alternate stacks of their
# own, which the sanitizer would free.
part_ruby_asan() {
  need
  RUBY_BUILD=$ROOT/build/ruby-asan
  RUBY_BUILT=$RUBY_BUILD/lib
  RUBY_GEM=
  SPANPROF_ADDRESS_SANITIZER=true build_ruby_extension
  SPANPROF_RUBY_PRELOAD=$(g++ -print-file-name=libasan.so) \
    ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:abort_on_error=1:use_sigaltstack=0 \
    run_ruby_tests --exclude='/leak|install|puma|ruby_2_1|does_not_where/'
}
