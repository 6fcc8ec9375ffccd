// What is refused is a kernel: the others of its module are coloured, and it is gone.
#include <gtest/gtest.h>

#include <cstring>

#include "colored_text.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx {
namespace {

const std::string traps_in_texture =
    ".global .texref picture;\n" +
    test::colored_kernel("bad", "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [picture, {%r5}];");

TEST(ColoredKernels, a_refused_kernel_is_gone_and_the_others_are_there) {
  const ColoredModule made = test::colored(test::preamble + traps_in_texture +
                                           test::colored_kernel("good", test::plain_store));
  ASSERT_EQ(made.kernels.size(), 2U);
  EXPECT_EQ(describe_refusals(made.kernels[0], "t.ptx"),
            "t.ptx:8: kernel 'bad': 'tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [picture, {%r5}];' "
            "cannot be coloured: the variable 'picture' is a texture, a surface or a sampler");
  EXPECT_EQ(made.kernels[0].line, 5U);
  EXPECT_TRUE(made.kernels[1].accepted());
  ASSERT_EQ(made.module.kernels().size(), 1U);
  EXPECT_EQ(made.module.kernels()[0]->name, "good");
  EXPECT_EQ(made.module.text->find("picture"), std::string::npos);
}

TEST(ColoredKernels, what_is_launched_decides) {
  const ColoredModule made = test::colored(test::preamble + traps_in_texture +
                                           test::colored_kernel("good", test::plain_store));
  EXPECT_TRUE(check_accepted(made.kernels, "t.ptx", {"good"}));
  EXPECT_FALSE(check_accepted(made.kernels, "t.ptx", {"bad", "good"}));
  EXPECT_FALSE(check_accepted(made.kernels, "t.ptx"));
}

TEST(ColoredKernels, those_that_are_not_asked_for_are_gone_as_well) {
  const std::string text = test::preamble + test::colored_kernel("one", test::plain_store) +
                           test::colored_kernel("two", test::plain_store);
  const ColoredModule made = test::colored(text, {.kernels = {"two"}});
  ASSERT_EQ(made.kernels.size(), 1U);
  ASSERT_EQ(made.module.kernels().size(), 1U);
  EXPECT_EQ(made.module.kernels()[0]->name, "two");
  const auto missing =
      color::rewrite_parities(test::parsed(text), test::by_parity, {.kernels = {"three"}});
  EXPECT_EQ(missing.error().message, "t.ptx: there is no kernel 'three'");
}

TEST(ColoredKernels, a_function_condemns_the_kernels_that_reach_it_and_no_others) {
  const std::string functions =
      ".func inner();\n.func outer()\n{\ncall inner, ();\nret;\n}\n"
      ".func inner()\n{\n.reg .b64 %rd<2>; prefetchu.L1 [%rd1];\nret;\n}\n";
  const ColoredModule made =
      test::colored(test::preamble + functions + test::colored_kernel("bad", "call outer, ();") +
                    test::colored_kernel("good", test::plain_store));
  EXPECT_FALSE(made.kernels[0].accepted());
  EXPECT_EQ(made.kernels[0].refusals[0].line, 12U);
  EXPECT_TRUE(made.kernels[1].accepted());
  EXPECT_EQ(made.module.functions.size(), 1U) << *made.module.text;
}

TEST(ColoredKernels, a_call_by_address_may_reach_every_function_whose_address_is_taken) {
  const std::string functions =
      ".func bad()\n{\n.reg .b64 %rd<2>; prefetchu.L1 [%rd1];\nret;\n}\n.func good()\n{\nret;\n}\n";
  const auto calls = [&](const std::string& name, const std::string& more) {
    return test::verdict(test::preamble + functions +
                         test::colored_kernel("k", "mov.u64 %rd1, " + name +
                                                       ";\nproto: .callprototype _ ();\n" +
                                                       "call %rd1, (), proto;\n" + more));
  };
  EXPECT_EQ(calls("good", ""), "accepted");
  EXPECT_NE(calls("good", "mov.u64 %rd2, bad;\n"), "accepted");
}

// Its stack is the driver's, and the compiler tells no size of it.
TEST(ColoredKernels, one_that_reaches_a_function_that_may_call_itself_is_refused) {
  const auto said = [](const std::string& functions, const std::string& body) {
    return test::verdict(test::preamble + functions + test::colored_kernel("k", body),
                         test::with_places);
  };
  const std::string itself = ".func again()\n{\ncall again, ();\nret;\n}\n";
  EXPECT_NE(said(itself, "call again, ();")
                .find("t.ptx:4: kernel 'k': 'again' may call itself, and each such call takes a "
                      "frame on the driver's stack"),
            std::string::npos);
  EXPECT_EQ(said(itself, ""), "accepted") << "the kernel does not reach it";
  const std::string three =
      ".func c();\n.func a();\n.func b()\n{\ncall c, ();\nret;\n}\n.func c()\n{\n.local .b32 v;\n"
      "call a, ();\nret;\n}\n.func a()\n{\ncall b, ();\nret;\n}\n";
  for (const char* name : {"'a' may call itself", "'b' may call itself", "'c' may call itself"}) {
    EXPECT_NE(said(three, "call b, ();").find(name), std::string::npos) << name;
  }
  const std::string by_address =
      ".func again()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, again;\nproto: .callprototype _ ();\n"
      "call %rd1, (), proto;\nret;\n}\n";
  EXPECT_NE(said(by_address, "call again, ();").find("'again' may call itself"), std::string::npos);
  EXPECT_EQ(said(".func leaf()\n{\nret;\n}\n.func twice()\n{\ncall leaf, ();\ncall leaf, "
                 "();\nret;\n}\n",
                 "call twice, ();\ncall leaf, ();"),
            "accepted");
}

TEST(ColoredKernels, a_call_of_an_address_passes_only_if_it_is_surely_one_of_the_modules) {
  const std::string functions =
      ".extern .func away();\n.func f()\n{\nret;\n}\n.func g()\n{\nret;\n}\n"
      ".const .align 8 .u64 table[2] = {f, g};\n";
  const auto said = [&](const std::string& body, const std::string& target = "%rd1") {
    return test::verdict(
        test::preamble + functions +
            test::colored_kernel("k", body +
                                          "\nproto: .callprototype _ ();\nboth: .calltargets f, "
                                          "g;\ncall " +
                                          target + ";\n"),
        test::with_places);
  };
  const std::string takes = "%rd1, (), proto";
  EXPECT_EQ(said("mov.u64 %rd2, f;\nmov.b64 %rd3, g;\nselp.b64 %rd1, %rd2, %rd3, %p1;", takes),
            "accepted");
  EXPECT_EQ(said("mov.u64 %rd1, f;\n@%p1 mov.u64 %rd1, g;", takes), "accepted");
  EXPECT_EQ(said("", "f, ()"), "accepted");
  for (const char* from : {
           "ld.param.u64 %rd1, [p];",                               // an argument
           "ld.const.u64 %rd1, [table+8];",                         // the host may write constants
           "ld.param.u64 %rd2, [p];\nld.global.u64 %rd1, [%rd2];",  // a virtual function
           "mov.u64 %rd1, f;\n@%p1 ld.param.u64 %rd1, [p];",        // one of two ways
           "ld.param.u64 %rd2, [p];\nmov.u64 %rd3, f;\nselp.b64 %rd1, %rd3, %rd2, %p1;",
           "mov.u64 %rd2, f;\nadd.s64 %rd1, %rd2, 16;", "mov.u64 %rd1, f+16;",
           "mov.u64 %rd1, 4096;", "mov.u64 %rd1, table;",
           "",  // written by nothing
       }) {
    EXPECT_NE(said(from, takes).find("calls a function whose address cannot be followed"),
              std::string::npos)
        << from;
    EXPECT_NE(said(from, "%rd1, (), both").find("whose address cannot be followed"),
              std::string::npos)
        << from << ", which a list of targets promises";
  }
}

const std::string assertion =
    ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
    ".param .b64 e);\n.global .align 1 .b8 message[6] = {104, 101, 108, 108, 111};\n";
const std::string fails =
    "{\n.param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;\n"
    "st.param.b64 [m], %rd2;\nst.param.b64 [f], %rd2;\nst.param.b32 [l], 7;\n"
    "st.param.b64 [n], %rd2;\nst.param.b64 [s], 1;\ncall __assertfail, (m, f, l, n, s);\n}\n";

TEST(ColoredKernels, an_assertion_reads_its_message_where_the_driver_put_it) {
  const std::string take = "mov.u64 %rd1, message;\ncvta.global.u64 %rd2, %rd1;\n";
  const ColoredModule made =
      test::colored(test::preamble + assertion + test::colored_kernel("k", take + fails));
  EXPECT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "t.ptx");
  EXPECT_NE(made.module.text->find("mov.u64 %rd1, message;"), std::string::npos);
  EXPECT_NE(made.module.text->find(".b8 message[6]"), std::string::npos);
}

