# Why the extension is not compiled here, if it is not. Parses as Ruby 2.1, needs nothing but Ruby, and must
# not fail: no installation ends because profiling is not possible.

require "rbconfig"

module InstallCheck
  OLDEST_RUBY = [3, 1].freeze

  module_function

  # nil: as far as can be seen before a compiler is tried, it can be.
  def reason(environment = ENV, host = RbConfig::CONFIG, engine = defined?(RUBY_ENGINE) ? RUBY_ENGINE : "ruby",
             version = RUBY_VERSION)
    if enabled?(environment["SPANPROF_NO_EXTENSION"])
      return "SPANPROF_NO_EXTENSION was set when the gem was installed; install it again without"
    end
    return "this is #{engine}: only CRuby's stacks can be read" unless engine == "ruby"
    unless host["host_os"].to_s =~ /linux/
      return "the operating system is #{host['host_os']}: the sampler is for Linux"
    end
    unless host["host_cpu"].to_s =~ /\A(x86_64|aarch64|arm64)\z/
      return "the processor is #{host['host_cpu']}: stacks are walked on x86_64 and aarch64"
    end
    if (version.split(".").first(2).map(&:to_i) <=> OLDEST_RUBY) < 0
      return "this is Ruby #{version}: CRuby #{OLDEST_RUBY.join('.')} or newer is needed"
    end
    nil
  end

  # For packagers, who would rather have an installation that fails.
  def must_succeed?(environment = ENV)
    enabled?(environment["SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION"])
  end

  def enabled?(value)
    %w[true 1 yes on].include?(value.to_s.strip.downcase)
  end
end
