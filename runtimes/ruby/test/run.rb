# All tests, with a last line that ./dev can count by: "N passed, N failed, N skipped".

require "minitest/autorun"

class CountingReporter < Minitest::AbstractReporter
  def initialize
    super
    @passed = @failed = 0
    @skipped = []
    @names = []
  end

  def record(result)
    if result.skipped?
      @skipped << "#{result.klass}##{result.name}: #{result.failure.message}"
    elsif result.passed?
      @passed += 1
    else
      @failed += 1
      @names << "#{result.klass}##{result.name}"
    end
  end

  def report
    puts
    @names.each { |name| puts "FAILED #{name}" }
    @skipped.each { |reason| puts "skipped #{reason}" }
    puts "#{@passed} passed, #{@failed} failed, #{@skipped.size} skipped"
  end
end

module Minitest
  def self.plugin_counting_init(_options)
    reporter << CountingReporter.new
  end
end
Minitest.extensions << "counting"

Dir.glob(File.join(__dir__, "*_test.rb")).sort.each { |file| require file }
