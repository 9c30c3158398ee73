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
  sorted = values.sort
  (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2
end

def percent(value)
  format("%.2f %%", value * 100)
end

begin
  require "stackprof"
rescue LoadError
  puts "stackprof is not installed (Debian: ruby-stackprof): its rows are left out"
  PROFILERS.delete_if { |name, _| name.start_with?("stackprof") }
end

results = Hash.new { |hash, key| hash[key] = [] }
rounds.times do
  PROFILERS.keys.shuffle.each { |name| results[name] << run.call(File.join(here, "overhead.rb"), name).split.map(&:to_f) }
end

puts "Ruby #{RUBY_VERSION}. CPU time that a profiler adds to the program's, its own threads' included: the median of all turns of #{rounds} " \
     "processes, and the lowest and highest median of one process."
puts
puts "| | adds | samples a CPU second | µs a sample | EINTR of 40 polls |"
puts "|---|---|---|---|---|"
PROFILERS.each_key do |name|
  of_processes = results[name].map { |numbers| median(numbers[0...-1]) }
  rate = median(results[name].map(&:last))
  added = median(results[name].flat_map { |numbers| numbers[0...-1] })
  polls = run.call(File.join(here, "overhead.rb"), name, "polls").strip
  puts format("| %s | %s (%s to %s) | %.0f | %s | %s |", name, percent(added), percent(of_processes.min), percent(of_processes.max), rate,
              rate.zero? ? "" : format("%.1f", added / rate * 1e6), polls)
end

puts "", "Nanoseconds of thread CPU time, best of 9:", "", "| | ns |", "|---|---|"
[["calls.rb", "without"], ["calls.rb"]].each do |script, *arguments|
  run.call(File.join(here, script), *arguments).each_line do |line|
    name, value = line.split("\t")
    puts format("| %s%s | %.1f |", name, arguments.empty? ? "" : ", without the gem", value.to_f)
  end
end
