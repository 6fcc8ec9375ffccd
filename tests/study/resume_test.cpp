// Tests that a study which is ended early keeps what it measured, and that the next one measures
// only the rest and refuses cells that were measured differently.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/study/study.hpp"
#include "paths.hpp"
#include "scripted_executor.hpp"

namespace demarc::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Plan resumed_plan() {
  Plan plan;
  plan.modes = parse_modes("none,mask").value();
  plan.victims = {{"v", "v"}, {"w", "w"}};
  plan.aggressors = {{"a", "a"}};
  plan.rule = {0, 2, 2, 1, 10};
  plan.rounds = 2;
  return plan;
}

constexpr std::size_t baselines = 2;
constexpr std::size_t measurements =
    baselines + 2 * 2 * 2 * 2;  // modes, victims, neighbours, rounds

// The study of the plan, ended before measurement number `ends_before`.
StudyResult run_until(Script& script, const Plan& plan, std::size_t ends_before,
                      const StudyResult* earlier = nullptr) {
  ScriptedExecutor executor(script);
  RunOptions options;
  std::size_t asked = 0;
  options.stop = [&] { return asked++ == ends_before; };
  options.earlier = earlier;
  auto result = run_study(plan, executor, options);
  EXPECT_TRUE(result) << result.error().message;
  return std::move(*result);
}

StudyResult read_back(const StudyResult& result) {
  auto read = read_study(study_json(result, "demarc isolate"), "study.json");
  EXPECT_TRUE(read) << read.error().message;
  return std::move(*read);
}

std::ptrdiff_t samples_in(const Script& script) {
  return std::count_if(script.log.begin(), script.log.end(), [](const std::string& entry) {
    return entry.find(" sample ") != std::string::npos;
  });
}

// Each time differs, so that a time tells in which measurement it was taken.
void count_times(Script& script) {
  script.time = [next = 100.0](const Workload&, const Workload*) mutable { return next++; };
}

TEST(Resume, a_study_that_is_ended_early_says_so_and_names_the_cells_it_did_not_run) {
  Script script;
  const StudyResult result = run_until(script, resumed_plan(), baselines + 4);
  EXPECT_EQ(samples_in(script), baselines + 4);
  EXPECT_EQ(result.interrupted, "the study was ended early and measured 0 of 8 cells");
  std::size_t not_run = 0;
  for (const Cell& cell : result.cells) {
    EXPECT_EQ(cell.not_run, cell.visits == 0 ? interrupted_cell : "");
    not_run += cell.visits == 0 ? 1 : 0;
  }
  EXPECT_EQ(not_run, 4U);
  EXPECT_THAT(remarks_of(result), testing::Each(testing::EndsWith("measured in 1 of 2 rounds")));
  EXPECT_EQ(remarks_of(result).size(), 4U);
  const std::string text = study_text(result);
  EXPECT_THAT(text,
              HasSubstr("NOT COMPLETE: the study was ended early and measured 0 of 8 cells.\n"));
  EXPECT_THAT(text,
              HasSubstr("not run, because the study was ended before: v next to any, w next to "
                        "any\n"));
  EXPECT_THAT(result.recommendation,
              testing::StartsWith("Of the modes that were measured before the study ended: Use "));
  const StudyResult early = run_until(script, resumed_plan(), baselines + 1);
  EXPECT_EQ(early.recommendation,
            "No mode ran all of its cells before the study was ended, so there is nothing to "
            "recommend.");
  EXPECT_EQ(Json::parse(study_json(result, ""))["interrupted"], result.interrupted);
}

TEST(Resume, cells_of_one_victim_that_were_not_run_are_named_with_their_neighbours) {
  Script script;
  Plan plan = resumed_plan();
  plan.rounds = 1;
  const StudyResult result = run_until(script, plan, baselines + 7);
  EXPECT_EQ(result.interrupted, "the study was ended early and measured 7 of 8 cells");
  const std::string left =
      visit_order(plan, mode_order(plan).back(), 0).back().aggressor ? "a" : "-";
  EXPECT_THAT(study_text(result), HasSubstr(" next to " + left + "\n"));
  EXPECT_THAT(result.recommendation, HasSubstr("study ended: Use "));
}

TEST(Resume, a_complete_study_is_not_called_interrupted) {
  Script script;
  const StudyResult result = run_until(script, resumed_plan(), measurements);
  EXPECT_EQ(result.interrupted, "");
  EXPECT_THAT(study_text(result), Not(HasSubstr("NOT COMPLETE")));
  EXPECT_FALSE(Json::parse(study_json(result, "")).contains("interrupted"));
}

