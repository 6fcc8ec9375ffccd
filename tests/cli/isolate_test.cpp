// Tests demarc isolate on planted and simulated devices: tables, forecasts, wrong options.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;

TEST(IsolateVerb, without_a_driver_it_ends_with_2_and_says_what_is_missing) {
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so", 1);
  const Outcome outcome = run_demarc({"isolate", "--device", "cuda:0"});
  ::unsetenv("DEMARC_LIBCUDA");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("/no/such/libcuda.so"), std::string::npos) << outcome.err;
}

TEST(IsolateVerb, refuses_launches_with_textures_and_surfaces_by_name_before_anything_runs) {
  const auto folder = source_dir() / "tests" / "emulate" / "textures";
  for (const char* name : {"plane-texels", "surface-write-zero"}) {
    const std::string launch = "launch:" + (folder / name).string() + ".json";
    for (const auto& [victim, aggressor] :
         {std::pair(launch, std::string("va")), std::pair(std::string("va"), launch)}) {
      const Outcome outcome = run_demarc(
          {"isolate", "--device", "sim:gtx1080", "--victims", victim, "--aggressors", aggressor});
      EXPECT_EQ(outcome.exit_code, 1) << victim << " beside " << aggressor;
      EXPECT_EQ(outcome.out, "");
      EXPECT_NE(outcome.err.find("the launch gives it a texture or a surface, which a study does "
                                 "not take"),
                std::string::npos)
          << outcome.err;
    }
  }
}

TEST(IsolateVerb, a_planted_device_gives_table_json_and_page_and_says_it_is_a_model) {
  const auto folder = fresh_folder("isolate_verb");
  const std::string json = (folder / "x.json").string();
  const std::string html = (folder / "x.html").string();
  const Outcome outcome = run_demarc({"isolate", "--device", "planted:h100", "--parts", "4",
                                      "--modes", "mask,mask+color", "--victims", "va,mm",
                                      "--aggressors", "fwt", "--json=" + json, "--html", html});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("A MODEL ANSWERED"), std::string::npos);
  EXPECT_EQ(Json::parse(read_file(json).value())["plan"]["parts"], 4);
  EXPECT_EQ(read_file(json)->find("{\n  \"schema\": \"demarc.isolate/4\",\n  \"context\": {\n"),
            0U);
  const std::string page = read_file(html).value();
  EXPECT_NE(page.find("not measurements"), std::string::npos);
  EXPECT_NE(page.find("Use mask+color: worst slowdown"), std::string::npos);
}

TEST(IsolateVerb, p99_is_given_where_it_was_asked_for_and_else_the_worst_of_how_many) {
  std::vector<std::string> arguments{
      "isolate", "--device",     "planted:h100", "--modes",     "mask+color", "--victims",
      "va",      "--aggressors", "mm",           "--precision", "1"};
  const Outcome without = run_demarc(arguments);
  EXPECT_NE(without.out.find("; worst of 200 runs 1."), std::string::npos) << without.out;
  EXPECT_EQ(without.out.find("p99"), std::string::npos) << without.out;
  arguments.emplace_back("--p99");
  const Outcome with = run_demarc(arguments);
  EXPECT_NE(with.out.find("; p99 1."), std::string::npos) << with.out;
  EXPECT_EQ(with.out.find("worst of 1"), std::string::npos) << with.out;
}

