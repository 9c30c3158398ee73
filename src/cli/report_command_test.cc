// The built command, run on profile files.

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/profile_files_fixture.h"

namespace spanprof::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ReportCommand : public ProfileFilesTest {
 protected:
  ReportCommand() : shop_(WriteProfileFile("shop.otlp", ShopProfile())) {}

  json Json(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"report", shop_, "--json"});
    EXPECT_EQ(Run(more), 0) << err_;
    json document = json::parse(out_, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << out_;
    return document;
  }
  // The names of the rows, in their order.
  std::vector<std::string> Names(const std::vector<std::string>& more) {
    std::vector<std::string> names;
    const json document = Json(more);
    for (const json& row : document["rows"]) names.push_back(row["name"]);
    return names;
  }

  std::string shop_;
};

TEST_F(ReportCommand, ShowsFunctionsWithinEndpoints) {
  ASSERT_EQ(Run({"report", shop_}), 0) << err_;
  EXPECT_EQ(
      out_,
      "shop 1.2, process 8134, on host-1\n"
      "2026-11-15T12:00:00Z, for 10 s\n"
      "cpu: 100 samples, 1 s, one every 4 ms where 1 ms was asked for (why: spanprof doctor)\n"
      "wall: 5 samples, 50 ms (--type wall)\n"
      "\n"
      "SELF(s)  SELF%  TOTAL(s)  TOTAL%  SAMPLES  ENDPOINT / FUNCTION\n"
      "                   0.700    70.0       70  GET /cart\n"
      "  0.500   50.0     0.500    50.0       50    Price\n"
      "  0.200   20.0     0.700    70.0       20    Cart\n"
      "  0.000    0.0     0.700    70.0        0    main\n"
      "                   0.200    20.0       20  POST /pay\n"
      "  0.200   20.0     0.200    20.0       20    Price\n"
      "  0.000    0.0     0.200    20.0        0    Pay\n"
      "  0.000    0.0     0.200    20.0        0    main\n"
      "                   0.100    10.0       10  (none)\n"
      "  0.100   10.0     0.100    10.0       10    evil\\x1b[2J\n"
      "  0.000    0.0     0.100    10.0        0    main\n"
      "\n"
      "7 samples were lost: the buffer was full\n");
}

TEST_F(ReportCommand, ShowsFunctionsAloneWhereThereAreNoEndpoints) {
  const std::string folded = Path("plain.folded");
  WriteBytes("plain.folded", "main;work 30\nmain 10\n");
  ASSERT_EQ(Run({"report", folded}), 0) << err_;
  EXPECT_THAT(out_,
              AllOf(HasSubstr("  FUNCTION\n"), HasSubstr("  work\n"), Not(HasSubstr("ENDPOINT"))));
}

TEST_F(ReportCommand, GroupsByEverything) {
  using List = std::vector<std::string>;
  EXPECT_EQ(Names({"--by", "endpoint"}), (List{"GET /cart", "POST /pay", "(none)"}));
  EXPECT_EQ(Names({"--by", "span"}),
            (List{"0000000000000011", "0000000000000012", "0000000000000020", "(none)"}));
  EXPECT_EQ(Names({"--by", "root-span"}), (List{"0000000000000010", "0000000000000020", "(none)"}));
  EXPECT_EQ(Names({"--by", "thread"}), (List{"worker", "background"}));
  EXPECT_EQ(Names({"--by", "tag:tenant"}), (List{"acme", "globex", "(none)"}));
  EXPECT_EQ(Names({"--by", "function"}), (List{"Price", "Cart", "evil\033[2J", "main", "Pay"}));
  EXPECT_EQ(Names({"--by", "trace"}).size(), 3u);
  const json spans = Json({"--by", "span"});
  EXPECT_EQ(spans["rows"][0]["endpoint"], "GET /cart");
  EXPECT_EQ(spans["rows"][2]["endpoint"], "POST /pay");
}

TEST_F(ReportCommand, SelfAndTotalAreThoseOfTheProfile) {
  const json document = Json({"--by", "function"});
  EXPECT_EQ(document["total_value"], 1000 * kShopMillisecond);
  const json& price = document["rows"][0];
  EXPECT_EQ(price["self_value"], 700 * kShopMillisecond);
  EXPECT_EQ(price["total_value"], 700 * kShopMillisecond);
  const json& main = document["rows"][3];
  EXPECT_EQ(main["name"], "main");
  EXPECT_EQ(main["self_value"], 0);
  EXPECT_EQ(main["total_count"], 100);
}

