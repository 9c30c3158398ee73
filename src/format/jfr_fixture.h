#pragma once

// Profiles for the tests of JFR, and what two profiles have to agree on to be the same.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profile/names.h"
#include "profile/profile.h"

namespace spanprof::format {

// Native and Java frames, two spans of one trace, tags, each kind of sample, and every fact.
inline profile::Profile MakeSmallProfile() {
  using namespace profile;  // NOLINT(google-build-using-namespace)
  Profile p;
  p.start_time_ns = 1'790'000'100'000'000'000;
  p.duration_ns = 10'000'000'000;
  p.resource = {{"service.name", "shop"}, {"process.pid", "4711"}};
  p.attribute_names = {"http.route", "tenant"};
  p.periods[0] = {.requested_ns = 10'000'000, .actual_ns = 10'000'000};
  p.periods[1] = {.requested_ns = 10'000'000, .actual_ns = 11'000'000};
  p.AddToCounter("samples.dropped", 3);
  p.AddToCounter("context.torn", 1);

  const MappingId libc =
      p.AddMapping({.start = 0x7f0000000000,
                    .end = 0x7f0000200000,
                    .file_offset = 0x26000,
                    .path = p.Intern("/usr/lib/x86_64-linux-gnu/libc.so.6"),
                    .build_id = p.Intern("8e9fd827446c24067541ac5390e6f527fb5947bb")});
  const MappingId shop =
      p.AddMapping({.start = 0x400000, .end = 0x500000, .path = p.Intern("/opt/shop")});
  const FunctionId main =
      p.AddFunction({.name = p.Intern("main"), .file = p.Intern("main.cc"), .start_line = 10});
  const FunctionId handle = p.AddFunction({.name = p.Intern("shop::Handle(Request const&)"),
                                           .system_name = p.Intern("_ZN4shop6HandleERK7Request"),
                                           .file = p.Intern("handler.cc"),
                                           .start_line = 40});
  const FunctionId malloc = p.AddFunction({.name = p.Intern("malloc")});
  const FunctionId java =
      p.AddFunction({.name = p.Intern("io.shop.Cart.total(int)"), .file = p.Intern("Cart.java")});
  const StackId outer = p.AddStack(
      kNone, p.AddFrame({.mapping = shop, .address = 0x1234, .function = main, .line = 14}));
  const StackId inner = p.AddStack(
      p.AddStack(
          outer,
          p.AddFrame(
              {.mapping = shop, .address = 0x2345, .function = handle, .line = 44, .column = 7})),
      p.AddFrame({.inlined = true, .mapping = libc, .address = 0x9f000, .function = malloc}));
  const StackId unknown = p.AddStack(outer, p.AddFrame({.mapping = libc, .address = 0xabcd}));
  const StackId cart = p.AddStack(
      p.AddStack(kNone,
                 p.AddFrame({.kind = FrameKind::kMarker,
                             .function = p.AddFunction({.name = p.Intern("[stack truncated]")})})),
      p.AddFrame({.kind = FrameKind::kJava, .function = java, .line = 99}));

  Context context;
  context.trace_id_high = 0x0af7651916cd43dd;
  context.trace_id_low = 0x8448eb211c80319c;
  context.span_id = 0xb7ad6b7169203331;
  context.root_span_id = 77;
  context.tags[0] = p.Intern("/cart");
  context.tags[1] = p.Intern("acme");
  const ContextId first = p.AddContext(context);
  context.span_id = 78;
  context.tags[1] = kNone;
  const ContextId second = p.AddContext(context);
  p.SetEndpoint(77, "GET /cart");
  p.SetEndpoint(1234, "GET /nobody-sampled");

  const ThreadId worker = p.AddThread(101, "worker-1");
  const ThreadId other = p.AddThread(102, "worker-2");
  const uint64_t start = p.start_time_ns;
  p.AddSample({.time_ns = start + 10'000'000,
               .thread = worker,
               .context = first,
               .stack = inner,
               .kind = SampleKind::kCpu,
               .state = ThreadState::kRunning,
               .count = 1,
               .value = 10'000'000});
  p.AddSample({.time_ns = start + 20'000'001,
               .thread = worker,
               .context = second,
               .stack = unknown,
               .kind = SampleKind::kCpu,
               .count = 3,
               .value = 30'000'000});
  p.AddSample({.time_ns = start + 30'000'000,
               .thread = other,
               .stack = cart,
               .kind = SampleKind::kWall,
               .state = ThreadState::kSleeping,
               .count = 2,
               .value = 22'000'000});
  p.AddSample({.time_ns = start - 5'000'000'000,
               .context = first,
               .stack = inner,
               .kind = SampleKind::kWall,
               .state = ThreadState::kBlocked,
               .folded = true,
               .count = 40,
               .value = 440'000'000});
  p.AddSample({.time_ns = start + 40'000'000,
               .thread = other,
               .context = second,
               .stack = outer,
               .kind = SampleKind::kAllocation,
               .count = 2,
               .value = 65'536});
  p.AddSample({.time_ns = start + 50'000'000,
               .thread = worker,
               .context = first,
               .kind = SampleKind::kLock,
               .state = ThreadState::kWaiting,
               .count = 1,
               .value = 1'234'567});
  return p;
}

struct LargeProfileShape {
  unsigned samples = 10'000;
  unsigned threads = 16;
  unsigned stacks = 500;
  unsigned samples_per_span = 4;
  uint64_t period_ns = 10'000'000;
  uint64_t start_time_ns = 1'790'000'000'000'000'000;  // September 2026
  uint64_t duration_ns = 60'000'000'000;
};

// A minute of a busy service: stacks of 12 to 40 frames, some hot, and a new span every few
// samples.
inline profile::Profile MakeLargeProfile(const LargeProfileShape& shape = {}) {
  using namespace profile;  // NOLINT(google-build-using-namespace)
  Profile p(size_t{1} << 30);
  p.start_time_ns = shape.start_time_ns;
  p.duration_ns = shape.duration_ns;
  p.attribute_names = {"http.route", "tenant"};
  p.periods[0] = {.requested_ns = shape.period_ns, .actual_ns = shape.period_ns};
  p.periods[1] = p.periods[0];
  uint64_t random = 12345;
  const auto below = [&random](uint64_t bound) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % bound;
  };
  const MappingId binary =
      p.AddMapping({.start = 0x400000, .end = 0x900000, .path = p.Intern("/opt/shop")});
  std::vector<StackId> stacks;
  for (unsigned i = 0; i < shape.stacks; ++i) {
    StackId stack = kNone;
    for (uint64_t depth = 12 + below(28); depth > 0; --depth) {
      const uint64_t number = depth > 8 ? depth : below(2000);
      const FunctionId function =
          p.AddFunction({.name = p.Intern("shop::Function" + std::to_string(number))});
      stack = p.AddStack(stack, p.AddFrame({.mapping = binary,
                                            .address = number * 256 + below(4),
                                            .function = function,
                                            .line = static_cast<uint32_t>(10 + number % 300)}));
    }
    stacks.push_back(stack);
  }
  std::vector<ThreadId> threads;
  for (unsigned i = 0; i < shape.threads; ++i)
    threads.push_back(p.AddThread(1000 + i, "worker-" + std::to_string(i)));
  ContextId context = kNone;
  for (unsigned i = 0; i < shape.samples; ++i) {
    if (i % shape.samples_per_span == 0) {
      const uint64_t root = 1 + (below(UINT32_MAX) << 31 | below(UINT32_MAX));
      Context next{.trace_id_high = root * 31,
                   .trace_id_low = root * 17,
                   .span_id = root + 1,
                   .root_span_id = root};
      next.tags[0] = p.Intern("/route/" + std::to_string(below(20)));
      next.tags[1] = p.Intern("tenant-" + std::to_string(below(100)));
      p.SetEndpoint(root, "GET /route/" + std::to_string(below(20)));
      context = p.AddContext(next);
    }
    const uint64_t count = below(20) == 0 ? 1 + below(4) : 1;
    p.AddSample({.time_ns = p.start_time_ns + shape.duration_ns / shape.samples * i + below(1000),
                 .thread = threads[below(threads.size())],
                 .context = below(10) == 0 ? kNone : context,
                 .stack = stacks[below(2) == 0 ? below(std::max<size_t>(stacks.size() / 20, 1))
                                               : below(stacks.size())],
                 .kind = below(3) == 0 ? SampleKind::kWall : SampleKind::kCpu,
                 .state = ThreadState::kRunning,
                 .count = count,
                 .value = count * shape.period_ns});
  }
  return p;
}

// Everything that a profile says, without the numbers that say it.
inline std::string Describe(const profile::Profile& p, profile::FrameId id) {
  const profile::Frame& frame = p.frames()[id];
  const profile::Function& function = p.functions()[frame.function];
  const profile::Mapping& mapping = p.mappings()[frame.mapping];
  std::string text(NameOf(frame.kind));
  for (const profile::StringId part :
       {function.name, function.system_name, function.file, mapping.path, mapping.build_id}) {
    text += '|';
    text += p.Text(part);
  }
  for (const uint64_t part :
       {uint64_t{frame.inlined}, frame.address, uint64_t{frame.line}, uint64_t{frame.column},
        uint64_t{function.start_line}, mapping.start, mapping.end, mapping.file_offset}) {
    text += '|' + std::to_string(part);
  }
  return text;
}

inline std::string Describe(const profile::Profile& p, const profile::Sample& sample) {
  const profile::Context& context = p.contexts()[sample.context];
  const profile::Thread& thread = p.threads()[sample.thread];
  std::string text(NameOf(sample.kind));
  for (const uint64_t part :
       {sample.time_ns, sample.count, sample.value, uint64_t{sample.folded},
        static_cast<uint64_t>(sample.state), context.trace_id_high, context.trace_id_low,
        context.span_id, context.root_span_id, uint64_t{thread.tid}}) {
    text += ' ' + std::to_string(part);
  }
  text += " thread=" + std::string(p.Text(thread.name));
  text += " endpoint=" + std::string(p.Text(p.EndpointOf(context.root_span_id)));
  for (unsigned i = 0; i < profile::kTagCount; ++i) {
    if (context.tags[i] != profile::kNone)
      text += " " + profile::TagName(p, i) + "=" + std::string(p.Text(context.tags[i]));
  }
  for (const profile::FrameId frame : p.FramesOf(sample.stack)) text += "\n  " + Describe(p, frame);
  return text;
}

inline std::vector<std::string> DescribeSamples(const profile::Profile& p) {
  std::vector<std::string> texts;
  for (const profile::Sample& sample : p.samples()) texts.push_back(Describe(p, sample));
  return texts;
}

inline std::map<uint64_t, std::string> DescribeEndpoints(const profile::Profile& p) {
  std::map<uint64_t, std::string> texts;
  for (const auto& [root, text] : p.endpoints()) texts.emplace(root, p.Text(text));
  return texts;
}

}  // namespace spanprof::format