TEST(Resume, only_the_rest_is_measured_and_the_cells_are_those_of_one_run) {
  Script whole;
  count_times(whole);
  const StudyResult expected = run_until(whole, resumed_plan(), measurements);
  for (std::size_t at = 0; at <= measurements; ++at) {
    Script script;
    count_times(script);
    const StudyResult first = read_back(run_until(script, resumed_plan(), at));
    const auto before = samples_in(script);
    EXPECT_EQ(before, static_cast<std::ptrdiff_t>(at));
    const StudyResult second = run_until(script, resumed_plan(), measurements, &first);
    EXPECT_EQ(samples_in(script), static_cast<std::ptrdiff_t>(measurements)) << at;
    ASSERT_EQ(second.cells.size(), expected.cells.size());
    for (std::size_t i = 0; i < expected.cells.size(); ++i) {
      EXPECT_EQ(second.cells[i].samples_ns, expected.cells[i].samples_ns) << at << " " << i;
      EXPECT_EQ(second.cells[i].visits, 2U);
      EXPECT_EQ(second.cells[i].aggressor_rate, expected.cells[i].aggressor_rate);
    }
    EXPECT_EQ(second.baselines.size(), 2U);
    EXPECT_EQ(second.interrupted, "");
    EXPECT_EQ(second.modes[0].account, "scripted");
    EXPECT_EQ(second.modes[1].account, "scripted");
    EXPECT_EQ(study_text(second), study_text(expected));
  }
}

TEST(Resume, a_mode_whose_cells_are_all_there_is_not_divided_again) {
  Script script;
  const StudyResult first = read_back(run_until(script, resumed_plan(), baselines + 8));
  script.log.clear();
  run_until(script, resumed_plan(), measurements, &first);
  const std::string done = resumed_plan().modes[mode_order(resumed_plan()).front()].name();
  EXPECT_THAT(script.log, Not(testing::Contains("divide " + done)));
  EXPECT_EQ(samples_in(script), 8);
}

TEST(Resume, cells_with_an_error_are_measured_again) {
  Script script;
  script.outputs["mask/0"] = {8, true, {}};
  const StudyResult first = read_back(run_until(script, resumed_plan(), measurements));
  EXPECT_FALSE(first.cells.back().error.empty());
  script.outputs.clear();
  const StudyResult second = run_until(script, resumed_plan(), measurements, &first);
  EXPECT_TRUE(second.errors.empty());
  for (const Cell& cell : second.cells) EXPECT_EQ(cell.samples_ns.size(), 4U);
}

TEST(Resume, each_measurement_is_told_with_all_that_was_measured_by_then) {
  Script script;
  ScriptedExecutor executor(script);
  RunOptions options;
  std::vector<std::size_t> counted;
  options.measured = [&](const std::function<StudyResult()>& so_far) {
    const StudyResult result = read_back(so_far());
    std::size_t visits = result.baselines.size();
    for (const Cell& cell : result.cells) visits += cell.visits;
    counted.push_back(visits);
  };
  ASSERT_TRUE(run_study(resumed_plan(), executor, options));
  ASSERT_EQ(counted.size(), measurements);
  for (std::size_t i = 0; i < measurements; ++i) EXPECT_EQ(counted[i], i + 1);
}

TEST(Resume, a_mode_that_fails_after_some_cells_keeps_them_whatever_the_machine_then_lacks) {
  for (const ErrorKind kind : {ErrorKind::check_failed, ErrorKind::missing_capability}) {
    Script script;
    script.faults["mask/1 start a"] = Error{kind, "the GPU is lost"};
    const StudyResult first = run_until(script, resumed_plan(), measurements);
    EXPECT_EQ(first.modes[1].unavailable, "");
    EXPECT_THAT(first.modes[1].failure, HasSubstr("next to a: the GPU is lost"));
    const StudyResult read = read_back(first);
    script.faults.clear();
    const StudyResult second = run_until(script, resumed_plan(), measurements, &read);
    EXPECT_TRUE(second.errors.empty());
    for (const Cell& cell : second.cells) EXPECT_EQ(cell.samples_ns.size(), 4U);
  }
}

