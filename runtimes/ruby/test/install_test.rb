require_relative "child_program"
require_relative "../ext/spanprof/install_check"
require "fileutils"

# No installation fails because profiling is not possible, and the gem says why it does nothing.
class InstallTest < Minitest::Test
  include ChildProgram

  LINUX = {"host_os" => "linux-gnu", "host_cpu" => "x86_64"}.freeze

  def test_what_is_known_before_a_compiler_is_tried
    assert_nil InstallCheck.reason({}, LINUX, "ruby", "3.1.2")
    assert_nil InstallCheck.reason({}, LINUX.merge("host_cpu" => "aarch64"), "ruby", "4.0.0")
    {
      "SPANPROF_NO_EXTENSION" => [{"SPANPROF_NO_EXTENSION" => "true"}, LINUX, "ruby", "3.1.2"],
      "jruby" => [{}, LINUX, "jruby", "3.1.2"],
      "truffleruby" => [{}, LINUX, "truffleruby", "3.1.2"],
      "darwin23" => [{}, LINUX.merge("host_os" => "darwin23"), "ruby", "3.1.2"],
      "riscv64" => [{}, LINUX.merge("host_cpu" => "riscv64"), "ruby", "3.1.2"],
      "Ruby 2.1.10" => [{}, LINUX, "ruby", "2.1.10"],
      "Ruby 3.0.4" => [{}, LINUX, "ruby", "3.0.4"]
    }.each do |expected, arguments|
      assert_includes InstallCheck.reason(*arguments).to_s, expected
    end
  end

  # Runs extconf.rb and make, as RubyGems does, and returns what a program says that uses the gem.
  def install(environment)
    in_folder do |folder|
      output, status = Open3.capture2e(environment, RbConfig.ruby, File.join(EXTENSION, "extconf.rb"), :chdir => folder)
      assert status.success?, output
      installed = File.join(folder, "installed")
      ["clean", "all", "install"].each do |target|
        output, status = Open3.capture2e(environment, "make", "sitearchdir=#{installed}", "sitelibdir=#{installed}",
                                         "DESTDIR=", target, :chdir => folder)
        assert status.success?, output
      end
      program = <<-'RUBY'
        require "spanprof"
        Spanprof.init(ctxstorage: "otel")
        Spanprof.start(cpu: "1ms", file: "/nonexistent/profile")
        puts Spanprof.with_context(span_id: 1, tags: {"a" => "b"}) { Spanprof.set(span_id: 2); 42 }
        Spanprof.clear
        Spanprof.set_endpoint(1, "x")
        Spanprof.dump("x")
        Spanprof.stop
        puts Spanprof.status[:extension], Spanprof.status[:reason]
      RUBY
      output, status = Open3.capture2e(RbConfig.ruby, "-W0", "-I", LIB, "-I", installed, "-e", program)
      assert status.success?, output
      output
    end
  end

  def test_it_can_be_left_out
    assert_match(/42\nfalse\nSPANPROF_NO_EXTENSION was set/, install("SPANPROF_NO_EXTENSION" => "true"))
  end

  def find_program(name)
    ENV["PATH"].split(":").map { |folder| File.join(folder, name) }.find { |file| File.executable?(file) }
  end

  # A PATH with nothing but what the Makefile needs.
  def test_there_need_be_no_compiler
    in_folder do |tools|
      %w[make mkdir cp sh].each { |tool| FileUtils.ln_s(find_program(tool), File.join(tools, tool)) }
      assert_match(/42\nfalse\n.*(compiler|headers)/, install("PATH" => tools))
    end
  end

  # One that knows C++17 only.
  def test_an_old_compiler_is_a_reason
    in_folder do |tools|
      name = RbConfig::CONFIG["CXX"].split.first
      old = File.join(tools, File.basename(name))
      File.write(old, "#!/bin/sh\ncase \"$*\" in *c++20*) exit 1;; esac\nexec #{find_program(name)} \"$@\"\n")
      File.chmod(0o755, old)
      assert_match(/42\nfalse\nthere is no C\+\+20 compiler/, install("PATH" => "#{tools}:#{ENV['PATH']}"))
    end
  end

  def test_packagers_can_have_it_fail
    in_folder do |folder|
      environment = {"SPANPROF_NO_EXTENSION" => "true", "SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION" => "true"}
      output, status = Open3.capture2e(environment, RbConfig.ruby, File.join(EXTENSION, "extconf.rb"), :chdir => folder)
      refute status.success?
      assert_includes output, "SPANPROF_NO_EXTENSION was set"
      refute File.exist?(File.join(folder, "Makefile"))
    end
  end

  # What is read before it is known that this is a Ruby we can work in.
  def test_files_parse_as_ruby_2_1
    begin
      require "parser/ruby21"
    rescue LoadError
      skip "the parser of Ruby 2.1 is not installed (Debian: ruby-whitequark-parser)"
    end
    files = Dir.glob(File.join(LIB, "**", "*.rb")) + Dir.glob(File.join(EXTENSION, "*.rb"))
    assert_operator files.size, :>, 5
    files.each { |file| assert Parser::Ruby21.parse_file(file), file }
  end
end
