// demarc translate as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::ElementsAre;
using testing::HasSubstr;

// Arguments of a run that takes no time, and more.
std::vector<std::string> quick_translate(std::vector<std::string> more) {
  more.insert(more.begin(), "translate");
  more.insert(more.end(), {"--set", "megabytes=1", "--set", "cus=4"});
  return more;
}

void expect_refused(const std::vector<std::string>& arguments, const std::string& message) {
  const auto outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 1) << message;
  EXPECT_THAT(outcome.err, HasSubstr(message));
  EXPECT_EQ(outcome.out, "");
}

TEST(TranslateVerb, quiet_shows_the_results_alone) {
  for (const char* more : {"--arch=both", "--splits"}) {
    const auto usual = run_demarc(quick_translate({"--app", "KM", more})).out;
    const auto quiet = run_demarc(quick_translate({"--app", "KM", more, "-q"})).out;
    EXPECT_THAT(usual, testing::StartsWith(quiet));
    EXPECT_THAT(quiet, HasSubstr("speed-up of"));
    EXPECT_THAT(quiet, testing::Not(HasSubstr("settings")));
    EXPECT_THAT(quiet, testing::Not(HasSubstr("bytes of data")));
    EXPECT_THAT(usual, HasSubstr("settings"));
  }
  const std::vector<std::string> study{"translate",   "study", "--app", "KM",         "--set",
                                       "megabytes=1", "--set", "cus=4", "--variants", "native"};
  std::vector<std::string> less = study;
  less.emplace_back("--quiet");
  EXPECT_THAT(run_demarc(study).out, HasSubstr("settings of "));
  EXPECT_THAT(run_demarc(less).out, testing::Not(HasSubstr("settings of ")));
  EXPECT_FALSE(run_demarc(less).out.empty());
}

