// What an outcome of `demarc exec` means, and what it says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/exec/confine.hpp"
#include "demarc/guest/program_report.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ConfineOutcome outcome_of(const ProcessCounts& processes, const LaunchCounters& launches,
                          bool observed = false) {
  ConfineOutcome outcome;
  outcome.processes = processes;
  outcome.observed = observed;
  outcome.findings = look_for_findings(processes, launches, observed);
  return outcome;
}

constexpr ProcessCounts one_confined{1, 1, 0, 0};

TEST(Findings, all_well_is_silent) {
  const LaunchCounters launches;
  EXPECT_TRUE(outcome_of(one_confined, launches).holds());
  EXPECT_THAT(warnings(outcome_of(one_confined, launches)), IsEmpty());
}

TEST(Findings, nothing_that_reached_the_gpu_does_not_hold) {
  const LaunchCounters launches;
  const auto outcome = outcome_of({}, launches);
  EXPECT_FALSE(outcome.holds());
  EXPECT_EQ(warnings(outcome),
            "demarc exec: no process of the program reached the GPU: NOTHING WAS CONFINED\n");
  EXPECT_EQ(Json::parse(audit_to_json(outcome))["findings"]["nothing_reached_the_gpu"], 1);
  EXPECT_FALSE(outcome_of({}, launches, true).holds());
}

TEST(Findings, a_process_kept_off_or_stopped_does_not_hold_whatever_else_was_confined) {
  const LaunchCounters launches;
  for (const bool observed : {false, true}) {
    const auto kept_off = outcome_of({1, 1, 2, 0}, launches, observed);
    EXPECT_FALSE(kept_off.holds());
    EXPECT_THAT(warnings(kept_off), HasSubstr("2 process(es) could not be confined, or chose "
                                              "another card, and were KEPT OFF the GPU"));
    const auto stopped = outcome_of({1, 1, 0, 3}, launches, observed);
    EXPECT_FALSE(stopped.holds());
    EXPECT_THAT(warnings(stopped), HasSubstr("3 process(es) could not be confined and were"));
    EXPECT_THAT(warnings(stopped), Not(HasSubstr("NOTHING")));
    // One of each, too, is not nothing.
    for (const ProcessCounts& each : {ProcessCounts{1, 1, 1, 0}, ProcessCounts{1, 1, 0, 1}}) {
      EXPECT_THAT(warnings(outcome_of(each, launches, observed)), Not(HasSubstr("NOTHING")));
    }
  }
}

TEST(Findings, launches_that_may_have_run_outside_do_not_hold) {
  struct Case {
    void (*happen)(LaunchCounters&);
    const char* said;
    bool observed_holds;
  };
  for (const Case& one : {
           Case{[](LaunchCounters& seen) { seen.unmasked[3] = 4; },
                "4 launches ran OUTSIDE the partition", true},
           Case{[](LaunchCounters& seen) { seen.refused[1] = 4; },
                "4 launches could not be confined", false},
           Case{[](LaunchCounters& seen) { seen.empty_masks = 4; },
                "4 launches had a mask of their own without any TPC", true},
           Case{[](LaunchCounters& seen) { seen.misunderstood = 4; },
                "4 times the driver reported a launch in an unknown form", true},
           Case{[](LaunchCounters& seen) { seen.unsafe_clusters = 4; },
                "4 launches had thread-block clusters", false},
           Case{[](LaunchCounters& seen) { seen.other_domains = 4; },
                "4 launches had another memory synchronisation domain", false},
           Case{[](LaunchCounters& seen) { seen.unannounced = 4; },
                "4 launches were announced by no call of the driver", false},
           Case{[](LaunchCounters& seen) { seen.unseen = 4; }, "4 launches passed the hook by",
                false},
           Case{[](LaunchCounters& seen) { seen.stale_graphs = 4; },
                "4 launches of CUDA graphs ran under an earlier mask", true},
           Case{[](LaunchCounters& seen) { seen.launchers = 4; },
                "4 launches were of kernels that may launch kernels", true},
       }) {
    LaunchCounters launches;
    one.happen(launches);
    const auto outcome = outcome_of(one_confined, launches);
    EXPECT_FALSE(outcome.holds()) << one.said;
    EXPECT_THAT(warnings(outcome), HasSubstr(one.said));
    EXPECT_EQ(outcome_of(one_confined, launches, true).holds(), one.observed_holds) << one.said;
  }
}

// For kernels whose modules were not looked at either.
TEST(Findings, what_a_card_does_not_tell_of_a_kernel_does_not_hold) {
  LaunchCounters launches;
  launches.launchers_unknown = 7;
  const auto outcome = outcome_of(one_confined, launches);
  EXPECT_FALSE(outcome.holds());
  EXPECT_THAT(warnings(outcome), HasSubstr("if any of 7 launches did so"));
  EXPECT_THAT(warnings(outcome_of(one_confined, launches, true)), IsEmpty());
}

