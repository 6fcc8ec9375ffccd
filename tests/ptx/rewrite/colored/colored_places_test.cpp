// Variables of a module and local variables of threads get places in coloured memory.
#include <gtest/gtest.h>

#include <cstring>

#include "colored_text.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx {
namespace {

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
      test::colored_kernel("k",
                           "mov.u64 %rd1, v;\ncvta.global.u64 %rd2, %rd1;\nmov.u64 %rd3, v+8;\n"
                           "@%p1 mov.u64 %rd4, v;\nst.global.u32 [v+4], 1;");
  const ColoredModule made = test::colored(text, test::with_places);
  const std::string& out = *made.module.text;
  EXPECT_NE(out.find("\tmov.u64 %rd1, 1048576;\n"), std::string::npos) << out;
  EXPECT_NE(out.find("\tmov.u64 %rd3, 1048584;"), std::string::npos);
  EXPECT_NE(out.find("\t@%p1 mov.u64 %rd4, 1048576;"), std::string::npos);
  EXPECT_NE(out.find("\tmov.u64 %demarc_a, 1048580;"), std::string::npos);
  EXPECT_EQ(out.find("v[4]"), std::string::npos);
  EXPECT_EQ(test::verdict(text),
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
  const std::string text = test::preamble + ".global .align 4 .u32 v[4];\n" +
                           test::colored_kernel("k", body) +
                           test::colored_kernel("other", test::plain_store);
  const ColoredModule made = test::colored(text, {.places = PlacesAtLoad{}});
  const std::string& out = *made.module.text;
  EXPECT_TRUE(check_accepted(made.kernels, "t.ptx"));
  EXPECT_NE(out.find(".visible .const .align 8 .b8 demarc_colors[24];"), std::string::npos) << out;
  EXPECT_NE(out.find("\tadd.s64 %rd1, %demarc_c0, 0;\n"), std::string::npos) << out;
  EXPECT_NE(out.find("\t@%p1 add.s64 %rd3, %demarc_c0, 8;\n"), std::string::npos);
  EXPECT_NE(out.find("\tadd.s64 %demarc_a, %demarc_c0, 4;\n"), std::string::npos);
  const std::string load = "ld.const.u64 %demarc_c0, [demarc_colors+0];";
  EXPECT_NE(out.find(load), std::string::npos);
  EXPECT_EQ(out.find(load, out.find(load) + 1), std::string::npos) << "'other' has no variables";
  EXPECT_EQ(test::colored(text, test::with_places).module.text->find("demarc_colors"),
            std::string::npos);
}

TEST(ColoredVariables, a_body_may_begin_with_the_use_of_one) {
  const std::string text =
      test::preamble +
      ".global .align 4 .u32 v;\n.visible .entry k()\n{st.global.u32 [v], 1;ret;}\n";
  for (const ColoredModule& made :
       {test::colored(text, {.places = PlacesAtLoad{}}), test::colored(text, test::with_places)}) {
    EXPECT_TRUE(check_accepted(made.kernels, "t.ptx"));
    EXPECT_EQ(made.module.kernels().size(), 1U);
  }
}

// Nothing may be thought to lie where it does not.
TEST(ColoredVariables, places_that_are_given_where_they_are_set_at_load_are_refused) {
  const Module module = test::parsed(test::preamble + test::colored_kernel("k", test::plain_store));
  const color::RemainderShape shape{8, 13, 9};
  EXPECT_TRUE(color::rewrite_remainders(module, shape));
  EXPECT_TRUE(color::rewrite_remainders(module, shape, {.places = PlacesAtLoad{}}));
  for (const ColoredPlaces& given : {ColoredPlaces{.variables = 16}, ColoredPlaces{.local = 16},
                                     ColoredPlaces{.local_threads = 1}}) {
    EXPECT_EQ(color::rewrite_remainders(module, shape, {.places = given}).error().message,
              "coloured addressing: leave out the places of variables and of local memory; they "
              "are set with the colours when the module is loaded");
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
  const color::RemainderConstants remainders{.arena = 4,
                                             .table = 5,
                                             .pages = 6,
                                             .before = 7,
                                             .end = 1,
                                             .reciprocal = 8,
                                             .reciprocal_shift = 1,
                                             .skipped = 9};
  constexpr std::uint64_t one = std::uint64_t{1} << 32U;
  EXPECT_EQ(words(colored_constants(places, std::as_bytes(std::span(&remainders, 1)))),
            (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, one + 7, one + 8, 9}));
  const auto made = color::rewrite_remainders(
      test::parsed(test::preamble + test::colored_kernel("k", test::plain_store)),
      color::RemainderShape{8, 13, 9});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->module.variables[0].byte_size(), 72U);
  EXPECT_EQ(made->module.variables[0].name, colored_constants_name);
}

