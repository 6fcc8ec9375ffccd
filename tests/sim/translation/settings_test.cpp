// The settings of the written-out applications: each is read, checked, echoed and documented.
#include "demarc/sim/translation/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/sim/translation/report.hpp"
#include "demarc/sim/translation/study.hpp"
#include "paths.hpp"
#include "translation/small_machine.hpp"

namespace demarc::sim::translation {
namespace {

using testing::HasSubstr;

// "KM" of "km_alu"; empty for a setting of the machine.
std::string application_of(std::string_view setting) {
  for (const ApplicationInfo& info : application_table()) {
    std::string prefix(info.name);
    for (char& letter : prefix) letter = static_cast<char>(std::tolower(letter));
    prefix += "_";
    if (setting.starts_with(prefix)) return std::string(info.name);
  }
  return {};
}

std::vector<const SettingInfo*> application_settings() {
  std::vector<const SettingInfo*> found;
  for (const SettingInfo& info : setting_table()) {
    if (!application_of(info.name).empty()) found.push_back(&info);
  }
  return found;
}

// Everything of an application that a setting can change, of its first work-group.
std::vector<std::uint64_t> fingerprint(const ApplicationInfo& info, const Settings& settings) {
  const auto application = info.make(settings);
  const auto kernels = application->kernels();
  std::vector<std::uint64_t> print{application->bytes(), kernels.size(), kernels[0].groups(),
                                   static_cast<std::uint64_t>(application->native_split())};
  MemoryInstruction one;
  for (std::uint32_t k = 0; k < std::min<std::size_t>(kernels.size(), 2); ++k) {
    for (std::uint32_t i = 0; application->instruction({k, 0, 0, i}, one); ++i) {
      print.push_back(one.alu);
      for (std::uint32_t l = 0; l < one.lines; ++l) print.push_back(one.line[l].raw());
    }
  }
  return print;
}

// Another value than the default, inside the range.
Settings with_another_value(const SettingInfo& info) {
  Settings settings;
  const bool choice = info.range.find('|') != std::string_view::npos;
  const std::string other = choice                            ? "roundrobin"
                            : info.name == "mp_multiple"      ? "32"
                            : info.name.ends_with("multiple") ? "64"
                            : info.get(Settings{}) == "7"     ? "8"
                                                              : "7";
  EXPECT_TRUE(info.set(settings, other)) << info.name;
  EXPECT_TRUE(validate(settings)) << info.name;
  return settings;
}

TEST(TranslationSettings, one_of_an_application_changes_that_application_and_no_other) {
  ASSERT_EQ(application_settings().size(), 21U);
  for (const SettingInfo* setting : application_settings()) {
    const Settings changed = with_another_value(*setting);
    for (const ApplicationInfo& info : application_table()) {
      EXPECT_EQ(fingerprint(info, changed) != fingerprint(info, Settings{}),
                application_of(setting->name) == info.name)
          << setting->name << " and " << info.name;
    }
  }
}

TEST(TranslationSettings, iterations_hold_for_every_iterative_application) {
  Settings settings;
  settings.iterations = 3;
  const auto kernels = [&](std::string_view name) {
    return (*make_application(name, settings))->kernels().size();
  };
  EXPECT_EQ(kernels("PR"), 3U);
  EXPECT_EQ(kernels("KM"), 1U + 3) << "it transposes first";
  EXPECT_EQ(kernels("FFT"), 3U);
  EXPECT_EQ(kernels("ST"), 3U);
  settings.iterations = 0;
  ASSERT_TRUE(apply_setting(settings, "pr_iterations=16"));
  EXPECT_EQ(kernels("PR"), 16U);
  EXPECT_EQ(kernels("ST"), 5U);
}

TEST(TranslationSettings, the_split_of_mp_counts_under_native_alone) {
  Settings settings = one_megabyte();
  settings.split = Split::native;
  const auto placed = [&] {
    return run_application(settings, Architecture::centralised, "MP").pages_owned;
  };
  const auto contiguous = placed();
  ASSERT_TRUE(apply_setting(settings, "mp_split=roundrobin"));
  const auto dealt = placed();
  EXPECT_NE(dealt, contiguous);
  settings.split = Split::contiguous;
  EXPECT_EQ(placed(), contiguous);
  settings.split = Split::roundrobin;
  ASSERT_TRUE(apply_setting(settings, "mp_split=contiguous"));
  EXPECT_EQ(placed(), dealt);
}

TEST(TranslationSettings, are_refused_without_a_value_or_with_the_start_of_one) {
  Settings settings;
  EXPECT_THAT(apply_setting(settings, "gpus").error().message, HasSubstr("NAME=VALUE"));
  EXPECT_THAT(apply_setting(settings, "topology=st").error().message,
              HasSubstr("'st' is not one of star|chain"));
}

TEST(TranslationSettings, of_applications_are_refused_outside_of_their_range) {
  Settings settings;
  EXPECT_EQ(apply_setting(settings, "pr_iterations=0").error().message,
            "pr_iterations: 0 is not within 1..1000");
  EXPECT_EQ(apply_setting(settings, "mt_multiple=32").error().message,
            "mt_multiple: 32 is not within 64..256");
  EXPECT_EQ(apply_setting(settings, "mp_split=native").error().message,
            "mp_split: 'native' is not one of roundrobin|contiguous|dim0");
}

TEST(TranslationSettings, that_index_by_bits_are_refused_unless_they_are_powers_of_two) {
  for (const std::string_view assignment :
       {"page_bytes=5000", "coalesced_lanes=48", "l1_tlb_sets=3", "l2_tlb_sets=3", "l1_bytes=5000",
        "l1_ways=3", "l2_banks=3", "l2_bank_bytes=20000", "dram_fetch_lines=3", "mp_multiple=100",
        "mt_multiple=100", "st_multiple=100"}) {
    Settings odd;
    ASSERT_TRUE(apply_setting(odd, assignment)) << assignment;
    const auto equals = assignment.find('=');
    EXPECT_EQ(validate(odd).error().message,
              fmt::format("{}: {} is not a power of two", assignment.substr(0, equals),
                          assignment.substr(equals + 1)));
  }
}

// The least data and the extremes of every range give applications with work in them.
TEST(TranslationSettings, no_value_within_its_range_leaves_an_application_without_work) {
  for (const SettingInfo* setting : application_settings()) {
    const auto dots = setting->range.find("..");
    if (dots == std::string_view::npos) continue;
    for (const std::string_view value :
         {setting->range.substr(0, dots), setting->range.substr(dots + 2)}) {
      Settings settings = one_megabyte();
      ASSERT_TRUE(setting->set(settings, value));
      const auto application = *make_application(application_of(setting->name), settings);
      EXPECT_GT(application->kernels()[0].groups(), 0U) << setting->name << "=" << value;
      MemoryInstruction first;
      EXPECT_TRUE(application->instruction({0, 0, 0, 0}, first));
      EXPECT_LT(application->bytes(), 2U << 20U) << setting->name << "=" << value;
    }
  }
}

TEST(TranslationSettings, all_are_echoed_in_text_and_json_of_a_run_and_of_the_study) {
  Settings settings = one_megabyte();
  settings.cus = 2;
  ASSERT_TRUE(apply_setting(settings, "rl_alu=9"));
  const auto run = compare(settings, {"RL"}, {Architecture::centralised});
  ASSERT_TRUE(run);
  Study study;
  study.runs.push_back({study_variants().front(), *run});
  for (const std::string& text : {to_text(*run), study_text(study)}) {
    for (const SettingInfo& info : setting_table()) {
      const std::string entry = fmt::format("{}={}", info.name, info.get(settings));
      EXPECT_THAT(" " + text, testing::ContainsRegex("[ \n]" + entry + "[ \n]"));
    }
  }
  const Json json = Json::parse(to_json(*run));
  for (const SettingInfo& info : setting_table())
    EXPECT_EQ(json["settings"][std::string(info.name)], info.get(settings));
  EXPECT_EQ(json["apps"][0]["bytes"], 1U << 20U);
  EXPECT_THAT(to_text(*run), HasSubstr("RL: 1048576 bytes of data"));
}

}  // namespace
}  // namespace demarc::sim::translation
