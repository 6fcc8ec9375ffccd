// demarc rewrite, as a user calls it.
#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

std::string vecadd() {
  return (source_dir() / "kernels/ptx/vecadd.ptx").string();
}

std::string refusal(const std::vector<std::string>& arguments) {
  const Outcome outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  return outcome.err;
}

TEST(RewriteVerb, what_it_has_rewritten_parses_and_is_refused_the_next_time) {
  const std::string out = (fresh_folder("rewrite_verb") / "colored.ptx").string();
  const Outcome first = run_demarc(
      {"rewrite", vecadd(), "--affine", "--color-mask", "0xc4000", "--color", "1", "-o", out});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(run_demarc({"ptx", out}).exit_code, 0);
  EXPECT_NE(refusal({"rewrite", out, "--color-mask", "0xc4000"})
                .find("'vecadd' is coloured already (it has '%demarc_a') and cannot be coloured"),
            std::string::npos);
  EXPECT_NE(refusal({"rewrite", out, "--affine"}).find("cannot be made SM-affine"),
            std::string::npos);
}

TEST(RewriteVerb, a_colour_beyond_the_masks_or_without_masks_is_refused) {
  EXPECT_NE(refusal({"rewrite", vecadd(), "--color-mask", "0xc4000", "--color", "2"})
                .find("there is no colour 2; the colours of 1 mask are 0 to 1"),
            std::string::npos);
  EXPECT_NE(refusal({"rewrite", vecadd(), "--affine", "--color", "1"})
                .find("--color requires --color-mask"),
            std::string::npos);
  EXPECT_NE(refusal({"rewrite", vecadd()}).find("say what to add"), std::string::npos);
  EXPECT_NE(refusal({"rewrite", "--affine"}).find("ptx is required"), std::string::npos);
  for (const std::vector<std::string>& alone : {std::vector<std::string>{"--kernel", "vecadd"},
                                                std::vector<std::string>{"--silence-printf"}}) {
    std::vector<std::string> arguments{"rewrite", vecadd(), "--affine"};
    arguments.insert(arguments.end(), alone.begin(), alone.end());
    EXPECT_NE(refusal(arguments).find("go with --colors, --color-mask or --needs"),
              std::string::npos);
  }
}

TEST(RewriteVerb, a_simulated_card_with_another_description_is_refused) {
  EXPECT_NE(refusal({"rewrite", vecadd(), "--colors", "2/2", "--device", "sim:h100-sxm",
                     "--description", "gtx1080"})
                .find("--description: sim:h100-sxm has a description of its own"),
            std::string::npos);
}

// The H100's colours are parities, known from its description; those of the H200 are known when the
// module is loaded.
TEST(RewriteVerb, a_colour_of_a_card_is_taken_from_its_description) {
  const Outcome by_mask =
      run_demarc({"rewrite", vecadd(), "--color-mask", "0xc4000", "--color", "1"});
  for (const std::vector<std::string>& card :
       {std::vector<std::string>{"--description", "h100-sxm"}, {"--device", "sim:h100-sxm"}}) {
    std::vector<std::string> arguments{"rewrite", vecadd(), "--colors", "2/2", "--stats"};
    arguments.insert(arguments.end(), card.begin(), card.end());
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, by_mask.out);
    EXPECT_EQ(outcome.err, "vecadd: 3 accesses translated, 3 (100 %) with the full translation\n" +
                               vecadd() + ": 22 instructions before, 64 now\n");
  }
  const Outcome later =
      run_demarc({"rewrite", vecadd(), "--colors", "1/2", "--description", "h200"});
  EXPECT_EQ(later.exit_code, 0) << later.err;
  EXPECT_EQ(later.err, "");
  EXPECT_NE(later.out.find(".visible .const .align 8 .b8 demarc_colors[72];"), std::string::npos);
  EXPECT_NE(later.out.find("[demarc_colors+"), std::string::npos);
}

