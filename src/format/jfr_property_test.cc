// For any profile: what is written is read again, in both forms and in any number of chunks.

#include <cstdint>
#include <rapidcheck.h>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "format/format.h"
#include "format/jfr.h"
#include "format/jfr_fixture.h"
#include "profile/profile.h"
#include "profile/profile_query.h"

namespace spanprof::format {
namespace {

uint64_t AnyNumber() {
  const auto bits = *rc::gen::inRange(0, 65);
  const auto number = *rc::gen::arbitrary<uint64_t>();
  return bits == 0 ? 0 : number >> (64 - bits);
}

std::string AnyText() { return *rc::gen::arbitrary<std::string>(); }

profile::StackId AnyStack(profile::Profile& p) {
  profile::StackId stack = profile::kNone;
  for (int depth = *rc::gen::inRange(0, 6); depth > 0; --depth) {
    const profile::Function function{.name = p.Intern(AnyText()),
                                     .system_name = p.Intern(AnyText()),
                                     .file = p.Intern(AnyText()),
                                     .start_line = static_cast<uint32_t>(AnyNumber())};
    const profile::Mapping mapping{.start = AnyNumber(),
                                   .end = AnyNumber(),
                                   .file_offset = AnyNumber(),
                                   .path = p.Intern(AnyText()),
                                   .build_id = p.Intern(AnyText())};
    stack = p.AddStack(stack,
                       p.AddFrame({.kind = static_cast<profile::FrameKind>(*rc::gen::inRange(0, 7)),
                                   .inlined = *rc::gen::arbitrary<bool>(),
                                   .mapping = p.AddMapping(mapping),
                                   .address = AnyNumber(),
                                   .function = p.AddFunction(function),
                                   .line = static_cast<uint32_t>(AnyNumber()),
                                   .column = static_cast<uint32_t>(AnyNumber())}));
  }
  return stack;
}

profile::ContextId AnyContext(profile::Profile& p) {
  profile::Context context{.trace_id_high = AnyNumber(),
                           .trace_id_low = AnyNumber(),
                           .span_id = AnyNumber(),
                           .root_span_id = AnyNumber()};
  for (unsigned i = 0; i < p.attribute_names.size(); ++i) context.tags[i] = p.Intern(AnyText());
  if (*rc::gen::arbitrary<bool>()) p.SetEndpoint(context.root_span_id, AnyText());
  return p.AddContext(context);
}

profile::Profile AnyProfile() {
  profile::Profile p;
  p.start_time_ns = AnyNumber();
  p.duration_ns = AnyNumber();
  for (int i = *rc::gen::inRange(0, 11); i > 0; --i) {
    p.attribute_names.push_back("name" + std::to_string(i) + AnyText());
  }
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) p.resource.push_back({AnyText(), AnyText()});
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) p.AddToCounter("c" + AnyText(), AnyNumber());
  for (profile::Period& period : p.periods) period = {AnyNumber(), AnyNumber()};
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
    p.AddSample({.time_ns = AnyNumber(),
                 .thread = *rc::gen::arbitrary<bool>()
                               ? profile::kNone
                               : p.AddThread(static_cast<uint32_t>(AnyNumber()), AnyText()),
                 .context = AnyContext(p),
                 .stack = AnyStack(p),
                 .kind = static_cast<profile::SampleKind>(*rc::gen::inRange(0, 4)),
                 .state = static_cast<profile::ThreadState>(*rc::gen::inRange(0, 5)),
                 .folded = *rc::gen::arbitrary<bool>(),
                 .count = AnyNumber(),
                 .value = AnyNumber()});
  }
  return p;
}

WriteOptions AnyOptions() {
  WriteOptions options;
  options.jfr_context = *rc::gen::element(JfrContext::kPool, JfrContext::kFlat);
  return options;
}

RC_GTEST_PROP(JfrPropertyTest, WhatIsWrittenIsRead, ()) {
  const profile::Profile profile = AnyProfile();
  const Result<std::string> bytes = WriteJfr(profile, AnyOptions());
  RC_ASSERT(bytes.has_value());
  RC_ASSERT(CompleteJfrPrefix(*bytes) == bytes->size());
  const Result<profile::Profile> read = ReadJfr(*bytes, {});
  RC_ASSERT(read.has_value());
  RC_ASSERT(DescribeSamples(*read) == DescribeSamples(profile));
  RC_ASSERT(DescribeEndpoints(*read) == DescribeEndpoints(profile));
  RC_ASSERT(read->counters() == profile.counters());
  RC_ASSERT(read->resource == profile.resource);
  RC_ASSERT(read->attribute_names == profile.attribute_names);
  RC_ASSERT(read->periods == profile.periods);
  RC_ASSERT(read->duration_ns == profile.duration_ns);
  RC_ASSERT(read->start_time_ns == profile.start_time_ns || profile.start_time_ns == 0);
}

RC_GTEST_PROP(JfrPropertyTest, ChunksAddUp, ()) {
  std::string bytes;
  profile::Profile expected;
  const int count = *rc::gen::inRange(1, 4);
  for (int i = 0; i < count; ++i) {
    const profile::Profile profile = AnyProfile();
    bytes += WriteJfr(profile, AnyOptions()).value();
    profile::Merge(expected, profile);
  }
  const Result<profile::Profile> read = ReadJfr(bytes, {});
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->samples().size() == expected.samples().size());
  std::string warning;
  const size_t cut = *rc::gen::inRange<size_t>(0, bytes.size());
  RC_ASSERT(CompleteJfrPrefix(std::string_view(bytes).substr(0, cut)) <= cut);
  (void)ReadJfrLenient(std::string_view(bytes).substr(0, cut), {}, &warning);
}

}  // namespace
}  // namespace spanprof::format
