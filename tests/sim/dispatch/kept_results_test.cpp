// Whole results of small simulations, down to the last digit that is printed: digests of their
// reports, kept from when the tests of single rules held.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/sim/dispatch/tb_compare.hpp"
#include "demarc/sim/dispatch/tb_generate.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"
#include "demarc/sim/memory/simulation.hpp"
#include "demarc/sim/memory/synthetic.hpp"
#include "demarc/sim/pipeline/scenario.hpp"
#include "demarc/sim/schedulability/schedulability.hpp"
#include "demarc/sim/translation/report.hpp"
#include "paths.hpp"
#include "translation/small_machine.hpp"

namespace demarc::sim {
namespace {

using Digests = std::map<std::string, std::uint64_t>;

// A failure prints the row to be kept when the change is meant.
void expect_digest(const Digests& kept, const std::string& name, std::string report) {
  static const std::regex build(R"re("(version|revision)": "[^"]*")re");
  report = std::regex_replace(report, build, "");
  const auto wanted = kept.find(name);
  const std::uint64_t found = hash_of(report);
  EXPECT_TRUE(wanted != kept.end() && wanted->second == found)
      << "{\"" << name << "\", " << fmt::format("{:#x}", found) << "},\n"
      << report.substr(0, 2000);
}

TEST(KeptResults, of_every_scenario_of_the_examples) {
  const Digests kept{
      {"fig03_masked", 0x35479cdba46cc43f},          {"fig03_shared", 0x896e6489dde8930e},
      {"fig04_gtx1060", 0x2b152f0c9e447985},         {"fig04_p100", 0xc534fbad1843ac9c},
      {"fig10_many_partitions", 0xdc63d89883ee4725}, {"fig11_k1_first", 0xc19eabe1c8f141e6},
      {"fig11_k2_first", 0x645af5fc9256f49c},        {"fig12_one_more_slot", 0x18b0a27e7d056eed},
      {"fig12_slots_full", 0x52d2f2c0b628aaaa},      {"fig13_distributed", 0xc87513859f16bb5},
      {"fig13_packed", 0x3308ed5b4ffb91a6}};
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_dir() / "examples" / "dispatch")) {
    const std::string text = read_file(entry.path()).value();
    if (text.find("demarc.scenario/1") == std::string::npos) continue;
    const auto scenario = parse_scenario(text, "x.json");
    ASSERT_TRUE(scenario) << scenario.error().message;
    const auto run = run_pipeline(scenario->spec, scenario->kernels, true);
    ASSERT_TRUE(run) << run.error().message;
    expect_digest(kept, entry.path().stem().string(),
                  report_scenario(*scenario, *run, false) + report_scenario(*scenario, *run, true));
  }
}

TEST(KeptResults, of_plans_that_hold_and_that_do_not) {
  const Digests kept{{"fits", 0x573b7cba4ebf52df},
                     {"impossible", 0x25dc9d97d8e7c0e3},
                     {"too many", 0xbfcf0b3b10c2497c}};
  const auto plan_of = [&](const std::string& name, const std::string& tasks) {
    const auto set = parse_tasks(
        R"({"schema": "demarc.tasks/1", "device": "gtx1060-3gb", "tasks": [)" + tasks + "]}",
        "x.json");
    ASSERT_TRUE(set) << set.error().message;
    const auto plan = plan_schedule(*set);
    ASSERT_TRUE(plan) << plan.error().message;
    expect_digest(kept, name, plan_text(*set, *plan) + plan_json(*set, *plan));
  };
  const auto task = [](const std::string& name, int period, int deadline, int blocks, int us) {
    return fmt::format(
        R"({{"name": "{}", "period_us": {}, "deadline_us": {}, "blocks": {}, "threads": 512,
            "registers_per_thread": 32, "shared_bytes": 1024, "block_us": {{"1": {}, "3": {}}}}})",
        name, period, deadline, blocks, us, us + 7);
  };
  plan_of("fits", task("a", 1000, 800, 40, 60) + "," + task("b", 2000, 2000, 90, 100));
  plan_of("impossible", task("a", 1000, 800, 40, 60) + "," + task("b", 100, 90, 900, 50));
  plan_of("too many", task("a", 1000, 400, 60, 60) + "," + task("b", 1000, 500, 60, 60) + "," +
                          task("c", 1000, 300, 60, 60) + "," + task("d", 1000, 350, 60, 60));
}