TEST(ColoredKernels, a_message_that_is_used_otherwise_or_is_none_is_refused) {
  const std::string take = "mov.u64 %rd1, message;\ncvta.global.u64 %rd2, %rd1;\n";
  const auto said = [&](const std::string& body) {
    return test::verdict(test::preamble + assertion + test::colored_kernel("k", body),
                         test::with_places);
  };
  EXPECT_NE(said(take + fails + "ld.global.u8 %r1, [%rd1];\n")
                .find("uses the address of a string that is passed to an assertion"),
            std::string::npos);
  EXPECT_NE(said("ld.param.u64 %rd2, [p];\n" + fails)
                .find("passes an address to an assertion that is not the address of a string of "
                      "the module"),
            std::string::npos);
  EXPECT_EQ(said("mov.u64 %rd2, 0;\n" + fails), "accepted");
}

const std::string declares_print =
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    ".global .align 1 .b8 format[4] = {37, 100, 10};\n";
const std::string prints =
    "mov.u64 %rd1, format;\ncvta.global.u64 %rd2, %rd1;\n{\n.param .b64 a; .param .b64 b; .param "
    ".b32 r;\nst.param.b64 [a], %rd2;\nst.param.b64 [b], 0;\ncall.uni (r), vprintf, (a, b);\n"
    "ld.param.b32 %r1, [r];\n}\n";

