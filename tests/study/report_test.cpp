// A result that is given, as text and as JSON, every number of it: nothing runs.
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

Tail tail_of(double percent, std::size_t runs, std::size_t aggressor) {
  Tail tail;
  tail.worst = {percent, runs, aggressor};
  return tail;
}

WorkloadForecast forecast_of(const std::string& name) {
  WorkloadForecast one;
  one.name = one.spec = name;
  one.launches = 3;
  one.kernels = 2;
  one.half_l2_slowdown = 1.125;
  one.half_memory_slowdown = 1.25;
  one.l2_hit_rate = 0.5;
  one.half_l2_hit_rate = 0.25;
  one.dram_demand_share = 0.75;
  one.l2_demand_share = 0.125;
  return one;
}

// One victim in a mode that ran; one mode that the machine lacks and one that failed.
StudyResult given() {
  StudyResult result;
  result.device = {"cuda:0", "Card", "1.2", 24, true, {"clocks are not locked"}, {}};
  result.plan.parts = 2;
  result.plan.modes = parse_modes("mask,mps,green").value();
  result.plan.victims = {{"va", "va"}};
  result.plan.aggressors = {{"mm", "launch:mm.json"}, {"nn", "nn"}};
  result.plan.rounds = 3;
  result.plan.seed = 9;
  result.forecast.device = "Card";
  result.forecast.victims = {forecast_of("va")};
  result.forecast.aggressors = {forecast_of("va"), forecast_of("nn")};
  result.forecast.aggressors[1].complete = false;
  Baseline baseline;
  baseline.samples_ns = {900.4, 900.6};
  baseline.times = describe(baseline.samples_ns);
  result.baselines = {baseline};
  result.modes.resize(3);
  for (std::size_t mode = 0; mode < 3; ++mode) result.modes[mode].mode = mode;
  ModeSummary& ran = result.modes[0];
  ran.account = "part 0: SMs 0-11";
  Variation row;
  row.mean_percent = {12.5, 11, 14};
  row.worst_for_mean = 1;
  row.tail = tail_of(30, 40, 0);
  row.run_percent = {2.5, 1, 4};
  row.worst_for_run = 0;
  row.run_tail = tail_of(7, 40, 1);
  row.overhead = 0.5;
  ran.victims = {row};
  ran.mean = over_victims({12.5});
  ran.tail = summarize_tails({row.tail});
  ran.run = over_victims({2.5});
  ran.run_tail = summarize_tails({row.run_tail});
  result.modes[1].unavailable = "no daemon";
  result.modes[2].failure = "illegal address";
  Cell idle;
  idle.samples_ns = {2000, 2000};
  idle.times = describe(idle.samples_ns);
  idle.runs = idle.times;
  idle.discarded = 5;
  Cell beside = idle;
  beside.aggressor = 1;
  beside.samples_ns = {2250.4, 2249.6};
  beside.times = describe(beside.samples_ns);
  beside.runs_ns = {3000, 3001};
  beside.runs = describe(beside.runs_ns);
  beside.aggressor_rate = 12.5;
  beside.remarks = {"started again 2 times"};
  result.cells = {idle, beside};
  result.errors = {"green: illegal address"};
  result.recommendation = "Use mask.";
  return result;
}

TEST(Report, the_text_of_a_result_is_this) {
  EXPECT_EQ(study_text(given()),
            "Card (cuda:0, driver 1.2), 2 parts, seed 9\n"
            "\n"
            "Use mask.\n"
            "\n"
            "mask (part 0: SMs 0-11)\n"
            "  victim         idle us slowdown  next to      slowest  next to          run  next "
            "to      slowest overhead\n"
            "  va                 2.0    1.12x  nn             1.30x  mm             1.02x  mm     "
            "        1.07x    0.50x\n"
            "\n"
            "mps: not run: no daemon\n"
            "\n"
            "green: FAILED: illegal address\n"
            "\n"
            "Columns:\n"
            "  idle us   mean time of the victim while the other parts are idle\n"
            "  slowdown  mean time next to the aggressor that slows it most, over idle us (1.00x: "
            "not slowed)\n"
            "  slowest   the same for the slowest runs (worst of 40)\n"
            "  run       the same for whole runs, with the gaps between launches\n"
            "  overhead  idle us over the time of an ideal share, which is 2 times the time alone "
            "on the whole GPU (1.00x: nothing is lost)\n"
            "\n"
            "Forecast from PTX for Card: each workload alone on the whole GPU, over and over.\n"
            "  DRAM, L2: share of their bandwidth it asks for; hits: in the L2, in half of it; "
            "half mem:\n"
            "  slowdown by half of the L2 and of the bandwidths, on half of the SMs\n"
            "  workload      DRAM %    L2 %   hits %   half % half mem\n"
            "  va              75.0    12.5     50.0     25.0    1.25x\n"
            "  nn              75.0    12.5     50.0     25.0    1.25x  of its beginning\n"
            "note: clocks are not locked\n"
            "note: mask: va next to nn: started again 2 times\n"
            "ERROR: green: illegal address\n");
}

