// The built command, run on this machine.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command_fixture.h"

namespace spanprof::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

TEST(DoctorCommand, ExaminesTheMachine) {
  Command command({"doctor", "--json"});
  const int code = command.Wait();
  const json document = json::parse(command.out, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << command.out << command.err;
  EXPECT_EQ(document["groups"][0]["title"], "this machine");
  EXPECT_EQ(code, document["failed"] == 0 ? 0 : 1);
}

TEST(DoctorCommand, ExaminesAProcessAndItsProgram) {
  const Target target([] {});
  Command command({"doctor", target.pid_text()});
  (void)command.Wait();
  EXPECT_THAT(command.out,
              AllOf(HasSubstr("process " + target.pid_text()), HasSubstr("context records"),
                    HasSubstr("LD_PRELOAD"), HasSubstr("fine     memory")));
}

TEST(DoctorCommand, ExaminesAProgramWhateverItsArguments) {
  Command command({"doctor", "--", "sh", "-c", "exit 3", "--json"});
  (void)command.Wait();
  EXPECT_THAT(command.out, AllOf(HasSubstr("program "), HasSubstr("LD_PRELOAD")));
}

TEST(DoctorCommand, FailsForWhatIsNotThere) {
  Command process({"doctor", "4194303"});
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_THAT(process.err, HasSubstr("there is no process 4194303"));
  Command program({"doctor", "--", "/no/such/program"});
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.err, HasSubstr("No such file"));
}

}  // namespace
}  // namespace spanprof::cli
