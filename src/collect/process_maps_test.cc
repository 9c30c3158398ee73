#include "collect/process_maps.h"

#include <string>

#include <gtest/gtest.h>

namespace spanprof::collect {
namespace {

Mapping Named(const std::string& name) {
  const ProcessMaps maps = ParseProcessMaps("1000-2000 rw-p 00000000 00:01 7      " + name + "\n");
  EXPECT_EQ(maps.mappings.size(), 1u) << name;
  return maps.mappings.empty() ? Mapping{} : maps.mappings[0];
}

TEST(ProcessMaps, ParsesEveryField) {
  const ProcessMaps maps = ParseProcessMaps(
      "55d0c0a00000-55d0c0a01000 r-xp 00002000 fe:01 1234567                    /usr/bin/a "
      "program\n"
      "7ffff7a00000-7ffff7a02000 rw-s 00000000 00:00 0 \n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_EQ(maps.mappings.size(), 3u);
  EXPECT_EQ(maps.malformed_lines, 0u);
  const Mapping& program = maps.mappings[0];
  EXPECT_EQ(program.start, 0x55d0c0a00000u);
  EXPECT_EQ(program.end, 0x55d0c0a01000u);
  EXPECT_EQ(program.offset, 0x2000u);
  EXPECT_EQ(program.inode, 1234567u);
  EXPECT_TRUE(program.readable && program.executable && !program.writable && !program.shared);
  EXPECT_EQ(program.name, "/usr/bin/a program");
  EXPECT_EQ(FileBaseName(program), "a program");
  EXPECT_FALSE(program.IsAnonymous());
  EXPECT_TRUE(maps.mappings[1].shared && maps.mappings[1].writable);
  EXPECT_TRUE(maps.mappings[1].IsAnonymous());
  EXPECT_EQ(maps.mappings[2].end, 0xffffffffff601000u);
  EXPECT_FALSE(maps.mappings[2].readable);
  EXPECT_EQ(FileBaseName(maps.mappings[2]), "");
}

TEST(ProcessMaps, AcceptsUnnamedMemoryWithAndWithoutTheSpaceBehindTheInode) {
  const ProcessMaps maps = ParseProcessMaps(
      "1000-2000 rw-p 00000000 00:00 0\n"
      "2000-3000 rw-p 00000000 00:00 0 \n"
      "3000-4000 rw-p 00000000 00:00 0");
  EXPECT_EQ(maps.mappings.size(), 3u);
  EXPECT_EQ(maps.malformed_lines, 0u);
}

TEST(ProcessMaps, UnderstandsDeletedAndEscapedNames) {
  const Mapping deleted = Named("/tmp/a b (deleted)");
  EXPECT_EQ(deleted.name, "/tmp/a b");
  EXPECT_TRUE(deleted.deleted);
  const Mapping escaped = Named("/tmp/two\\012lines\\011");
  EXPECT_EQ(escaped.name, "/tmp/two\nlines\\011");
  EXPECT_FALSE(escaped.deleted);
}

TEST(ProcessMaps, FindsPublishedNamesInEveryForm) {
  for (const char* shown : {"[anon:OTEL_CTX]", "[anon_shmem:OTEL_CTX]", "/memfd:OTEL_CTX (deleted)",
                            "/memfd:OTEL_CTX"}) {
    EXPECT_TRUE(HasPublishedName(Named(shown), "OTEL_CTX")) << shown;
    EXPECT_FALSE(HasPublishedName(Named(shown), "DD_OTEL_CTX")) << shown;
  }
  for (const char* shown : {"OTEL_CTX", "[OTEL_CTX]", "[anon:OTEL_CTX", "[anon:OTEL_CTX2]",
                            "/memfd:OTEL_CTX2 (deleted)", "/tmp/memfd:OTEL_CTX", "[anon:]"}) {
    EXPECT_FALSE(HasPublishedName(Named(shown), "OTEL_CTX")) << shown;
  }
}

TEST(ProcessMaps, CountsLinesThatAreNotMappings) {
  const ProcessMaps maps = ParseProcessMaps(
      "\n"
      "garbage\n"
      "2000-1000 rw-p 00000000 00:00 0 \n"
      "1000-1000 rw-p 00000000 00:00 0 \n"
      "10000000000000000-20000000000000000 rw-p 00000000 00:00 0 \n"
      "1000-2000 rwzp 00000000 00:00 0 \n"
      "1000-2000 rw-p 00000000 00:00 x \n"
      "1000-2000 rw-p 00000000\n"
      "5000-6000 rw-p 00000000 00:00 0 \n"
      "4000-5000 rw-p 00000000 00:00 0 \n");
  ASSERT_EQ(maps.mappings.size(), 1u);
  EXPECT_EQ(maps.mappings[0].start, 0x5000u);
  EXPECT_EQ(maps.malformed_lines, 9u);
}

TEST(ProcessMaps, JoinsNeighboursOfOneName) {
  const ProcessMaps maps = ParseProcessMaps(
      "1000-2000 rw-p 00000000 00:01 7 /memfd:T (deleted)\n"
      "2000-3000 r--p 00001000 00:01 7 /memfd:T (deleted)\n"
      "3000-4000 rw-p 00000000 00:01 8 /memfd:T (deleted)\n"
      "4000-5000 rw-p 00000000 00:00 0 \n"
      "6000-7000 rw-p 00000000 00:00 0 \n");
  EXPECT_EQ(ContiguousEnd(maps, 0), 0x3000u);
  EXPECT_EQ(ContiguousEnd(maps, 2), 0x4000u);
  EXPECT_EQ(ContiguousEnd(maps, 3), 0x5000u);
  EXPECT_EQ(ContiguousEnd(maps, 4), 0x7000u);
}

}  // namespace
}  // namespace spanprof::collect
