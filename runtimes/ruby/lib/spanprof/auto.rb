# ruby -rspanprof/auto app.rb: records the whole program, as the variable SPANPROF says. No profiler is a reason
# for a program not to run.

require "spanprof"

begin
  options = ENV["SPANPROF"].to_s
  options = "cpu=10ms,file=spanprof-%p.pb.gz" if options.strip.empty?
  Spanprof.start_text(options)
rescue Spanprof::Error, ArgumentError => e
  warn "spanprof: nothing is recorded: #{e.message}"
end
