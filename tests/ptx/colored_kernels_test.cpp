// What is refused is a kernel: the others of its module are coloured, and it is gone.
#include <gtest/gtest.h>

#include <cstring>

#include "demarc/ptx/colored.hpp"
#include "text.hpp"

namespace demarc::ptx {
namespace {

const ColoredAddressing by_parity{{0xc4000}, 1};

ColoredModule colored(const std::string& text, const ColoredOptions& options = {}) {
  auto made = rewrite_colored(test::parsed(text), by_parity, options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : ColoredModule{};
}

// "accepted", or the reasons of the first kernel.
std::string verdict(const std::string& text, const ColoredOptions& options = {}) {
  const ColoredModule made = colored(text, options);
  if (made.kernels.empty()) return "no kernel";
  return made.kernels[0].accepted() ? "accepted" : describe_refusals(made.kernels[0], "t.ptx");
}

std::string kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n" + body +
         "\nret;\n}\n";
}

const ColoredOptions with_places{.places = ColoredPlaces{0x100000, 0x200000, 64}};

const std::string stores = "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 1;";
const std::string traps_in_texture =
    ".global .texref picture;\n" +
    kernel("bad", "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [picture, {%r5}];");

TEST(ColoredKernels, a_refused_kernel_is_gone_and_the_others_are_there) {
  const ColoredModule made = colored(test::preamble + traps_in_texture + kernel("good", stores));
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
  const ColoredModule made = colored(test::preamble + traps_in_texture + kernel("good", stores));
  EXPECT_TRUE(check_accepted(made.kernels, "t.ptx", {"good"}));
  EXPECT_FALSE(check_accepted(made.kernels, "t.ptx", {"bad", "good"}));
  EXPECT_FALSE(check_accepted(made.kernels, "t.ptx"));
}

TEST(ColoredKernels, those_that_are_not_asked_for_are_gone_as_well) {
  const std::string text = test::preamble + kernel("one", stores) + kernel("two", stores);
  const ColoredModule made = colored(text, {.kernels = {"two"}});
  ASSERT_EQ(made.kernels.size(), 1U);
  ASSERT_EQ(made.module.kernels().size(), 1U);
  EXPECT_EQ(made.module.kernels()[0]->name, "two");
  const auto missing = rewrite_colored(test::parsed(text), by_parity, {.kernels = {"three"}});
  EXPECT_EQ(missing.error().message, "t.ptx: there is no kernel 'three'");
}

TEST(ColoredKernels, a_function_condemns_the_kernels_that_reach_it_and_no_others) {
  const std::string functions =
      ".func inner();\n.func outer()\n{\ncall inner, ();\nret;\n}\n"
      ".func inner()\n{\nprefetchu.L1 [0];\nret;\n}\n";
  const ColoredModule made = colored(test::preamble + functions + kernel("bad", "call outer, ();") +
                                     kernel("good", stores));
  EXPECT_FALSE(made.kernels[0].accepted());
  EXPECT_EQ(made.kernels[0].refusals[0].line, 12U);
  EXPECT_TRUE(made.kernels[1].accepted());
  EXPECT_EQ(made.module.functions.size(), 1U) << *made.module.text;
}

TEST(ColoredKernels, a_call_by_address_may_reach_every_function_whose_address_is_taken) {
  const std::string functions =
      ".func bad()\n{\nprefetchu.L1 [0];\nret;\n}\n.func good()\n{\nret;\n}\n";
  const auto calls = [&](const std::string& name, const std::string& more) {
    return verdict(test::preamble + functions +
                   kernel("k", "mov.u64 %rd1, " + name + ";\nproto: .callprototype _ ();\n" +
                                   "call %rd1, (), proto;\n" + more));
  };
  EXPECT_EQ(calls("good", ""), "accepted");
  EXPECT_NE(calls("good", "mov.u64 %rd2, bad;\n"), "accepted");
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
  const ColoredModule made = colored(test::preamble + assertion + kernel("k", take + fails));
  EXPECT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "t.ptx");
  EXPECT_NE(made.module.text->find("mov.u64 %rd1, message;"), std::string::npos);
  EXPECT_NE(made.module.text->find(".b8 message[6]"), std::string::npos);
}

TEST(ColoredKernels, a_message_that_is_used_otherwise_or_is_none_is_refused) {
  const std::string take = "mov.u64 %rd1, message;\ncvta.global.u64 %rd2, %rd1;\n";
  const auto said = [&](const std::string& body) {
    return verdict(test::preamble + assertion + kernel("k", body), with_places);
  };
  EXPECT_NE(said(take + fails + "ld.global.u8 %r1, [%rd1];\n")
                .find("uses the address of a string that an assertion is handed"),
            std::string::npos);
  EXPECT_NE(said("ld.param.u64 %rd2, [p];\n" + fails)
                .find("hands an assertion an address that is not that of a string of the module"),
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
  const std::string text = test::preamble + declares_print + kernel("k", prints) +
                           kernel("bad", prints + "prefetchu.L1 [0];");
  EXPECT_NE(verdict(text, with_places).find("prints by a buffer of the driver"), std::string::npos);
  ColoredOptions silenced = with_places;
  silenced.printing = ColoredPrinting::silenced;
  const ColoredModule made = colored(text, silenced);
  EXPECT_TRUE(made.kernels[0].accepted());
  EXPECT_EQ(made.module.text->find("vprintf"), std::string::npos) << *made.module.text;
  EXPECT_NE(made.module.text->find("call.uni (r), demarc_print_nothing, (a, b);"),
            std::string::npos);
}

TEST(ColoredKernels, the_heap_of_the_driver_is_refused) {
  const std::string heap = ".extern .func (.param .b64 r) malloc(.param .b64 a);\n";
  const std::string body =
      "{\n.param .b64 a; .param .b64 r;\nst.param.b64 [a], 8;\ncall.uni (r), malloc, (a);\n}\n";
  EXPECT_NE(verdict(test::preamble + heap + kernel("k", body))
                .find("uses the heap of the driver, which is not coloured"),
            std::string::npos);
}

TEST(ColoredKernels, arguments_of_an_assertion_that_are_not_followed_are_refused) {
  const std::string text = test::preamble + ".extern .func __assertfail(.reg .b64 a);\n" +
                           kernel("k", "call __assertfail, (%rd1);");
  EXPECT_NE(verdict(text).find("hands over its arguments in a way that is not followed"),
            std::string::npos);
}

TEST(ColoredKernels, an_access_with_a_comment_within_it_is_refused) {
  const auto said = [](const std::string& access) {
    return verdict(test::preamble + kernel("k", "ld.param.u64 %rd1, [p];\n" + access));
  };
  const std::string reason = "has a comment within it";
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
    for (int i = 0; i < faults; ++i) body += "prefetchu.L1 [0];\n";
    const std::string said = verdict(test::preamble + kernel("k", body));
    return said.substr(said.rfind('\n') + 1);
  };
  EXPECT_EQ(told(8).substr(0, 24), "t.ptx:14: kernel 'k': 'p");
  EXPECT_EQ(told(10), "t.ptx: kernel 'k': 2 more");
}

TEST(ColoredKernels, modules_of_32_bits_are_an_error) {
  const auto made =
      rewrite_colored(test::parsed(".version 8.0\n.target sm_90\n.address_size 32\n"), by_parity);
  EXPECT_EQ(made.error().message,
            "t.ptx: coloured addressing needs 64-bit addresses (.address_size 64)");
}

// ---- variables of the module ------------------------------------------------------------------

TEST(ColoredVariables, have_offsets_in_a_block_and_their_first_content) {
  const auto needs = find_colored_needs(
      test::parsed(test::preamble + ".visible .global .align 4 .u32 zeros[8];\n"
                                    ".global .align 4 .u32 table[2] = {7, 9};\n"
                                    ".global .align 64 .u64 chain = generic(table)+4;\n"
                                    ".const .u32 fixed = 3;\n.shared .u32 shared;\n"));
  ASSERT_TRUE(needs) << needs.error().message;
  const ColoredBlock& block = needs->variables;
  ASSERT_EQ(block.variables.size(), 3U);
  EXPECT_EQ(block.variables[0].name, "table");
  EXPECT_EQ(block.variables[0].offset, 0U);
  EXPECT_EQ(block.variables[0].bytes, 8U);
  EXPECT_EQ(block.variables[1].name, "chain");
  EXPECT_EQ(block.variables[1].offset, 64U);
  EXPECT_EQ(block.variables[2].name, "zeros");
  EXPECT_EQ(block.variables[2].offset, 80U);
  EXPECT_EQ(block.bytes, 112U);
  EXPECT_EQ(block.alignment, 64U);
  std::vector<std::uint8_t> content(72);
  content[0] = 7;
  content[4] = 9;
  content[64] = 4;
  content[66] = 0x10;
  EXPECT_EQ(block.content(0x100000), content);
}

TEST(ColoredVariables, their_addresses_become_those_in_the_block) {
  const std::string text =
      test::preamble + ".global .align 4 .u32 v[4];\n" +
      kernel("k",
             "mov.u64 %rd1, v;\ncvta.global.u64 %rd2, %rd1;\nmov.u64 %rd3, v+8;\n"
             "@%p1 mov.u64 %rd4, v;\nst.global.u32 [v+4], 1;");
  const ColoredModule made = colored(text, with_places);
  const std::string& out = *made.module.text;
  EXPECT_NE(out.find("\tmov.u64 %rd1, 1048576;\n"), std::string::npos) << out;
  EXPECT_NE(out.find("\tmov.u64 %rd3, 1048584;"), std::string::npos);
  EXPECT_NE(out.find("\t@%p1 mov.u64 %rd4, 1048576;"), std::string::npos);
  EXPECT_NE(out.find("\tmov.u64 %demarc_a, 1048580;"), std::string::npos);
  EXPECT_EQ(out.find("v[4]"), std::string::npos);
  EXPECT_EQ(verdict(text),
            "t.ptx:8: kernel 'k': 'mov.u64 %rd1, v;' uses the variable 'v', for "
            "which no coloured memory is given\n"
            "t.ptx:10: kernel 'k': 'mov.u64 %rd3, v+8;' uses the variable 'v', for "
            "which no coloured memory is given\n"
            "t.ptx:11: kernel 'k': '@%p1 mov.u64 %rd4, v;' uses the variable 'v', "
            "for which no coloured memory is given\n"
            "t.ptx:12: kernel 'k': 'st.global.u32 [v+4], 1;' uses the variable 'v', "
            "for which no coloured memory is given");
}

TEST(ColoredVariables, their_block_s_address_is_read_where_it_is_known_at_load_alone) {
  const std::string body = "mov.u64 %rd1, v;\n@%p1 mov.u64 %rd3, v+8;\nst.global.u32 [v+4], 1;";
  const std::string text = test::preamble + ".global .align 4 .u32 v[4];\n" + kernel("k", body) +
                           kernel("other", stores);
  const ColoredModule made = colored(text, {.places = PlacesAtLoad{}});
  const std::string& out = *made.module.text;
  EXPECT_TRUE(check_accepted(made.kernels, "t.ptx"));
  EXPECT_NE(out.find(".visible .const .align 8 .b8 demarc_colors[24];"), std::string::npos) << out;
  EXPECT_NE(out.find("\tadd.s64 %rd1, %demarc_c0, 0;\n"), std::string::npos) << out;
  EXPECT_NE(out.find("\t@%p1 add.s64 %rd3, %demarc_c0, 8;\n"), std::string::npos);
  EXPECT_NE(out.find("\tadd.s64 %demarc_a, %demarc_c0, 4;\n"), std::string::npos);
  const std::string load = "ld.const.u64 %demarc_c0, [demarc_colors+0];";
  EXPECT_NE(out.find(load), std::string::npos);
  EXPECT_EQ(out.find(load, out.find(load) + 1), std::string::npos) << "'other' has no variables";
  EXPECT_EQ(colored(text, with_places).module.text->find("demarc_colors"), std::string::npos);
}

TEST(ColoredVariables, a_body_may_begin_with_the_use_of_one) {
  const std::string text =
      test::preamble +
      ".global .align 4 .u32 v;\n.visible .entry k()\n{st.global.u32 [v], 1;ret;}\n";
  for (const ColoredModule& made :
       {colored(text, {.places = PlacesAtLoad{}}), colored(text, with_places)}) {
    EXPECT_TRUE(check_accepted(made.kernels, "t.ptx"));
    EXPECT_EQ(made.module.kernels().size(), 1U);
  }
}

// Nothing may be thought to lie where it does not.
TEST(ColoredVariables, places_that_are_given_where_they_are_set_at_load_are_refused) {
  const Module module = test::parsed(test::preamble + kernel("k", stores));
  const RemainderShape shape{8, 13};
  EXPECT_TRUE(rewrite_remainders(module, shape));
  EXPECT_TRUE(rewrite_remainders(module, shape, {.places = PlacesAtLoad{}}));
  for (const ColoredPlaces& given : {ColoredPlaces{.variables = 16}, ColoredPlaces{.local = 16},
                                     ColoredPlaces{.local_threads = 1}}) {
    EXPECT_EQ(rewrite_remainders(module, shape, {.places = given}).error().message,
              "coloured addressing: places of variables and of local memory are given, but like "
              "the colours they are set when the module is loaded");
  }
}

TEST(ColoredConstants, are_as_many_bytes_as_the_variable_of_the_module_has) {
  const ColoredPlaces places{.variables = 1, .local = 2, .local_threads = 3};
  const auto words = [](const std::vector<std::byte>& bytes) {
    std::vector<std::uint64_t> out(bytes.size() / 8);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  };
  EXPECT_EQ(words(colored_constants(places)), (std::vector<std::uint64_t>{1, 2, 3}));
  const RemainderConstants remainders{.arena = 4,
                                      .table = 5,
                                      .pages = 6,
                                      .before = 7,
                                      .end = 1,
                                      .reciprocal = 8,
                                      .reciprocal_shift = 1,
                                      .skipped = 9};
  constexpr std::uint64_t one = std::uint64_t{1} << 32U;
  EXPECT_EQ(words(colored_constants(places, &remainders)),
            (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, one + 7, one + 8, 9}));
  const auto made =
      rewrite_remainders(test::parsed(test::preamble + kernel("k", stores)), RemainderShape{8, 13});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->module.variables[0].byte_size(), 72U);
  EXPECT_EQ(made->module.variables[0].name, colored_constants_name);
}

