# Runs the rows in turn, each in a process of its own, and prints tables: table.rb ROUNDS EXTENSION_FOLDER

require "open3"
require "rbconfig"
require_relative "profilers"

rounds = Integer(ARGV.fetch(0))
load_paths = ["-I", File.expand_path("../../../runtimes/ruby/lib", __FILE__), "-I", ARGV.fetch(1)]
ruby = [RbConfig.ruby, *load_paths]
here = File.expand_path("..", __FILE__)

run = lambda do |*arguments|
  output, errors, status = Open3.capture3(*ruby, *arguments)
  abort "#{arguments.join(' ')}: #{errors}" unless status.success?
  output
end

def median(values)
  values.sort[values.size / 2]
end

begin
  require "stackprof"
rescue LoadError
  puts "stackprof is not installed (Debian: ruby-stackprof): its rows are left out"
  PROFILERS.delete_if { |name, _| name.start_with?("stackprof") }
end

results = Hash.new { |hash, key| hash[key] = [] }
rounds.times do
  PROFILERS.keys.shuffle.each do |name|
    results[name] << run.call(File.join(here, "overhead.rb"), name).split.map(&:to_f)
  end
end
base = results["nothing"].map(&:first)
puts "Ruby #{RUBY_VERSION}, #{rounds} runs of each, in turn; CPU time, once started, relative to the run without a profiler in the same round"
puts format("%-28s %12s %12s %18s %16s", "", "median", "best/best", "samples a CPU s", "EINTR of 40 polls")
results.each do |name, runs|
  ratios = runs.each_index.map { |i| runs[i][0] / base[i] }
  polls = run.call(File.join(here, "overhead.rb"), name, "polls").split.last
  puts format("%-28s %12.4f %12.4f %18.0f %16s", name, median(ratios), runs.map(&:first).min / base.min,
              runs.sum { |r| r[2] } / runs.sum { |r| r[1] }, polls)
end

puts "", "Nanoseconds of thread CPU time, best of 9"
without = run.call(File.join(here, "calls.rb"), "without")
with = run.call(File.join(here, "calls.rb"))
without.each_line { |line| puts format("%-34s %8.1f", "#{line.split("\t")[0]}, without the gem", line.split("\t")[1].to_f) }
with.each_line { |line| puts format("%-34s %8.1f", *line.split("\t").then { |name, value| [name, value.to_f] }) }
