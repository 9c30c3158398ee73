#include "cli/context_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace spanprof::cli {
namespace {

using collect::ContextCounter;
using collect::ContextSnapshot;
using collect::RecordKind;
using collect::ThreadContextSnapshot;
using testing::HasSubstr;
using testing::Not;

ContextSnapshot Snapshot() {
  ContextSnapshot snapshot;
  snapshot.pid = 42;
  snapshot.records = {RecordKind::kSlotTable, RecordKind::kOtep4947, RecordKind::kOtep4719};
  snapshot.resource["service.name"] = std::string("shop");
  snapshot.resource["process.pid"] = int64_t{42};
  ThreadContextSnapshot thread;
  thread.tid = 43;
  thread.name = "worker";
  thread.trace_id_high = 0xA;
  thread.trace_id_low = 0xB;
  thread.span_id = 0xC;
  thread.root_span_id = 0xD;
  thread.attributes["http.route"] = "/cart";
  thread.source = RecordKind::kOtep4947;
  snapshot.threads.push_back(thread);
  ThreadContextSnapshot idle;
  idle.tid = 44;
  idle.name = "idle";
  snapshot.threads.push_back(idle);
  snapshot.counters.Add(ContextCounter::kCollision, 2);
  return snapshot;
}

TEST(ContextOutput, WritesTheDocumentedJson) {
  EXPECT_THAT(ContextJson(Snapshot(), ThreadFilter::kWithContext, -1),
              HasSubstr(R"({"pid":42,"records":["slot_table","otep_4947","otep_4719"],)"
                        R"("resource":{"process.pid":42,"service.name":"shop"},)"
                        R"("threads":[{"tid":43,"name":"worker",)"
                        R"("trace_id":"000000000000000a000000000000000b",)"
                        R"("span_id":"000000000000000c","root_span_id":"000000000000000d",)"
                        R"("attributes":{"http.route":"/cart"},"source":"otep_4947"}],)"
                        R"("counters":{"in_progress":0,"changed":0,"collision":2,)"));
}

TEST(ContextOutput, LeavesOutWhatHasNoValue) {
  ContextSnapshot snapshot = Snapshot();
  snapshot.threads[0].trace_id_high = 0;
  snapshot.threads[0].trace_id_low = 0;
  snapshot.threads[0].attributes.clear();
  const auto json = nlohmann::json::parse(ContextJson(snapshot, ThreadFilter::kAll, 2));
  EXPECT_EQ(json["threads"][0].size(), 5u);
  EXPECT_FALSE(json["threads"][0].contains("trace_id"));
  EXPECT_EQ(json["threads"][1], (nlohmann::json{{"tid", 44}, {"name", "idle"}}));
}

TEST(ContextOutput, StaysWellFormedWhateverTheTargetSays) {
  ContextSnapshot snapshot = Snapshot();
  snapshot.threads[0].name = "\xFF\033[2J\"\n";
  snapshot.threads[0].attributes["bad\xC3\x28 key"] = std::string("\x00\xE2\x82", 3);
  snapshot.resource["\xFE"] = std::vector<std::string>{"\xFE", "\033"};
  snapshot.notes = {"a note with \033"};
  const std::string json = ContextJson(snapshot, ThreadFilter::kAll, -1);
  EXPECT_TRUE(nlohmann::json::accept(json)) << json;
  EXPECT_EQ(json.find('\n'), std::string::npos);
  const std::string table = ContextTable(snapshot, ThreadFilter::kAll);
  for (const char byte : table) EXPECT_TRUE(byte == '\n' || (byte >= ' ' && byte < 0x7F)) << table;
}

TEST(ContextOutput, WritesATableForPeople) {
  const std::string table = ContextTable(Snapshot(), ThreadFilter::kWithContext);
  EXPECT_THAT(table, HasSubstr("process 42 publishes slot_table, otep_4947, otep_4719\n"));
  EXPECT_THAT(table, HasSubstr("resource: process.pid=42 service.name=shop\n"));
  EXPECT_THAT(table, HasSubstr(" 43  worker  000000000000000a000000000000000b  000000000000000c  "
                               "000000000000000d  otep_4947  http.route=/cart\n"));
  EXPECT_THAT(table, HasSubstr("1 of 2 threads have no context\n"));
  EXPECT_THAT(table, HasSubstr("counters: collision=2\n"));
  EXPECT_THAT(table, Not(HasSubstr("idle")));
  EXPECT_THAT(ContextTable(Snapshot(), ThreadFilter::kAll), HasSubstr("\n 44  idle    -"));
}

TEST(ContextOutput, MarksContextsThatMayBeTorn) {
  ContextSnapshot snapshot = Snapshot();
  snapshot.threads[0].source = RecordKind::kSlotTable;
  snapshot.threads[0].unsequenced = true;
  EXPECT_THAT(ContextTable(snapshot, ThreadFilter::kAll), HasSubstr("slot_table (unsequenced)"));
}

}  // namespace
}  // namespace spanprof::cli