// Its kernels pass the L1 by, and have policies on a card that knows them.
TEST(RewriteVerb, a_module_for_an_older_target_is_made_for_the_card_that_is_named) {
  const std::string stress = (test::source_dir() / "kernels" / "ptx" / "stress.ptx").string();
  const Outcome unknown =
      run_demarc({"rewrite", stress, "--color-mask", "0xc4000", "--color", "1"});
  EXPECT_EQ(unknown.exit_code, 0) << unknown.err;
  EXPECT_NE(unknown.out.find(".target sm_75"), std::string::npos);
  EXPECT_EQ(unknown.out.find("createpolicy"), std::string::npos);
  const Outcome known =
      run_demarc({"rewrite", stress, "--colors", "2/2", "--description", "h100-sxm"});
  EXPECT_EQ(known.exit_code, 0) << known.err;
  EXPECT_NE(known.out.find(".target sm_80"), std::string::npos);
  EXPECT_NE(known.out.find("createpolicy"), std::string::npos);
}

TEST(RewriteVerb, a_colour_that_no_card_has_is_refused) {
  const auto said = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"rewrite", vecadd()});
    return refusal(more);
  };
  for (const char* wrong : {"1", "x/2", "3/2", "0/2", "1/65", "1/"}) {
    EXPECT_NE(said({"--colors", wrong, "--description", "h200"})
                  .find(std::string("--colors: '") + wrong + "'"),
              std::string::npos)
        << wrong;
  }
  EXPECT_NE(said({"--colors", "1/3", "--description", "h100-sxm"})
                .find("divides its memory into 4 colours, not 3"),
            std::string::npos);
  EXPECT_NE(said({"--colors", "1/2"}).find("--colors needs a card"), std::string::npos);
  EXPECT_NE(said({"--colors", "1/2", "--description", "no-such"}).find("no-such"),
            std::string::npos);
  for (const std::vector<std::string>& alone : {std::vector<std::string>{"--allow-refused"},
                                                {"--stats"},
                                                {"--variables-at", "0x10"},
                                                {"--places-at-load"},
                                                {"--local-at", "0x10", "--local-threads", "1"}}) {
    std::vector<std::string> arguments{"--affine"};
    arguments.insert(arguments.end(), alone.begin(), alone.end());
    EXPECT_NE(said(arguments).find("go with --colors or --color-mask"), std::string::npos)
        << alone[0];
  }
  // As many as can be asked for, but not of this card.
  const Outcome most =
      run_demarc({"rewrite", vecadd(), "--colors", "1/64", "--description", "h200"});
  EXPECT_EQ(most.exit_code, 2);
  EXPECT_NE(most.err.find("64 colours are not possible; only 6 runs"), std::string::npos)
      << most.err;
}

TEST(RewriteVerb, options_that_need_or_exclude_each_other_are_refused_by_name) {
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"--affine", "--device", "sim:h100-sxm"}, "--device requires --colors"},
      {{"--affine", "--description", "h100-sxm"}, "--description requires --colors"},
      {{"--color-mask", "0xc4000", "--local-threads", "4"}, "--local-threads requires --local-at"},
      {{"--color-mask", "0xc4000", "--local-at", "0x10"}, "--local-at requires --local-threads"},
      {{"--color-mask", "0xc4000", "--needs"}, "--color-mask excludes --needs"},
      {{"--colors", "1/2", "--description", "h200", "--needs"}, "--colors excludes --needs"},
      {{"--colors", "1/2", "--description", "h200", "--color-mask", "0xc4000"},
       "--colors excludes --color-mask"}};
  for (const auto& [arguments, told] : wrong) {
    std::vector<std::string> all{"rewrite", vecadd()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const std::string said = refusal(all);
    EXPECT_NE(said.find(told), std::string::npos) << said;
  }
}

