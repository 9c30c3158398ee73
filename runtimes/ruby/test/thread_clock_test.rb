require_relative "child_program"
require_relative "../ext/spanprof/clock_choice"

# CPU clocks of threads: each of the three C files by itself, and which of them is chosen.
class ThreadClockTest < Minitest::Test
  include ChildProgram

  # A small extension of the file and nothing else.
  PROBE = <<-'C'.freeze
    #include "clock_id.h"
    static VALUE Read(VALUE self, VALUE thread) {
      clockid_t clock;
      struct timespec time;
      (void)self;
      if (!FindThreadClock(thread, &clock) || clock_gettime(clock, &time) != 0) return Qnil;
      return ULL2NUM(time.tv_sec * 1000000000ull + time.tv_nsec);
    }
    static VALUE Source(VALUE self) { (void)self; return rb_str_new_cstr(kThreadClockSource); }
    void Init_clock_probe(void) {
      rb_define_global_function("clock_of", Read, 1);
      rb_define_global_function("clock_source", Source, 0);
    }
  C

  EXTCONF = <<-'RUBY'.freeze
    require "mkmf"
    extension = ARGV.fetch(0)
    require File.join(extension, "clock_choice")
    compiles = lambda do |text, flags|
      File.write("try.c", text)
      headers = RbConfig.expand("-I$(rubyhdrdir) -I$(rubyarchhdrdir)".dup)
      system("#{RbConfig::CONFIG['CC']} #{headers} -I#{extension} #{flags} -c try.c -o try.o", :err => File::NULL)
    end
    choice = ClockChoice.new(extension, compiles)
    File.write(choice.file, File.read(File.join(extension, choice.file)))
    $srcs = ["clock_probe.c", choice.file]
    $CFLAGS << " -I#{extension} #{choice.flags}"
    create_makefile("clock_probe")
  RUBY

  # What a thread's clock says beside what the thread itself reads.
  CHECK = <<-'RUBY'.freeze
    puts clock_source
    own = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) }
    between = ->(thread, before, after) { time = clock_of(thread); time && time >= before && time <= after.call }
    waits = Queue.new
    thread = Thread.new { x = 0; 2_000_000.times { |i| x ^= i }; used = own.call; waits << used; sleep }
    used = waits.pop
    puts between.call(Thread.current, own.call, own)
    # It has done nothing since but begin to sleep.
    puts between.call(thread, used, -> { used + 5_000_000 })
    Process.wait(fork { exit!(between.call(Thread.current, own.call, own) ? 0 : 1) })
    puts $?.success?
    thread.kill.join
    puts clock_of(thread).inspect
  RUBY

  def check(choice)
    in_folder do |folder|
      File.write(File.join(folder, "clock_probe.c"), PROBE)
      File.write(File.join(folder, "extconf.rb"), EXTCONF)
      output, status = Open3.capture2e({"SPANPROF_CPU_CLOCKS" => choice}, RbConfig.ruby, "extconf.rb", EXTENSION, :chdir => folder)
      assert status.success?, output
      output, status = Open3.capture2e("make", :chdir => folder)
      assert status.success?, output
      output, status = Open3.capture2e(*PATIENCE, RbConfig.ruby, "-I", folder, "-rclock_probe", "-e", CHECK)
      assert status.success?, output
      output.split("\n")
    end
  end

  def test_by_the_kernels_id
    assert_equal %w[native_thread_id true true true nil], check("public")
  end

  def test_by_the_pthread_of_the_private_headers
    lines = check("private")
    skip "this Ruby #{RUBY_VERSION} has no private headers, and no gem with them is installed" if lines.first == "none"
    assert_equal %w[pthread_getcpuclockid true true true nil], lines
  end

  def test_not_at_all
    assert_equal ["none", "", "", "false", "nil"], check("none")
  end

  # Called as extconf.rb calls it, with what a compiler would say.
  def choose(wanted, compiles)
    ClockChoice.new(EXTENSION, ->(_text, flags) { compiles && flags.include?("SPANPROF_PRIVATE_HEADER") }, wanted).name
  end

  def test_the_choice
    assert_equal "public", choose(nil, true)
    assert_equal "public", choose("nonsense", true)
    assert_equal "private", choose("private", true)
    assert_equal "none", choose("private", false)
    assert_equal "none", choose("none", true)
  end

  def test_the_choice_is_told_and_used
    output = run_program(<<-'RUBY')
      puts Spanprof.status[:cpu_clocks]
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      time = Spanprof.thread_cpu_time
      puts time >= before && time <= Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      puts Spanprof.thread_cpu_time(Thread.new {}.join).inspect
      begin
        Spanprof.thread_cpu_time(3)
      rescue TypeError => e
        puts e.message
      end
    RUBY
    assert_equal ["native_thread_id", "true", "nil", "3 is not a Thread"], output.split("\n")
  end
end
