# Compiles the extension, or says why not. Parses as Ruby 2.1. Where it cannot be compiled, it writes a
# Makefile that does nothing but install the reason, and ends well: Spanprof.status tells it.

require File.expand_path("../install_check", __FILE__)
require File.expand_path("../core_sources", __FILE__)
require File.expand_path("../clock_choice", __FILE__)

def leave_out(reason)
  $spanprof_left_out = true
  if InstallCheck.must_succeed?
    warn "spanprof: #{reason}"
    warn "spanprof: SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION is set, so this is an error"
    exit 1
  end
  warn "spanprof: installed without its extension, and will do nothing: #{reason}"
  File.open("missing_extension.rb", "w") do |file|
    file.puts "module Spanprof", "  MISSING_EXTENSION = #{reason.dump}.freeze", "end"
  end
  File.open("Makefile", "w") do |file|
    # Where RubyGems wants it: older ones say so by RbConfig, newer ones to make.
    file.puts "sitearchdir = #{RbConfig::CONFIG['sitearchdir']}", "RUBYARCHDIR = $(sitearchdir)/spanprof"
    file.puts "all clean distclean realclean:", "\t@:"
    file.puts "install:", "\tmkdir -p $(DESTDIR)$(RUBYARCHDIR)",
              "\tcp missing_extension.rb $(DESTDIR)$(RUBYARCHDIR)/"
  end
  exit 0
end

reason = InstallCheck.reason
leave_out(reason) if reason

core = CoreSources.find(File.expand_path("..", __FILE__))
leave_out("the core's sources are not in the package") unless core

begin
  require "mkmf" # Ends the program where Ruby's headers or the compiler are missing.
rescue LoadError, SystemExit, StandardError => e
  leave_out("Ruby's headers are missing, or there is no C compiler (#{e.class}): install ruby-dev and g++")
end

# Everything that mkmf tries may end the program too.
def try(what)
  yield
rescue SystemExit, StandardError => e
  raise if $spanprof_left_out # It has been said why.
  leave_out("#{what} (#{e.class}: #{e.message.to_s[0, 200]})")
end

includes = core.include_folders.map { |folder| "-I" + folder }.join(" ")

try("the C++ compiler does not work: install g++") do
  cxx = MakeMakefile["C++"]
  probe = "#include <concepts>\n#include <span>\n#include <string>\n" \
          "template <std::integral T> T same(T t) { return t; }\n" \
          "int main() { std::string s(\"x\"); return same(0); }\n"
  leave_out("there is no C++20 compiler: install g++ 12 or newer") unless cxx.try_compile(probe, "-std=c++20")
  %w[tl/expected.hpp protozero/pbf_writer.hpp tsl/robin_map.h zlib.h].each do |header|
    next if cxx.try_compile("#include <#{header}>\nint main() { return 0; }\n", "-std=c++20 #{includes}")
    hint = header == "zlib.h" ? ": install zlib1g-dev" : ""
    leave_out("the header #{header} is missing#{hint}")
  end
  # The static library, so that nothing but libc is needed later; the shared one where there is no other.
  $spanprof_zlib = %w[-l:libz.a -lz].find do |library|
    cxx.try_link("#include <zlib.h>\nint main() { return zlibVersion() == 0; }\n", "-std=c++20 -fPIC #{library}")
  end
  leave_out("zlib cannot be linked: install zlib1g-dev") unless $spanprof_zlib
end

# What mkmf includes before everything else is in a private header too, and would be there twice.
def compiles_by_itself?(text, flags)
  verbose, $VERBOSE = $VERBOSE, nil
  common = MakeMakefile::COMMON_HEADERS
  MakeMakefile.const_set(:COMMON_HEADERS, "".freeze)
  try_compile(text, flags)
ensure
  MakeMakefile.const_set(:COMMON_HEADERS, common)
  $VERBOSE = verbose
end

here = File.expand_path("..", __FILE__)
clocks = nil
try("Ruby cannot be asked what it has") do
  # Waits for the VM's lock are reported from 3.2 on, with the thread that waits from 3.3 on.
  have_func("rb_internal_thread_add_event_hook", "ruby/thread.h")
  have_func("rb_internal_thread_specific_key_create", "ruby/thread.h")
  compiles = lambda { |text, flags| compiles_by_itself?(text, "-I#{here} #{flags}") }
  clocks = ClockChoice.new(here, compiles)
end

own = Dir.glob(File.join(here, "*.cc")).map { |file| File.basename(file) }.sort << clocks.file
# In spanprof's own tree the core may be there as archives already. All of one is taken: others may call the core too.
archives, files = core.files.partition { |file| file.end_with?(".a") }
$srcs = own + files.map { |file| File.basename(file) }
$objs = $srcs.map { |file| file.sub(/\.cc?\z/, ".o") }
leave_out("two sources have the same name") if $objs.uniq.size != $objs.size
$VPATH.concat(files.map { |file| File.join(core.root, File.dirname(file)) }.uniq)
$INCFLAGS << " -I#{here} #{includes}"
$CXXFLAGS << " -std=c++20 -O2 -fvisibility=hidden -fvisibility-inlines-hidden -Wall -Wextra" \
             " -DSPANPROF_STARTED_BY_RUNTIME"
$CXXFLAGS << " -g0" unless InstallCheck.enabled?(ENV["SPANPROF_DEBUG"]) # of 49 MB, 45 would be for debuggers
$CXXFLAGS << " -Werror" if InstallCheck.enabled?(ENV["SPANPROF_WARNINGS_ARE_ERRORS"])
$CFLAGS << " -fvisibility=hidden #{clocks.flags}"
$LOCAL_LIBS << " -Wl,--whole-archive #{archives.join(' ')} -Wl,--no-whole-archive #{$spanprof_zlib}"

# What is exported, and that the library stays: handlers and other copies may call into it at any time.
exports = File.readlines(File.expand_path("../exports.txt", __FILE__)).map(&:strip)
exports = exports.reject { |line| line.empty? || line.start_with?("#") }
File.open("exports.map", "w") do |file|
  file.puts "{", "  global:", exports.map { |name| "    #{name};" }, "  local:", "    *;", "};"
end
$DLDFLAGS << " -Wl,--version-script=exports.map -Wl,-z,nodelete -static-libstdc++ -static-libgcc"
# For tests of the extension itself: what it does to memory is checked by AddressSanitizer, which Ruby has to preload.
if InstallCheck.enabled?(ENV["SPANPROF_ADDRESS_SANITIZER"])
  [$CFLAGS, $CXXFLAGS, $DLDFLAGS].each { |flags| flags << " -fsanitize=address" }
  # Not of stacks: an exception of Ruby's leaves frames without a word to the sanitizer.
  $CXXFLAGS << " -fno-omit-frame-pointer -g1 --param asan-stack=0"
end

try("the Makefile cannot be written") { create_makefile("spanprof/spanprof_native") }

# Readers of OTEP 4947 find the variable through its TLS descriptor.
if RbConfig::CONFIG["host_cpu"] == "x86_64"
  File.open("Makefile", "a") { |file| file.puts "", "thread_locals.o: CXXFLAGS += -mtls-dialect=gnu2" }
end