// The program was told: nothing got through.
TEST(Findings, refused_memory_of_the_host_is_warned_of) {
  LaunchCounters launches;
  launches.host_memory_refused = 5;
  for (const bool observed : {false, true}) {
    const auto outcome = outcome_of(one_confined, launches, observed);
    EXPECT_TRUE(outcome.holds());
    EXPECT_THAT(warnings(outcome), HasSubstr("host memory: 5"));
  }
}

TEST(Findings, observed_kernels_that_launch_kernels_are_warned_of) {
  LaunchCounters launches;
  launches.launchers = 1;
  EXPECT_THAT(warnings(outcome_of(one_confined, launches, true)), HasSubstr("NOR COUNTED"));
}

// What each means for a partition and for a program that is observed only, with all others absent.
TEST(Findings, have_each_their_name_their_count_and_their_weight) {
  using Severity = Finding::Severity;
  constexpr auto none = Severity::none, warns = Severity::warns, fails = Severity::fails;
  struct Row {
    std::string name;
    void (*happen)(LaunchCounters&);
    Severity severity;
    Severity observed;
  };
  const Row rows[] = {
      {"launches_outside", [](auto& seen) { seen.unmasked[0] = seen.unmasked[3] = 2; }, fails,
       none},
      {"launches_refused", [](auto& seen) { seen.refused[0] = seen.refused[2] = 2; }, fails, fails},
      {"empty_masks", [](auto& seen) { seen.empty_masks = 4; }, fails, none},
      {"misunderstood_callbacks", [](auto& seen) { seen.misunderstood = 4; }, fails, warns},
      {"unsafe_clusters", [](auto& seen) { seen.unsafe_clusters = 4; }, fails, fails},
      {"other_domains", [](auto& seen) { seen.other_domains = 4; }, fails, fails},
      {"unannounced_launches", [](auto& seen) { seen.unannounced = 4; }, fails, fails},
      {"unseen_launches", [](auto& seen) { seen.unseen = 4; }, fails, fails},
      {"cooperative_refused", [](auto& seen) { seen.too_large = 4; }, warns, none},
      {"host_memory_refused", [](auto& seen) { seen.host_memory_refused = 4; }, warns, warns},
      {"calls_refused", [](auto& seen) { seen.colored.refused = 4; }, warns, warns},
      {"kernels_left_out", [](auto& seen) { seen.colored.left_out = 4; }, warns, warns},
      {"plain_processes", [](auto& seen) { seen.colored.plain = 4; }, warns, warns},
      {"stale_graphs", [](auto& seen) { seen.stale_graphs = 4; }, fails, none},
      {"may_launch_kernels", [](auto& seen) { seen.launchers = 4; }, fails, warns},
      {"launchers_not_told", [](auto& seen) { seen.launchers_unknown = 4; }, fails, none},
  };
  const std::size_t of_processes = 3;
  for (const Row& row : rows) {
    LaunchCounters launches;
    row.happen(launches);
    for (const bool observed : {false, true}) {
      const auto findings = look_for_findings(one_confined, launches, observed);
      ASSERT_EQ(findings.size(), of_processes + std::size(rows));
      for (const Finding& finding : findings) {
        const bool this_one = finding.name == row.name;
        EXPECT_EQ(finding.count, this_one ? 4U : 0U) << row.name << " " << finding.name;
        if (!this_one) continue;
        EXPECT_EQ(finding.severity, observed ? row.observed : row.severity) << row.name;
        EXPECT_THAT(finding.text, HasSubstr("4")) << row.name;
      }
    }
  }
}

TEST(Audit, lists_the_paths_that_were_taken_and_no_other) {
  ConfineOutcome outcome;
  outcome.masked[0] = 3;
  outcome.masked_blocks[0] = 17;
  outcome.unmasked[1] = 4;
  outcome.refused[2] = 5;
  outcome.graphs = 6;
  outcome.periods = {{"0-3", 7}, {"4,5", 8}};
  const std::string text = audit_to_text(outcome);
  EXPECT_THAT(text,
              HasSubstr("\n"
                        "launch path      with the mask          blocks    without it   "
                        "refused\n"
                        "default stream               3              17             0         0\n"
                        "stream                       0               0             4         0\n"
                        "graph                        0               0             0         5\n"
                        "6 launches of CUDA graphs\n"));
  EXPECT_THAT(text, Not(HasSubstr("unknown")));
  const Json json = Json::parse(audit_to_json(outcome));
  ASSERT_EQ(json.at("paths").size(), 5U);
  EXPECT_EQ(json.at("paths").at(0).at("path"), "default stream");
  EXPECT_EQ(json.at("paths").at(0).at("masked"), 3);
  EXPECT_EQ(json.at("paths").at(0).at("masked_blocks"), 17);
  EXPECT_EQ(json.at("paths").at(1).at("unmasked"), 4);
  EXPECT_EQ(json.at("paths").at(2).at("refused"), 5);
  EXPECT_EQ(json.at("paths").at(3).at("path"), "unknown");
  EXPECT_EQ(json.at("paths").at(4).at("path"), "copy or fill");
  EXPECT_EQ(json.at("masks"),
            Json::parse(R"([{"tpcs": "0-3", "launches": 7}, {"tpcs": "4,5", "launches": 8}])"));
  EXPECT_EQ(json.at("graphs"), 6);
  EXPECT_EQ(json.at("holds"), true) << "nothing was found";
}