TEST(ColoredVariables, those_that_cannot_be_placed_refuse_the_kernels_that_name_them) {
  const auto said = [](const std::string& declaration, const std::string& more = "") {
    return verdict(test::preamble + declaration + more +
                       kernel("k", "mov.u64 %rd1, v;\nld.global.u32 %r1, [%rd1];"),
                   with_places);
  };
  EXPECT_NE(said(".extern .global .u32 v;\n").find("the variable 'v' is defined in another module"),
            std::string::npos);
  EXPECT_NE(said(".global .attribute(.managed) .u32 v;\n").find("the variable 'v' is managed"),
            std::string::npos);
  const std::string function = ".func f()\n{\nret;\n}\n";
  EXPECT_NE(said(function, ".global .u64 v = f;\n")
                .find("the variable 'v' holds the address of 'f', which is not in coloured memory"),
            std::string::npos);
  EXPECT_NE(said(function + ".global .u64 far = f;\n", ".global .u64 v = generic(far);\n")
                .find("the variable 'far' holds the address of 'f'"),
            std::string::npos);
  EXPECT_NE(said(".const .u32 c;\n", ".global .u64 v = generic(c);\n").find("'c'"),
            std::string::npos);
  EXPECT_EQ(said(".global .u32 v;\n"), "accepted");
  EXPECT_EQ(said(".extern .global .u32 v;\n.visible .global .u32 v;\n"), "accepted");
}

