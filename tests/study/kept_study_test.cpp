// Whole studies of planted and simulated cards, compared with kept ones: every figure of every
// cell, and what is said of them. A difference is read before it is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attack/neighbour_files.hpp"
#include "demarc/base/files.hpp"
#include "demarc/study/planted.hpp"
#include "demarc/study/sim_executor.hpp"
#include "demarc/study/study.hpp"
#include "kept.hpp"
#include "paths.hpp"

namespace demarc::study {
namespace {

using testing::HasSubstr;

// One entry of a list a line, without what a build decides.
std::string kept_form(const StudyResult& result) {
  Json json = test::rounded(Json::parse(study_json(result, "demarc isolate")));
  for (const char* left_out : {"program", "revision"}) json["context"].erase(left_out);
  std::string text;
  for (const auto& [part, value] : json.items()) {
    if (!value.is_array()) {
      text += part + ": " + json_text(value) + "\n";
      continue;
    }
    for (const Json& entry : value) text += part + ": " + json_text(entry) + "\n";
  }
  return text;
}

Plan kept_plan(std::string_view modes, std::string_view victims, std::string_view aggressors) {
  Plan plan;
  plan.modes = parse_modes(modes).value();
  plan.victims = parse_workloads(victims, "victims").value();
  plan.aggressors = parse_workloads(aggressors, "aggressors").value();
  plan.rule = {1, 4, 8, 0.01, 10};
  plan.seed = 3;
  return plan;
}

TEST(KeptStudy, of_a_planted_card) {
  PlantedModel model = planted_model("h100").value();
  model.workloads["sn"].wrong_under_load = true;
  model.unavailable[partition::Mode::green] = "no green contexts here";
  const auto executor = make_planted_executor(model, 5);
  Plan plan = kept_plan("none,timeslice,mps,green,mask,mask+color", "mm,va,sn", "fwt,l2_write");
  plan.parts = 3;
  const auto result = run_study(plan, *executor, {});
  ASSERT_TRUE(result) << result.error().message;
  test::expect_kept("study/golden/planted_study.txt", kept_form(*result) + study_text(*result));
}

// What is said before anything runs, of kernels that are written here: those of bundled workloads
// differ from compiler to compiler.
TEST(KeptForecast, of_one_that_streams_and_one_that_stays_in_the_cache) {
  const auto executor = make_sim_executor({}).value();
  const auto folder = test::fresh_folder("kernels");
  NeighbourMeans means;
  means.bytes = 64U << 20U;
  const auto written = [&](const std::string& name, Operation operation, Pattern pattern,
                           std::uint64_t footprint) {
    Neighbour one;
    one.operation = operation;
    one.pattern = pattern;
    one.footprint = footprint;
    one.blocks = 64;
    one.threads = 256;
    one.steps = 16;
    return Workload{name, "launch:" + write_neighbour(folder, name, settled(one), means)->string()};
  };
  Plan plan = kept_plan("mask,mask+color", "va", "mm");
  plan.victims = {written("reads", Operation::load, Pattern::stream, 8U << 20U),
                  written("chases", Operation::load, Pattern::chase, 1536U << 10U)};
  plan.aggressors = {written("writes", Operation::store, Pattern::stream, 16U << 20U),
                     written("stays", Operation::reduction, Pattern::random, 256U << 10U)};
  const auto result = forecast_study(plan, *executor);
  ASSERT_TRUE(result) << result.error().message;
  std::string text = kept_form(*result) + study_text(*result);
  const std::string path = folder.string() + "/";
  for (auto at = text.find(path); at != std::string::npos; at = text.find(path)) {
    text.erase(at, path.size());
  }
  test::expect_kept("study/golden/forecast.txt", text);
}

TEST(PlantedModels, are_as_kept) {
  const PlantedModel model = planted_model("h100").value();
  std::string text;
  for (const auto& [name, demand] : model.workloads) {
    text += fmt::format("{}: {} ns alone;", name, demand.solo_ns);
    for (const partition::Mode mode : partition::all_modes()) {
      for (const bool color : {false, true}) {
        const Mode divided{mode, color};
        text += fmt::format(" {} {:.6g} {:.6g}", divided.name(),
                            planted_time(model, demand, nullptr, divided, 2),
                            planted_time(model, demand, &demand, divided, 4));
      }
    }
    text += "\n";
  }
  test::expect_kept("study/golden/planted_times.txt", text);
  EXPECT_THAT(planted_model("h200").error().message, HasSubstr("planted:h200: there is no such"));
}

// Two streams of accesses, which no kernel has to be emulated for: one reads half a mebibyte, the
// other writes as much.
class KeptSimStudy : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test::fresh_folder("streams");
    reads_ = "stream:" + written(folder_ / "reads", "load +3 ");
    writes_ = "stream:" + written(folder_ / "writes", "store +3 ");
  }
  static std::string written(const std::filesystem::path& path, const std::string& step) {
    std::string text = "kernel threads=64 shared=1024\n";
    for (std::uint32_t block = 0; block < 64; ++block) {
      text += "block\nwarp\n";
      for (std::uint32_t i = 0; i < 64; i += 2) {
        const std::uint32_t line = 0x10000 + (block * 64 + i) * 2;
        text += step + fmt::format("{:#x}/15 {:#x}/3\n", line * 128, (line + 1) * 128);
        if (i % 8 == 6) text += "wait work +5\n";
      }
      text += "warp\nwork +100\nbarrier\n";
    }
    EXPECT_TRUE(write_file(path, text));
    return path.string();
  }
  void expect_kept_study(const std::string& name, const SimExecutorOptions& options,
                         std::string_view modes) const {
    const auto executor = make_sim_executor(options).value();
    Plan plan = kept_plan(modes, reads_, reads_ + "," + writes_);
    plan.rule = {1, 2, 3, 0.01, 10};
    const auto result = run_study(plan, *executor, {});
    ASSERT_TRUE(result) << result.error().message;
    std::string text = kept_form(*result) + study_text(*result);
    const std::string folder = folder_.string() + "/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
      text.erase(at, folder.size());
    }
    test::expect_kept("study/golden/" + name + ".txt", text);
  }

 private:
  std::filesystem::path folder_;
  std::string reads_, writes_;
};

TEST_F(KeptSimStudy, of_access_streams_under_every_mode) {
  SimExecutorOptions options;
  options.threads = 1;
  options.seed = 4;
  expect_kept_study("gtx1080_study", options, "none,timeslice,mps,mask,mask+color");
}

TEST_F(KeptSimStudy, of_access_streams_with_asked_masks_colours_and_dispatch) {
  SimExecutorOptions options;
  options.device = "h100-sxm";
  options.threads = 1;
  options.split = partition::SplitStrategy::distributed;
  options.masks = {0xc4000};
  options.colors = {1, 0};
  options.dispatch = "rr";
  expect_kept_study("h100_study", options, "none,green+color,mask+color");
}

}  // namespace
}  // namespace demarc::study