TEST(ColoredVariables, those_that_cannot_be_placed_refuse_the_kernels_that_name_them) {
  const auto said = [](const std::string& declaration, const std::string& more = "") {
    return test::verdict(
        test::preamble + declaration + more +
            test::colored_kernel("k", "mov.u64 %rd1, v;\nld.global.u32 %r1, [%rd1];"),
        test::with_places);
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
    return test::verdict(
        test::preamble + declarations +
            test::colored_kernel("k", "ld.const.u64 %rd1, [c];\nld.global.u32 %r1, [%rd1];"),
        test::with_places);
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
      test::colored_kernel("gone", test::plain_store) +
      test::colored_kernel("k",
                           "ld.const.u64 %rd1, [begin];\nld.const.u64 %rd2, [%rd1];\n"
                           "ld.const.u32 %r1, [%rd2];");
  const ColoredModule made =
      test::colored(text, {.places = ColoredPlaces{0x100000, 0x200000, 64}, .kernels = {"k"}});
  ASSERT_EQ(made.kernels.size(), 1U);
  EXPECT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "t.ptx");
  std::vector<std::string_view> names;
  for (const Variable& variable : made.module.variables) names.push_back(variable.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"end", "middle", "begin"}));
}

TEST(ColoredVariables, addresses_in_other_places_are_refused) {
  EXPECT_NE(
      test::verdict(test::preamble + ".global .u32 v;\n" +
                        test::colored_kernel("k", "mov.u32 %r1, v;\nadd.s64 %rd2, %rd1, v+4;"),
                    test::with_places)
          .find("uses the address of a variable in a way that cannot be followed"),
      std::string::npos);
}

TEST(ColoredVariables, one_sided_rewriting_refuses_them) {
  const std::string text =
      test::preamble + ".global .u32 v;\n" + test::colored_kernel("k", "st.global.u32 [v], 1;");
  ColoredOptions one_side = test::with_places;
  one_side.accesses = ColoredAccesses::stores;
  EXPECT_NE(
      test::verdict(text, one_side).find("whose place is known only if all accesses are rewritten"),
      std::string::npos);
}

TEST(ColoredVariables, those_in_local_memory_of_the_module_are_refused) {
  const auto said = [](const std::string& declaration) {
    return test::verdict(
        test::preamble + declaration + test::colored_kernel("k", "ld.u32 %r1, [v];"),
        test::with_places);
  };
  EXPECT_NE(
      said(".local .u32 v;\n").find("the variable 'v' lies in local memory of the whole module"),
      std::string::npos);
  EXPECT_NE(
      said(".global .u8 v[5000000000] = {1};\n").find("has an initialiser that cannot be read"),
      std::string::npos);
  EXPECT_NE(said(".shared .u32 v;\n").find("accesses a variable in a way that cannot be followed"),
            std::string::npos);
  EXPECT_EQ(said(".global .u32 v[] = {1, 2};\n"), "accepted");
}

const std::string keeps =
    ".local .align 16 .b8 depot[40];\nmov.b64 %rd1, depot;\ncvta.local.u64 %rd2, %rd1;\n"
    "st.local.u32 [%rd1+4], 1;\nst.u32 [%rd2+8], 2;\nst.local.u32 [depot+12], 3;\n";

TEST(ColoredLocals, a_thread_has_its_place_in_coloured_memory) {
  const std::string text = test::preamble + test::colored_kernel("k", keeps);
  const auto needs = find_colored_needs(test::parsed(text));
  ASSERT_TRUE(needs);
  EXPECT_EQ(needs->local_bytes, 48U);
  EXPECT_EQ(needs->kernels[0].local_bytes, 48U);
  const ColoredModule made = test::colored(text, test::with_places);
  ASSERT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "t.ptx");
  const std::string& out = *made.module.text;
  EXPECT_NE(out.find("add.s64 \t%rd1, %demarc_frame, 0;"), std::string::npos) << out;
  EXPECT_NE(out.find("mov.b64 \t%rd2, %rd1;"), std::string::npos);
  EXPECT_NE(out.find("add.s64 \t%demarc_a, %demarc_frame, 12;"), std::string::npos);
  EXPECT_EQ(out.find(".local"), std::string::npos);
  EXPECT_NE(test::verdict(test::preamble + test::colored_kernel("k", keeps))
                .find("'k' has 48 bytes of local variables per thread, for which no coloured "
                      "memory is given"),
            std::string::npos);
}

TEST(ColoredLocals, declarations_go_with_all_their_variables) {
  const ColoredModule made = test::colored(
      test::preamble +
          test::colored_kernel("k", ".local .b32 a, b;\n.local .b64 c<2>;\nst.local.u32 [b], 1;\n"),
      test::with_places);
  EXPECT_TRUE(made.kernels[0].accepted());
  EXPECT_EQ(made.module.text->find(".local"), std::string::npos) << *made.module.text;
}