// By MPS in one run and in turns in the next: these times are not those of one cell.
TEST(Resume, a_mode_whose_parts_run_in_another_way_now_fails_and_keeps_its_cells) {
  Script script;
  script.account = "2 parts by MPS; part 1: 30 GiB";
  const StudyResult read = read_back(run_until(script, resumed_plan(), measurements - 1));
  script.account = "2 parts by MPS; part 1: 29 GiB";
  EXPECT_TRUE(run_until(script, resumed_plan(), measurements, &read).errors.empty());
  script.account = "2 parts in turns; part 1: 30 GiB";
  const StudyResult second = run_until(script, resumed_plan(), measurements, &read);
  ASSERT_EQ(second.errors.size(), 1U);
  EXPECT_THAT(second.errors[0],
              HasSubstr("its cells were measured with '2 parts by MPS; part 1: 30 GiB', and now "
                        "its parts are '2 parts in turns; part 1: 30 GiB'"));
  for (std::size_t i = 0; i < read.cells.size(); ++i) {
    EXPECT_EQ(second.cells[i].samples_ns.size(), read.cells[i].samples_ns.size()) << i;
  }
}

// An executor that says another thing of its device.
class OtherDevice : public ScriptedExecutor {
 public:
  OtherDevice(Script& script, std::function<void(DeviceContext&)> change)
      : ScriptedExecutor(script), change_(std::move(change)) {}
  DeviceContext context() const override {
    DeviceContext out = ScriptedExecutor::context();
    out.settings = {{"split", "packed"}};
    change_(out);
    return out;
  }

 private:
  std::function<void(DeviceContext&)> change_;
};

void keep_device(DeviceContext&) {}

StudyResult written_study(const Plan& plan) {
  Script script;
  OtherDevice executor(script, keep_device);
  return read_back(run_study(plan, executor, {}).value());
}

