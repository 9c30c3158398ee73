#include "coroutine/function_name.h"

#include <string>

#include <gtest/gtest.h>

namespace spanprof::coroutine {
namespace {

TEST(FunctionName, WhatTheCompilerMadeOfACoroutineIsReadable) {
  EXPECT_EQ(AuthorsFunctionName("void {anonymous}::Receiver(Receiver(Scheduler&, Signal&)::_ZN12_"
                                "GLOBAL__N_18ReceiverERNS_9Sched.Frame*)"),
            "{anonymous}::Receiver(Scheduler&, Signal&)");
  EXPECT_EQ(AuthorsFunctionName("void Serve(Serve(int)::_Z5Servei.Frame*)"), "Serve(int)");
}

TEST(FunctionName, TheSymbolOfAResumeFunctionIsReadable) {
  const std::string wanted = "(anonymous namespace)::Ticker((anonymous namespace)::Scheduler&)";
  EXPECT_EQ(ResumeFunctionName("(anonymous namespace)::Ticker(" + wanted +
                               "::_ZN12_GLOBAL__N_16TickerERNS_9SchedulerE.Frame*) [clone .actor]"),
            wanted);
  EXPECT_EQ(ResumeFunctionName("Serve(int) [clone .resume]"), "Serve(int)");
  for (const std::string name : {"main", "", "(::_Z", "f(g(int)::_Z", "::_Z"}) {
    EXPECT_EQ(ResumeFunctionName(name), name);
  }
}

TEST(FunctionName, OtherNamesAreLeftAlone) {
  for (const std::string name :
       {"Task shop::Serve(Socket&)", "void run(int)", "", "void ", "::_Z("}) {
    EXPECT_EQ(AuthorsFunctionName(name), name);
  }
}

}  // namespace
}  // namespace spanprof::coroutine
