// demarc calibrate: a card, a simulated device or a file in, a device out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "kept.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The description of a GTX 1080 with so many SMs, two a GPC, and 256 KiB of L2.
Json small_card(unsigned sms) {
  Json card = read_json(source_dir() / "devices" / "gtx1080.json").value();
  card["sm"]["threads"] = 512;
  card["l2"]["size_bytes"] = 1 << 18;
  card["address_map"]["set_masks"] = Json::array();
  Json tpcs = Json::array();
  for (unsigned sm = 0; sm < sms; ++sm) {
    tpcs.push_back({{"gpc", sm / 2}, {"sms", Json::array({sm})}});
  }
  card["topology"]["tpcs"] = tpcs;
  return card;
}

class CalibrateVerb : public testing::Test {
 protected:
  std::string write(const std::string& name, const Json& json) const {
    const std::string path = (folder / name).string();
    EXPECT_TRUE(write_file(path, json_text(json)));
    return path;
  }
  void TearDown() override {
    ::unsetenv("DEMARC_LIBCUDA");
    ::unsetenv("DEMARC_CACHE");
  }
  void use_stand_in() const {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", (folder / "cache").c_str(), 1);
  }
  std::filesystem::path folder = fresh_folder("calibrate");
  std::string card = write("card.json", small_card(4));
  std::string out = (folder / "twin.json").string();
};

TEST_F(CalibrateVerb, help_is_as_it_was_read) {
  const Outcome help = run_demarc({"calibrate", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  expect_kept("cli/golden/calibrate_help.txt", help.out);
}

TEST_F(CalibrateVerb,
       fits_a_description_to_a_simulated_device_and_writes_one_that_can_be_simulated) {
  Json changed = small_card(4);
  changed["memory_system"]["store_registers"] = 40;
  changed["l2"]["latency_cycles"] = 300;
  const std::string json = (folder / "fit.json").string();
  const std::string figures = (folder / "figures.json").string();
  const Outcome fit =
      run_demarc({"calibrate", "--device", "sim:" + write("truth.json", changed), "--description",
                  card, "-o", out, "--json=" + json, "--save-figures", figures});
  ASSERT_EQ(fit.exit_code, 0) << fit.err;
  EXPECT_THAT(fit.out, HasSubstr("every figure is explained within 5 %\n"));
  const Json result = read_json(json).value();
  EXPECT_EQ(result["schema"], "demarc.calibrate/1");
  EXPECT_EQ(result["not_explained"], Json::array());
  EXPECT_EQ(result["tolerance"], 0.05);
  for (const Json& one : result["figures"]) {
    EXPECT_TRUE(one["explained"]) << one;
    EXPECT_LT(std::abs(one["residual"].get<double>()), 0.05) << one;
  }
  const Json twin = read_json(out).value();
  EXPECT_EQ(twin["memory_system"]["store_registers"], 40);
  EXPECT_NEAR(twin["l2"]["latency_cycles"].get<double>(), 300, 5);
  EXPECT_THAT(twin["memory_system"]["source"].get<std::string>(),
              HasSubstr("memory_system.store_registers to l2_write_one_sm"));
  const Outcome topo = run_demarc({"topo", "--device", "sim:" + out});
  EXPECT_EQ(topo.exit_code, 0) << topo.err;

  const std::string again = (folder / "again.json").string();
  const Outcome from_file =
      run_demarc({"calibrate", "--figures", figures, "--description", card, "-o", again});
  ASSERT_EQ(from_file.exit_code, 0) << from_file.err;
  EXPECT_EQ(read_json(again).value()["memory_system"]["store_registers"], 40);
}

TEST_F(CalibrateVerb, measures_a_card_and_says_which_figures_its_fit_does_not_explain) {
  use_stand_in();
  const std::string described = write("described.json", small_card(24));
  const std::string figures = (folder / "figures.json").string();
  const Outcome measured =
      run_demarc({"calibrate", "--device", "cuda:0", "--description", described, "--measure-only",
                  "--samples", "1", "--save-figures", figures});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("Fake GPU: 26 figures of kernels alone on it\n"));
  // The stand-in counts instructions: no description explains its bandwidths.
  Json file = read_json(figures).value();
  EXPECT_EQ(file["context"]["device"], "cuda:0");
  Json few = Json::array();
  for (const Json& one : file["figures"]) {
    if (one["figure"] == "l2_read_narrow" || one["figure"] == "l1_latency") few.push_back(one);
  }
  file["figures"] = few;
  const Outcome fit = run_demarc(
      {"calibrate", "--figures", write("few.json", file), "--description", described, "-o", out});
  EXPECT_EQ(fit.exit_code, 0) << fit.err;
  EXPECT_THAT(fit.out, HasSubstr("Fake GPU (cuda:0, driver "));
  EXPECT_THAT(fit.out, HasSubstr("not explained within 5 %: "));
  EXPECT_TRUE(std::filesystem::exists(out));
}

TEST_F(CalibrateVerb, writes_nothing_where_a_figure_cannot_be_measured) {
  use_stand_in();
  const std::string figures = (folder / "figures.json").string();
  // Not one element of a chain of loads lies in so small an L2.
  Json small = small_card(24);
  small["l2"]["size_bytes"] = 256;
  const Outcome outcome =
      run_demarc({"calibrate", "--device", "cuda:0", "--description", write("small.json", small),
                  "-o", out, "--save-figures", figures});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("figure 'l2_latency' cannot be measured: "));
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(figures));
}

TEST_F(CalibrateVerb, refuses_what_does_not_go_together) {
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"--figures", card, "--device", "sim:gtx1080"}, "name two sources of figures"},
      {{"--measure-only", "-o", out}, "--measure-only fits nothing: leave it or -o out"},
      {{"--measure-only", "--json"}, "--measure-only fits nothing: leave it or --json out"},
      {{"--measure-only", "--figures", card}, "has measured figures: leave --measure-only out"},
      {{"--figures", card}, "card.json.schema: 'demarc.device/1' is not"},
      {{"--figures", "no/such.json"}, "no/such.json"},
      {{"--device", "sim:gtx1080", "--description", card},
       "has 20 SMs, but the description 'GTX 1080'"},
      {{"--device", "planted:h100"}, "write cuda:N for a real GPU or sim:NAME"},
      {{"--device", "sim:gtx1080", "--tolerance", "0"}, "not in range 0.1"}};
  for (const auto& [arguments, told] : wrong) {
    std::vector<std::string> all{"calibrate"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = run_demarc(all);
    EXPECT_EQ(outcome.exit_code, 1) << told;
    EXPECT_THAT(outcome.err, HasSubstr(told));
    EXPECT_EQ(outcome.out, "") << told;
  }
}

TEST_F(CalibrateVerb, needs_a_driver_for_a_card_and_a_description_of_it) {
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so", 1);
  const Outcome without = run_demarc({"calibrate"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("/no/such/libcuda.so"));
  use_stand_in();
  const Outcome unknown = run_demarc({"calibrate"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no description of 'Fake GPU' is built in"));
}

}  // namespace
}  // namespace demarc::test