TEST(ColoredVariables, constants_that_hold_addresses_of_them_are_refused) {
  const auto said = [](const std::string& declarations) {
    return verdict(test::preamble + declarations +
                       kernel("k", "ld.const.u64 %rd1, [c];\nld.global.u32 %r1, [%rd1];"),
                   with_places);
  };
  EXPECT_NE(said(".global .u32 v;\n.const .u64 c = generic(v);\n")
                .find("the variable 'c' holds the address of 'v'"),
            std::string::npos);
  EXPECT_EQ(said(".const .u64 c = 5;\n"), "accepted");
}

// A chain of constants: the kernel that stays names its beginning alone.
TEST(ColoredVariables,
     constants_stay_with_what_they_hold_the_addresses_of_where_a_kernel_uses_them) {
  const std::string text =
      test::preamble +
      ".const .align 4 .u32 end = 5;\n.const .align 8 .u64 middle = end;\n"
      ".const .align 8 .u64 begin = middle;\n.const .align 8 .u64 unused = end;\n" +
      kernel("gone", stores) +
      kernel("k",
             "ld.const.u64 %rd1, [begin];\nld.const.u64 %rd2, [%rd1];\n"
             "ld.const.u32 %r1, [%rd2];");
  const ColoredModule made =
      colored(text, {.places = ColoredPlaces{0x100000, 0x200000, 64}, .kernels = {"k"}});
  ASSERT_EQ(made.kernels.size(), 1U);
  EXPECT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "t.ptx");
  std::vector<std::string_view> names;
  for (const Variable& variable : made.module.variables) names.push_back(variable.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"end", "middle", "begin"}));
}

