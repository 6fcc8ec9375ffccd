// Page, text and JSON of a made-up study of one kernel, and what is refused before one is made.
#include "demarc/report/locality_page.hpp"

#include <gmock/gmock.h>

#include "golden.hpp"
#include "made_up.hpp"

namespace demarc::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LocalityPage, shows_every_number) {
  expect_golden("locality.json", blocks_of(locality_page(made_up_locality(), "the command")));
}

TEST(LocalityPage, of_one_gpu_has_no_pages_and_without_notes_no_heading_of_them) {
  LocalityStudy study = made_up_locality();
  study.pages.clear();
  study.analysis.notes.clear();
  const std::string blocks = blocks_of(locality_page(study, ""));
  EXPECT_THAT(blocks, Not(HasSubstr("\"Pages\"")));
  EXPECT_THAT(blocks, Not(HasSubstr("\"Notes\"")));
  EXPECT_THAT(blocks_of(locality_page(made_up_locality(), "")), HasSubstr("\"Notes\""));
}

TEST(LocalityPage, says_what_would_help_and_what_was_found) {
  LocalityStudy study = made_up_locality();
  study.analysis.advice = {"the advice"};
  study.analysis.findings = {"the finding"};
  const std::string blocks = blocks_of(locality_page(study, ""));
  EXPECT_THAT(blocks, HasSubstr("- the advice"));
  EXPECT_THAT(blocks, HasSubstr("- Finding: the finding"));
  const std::string text = locality_text(study);
  EXPECT_THAT(text, HasSubstr("\nadvice: the advice\nfinding: the finding\nnote: a note\n"));
}

// One cell more than a page shows.
TEST(LocalityPage, a_map_that_is_too_large_is_drawn_coarse_and_says_so) {
  LocalityStudy study = made_up_locality();
  locality::LocalityMap& map = study.analysis.inter.map;
  map.size = 1025;
  map.cells.clear();
  for (std::uint32_t i = 0; map.cells.size() <= max_map_cells; ++i) {
    for (std::uint32_t j = i + 1; j <= 1024; ++j) map.cells.push_back({i, j, 1});
  }
  map.cells.resize(max_map_cells + 1);
  const auto html = [&study] {
    Page page("t");
    add_locality_maps(page, study);
    return page.html();
  };
  const std::string coarse = html();
  const auto has = [](const std::string& page, const char* text) {  // a megabyte is not printed
    return page.find(text) != std::string::npos;
  };
  EXPECT_TRUE(has(coarse, "each cell is the sum over 2 x 2 pairs of blocks"));
  EXPECT_TRUE(has(coarse, "block i / 2"));
  EXPECT_TRUE(has(coarse, "\"rows\":513"));
  EXPECT_TRUE(has(coarse, "\"thread i\""));
  map.cells.pop_back();
  const std::string exact = html();
  EXPECT_FALSE(has(exact, "each cell is the sum"));
  EXPECT_TRUE(has(exact, "\"rows\":1025"));
}

std::string tree_of(std::size_t nodes) {
  Json tree = Json::array();
  for (std::size_t n = 0; n < nodes; ++n) tree.push_back({{"reg", "%r"}, {"parent", 0}});
  return Json{{"loads", {{{"instruction", "ld"}, {"line", 7}, {"tree", tree}}}}}.dump();
}

TEST(LocalityPage, a_tree_of_more_than_four_hundred_nodes_is_named_and_not_drawn) {
  LocalityStudy study = made_up_locality();
  study.analysis.trees_json = tree_of(400);
  Page drawn("t");
  add_syntax_trees(drawn, study);
  EXPECT_THAT(blocks_of(drawn.html()), Not(HasSubstr("Too large")));
  study.analysis.trees_json = tree_of(401);
  Page named("t");
  add_syntax_trees(named, study);
  EXPECT_THAT(blocks_of(named.html()), HasSubstr("Too large to draw: line 7 (401 nodes)."));
  study.analysis.trees_json = "{}";
  Page none("t");
  add_syntax_trees(none, study);
  EXPECT_EQ(blocks_of(none.html()).find("kind"), std::string::npos);
}

TEST(LocalityText, shows_every_number) {
  expect_golden("locality.txt", locality_text(made_up_locality()));
}

TEST(LocalityJson, has_the_prediction_and_the_pages) {
  Json json = Json::parse(locality_json(made_up_locality(), true));
  Json ours = {{"prediction", json["prediction"]}, {"pages", json["pages"]}};
  expect_golden("locality_prediction.json", json_text(rounded(ours), 1) + "\n");
  EXPECT_TRUE(json.contains("inter"));
  LocalityStudy one = made_up_locality();
  one.pages.clear();
  EXPECT_FALSE(Json::parse(locality_json(one, false)).contains("pages"));
  one.sensitivity.whole.complete = false;
  one.sensitivity.whole.l2_interval = {0.25, 1};
  EXPECT_EQ(Json::parse(locality_json(one, false))["prediction"]["whole_l2"]["l2_interval"],
            Json::array({0.25, 1.0}));
}