TEST_F(ReportCommand, NestsSeveralLevels) {
  const json document = Json({"--by", "tag:tenant,endpoint,function"});
  EXPECT_EQ(document["by"], (json{"tag:tenant", "endpoint", "function"}));
  const json& acme = document["rows"][0];
  EXPECT_EQ(acme["name"], "acme");
  EXPECT_EQ(acme["rows"][1]["name"], "POST /pay");
  EXPECT_EQ(acme["rows"][1]["rows"][0]["name"], "Price");
  EXPECT_EQ(acme["rows"][1]["rows"][0]["total_count"], 20);
}

TEST_F(ReportCommand, SortsAndLimits) {
  using List = std::vector<std::string>;
  EXPECT_EQ(Names({"--by", "function", "--sort", "total", "--limit", "2"}),
            (List{"main", "Price"}));
  EXPECT_EQ(Names({"--by", "endpoint", "--sort", "name"}),
            (List{"(none)", "GET /cart", "POST /pay"}));
  ASSERT_EQ(Run({"report", shop_, "--by", "function", "--limit", "2"}), 0);
  EXPECT_THAT(out_, HasSubstr("… 3 more (--limit 0 shows all)"));
  EXPECT_EQ(Json({"--by", "function", "--limit", "2"})["rows_left_out"], 3);
  EXPECT_EQ(Names({"--by", "function", "--limit", "0"}).size(), 5u);
}

TEST_F(ReportCommand, FiltersAsExportDoes) {
  const json document = Json({"--endpoint", "POST /pay", "--by", "function"});
  EXPECT_EQ(document["total_count"], 20);
  EXPECT_EQ(document["unfiltered_count"], 105);
  EXPECT_EQ(Json({"--type", "wall"})["type"], "wall");
  EXPECT_EQ(Run({"report", shop_, "--tag", "tenant=globex", "--tag", "tenant=acme"}), 1);
  ASSERT_EQ(Run({"report", shop_, "--tag", "tenant=globex"}), 0);
  EXPECT_THAT(out_, HasSubstr("filtered: 20 of 105 samples\n"));
  EXPECT_EQ(Run({"report", shop_, "--endpoint", "GET /crat"}), 1);
  EXPECT_THAT(err_, HasSubstr("did you mean 'GET /cart'?"));
  EXPECT_EQ(out_, "");
}

TEST_F(ReportCommand, ReadsFromAPipe) {
  const std::string command =
      std::string(SPANPROF_COMMAND_PATH) + " report - <" + shop_ + " >" + Path("out.txt");
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(ReadBytes("out.txt"), StartsWith("shop 1.2"));
}

TEST_F(ReportCommand, ExplainsAWordItDoesNotKnow) {
  EXPECT_EQ(Run({"report", shop_, "--by", "endpiont"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean endpoint?"));
  EXPECT_EQ(Run({"report", shop_, "--by", "tag:tenat"}), 1);
  EXPECT_THAT(err_, HasSubstr("it has tag:tenant"));
  EXPECT_EQ(Run({"report", shop_, "--by", "function,endpoint"}), 2);
  EXPECT_THAT(err_, HasSubstr("last"));
  EXPECT_EQ(Run({"report", shop_, "--sort", "size"}), 2);
}

TEST_F(ReportCommand, AProfileWithoutSamplesIsShownWithItsCounters) {
  profile::Profile empty;
  empty.start_time_ns = kShopStart;
  empty.AddToCounter("sampler.unsampled_cpu_ns", 1'500'000'000);
  const std::string file = WriteProfileFile("empty.otlp", empty);
  ASSERT_EQ(Run({"report", file}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("no samples\n"),
                          HasSubstr("1.5 s of CPU time were used by threads that were never")));
}

TEST_F(ReportCommand, ManyCountersOfAFileDoNotFloodTheScreen) {
  profile::Profile shop = ShopProfile();
  for (int i = 0; i < 1000; ++i) shop.AddToCounter("x\033." + std::to_string(i), 1);
  const std::string file = WriteProfileFile("noisy.otlp", shop);
  ASSERT_EQ(Run({"report", file}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("and 992 more"), Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace spanprof::cli