TEST(ColoredVariables, addresses_in_other_places_are_refused) {
  EXPECT_NE(verdict(test::preamble + ".global .u32 v;\n" +
                        kernel("k", "mov.u32 %r1, v;\nadd.s64 %rd2, %rd1, v;"),
                    with_places)
                .find("uses the address of a variable in a way that is not followed"),
            std::string::npos);
}

TEST(ColoredVariables, one_sided_rewriting_refuses_them) {
  const std::string text =
      test::preamble + ".global .u32 v;\n" + kernel("k", "st.global.u32 [v], 1;");
  ColoredOptions one_side = with_places;
  one_side.accesses = ColoredAccesses::stores;
  EXPECT_NE(verdict(text, one_side).find("only a whole rewriting knows where it lies"),
            std::string::npos);
}

TEST(ColoredVariables, those_without_size_or_place_in_local_memory_of_the_module_are_refused) {
  const auto said = [](const std::string& declaration) {
    return verdict(test::preamble + declaration + kernel("k", "ld.u32 %r1, [v];"), with_places);
  };
  EXPECT_NE(said(".global .u32 v[];\n").find("the variable 'v' has no size"), std::string::npos);
  EXPECT_NE(
      said(".local .u32 v;\n").find("the variable 'v' lies in local memory of the whole module"),
      std::string::npos);
  EXPECT_NE(said(".global .u8 v[1] = {1, 2};\n").find("has an initialiser that cannot be read"),
            std::string::npos);
  EXPECT_NE(said(".shared .u32 v;\n").find("accesses a variable in a way that is not followed"),
            std::string::npos);
  EXPECT_EQ(said(".global .u32 v[] = {1, 2};\n"), "accepted");
}

