#include "profile/profile_testing.h"

#include <array>
#include <random>
#include <sstream>
#include <vector>

#include "profile/names.h"
#include "profile/sample_fold.h"

namespace spanprof::profile {
namespace {

constexpr uint64_t kStartTime = 1'700'000'010'000'000'000;  // ten seconds into a minute

class Maker {
 public:
  Maker(uint64_t seed, const RandomProfileOptions& options)
      : random_(seed), options_(options), profile_(options.max_memory) {}

  Profile Make() {
    MakeHead();
    for (size_t i = 0; i < options_.sample_count; ++i) profile_.AddSample(MakeSample());
    for (uint64_t root = 1; root <= options_.variety; root += 2) {
      profile_.SetEndpoint(root << 40, "GET /" + Name());
    }
    return std::move(profile_);
  }

 private:
  uint64_t Below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  std::string Name() {
    static const std::array<const char*, 12> kPieces = {
        "main", "a b", ";", "::operator()", "<T, U>", "\xC3\xA4\xE2\x82\xAC", "\\",
        "=",    "\n",  "%", "x 12",         "\t",
    };
    std::string name = kPieces[Below(kPieces.size())];
    name += std::to_string(Below(options_.variety));
    if (OneIn(3)) name += kPieces[Below(kPieces.size())];
    return name;
  }

  void MakeHead() {
    profile_.start_time_ns = kStartTime;
    profile_.duration_ns = options_.minutes * kFoldNanoseconds;
    profile_.resource = {{"service.name", Name()}, {"process.pid", "42"}, {"a=b", "c=d"}};
    if (OneIn(2)) profile_.resource.push_back({"spanprof.odd", Name()});
    profile_.attribute_names = {"http.route", "endpoint", "tenant " + Name()};
    profile_.periods[0] = {10'000'000, 10'000'123};
    if (OneIn(2)) profile_.periods[1] = {20'000'000, 20'000'000};
    profile_.AddToCounter("sampler.torn", 1 + Below(1000));
    if (OneIn(2)) profile_.AddToCounter("odd = name", Below(1000));
  }

  StackId MakeStack() {
    StackId stack = kNone;
    for (size_t depth = Below(options_.max_depth + 1); depth > 0; --depth) {
      Frame frame = MakeFrame();
      stack = profile_.AddStack(stack, profile_.AddFrame(frame));
      while (frame.function != kNone && OneIn(4)) {
        frame.inlined = true;
        frame.function = MakeFunction();
        frame.line = static_cast<uint32_t>(Below(100));
        stack = profile_.AddStack(stack, profile_.AddFrame(frame));
      }
    }
    return stack;
  }

  Frame MakeFrame() {
    Frame frame;
    frame.kind = static_cast<FrameKind>(Below(7));
    if (OneIn(2)) {
      const uint64_t start = 0x5555'0000'0000 + (Below(options_.variety) << 24);
      frame.mapping = profile_.AddMapping(
          {.start = start,
           .end = start + 0x10000,
           .file_offset = Below(4) << 12,
           .path = profile_.Intern("/usr/lib/" + Name()),
           .build_id = OneIn(2) ? profile_.Intern("00ff12" + std::to_string(start % 89)) : kNone});
    }
    frame.address = OneIn(8) ? 0 : 0x1000 + Below(options_.variety);
    frame.function = frame.address == 0 || !OneIn(4) ? MakeFunction() : kNone;
    if (frame.function != kNone) {
      frame.line = static_cast<uint32_t>(Below(100));
      if (frame.line != 0) frame.column = static_cast<uint32_t>(Below(3));
    }
    return frame;
  }

  FunctionId MakeFunction() {
    const std::string name = Name();
    return profile_.AddFunction(
        {.name = profile_.Intern(name),
         .system_name = OneIn(2) ? profile_.Intern("_Z" + name) : kNone,
         .file = OneIn(2) ? profile_.Intern("src/" + Name() + ".cc") : kNone,
         .start_line = static_cast<uint32_t>(Below(3))});
  }

  ContextId MakeContext() {
    if (OneIn(4)) return kNone;
    Context context;
    context.trace_id_high = Below(3) << 62;
    context.trace_id_low = Below(3);
    context.span_id = Below(options_.variety) * 0x1234'5678'9ABC'DEF1;
    context.root_span_id = Below(options_.variety) << 40;
    for (unsigned i = 0; i < profile_.attribute_names.size(); ++i) {
      if (OneIn(2)) context.tags[i] = profile_.Intern(Name());
    }
    return profile_.AddContext(context);
  }

