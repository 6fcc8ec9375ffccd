// demarc attack on simulated cards: what it writes, and its exit codes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A victim that streams through 2 MiB, once.
std::string small_victim(const std::filesystem::path& folder) {
  std::string text = "kernel threads=64\n";
  int line = 0;
  for (int block = 0; block < 64; ++block) {
    text += "block\n";
    for (int warp = 0; warp < 2; ++warp) {
      text += "warp\n";
      for (int load = 0; load < 16; ++load, line += 8) {
        text += fmt::format("load {:#x}/15 {:#x}/15 {:#x}/15 {:#x}/15\n", line * 128,
                            (line + 1) * 128, (line + 2) * 128, (line + 3) * 128);
      }
    }
  }
  const std::string file = (folder / "victim.txt").string();
  EXPECT_TRUE(write_file(file, text));
  return "stream:" + file;
}

std::vector<std::string> command(const std::filesystem::path& folder,
                                 const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      "attack", "--device", "sim:gtx1080", "--victims", small_victim(folder), "--candidates", "22"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(AttackVerb, finds_neighbours_that_slow_a_victim_whose_memory_is_not_divided) {
  const auto folder = fresh_folder("attack_verb");
  const std::string json = (folder / "x.json").string();
  const std::string out = (folder / "worst").string();
  const Outcome outcome =
      run_demarc(command(folder, {"--mode", "mask", "--json=" + json, "-o", out, "--keep", "3"}));
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("mask DOES NOT ISOLATE"));
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("A MODEL ANSWERED"), HasSubstr("worst of 3 runs"),
                    HasSubstr("Not possible here:"),
                    HasSubstr("sim:gtx1080 gives neighbours no host memory"),
                    HasSubstr("sim:gtx1080 gives neighbours no copies by the copy engines"),
                    HasSubstr("it needs compute capability 9.0, the card has 6.1"),
                    HasSubstr("variables of a module have no place on sim:gtx1080")));
  const Json result = Json::parse(read_file(json).value());
  EXPECT_EQ(result["schema"], "demarc.attack/2");
  EXPECT_EQ(result["verdict"], "does not isolate");
  // A simulation repeats exactly: few runs say it all.
  EXPECT_EQ(result["plan"]["keep"], 3);
  EXPECT_EQ(result["plan"]["screening"]["least"], 3);
  EXPECT_EQ(result["plan"]["proof"]["least"], 3);
  EXPECT_EQ(result["plan"]["proof"]["most"], 3);
  EXPECT_EQ(result["plan"]["proof"]["warm_up"], 1);
  EXPECT_EQ(result["plan"]["rounds"], 1);
  ASSERT_EQ(result["ranked"].size(), 3U);
  EXPECT_THAT(result["untried"].get<std::vector<std::string>>(),
              testing::IsSupersetOf({"host_load", "copy_in", "variable", "bulk_copy"}));
  // The worst, as an aggressor of isolate, slows the same victim as much.
  const std::string worst = result["ranked"][0]["file"];
  const std::string study = (folder / "study.json").string();
  const Outcome again = run_demarc({"isolate", "--device", "sim:gtx1080", "--modes", "mask",
                                    "--victims", small_victim(folder), "--aggressors",
                                    "launch:" + out + "/" + worst, "--json=" + study});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json seen = Json::parse(read_file(study).value())["modes"][0]["victims"][0];
  EXPECT_DOUBLE_EQ(seen["mean_slowdown"]["value"],
                   result["ranked"][0]["worst_mean"]["mean_slowdown"]["value"]);
}