TEST(Audit, has_the_report_of_a_tenant_and_of_no_other_program) {
  const LaunchCounters launches;
  auto outcome = outcome_of(one_confined, launches);
  EXPECT_FALSE(Json::parse(audit_to_json(outcome)).contains("tenant"));
  outcome.report = ProgramReport{};
  EXPECT_EQ(Json::parse(audit_to_json(outcome)).at("tenant"), json_of(*outcome.report));
}

TEST(Audit, names_the_domain_or_why_there_is_none) {
  const LaunchCounters launches;
  auto outcome = outcome_of(one_confined, launches);
  EXPECT_THAT(audit_to_text(outcome),
              HasSubstr("\nlaunches keep their memory synchronisation domains\n"));
  EXPECT_THAT(audit_to_json(outcome), HasSubstr("\"sync_domain\": null"));
  EXPECT_THAT(warnings(outcome), IsEmpty()) << "none was wanted";
  outcome.no_domain_because = "all are taken";
  EXPECT_THAT(warnings(outcome), HasSubstr("no memory synchronisation domain of its own: all are"));
  EXPECT_THAT(audit_to_json(outcome), HasSubstr("all are taken"));
  EXPECT_TRUE(outcome.holds());
  outcome.sync_domain = 2;
  EXPECT_THAT(audit_to_text(outcome),
              HasSubstr("\nlaunches have the memory synchronisation domain 2\n"));
  EXPECT_THAT(audit_to_json(outcome), HasSubstr("\"sync_domain\": 2"));
}

TEST(Audit, lists_a_path_whatever_its_numbers_add_up_to) {
  ConfineOutcome outcome;
  outcome.masked[1] = outcome.unmasked[1] = 5;
  outcome.masked[2] = outcome.refused[2] = 6;
  const std::string text = audit_to_text(outcome);
  EXPECT_THAT(text, HasSubstr("\nstream  "));
  EXPECT_THAT(text, HasSubstr("\ngraph  "));
}

TEST(LaunchCounters, of_every_path_and_kind_are_seen) {
  LaunchCounters launches;
  launches.masked[0] = 1;
  launches.unmasked[1] = 10;
  launches.refused[2] = 100;
  launches.masked[3] = 1000;
  EXPECT_EQ(launches.seen(), 1111U);
  launches.colored.copies = 1000;
  EXPECT_EQ(launches.seen_of_program(), 111U);
  launches.colored.copies = 1112;
  EXPECT_EQ(launches.seen_of_program(), 0U) << "a copy that the callback has yet to see";
}

TEST(Audit, says_that_it_counts_by_masks_and_not_by_where_blocks_ran) {
  LaunchCounters launches;
  launches.unmasked[0] = 2;
  auto outcome = outcome_of(one_confined, launches);
  outcome.tpcs = gpu::TpcSet{1, 3};
  outcome.sms = 4;
  outcome.unmasked[0] = 2;
  outcome.program_exit_code = 5;
  const std::string text = audit_to_text(outcome);
  EXPECT_THAT(text, HasSubstr("partition: TPCs 1,3 (4 SMs); 1 process confined, 0 kept off, 0 "
                              "stopped\nlaunches and blocks are counted by the masks in their "
                              "descriptors, not by where they ran\n"));
  EXPECT_THAT(text, HasSubstr("2 launches ran OUTSIDE the partition"));
  EXPECT_THAT(text, Not(HasSubstr("unknown"))) << "a path that was not taken";
  const std::string json = audit_to_json(outcome);
  EXPECT_THAT(json, HasSubstr("\n  \"schema\": \"demarc.exec/2\""));
  EXPECT_THAT(json, HasSubstr("\"program_exit_code\": 5"));
  EXPECT_THAT(json, HasSubstr("\"holds\": false"));
  EXPECT_THAT(json, HasSubstr("\"launches_outside\": 2"));
  EXPECT_THAT(json, HasSubstr("\"processes_kept_off\": 0"));
  EXPECT_THAT(json, HasSubstr("\"counted_by\": \"masks in the launches' descriptors\""));
  outcome.observed = true;
  EXPECT_THAT(audit_to_text(outcome), HasSubstr("no partition (4 SMs): observed only; 1 process "
                                                "seen"));
}

}  // namespace
}  // namespace demarc::cuda