TEST(IsolateVerb, started_as_a_worker_it_serves_a_lane_to_another_process) {
  const Outcome outcome = run_program(
      {"sh", "-c",
       R"(printf '{"do":"load","name":"mm","spec":"mm"}\n{"do":"sample","count":2,"longest_seconds":1}\n)"
       R"({"do":"load","name":"quicksort","spec":"quicksort"}\n' | )" +
           (build_dir() / "demarc").string() + " isolate --device planted:h100 --worker"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("{}\n{\"times\":[")) << outcome.out;
  EXPECT_NE(outcome.out.find("quicksort"), std::string::npos) << outcome.out;
}

TEST(IsolateVerb, an_access_stream_is_a_victim_and_an_aggressor_on_a_simulated_device) {
  const auto folder = fresh_folder("isolate_streams");
  const std::string mine = (folder / "mine.txt").string();
  std::string text = "kernel threads=64\n";
  for (int block = 0; block < 4; ++block) {
    text +=
        fmt::format("block\nwarp\nload +3 {:#x}/15\nwait store +2 {:#x}/1\nwarp\nload {:#x}/3\n",
                    block * 4096, block * 4096 + 2048, block * 4096 + 1024);
  }
  ASSERT_TRUE(write_file(mine, text));
  const std::string json = (folder / "x.json").string();
  const Outcome outcome =
      run_demarc({"isolate", "--device", "sim:gtx1080", "--modes", "mask,mask+color", "--victims",
                  "stream:" + mine, "--aggressors", "va,stream:" + mine, "--json=" + json});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json result = Json::parse(read_file(json).value());
  // A simulation repeats exactly: few runs say it all.
  EXPECT_EQ(result["plan"]["rounds"], 1);
  EXPECT_EQ(result["plan"]["stopping_rule"]["warm_up"], 1);
  EXPECT_EQ(result["plan"]["stopping_rule"]["least"], 3);
  EXPECT_EQ(result["plan"]["stopping_rule"]["most"], 3);
  EXPECT_EQ(result["plan"]["victims"][0]["spec"], "stream:" + mine);
  EXPECT_EQ(result["plan"]["aggressors"][1]["spec"], "stream:" + mine);
  EXPECT_NE(outcome.out.find("mask+color: worst slowdown 1.0"), std::string::npos) << outcome.out;
}

TEST(IsolateVerb, a_malformed_access_stream_ends_with_1_and_names_file_and_line) {
  const auto folder = fresh_folder("isolate_wrong_streams");
  const auto refused = [&](const std::string& device, const std::string& victim) {
    const Outcome outcome = run_demarc({"isolate", "--device", device, "--modes", "mask",
                                        "--victims", victim, "--aggressors", "va"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
    return outcome.err;
  };
  const std::string jump = (folder / "jump.txt").string();
  ASSERT_TRUE(write_file(jump, "kernel threads=32\nblock\nwarp\njump 0x80/1\n"));
  const std::string said = refused("sim:gtx1080", "stream:" + jump);
  EXPECT_NE(said.find(jump + ":4"), std::string::npos) << said;
  EXPECT_NE(said.find("jump"), std::string::npos) << said;
  const std::string cut = (folder / "cut.bin").string();
  ASSERT_TRUE(write_file(cut, "DMRCACC1\x01"));
  EXPECT_NE(refused("sim:gtx1080", "stream:" + cut).find(cut), std::string::npos);
  const std::string absent = (folder / "absent.txt").string();
  EXPECT_NE(refused("sim:gtx1080", "stream:" + absent).find(absent), std::string::npos);
}

TEST(IsolateVerb, wrong_options_end_with_1_and_name_the_option) {
  for (const auto& [option, value] :
       {std::pair{"--modes", "masc"}, std::pair{"--parts", "7"}, std::pair{"--device", "gpu0"},
        std::pair{"--victims", "a,,b"}}) {
    const Outcome outcome = run_demarc({"isolate", "--device", "planted:h100", option, value});
    EXPECT_EQ(outcome.exit_code, 1) << option;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
  }
}

TEST(IsolateVerb, malformed_values_end_with_1_on_every_device_before_it_is_looked_for) {
  for (const std::string device : {"planted:h100", "sim:gtx1080", "sim:zzz", "cuda:99"}) {
    for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--masks", "0x1000,zz"},
                                                  {"--clock", "sun"},
                                                  {"--colors", "0,blue"},
                                                  {"--colors", "0,1,0"},
                                                  {"--memory-gib", "0.2"},
                                                  {"--memory-gib", "4097"},
                                                  {"--memory-gib", "nan"},
                                                  {"--victim-priority", "high"},
                                                  {"--split", "fair"},
                                                  {"--dispatch", "locality"}}) {
      std::vector<std::string> arguments{"isolate", "--device", device};
      arguments.insert(arguments.end(), wrong.begin(), wrong.end());
      const Outcome outcome = run_demarc(arguments);
      EXPECT_EQ(outcome.exit_code, 1) << device << " " << wrong[0];
      EXPECT_NE(outcome.err.find(wrong[0]), std::string::npos) << outcome.err;
    }
  }
}

TEST(IsolateVerb, memory_is_given_to_coloured_parts_only) {
  const Outcome outcome =
      run_demarc({"isolate", "--device", "cuda:99", "--modes", "mask", "--memory-gib", "64"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, testing::HasSubstr("--memory-gib: no mode of --modes has colours"));
}

TEST(IsolateVerb, what_a_device_cannot_follow_ends_with_1_and_names_option_and_device) {
  const auto refused = [](const std::string& device, const std::string& option,
                          const std::string& value) {
    const Outcome outcome = run_demarc({"isolate", "--device", device, option, value});
    EXPECT_EQ(outcome.exit_code, 1) << device << " " << option;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("--device " + device), std::string::npos) << outcome.err;
  };
  for (const auto& [option, value] :
       {std::pair{"--clock", "events"}, std::pair{"--victim-priority", "-1"},
        std::pair{"--memory-gib", "1"}, std::pair{"--aggressor-cmd", "true"}}) {
    refused("sim:gtx1080", option, value);
    refused("planted:h100", option, value);
  }
  for (const auto& [option, value] :
       {std::pair{"--split", "packed"}, std::pair{"--threads", "2"}}) {
    refused("planted:h100", option, value);
  }
  refused("cuda:0", "--threads", "2");
  refused("cuda:0", "--dispatch", "rr");
  refused("cuda:0", "--locality", "x.json");
  refused("sim:gtx1080", "--description", "h200");
  refused("sim:gtx1080", "--settle", "1");
  refused("planted:h100", "--masks", "0x1000");
  refused("planted:h100", "--colors", "1,0");
}

TEST(IsolateVerb, what_a_device_can_follow_is_not_refused_for_it) {
  const auto said = [](const std::string& device, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"isolate", "--device", device, "--modes", "masc"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, testing::HasSubstr("--modes: 'masc'"));
  };
  said("cuda:0", {"--masks", "1", "--colors", "1", "--memory-gib", "1", "--description", "x",
                  "--split", "packed", "--clock", "gpu", "--victim-priority", "1",
                  "--aggressor-cmd", "true", "--settle", "1"});
  said("cuda:0", {"--forecast"});
  said("sim:gtx1080", {"--masks", "1", "--colors", "1", "--split", "packed", "--dispatch", "rr",
                       "--locality", "x", "--threads", "1"});
}

