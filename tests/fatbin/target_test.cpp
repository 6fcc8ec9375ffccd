// Targets, and the PTX that a card can use.
#include "demarc/fatbin/target.hpp"

#include <gtest/gtest.h>

#include "demarc/fatbin/best_ptx.hpp"
#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

bool runs(std::uint32_t sm, std::string_view target) {
  return runs_ptx(sm, parse_target(target).value());
}

// PTX for that target, as an entry of a made fat binary.
MadeEntry ptx_for(std::string_view target) {
  const Target parsed = parse_target(target).value();
  constexpr std::uint64_t scope_flags[] = {0, 0x20'0000, 0x10'0000};
  return {.sm = parsed.sm,
          .flags = 0x11 | scope_flags[static_cast<std::size_t>(parsed.scope)],
          .content = fmt::format(".version 8.0\n.target {}\n.address_size 64\n", target)};
}

// The name of the best target, or why there is none.
std::string best_of(const std::vector<MadeEntry>& entries, std::uint32_t sm) {
  const std::string bytes = made_fat_binary(entries);
  const auto image = image_in(bytes, "f");
  EXPECT_TRUE(image) << message_of(image);
  const auto best = best_ptx(*image, sm, "f");
  return best ? name(best->target) : best.error().message;
}

TEST(Targets, names_and_targets_are_each_others_inverse) {
  for (const char* text : {"sm_75", "sm_90a", "sm_100f", "sm_121"})
    EXPECT_EQ(name(parse_target(text).value()), text);
}

TEST(Targets, what_is_no_target_is_refused) {
  for (const char* text : {"", "sm_", "sm_a", "90", "compute_90", "sm_90x", "sm_90aa", "sm_90 ",
                           "sm_1000", "sm_99999999999999999999", "SM_90"}) {
    EXPECT_EQ(message_of(parse_target(text)),
              fmt::format("'{}' is not a target; one is sm_90, sm_90a or sm_100f", text));
  }
}

TEST(Targets, ptx_runs_on_its_own_and_on_later_architectures) {
  EXPECT_TRUE(runs(90, "sm_90"));
  EXPECT_TRUE(runs(121, "sm_90"));
  EXPECT_FALSE(runs(89, "sm_90"));
}

TEST(Targets, ptx_for_one_architecture_runs_on_no_other) {
  EXPECT_TRUE(runs(90, "sm_90a"));
  EXPECT_FALSE(runs(100, "sm_90a"));
  EXPECT_FALSE(runs(103, "sm_100a"));
  EXPECT_FALSE(runs(89, "sm_90a"));
}

TEST(Targets, ptx_for_a_family_runs_on_its_members_alone) {
  EXPECT_TRUE(runs(100, "sm_100f"));
  EXPECT_TRUE(runs(103, "sm_100f"));
  EXPECT_FALSE(runs(101, "sm_100f"));
  EXPECT_FALSE(runs(110, "sm_100f"));
  EXPECT_FALSE(runs(120, "sm_100f"));
  EXPECT_TRUE(runs(121, "sm_120f"));
  EXPECT_FALSE(runs(100, "sm_103f"));
  EXPECT_TRUE(runs(103, "sm_103f"));
}

TEST(BestPtx, the_highest_target_that_runs_is_taken_wherever_it_stands) {
  EXPECT_EQ(best_of({ptx_for("sm_75"), ptx_for("sm_90"), ptx_for("sm_80")}, 90), "sm_90");
  EXPECT_EQ(best_of({ptx_for("sm_75"), ptx_for("sm_90"), ptx_for("sm_80")}, 89), "sm_80");
  EXPECT_EQ(best_of({ptx_for("sm_90a"), ptx_for("sm_80")}, 90), "sm_90a");
  EXPECT_EQ(best_of({ptx_for("sm_90a"), ptx_for("sm_80")}, 100), "sm_80");
  EXPECT_EQ(best_of({ptx_for("sm_90a"), ptx_for("sm_90")}, 90), "sm_90a");
  EXPECT_EQ(best_of({ptx_for("sm_100f"), ptx_for("sm_100a"), ptx_for("sm_100")}, 100), "sm_100a");
  EXPECT_EQ(best_of({ptx_for("sm_100f"), ptx_for("sm_100a"), ptx_for("sm_100")}, 103), "sm_100f");
}

TEST(BestPtx, text_and_options_are_those_of_the_entry) {
  const std::string bytes = kept_file("options.fatbin");
  const auto best = best_ptx(*image_in(bytes, "f"), 90, "f");
  ASSERT_TRUE(best) << message_of(best);
  EXPECT_EQ(best->options, " -maxrregcount=32 ");
  EXPECT_NE(best->text.find(".target sm_80"), std::string::npos);
}

TEST(BestPtx, machine_code_alone_is_an_error_that_names_its_targets) {
  const std::string bytes = kept_file("elf_only.fatbin");
  const auto none = best_ptx(*image_in(bytes, "f"), 90, "f");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(none.error().message,
            "f: has no PTX that sm_90 can run; there is machine code for sm_75, sm_90a, sm_100");
  const std::string both = kept_file("zstd.fatbin");
  EXPECT_EQ(message_of(best_ptx(*image_in(both, "f"), 80, "f")),
            "f: has no PTX that sm_80 can run; there is PTX for sm_90; machine code for sm_75, "
            "sm_90");
  EXPECT_EQ(best_of({}, 90), "f: has no PTX that sm_90 can run; there is nothing");
}