  Sample MakeSample() {
    Sample sample;
    sample.time_ns = kStartTime + Below(options_.minutes * kFoldNanoseconds);
    sample.thread = OneIn(6) ? kNone
                             : profile_.AddThread(static_cast<uint32_t>(Below(4)),
                                                  OneIn(4) ? std::string() : Name());
    sample.context = MakeContext();
    sample.stack = MakeStack();
    sample.kind = static_cast<SampleKind>(Below(kSampleKindCount));
    sample.state = static_cast<ThreadState>(Below(5));
    sample.count = 1 + (OneIn(3) ? Below(100) : 0);
    sample.value = OneIn(8) ? 0 : sample.count * 10'000'000 + Below(3);
    if (OneIn(8)) {
      sample.folded = true;
      sample.time_ns = MinuteOf(sample.time_ns);
    }
    return sample;
  }

  std::mt19937_64 random_;
  RandomProfileOptions options_;
  Profile profile_;
};

void DescribeFrame(std::ostream& out, const Profile& profile, FrameId id) {
  const Frame& frame = profile.frames()[id];
  const Mapping& mapping = profile.mappings()[frame.mapping];
  const Function& function = profile.functions()[frame.function];
  out << " <" << NameOf(frame.kind) << (frame.inlined ? " inlined " : " ") << std::hex
      << frame.address << ' ' << mapping.start << '-' << mapping.end << '+' << mapping.file_offset
      << std::dec << '\'' << profile.Text(mapping.path) << '\'' << profile.Text(mapping.build_id)
      << " '" << profile.Text(function.name) << "' '" << profile.Text(function.system_name) << "' '"
      << profile.Text(function.file) << ':' << function.start_line << "' " << frame.line << ':'
      << frame.column << '>';
}

}  // namespace

Profile RandomProfile(uint64_t seed, const RandomProfileOptions& options) {
  return Maker(seed, options).Make();
}

std::string Describe(const Profile& profile, const Sample& sample, const Ignore& ignore) {
  std::ostringstream out;
  if (!ignore.minute) out << (ignore.time ? MinuteOf(sample.time_ns) : sample.time_ns);
  if (!ignore.folded && sample.folded) out << " folded";
  out << ' ' << NameOf(sample.kind) << ' ' << NameOf(sample.state);
  const Thread& thread = profile.threads()[sample.thread];
  out << " thread " << thread.tid << " '" << profile.Text(thread.name) << '\'';
  const Context& context = profile.contexts()[sample.context];
  out << " context " << TraceIdText(context.trace_id_high, context.trace_id_low) << ' '
      << SpanIdText(context.span_id) << ' ' << SpanIdText(context.root_span_id);
  // Sorted by name: after a merge the positions may be others.
  std::map<std::string, std::string_view> tags;
  for (unsigned i = 0; i < kTagCount; ++i) {
    if (context.tags[i] != kNone) tags[TagName(profile, i)] = profile.Text(context.tags[i]);
  }
  for (const auto& [name, value] : tags) out << " '" << name << "'='" << value << '\'';
  out << " endpoint '" << profile.Text(profile.EndpointOf(context.root_span_id)) << "' stack";
  for (const FrameId frame : profile.FramesOf(sample.stack)) DescribeFrame(out, profile, frame);
  return out.str();
}

std::map<std::string, Totals> DescribeSamples(const Profile& profile, const Ignore& ignore) {
  std::map<std::string, Totals> described;
  for (const Sample& sample : profile.samples()) {
    Totals& totals = described[Describe(profile, sample, ignore)];
    totals.count += sample.count;
    totals.value += sample.value;
  }
  return described;
}

std::string DescribeHead(const Profile& profile) {
  std::ostringstream out;
  out << "time " << profile.start_time_ns << " + " << profile.duration_ns << '\n';
  for (const Attribute& a : profile.resource)
    out << "resource " << a.key << " = " << a.value << '\n';
  for (const std::string& name : profile.attribute_names) out << "attribute " << name << '\n';
  for (const Period& p : profile.periods) {
    out << "period " << p.requested_ns << ' ' << p.actual_ns << '\n';
  }
  for (const auto& [root, endpoint] : profile.endpoints()) {
    out << "endpoint " << SpanIdText(root) << ' ' << profile.Text(endpoint) << '\n';
  }
  for (const auto& [name, count] : profile.counters()) {
    out << "counter " << name << ' ' << count << '\n';
  }
  return out.str();
}

Totals TotalsOf(const Profile& profile) {
  Totals totals;
  for (const Sample& sample : profile.samples()) {
    totals.count += sample.count;
    totals.value += sample.value;
  }
  return totals;
}

}  // namespace spanprof::profile
