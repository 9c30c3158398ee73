#include "collect/process_context_reader.h"

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "collect/process_context_fixture.h"

namespace spanprof::collect {
namespace {

constexpr uint64_t kStampAddress = kFakeContextAddress + 16;

class ProcessContextReaderTest : public testing::Test {
 protected:
  ProcessContextReading Read() {
    return ReadProcessContext(memory_, ParseProcessMaps(kFakeContextMapsLine));
  }
  int FailureCode() {
    const auto reading = Read();
    EXPECT_TRUE(reading.found);
    EXPECT_FALSE(reading.context);
    return reading.context ? 0 : reading.context.error().code;
  }

  FakeMemory memory_;
  FakeProcessContext context_{memory_};
  std::string payload_ = EncodeFakeContext({{"service.name", "shop"}}, {"root", "tenant"});
};

TEST_F(ProcessContextReaderTest, ReadsResourceAndKeys) {
  context_.Publish(payload_, 5);
  const auto reading = Read();
  ASSERT_TRUE(reading.context) << reading.context.error().message;
  EXPECT_EQ(reading.context->resource.at("service.name"), AttributeValue(std::string("shop")));
  EXPECT_EQ(reading.context->key_map.size(), 2u);
  context_.Publish("", 6, 0x1000);
  EXPECT_TRUE(Read().context);
}

TEST_F(ProcessContextReaderTest, SaysThatThereIsNone) {
  const auto reading = ReadProcessContext(memory_, ProcessMaps{});
  EXPECT_FALSE(reading.found);
  EXPECT_EQ(reading.context.error().code, ENOENT);
}

TEST_F(ProcessContextReaderTest, GivesUpWhileItIsBeingChanged) {
  context_.Publish(payload_, 0);
  EXPECT_EQ(FailureCode(), EAGAIN);
  EXPECT_EQ(memory_.calls, kProcessContextAttempts);
}

TEST_F(ProcessContextReaderTest, RefusesAPayloadWhoseStampChanges) {
  context_.Publish(payload_, 1);
  uint64_t stamp = 1;
  memory_.before_copy = [&](const MemoryRange& range) {
    if (range.address == kStampAddress) context_.SetStamp(++stamp);
  };
  EXPECT_EQ(FailureCode(), EAGAIN);
}

TEST_F(ProcessContextReaderTest, ReadsTheNewPayloadWhenTheOldOneWasFreed) {
  context_.Publish(payload_, 1);
  bool replaced = false;
  memory_.before_copy = [&](const MemoryRange& range) {
    if (range.address != kFakePayloadAddress || replaced) return;
    replaced = true;
    memory_.Remove(kFakePayloadAddress);
    context_.Publish(EncodeFakeContext({{"service.name", "cart"}}, {}), 2, 0x2000);
  };
  const auto reading = Read();
  ASSERT_TRUE(reading.context) << reading.context.error().message;
  EXPECT_EQ(reading.context->resource.at("service.name"), AttributeValue(std::string("cart")));
}

TEST_F(ProcessContextReaderTest, RefusesHostileHeaders) {
  context_.Publish(payload_, 5);
  memory_.Store(kFakeContextAddress + 12, static_cast<uint32_t>(kMaxProcessContextBytes + 1));
  EXPECT_EQ(FailureCode(), EFBIG);
  memory_.Store(kFakeContextAddress + 12, uint32_t{4096});
  EXPECT_EQ(FailureCode(), EFAULT);
  memory_.Store(kFakeContextAddress + 24, UINT64_MAX - 1);
  EXPECT_EQ(FailureCode(), EFAULT);
  context_.Publish(payload_.substr(0, payload_.size() - 1), 6);
  EXPECT_EQ(FailureCode(), EBADMSG);
  memory_.Store(kFakeContextAddress + 8, uint32_t{1});
  EXPECT_EQ(FailureCode(), EPROTONOSUPPORT);
  memory_.Store(kFakeContextAddress, uint32_t{0});
  EXPECT_EQ(FailureCode(), EBADMSG);
  memory_.fail_with = ReadStatus::kNotPermitted;
  EXPECT_EQ(FailureCode(), EPERM);
  memory_.fail_with = ReadStatus::kNoSuchProcess;
  EXPECT_EQ(FailureCode(), ESRCH);
}

}  // namespace
}  // namespace spanprof::collect