TEST(TranslateVerb, gives_every_promised_key_for_all_nine_applications) {
  const auto outcome = run_demarc({"translate", "--arch", "both", "--app", "all", "--json", "--set",
                                   "megabytes=1", "--set", "iterations=1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "demarc.translate/1");
  std::vector<std::string> names;
  for (const Json& app : json["apps"]) {
    names.push_back(app["name"]);
    for (const char* architecture : {"centralised", "distributed"}) {
      for (const char* key : {"cycles", "walks", "iommu_accesses", "tlb_hit_share",
                              "gmmu_hit_share", "first_touches", "remote_owned", "link_bytes",
                              "iommu_utilisation", "iommu_queue_wait_cycles", "migrations"}) {
        EXPECT_TRUE(app[architecture].contains(key)) << architecture << " " << key;
      }
    }
    EXPECT_GT(app["speedup"].get<double>(), 0);
  }
  EXPECT_THAT(names, ElementsAre("RL", "FIR", "MP", "PR", "MT", "KM", "FFT", "ST", "AES"));
  EXPECT_EQ(json["settings"]["l2_tlb_sets"], "64") << "every setting is echoed";
  EXPECT_EQ(json["settings"]["placement"], "first-touch");
}

TEST(TranslateVerb, the_table_has_a_line_an_architecture_and_the_mean) {
  const auto outcome = run_demarc(quick_translate({"--arch", "all", "--app", "RL,ST"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"RL   centralised", "     distributed", "     bypass",
                           "ST   centralised", "mean speed-up of bypass over centralised"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST(TranslateVerb, results_do_not_depend_on_threads) {
  const auto one = run_demarc(quick_translate({"--app", "RL,MT,FFT", "--json", "--threads", "1"}));
  const auto three =
      run_demarc(quick_translate({"--app", "RL,MT,FFT", "--json", "--threads", "3"}));
  EXPECT_EQ(one.out, three.out);
}

TEST(TranslateVerb, short_options_are_settings) {
  const auto outcome = run_demarc(
      quick_translate({"--app", "RL", "--gpus", "2", "--split", "roundrobin", "--placement",
                       "interleaved", "--remote", "migration", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json settings = Json::parse(outcome.out)["settings"];
  EXPECT_EQ(settings["gpus"], "2");
  EXPECT_EQ(settings["split"], "roundrobin");
  EXPECT_EQ(settings["placement"], "interleaved");
  EXPECT_EQ(settings["remote"], "migration");
}

TEST(TranslateVerb, the_speedups_under_each_split_stand_side_by_side) {
  const auto outcome = run_demarc(quick_translate({"--splits", "--app", "RL,ST"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("app     roundrobin  contiguous      native       paper  place"));
  EXPECT_THAT(outcome.out,
              HasSubstr("fitted: split=native (contiguous in RL and roundrobin in ST)"));
  const auto json = run_demarc(quick_translate({"--splits", "--app", "RL", "--json"}));
  EXPECT_EQ(Json::parse(json.out)["schema"], "demarc.translate.splits/1");
  expect_refused({"translate", "--splits", "--split", "native"},
                 "--splits shows every split; leave --split out");
  expect_refused({"translate", "--splits", "--set", "split=native"},
                 "--splits shows every split; leave --split out");
  expect_refused({"translate", "--splits", "--arch", "bypass"},
                 "--splits shows speed-ups: give --arch both or all");
  for (const char* option : {"--launch", "--stream", "--timeline"}) {
    expect_refused({"translate", "--splits", option, "x", option[2] == 't' ? "--app=RL" : "--json"},
                   "--splits shows applications of --app only");
  }
}

TEST(TranslateVerb, wrong_options_end_with_1_and_say_what_would_be_right) {
  expect_refused({"translate", "--arch", "central"},
                 "--arch: 'central' is not one of centralised, distributed, bypass, both, all");
  expect_refused({"translate", "--app", "KM,XX"},
                 "--app: there is no application 'XX'; there are RL FIR MP PR MT KM FFT ST AES");
  expect_refused({"translate", "--gpus", "65"}, "--gpus: 65 is not within 1..64");
  expect_refused({"translate", "--split", "rows"},
                 "--split: 'rows' is not one of native|roundrobin|contiguous|dim0");
  expect_refused({"translate", "--placement", "here"}, "--placement: 'here' is not one of first-");
  expect_refused({"translate", "--remote", "copy"},
                 "--remote: 'copy' is not one of lines|migration");
  expect_refused({"translate", "--set", "gpu=4"},
                 "--set gpu=4: there is no setting 'gpu'; there are gpus");
  expect_refused({"translate", "--set", "gpus"},
                 "--set gpus: 'gpus' is not of the form NAME=VALUE");
  expect_refused({"translate", "--set", "page_bytes=5000"},
                 "page_bytes: 5000 is not a power of two");
  expect_refused({"translate", "--app", "RL", "--launch", "bundled:relu"},
                 "--app, --launch and --stream exclude each other");
  expect_refused({"translate", "--app", "RL", "--stream", "x"},
                 "--app, --launch and --stream exclude each other");
  expect_refused({"translate", "--app", "RL", "--scale", "64mb"},
                 "--scale and --param belong to --launch");
  expect_refused({"translate", "--app", "RL", "--param", "n=4"},
                 "--scale and --param belong to --launch");
  expect_refused({"translate", "--app", "KM,"}, "--app: there is no application ''");
  expect_refused({"translate", "--timeline", "x.json"}, "--timeline shows one application");
  expect_refused({"translate", "--timeline", "x.json", "--app", "RL,KM"},
                 "--timeline shows one application; --app names 2");
  expect_refused({"translate", "--threads", "many"}, "--threads");
}

TEST(TranslateVerb, a_bundled_launch_is_emulated_and_simulated) {
  const auto outcome = run_demarc(
      {"translate", "--launch", "bundled:relu", "--param", "n=16384", "--arch", "all", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json app = Json::parse(outcome.out)["apps"][0];
  EXPECT_EQ(app["name"], "relu");
  EXPECT_EQ(app["centralised"]["line_accesses"], 2 * 16384 / 16);
  expect_refused({"translate", "--launch", "bundled:nobody"}, "nobody");
  expect_refused({"translate", "--launch", "/no/such/launch.json"}, "/no/such/launch.json");
  expect_refused({"translate", "--launch", "bundled:relu", "--param", "n"},
                 "--param n: NAME=VALUE was expected");
  expect_refused({"translate", "--launch", "bundled:relu", "--param", "m=4"}, "m");
  expect_refused({"translate", "--launch", "bundled:relu", "--scale", "tiny"}, "tiny");
}

TEST(TranslateVerb, an_access_stream_is_read_and_its_errors_name_the_line) {
  const auto file = (test::fresh_folder("translate_stream") / "a.txt").string();
  ASSERT_TRUE(write_file(file, "kernel threads=64\nblock\nwarp\nload 0x1000 0x2000\n"));
  const auto outcome = run_demarc({"translate", "--stream", file, "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json app = Json::parse(outcome.out)["apps"][0];
  EXPECT_EQ(app["centralised"]["line_accesses"], 2);
  EXPECT_EQ(app["name"], file);
  EXPECT_TRUE(app.contains("distributed"));
  EXPECT_FALSE(app.contains("bypass"));
  // Both lines lie on one page, if pages are large.
  const auto large = run_demarc(
      {"translate", "--stream", file, "--json", "--arch", "bypass", "--set", "page_bytes=65536"});
  ASSERT_EQ(large.exit_code, 0) << large.err;
  const Json one = Json::parse(large.out)["apps"][0];
  EXPECT_FALSE(one.contains("centralised"));
  EXPECT_EQ(one["bypass"]["first_touches"], 1);
  EXPECT_EQ(app["centralised"]["first_touches"], 2);
  ASSERT_TRUE(write_file(file, "kernel threads=64\nblock\nwarp\nlaod 0x1000\n"));
  expect_refused({"translate", "--stream", file}, file + ":4");
  expect_refused({"translate", "--stream", "/no/such.txt"}, "/no/such.txt");
}

TEST(TranslateVerb, a_machine_it_prints_is_one_it_reads) {
  const auto file = (test::fresh_folder("translate_device") / "m.json").string();
  const auto printed = run_demarc({"translate", "--gpus", "8", "--print-device", "-o", file});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const auto run =
      run_demarc(quick_translate({"--device", "sim:" + file, "--app", "RL", "--json"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["settings"]["gpus"], "8");
  ASSERT_TRUE(
      write_file(file, R"({"schema": "demarc.translate.machine/1", "settings": {"gpus": 0}})"));
  expect_refused({"translate", "--device", "sim:" + file},
                 file + ": settings.gpus: gpus: 0 is not within 1..64");
  expect_refused({"translate", "--device", "h100"},
                 "--device h100: a machine was expected: sim:NAME or sim:FILE.json");
  expect_refused({"translate", "--device", "sim:/no/such.json"}, "/no/such.json");
}

TEST(TranslateVerb, the_list_of_settings_names_default_meaning_and_range) {
  const auto outcome = run_demarc({"translate", "--list-settings"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("iommu_walkers        8            page-table walkers of the "
                                     "IOMMU (1..4096)"));
}

TEST(TranslateVerb, a_timeline_is_a_trace_with_a_process_an_architecture) {
  const auto file = test::fresh_folder("translate_timeline") / "t.json";
  const auto outcome =
      run_demarc(quick_translate({"--app", "RL", "--timeline", file.string(), "--arch", "all"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json trace = Json::parse(read_file(file).value());
  EXPECT_THAT(read_file(file).value(), HasSubstr("RL, bypass"));
  EXPECT_GT(trace["traceEvents"].size(), 100U);
}

TEST(TranslateVerb, a_comparison_and_the_splits_have_a_page_each) {
  const auto file = (test::fresh_folder("translate_page") / "x.html").string();
  const auto outcome = run_demarc(quick_translate({"--app", "RL,ST", "--html", file}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("RL"));
  const std::string page = read_file(file).value();
  EXPECT_THAT(page, HasSubstr("Speed-up of distributed"));
  EXPECT_THAT(page, HasSubstr("--app RL,ST --html "));
  const auto splits = run_demarc(quick_translate({"--splits", "--app", "RL", "--html", file}));
  ASSERT_EQ(splits.exit_code, 0) << splits.err;
  EXPECT_THAT(read_file(file).value(), HasSubstr("by split of the work"));
}

TEST(TranslateVerb, the_study_writes_a_page_and_judges_each_published_figure) {
  const auto file = (test::fresh_folder("translate_study") / "s.html").string();
  const auto outcome =
      run_demarc({"translate", "study", "--app", "RL,KM", "--variants", "chain,bypass-epoch",
                  "--set", "megabytes=1", "--set", "cus=4", "--html", file});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("chain: the second switch hangs on the first"));
  EXPECT_THAT(outcome.out, HasSubstr("KM: D over C"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("KM: D over C +4\\.81 +section 4\\.2, Figure 4 .* no\n"))
      << "one megabyte is too small for KM";
  EXPECT_THAT(read_file(file).value(), HasSubstr("Figure 7: page walks"));
  expect_refused({"translate", "study", "--variants", "ring"},
                 "there is no variant 'ring'; there are");
  expect_refused({"translate", "study", "--app", "x"}, "--app: there is no application 'x'");
  expect_refused({"translate", "study", "--gpus", "0"}, "--gpus: 0 is not within 1..64");
  const auto json = run_demarc({"translate", "study", "--app", "RL", "--variants", "chain", "--set",
                                "megabytes=1", "--set", "cus=4", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(Json::parse(json.out)["schema"], "demarc.translate.study/1");
  EXPECT_THAT(run_demarc({"translate", "study", "--list-variants"}).out,
              HasSubstr("l2-tlb-512             L2 TLB of 32 sets and 16 ways"));
}

TEST(TranslateVerb, both_readings_of_the_gmmu_stand_side_by_side_under_every_split) {
  const auto with = [](std::vector<std::string> more) {
    std::vector<std::string> all{"translate", "study",       "--readings", "--app", "RL",
                                 "--set",     "megabytes=1", "--set",      "cus=4"};
    all.insert(all.end(), more.begin(), more.end());
    return run_demarc(all);
  };
  const auto outcome = with({});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("^gmmu_fill +local +local +local +local +any +any +any "
                                     "+any\nsplit \\(\\*: fitted\\) +roundrobin +native\\* "
                                     "+contiguous +dim0 +roundrobin"));
  EXPECT_THAT(outcome.out, HasSubstr("\nRL: D over C"));
  const auto json = with({"--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(Json::parse(json.out)["variants"].size(), 8U);
  EXPECT_EQ(with({"--variants", "chain"}).exit_code, 1);
  EXPECT_THAT(with({"--variants", "chain"}).err, HasSubstr("leave out --variants"));
  EXPECT_THAT(with({"--split", "dim0"}).err, HasSubstr("leave out --split"));
  EXPECT_THAT(with({"--set", "gmmu_fill=eager"}).err, HasSubstr("leave out --set gmmu_fill"));
  // A machine of another split begins with the defaults, too.
  EXPECT_THAT(with({"--device", "sim:h200-x2"}).out,
              testing::ContainsRegex("fitted\\) +roundrobin"));
}

TEST(TranslateVerb, nothing_is_written_when_the_input_is_wrong) {
  const auto folder = test::fresh_folder("translate_nothing");
  const auto file = (folder / "x").string();
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"translate", "--app", "RL", "--set", "gpus=0", "-o", file},
           {"translate", "--app", "RL", "--set", "gpus=0", "--timeline", file},
           {"translate", "--app", "RL", "--set", "gpus=0", "--html", file},
           {"translate", "study", "--set", "gpus=0", "--html", file},
           {"translate", "--stream", "/no/such.txt", "-o", file}}) {
    EXPECT_EQ(run_demarc(arguments).exit_code, 1);
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << arguments[1];
  }
}

TEST(TranslateVerb, its_help_says_how_to_begin) {
  const auto outcome = run_demarc({"translate", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("Example: demarc translate --app KM,ST --set megabytes=16"));
  EXPECT_THAT(outcome.out, HasSubstr("study"));
}

// Two cards of the stand-in run the launch, whose outputs its reference checks.
class TranslateMeasured : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_FAKE_DEVICES", "2", 1);
  }
  void TearDown() override {
    ::unsetenv("DEMARC_LIBCUDA");
    ::unsetenv("DEMARC_FAKE_DEVICES");
  }
  [[nodiscard]] static std::vector<std::string> measured(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"translate", "--device",         "sim:h200-x2",
                                       "--launch",  "bundled:stencil9", "--param",
                                       "rows=512",  "--param",          "columns=512"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(TranslateMeasured, sets_times_of_cards_beside_simulated_ones) {
  const auto outcome =
      run_demarc(measured({"--measure", "cuda:0,cuda:1", "--runs", "3", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "demarc.translate.measured/1");
  EXPECT_EQ(json["name"], "stencil9");
  EXPECT_EQ(json["check"], "passed");
  EXPECT_EQ(json["cards"], Json::parse(R"(["Fake GPU", "Fake GPU"])"));
  EXPECT_EQ(json["pages"].size(), 2U);
  EXPECT_EQ(json["measured"]["kernels"].size(), 2U);
  EXPECT_EQ(json["measured"]["kernels"][0]["milliseconds"].size(), 2U);
  const double time = json["measured"]["milliseconds"];
  EXPECT_GT(time, 0);
  EXPECT_LE(json["measured"]["fastest"].get<double>(), time);
  EXPECT_GE(json["measured"]["slowest"].get<double>(), time);
  const double simulated = json["simulated"]["distributed"]["milliseconds"];
  EXPECT_NEAR(json["simulated"]["distributed"]["off_percent"].get<double>(),
              (simulated / time - 1) * 100, 1e-6);
  EXPECT_TRUE(json["simulated"].contains("centralised"));
  EXPECT_EQ(json["settings"]["gpus"], "2");
}

TEST_F(TranslateMeasured, pages_lie_where_the_simulation_has_them) {
  const auto pages = [&](const char* placement) {
    const auto outcome =
        run_demarc(measured({"--measure", "cuda:0,cuda:1", "--measure-only", "--param", "rows=1024",
                             "--param", "columns=1024", "--placement", placement, "--json"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out)["pages"];
  };
  const Json near = pages("first-touch");
  const Json far = pages("far");
  EXPECT_EQ(near[0].get<int>() + near[1].get<int>(), 5);
  EXPECT_EQ(near[0], far[1]);
  EXPECT_EQ(near[1], far[0]);
}

TEST_F(TranslateMeasured, alone_simulates_nothing) {
  const auto outcome = run_demarc(measured({"--measure", "cuda:0,cuda:1", "--measure-only"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("stencil9 on Fake GPU, Fake GPU"));
  EXPECT_THAT(outcome.out, HasSubstr("measured "));
  EXPECT_THAT(outcome.out, HasSubstr("the outputs meet the reference"));
  EXPECT_EQ(outcome.out.find("simulated"), std::string::npos);
}

TEST_F(TranslateMeasured, refuses_what_cannot_be_measured) {
  expect_refused(measured({"--measure", "cuda:0"}),
                 "1 cards, but the simulated machine has 2 GPUs");
  expect_refused(measured({"--measure", "cuda:0,cuda:0"}), "cuda:0 is named twice");
  expect_refused(measured({"--measure", "cuda:0,sim:h200"}), "real GPUs were expected");
  expect_refused(measured({"--measure", "cuda:0,cuda:1", "--runs", "0"}),
                 "--runs 0: at least one run was expected");
  expect_refused(measured({"--measure", "cuda:0,cuda:1", "--split", "roundrobin"}),
                 "give --split contiguous");
  expect_refused(measured({"--measure", "cuda:0,cuda:1", "--timeline", "t.json"}),
                 "--measure writes no --timeline and no --html");
  expect_refused(measured({"--measure", "cuda:0,cuda:1", "--set", "gmmu_fill=any", "--placement",
                           "first-walk"}),
                 "give another --placement");
  const auto small =
      run_demarc(measured({"--measure", "cuda:0,cuda:1", "--set", "page_bytes=65536"}));
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_THAT(small.err, HasSubstr("--measure: Fake GPU: the driver maps no pieces of 64 KiB"));
  expect_refused(measured({"--measure-only"}), "--measure-only belongs to --measure");
  expect_refused({"translate", "--app", "RL", "--measure", "cuda:0"}, "name it with --launch");
  expect_refused(
      measured({"--measure", "cuda:0,cuda:1", "--set", "gmmu_fill=any", "--remote", "migration"}),
      "give --remote lines");
}

}  // namespace
}  // namespace demarc
