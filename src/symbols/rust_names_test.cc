#include "symbols/rust_names.h"

#include <string>

#include <gtest/gtest.h>

#include "symbols/demangle.h"

namespace spanprof::symbols {
namespace {

// The examples of RFC 2603 and of rustc-demangle's own tests.
TEST(RustNames, V0) {
  EXPECT_EQ(DemangleRustV0("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(DemangleRustV0("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
  EXPECT_EQ(DemangleRustV0("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(DemangleRustV0("_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_"),
            "cc::spawn::{closure#0}::{closure#0}");
  EXPECT_EQ(
      DemangleRustV0("_RNvMs0_NtCs5l0EXMQXRMU_21rustc_data_structures10obligationNtB5_3Foo4next"),
      "<rustc_data_structures::obligation::Foo>::next");
  EXPECT_EQ(
      DemangleRustV0("_RINkXs25_NgCsbDqzXfLQacH_4coreINtB8_3FooppE3BarNtB8_1F7consumeNtB8_1HE"),
      std::nullopt);  // broken: `k` opens no path here
  EXPECT_EQ(DemangleRustV0("_RINvNtC3std3mem8align_ofjE"), "std::mem::align_of::<usize>");
  EXPECT_EQ(DemangleRustV0("_RINvNtC3std3mem8align_ofRNtC3foo1TQhE"),
            "std::mem::align_of::<&foo::T, &mut u8>");
  EXPECT_EQ(DemangleRustV0("_RNvXC3fooNtB2_3BarNtNtC4core3fmt5Debug3fmt"),
            "<foo::Bar as core::fmt::Debug>::fmt");
  EXPECT_EQ(DemangleRustV0("_RINvC3foo3barKj7b_KbTEE"), std::nullopt);
  EXPECT_EQ(DemangleRustV0("_RINvC3foo3barKj7b_Kb1_Kln1_E"), "foo::bar::<123, true, -1>");
  EXPECT_EQ(DemangleRustV0("_RINvC3foo3barThShFKCmEuE"), std::nullopt);  // no end of the tuple
  EXPECT_EQ(DemangleRustV0("_RINvC3foo3barThShEFKCmEuAtj4_DNtC3foo1TEL_E"),
            "foo::bar::<(u8, [u8]), extern \"C\" fn(u32), [u16; 4], dyn foo::T>");
  EXPECT_EQ(DemangleRustV0("_RNvC3foo3bar.llvm.1234ABC"), "foo::bar");
}

TEST(RustNames, WhatIsNoV0NameIsLeft) {
  for (const char* name : {"", "_R", "_R1NvC3foo3bar", "_ZN3foo3barE", "main", "_RNvC3foo9bar",
                           "_RNvB_3foo", "_RNvC99999999999999999999foo3bar"}) {
    EXPECT_EQ(DemangleRustV0(name), std::nullopt) << name;
  }
}

TEST(RustNames, HostileNamesEndSoon) {
  // References that double the output with each step, and types that nest without end.
  std::string doubling = "_RIC1a";
  for (int i = 0; i < 60; ++i) doubling += "TB5_B5_E";
  (void)DemangleRustV0(doubling + "E");
  std::string nested = "_RIC1a";
  nested.append(100000, 'S');
  EXPECT_EQ(DemangleRustV0(nested), std::nullopt);
  std::string nested_paths = "_R";
  for (int i = 0; i < 100000; ++i) nested_paths += "Nv";
  EXPECT_EQ(DemangleRustV0(nested_paths), std::nullopt);
}

TEST(RustNames, Legacy) {
  EXPECT_EQ(Demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE").text,
            "core::fmt::Formatter::pad");
  EXPECT_EQ(Demangle("_ZN71_$LT$Test$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE").text,
            "_ZN71_$LT$Test$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE");
  EXPECT_EQ(CleanRustLegacy("_$LT$Test$u20$as$u20$core..fmt..Debug$GT$::fmt::h0123456789abcdef"),
            "<Test as core::fmt::Debug>::fmt");
  EXPECT_EQ(CleanRustLegacy("alloc::vec::Vec$LT$T$C$$RF$A$GT$::push::h0123456789abcdef"),
            "alloc::vec::Vec<T,&A>::push");
  EXPECT_EQ(CleanRustLegacy("std::sort<int>"), std::nullopt);
  EXPECT_EQ(CleanRustLegacy("a::hxyz456789abcdef0"), std::nullopt);
  EXPECT_EQ(Demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE").language,
            NameLanguage::kRust);
}

TEST(Demangle, CppAndPlainNames) {
  EXPECT_EQ(Demangle("_ZN8spanprof7symbols8DemangleEi").text, "spanprof::symbols::Demangle(int)");
  EXPECT_EQ(Demangle("_ZN8spanprof7symbols8DemangleEi").language, NameLanguage::kCpp);
  EXPECT_EQ(Demangle("main").text, "main");
  EXPECT_EQ(Demangle("main").language, NameLanguage::kOther);
  EXPECT_EQ(Demangle("_Znonsense").text, "_Znonsense");
  EXPECT_EQ(Demangle("memcpy@@GLIBC_2.14").text, "memcpy@@GLIBC_2.14");
  EXPECT_EQ(Demangle("_Znwm@GLIBCXX_3.4").text, "operator new(unsigned long)");
  EXPECT_EQ(Demangle("a\nb\x01\xFF").text, "a?b??");
  EXPECT_EQ(Demangle(std::string(100000, 'x')).text.size(), 16384u);
}

}  // namespace
}  // namespace spanprof::symbols