TEST(Resume, the_same_study_is_taken_over) {
  Script script;
  const OtherDevice executor(script, keep_device);
  const auto checked =
      check_same_study(written_study(resumed_plan()), "f", resumed_plan(), executor);
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(Resume, a_device_that_differs_is_refused_by_name) {
  const StudyResult earlier = written_study(resumed_plan());
  const std::pair<std::function<void(DeviceContext&)>, std::string> changes[] = {
      {[](auto& device) { device.device = "cuda:1"; }, "device: scripted and cuda:1"},
      {[](auto& device) { device.name = "H100"; }, "card: none and H100"},
      {[](auto& device) { device.driver = "580.1"; }, "driver: none and 580.1"},
      {[](auto& device) { device.sms = 7; }, "SMs: 0 and 7"},
      {[](auto& device) { device.settings["split"] = "distributed"; },
       "split: packed and distributed"},
      {[](auto& device) { device.settings["masks"] = "0x1"; }, "masks: none and 0x1"},
      {[](auto& device) { device.settings.clear(); }, "split: packed and none"},
      {[](auto& device) { device.model = {"l2"}; }, "the parameters of the simulated card"}};
  for (const auto& [change, words] : changes) {
    Script script;
    const OtherDevice executor(script, change);
    const auto checked = check_same_study(earlier, "f.json", resumed_plan(), executor);
    ASSERT_FALSE(checked) << words;
    EXPECT_EQ(checked.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(checked.error().message, HasSubstr("f.json: its cells were measured differently"));
    EXPECT_THAT(checked.error().message, HasSubstr("this run: " + words + ". Give the options"));
  }
}

TEST(Resume, a_plan_that_differs_is_refused_by_name) {
  const std::pair<std::function<void(Plan&)>, std::string> changes[] = {
      {[](Plan& plan) { plan.parts = 3; }, "parts: 2 and 3"},
      {[](Plan& plan) { plan.modes.pop_back(); }, "modes: none,mask and none"},
      {[](Plan& plan) { plan.victims.pop_back(); }, "victims: v,w and v"},
      {[](Plan& plan) { plan.aggressors[0].spec = "b"; }, "aggressors: a and b"},
      {[](Plan& plan) {
         plan.victims = {{"v,w", "v,w"}};
       },
       "victims: v,w and v,w, in other names or places"},
      {[](Plan& plan) { plan.rounds = 3; }, "rounds: 2 and 3"},
      {[](Plan& plan) { plan.seed = 9; }, "seed: 1 and 9"},
      {[](Plan& plan) { plan.rule.most = 3; },
       "stopping rule: warm-up 0, samples 2 to 2, precision 1, longest 10 s and warm-up 0, samples "
       "2 to 3, precision 1, longest 10 s"}};
  for (const auto& [change, words] : changes) {
    Script script;
    const OtherDevice executor(script, keep_device);
    Plan plan = resumed_plan();
    change(plan);
    const auto checked = check_same_study(written_study(resumed_plan()), "f.json", plan, executor);
    ASSERT_FALSE(checked) << words;
    EXPECT_THAT(checked.error().message, HasSubstr("this run: " + words + ". Give the options"));
  }
}

TEST(Resume, another_build_is_refused) {
  StudyResult earlier = written_study(resumed_plan());
  earlier.build = "demarc 0.1, revision abc";
  Script script;
  const OtherDevice executor(script, keep_device);
  EXPECT_THAT(check_same_study(earlier, "f.json", resumed_plan(), executor).error().message,
              HasSubstr("build: demarc 0.1, revision abc and demarc "));
}

TEST(Resume, a_changed_file_of_a_workload_is_refused) {
  const auto folder = test::fresh_folder("resume");
  const std::string stream = (folder / "s").string();
  ASSERT_TRUE(write_file(stream, "kernel threads=32\n"));
  Plan plan = resumed_plan();
  plan.aggressors = {{"s", "stream:" + stream}};
  const StudyResult earlier = written_study(plan);
  ASSERT_TRUE(write_file(stream, "kernel threads=64\n"));
  Script script;
  const OtherDevice executor(script, keep_device);
  EXPECT_THAT(check_same_study(earlier, "f.json", plan, executor).error().message,
              HasSubstr("this run: contents of stream:" + stream + ": "));
}

TEST(Contents, are_of_the_launch_file_its_ptx_and_what_its_buffers_hold) {
  const auto folder = test::fresh_folder("contents");
  const auto write = [&](const char* name, const char* text) {
    ASSERT_TRUE(write_file(folder / name, text));
  };
  write("k.json", R"({"schema": "demarc.launch/1", "name": "k", "ptx": "k.ptx",
    "buffers": [{"name": "b", "bytes": 4, "fill": "@b.bin"}],
    "launches": [{"kernel": "k", "grid": 1, "block": 32, "args": ["buf:b"]}]})");
  write("k.ptx", "one");
  write("b.bin", "four");
  Plan plan;
  plan.victims = {{"k", "launch:" + (folder / "k.json").string()}, {"va", "va"}};
  plan.aggressors = {{"c", "copy_in:" + (folder / "k.json").string()},
                     {"none", "stream:" + (folder / "none").string()}};
  const auto digest = [&] { return contents_of(plan).at(plan.victims[0].spec); };
  EXPECT_EQ(contents_of(plan).size(), 3U);
  EXPECT_EQ(contents_of(plan).at(plan.aggressors[1].spec), "not read");
  const std::string first = digest();
  EXPECT_NE(first, "not read");
  EXPECT_NE(first, contents_of(plan).at(plan.aggressors[0].spec));
  write("k.ptx", "two");
  const std::string second = digest();
  EXPECT_NE(second, first);
  write("b.bin", "five");
  EXPECT_NE(digest(), second);
}

TEST(Resume, prepares_the_cells_that_are_left_and_says_how_much_of_them_was_taken) {
  Script script;
  Plan plan = resumed_plan();
  plan.rule.warm_up = 3;
  const StudyResult earlier = read_back(run_until(script, plan, baselines + 1));
  ASSERT_EQ(script.prepared.size(), 1U);
  ASSERT_EQ(script.prepared[0].size(), baselines + 8);
  for (const PlannedVisit& planned : script.prepared[0]) EXPECT_EQ(planned.taken, 0U);
  run_until(script, plan, measurements, &earlier);
  ASSERT_EQ(script.prepared.size(), 2U);
  ASSERT_EQ(script.prepared[1].size(), 8U) << "each cell has a round left, and no baseline";
  std::multiset<std::uint64_t> taken;
  for (const PlannedVisit& planned : script.prepared[1]) taken.insert(planned.taken);
  EXPECT_EQ(taken.count(0), 7U);
  EXPECT_EQ(taken.count(3 + 2), 1U) << "the launches of one visit, to warm up and timed";
}

TEST(Resume, cells_of_other_contents_of_a_workload_are_refused) {
  const auto folder = test::fresh_folder("changed_contents");
  const auto stream = folder / "s.txt";
  ASSERT_TRUE(write_file(stream.string(), "one"));
  Script script;
  Plan plan = resumed_plan();
  plan.aggressors = {{"s", "stream:" + stream.string()}};
  const StudyResult earlier = run_until(script, plan, measurements);
  const ScriptedExecutor executor(script);
  EXPECT_TRUE(check_same_study(earlier, "f", plan, executor));
  ASSERT_TRUE(write_file(stream.string(), "two"));
  const auto checked = check_same_study(earlier, "f", plan, executor);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("contents of stream:" + stream.string()));
}