TEST(ColoredKernels, one_that_prints_is_refused_or_silenced) {
  const std::string text = test::preamble + declares_print + test::colored_kernel("k", prints) +
                           test::colored_kernel("bad", prints + "prefetchu.L1 [%rd1];");
  EXPECT_NE(test::verdict(text, test::with_places).find("prints through a buffer of the driver"),
            std::string::npos);
  ColoredOptions silenced = test::with_places;
  silenced.printing = ColoredPrinting::silenced;
  const ColoredModule made = test::colored(text, silenced);
  EXPECT_TRUE(made.kernels[0].accepted());
  EXPECT_EQ(made.module.text->find("vprintf"), std::string::npos) << *made.module.text;
  EXPECT_NE(made.module.text->find("call.uni (r), demarc_print_nothing, (a, b);"),
            std::string::npos);
}

TEST(ColoredKernels, the_heap_of_the_driver_is_refused) {
  const std::string heap = ".extern .func (.param .b64 r) malloc(.param .b64 a);\n";
  const std::string body =
      "{\n.param .b64 a; .param .b64 r;\nst.param.b64 [a], 8;\ncall.uni (r), malloc, (a);\n}\n";
  EXPECT_NE(test::verdict(test::preamble + heap + test::colored_kernel("k", body))
                .find("uses the heap of the driver, which is not coloured"),
            std::string::npos);
}

TEST(ColoredKernels, arguments_of_an_assertion_that_are_not_followed_are_refused) {
  const std::string text = test::preamble + ".extern .func __assertfail(.reg .b64 a);\n" +
                           test::colored_kernel("k", "call __assertfail, (%rd1);");
  EXPECT_NE(test::verdict(text).find("passes its arguments in a way that cannot be followed"),
            std::string::npos);
}

TEST(ColoredKernels, an_access_with_a_comment_within_it_is_refused) {
  const auto said = [](const std::string& access) {
    return test::verdict(test::preamble +
                         test::colored_kernel("k", "ld.param.u64 %rd1, [p];\n" + access));
  };
  const std::string reason = "has a comment inside it";
  for (const std::string access :
       {"ld.global.u32 %r1 /* [x] */, [%rd1];", "ld.global.u32 %r1, // [\n[%rd1];",
        "ld.global.u32 %r1, /* ; */ [%rd1];", "ld .global.u32 %r1, [%rd1];"}) {
    EXPECT_NE(said(access).find(reason), std::string::npos) << access;
  }
  EXPECT_EQ(said("/* [x] */ ld.global.u32 %r1, [ %rd1 + 4 ]; // [x]\n"), "accepted");
}

TEST(ColoredKernels, eight_reasons_are_told_and_the_others_counted) {
  const auto told = [](int faults) {
    std::string body;
    for (int i = 0; i < faults; ++i) body += "prefetchu.L1 [%rd1];\n";
    const std::string said = test::verdict(test::preamble + test::colored_kernel("k", body));
    return said.substr(said.rfind('\n') + 1);
  };
  EXPECT_EQ(told(8).substr(0, 24), "t.ptx:14: kernel 'k': 'p");
  EXPECT_EQ(told(10), "t.ptx: kernel 'k': 2 more");
}

TEST(ColoredKernels, modules_of_32_bits_are_an_error) {
  const auto made = color::rewrite_parities(
      test::parsed(".version 8.0\n.target sm_90\n.address_size 32\n"), test::by_parity);
  EXPECT_EQ(made.error().message,
            "t.ptx: coloured addressing needs 64-bit addresses (.address_size 64)");
}

}  // namespace
}  // namespace demarc::ptx
