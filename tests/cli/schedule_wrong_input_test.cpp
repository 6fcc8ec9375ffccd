// What demarc schedule says to wrong input: exit 1, the place, what would be right, nothing
// written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "schedule_verb.hpp"

namespace demarc::test {
namespace {

using ::testing::HasSubstr;

struct Wrong {
  std::vector<std::string> arguments;
  std::string told;
};

void expect_refused(const std::vector<Wrong>& wrong) {
  const std::string out = (schedule_folder() / "unwritten").string();
  for (const Wrong& w : wrong) {
    auto arguments = w.arguments;
    if (!arguments.empty()) arguments.insert(arguments.end(), {"-o", out});
    const auto outcome = schedule(arguments);
    std::string said;
    for (const auto& argument : w.arguments) said += argument + " ";
    EXPECT_EQ(outcome.exit_code, 1) << said << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(w.told)) << said;
    EXPECT_EQ(outcome.out, "") << said;
    EXPECT_FALSE(std::filesystem::exists(out)) << said;
  }
}

TEST(ScheduleVerb, wrong_options_are_refused_with_what_would_be_right) {
  const std::string conf = config_file();
  const std::string scenario = example("fig12_slots_full.json");
  const std::string no_json = schedule_file("no.json", "{");
  expect_refused({
      {{}, "name a file or a subcommand (generate, study, compare, plan)"},
      {{"nonsense"}, "nonsense: neither a file nor a subcommand; subcommands are generate"},
      {{"/no/such.conf"}, "/no/such.conf: cannot be read"},
      {{conf, "-p", "nope"}, "unknown policy 'nope'; demarc list policies shows all"},
      {{conf, "-p", "rr-skp"}, "; did you mean rr-skip?"},
      {{conf, "--model", "nope"}, "unknown model 'nope': use simtbs, simtbs-2020 or corrected"},
      {{conf, "-p", "locality", "--locality", "/no/map.json"}, "/no/map.json"},
      {{conf, "-p", "locality", "--locality", no_json}, "no.json"},
      {{conf, "-p", "locality", "--locality", "x=" + no_json}, "--locality TYPE=FILE"},
      {{conf, "-p", "rr", "--locality", no_json}, "only the policy locality reads this; add -p"},
      {{conf, "--classic", "--json"}, "--json: --classic prints"},
      {{conf, "--classic", "--svg", "x.svg"}, "--svg: --classic prints"},
      {{conf, "--classic", "--timeline", "x.json"}, "--timeline: --classic prints"},
      {{conf, "--classic", "-p", "nope"}, "unknown policy 'nope'"},
      {{conf, "--classic", "-p", "all"}, "--policy: --classic prints one policy; name it"},
      {{scenario, "-p", "bfa"}, "--policy: a scenario"},
      {{scenario, "--model", "simtbs"}, "--model: a scenario"},
      {{scenario, "--classic"}, "--classic: a scenario"},
      {{scenario, "-v"}, "--verbose: a scenario"},
      {{conf, "--no-such-option"}, "--no-such-option"},
      {{conf, "second.conf"}, "second.conf"},
      {{"-p", "bfa", "compare"}, "--policy before compare would have no effect"},
      {{conf, "study"}, "two.conf before study would have no effect"},
      {{"--json", "generate"}, "--json before generate would have no effect"},
      {{"generate", "--mix", "nope"}, "use uniform, extreme or multi"},
      {{"generate", "--generation", "nope"}, "use 2021, 2020 or corrected"},
      {{"generate", "--sms", "0"}, "--sms: Value 0 not in range 1 to 4096"},
      {{"generate", "--units", "0"}, "--units: Value 0 not in range 1 to 4096"},
      {{"generate", "--ticks", "0"}, "--ticks: Value 0 not in range 1 to 1000000000"},
      {{"generate", "--level", "0"}, "--level: Value 0 not in range 1 to 100000"},
      {{"generate", "--ticks", "many"}, "--ticks: 'many' is not a whole number"},
      {{"generate", "--level", "-1"}, "--level: '-1' is not a percentage"},
      {{"generate", "--seed", "x"}, "--seed"},
      {{"generate", "--config", "/no/base.conf"}, "/no/base.conf: cannot be read"},
      {{"generate", "--config", conf, "--level", "5"}, "--level: --config"},
      {{"generate", "--config", conf}, "two.conf: a *workload section is needed"},
      {{"study", "--seeds", "0"}, "--seeds: Value 0 not in range 1 to 100000"},
      {{"study", "--ticks", "0"}, "--ticks: Value 0 not in range 1 to 1000000000"},
      {{"study", "--threads", "4097"}, "--threads: Value 4097 not in range 0 to 4096"},
      {{"study", "--threads", "x"}, "--threads: 'x' is not a whole number"},
      {{"study", "more"}, "more"},
      {{"generate", "--generation", "2020", "--mix", "multi"},
       "the program of 2020 has one resource"},
      {{"compare", "--sms", "0"}, "--sms: Value 0 not in range 1 to 4096"},
      {{"compare", "--sms", "16,x"}, "--sms: 'x' is not a whole number"},
      {{"compare", "--levels", "0"}, "--levels: Value 0 not in range 1 to 100000"},
      {{"compare", "--measure", "speed"}, "unknown measure 'speed': known are antt, antt-queue"},
      {{"plan"}, "tasks is required"},
      {{"plan", "/no/tasks.json"}, "/no/tasks.json: cannot be read"},
      {{"plan", no_json}, "no.json: not valid JSON"},
      {{"plan", scenario}, "expected demarc.tasks/1; a scenario goes to demarc schedule"},
      {{example("tasks.json")},
       "expected demarc.scenario/1; a task set goes to demarc schedule plan"},
  });
}

TEST(ScheduleVerb, a_malformed_configuration_is_refused_with_its_line) {
  const auto conf = [](const std::string& text) { return schedule_file("w.conf", text); };
  const std::pair<std::string, std::string> wrong[] = {
      {"*sm\n2 1 1\n", "w.conf:2: expected: n_sms n_sched"},
      {"*nosuch\n", "w.conf:1: unknown section"},
      {machine + "*kernel\n1 1 6 3 1\n", "w.conf:10: "},
      {machine + "*kernel\n1 0 6 3 1 5\n", "w.conf:10: "},
      {machine + "*kernel\n1 5 1 1 1 1\n1 4 1 1 1 1\n", "w.conf:11: this kernel starts at 4"},
      {machine + "*kernel\n1 1 6 3 5 5\n", "w.conf:10: "},
      {machine + "*kernel\n1 1 6 3 0 5\n", "w.conf:10: "},
      {"*sm\n2 1 1 4\n*mem\n100\n*overhead_sm\n1 0.2\n0.5 0.3\n", "w.conf:7: "},
      {"*kernel\n1 1 6 3 1 5\n", "w.conf:1: *sm must come before this section"},
  };
  for (const auto& [text, told] : wrong) expect_refused({{{conf(text)}, told}});
}

TEST(ScheduleVerb, a_malformed_scenario_is_refused_with_the_path_of_the_key) {
  const auto scenario = [](const std::string& kernel) {
    return schedule_file("w.json",
                         R"({"schema": "demarc.scenario/1", "device": "gtx1060-3gb",
      "streams": [{"name": "A"}, {"name": "B"}], "kernels": [)" +
                             kernel + "]}");
  };
  const auto kernel = [](const std::string& more) {
    return R"({"name": "K", "stream": "A", "threads": 128, "block_us": 10)" + more + "}";
  };
  const std::pair<std::string, std::string> wrong[] = {
      {"", "w.json: kernels: none given"},
      {"1", "w.json: kernels[0]: an object was expected"},
      {kernel(""), "w.json: kernels[0]: the key 'blocks' is missing"},
      {kernel(R"(, "blocks": 0)"), "w.json: kernels[0].blocks: 0 is not within 1 .. "},
      {kernel(R"(, "blocks": "x")"), "w.json: kernels[0].blocks: "},
      {kernel(R"(, "blocks": 4, "tpcs": "0-9")"),
       "w.json: kernels[0].tpcs: 9 is above the highest index, 8"},
      {kernel(R"(, "blocks": 4, "tpcs": "0", "gpcs": "0")"),
       "w.json: kernels[0]: gives both tpcs and gpcs; leave one out"},
      {kernel(R"(, "blocks": 4, "tpc": "0")"), "w.json: kernels[0]: unknown key 'tpc'"},
      {kernel(R"(, "blocks": 4, "arrival_us": -1)"), "w.json: kernels[0].arrival_us: -1 is not"},
      {kernel(R"(, "blocks": 4, "shared_bytes": 1000000)"),
       "w.json: kernel 'K': a block takes 128"},
      {R"({"name": "K", "stream": "C", "blocks": 1, "threads": 1, "block_us": 1})",
       "w.json: kernels[0].stream: 'C' is not one of the streams: A, B"},
      {kernel(R"(, "blocks": 4, "arrival_us": 5)") + "," + kernel(R"(, "blocks": 4)"),
       "w.json: kernel 'K': arrives before the one ahead of it in its stream; put"},
  };
  for (const auto& [text, told] : wrong) expect_refused({{{scenario(text)}, told}});
  expect_refused(
      {{{schedule_file("d.json", R"({"schema": "demarc.scenario/1", "device": "none-such",
        "streams": [], "kernels": []})")},
        "there is no device 'none-such'; demarc list devices shows all"}});
}

TEST(ScheduleVerb, a_malformed_task_set_is_refused_with_the_path_of_the_key) {
  const auto tasks = [](const std::string& task) {
    return schedule_file(
        "t.json", R"({"schema": "demarc.tasks/1", "device": "titan-v", "tasks": [)" + task + "]}");
  };
  const auto task = [](const std::string& more) {
    return R"({"name": "T", "period_us": 100, "blocks": 8, "threads": 64)" + more + "}";
  };
  const std::pair<std::string, std::string> wrong[] = {
      {"", "t.json: tasks: none given"},
      {task(""), "t.json: tasks[0]: the key 'block_us' is missing"},
      {task(R"(, "block_us": "x")"), "t.json: tasks[0].block_us: expected a time"},
      {task(R"(, "block_us": {"0": 5})"), "t.json: tasks[0].block_us"},
      {task(R"(, "block_us": 5, "deadline_us": 0)"), "t.json: tasks[0].deadline_us"},
      {task(R"(, "block_us": 5, "weight": 1)"), "t.json: tasks[0]: unknown key 'weight'"},
      {task(R"(, "block_us": 5, "shared_bytes": 1000000)"), "T"},
  };
  for (const auto& [text, told] : wrong) expect_refused({{{"plan", tasks(text)}, told}});
}

}  // namespace
}  // namespace demarc::test