// ---- local variables --------------------------------------------------------------------------

const std::string keeps =
    ".local .align 16 .b8 depot[40];\nmov.b64 %rd1, depot;\ncvta.local.u64 %rd2, %rd1;\n"
    "st.local.u32 [%rd1+4], 1;\nst.u32 [%rd2+8], 2;\nst.local.u32 [depot+12], 3;\n";

TEST(ColoredLocals, a_thread_has_its_place_in_coloured_memory) {
  const std::string text = test::preamble + kernel("k", keeps);
  const auto needs = find_colored_needs(test::parsed(text));
  ASSERT_TRUE(needs);
  EXPECT_EQ(needs->local_bytes, 48U);
  EXPECT_EQ(needs->kernels[0].local_bytes, 48U);
  const ColoredModule made = colored(text, with_places);
  ASSERT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "t.ptx");
  const std::string& out = *made.module.text;
  EXPECT_NE(out.find("add.s64 \t%rd1, %demarc_frame, 0;"), std::string::npos) << out;
  EXPECT_NE(out.find("mov.b64 \t%rd2, %rd1;"), std::string::npos);
  EXPECT_NE(out.find("add.s64 \t%demarc_a, %demarc_frame, 12;"), std::string::npos);
  EXPECT_EQ(out.find(".local"), std::string::npos);
  EXPECT_NE(verdict(test::preamble + kernel("k", keeps))
                .find("'k' has 48 bytes of local variables per thread, for which no coloured "
                      "memory is given"),
            std::string::npos);
}