TEST(Report, long_names_are_cut_in_tables_where_that_leaves_them_different) {
  const auto text_with = [](const std::string& victim, const std::string& aggressor) {
    StudyResult result = given();
    result.plan.victims[0].name = victim;
    result.plan.aggressors[1].name = aggressor;
    return study_text(result, TextDetail::results);
  };
  const std::string large = "python3 detect.py --model large";
  const std::string cut = "python3 detect.py --m...";
  const std::string legend = "\nNames that the tables cut:\n  " + cut + " is " + large + "\n";
  const std::string alone = text_with(large, "nn");
  EXPECT_NE(alone.find("\n  " + cut + " "), std::string::npos) << alone;
  EXPECT_NE(alone.find(legend), std::string::npos) << alone;
  const std::string both = text_with(large, large);
  EXPECT_NE(both.find("1.12x  " + cut + " "), std::string::npos) << both;
  EXPECT_NE(both.find(legend), std::string::npos) << both;
  const std::string alike = text_with(large, "python3 detect.py --model small");
  EXPECT_NE(alike.find("\n  " + large + " "), std::string::npos) << alike;
  EXPECT_EQ(alike.find("Names that"), std::string::npos) << alike;
  const std::string longest(24, 'a');
  EXPECT_EQ(text_with(longest, "nn").find("Names that"), std::string::npos);
  EXPECT_NE(text_with(longest + "a", "nn").find("\n  " + std::string(21, 'a') + "... "),
            std::string::npos);
  // Ten characters of two bytes and half of the next are 21 bytes.
  std::string umlauts;
  std::string ten;
  for (int i = 0; i < 13; ++i) umlauts += "\u00e4";
  for (int i = 0; i < 10; ++i) ten += "\u00e4";
  EXPECT_NE(text_with(umlauts, "nn").find("\n  " + ten + "... "), std::string::npos);
  StudyResult none = given();
  none.plan.victims[0].name = large;
  none.modes[0].victims.clear();
  EXPECT_EQ(study_text(none).find("Names that"), std::string::npos) << "there is no table";
}

TEST(Report, quiet_text_has_the_results_and_the_errors_and_verbose_text_the_model_too) {
  StudyResult result = given();
  result.device.model = {"SM: one"};
  const std::string usual = study_text(result);
  const std::string quiet = study_text(result, TextDetail::results);
  const std::string everything = study_text(result, TextDetail::everything);
  const auto has = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  for (const char* words : {"Use mask.", "  va ", "ERROR: green", "started again 2 times"}) {
    EXPECT_TRUE(has(quiet, words)) << words;
  }
  for (const char* words : {"Columns:", "Forecast", "note: clocks are not locked"}) {
    EXPECT_FALSE(has(quiet, words)) << words;
    EXPECT_TRUE(has(usual, words)) << words;
  }
  EXPECT_FALSE(has(usual, "SM: one"));
  EXPECT_TRUE(has(everything, "SM: one"));
  result.cells.clear();
  EXPECT_TRUE(has(study_text(result, TextDetail::results), "Forecast")) << "it is the result";
}