TEST(IsolateVerb, a_priority_needs_victims_in_streams_of_the_study) {
  for (const std::string mode : {"timeslice", "mps", "tenant"}) {
    const Outcome outcome = run_demarc(
        {"isolate", "--device", "cuda:99", "--modes", "mask," + mode, "--victim-priority", "-1"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err,
                testing::HasSubstr("--victim-priority: the victims of mode '" + mode +
                                   "' are processes of their own, whose streams keep the default "
                                   "priority; leave the mode out of --modes"));
  }
  const Outcome streams = run_demarc(
      {"isolate", "--device", "cuda:99", "--modes", "none,mask", "--victim-priority", "-1"});
  EXPECT_EQ(streams.exit_code, 2) << streams.err;
}

TEST(IsolateVerb, limits_of_options_are_their_own_last_good_values) {
  const auto told = [](const std::vector<std::string>& more, const std::string& what) {
    std::vector<std::string> arguments{"isolate", "--device", "cuda:99"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << what;
    EXPECT_THAT(outcome.err, testing::HasSubstr(what));
  };
  told({"--settle", "3601"}, "--settle 3601: give 0 to 3600 seconds");
  told({"--settle", "3600", "--split", "fair"}, "--split: 'fair'");
  told({"--memory-gib", "0.2"}, "--memory-gib 0.2: give 0.25 to 4096");
  told({"--memory-gib", "4097"}, "--memory-gib 4097: give 0.25 to 4096");
  for (const char* last : {"0.25", "4096"}) {
    told({"--modes", "mask", "--memory-gib", last}, "no mode of --modes has colours");
  }
  told({"--modes", "mask", "--masks", "0x1000"}, "--masks: no mode of --modes has colours that");
  told({"--modes", "mask", "--colors", "1"}, "--colors: no mode of --modes has colours");
  told({"--modes", "tenant", "--colors", "1"},
       "--colors: no mode of --modes has colours that can be chosen; add one such as mask+color");
  told({"--modes", "none,mps", "--split", "packed"},
       "--split: no mode of --modes takes TPCs, so nothing is divided; add green or mask or "
       "affinity, or leave --split out");
  told({"--modes", "none,mask", "--split", "packed", "--colors", "1"},
       "--colors: no mode of --modes has colours");
  EXPECT_THAT(run_demarc({"isolate", "--device", "sim:gtx1080", "--modes", "none,mps,affinity",
                          "--split", "packed"})
                  .err,
              testing::HasSubstr("nothing is divided; add green or mask, or leave --split out"));
  // Where a command is an aggressor the modes are those that can keep it.
  told({"--aggressor-cmd", "true", "--colors", "1"}, "--colors: no mode of --modes has colours");
  told({"--worker", "--split", "fair"}, "--split: 'fair'");
}

TEST(IsolateVerb, the_blocks_of_a_simulation_follow_a_policy_and_a_map_of_sharing) {
  const auto folder = fresh_folder("isolate_dispatch");
  const std::string victim = (folder / "v.txt").string();
  std::string text = "kernel threads=64\n";
  for (int block = 0; block < 40; ++block) {
    text += fmt::format("block\nwarp\nload {0:#x}/15 {0:#x}/15\n", block % 2 * 4096);
  }
  ASSERT_TRUE(write_file(victim, text));
  const std::string map = (folder / "map.json").string();
  ASSERT_TRUE(write_file(
      map,
      R"({"schema": "demarc.locality/1", "inter": {"map": {"size": 40}, "sets": [[64, [0, 2]]]}})"));
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"isolate",          "--device",     "sim:gtx1080",
                                       "--modes",          "mask",         "--victims",
                                       "stream:" + victim, "--aggressors", "stream:" + victim};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_demarc(arguments);
  };
  for (const std::vector<std::string>& alone :
       {std::vector<std::string>{"--locality", map}, {"--locality", map, "--dispatch", "rr"}}) {
    const Outcome outcome = run(alone);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, testing::HasSubstr("only --dispatch locality reads --locality"));
  }
  EXPECT_THAT(run({"--dispatch", "locality"}).err,
              testing::HasSubstr("--dispatch locality needs a map"));
  EXPECT_THAT(run({"--dispatch", "locality", "--locality", "v.txt=/no/map.json"}).err,
              testing::HasSubstr("/no/map.json: cannot be read"));
  EXPECT_THAT(run({"--dispatch", "nobody"}).err, testing::HasSubstr("nobody"));
  for (const std::string& option : {map, "v.txt=" + map}) {
    const Outcome outcome = run({"--dispatch", "locality", "--locality", option});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const Outcome packed = run({"--split", "packed"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_NE(packed.out, run({}).out);
}

TEST(IsolateVerb, colours_of_a_simulated_device_can_be_chosen_and_wrong_ones_are_refused) {
  const auto run = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"isolate",
                                       "--device",
                                       "sim:h100-sxm",
                                       "--modes",
                                       "mask+color",
                                       "--victims",
                                       "va",
                                       "--aggressors",
                                       "va",
                                       "--samples",
                                       "1",
                                       "--max-samples",
                                       "1",
                                       "--warm-up",
                                       "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_demarc(arguments);
  };
  const Outcome chosen = run({"--masks", "0x18a000", "--colors", "1,0", "--json"});
  ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
  const Outcome spelled = run({"--masks", "0x18a000", "--colours=1,0", "--json"});
  EXPECT_EQ(Json::parse(spelled.out)["modes"], Json::parse(chosen.out)["modes"]);
  EXPECT_EQ(Json::parse(chosen.out)["plan"]["rounds"], 2) << "as on a card: how often was said";
  EXPECT_EQ(Json::parse(chosen.out)["plan"]["stopping_rule"]["warm_up"], 0);
  EXPECT_NE(chosen.out.find("colour 1; part 1"), std::string::npos) << chosen.out;
  EXPECT_NE(chosen.out.find("colour masks 0x18a000"), std::string::npos);
  EXPECT_NE(chosen.out.find("simulated colours isolate by construction"), std::string::npos);
  for (const auto& [option, value, why] :
       {std::tuple{"--masks", "0x77000,0x77000", "0x77000 adds no colour"},
        std::tuple{"--masks", "0x77001", "within a line of 128 bytes"},
        std::tuple{"--masks", "0x1000", "is not a sum of the module masks"},
        std::tuple{"--colors", "0,4", "--colors: part 1 has colour 4"}}) {
    const Outcome outcome = run({option, value});
    EXPECT_EQ(outcome.exit_code, 1) << value;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  }
}

TEST(IsolateVerb, a_forecast_runs_nothing_and_says_which_mode_suits_and_who_presses_hardest) {
  const auto folder = fresh_folder("isolate_forecast");
  const std::string json = (folder / "x.json").string();
  const std::string html = (folder / "x.html").string();
  const Outcome outcome =
      run_demarc({"isolate", "--device", "sim:gtx1080", "--forecast", "--victims", "fwt,compute",
                  "--aggressors", "mm@small,dram_write", "--json=" + json, "--html", html});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(
      outcome.out.find("the forecast recommends mask+color: mm@small and dram_write press on the "
                       "memory that fwt needs. By forecast dram_write loads the memory most"),
      std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("With half of the memory fwt takes 6."), std::string::npos)
      << outcome.out;
  const Json result = Json::parse(read_file(json).value());
  EXPECT_TRUE(result["cells"].empty());
  EXPECT_EQ(result["plan"]["modes"], Json::array({"none", "mps", "mask", "mask+color"}));
  EXPECT_GT(result["forecast"]["victims"][0]["half_memory_slowdown"], 1.5);
  EXPECT_NE(read_file(html).value().find("a forecast, nothing was run"), std::string::npos);
}

TEST(IsolateVerb, a_forecast_refuses_options_on_how_to_run_and_devices_that_are_not_described) {
  for (const auto& [option, value] : {std::pair{"--samples", "5"}, std::pair{"--threads", "2"}}) {
    const Outcome outcome =
        run_demarc({"isolate", "--device", "sim:gtx1080", "--forecast", option, value});
    EXPECT_EQ(outcome.exit_code, 1) << option;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
  }
  const Outcome planted = run_demarc({"isolate", "--device", "planted:h100", "--forecast"});
  EXPECT_EQ(planted.exit_code, 1);
  EXPECT_NE(planted.err.find("--device planted:h100 does not support --forecast"),
            std::string::npos)
      << planted.err;
}

TEST(IsolateVerb, writes_its_cells_as_csv_and_shows_the_model_when_it_is_asked_to) {
  const auto folder = fresh_folder("isolate_csv");
  const std::string file = (folder / "cells.csv").string();
  std::vector<std::string> work{"isolate", "--device", "sim:gtx1080", "--victims",
                                "va",      "--modes",  "mask",        "--aggressors",
                                "va",      "--csv",    file,          "-v"};
  const Outcome verbose = run_demarc(work);
  EXPECT_EQ(verbose.exit_code, 0) << verbose.err;
  EXPECT_NE(verbose.out.find("SM: 4.0 instructions per cycle"), std::string::npos) << verbose.out;
  const std::string cells = read_file(file).value_or("");
  EXPECT_EQ(cells.find("mode,victim,aggressor,runs,"), 0U) << cells;
  EXPECT_NE(cells.find("\nmask,va,-,3,"), std::string::npos) << cells;
  EXPECT_NE(cells.find("\nmask,va,va,3,"), std::string::npos) << cells;
  work.back() = "-q";
  const Outcome quiet = run_demarc(work);
  EXPECT_EQ(quiet.exit_code, 0) << quiet.err;
  EXPECT_EQ(quiet.out.find("note: "), std::string::npos) << quiet.out;
  EXPECT_NE(quiet.out.find("\nmask (part 0"), std::string::npos) << quiet.out;
}

}  // namespace
}  // namespace demarc::test
