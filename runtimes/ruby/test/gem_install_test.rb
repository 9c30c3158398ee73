require_relative "child_program"

# The packed file, installed by RubyGems where the extension cannot be: it loads, does nothing and says why.
class GemInstallTest < Minitest::Test
  include ChildProgram

  PROGRAM = <<-'RUBY'.freeze
    require "spanprof"
    Spanprof.start(:cpu => "1ms")
    puts Spanprof.with_context(:span_id => 1) { 42 }
    Spanprof.stop
    puts Spanprof.status[:extension], Spanprof.status[:reason]
  RUBY

  # What the program prints when the gem was installed with these variables. `gem` and `ruby` are commands.
  def install_and_use(gem, ruby, environment)
    file = ENV["SPANPROF_GEM"].to_s
    skip "SPANPROF_GEM does not name a packed gem" if file.empty?
    in_folder do |home|
      environment = environment.merge("GEM_HOME" => home)
      output, status = Open3.capture2e(environment, *PATIENCE, *gem, "install", "--local", "--no-document", file)
      assert status.success?, output
      # Only there: the Makefile is told where by one of two ways.
      refute_empty Dir.glob(File.join(home, "extensions", "**", "missing_extension.rb")), output
      output, errors, status = Open3.capture3(environment, *PATIENCE, *ruby, "-e", PROGRAM)
      assert status.success?, errors
      output.split("\n")
    end
  end

  def test_without_the_extension
    lines = install_and_use([RbConfig.ruby, "-S", "gem"], [RbConfig.ruby], "SPANPROF_NO_EXTENSION" => "true")
    assert_equal ["42", "false", "SPANPROF_NO_EXTENSION was set when the gem was installed; install it again without"], lines
  end

  def test_jruby_installs_and_says_no
    skip "slow: run by ./dev test ruby_gem" unless ENV["SPANPROF_RUBY_SLOW"]
    skip "there is no jruby (Debian: jruby)" unless system("jruby", "--version", :out => File::NULL, :err => File::NULL)
    lines = install_and_use(%w[jruby --dev -S gem], %w[jruby --dev], {})
    assert_equal ["42", "false", "this is jruby: only CRuby's stacks can be read"], lines
  end
end