TEST(ColoredLocals, declarations_go_with_all_their_variables) {
  const ColoredModule made = colored(
      test::preamble + kernel("k", ".local .b32 a, b;\n.local .b64 c<2>;\nst.local.u32 [b], 1;\n"),
      with_places);
  EXPECT_TRUE(made.kernels[0].accepted());
  EXPECT_EQ(made.module.text->find(".local"), std::string::npos) << *made.module.text;
}

TEST(ColoredLocals, functions_lie_behind_their_callers_and_beside_each_other) {
  const auto function = [](const std::string& name, const std::string& size,
                           const std::string& body) {
    return ".func " + name + "()\n{\n.reg .b64 %rd<3>;\n.local .align 8 .b8 depot[" + size +
           "];\nmov.b64 %rd1, depot;\n" + body + "ret;\n}\n";
  };
  const auto needs = find_colored_needs(test::parsed(
      test::preamble + function("leaf", "16", "") + function("left", "32", "call leaf, ();\n") +
      function("right", "64", "") + kernel("k", keeps + "call left, ();\ncall right, ();\n") +
      kernel("leafy", "call leaf, ();\n") + kernel("plain", stores)));
  ASSERT_TRUE(needs);
  EXPECT_EQ(needs->kernels[0].local_bytes, 48U + 64U);
  EXPECT_EQ(needs->kernels[1].local_bytes, 48U + 32U + 16U);
  EXPECT_EQ(needs->kernels[2].local_bytes, 0U);
  EXPECT_EQ(needs->local_bytes, 112U);
}

TEST(ColoredLocals, one_without_size_is_refused) {
  EXPECT_NE(
      verdict(test::preamble + kernel("k", ".local .b8 own[];\nst.local.u8 [own], 1;"), with_places)
          .find("t.ptx:7: kernel 'k': the local variable 'own' has no size"),
      std::string::npos);
}

TEST(ColoredLocals, addresses_of_32_bits_are_refused) {
  EXPECT_NE(verdict(test::preamble + kernel("k", keeps + "st.local.u32 [%r1], 1;"), with_places)
                .find("has an address of 32 bits, which cannot be coloured"),
            std::string::npos);
}

TEST(ColoredLocals, a_function_that_may_call_itself_is_refused) {
  const std::string text = test::preamble +
                           ".func again()\n{\n.local .b32 depot;\ncall again, ();\nret;\n}\n" +
                           kernel("k", "call again, ();\n");
  EXPECT_NE(verdict(text, with_places)
                .find("t.ptx:4: kernel 'k': 'again' has local variables and may call itself"),
            std::string::npos);
}

TEST(ColoredLocals, questions_about_their_window_are_refused_where_there_are_any) {
  const std::string question = "isspacep.local %p1, %rd1;";
  EXPECT_NE(verdict(test::preamble + kernel("k", keeps + question), with_places)
                .find("asks whether an address is one of local memory"),
            std::string::npos);
  EXPECT_EQ(verdict(test::preamble + kernel("k", question)), "accepted");
}

TEST(ColoredLocals, what_the_driver_keeps_on_its_stack_is_refused) {
  const std::string text =
      test::preamble + ".func f(.param .b64 a)\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, a;\nret;\n}\n" +
      kernel("k", "{\n.param .b64 x;\ncall f, (x);\n}\n");
  EXPECT_NE(verdict(text).find("takes the address of a parameter"), std::string::npos);
}

// ---- generic addresses ------------------------------------------------------------------------

std::string generic(const std::string& body, const std::string& access = "st.u32 [%rd3], 1;") {
  const ColoredModule made = colored(
      test::preamble + ".shared .align 4 .b32 s[4];\n.const .b32 c[4];\n" +
      kernel("k", "mov.u64 %rd1, s;\ncvta.shared.u64 %rd2, %rd1;\nld.param.u64 %rd4, [p];\n" +
                      body + access));
  return made.kernels[0].accepted() ? *made.module.text
                                    : describe_refusals(made.kernels[0], "t.ptx");
}