TEST(BestPtx, a_cubin_has_none_and_says_what_it_is_for) {
  for (const auto& [file, sm] : {std::pair{"counted_75.cubin", 75},
                                 {"counted_100.cubin", 100},
                                 {"counted_11.8_80.cubin", 80}}) {
    const std::string bytes = kept_file(file);
    EXPECT_EQ(message_of(best_ptx(*image_in(bytes, "f"), 90, "f")),
              fmt::format("f: has no PTX that sm_90 can run; there is machine code for sm_{}", sm));
  }
}

TEST(BestPtx, a_text_is_taken_where_its_target_runs) {
  const Image text{ImageKind::ptx, small_ptx, {}};
  const auto best = best_ptx(text, 90, "f");
  ASSERT_TRUE(best) << message_of(best);
  EXPECT_EQ(best->text, small_ptx);
  EXPECT_EQ(name(best->target), "sm_80");
  EXPECT_EQ(message_of(best_ptx(text, 75, "f")),
            "f: has no PTX that sm_75 can run; there is PTX for sm_80");
}

TEST(BestPtx, the_target_stands_behind_the_version_whatever_comments_say) {
  const auto target_of = [](std::string_view text) {
    const auto best = best_ptx(Image{ImageKind::ptx, text, {}}, 90, "f");
    return best ? name(best->target) : best.error().message;
  };
  EXPECT_EQ(target_of("// .target sm_10\n.version 8.0 .target/**/sm_90a, debug\n"), "sm_90a");
  EXPECT_EQ(target_of(".version 8.0 // .target sm_10\n /* .target sm_20 */ .target sm_90"),
            "sm_90");
  EXPECT_EQ(target_of(".version 8.0\n.address_size 64\n.target sm_90"),
            "f: PTX without '.target' behind its '.version'");
  EXPECT_EQ(target_of(".version 8.0\n"), "f: PTX without '.target' behind its '.version'");
  EXPECT_EQ(target_of(".version 8.0\n.target gpu\n"),
            "f: 'gpu' is not a target; one is sm_90, sm_90a or sm_100f");
}

TEST(BestPtx, a_text_for_another_target_than_its_entry_is_refused) {
  MadeEntry entry = ptx_for("sm_90a");
  entry.flags = 0x11;
  EXPECT_EQ(best_of({entry}, 90), "f: entry 0: is PTX for sm_90, but its text says sm_90a");
}

TEST(BestPtx, two_of_the_same_target_are_refused) {
  EXPECT_EQ(best_of({ptx_for("sm_80"), ptx_for("sm_80")}, 90),
            "f: entry 0 and f: entry 1 are both PTX for sm_80: it is not known which one is meant");
  EXPECT_EQ(best_of({ptx_for("sm_75"), ptx_for("sm_80"), ptx_for("sm_80")}, 75), "sm_75");
}

// A program linked with nvcc -rdc=true.
Result<PtxCode> best_of_linked(const std::vector<std::string>& from) {
  const std::string linked = kept_file("zstd.fatbin");
  Image image = *image_in(linked, "f");
  for (const std::string& bytes : from) image.prelinked.emplace_back(bytes);
  return best_ptx(image, 90, "f");
}

TEST(BestPtx, what_was_linked_from_one_is_that_one) {
  const auto best = best_of_linked({made_fat_binary({ptx_for("sm_75"), ptx_for("sm_80")})});
  ASSERT_TRUE(best) << message_of(best);
  EXPECT_EQ(name(best->target), "sm_80");
}

TEST(BestPtx, what_was_linked_from_several_is_refused) {
  const std::string part = made_fat_binary({ptx_for("sm_80")});
  const auto best = best_of_linked({part, part});
  ASSERT_FALSE(best);
  EXPECT_EQ(best.error().kind, ErrorKind::missing_capability);
  EXPECT_NE(best.error().message.find("was linked from 2 fat binaries"), std::string::npos);
}

TEST(Targets, machine_code_runs_on_later_minor_versions_of_its_own_major_one) {
  const auto runs = [](std::uint32_t sm, std::string_view target) {
    return runs_machine_code(sm, parse_target(target).value());
  };
  EXPECT_TRUE(runs(80, "sm_80"));
  EXPECT_TRUE(runs(86, "sm_80"));
  EXPECT_FALSE(runs(80, "sm_86"));
  EXPECT_FALSE(runs(90, "sm_80"));
  EXPECT_FALSE(runs(75, "sm_80"));
  EXPECT_TRUE(runs(90, "sm_90a"));
  EXPECT_FALSE(runs(103, "sm_100a")) << "on its own architecture alone";
  EXPECT_FALSE(runs(103, "sm_100f")) << "what a family's members are is not said for machine code";
}

}  // namespace
}  // namespace demarc::fatbin::test