TEST(AttackVerb, a_limit_that_nobody_reaches_is_held) {
  const auto folder = fresh_folder("attack_holds");
  const Outcome outcome = run_demarc(
      command(folder, {"--mode", "mask", "--max-slowdown", "1000", "--max-p99-slowdown", "1000"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("mask ISOLATES: next to none of "));
}

// A victim of one block, so that a hunt takes no time.
std::vector<std::string> tiny_hunt(const std::filesystem::path& folder,
                                   const std::vector<std::string>& more) {
  const std::string file = (folder / "tiny.txt").string();
  EXPECT_TRUE(write_file(file, "kernel threads=64\nblock\nwarp\nload +3 0x0/15\n"));
  std::vector<std::string> arguments{"attack", "--device",  "sim:gtx1080",   "--mode",
                                     "mask",   "--victims", "stream:" + file};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(AttackVerb, the_plan_is_what_the_options_say) {
  const auto folder = fresh_folder("attack_plan");
  const Outcome outcome = run_demarc(
      tiny_hunt(folder, {"--candidates", "22", "--samples", "4", "--rounds", "3", "--parts", "3",
                         "--seed", "7", "--without", "store,host_load", "--longest", "1.5",
                         "--json", "--max-slowdown", "11", "--max-p99-slowdown", "12"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out)["plan"];
  EXPECT_EQ(plan["mode"], "mask");
  EXPECT_EQ(plan["candidates"], 22);
  EXPECT_EQ(plan["parts"], 3);
  EXPECT_EQ(plan["seed"], 7);
  EXPECT_EQ(plan["rounds"], 3);
  EXPECT_EQ(plan["max_slowdown"], 11);
  EXPECT_EQ(plan["max_tail_slowdown"], 12);
  EXPECT_EQ(plan["without"], Json::array({"store", "host_load"}));
  EXPECT_EQ(plan["screening"]["least"], 5) << "as on a card, since how often was said";
  EXPECT_EQ(plan["proof"]["least"], 4);
  EXPECT_EQ(plan["proof"]["most"], 4);
  EXPECT_EQ(plan["proof"]["longest_seconds"], 1.5);
}

TEST(AttackVerb, the_same_seed_gives_the_same_ranking_on_any_number_of_threads) {
  const auto folder = fresh_folder("attack_seeds");
  const auto ranked = [&](const std::string& threads) {
    const Outcome outcome = run_demarc(
        command(folder, {"--seed", "4", "--threads", threads, "--json", "--mode", "mask"}));
    return Json::parse(outcome.out)["ranked"];
  };
  const Json first = ranked("1");
  EXPECT_FALSE(first.empty());
  EXPECT_TRUE(first == ranked("2"));
}

TEST(AttackVerb, wrong_options_end_with_1_and_name_the_option) {
  const auto folder = fresh_folder("attack_wrong");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--mode", "masc"},
                                                {"--mode", "mask,none"},
                                                {"--parts", "7"},
                                                {"--candidates", "3"},
                                                {"--victims", "cmd:true"},
                                                {"--clock", "gpu"},
                                                {"--keep", "0"},
                                                {"--without", "storm"},
                                                {"--split", "fair"},
                                                {"--split", "packed", "--mode", "mps"},
                                                {"--colors", "0,1,0"}}) {
    auto arguments = command(folder, {});
    const auto at = std::find(arguments.begin(), arguments.end(), wrong[0]);
    if (at != arguments.end()) arguments.erase(at, at + 2);
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << wrong[0] << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(wrong[0]));
  }
  EXPECT_THAT(run_demarc(command(folder, {"--mode", "masc"})).err, HasSubstr("--mode: 'masc'"));
  const Outcome planted = run_demarc({"attack", "--device", "planted:h100"});
  EXPECT_EQ(planted.exit_code, 1);
  EXPECT_THAT(planted.err, HasSubstr("--device planted:h100: write cuda:N or sim:NAME"));
  const Outcome whole_runs = run_demarc({"attack", "--kernels-alone", "--clock", "events"});
  EXPECT_EQ(whole_runs.exit_code, 1);
  EXPECT_THAT(whole_runs.err, HasSubstr("--clock events does not support --kernels-alone"));
  ASSERT_TRUE(write_file(folder / "file", "x"));
  const std::string file = (folder / "file").string();
  const Outcome out = run_demarc(command(folder, {"-o", file}));
  EXPECT_EQ(out.exit_code, 1);
  EXPECT_THAT(out.err, HasSubstr(file));
}

TEST(AttackVerb, what_the_machine_lacks_ends_with_2) {
  const auto folder = fresh_folder("attack_lacks");
  const Outcome mode = run_demarc(command(folder, {"--mode", "timeslice"}));
  EXPECT_EQ(mode.exit_code, 2) << mode.err;
  EXPECT_THAT(mode.err, HasSubstr("timeslice"));
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so", 1);
  const Outcome driver = run_demarc({"attack"});
  ::unsetenv("DEMARC_LIBCUDA");
  EXPECT_EQ(driver.exit_code, 2);
}

}  // namespace
}  // namespace demarc::test