TEST(ReadStudy, refuses_what_is_not_a_study_and_names_the_place) {
  Script script;
  const Json good =
      Json::parse(study_json(run_until(script, resumed_plan(), measurements), "demarc isolate"));
  const std::pair<std::function<void(Json&)>, std::string> changes[] = {
      {[](Json& json) { json["schema"] = "demarc.attack/2"; },
       "f: its schema is 'demarc.attack/2'; give a file of `demarc isolate --json=FILE`"},
      {[](Json& json) { json.erase("plan"); }, "plan"},
      {[](Json& json) { json["cells"][0]["victim"] = "x"; },
       "f.cells[0].victim: 'x' is not a workload of the plan"},
      {[](Json& json) { json["cells"][1]["aggressor"] = "v"; },
       "f.cells[1].aggressor: 'v' is not a workload of the plan"},
      {[](Json& json) { json["cells"][2]["mode"] = "mps"; },
       "f.cells[2].mode: 'mps' is not a mode of the plan"},
      {[](Json& json) { json["cells"][0]["samples_ns"][0] = -1; },
       "f.cells[0].samples_ns: times above 0 and up to 1e+15 ns were expected, found -1"},
      {[](Json& json) { json["cells"][0]["run_samples_ns"] = Json({"x"}); },
       "f.cells[0].run_samples_ns: times above 0 and up to 1e+15 ns were expected, found \"x\""},
      {[](Json& json) { json["cells"][0]["samples_ns"][0] = 0; }, "ns were expected, found 0"},
      {[](Json& json) { json["cells"][0]["samples_ns"][0] = 1.1e15; }, "f.cells[0].samples_ns"},
      {[](Json& json) { json["cells"][0]["visits"] = 3; }, "f.cells[0].visits"},
      {[](Json& json) { json["cells"].push_back(json["cells"][1]); },
       "a second cell of this mode, victim and aggressor"},
      {[](Json& json) { json["baselines"].push_back(json["baselines"][0]); },
       "a second baseline of this victim"},
      {[](Json& json) { json["baselines"][0]["samples_ns"] = Json::array(); },
       "f.baselines[0].samples_ns: it is empty"},
      {[](Json& json) { json["plan"]["seed"] = -1; },
       "f.plan.seed: a number from 0 on was expected, found -1"},
      {[](Json& json) { json["context"]["model"] = Json({1}); },
       "f.context.model: texts were expected, found 1"},
      {[](Json& json) { json["plan"]["modes"][0] = "masc"; }, "f.plan.modes"}};
  for (const auto& [change, words] : changes) {
    Json json = good;
    change(json);
    const auto read = read_study(json_text(json), "f");
    ASSERT_FALSE(read) << words;
    EXPECT_EQ(read.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(read.error().message, HasSubstr(words));
  }
}

TEST(ReadStudy, takes_every_seed) {
  Script script;
  Plan plan = resumed_plan();
  plan.seed = UINT64_MAX;
  EXPECT_EQ(read_back(run_until(script, plan, measurements)).plan.seed, UINT64_MAX);
}

TEST(ReadStudy, gives_what_was_written) {
  Script script;
  count_times(script);
  const StudyResult written = run_until(script, resumed_plan(), measurements);
  const StudyResult read = read_back(written);
  ASSERT_EQ(read.cells.size(), written.cells.size());
  for (std::size_t i = 0; i < read.cells.size(); ++i) {
    EXPECT_EQ(read.cells[i].mode, written.cells[i].mode);
    EXPECT_EQ(read.cells[i].victim, written.cells[i].victim);
    EXPECT_EQ(read.cells[i].aggressor, written.cells[i].aggressor);
    EXPECT_EQ(read.cells[i].times.mean, written.cells[i].times.mean);
    EXPECT_EQ(read.cells[i].runs.mean, written.cells[i].runs.mean);
  }
  EXPECT_THAT(differences(read, written), ElementsAre());
}

// A file of schema 3 has other summaries, and nothing of them is read.
TEST(ReadStudy, takes_the_samples_of_the_schema_before) {
  Script script;
  count_times(script);
  const StudyResult written = run_until(script, resumed_plan(), measurements);
  Json json = Json::parse(study_json(written, "demarc isolate"));
  json["schema"] = "demarc.isolate/3";
  for (Json& mode : json["modes"]) mode.erase("victims");
  const auto read = read_study(json_text(json), "f");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->cells.size(), written.cells.size());
  EXPECT_EQ(read->cells.back().samples_ns, written.cells.back().samples_ns);
  json["schema"] = "demarc.isolate/2";
  EXPECT_THAT(read_study(json_text(json), "f").error().message,
              HasSubstr("'demarc.isolate/4' or 'demarc.isolate/3', or measure a new one"));
}

}  // namespace
}  // namespace demarc::study
