// demarc schedule, as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "demarc/base/json.hpp"
#include "schedule_verb.hpp"

namespace demarc::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> schedule_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

const std::vector<std::string> all_policies = {"rr",       "rr-skip",  "rrf", "bfa",
                                               "dfa",      "smk",      "fua", "least-loaded",
                                               "best-fit", "locality", "hw"};
const char* const all_scenarios[] = {
    "fig03_shared",          "fig03_masked",   "fig04_gtx1060",    "fig04_p100",
    "fig10_many_partitions", "fig11_k1_first", "fig11_k2_first",   "fig12_slots_full",
    "fig12_one_more_slot",   "fig13_packed",   "fig13_distributed"};

TEST(ScheduleVerb, compares_all_policies_over_a_configuration_a_line_each) {
  const auto outcome = schedule({config_file()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto lines = schedule_lines(outcome.out);
  ASSERT_EQ(lines.size(), 2 + all_policies.size());
  EXPECT_THAT(lines[0], HasSubstr("two.conf: 2 SMs, 2 kernels, model simtbs"));
  for (std::size_t i = 0; i < all_policies.size(); ++i) {
    EXPECT_THAT(lines[i + 2], StartsWith(all_policies[i] + " "));
    EXPECT_THAT(lines[i + 2], HasSubstr("100.0%")) << "every kernel finishes";
  }
  EXPECT_EQ(schedule({config_file(), "-p", "all"}).out, outcome.out);
}

TEST(ScheduleVerb, json_has_the_figures_of_each_policy_and_with_v_of_each_kernel) {
  const auto json = Json::parse(schedule({config_file(), "-p", "bfa", "-v", "--json"}).out);
  EXPECT_EQ(json["schema"], "demarc.schedule/1");
  EXPECT_EQ(json["model"], "simtbs");
  ASSERT_EQ(json["policies"].size(), 1U);
  const Json& bfa = json["policies"][0];
  EXPECT_EQ(bfa["policy"], "bfa");
  EXPECT_EQ(bfa["finished"], 2);
  EXPECT_EQ(bfa["finished_share"], 1.0);
  EXPECT_GE(bfa["antt_with_queueing"].get<double>(), bfa["antt"].get<double>());
  ASSERT_EQ(bfa["kernel"].size(), 2U);
  EXPECT_EQ(bfa["kernel"][0]["first_run"], 1);
  EXPECT_EQ(bfa["kernel"][1]["blocks"], 4);
  EXPECT_EQ(bfa["kernel"][1]["line"], 11);
  const auto text = schedule({config_file(), "-p", "bfa", "-v"}).out;
  EXPECT_THAT(text, HasSubstr("  kernel    1 (line 10): alone "));
  EXPECT_THAT(text, HasSubstr("  kernel    2 (line 11): alone "));
  const std::string cut = schedule_file("cut.conf", "*general\n3\n" + two_kernels);
  EXPECT_THAT(schedule({cut, "-p", "bfa", "-v"}).out,
              HasSubstr("  kernel    2 (line 13): not finished\n"));
}

TEST(ScheduleVerb, a_run_that_memory_ended_says_so_with_the_use_it_would_have_come_to) {
  // Two blocks of 40 of the 100 units fit, a third does not.
  const std::string full = schedule_file("full.conf", machine + "*kernel\n1 1 6 3 1 40\n");
  const auto of_policy = [&](std::vector<std::string> model) {
    model.insert(model.begin(), {full, "-p", "rr", "--json"});
    return Json::parse(schedule(model).out)["policies"][0];
  };
  const Json ended = of_policy({});
  EXPECT_EQ(ended.value("out_of_memory", 0), 120) << ended;
  EXPECT_EQ(ended["finished"], 0);
  EXPECT_THAT(schedule({full, "-p", "rr"}).out, HasSubstr("  ended: out of memory\n"));
  const Json waited = of_policy({"--model", "corrected"});
  EXPECT_FALSE(waited.contains("out_of_memory")) << waited;
  EXPECT_EQ(waited["finished"], 1);
}

TEST(ScheduleVerb, classic_has_the_published_programs_output_and_exit_statuses) {
  const auto good = schedule({config_file(), "--classic", "-p", "bfa"});
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_THAT(good.out, StartsWith("policy: bfa\nsimulation end: "));
  EXPECT_THAT(good.out, HasSubstr("\nkernel statistics:\nANTT: "));
  EXPECT_THAT(good.out, HasSubstr("(2 kernels)"));
  EXPECT_EQ(good.err, "");
  EXPECT_THAT(schedule({config_file(), "--classic"}).out, StartsWith("policy: rr\n"));
  const auto verbose = schedule({config_file(), "--classic", "-v"}).out;
  EXPECT_THAT(verbose, HasSubstr("[     0]"));
  EXPECT_THAT(verbose, HasSubstr("kernel[02]: ANTT: "));

  const auto bad = schedule({schedule_file("bad.conf", "*overhead\n"), "--classic"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.conf:1: unknown section"));
  const auto full = schedule(
      {schedule_file("full.conf", machine + "*kernel\n1 1 3 3 1 60\n"), "--classic", "-p", "rr"});
  EXPECT_EQ(full.exit_code, 4);
  EXPECT_EQ(full.err, "ERROR: out of memory: 120\n\n");
  EXPECT_EQ(full.out, "");
  // What it had told by then stays told.
  const auto told = schedule({(schedule_folder() / "full.conf").string(), "--classic", "-v"});
  EXPECT_EQ(told.exit_code, 4);
  EXPECT_THAT(told.out, StartsWith("[     0]"));
  const auto endless =
      schedule({schedule_file("endless.conf", machine + "*kernel\n1 5 1 1 1 1\n1 4 1 1 1 1\n"),
                "--classic"});
  EXPECT_EQ(endless.exit_code, 1);
  EXPECT_THAT(endless.err, HasSubstr("endless.conf:11: this kernel starts at 4"));
}

TEST(ScheduleVerb, the_corrected_model_runs_kernels_in_any_order_and_waits_for_memory) {
  const std::string backwards =
      schedule_file("backwards.conf", machine + "*kernel\n1 5 1 1 1 1\n1 4 1 1 1 1\n");
  EXPECT_EQ(schedule({backwards, "-p", "rr"}).exit_code, 1);
  const std::string full = schedule_file("much.conf", machine + "*kernel\n1 1 3 3 1 60\n");
  EXPECT_THAT(schedule({full, "-p", "rr"}).out, HasSubstr("ended: out of memory"));
  for (const std::string& file : {backwards, full}) {
    const auto outcome = schedule({file, "-p", "rr", "--model", "corrected"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("100.0%"));
    EXPECT_THAT(outcome.out, HasSubstr("model corrected"));
  }
}

// Every event has what the format asks of it, slices of a thread follow each other, and no block is
// missing.
void expect_valid_trace(const std::string& text, std::uint64_t blocks, std::size_t sms) {
  const Json trace = Json::parse(text);
  std::map<int, double> busy_until;
  std::set<int> processes;
  std::uint64_t drawn = 0;
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event["name"].is_string());
    ASSERT_GT(event["pid"].get<int>(), 0);
    ASSERT_GE(event["ts"].get<double>(), 0);
    if (event["ph"] == "M") {
      if (event["name"] == "process_name") processes.insert(event["pid"].get<int>());
      ASSERT_FALSE(event["args"].empty());
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    ASSERT_TRUE(processes.contains(event["pid"].get<int>()));
    ASSERT_GT(event["dur"].get<double>(), 0);
    double& busy = busy_until[event["tid"].get<int>()];
    ASSERT_GE(event["ts"].get<double>(), busy) << event.dump();
    busy = event["ts"].get<double>() + event["dur"].get<double>();
    drawn += std::stoull(event["args"]["blocks"].get<std::string>());
  }
  EXPECT_EQ(processes.size(), sms);
  EXPECT_EQ(drawn, blocks);
}

TEST(ScheduleVerb, every_example_scenario_gives_a_report_a_valid_trace_and_a_picture) {
  const std::string trace = (schedule_folder() / "t.json").string();
  const std::string picture = (schedule_folder() / "t.svg").string();
  for (const std::string name : all_scenarios) {
    const std::string file = example(name + ".json");
    const auto outcome = schedule({file, "--timeline", trace, "--svg", picture, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json report = Json::parse(outcome.out);
    EXPECT_EQ(report["schema"], "demarc.schedule.hardware/1");
    const std::map<std::string, std::size_t> sms = {
        {"gtx1060-3gb", 9}, {"p100", 56}, {"titan-v", 80}};
    expect_valid_trace(*read_file(trace), report["blocks"].get<std::uint64_t>(),
                       sms.at(report["device"].get<std::string>()));
    const std::string svg = *read_file(picture);
    EXPECT_THAT(svg, StartsWith("<svg "));
    EXPECT_THAT(svg, HasSubstr("time in us"));
    for (const Json& kernel : report["kernels"]) {
      EXPECT_THAT(svg, HasSubstr(">" + kernel["name"].get<std::string>() + "</text>")) << name;
      EXPECT_LT(kernel["first_us"].get<double>(), kernel["end_us"].get<double>());
      EXPECT_FALSE(kernel["sms"].empty());
    }
  }
}

TEST(ScheduleVerb, a_scenarios_table_says_who_ran_where_and_when) {
  const auto outcome = schedule({example("fig03_masked.json")});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("device gtx1060-3gb, 32 task slots, 32 hardware queues"));
  const auto lines = schedule_lines(outcome.out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2],
            "K1             A                0.000       0.000     500.000        0  0-3");
  EXPECT_EQ(lines[3],
            "K2             B               10.000      10.000     110.000        0  4-8");
}

TEST(ScheduleVerb, a_configurations_timeline_shows_the_policy_that_was_named) {
  const std::string trace = (schedule_folder() / "c.json").string();
  const std::string picture = (schedule_folder() / "c.svg").string();
  for (const std::string policy : {"rr", "dfa"}) {
    const auto outcome =
        schedule({config_file(), "-p", policy, "--timeline", trace, "--svg", picture});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_valid_trace(*read_file(trace), 10, 2);
    EXPECT_THAT(*read_file(picture), HasSubstr("two.conf, policy " + policy + "</text>"));
    EXPECT_THAT(*read_file(picture), HasSubstr("time in ticks"));
  }
}

// One of the two is enough; without -p they are of rr.
TEST(ScheduleVerb, a_timeline_and_a_picture_are_written_without_each_other) {
  const std::string file = (schedule_folder() / "alone").string();
  const auto written = [&](const std::vector<std::string>& more) {
    std::filesystem::remove(file);
    std::vector<std::string> arguments{config_file()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back(file);
    EXPECT_EQ(schedule(arguments).exit_code, 0);
    return read_file(file).value_or("");
  };
  EXPECT_THAT(written({"--svg"}), HasSubstr("two.conf, policy rr</text>"));
  expect_valid_trace(written({"-p", "bfa", "--timeline"}), 10, 2);
  // Memory for one kernel only: the models differ in what happens then.
  const std::string full = schedule_file("more.conf", machine + "*kernel\n1 1 3 3 1 60\n");
  const auto drawn = [&](const std::string& model) {
    EXPECT_EQ(schedule({full, "-p", "rr", "--model", model, "--svg", file}).exit_code, 0);
    return read_file(file).value_or("");
  };
  EXPECT_NE(drawn("corrected"), drawn("simtbs"));
}

TEST(ScheduleVerb, the_timeline_of_the_locality_policy_follows_the_map) {
  const std::string map = schedule_file(
      "drawn.json",
      R"({"schema": "demarc.locality/1", "inter": {"map": {"size": 4}, "sets": [[64, [0, 2]]]}})");
  const std::string config = schedule_file("drawn.conf", machine + "*kernel\n2 1 4 3 1 5\n");
  const std::string file = (schedule_folder() / "drawn.svg").string();
  const auto drawn = [&](const std::string& option) {
    EXPECT_EQ(schedule({config, "-p", "locality", "--locality", option, "--svg", file}).exit_code,
              0);
    return read_file(file).value_or("");
  };
  EXPECT_NE(drawn(map), drawn("1=" + map));
}

TEST(ScheduleVerb, a_locality_map_says_how_much_of_the_sharing_stays_on_one_sm) {
  const std::string map = schedule_file(
      "map.json",
      R"({"schema": "demarc.locality/1", "inter": {"map": {"size": 4}, "sets": [[64, [0, 2]]]}})");
  const std::string config = schedule_file("four.conf", machine + "*kernel\n2 1 4 3 1 5\n");
  const auto kept = [&](const std::string& policy, const std::string& option) {
    std::vector<std::string> arguments = {config, "--locality", option, "--json"};
    if (policy != "all") arguments.insert(arguments.end(), {"-p", policy});
    const auto outcome = schedule(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::map<std::string, double> shares;
    const Json report = Json::parse(outcome.out);
    for (const Json& entry : report["policies"]) {
      shares[entry["policy"]] = entry["sharing_kept"];
    }
    return shares;
  };
  EXPECT_EQ(kept("locality", map).at("locality"), 1.0);
  EXPECT_EQ(kept("locality", "2=" + map).at("locality"), 1.0);
  EXPECT_EQ(kept("locality", "1=" + map).at("locality"), 0.0) << "a map of other kernels";
  EXPECT_EQ(kept("all", map).size(), all_policies.size());
  EXPECT_THAT(schedule({config, "--locality", map}).out, HasSubstr("kept"));
}

TEST(ScheduleVerb, generate_is_reproducible_and_its_output_runs) {
  const std::string file = (schedule_folder() / "generated.conf").string();
  const std::vector<std::string> arguments = {"generate", "--level", "60", "--ticks", "300",
                                              "--seed",   "7",       "-o", file};
  EXPECT_EQ(schedule(arguments).exit_code, 0);
  const std::string first = *read_file(file);
  EXPECT_THAT(first, StartsWith("*general\n300\n*sm\n16 1 1 8\n"));
  EXPECT_EQ(schedule(arguments).exit_code, 0);
  EXPECT_EQ(*read_file(file), first);
  EXPECT_NE(schedule({"generate", "--level", "60", "--ticks", "300", "--seed", "8"}).out, first);
  EXPECT_EQ(schedule({file, "-p", "bfa"}).exit_code, 0);
}

TEST(ScheduleVerb, generate_takes_mix_machine_generation_and_a_base_file) {
  const auto printed = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"generate", "--ticks", "200"});
    const auto outcome = schedule(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_THAT(printed({"--mix", "multi", "--sms", "4"}), HasSubstr("*sm\n4 3 3 8 16 16\n"));
  EXPECT_THAT(printed({"--units", "64"}), HasSubstr("*sm\n16 1 1 64\n"));
  // Extreme requests are of one unit or of a whole SM.
  const auto extreme = schedule_lines(printed({"--mix", "extreme", "--generation", "corrected"}));
  std::size_t kernels = 0;
  for (auto line = std::find(extreme.begin(), extreme.end(), "*kernel") + 1; line != extreme.end();
       ++line, ++kernels) {
    std::istringstream fields(*line);
    std::vector<int> values{std::istream_iterator<int>(fields), {}};
    ASSERT_EQ(values.size(), 6U);
    EXPECT_TRUE(values[4] == 1 || values[4] == 8) << *line;
    EXPECT_GE(values[2], 12) << "the corrected rules add the lower bound";
  }
  EXPECT_GT(kernels, 0U);
  EXPECT_NE(printed({"--generation", "2020"}), printed({"--generation", "2021"}));
  const std::string base = schedule_file(
      "base.conf", "*general\n100\n*workload\n80\n" + machine + "*kernel\n7 1 6 3 1 5\n");
  const auto picked = schedule({"generate", "--config", base});
  EXPECT_EQ(picked.exit_code, 0) << picked.err;
  EXPECT_THAT(picked.out, HasSubstr("\n7 "));
}

TEST(ScheduleVerb, study_sets_published_numbers_beside_ours_in_table_json_and_page) {
  const std::string page = (schedule_folder() / "study.html").string();
  const std::vector<std::string> quick = {"study", "--seeds", "2", "--ticks", "100"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), quick.begin(), quick.end());
    return schedule(more);
  };
  const auto table = with({"--html", page, "--threads", "1"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("The program of May 2020, its machine and its workloads"));
  EXPECT_THAT(
      table.out,
      ContainsRegex("Figure 6: ANTT of RR at 80 % +about 2\\.3 +section III, Figure 6 +[0-9]"));
  EXPECT_THAT(*read_file(page), HasSubstr("What the published round robin does"));
  EXPECT_EQ(with({"--threads", "3"}).out, table.out);
  EXPECT_NE(with({"--seed", "5"}).out, table.out);
  EXPECT_GT(schedule_lines(with({"-v"}).out).size(), 100U);
  const Json json = Json::parse(with({"--json"}).out);
  EXPECT_EQ(json["schema"], "demarc.schedule.study/1");
  EXPECT_EQ(json["seeds"], 2);
  for (const Json& cell : json["cells"]) {
    EXPECT_LE(cell["antt"]["low"].get<double>(), cell["antt"]["mean"].get<double>());
    EXPECT_LE(cell["antt"]["mean"].get<double>(), cell["antt"]["high"].get<double>());
  }
}

TEST(ScheduleVerb, compare_sets_every_policy_against_a_skipping_round_robin) {
  const std::string page = (schedule_folder() / "compare.html").string();
  const std::vector<std::string> quick = {"compare", "--seeds",  "2",        "--ticks", "200",
                                          "--sms",   "16,32,16", "--levels", "40"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), quick.begin(), quick.end());
    return schedule(more);
  };
  const auto table = with({"--html", page});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  for (const std::string& policy : all_policies) EXPECT_THAT(table.out, HasSubstr(policy));
  // One resource: a bound of 1.5 never binds, and least load and best fit are bfa and dfa.
  EXPECT_THAT(table.out, HasSubstr("\nrr, smk, fua "));
  EXPECT_THAT(table.out, HasSubstr("uniform mix, load 40 %: ANTT with queueing (less is better)"));
  EXPECT_THAT(table.out, ContainsRegex("policy +16 SMs +32 SMs\n"));
  EXPECT_THAT(table.out, ContainsRegex("\nrr-skip +1\\.000 ±0\\.000"));
  EXPECT_THAT(*read_file(page), HasSubstr("Dispatch policies compared"));
  EXPECT_THAT(with({"--measure", "stp"}).out,
              HasSubstr("extreme mix, load 40 %: STP (more is better)"));
  EXPECT_THAT(with({"-v"}).out, HasSubstr("fairness\ncorrected    uniform    16"));
  const Json json = Json::parse(with({"--json"}).out);
  EXPECT_EQ(json["cells"].size(), 3U * 2U * 11U);
  for (const char* key :
       {"antt", "antt_with_queueing", "stp", "utilization_percent", "finished_share", "fairness"}) {
    EXPECT_TRUE(json["cells"][0][key].contains("mean")) << key;
  }
}

// Two of 2021's grammar with kernels: a run each. The figures are those of the files alone.
TEST(ScheduleVerb, compare_and_study_take_workloads_of_ones_own) {
  const std::string one =
      schedule_file("one.conf", machine + "*kernel\n1 1 6 3 1 5\n1 2 9 4 2 5\n");
  const std::string two =
      schedule_file("two_of.conf", machine + "*kernel\n1 1 9 9 3 5\n1 2 9 4 4 5\n");
  const auto antt = [&](const std::string& file, const char* policy) {
    const Json json =
        Json::parse(schedule({file, "-p", policy, "--model", "corrected", "--json"}).out);
    return json["policies"][0]["antt_with_queueing"].get<double>();
  };
  const auto compared = schedule({"compare", one, two, "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  const Json json = Json::parse(compared.out);
  EXPECT_EQ(json["workloads"], Json({one, two}));
  for (const Json& cell : json["cells"]) {
    const std::string policy = cell["policy"];
    EXPECT_EQ(cell["runs"], 2);
    EXPECT_EQ(cell["mix"], "given");
    EXPECT_NEAR(cell["antt_with_queueing"]["mean"].get<double>(),
                (antt(one, policy.c_str()) + antt(two, policy.c_str())) / 2, 1e-9)
        << policy;
  }
  const std::string page = (schedule_folder() / "given.html").string();
  const auto table = schedule({"compare", one, two, "--html", page});
  EXPECT_THAT(table.out, StartsWith("2 workloads. Each figure"));
  EXPECT_THAT(table.out, HasSubstr("workloads given: ANTT with queueing (less is better)"));
  EXPECT_THAT(*read_file(page), HasSubstr("two_of.conf"));
  // One without kernels is drawn, a run a seed.
  const std::string drawn =
      schedule_file("drawn_load.conf", "*general\n300\n*workload\n80 2-9 2-9 1-4\n1-5\n" + machine);
  EXPECT_EQ(
      Json::parse(
          schedule({"compare", drawn, one, "--seeds", "3", "--json"}).out)["cells"][0]["runs"],
      4);
  // The study has the paper's policies, by the rules of 2020.
  const std::string paper = (schedule_folder() / "paper.conf").string();
  ASSERT_EQ(schedule({"generate", "--generation", "2020", "--ticks", "300", "-o", paper}).exit_code,
            0);
  const auto studied = schedule({"study", paper, "--html", page});
  EXPECT_EQ(studied.exit_code, 0) << studied.err;
  EXPECT_THAT(studied.out, StartsWith("workloads: 1; "));
  EXPECT_THAT(studied.out, ContainsRegex("simtbs-2020  given +16 +-  ?rr-skip +simtbs "));
  EXPECT_THAT(*read_file(page), HasSubstr("ANTT of the workloads given"));
  EXPECT_EQ(schedule({paper, "--classic", "--model", "simtbs-2020", "-p", "dfa"}).exit_code, 0);
}

TEST(ScheduleVerb, workloads_of_ones_own_are_of_one_machine_and_have_their_own_length_and_load) {
  const std::string one = schedule_file("alike.conf", machine + "*kernel\n1 1 6 3 1 5\n");
  const std::string other =
      schedule_file("other.conf", "*sm\n3 1 1 4\n*mem\n100\n*kernel\n1 1 6 3 1 5\n");
  const auto refused = [](std::vector<std::string> arguments, const std::string& why) {
    const auto outcome = schedule(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refused({"compare", one, other}, "other.conf: its machine differs from that of ");
  refused({"compare", one, "--ticks", "5"}, "--ticks: the given workloads have their own length");
  refused({"compare", one, "--levels", "5"}, "leave out levels");
  refused({"compare", one, "--sms", "5"}, "leave out sizes");
  const std::string two_resources =
      schedule_file("two_resources.conf", "*sm\n3 2 2 4 4\n*mem\n100\n*kernel\n1 1 6 3 1 1 5\n");
  refused({"study", two_resources}, "the program of 2020 (simtbs-2020)");
  refused({"compare", "none.conf"}, "none.conf");
}

TEST(ScheduleVerb, plan_holds_or_names_the_tasks_that_cannot_with_status_3) {
  const auto good = schedule({"plan", example("tasks.json")});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("titan-v: 40 TPCs"));
  EXPECT_THAT(good.out, HasSubstr("partition of 15 TPCs 0-14: bound 3500.0 us"));
  EXPECT_THAT(
      good.out,
      HasSubstr("12 of 40 TPCs hold every deadline: camera + planner + display on 6, lidar on 6"));
  EXPECT_THAT(good.out, HasSubstr("camera           period 33000.0 us, deadline 12000.0 us"));
  const Json json = Json::parse(schedule({"plan", example("tasks.json"), "--json"}).out);
  EXPECT_EQ(json["schema"], "demarc.schedule.plan/1");
  EXPECT_EQ(json["feasible"], true);
  for (const Json& partition : json["partitions"]) {
    for (const Json& task : partition["tasks"]) {
      EXPECT_LE(task["simulated_worst_us"].get<double>(), partition["bound_us"].get<double>());
      EXPECT_LE(partition["bound_us"].get<double>(), task["deadline_us"].get<double>());
    }
  }
  const auto outcome = schedule(
      {"plan", schedule_file("heavy.json",
                             R"({"schema": "demarc.tasks/1", "device": "titan-v", "tasks": [
      {"name": "heavy", "period_us": 100, "blocks": 100000, "threads": 256, "block_us": 500}]})")});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("cannot hold: heavy takes "));
  EXPECT_THAT(outcome.err, HasSubstr("heavy.json: no partition holds all deadlines"));
}

TEST(ScheduleVerb, every_help_gives_defaults_and_an_example) {
  const std::pair<const char*, std::vector<const char*>> commands[] = {
      {"", {"dfa, smk"}},
      {"generate",
       {"--level PERCENT=80 ", "--sms UINT=16 ", "--units UINT=8 ", "--ticks UINT=10000 ",
        "--seed UINT=1 "}},
      {"study", {"--seeds UINT=10 ", "--ticks UINT=10000 ", "--threads UINT=0 "}},
      {"compare",
       {"(default: 16,32,66,132,264,528)", "--seeds UINT=10 ", "--ticks UINT=3000 ",
        "antt, antt-queue, "}},
      {"plan", {"demarc.tasks/1"}}};
  for (const auto& [command, shown_all] : commands) {
    std::vector<std::string> arguments{"--help"};
    if (*command != 0) arguments.insert(arguments.begin(), command);
    const auto outcome = schedule(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << command;
    for (const char* shown : shown_all) EXPECT_THAT(outcome.out, HasSubstr(shown)) << command;
    EXPECT_THAT(outcome.out, HasSubstr("Example: demarc schedule")) << command;
  }
}

}  // namespace
}  // namespace demarc::test
