// The built command, run on profile files.

#include <cstdint>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/elf_file.h"
#include "cli/profile_files_fixture.h"
#include "format/gzip.h"
#include "format/jfr_file.h"
#include "profile/profile_testing.h"

// A function that the command is to find the name of.
extern "C" __attribute__((noinline, used)) void SpanprofTestFindMyName() { asm volatile(""); }

namespace spanprof::cli {
namespace {

using profile::DescribeSamples;
using profile::TotalsOf;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ExportCommand : public ProfileFilesTest {
 protected:
  ExportCommand() : shop_(WriteProfileFile("shop.otlp", ShopProfile())) {}

  // How many samples are left, by count.
  uint64_t CountWith(std::vector<std::string> filters) {
    filters.insert(filters.begin(), {"export", shop_, "-o", Path("filtered.otlp")});
    EXPECT_EQ(Run(filters), 0) << err_;
    return TotalsOf(ReadProfileFile("filtered.otlp")).count;
  }

  std::string shop_;
};

TEST_F(ExportCommand, ConvertsBetweenTheFormatsThatAreRead) {
  for (const char* name : {"out.pb.gz", "out.jfr", "out.pprof", "out.otlp"}) {
    ASSERT_EQ(Run({"export", shop_, "-o", Path(name)}), 0) << err_;
    EXPECT_EQ(DescribeSamples(ReadProfileFile(name)), DescribeSamples(ShopProfile())) << name;
  }
  EXPECT_EQ(err_, "");
}

TEST_F(ExportCommand, ReadsAnyFormatByItsContent) {
  for (const char* name : {"in.pb.gz", "in.jfr", "in.folded"}) {
    WriteProfileFile(name, ShopProfile());
    rename(Path(name).c_str(), Path("unnamed").c_str());
    ASSERT_EQ(Run({"export", Path("unnamed"), "-o", Path("out.otlp"), "--type", "cpu"}), 0) << err_;
    EXPECT_EQ(TotalsOf(ReadProfileFile("out.otlp")).value, 1000 * kShopMillisecond) << name;
  }
}

TEST_F(ExportCommand, WritesFormatsToLookAt) {
  ASSERT_EQ(Run({"export", shop_, "-o", Path("out.html")}), 0) << err_;
  EXPECT_THAT(ReadBytes("out.html"), AllOf(HasSubstr("<!DOCTYPE html>"), HasSubstr("Price")));
  ASSERT_EQ(Run({"export", shop_, "-o", Path("out.txt"), "--format", "perfetto"}), 0) << err_;
  EXPECT_THAT(ReadBytes("out.txt"), HasSubstr("Price"));
}

TEST_F(ExportCommand, FiltersByEveryField) {
  EXPECT_EQ(CountWith({}), 105u);
  EXPECT_EQ(CountWith({"--endpoint", "GET /cart"}), 70u);
  EXPECT_EQ(CountWith({"--endpoint", ""}), 10u);
  EXPECT_EQ(CountWith({"--trace-id", "00000000000000200000000000000020"}), 25u);
  EXPECT_EQ(CountWith({"--span-id", "12"}), 20u);
  EXPECT_EQ(CountWith({"--root-span-id", "0000000000000010"}), 70u);
  EXPECT_EQ(CountWith({"--tag", "tenant=acme"}), 75u);
  EXPECT_EQ(CountWith({"--thread", "background"}), 10u);
  EXPECT_EQ(CountWith({"--thread", "12"}), 10u);
  EXPECT_EQ(CountWith({"--type", "wall"}), 5u);
  EXPECT_EQ(CountWith({"--from", "+1s"}), 95u);
  EXPECT_EQ(CountWith({"--from", "2026-11-15T12:00:01Z", "--to", "1794744002"}), 10u);
  EXPECT_EQ(CountWith({"--endpoint", "POST /pay", "--type", "cpu", "--tag", "tenant=acme"}), 20u);
}

TEST_F(ExportCommand, SaysWhichValuesThereAreWhenNothingIsLeft) {
  const std::vector<std::string> command = {"export", shop_, "-o", Path("nothing.otlp")};
  const auto run = [&](std::vector<std::string> filters) {
    filters.insert(filters.begin(), command.begin(), command.end());
    EXPECT_EQ(Run(filters), 1);
    EXPECT_EQ(access(Path("nothing.otlp").c_str(), F_OK), -1);
    return err_;
  };
  EXPECT_THAT(run({"--endpoint", "GET /crat"}),
              AllOf(HasSubstr("no sample has the endpoint 'GET /crat'"),
                    HasSubstr("did you mean 'GET /cart'?"), HasSubstr("'POST /pay'")));
  EXPECT_THAT(run({"--tag", "tenat=acme"}),
              AllOf(HasSubstr("no tag 'tenat'"), HasSubstr("did you mean 'tenant'?")));
  EXPECT_THAT(run({"--tag", "tenant=acne"}), HasSubstr("did you mean 'acme'?"));
  EXPECT_THAT(run({"--thread", "workers"}), HasSubstr("did you mean 'worker'?"));
  EXPECT_THAT(run({"--span-id", "99"}), HasSubstr("'0000000000000011'"));
  EXPECT_THAT(run({"--trace-id", "99"}), HasSubstr("'00000000000000100000000000000010'"));
  EXPECT_THAT(run({"--type", "lock"}), HasSubstr("cpu, wall"));
  EXPECT_THAT(run({"--from", "+20s"}), HasSubstr("the first is of 2026-11-15T12:00:00Z"));
  EXPECT_THAT(run({"--endpoint", "GET /cart", "--thread", "background"}),
              HasSubstr("no sample passes all of them"));
}

TEST_F(ExportCommand, TimesCountFromTheFirstSampleWhereAProfileHasNoStart) {
  profile::Profile profile;
  for (const uint64_t second : {100, 101, 102}) {
    profile.AddSample({.time_ns = second * 1'000'000'000, .value = 1});
  }
  const std::string file = WriteProfileFile("no_start.pb.gz", profile);
  ASSERT_EQ(Run({"export", file, "-o", Path("out.otlp"), "--from", "+1s"}), 0) << err_;
  EXPECT_EQ(TotalsOf(ReadProfileFile("out.otlp")).count, 2u);
}

TEST_F(ExportCommand, TimesThatCannotApplyAreRefusedOrExplained) {
  WriteBytes("plain.folded", "main;work 30\n");
  EXPECT_EQ(Run({"export", Path("plain.folded"), "-o", Path("out.otlp"), "--from", "+1s"}), 1);
  EXPECT_THAT(err_, HasSubstr("have no times"));
  EXPECT_EQ(Run({"export", shop_, "-o", Path("out.otlp"), "--from", "+2s", "--to", "+1s"}), 1);
  EXPECT_THAT(err_, HasSubstr("--from (2026-11-15T12:00:02Z) is not before --to"));

  profile::Profile folded = ShopProfile();
  profile::Sample minute = folded.samples()[0];
  minute.folded = true;
  folded.AddSample(minute);
  const std::string file = WriteProfileFile("folded.otlp", folded);
  ASSERT_EQ(Run({"export", file, "-o", Path("out.otlp"), "--to", "+1s"}), 0) << err_;
  EXPECT_THAT(err_, HasSubstr("1 of 106 samples stand for those of a whole minute"));
}

TEST_F(ExportCommand, MergesSeveralFiles) {
  const std::string other = WriteProfileFile("other.pb.gz", ShopProfile());
  ASSERT_EQ(Run({"export", shop_, other, "-o", Path("both.otlp")}), 0) << err_;
  EXPECT_EQ(TotalsOf(ReadProfileFile("both.otlp")).count, 210u);
}

TEST_F(ExportCommand, WritesForTheOwnerOnlyAndFollowsNoLink) {
  ASSERT_EQ(Run({"export", shop_, "-o", Path("out.jfr")}), 0) << err_;
  struct stat status = {};
  ASSERT_EQ(stat(Path("out.jfr").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);

  WriteBytes("precious.jfr", "precious");
  ASSERT_EQ(symlink(Path("precious.jfr").c_str(), Path("link.jfr").c_str()), 0);
  EXPECT_EQ(Run({"export", shop_, "-o", Path("link.jfr")}), 1);
  EXPECT_EQ(ReadBytes("precious.jfr"), "precious");
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr(".tmp")));
  }
}

TEST_F(ExportCommand, ReadsThroughALink) {
  WriteProfileFile("real.jfr", ShopProfile());
  ASSERT_EQ(symlink("real.jfr", Path("latest.jfr").c_str()), 0);
  EXPECT_EQ(Run({"export", Path("latest.jfr"), "-o", Path("out.otlp")}), 0) << err_;
}

TEST_F(ExportCommand, WritesToTheStandardOutput) {
  ASSERT_EQ(Run({"export", shop_, "-o", "-", "--format", "folded"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("Cart;Price"));
  EXPECT_THAT(err_, HasSubstr("5 wall (--type wall)"));
  EXPECT_EQ(Run({"export", shop_, "-o", "-"}), 1);
  EXPECT_THAT(err_, HasSubstr("--format"));
}

TEST_F(ExportCommand, ReadsThePartFileOfARecordingAndMendsItsEnd) {
  const std::string chunk = *format::WriteJfr(ShopProfile(), {});
  {
    auto file = format::JfrFile::Open(Path("running.jfr"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->FinishChunk(chunk));
    ASSERT_TRUE(file->AppendPart(chunk));
    ASSERT_EQ(Run({"export", Path("running.jfr"), "-o", Path("out.otlp")}), 0) << err_;
    EXPECT_EQ(TotalsOf(ReadProfileFile("out.otlp")).count, 210u);
    EXPECT_EQ(Run({"export", shop_, "-o", Path("running.jfr")}), 1);
    EXPECT_THAT(err_, HasSubstr("not finished"));
  }
  // Before the first chunk is finished the named file is empty.
  {
    auto file = format::JfrFile::Open(Path("begun.jfr"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->AppendPart(chunk));
    ASSERT_EQ(Run({"export", Path("begun.jfr"), "-o", Path("out.otlp")}), 0) << err_;
    EXPECT_EQ(TotalsOf(ReadProfileFile("out.otlp")).count, 105u);
  }
  WriteBytes("cut.jfr", chunk + chunk.substr(0, chunk.size() / 2));
  ASSERT_EQ(Run({"export", Path("cut.jfr"), "-o", Path("mended.jfr")}), 0) << err_;
  EXPECT_THAT(err_, HasSubstr("left out"));
  EXPECT_EQ(TotalsOf(ReadProfileFile("mended.jfr")).count, 105u);
}

TEST_F(ExportCommand, WritesTheLabelsAndTheJfrContextThatWereAskedFor) {
  ASSERT_EQ(Run({"export", shop_, "-o", Path("out.pb"), "--labels", "datadog,pyroscope"}), 0)
      << err_;
  const auto pprof = format::Decompress(ReadBytes("out.pb"), size_t{1} << 20);
  ASSERT_TRUE(pprof);
  EXPECT_THAT(*pprof, AllOf(HasSubstr("local root span id"), HasSubstr("span_name")));
  ASSERT_EQ(Run({"export", shop_, "-o", Path("pool.jfr")}), 0) << err_;
  ASSERT_EQ(Run({"export", shop_, "-o", Path("flat.jfr"), "--jfr-context", "flat"}), 0) << err_;
  EXPECT_THAT(ReadBytes("pool.jfr"), HasSubstr("spanprof.Context"));
  EXPECT_THAT(ReadBytes("flat.jfr"), Not(HasSubstr("spanprof.Context")));
  EXPECT_EQ(Run({"export", shop_, "-o", Path("x.pb"), "--labels", "datadog,other"}), 2);
}

TEST_F(ExportCommand, AddsSymbolsUnlessToldNotTo) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  Dl_info loaded = {};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&SpanprofTestFindMyName), &loaded), 0);
  profile::Profile profile;
  const auto mapping =
      profile.AddMapping({.start = 0x1000,
                          .end = 0x100000000,
                          .path = profile.Intern(self),
                          .build_id = profile.Intern(ElfFile::Open(self)->BuildId())});
  const auto frame =
      profile.AddFrame({.mapping = mapping,
                        .address = reinterpret_cast<uint64_t>(&SpanprofTestFindMyName) -
                                   reinterpret_cast<uint64_t>(loaded.dli_fbase)});
  profile.AddSample({.time_ns = 1, .stack = profile.AddStack(profile::kNone, frame), .value = 1});
  const std::string raw = WriteProfileFile("raw.pb.gz", profile);
  ASSERT_EQ(Run({"export", raw, "-o", "-", "--format", "folded"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("SpanprofTestFindMyName"));
  ASSERT_EQ(Run({"export", raw, "-o", "-", "--format", "folded", "--no-symbols"}), 0) << err_;
  EXPECT_THAT(out_, Not(HasSubstr("SpanprofTestFindMyName")));
  // Not below another root, where there is no such file.
  ASSERT_EQ(Run({"export", raw, "-o", "-", "--format", "folded", "--root", folder_}), 0) << err_;
  EXPECT_THAT(out_, Not(HasSubstr("SpanprofTestFindMyName")));
}

TEST_F(ExportCommand, RefusesGarbageWithItsName) {
  WriteBytes("garbage", std::string("\x01\x02\x03garbage\0", 11));
  EXPECT_EQ(Run({"export", Path("garbage"), "-o", Path("out.jfr")}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("garbage'"), HasSubstr("hint: ")));
  EXPECT_EQ(Run({"export", Path("absent"), "-o", Path("out.jfr")}), 1);
  EXPECT_THAT(err_, HasSubstr("No such file"));
  EXPECT_EQ(Run({"export", folder_, "-o", Path("out.jfr")}), 1);
  EXPECT_THAT(err_, HasSubstr("directory"));
  // The folder is missed before the input is read.
  EXPECT_EQ(Run({"export", Path("garbage"), "-o", Path("absent/out.jfr")}), 1);
  EXPECT_THAT(err_, HasSubstr("create the directory first"));
  EXPECT_EQ(Run({"export", shop_, "-o", folder_ + "/"}), 1);
  EXPECT_EQ(Run({"export", shop_, "-o", Path("out.unknown")}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr(".pb.gz"), HasSubstr("--format")));
}

TEST_F(ExportCommand, RefusesAFileThatNeedsTooMuchMemory) {
  EXPECT_EQ(Run({"export", shop_, "-o", Path("out.jfr"), "--max-memory", "100"}), 1);
  EXPECT_THAT(err_, HasSubstr("--max-memory 4g"));
}

TEST_F(ExportCommand, AWrongCommandLineIsAUsageError) {
  EXPECT_EQ(Run({"export", shop_}), 2);
  EXPECT_EQ(Run({"export", "-o", "x.jfr"}), 2);
  EXPECT_EQ(Run({"export", shop_, "-o", "x.jfr", "--span-id", "xyz"}), 2);
  EXPECT_EQ(Run({"export", shop_, "-o", "x.jfr", "--from", "yesterday"}), 2);
  EXPECT_THAT(err_, HasSubstr("+10s"));
  EXPECT_EQ(Run({"export", shop_, "-o", "x.jfr", "--tag", "tenant"}), 2);
  EXPECT_EQ(Run({"export", shop_, "-o", "x.jfr", "--format", "xml"}), 2);
}

}  // namespace
}  // namespace spanprof::cli