TEST(KeptResults, of_every_policy_on_every_mix_and_by_every_rule) {
  const Digests kept{
      {"extreme, corrected", 0xace3849e85d09110},   {"extreme, simtbs", 0xa26bf471a4e9ba41},
      {"extreme, simtbs-2020", 0x4ef60f588ccd2888}, {"multi, corrected", 0x133a961996b37178},
      {"multi, simtbs", 0x5fe18133a87505d1},        {"uniform, corrected", 0x917f11ebaf2f2d0a},
      {"uniform, simtbs", 0x852ae480d73d2bfd},      {"uniform, simtbs-2020", 0xb2f6d9f9a81b9a4a}};
  for (const TbMix mix : {TbMix::uniform, TbMix::extreme, TbMix::multi}) {
    for (const TbModel model : {TbModel::simtbs, TbModel::simtbs_2020, TbModel::corrected}) {
      const TbGeneration generation = model == TbModel::simtbs      ? TbGeneration::published_2021
                                      : model == TbModel::corrected ? TbGeneration::corrected
                                                                    : TbGeneration::published_2020;
      const TbMachine machine{.sms = 4, .units = 8};
      if (model == TbModel::simtbs_2020 && mix == TbMix::multi) {
        EXPECT_FALSE(paper_config_of_2020(machine, mix, 70, 400));
        continue;
      }
      const auto config = generate_workload(
          model == TbModel::simtbs_2020 ? paper_config_of_2020(machine, mix, 70, 400).value()
                                        : paper_config(machine, mix, 70, 400),
          generation, 5);
      ASSERT_TRUE(config) << config.error().message;
      TbStudyRequest request;
      request.model = model;
      request.kernels = true;
      const auto report = report_schedule(*config, request);
      ASSERT_TRUE(report) << report.error().message;
      request.kernels = false;
      const std::string name = fmt::format("{}, {}", to_string(mix), to_string(model));
      expect_digest(
          kept, name,
          print_tb_config(*config) + report->table + report_schedule(*config, request)->json);
    }
  }
}

TEST(KeptResults, of_a_small_comparison_of_policies) {
  const Digests kept{{"tables", 0x28367a7548fb712c}};
  TbStudyOptions options;
  options.seeds = 3;
  options.ticks = 300;
  options.sizes = {4, 8};
  options.levels = {60};
  const auto study = compare_policies(options);
  ASSERT_TRUE(study) << study.error().message;
  std::string tables = study_table(*study);
  for (const TbMeasure& measure : tb_measures()) tables += compare_table(*study, measure);
  expect_digest(kept, "tables", tables);
}

TEST(KeptResults, of_every_application_under_every_architecture) {
  using namespace translation;
  const Digests kept{
      {"AES", 0x3bbd0782eb2b39e8}, {"FFT", 0xa6adefd89b8b2053}, {"FIR", 0x37193e4a31b00362},
      {"KM", 0x94c1222e4fc72b28},  {"MP", 0xf015588ca4af4cae},  {"MT", 0xce33f7d8954e5348},
      {"PR", 0xe83af88e648ca132},  {"RL", 0x44c7f1d0a76fa48d},  {"ST", 0x5c75ecf86a05b5f2}};
  Settings settings = small_machine();
  settings.megabytes = 1;
  for (const ApplicationInfo& info : application_table()) {
    const auto comparison =
        compare(settings, {std::string(info.name)},
                {Architecture::centralised, Architecture::distributed, Architecture::bypass}, 1);
    ASSERT_TRUE(comparison) << comparison.error().message;
    expect_digest(kept, std::string(info.name), to_json(*comparison) + to_text(*comparison));
  }
}

TEST(KeptResults, of_walks_through_the_memory_of_a_card) {
  using namespace memory;
  const Digests kept{{"0, 0", 0x525f45ddeb7c15c2}, {"0, 1", 0xd728596643f94148},
                     {"1, 0", 0x97246468288d1a09}, {"1, 1", 0x928776ff79b9a200},
                     {"2, 0", 0xf619d1e6a83a0a3b}, {"2, 1", 0x37d733f5693c56e3}};
  const auto spec = make_spec(gpu::find_device("gtx1080").value(), 3);
  ASSERT_TRUE(spec) << spec.error().message;
  for (const StepKind kind : {StepKind::load, StepKind::store, StepKind::atomic}) {
    for (const WalkOrder order : {WalkOrder::ascending, WalkOrder::random}) {
      Simulation simulation(*spec);
      Walk walk;
      walk.kind = kind;
      walk.order = order;
      walk.bytes = 1U << 19U;
      walk.blocks = 9;
      walk.rounds = 2;
      walk.sectors = 3;
      std::string text;
      std::vector<ClientIndex> clients;
      for (const std::uint32_t first : {0U, 4U}) {
        walk.base = walk.base + (std::uint64_t{first} << 20U);
        ClientSpec client;
        client.name = fmt::format("from {}", first);
        client.sms = {SmIndex(first), SmIndex(first + 1), SmIndex(first + 2)};
        client.source = walk_source(walk);
        clients.push_back(simulation.add_client(std::move(client)));
      }
      ASSERT_TRUE(simulation.run_launches(clients.front(), 2));
      for (const ClientIndex client : clients) {
        const ClientStatistics& s = simulation.statistics(client);
        text += fmt::format("{} {} {} {} {} {} {} {}:", s.instructions, s.blocks, s.load_sectors,
                            s.store_sectors, s.atomic_sectors, s.l1_hit_sectors, s.l2_hit_sectors,
                            s.l2_miss_sectors);
        for (const Cycles cycles : s.run_cycles) text += fmt::format(" {}", cycles);
        text += "\n";
      }
      const DramStatistics& d = simulation.dram();
      text += fmt::format("{} {} {} {} {}\n", d.read_sectors, d.write_sectors, d.row_hits,
                          d.activations, d.turnarounds);
      expect_digest(kept, fmt::format("{}, {}", static_cast<int>(kind), static_cast<int>(order)),
                    text);
    }
  }
}

}  // namespace
}  // namespace demarc::sim
