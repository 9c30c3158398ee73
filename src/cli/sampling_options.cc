#include "cli/sampling_options.h"

#include <cerrno>
#include <chrono>

#include "base/printable_text.h"

namespace spanprof::cli {
namespace {

// As in the option string, named as on the command line.
Result<Options> ParseOne(const std::string& key, const std::string& value) {
  Result<Options> parsed = ParseOptions(key + "=" + value);
  if (!parsed) parsed.error().message = "--" + parsed.error().message;
  return parsed;
}

}  // namespace

void AddSamplingOptions(CLI::App& command, SamplingOptions& sampling) {
  command
      .add_option("--cpu", sampling.cpu,
                  "Sample each thread after this much CPU time (default 10ms)")
      ->type_name("DURATION");
  command
      .add_option("-r,--rate", sampling.rate,
                  "The same as so many samples a second of CPU time: 99 is --cpu 10101010ns")
      ->check(CLI::Range(1, 10000))
      ->type_name("HZ");
  command
      .add_option("--wall", sampling.wall,
                  "Sample threads at this interval too, whether they run or wait: 20ms")
      ->type_name("DURATION");
  command.add_option("--service", sampling.service, "The service's name in the profile")
      ->type_name("NAME");
  command
      .add_option("--options", sampling.more,
                  "More of the profiler's options: threads=32,ctxstorage=otel,attributes=tenant")
      ->type_name("WORDS");
  command.add_flag("--no-children", sampling.no_children,
                   "Only the command itself, not the processes that it starts");
  command.add_option("COMMAND", sampling.command, "The command to run, with its arguments")
      ->required()
      ->type_name("COMMAND");
  command.positionals_at_end();
}

Result<Options> ToOptions(const SamplingOptions& sampling) {
  Result<Options> options = ParseOptions(sampling.more);
  if (!options) {
    options.error().message = "--options: " + options.error().message;
    return options;
  }
  if (options->file || options->to || options->every || options->format) {
    return Fail(EINVAL, "--options " + Quoted(sampling.more) + " says where the profile goes",
                "leave that to -o; or set SPANPROF and start the program without spanprof record");
  }
  if (!sampling.cpu.empty() && sampling.rate != 0) {
    return Fail(EINVAL, "--cpu and --rate were both given", "leave one of them out");
  }
  if (sampling.rate != 0) options->cpu = std::chrono::nanoseconds(1'000'000'000 / sampling.rate);
  if (!sampling.cpu.empty()) {
    const Result<Options> parsed = ParseOne("cpu", sampling.cpu);
    if (!parsed) return parsed;
    options->cpu = parsed->cpu;
  }
  if (!sampling.wall.empty()) {
    const Result<Options> parsed = ParseOne("wall", sampling.wall);
    if (!parsed) return parsed;
    options->wall = parsed->wall;
  }
  if (!sampling.service.empty()) options->service = sampling.service;
  // --wall comes on top of it; wall= of --options alone is wall time alone.
  if (!options->cpu && (!options->wall || !sampling.wall.empty())) {
    options->cpu = std::chrono::milliseconds(10);
  }
  return options;
}

}  // namespace spanprof::cli