TEST(ColoredLocals, functions_lie_behind_their_callers_and_beside_each_other) {
  const auto function = [](const std::string& name, const std::string& size,
                           const std::string& body) {
    return ".func " + name + "()\n{\n.reg .b64 %rd<3>;\n.local .align 8 .b8 depot[" + size +
           "];\nmov.b64 %rd1, depot;\n" + body + "ret;\n}\n";
  };
  const auto needs = find_colored_needs(
      test::parsed(test::preamble + function("leaf", "16", "") +
                   function("left", "32", "call leaf, ();\n") + function("right", "64", "") +
                   test::colored_kernel("k", keeps + "call left, ();\ncall right, ();\n") +
                   test::colored_kernel("leafy", "call leaf, ();\n") +
                   test::colored_kernel("plain", test::plain_store)));
  ASSERT_TRUE(needs);
  EXPECT_EQ(needs->kernels[0].local_bytes, 48U + 64U);
  EXPECT_EQ(needs->kernels[1].local_bytes, 48U + 32U + 16U);
  EXPECT_EQ(needs->kernels[2].local_bytes, 0U);
  EXPECT_EQ(needs->local_bytes, 112U);
}

TEST(ColoredLocals, addresses_of_32_bits_are_refused_where_there_are_no_variables) {
  EXPECT_NE(test::verdict(test::preamble + test::colored_kernel("k", "st.local.u32 [%r1], 1;"),
                          test::with_places)
                .find("has an address of 32 bits, which cannot be coloured"),
            std::string::npos);
}

// Each is an offset from the frame in a function that has such addresses.
const std::string keeps_shortly =
    ".local .align 16 .b8 depot[40];\nmov.b32 %r1, depot+4;\nst.local.u32 [%r1+8], 1;\n";

TEST(ColoredLocals, addresses_of_32_bits_are_offsets_where_they_come_from_variables) {
  const ColoredModule made = test::colored(
      test::preamble +
          test::colored_kernel("k", keeps_shortly + "mov.b64 %rd1, depot;\ncvta.local.u64 %rd2, "
                                                    "%rd1;\ncvta.to.local.u64 %rd3, %rd2;\n"
                                                    "cvta.local.u64 %rd4, depot;\n"
                                                    "ld.local.u32 %r2, [%rd3+4];\n"),
      test::with_places);
  ASSERT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "t.ptx");
  for (const char* line :
       {"mov.b32 \t%r1, 4;",
        "mad.wide.s32 \t%demarc_a, %r1, 1, %demarc_frame;\n\tadd.s64 \t%demarc_a, %demarc_a, 8;",
        "mov.b64 \t%rd1, 0;", "add.s64 \t%rd2, %rd1, %demarc_frame;",
        "sub.s64 \t%rd3, %rd2, %demarc_frame;", "add.s64 \t%rd4, %demarc_frame, 0;",
        "add.s64 \t%demarc_a, %rd3, %demarc_frame;\n\tadd.s64 \t%demarc_a, %demarc_a, 4;"}) {
    EXPECT_NE(made.module.text->find(line), std::string::npos) << line << *made.module.text;
  }
}

TEST(ColoredLocals, addresses_of_32_bits_stay_in_their_function) {
  const std::string callee = ".func f()\n{\n.reg .b32 %r<3>;\n";
  EXPECT_NE(test::verdict(test::preamble + callee + keeps_shortly + "ret;\n}\n" +
                              test::colored_kernel("k", "call f, ();\n"),
                          test::with_places)
                .find("'f' keeps addresses of local variables in 32 bits"),
            std::string::npos);
  EXPECT_NE(test::verdict(test::preamble + callee + "ret;\n}\n" +
                              test::colored_kernel("k", keeps_shortly + "call f, ();\n"),
                          test::with_places)
                .find("calls a function of the module where addresses of local variables have"),
            std::string::npos);
  EXPECT_NE(test::verdict(test::preamble + ".global .u32 v;\n" +
                              test::colored_kernel("k", "mov.b32 %r1, v;\n"),
                          test::with_places)
                .find("uses the address of a variable in a way that cannot be followed"),
            std::string::npos);
}

TEST(ColoredLocals, questions_about_their_window_are_refused_where_there_are_any) {
  const std::string question = "isspacep.local %p1, %rd1;";
  EXPECT_NE(
      test::verdict(test::preamble + test::colored_kernel("k", keeps + question), test::with_places)
          .find("asks whether an address lies in local memory"),
      std::string::npos);
  EXPECT_EQ(test::verdict(test::preamble + test::colored_kernel("k", question)), "accepted");
}

TEST(ColoredLocals, what_the_driver_keeps_on_its_stack_is_refused) {
  const std::string text =
      test::preamble + ".func f(.param .b64 a)\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, a;\nret;\n}\n" +
      test::colored_kernel("k", "{\n.param .b64 x;\ncall f, (x);\n}\n");
  EXPECT_NE(test::verdict(text).find("takes the address of a parameter"), std::string::npos);
}

}  // namespace
}  // namespace demarc::ptx