TEST(RewriteVerb, the_first_colour_is_the_one_without_a_number) {
  const Outcome first =
      run_demarc({"rewrite", vecadd(), "--color-mask", "0xc4000", "--color", "0"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(run_demarc({"rewrite", vecadd(), "--color-mask", "0xc4000"}).out, first.out);
  EXPECT_NE(run_demarc({"rewrite", vecadd(), "--color-mask", "0xc4000", "--color", "1"}).out,
            first.out);
}

TEST(RewriteVerb, a_kernel_that_prints_is_coloured_once_it_is_silenced) {
  const auto path = fresh_folder("rewrite_prints") / "prints.ptx";
  ASSERT_TRUE(
      write_file(path,
                 ".version 8.0\n.target sm_90\n.address_size 64\n"
                 ".extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 list);\n"
                 ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"
                 "ld.param.u64 %rd1, [p];\n{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n"
                 "st.param.b64 [a], %rd1;\nst.param.b64 [b], 0;\n"
                 "call.uni (c), vprintf, (a, b);\nld.param.b32 %r1, [c];\n}\n"
                 "ret;\n}\n"));
  std::vector<std::string> arguments{"rewrite", path.string(), "--color-mask", "0xc4000"};
  EXPECT_NE(refusal(arguments).find("kernel 'k'"), std::string::npos);
  arguments.emplace_back("--silence-printf");
  const Outcome silent = run_demarc(arguments);
  EXPECT_EQ(silent.exit_code, 0) << silent.err;
}

// One kernel with a variable and local memory, one that cannot be coloured.
std::string kept_and_refused() {
  const auto path = fresh_folder("rewrite_verb") / "two.ptx";
  EXPECT_TRUE(write_file(
      path,
      ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 v = 3;\n"
      ".visible .entry good(.param .u64 p)\n{\n.local .b8 own[20];\n"
      "st.global.u32 [v], 1;\nst.local.u8 [own], 1;\nret;\n}\n"
      ".visible .entry bad(.param .u64 p)\n{\n.reg .b64 %rd<2>; prefetchu.L1 [%rd1];\nret;\n}\n"));
  return path.string();
}

TEST(RewriteVerb, a_refused_kernel_is_an_error_by_line_unless_it_may_be_left_out) {
  const std::string in = kept_and_refused();
  const std::vector<std::string> places{"--variables-at", "0x1000",          "--local-at",
                                        "0x2000",         "--local-threads", "64"};
  std::vector<std::string> arguments{"rewrite", in, "--color-mask", "0xc4000"};
  arguments.insert(arguments.end(), places.begin(), places.end());
  const std::string reason =
      in + ":14: kernel 'bad': 'prefetchu.L1 [%rd1];' addresses memory in a way";
  EXPECT_NE(refusal(arguments).find(reason), std::string::npos);
  arguments.emplace_back("--allow-refused");
  const Outcome without = run_demarc(arguments);
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_NE(without.err.find(reason), std::string::npos);
  EXPECT_NE(without.out.find(".entry good"), std::string::npos);
  EXPECT_EQ(without.out.find(".entry bad"), std::string::npos);
  std::vector<std::string> crowd = arguments;
  *(std::find(crowd.begin(), crowd.end(), "--local-threads") + 1) = "128";
  EXPECT_NE(run_demarc(crowd).out, without.out) << "how many threads there is room for is checked";
  arguments.back() = "--kernel";
  arguments.emplace_back("good");
  const Outcome chosen = run_demarc(arguments);
  EXPECT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_EQ(chosen.out, without.out);
  arguments.back() = "bad";
  EXPECT_NE(refusal(arguments).find(reason), std::string::npos);
}

TEST(RewriteVerb, memory_that_is_missing_or_crooked_is_refused) {
  const std::string in = kept_and_refused();
  const auto said = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"rewrite", in,         "--color-mask",
                                       "0xc4000", "--kernel", "good"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return refusal(arguments);
  };
  EXPECT_NE(said({}).find("'st.global.u32 [v], 1;' uses the variable 'v', for which no coloured "
                          "memory is given"),
            std::string::npos);
  EXPECT_NE(said({"--variables-at", "0x1000"})
                .find("'good' has 32 bytes of local variables per thread, for which no coloured "
                      "memory is given"),
            std::string::npos);
  EXPECT_NE(
      said({"--variables-at", "0x1008"}).find("--variables-at: 0x1008 is not a multiple of 16"),
      std::string::npos);
  EXPECT_NE(said({"--local-at", "0x1000"}).find("--local-threads"), std::string::npos);
  EXPECT_NE(said({"--variables-at", "0"}).find("--variables-at: no memory has the address 0"),
            std::string::npos);
}

TEST(RewriteVerb, places_are_refused_where_they_are_set_when_the_module_is_loaded) {
  for (const std::vector<std::string>& place :
       {std::vector<std::string>{"--variables-at", "0x1000"},
        {"--local-at", "0x1000", "--local-threads", "64"}}) {
    std::vector<std::string> arguments{
        "rewrite", kept_and_refused(), "--colors", "1/2", "--description",
        "h200",    "--kernel",         "good"};
    const Outcome without = run_demarc(arguments);
    EXPECT_EQ(without.exit_code, 0) << without.err;
    EXPECT_NE(without.out.find("[demarc_colors+0]"), std::string::npos) << without.out;
    arguments.insert(arguments.end(), place.begin(), place.end());
    EXPECT_NE(refusal(arguments).find(
                  "NVIDIA H200 does not support --variables-at and --local-at: there these places "
                  "are set when the module is loaded, in its variable 'demarc_colors'"),
              std::string::npos)
        << refusal(arguments);
  }
}

// The text of parities names no arena, and no places either then: it is the same for all.
TEST(RewriteVerb, places_in_parities_can_be_left_to_whoever_loads_the_module) {
  for (const std::vector<std::string>& colors :
       {std::vector<std::string>{"--color-mask", "0xc4000", "--color", "1"},
        {"--colors", "2/2", "--description", "h100-sxm"}}) {
    std::vector<std::string> arguments{"rewrite", kept_and_refused(), "--kernel", "good",
                                       "--places-at-load"};
    arguments.insert(arguments.end(), colors.begin(), colors.end());
    const Outcome outcome = run_demarc(arguments);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(".visible .const .align 8 .b8 demarc_colors[24];"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("[demarc_colors+0]"), std::string::npos);
    EXPECT_NE(outcome.out.find("[demarc_colors+8]"), std::string::npos);
    for (const std::vector<std::string>& place :
         {std::vector<std::string>{"--variables-at", "0x1000"},
          {"--local-at", "0x1000", "--local-threads", "64"}}) {
      std::vector<std::string> both = arguments;
      both.insert(both.end(), place.begin(), place.end());
      EXPECT_NE(refusal(both).find(place[0] + " excludes --places-at-load"), std::string::npos)
          << refusal(both);
    }
  }
  // Those of remainders are always.
  const std::vector<std::string> remainders{
      "rewrite", kept_and_refused(), "--kernel", "good", "--colors",
      "1/2",     "--description",    "h200"};
  std::vector<std::string> said = remainders;
  said.emplace_back("--places-at-load");
  EXPECT_EQ(run_demarc(said).exit_code, 0);
  EXPECT_EQ(run_demarc(said).out, run_demarc(remainders).out);
}

TEST(RewriteVerb, stats_say_how_many_accesses_pay_the_full_price) {
  const auto path = fresh_folder("rewrite_stats") / "k.ptx";
  ASSERT_TRUE(write_file(path,
                         ".version 8.0\n.target sm_90\n.address_size 64\n"
                         ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>;\n"
                         ".reg .b32 %r<2>;\nld.param.u64 %rd1, [p];\n"
                         "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1+4], %r1;\n"
                         "st.global.u32 [%rd1], 1;\nret;\n}\n"
                         ".visible .entry idle()\n{\nret;\n}\n"));
  for (const std::vector<std::string>& colors :
       {std::vector<std::string>{"--color-mask", "0xc4000"},
        {"--colors", "2/2", "--description", "h100-sxm"},
        {"--colors", "2/2", "--description", "h200"}}) {
    std::vector<std::string> arguments{"rewrite", path.string(), "--stats"};
    arguments.insert(arguments.end(), colors.begin(), colors.end());
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(
        outcome.err.starts_with("k: 3 accesses translated, 2 (67 %) with the full "
                                "translation\nidle: 0 accesses translated\n"))
        << outcome.err;
  }
}

TEST(RewriteVerb, needs_are_listed_as_json) {
  const Outcome outcome = run_demarc({"rewrite", kept_and_refused(), "--needs"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part :
       {"\"schema\": \"demarc.rewrite.needs/1\"", "\"name\": \"good\"", "\"local_bytes\": 32",
        "\"accepted\": false", "\"line\": 14", "\"variables_bytes\": 4", "\"name\": \"v\""}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << outcome.out;
  }
}

TEST(RewriteVerb, a_rewriting_that_fails_leaves_the_file_as_it_was) {
  const auto out = fresh_folder("rewrite_verb") / "kept.ptx";
  ASSERT_TRUE(write_file(out, "kept"));
  (void)refusal({"rewrite", vecadd(), "--color-mask", "0xc4000", "--color", "2", "-o", out});
  EXPECT_EQ(read_file(out).value(), "kept");
}

}  // namespace
}  // namespace demarc::test