TEST(LocalityStudies, what_is_not_predicted_is_said_everywhere_and_no_rate_is_shown) {
  LocalityStudy study = made_up_locality();
  study.no_prediction = "no rates";
  EXPECT_THAT(locality_text(study), HasSubstr("note: no rates\n"));
  EXPECT_THAT(locality_text(study), Not(HasSubstr("Predicted for")));
  const Json json = Json::parse(locality_json(study, false));
  EXPECT_EQ(json["prediction"], (Json{{"device", "described"}, {"left_out", "no rates"}}));
  const std::string blocks = blocks_of(locality_page(study, ""));
  EXPECT_THAT(blocks, HasSubstr("- no rates"));
  EXPECT_THAT(blocks, Not(HasSubstr("hit rate, predicted")));
}

TEST(LocalityStudies, rates_of_a_beginning_are_said_to_be_that) {
  LocalityStudy study = made_up_locality();
  EXPECT_EQ(incomplete_prediction(study), "");
  study.sensitivity.half.complete = false;
  study.sensitivity.whole.requests = 10'000'000;
  study.sensitivity.whole.l1_interval = {0.125, 0.5};
  study.sensitivity.whole.l2_interval = {0.25, 1};
  EXPECT_THAT(incomplete_prediction(study), HasSubstr("the first 10 000 000 requests of warps"));
  EXPECT_THAT(incomplete_prediction(study),
              HasSubstr("L1 is between 12.5 and 50.0 %, L2 between 25.0 and 100.0 %"));
  EXPECT_THAT(locality_text(study), HasSubstr("note: the hit rates are those of the first"));
  study.sensitivity.half.complete = true;
  study.sensitivity.whole.complete = false;
  EXPECT_NE(incomplete_prediction(study), "");
  study.no_prediction = "none at all";
  EXPECT_EQ(incomplete_prediction(study), "");
}

TEST(LocalityStudies, what_a_description_lacks_for_a_prediction_is_named) {
  gpu::Device device;
  device.name = "card";
  EXPECT_EQ(missing_for_prediction(device),
            "no hit rates are predicted: the description of card lacks the size of the L2 "
            "(l2.size_bytes), the bandwidth of the DRAM (dram.bandwidth_bytes_per_s)");
  device.l2.size_bytes = 1;
  EXPECT_THAT(missing_for_prediction(device), HasSubstr("lacks the bandwidth of the DRAM"));
  device.dram.bandwidth_bytes_per_s = 1;
  EXPECT_EQ(missing_for_prediction(device), "");
}

constexpr const char* twice =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<4>;\n.reg .b32 %r<4>;\n"
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
    "add.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\nret;\n}\n";

Result<LocalityStudy> studied(const std::string& device, std::uint32_t gpus = 1,
                              const std::string& ptx = twice) {
  const gpu::Launch launch =
      gpu::parse_launch(
          {.ptx = "twice.ptx", .kernel = "k", .grid = "4", .block = "32", .arguments = "buf:4096"})
          .value();
  return study_locality(ptx, "twice.ptx", launch, {}, device, gpus);
}

TEST(LocalityStudies, of_a_launch_have_its_accesses_its_rates_and_its_pages) {
  const auto one = studied("sim:gtx1080");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->name, "twice.ptx");
  EXPECT_EQ(one->analysis.all.accesses.size(), 1U);
  EXPECT_EQ(one->sensitivity.whole.l1_sectors, 16U);
  EXPECT_EQ(one->no_prediction, "");
  EXPECT_TRUE(one->pages.empty());
  const auto four = studied("sim:gtx1080", 4);
  ASSERT_EQ(four->pages.size(), 3U);
  EXPECT_EQ(four->pages[0].page_bytes, 4096U);
  EXPECT_EQ(four->pages[1].page_bytes, 65536U);
  EXPECT_EQ(four->pages[2].page_bytes, 2097152U);
  EXPECT_EQ(four->pages[2].gpus, 4U);
}

TEST(LocalityStudies, know_their_device_and_the_seed_of_their_launch) {
  gpu::Launch launch =
      gpu::parse_launch(
          {.ptx = "twice.ptx", .kernel = "k", .grid = "4", .block = "32", .arguments = "buf:4096"})
          .value();
  launch.seed = 77;
  const auto study = study_locality(twice, "twice.ptx", launch, {}, "sim:gtx1080", 1);
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->device, "GTX 1080");
  EXPECT_EQ(study->seed, 77U);
}

TEST(LocalityStudies, are_refused_for_a_card_that_is_not_described_and_for_ptx_that_is_none) {
  const auto real = studied("cuda:0");
  ASSERT_FALSE(real);
  EXPECT_EQ(real.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(real.error().message, HasSubstr("use sim:NAME"));
  EXPECT_FALSE(studied("sim:nothing-like-it"));
  EXPECT_FALSE(studied("sim:gtx1080", 1, "no PTX"));
}

}  // namespace
}  // namespace demarc::report
