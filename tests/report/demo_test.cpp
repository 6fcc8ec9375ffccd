// The demonstration: its page of made-up results, its kernels, and what is refused at once.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>

#include "demarc/base/json.hpp"
#include "demarc/workload/workload.hpp"
#include "demo_page.hpp"
#include "golden.hpp"
#include "isolate_demo.hpp"
#include "made_up.hpp"

namespace demarc::report {
namespace {

using testing::HasSubstr;

// The first row of the paper's table counts five loads, the second and third twenty together.
std::vector<LocalityStudy> three_kernels() {
  std::vector<LocalityStudy> studies(3, made_up_locality());
  for (std::size_t i = 0; i < studies.size(); ++i) {
    LocalityStudy& study = studies[i];
    study.name = paper_rows()[i].workload;
    study.analysis.kernel = paper_rows()[i].kernel;
    study.analysis.all.accesses.resize(1 + i);
    study.analysis.inter.degree_of_sharing += 0.1 * static_cast<double>(i);
    study.sensitivity.half_l2_slowdown += static_cast<double>(i);
  }
  studies[0].analysis.all.accesses.assign(5, studies[0].analysis.all.accesses[0]);
  studies[2].pages.clear();
  return studies;
}

TEST(Demo, pages_and_summary_show_every_number_of_its_studies) {
  DemoOptions options;
  options.command = "the command";
  const Demo demo = demo_of(options, made_up_study(), three_kernels());
  expect_golden("demo.json", blocks_of(demo.page));
  expect_golden("demo_locality.json", blocks_of(demo.locality_page));
  const auto tables = demo.summary.find("\nThe kernels, with the grids");
  ASSERT_NE(tables, std::string::npos);
  EXPECT_EQ(demo.summary.substr(0, tables), study::study_text(made_up_study()));
  expect_golden("demo_tables.txt", demo.summary.substr(tables));
}

TEST(Demo, says_that_its_interference_study_cannot_be_right) {
  study::StudyResult study = made_up_study();
  study.device.measured = false;
  EXPECT_TRUE(demo_of({}, study, three_kernels()).possible);
  study.impossible = {"mask: a gain"};
  const Demo demo = demo_of({}, study, three_kernels());
  ASSERT_FALSE(demo.possible);
  EXPECT_EQ(demo.possible.error().kind, ErrorKind::check_failed);
}

TEST(Demo, pages_link_to_each_other_where_they_have_names) {
  const auto links_of = [](const std::string& html) {
    std::vector<std::string> files;
    for (const Json& block : blocks_in(html)) {
      if (block["kind"] == "link") files.push_back(block["file"]);
    }
    return files;
  };
  DemoOptions options;
  const Demo alone = demo_of(options, made_up_study(), three_kernels());
  EXPECT_THAT(links_of(alone.page), testing::IsEmpty());
  EXPECT_THAT(links_of(alone.locality_page), testing::IsEmpty());
  options.interference_link = "a.html";
  options.locality_link = "b.html";
  const Demo demo = demo_of(options, made_up_study(), three_kernels());
  EXPECT_THAT(links_of(demo.page), testing::ElementsAre("b.html"));
  EXPECT_THAT(links_of(demo.locality_page), testing::ElementsAre("a.html"));
}

TEST(Demo, the_second_page_lies_next_to_the_first_unless_it_has_a_name_or_the_first_is_no_file) {
  struct Case {
    std::string html, given, named, files, link;
  };
  for (const Case& one : {Case{"none/a.html", "", "none/a-locality.html",
                               "none/a.html none/a-locality.html", "a.html a-locality.html"},
                          Case{"a.html", "b.html", "b.html", "a.html b.html", "a.html b.html"},
                          Case{"none/a.html", "b.html", "b.html", "none/a.html b.html", " "},
                          Case{"a.html", "-", "-", "a.html", " "}, Case{"-", "", "", "", " "},
                          Case{"-", "b.html", "b.html", "b.html", " "},
                          Case{"/dev/null", "", "", "/dev/null", " "}}) {
    DemoOptions options;
    std::string locality = one.given;
    EXPECT_EQ(fmt::format("{}", fmt::join(name_pages(one.html, locality, options), " ")),
              one.files);
    EXPECT_EQ(locality, one.named);
    EXPECT_EQ(options.interference_link + " " + options.locality_link, one.link) << one.html;
  }
}

TEST(Demo, its_json_holds_the_documents_of_both_studies) {
  DemoOptions options;
  options.command = "the command";
  const std::vector<LocalityStudy> studies = three_kernels();
  const Json json = own_json(demo_of(options, made_up_study(), studies).json);
  EXPECT_EQ(json.size(), 3U);
  EXPECT_EQ(json["schema"], "demarc.demo/2");
  EXPECT_EQ(json["isolate"], own_json(study::study_json(made_up_study(), options.command)));
  ASSERT_EQ(json["locality"].size(), 3U);
  for (std::size_t i = 0; i < studies.size(); ++i) {
    Json one = json["locality"][i];
    EXPECT_EQ(one["workload"], studies[i].name);
    one.erase("workload");
    EXPECT_EQ(one, own_json(locality_json(studies[i], false)));
  }
}

TEST(Demo, every_kernel_is_launched_with_the_grid_of_the_paper) {
  for (const PaperRow& row : paper_rows()) {
    const gpu::Launch launch = workload::instance(row.workload).value();
    LocalityStudy study;
    for (const gpu::KernelLaunch& kernel : launch.kernels) {
      if (kernel.kernel != row.kernel) continue;
      study.analysis.grid = kernel.grid;
      study.analysis.block = kernel.block;
      break;
    }
    EXPECT_TRUE(check_grid(study, row)) << row.kernel;
  }
}

TEST(Demo, a_kernel_of_another_grid_or_block_is_an_error_that_names_both) {
  const PaperRow& row = paper_rows()[1];
  LocalityStudy right;
  right.name = "convsep";
  right.analysis.kernel = row.kernel;
  right.analysis.grid = {1, 32, 1};
  right.analysis.block = {16, 4, 1};
  EXPECT_TRUE(check_grid(right, row));
  for (int wrong = 0; wrong < 4; ++wrong) {
    LocalityStudy study = right;
    auto& a = study.analysis;
    ++*std::array{&a.grid.x, &a.grid.y, &a.block.x, &a.block.y}.at(static_cast<std::size_t>(wrong));
    const auto checked = check_grid(study, row);
    ASSERT_FALSE(checked) << wrong;
    EXPECT_EQ(checked.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(checked.error().message, HasSubstr("not with 1x32 of 16x4"));
  }
}

TEST(Demo, studies_of_the_kernels_are_named_and_split_over_four_gpus) {
  const auto studies = study_rows(paper_rows().last(1), "sim:h100-sxm", {});
  ASSERT_TRUE(studies) << studies.error().message;
  ASSERT_EQ(studies->size(), 1U);
  const LocalityStudy& scan = studies->front();
  EXPECT_EQ(scan.name, "scan");
  EXPECT_EQ(scan.analysis.kernel, "scan_exclusive_shared2");
  ASSERT_FALSE(scan.pages.empty());
  EXPECT_EQ(scan.pages.front().gpus, 4U);
  PaperRow other = paper_rows().back();
  other.block_x = 128;
  EXPECT_FALSE(study_rows(std::span(&other, 1), "sim:h100-sxm", {}));
}

TEST(Demo, runs_three_modes_once_with_three_samples_each) {
  DemoOptions options;
  options.victims = "fwt,va";
  options.aggressors = "mm";
  const study::Plan plan = isolate_demo_plan(options).value();
  std::vector<std::string> modes;
  for (const study::Mode& mode : plan.modes) modes.push_back(mode.name());
  EXPECT_THAT(modes, testing::ElementsAre("none", "mask", "mask+color"));
  EXPECT_EQ(plan.victims.size(), 2U);
  EXPECT_EQ(plan.aggressors.front().name, "mm");
  EXPECT_EQ(plan.rounds, 1U);
  EXPECT_EQ(plan.rule.warm_up, 1U);
  EXPECT_EQ(plan.rule.least, 3U);
  EXPECT_EQ(plan.rule.most, 3U);
}

TEST(Demo, refuses_what_cannot_be_predicted_before_it_runs_anything) {
  const auto error_of = [](const DemoOptions& options) {
    const auto demo =
        run_demo(options, [](double, std::string_view) { FAIL() << "something ran"; });
    return demo ? std::string() : demo.error().message;
  };
  DemoOptions options;
  options.victims = "nothing-like-it";
  EXPECT_THAT(error_of(options), HasSubstr("no bundled workload 'nothing-like-it'"));
  options.victims = "fwt,fwt";
  EXPECT_THAT(error_of(options), HasSubstr("fwt"));
  options = {};
  options.aggressors = "";
  EXPECT_THAT(error_of(options), HasSubstr("--aggressors"));
  options = {};
  options.device = "nothing like a device";
  EXPECT_THAT(error_of(options), HasSubstr("nothing like a device"));
  options.device = "sim:nothing-like-it";
  EXPECT_THAT(error_of(options), HasSubstr("nothing-like-it"));
  options.device = "sim:p100";  // of whose memory nothing is described
  EXPECT_THAT(error_of(options), HasSubstr("--device sim:p100: no hit rates are predicted"));
}

}  // namespace
}  // namespace demarc::report