TEST(ColoredGeneric, addresses_are_told_apart_at_run_time_where_the_text_does_not) {
  const std::string either = generic("selp.b64 %rd3, %rd2, %rd4, %p1;\n");
  EXPECT_NE(either.find("isspacep.shared \t%demarc_w, %demarc_g;"), std::string::npos) << either;
  EXPECT_NE(either.find("selp.b64 \t%demarc_a, %demarc_g, %demarc_a, %demarc_w;"),
            std::string::npos);
  EXPECT_EQ(either.find("isspacep.const"), std::string::npos);
  const std::string loaded = generic("ld.global.u64 %rd3, [%rd4];\ncvta.const.u64 %rd5, %rd1;\n");
  EXPECT_NE(loaded.find("isspacep.shared \t%demarc_w"), std::string::npos);
  EXPECT_NE(loaded.find("isspacep.const \t%demarc_v"), std::string::npos);
  EXPECT_NE(loaded.find("or.pred \t%demarc_w, %demarc_w, %demarc_v;"), std::string::npos);
}

TEST(ColoredGeneric, arguments_of_a_kernel_are_not_asked) {
  const std::string argument = generic("add.s64 %rd3, %rd4, 4;\n");
  EXPECT_EQ(argument.find("isspacep"), std::string::npos);
  EXPECT_NE(argument.find("st.u32 [%demarc_a], 1;"), std::string::npos);
}

TEST(ColoredGeneric, what_is_shared_for_certain_names_the_space) {
  const std::string shared = generic("add.s64 %rd3, %rd2, 4;\n");
  EXPECT_EQ(shared.find("isspacep"), std::string::npos);
  EXPECT_NE(
      shared.find("cvta.to.shared.u64 \t%demarc_a, %demarc_a;\n\tst.shared.u32 [%demarc_a], 1;"),
      std::string::npos)
      << shared;
  EXPECT_NE(generic("mov.u64 %rd3, %rd2;\n", "atom.acq_rel.gpu.add.u32 %r1, [%rd3], 1;")
                .find("atom.acq_rel.gpu.shared.add.u32 %r1, [%demarc_a], 1;"),
            std::string::npos);
  // Hints and the read-only cache are for global memory.
  EXPECT_NE(generic("mov.u64 %rd3, %rd2;\n", "ld.L1::evict_last.u32 %r1, [%rd3];").find("isspacep"),
            std::string::npos);
}

TEST(ColoredGeneric, shared_memory_of_a_cluster_is_asked_for_as_such) {
  const std::string mapped = generic("mapa.u64 %rd3, %rd2, 1;\n");
  EXPECT_NE(mapped.find("isspacep.shared::cluster \t%demarc_v, %demarc_g;"), std::string::npos)
      << mapped;
}

TEST(ColoredGeneric, tiles_of_matrices_are_taken_from_shared_memory_alone) {
  const std::string tile = "wmma.load.a.sync.aligned.row.m8n8k128.b1 {%r1}, [%rd3], %r2;";
  EXPECT_NE(generic("mov.u64 %rd3, %rd2;\n", tile)
                .find("wmma.load.a.sync.aligned.row.m8n8k128.shared.b1 {%r1}, [%demarc_a], %r2;"),
            std::string::npos);
  EXPECT_NE(generic("selp.b64 %rd3, %rd2, %rd4, %p1;\n", tile).find("cannot be coloured"),
            std::string::npos);
}

TEST(ColoredGeneric, a_kernel_is_not_asked_about_what_another_makes_generic) {
  const std::string text = test::preamble + ".shared .b32 s;\n" +
                           kernel("makes", "mov.u64 %rd1, s;\ncvta.shared.u64 %rd2, %rd1;") +
                           kernel("loads",
                                  "ld.param.u64 %rd1, [p];\nld.global.u64 %rd2, [%rd1];\n"
                                  "st.u32 [%rd2], 1;");
  EXPECT_EQ(colored(text).module.text->find("isspacep"), std::string::npos);
}

}  // namespace
}  // namespace demarc::ptx