TEST(Report, no_column_repeats_another_and_rows_that_differ_name_what_they_are_judged_by) {
  StudyResult result = given();
  ModeSummary& mode = result.modes[0];
  Variation& row = mode.victims[0];
  row.tail = tail_of(30, 40, row.worst_for_mean);
  row.run_percent = row.mean_percent;
  row.worst_for_run = row.worst_for_mean;
  row.run_tail = row.tail;
  const std::string same = study_text(result);
  EXPECT_EQ(same.find("  run "), std::string::npos) << same;
  EXPECT_EQ(same.find("slowest  which"), std::string::npos) << same;
  EXPECT_NE(same.find("slowdown  next to      slowest overhead"), std::string::npos) << same;
  mode.victims.push_back(row);
  mode.victims[1].tail = tail_of(30, 50, 0);
  const std::string mixed = study_text(result);
  EXPECT_NE(mixed.find("slowest  which"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find(" worst of 50 "), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("(p99, or the worst of so many)"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("slowdown of 2 victims: "), std::string::npos) << mixed;
}

TEST(Report, the_csv_has_a_row_for_each_cell_that_ran) {
  StudyResult result = given();
  result.plan.aggressors[1].name = "sh -c \"a,b\"";
  Cell wrong = result.cells[0];
  wrong.error = "wrong output";
  result.cells.push_back(wrong);
  EXPECT_EQ(study_csv(result),
            "mode,victim,aggressor,runs,kernels_mean_us,kernels_p50_us,kernels_p99_us,"
            "kernels_worst_us,run_mean_us,run_p99_us,run_worst_us\n"
            "mask,va,-,2,2.000,2.000,,2.000,2.000,,2.000\n"
            "mask,va,\"sh -c \"\"a,b\"\"\",2,2.250,2.250,,2.250,3.001,,3.001\n");
}

TEST(Report, what_a_model_answered_is_said_to_be_no_measurement) {
  StudyResult result = given();
  result.device.driver.clear();
  result.device.measured = false;
  EXPECT_TRUE(
      study_text(result).starts_with("Card (cuda:0), 2 parts, seed 9\n"
                                     "A MODEL ANSWERED: these figures are not measurements.\n"));
  result.cells.clear();
  EXPECT_EQ(study_text(result).find("A MODEL ANSWERED"), std::string::npos) << "nothing ran";
}

TEST(Report, the_json_of_a_result_has_all_of_it) {
  const Json json = Json::parse(study_json(given(), "demarc isolate"));
  EXPECT_EQ(json["schema"], "demarc.isolate/4");
  const Json& context = json["context"];
  EXPECT_EQ(context["command"], "demarc isolate");
  EXPECT_EQ(context["device"], "cuda:0");
  EXPECT_EQ(context["device_name"], "Card");
  EXPECT_EQ(context["driver"], "1.2");
  EXPECT_EQ(context["sms"], 24);
  EXPECT_EQ(context["measured"], true);
  EXPECT_EQ(context["notes"], Json::array({"clocks are not locked"}));
  const Json& plan = json["plan"];
  EXPECT_EQ(plan["parts"], 2);
  EXPECT_EQ(plan["modes"], Json::array({"mask", "mps", "green"}));
  EXPECT_EQ(plan["victims"], Json::array({Json{{"name", "va"}, {"spec", "va"}}}));
  EXPECT_EQ(plan["aggressors"][0]["spec"], "launch:mm.json");
  EXPECT_EQ(plan["rounds"], 3);
  EXPECT_EQ(plan["seed"], 9);
  EXPECT_EQ(plan["stopping_rule"], (Json{{"warm_up", 5},
                                         {"least", 100},
                                         {"most", 400},
                                         {"precision", 0.005},
                                         {"longest_seconds", 2.0}}));
  EXPECT_EQ(json["recommendation"], "Use mask.");
  EXPECT_EQ(json["errors"], Json::array({"green: illegal address"}));
}

TEST(Report, the_json_of_a_mode_names_who_slowed_whom) {
  const Json json = Json::parse(study_json(given(), ""));
  const Json& mask = json["modes"][0];
  EXPECT_EQ(mask["mode"], "mask");
  EXPECT_EQ(mask["account"], "part 0: SMs 0-11");
  const Json over{{"victims", 1}, {"average_slowdown", 1.125}, {"maximum_slowdown", 1.125}};
  EXPECT_EQ(mask["mean"], over);
  EXPECT_EQ(mask["run"]["maximum_slowdown"], 1.025);
  EXPECT_EQ(mask["tail"]["p99"], nullptr);
  EXPECT_EQ(mask["tail"]["worst"], (Json{{"victims", 1},
                                         {"average_slowdown", 1.3},
                                         {"maximum_slowdown", 1.3},
                                         {"min_runs", 40},
                                         {"max_runs", 40}}));
  EXPECT_EQ(mask["run_tail"]["worst"]["maximum_slowdown"], 1.07);
  const Json& row = mask["victims"][0];
  EXPECT_EQ(row["victim"], "va");
  EXPECT_EQ(row["mean_slowdown"]["value"], 1.125);
  EXPECT_DOUBLE_EQ(row["mean_slowdown"]["low"], 1.11);
  EXPECT_DOUBLE_EQ(row["mean_slowdown"]["high"], 1.14);
  EXPECT_EQ(row["worst_for_mean"], "nn");
  EXPECT_EQ(row["p99"], nullptr);
  EXPECT_EQ(row["worst"], (Json{{"slowdown", 1.3}, {"runs", 40}, {"aggressor", "mm"}}));
  EXPECT_EQ(row["run_slowdown"]["value"], 1.025);
  EXPECT_EQ(row["worst_for_run"], "mm");
  EXPECT_EQ(row["run_worst"]["aggressor"], "nn");
  EXPECT_EQ(row["overhead"], 0.5);
  EXPECT_EQ(json["modes"][1], (Json{{"mode", "mps"}, {"unavailable", "no daemon"}}));
  EXPECT_EQ(json["modes"][2], (Json{{"mode", "green"}, {"failure", "illegal address"}}));
}

TEST(Report, the_json_of_a_cell_has_its_raw_samples_in_whole_nanoseconds) {
  const Json json = Json::parse(study_json(given(), ""));
  EXPECT_EQ(json["baselines"][0]["victim"], "va");
  EXPECT_EQ(json["baselines"][0]["samples_ns"], Json::array({900, 901}));
  EXPECT_EQ(json["baselines"][0]["times_ns"]["mean"], 900.5);
  const Json& idle = json["cells"][0];
  EXPECT_EQ(idle["mode"], "mask");
  EXPECT_EQ(idle["victim"], "va");
  EXPECT_EQ(idle["aggressor"], nullptr);
  EXPECT_EQ(idle["discarded"], 5);
  EXPECT_FALSE(idle.contains("remarks"));
  EXPECT_FALSE(idle.contains("error"));
  EXPECT_EQ(idle["times_ns"], (Json{{"count", 2},
                                    {"mean", 2000.0},
                                    {"deviation", 0.0},
                                    {"best", 2000.0},
                                    {"p50", 2000.0},
                                    {"p99", nullptr},
                                    {"worst", 2000.0},
                                    {"mean_95", Json::array({2000.0, 2000.0})},
                                    {"p99_95", idle["times_ns"]["p99_95"]}}));
  EXPECT_EQ(idle["run_samples_ns"], Json::array());
  const Json& beside = json["cells"][1];
  EXPECT_EQ(beside["aggressor"], "nn");
  EXPECT_EQ(beside["aggressor_runs_per_second"], 12.5);
  EXPECT_EQ(beside["samples_ns"], Json::array({2250, 2250}));
  EXPECT_EQ(beside["run_samples_ns"], Json::array({3000, 3001}));
  EXPECT_EQ(beside["run_times_ns"]["worst"], 3001.0);
  EXPECT_EQ(beside["remarks"], Json::array({"started again 2 times"}));
  StudyResult wrong = given();
  wrong.cells[1].error = "outputs differ";
  EXPECT_EQ(Json::parse(study_json(wrong, ""))["cells"][1]["error"], "outputs differ");
}

TEST(Report, the_json_of_the_forecast_has_every_workload) {
  StudyResult result = given();
  result.forecast.victims[0].missing = "it brings compiled code";
  const Json forecast = Json::parse(study_json(result, ""))["forecast"];
  EXPECT_EQ(forecast["device"], "Card");
  EXPECT_EQ(forecast["victims"][0],
            (Json{{"name", "va"}, {"spec", "va"}, {"missing", "it brings compiled code"}}));
  EXPECT_EQ(forecast["aggressors"][1], (Json{{"name", "nn"},
                                             {"spec", "nn"},
                                             {"launches", 3},
                                             {"kernels", 2},
                                             {"complete", false},
                                             {"half_l2_slowdown", 1.125},
                                             {"half_memory_slowdown", 1.25},
                                             {"l2_hit_rate", 0.5},
                                             {"half_l2_hit_rate", 0.25},
                                             {"dram_demand_share", 0.75},
                                             {"l2_demand_share", 0.125}}));
  result.forecast.missing = "no description";
  EXPECT_EQ(Json::parse(study_json(result, ""))["forecast"], (Json{{"missing", "no description"}}));
}

}  // namespace
}  // namespace demarc::study
