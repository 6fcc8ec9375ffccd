// A whole `demarc exec`: the proof, the program and the report, on the stand-in driver. Each in a
// process of its own, since the driver is used and signals are taken there.
#include "demarc/exec/confine.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "confine_fixture.hpp"
#include "demarc/driver/in_child.hpp"
#include "process_files.hpp"

namespace demarc::cuda {
namespace {

TEST_F(Confine, the_outcome_counts_processes_contexts_and_launches) {
  EXPECT_EQ(
      Supervised::apart([this] {
        auto plan = plan_for(program, {"context", "launch", "launch", "exit=4"});
        plan.audit = true;
        const auto outcome = run_confined(plan);
        REQUIRE_IN_CHILD(outcome.has_value());
        REQUIRE_IN_CHILD(outcome->holds() && outcome->program_exit_code == 4);
        REQUIRE_IN_CHILD(outcome->tpcs == (gpu::TpcSet{1, 3}) && outcome->sms == 4);
        REQUIRE_IN_CHILD(outcome->processes.confined == 1 && outcome->processes.contexts == 1);
        REQUIRE_IN_CHILD(outcome->masked[0] == 2 && outcome->masked_blocks[0] == 10);
        REQUIRE_IN_CHILD(std::getenv(control_variable) == nullptr);
        return 0;
      }),
      0);
}

// Its destructors run behind those of the library that confines it.
TEST_F(Confine, a_program_that_launches_at_its_end_is_confined_there_too) {
  EXPECT_EQ(Supervised::apart([this] {
              auto plan = plan_for(program, {"at-exit", "context", "launch"});
              plan.audit = true;
              const auto outcome = run_confined(plan);
              if (!outcome) return complain(outcome.error().message);
              REQUIRE_IN_CHILD(outcome->holds() && outcome->program_exit_code == 0);
              REQUIRE_IN_CHILD(outcome->masked[0] == 2);
              return 0;
            }),
            0);
}

TEST_F(Confine, tpcs_beyond_the_6_4_th_are_named_by_their_numbers) {
  EXPECT_EQ(Supervised::apart([this] {
              fake::FakeConfig config = fake::small_gpu();
              config.tpcs = 70;
              for (std::uint32_t t = 0; t < config.tpcs; ++t) {
                config.gpc[t] = t % 8;
                config.bit[t] = 9 * config.gpc[t] + t / 8;
              }
              test::configure(config);
              auto plan = plan_for(program, {"context"});
              plan.choice.tpcs = "3,69";
              const auto outcome = run_confined(plan);
              if (!outcome) return complain(outcome.error().message);
              REQUIRE_IN_CHILD(outcome->tpcs == gpu::TpcSet::from_words(8, 32));
              return 0;
            }),
            0);
}

TEST_F(Confine, a_program_that_is_not_hooked_does_not_hold) {
  EXPECT_EQ(Supervised::apart([this] {
              auto plan = plan_for(program, {"context"});
              plan.command.insert(plan.command.begin(), {"env", "-i"});
              std::string told;
              plan.tell = [&told](const std::string& line) { told += line; };
              const auto outcome = run_confined(plan);
              REQUIRE_IN_CHILD(outcome.has_value());
              REQUIRE_IN_CHILD(!outcome->holds() && outcome->program_exit_code == 0);
              REQUIRE_IN_CHILD(outcome->processes.kept_off == 1);
              REQUIRE_IN_CHILD(told.find("KEPT OFF") != std::string::npos);
              return 0;
            }),
            0);
}

TEST_F(Confine, a_program_whose_launch_cannot_be_confined_is_ended_there_and_counted) {
  EXPECT_EQ(Supervised::apart([this] {
              const auto outcome =
                  run_confined(plan_for(program, {"context", "describe-as=65", "launch"}));
              REQUIRE_IN_CHILD(outcome.has_value() && !outcome->holds());
              REQUIRE_IN_CHILD(outcome->program_exit_code == 3);
              REQUIRE_IN_CHILD(outcome->processes.stopped == 1);
              return program.log().ends_with("context 0\n") ? 0 : complain(program.log());
            }),
            0);
}

TEST_F(Confine, a_launch_whose_clusters_would_hang_in_the_partition_is_not_made) {
  EXPECT_EQ(Supervised::apart([this] {
              const auto fits = run_confined(plan_for(program, {"context", "cluster=2"}));
              REQUIRE_IN_CHILD(fits.has_value() && fits->holds());
              if (!program.log().ends_with("cluster 0\n")) return complain(program.log());
              const auto hangs = run_confined(plan_for(program, {"context", "cluster=4"}));
              REQUIRE_IN_CHILD(hangs.has_value() && !hangs->holds());
              REQUIRE_IN_CHILD(hangs->program_exit_code == 3 && hangs->processes.stopped == 1);
              return program.log().ends_with("context 0\n") ? 0 : complain(program.log());
            }),
            0);
}

TEST_F(Confine, whoever_is_told_of_the_control_block_reads_live_counters) {
  EXPECT_EQ(
      Supervised::apart([this] {
        auto plan = plan_for(program, {"context", "launch"});
        std::optional<Control> watched;
        plan.started = [&watched](const std::string& control) {
          if (auto opened = Control::open(control)) watched.emplace(std::move(*opened));
        };
        const auto outcome = run_confined(plan);
        REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds() && watched.has_value());
        const ControlBlock& block = watched->block();
        REQUIRE_IN_CHILD(block.counters.seen() == 1 && block.confined == 1 && block.contexts == 1);
        REQUIRE_IN_CHILD(block.kept_off == 0 && block.stopped == 0);
        HardwareMask mask;
        REQUIRE_IN_CHILD(block.mask.load(mask));
        REQUIRE_IN_CHILD(!Control::open(watched->value()));
        return 0;
      }),
      0);
}

// The TPCs that a mask leaves, as bits of the stand-in's first two words.
std::uint64_t left_by(const HardwareMask& mask) {
  return ~(std::uint64_t{mask.disabled[1]} << 32 | mask.disabled[0]);
}

TEST_F(Confine, a_running_program_is_moved_on_the_card_that_it_has) {
  EXPECT_EQ(
      Supervised::apart([this] {
        ::setenv("DEMARC_FAKE_DEVICES", "2", 1);
        const std::string said = test::fresh_folder("said") / "text";
        const std::string go = test::fresh_folder("go") / "on";
        auto plan = plan_for(program, {"context", "wait-for=" + go, "launch"});
        plan.device = 1;
        plan.audit = true;
        std::optional<Control> watched;
        std::uint32_t largest_before = 0;
        int started[2];
        REQUIRE_IN_CHILD(::pipe2(started, O_CLOEXEC) == 0);
        // Another process moves it, as a user's does: that of `demarc exec` claims the TPCs.
        const pid_t mover = ::fork();
        if (mover == 0) {
          pid_t process = 0;
          ::alarm(30);
          if (::read(started[0], &process, sizeof process) != sizeof process) std::_Exit(2);
          const auto moved = confine_again(process, {"0,3,6", "", 0, 0});
          std::ofstream(said) << (!moved ? moved.error().message
                                         : fmt::format("{}, {} graphs", to_string(moved->tpcs),
                                                       moved->has_graphs ? 1 : 0));
          std::ofstream{go};
          std::_Exit(0);
        }
        plan.started = [&](const std::string& control) {
          if (auto opened = Control::open(control)) watched.emplace(std::move(*opened));
          largest_before = watched->block().largest_cluster;
          for (const pid_t process : family_since(0)) {
            if (process == mover || !control_value_of(process)) continue;
            static_cast<void>(::write(started[1], &process, sizeof process));
          }
        };
        const auto outcome = run_confined(plan);
        if (!outcome) return complain(outcome.error().message);
        if (const auto moved = read_file(said).value_or(""); moved != "0,3,6, 0 graphs") {
          return complain(moved);
        }
        REQUIRE_IN_CHILD(outcome->holds() && outcome->processes.kept_off == 0);
        REQUIRE_IN_CHILD(outcome->masked[0] == 1 && outcome->masked_blocks[0] == 5);
        HardwareMask mask;
        REQUIRE_IN_CHILD(watched->block().mask.load(mask) && left_by(mask) == 0b111);
        REQUIRE_IN_CHILD(largest_before == 2 && watched->block().largest_cluster == 6);
        REQUIRE_IN_CHILD(outcome->periods.size() == 2 && outcome->periods[0].tpcs == "1,3" &&
                         outcome->periods[1].tpcs == "0,3,6");
        REQUIRE_IN_CHILD(outcome->periods[0].launches == 0 && outcome->periods[1].launches == 1);
        const std::string text = audit_to_text(*outcome);
        REQUIRE_IN_CHILD(text.starts_with("partition: TPCs 1,3 (4 SMs), then TPCs 0,3,6; "));
        REQUIRE_IN_CHILD(text.find("           1  launches with the mask of TPCs 0,3,6\n") !=
                         std::string::npos);
        return 0;
      }),
      0);
}

TEST_F(Confine, a_program_on_a_card_that_is_not_seen_here_is_not_moved) {
  EXPECT_EQ(Supervised::apart([this] {
              ::setenv("DEMARC_FAKE_DEVICES", "2", 1);
              auto plan = plan_for(program, {"context"});
              plan.device = 1;
              std::string said;
              plan.started = [&said](const std::string&) {
                ::setenv("DEMARC_FAKE_DEVICES", "1", 1);
                for (const pid_t process : family_since(0)) {
                  if (!control_value_of(process)) continue;
                  const auto moved = confine_again(process, {"0", "", 0, 0});
                  said = moved ? "moved" : moved.error().message;
                }
              };
              REQUIRE_IN_CHILD(run_confined(plan).has_value());
              REQUIRE_IN_CHILD(said.find("is not visible here") != std::string::npos);
              return 0;
            }),
            0);
}

// A process that has the control block counts in it, as the library in the program does.
TEST_F(Confine, the_outcome_has_what_the_block_counted_of_every_path) {
  EXPECT_EQ(Supervised::apart([this] {
              auto plan = plan_for(program, {"context"});
              plan.started = [](const std::string& control) {
                const auto opened = Control::open(control);
                LaunchCounters& counters = opened->block().counters;
                for (std::size_t p = 0; p < launch_paths; ++p) {
                  counters.masked[p] += 10 + p;
                  counters.unmasked[p] += 20 + p;
                  counters.refused[p] += 30 + p;
                  counters.masked_blocks[p] += 40 + p;
                }
                counters.graphs += 50;
              };
              const auto outcome = run_confined(plan);
              REQUIRE_IN_CHILD(outcome.has_value() && !outcome->holds());
              for (std::size_t p = 0; p < launch_paths; ++p) {
                REQUIRE_IN_CHILD(outcome->masked[p] == 10 + p && outcome->unmasked[p] == 20 + p);
                REQUIRE_IN_CHILD(outcome->refused[p] == 30 + p);
                REQUIRE_IN_CHILD(outcome->masked_blocks[p] == 40 + p);
              }
              REQUIRE_IN_CHILD(outcome->graphs == 50);
              return 0;
            }),
            0);
}

TEST(TpcChoices, are_one_of_four_ways) {
  const gpu::Topology topology = gpu::regular_topology(2, 4, 2);
  EXPECT_EQ(partition::choose_tpcs(topology, {"1,3", "", 0, 0}).value(), (gpu::TpcSet{1, 3}));
  EXPECT_EQ(partition::choose_tpcs(topology, {"", "1", 0, 0}).value(), (gpu::TpcSet{4, 5, 6, 7}));
  EXPECT_EQ(partition::choose_tpcs(topology, {"", "", 6, 0}).value().size(), 3U);
  EXPECT_EQ(partition::choose_tpcs(topology, {"", "", 0, 25}).value().size(), 2U);
  for (const partition::TpcChoice& wrong :
       {partition::TpcChoice{}, partition::TpcChoice{"1", "1", 0, 0},
        partition::TpcChoice{"1", "", 2, 0}, partition::TpcChoice{"", "1", 0, 50},
        partition::TpcChoice{"", "", 2, 50}}) {
    EXPECT_THAT(partition::choose_tpcs(topology, wrong).error().message,
                testing::HasSubstr("give exactly one of --tpcs, --gpcs and --sms"));
  }
}

TEST_F(Confine, a_program_sees_the_card_of_its_partition_alone) {
  EXPECT_EQ(Supervised::apart([this] {
              const auto shows = [&](const char* words) {
                auto plan = plan_for(program, {});
                plan.command = {"sh", "-c", words};
                const auto outcome = run_confined(plan);
                return outcome.has_value() && outcome->program_exit_code == 0;
              };
              REQUIRE_IN_CHILD(shows("test -z \"$CUDA_VISIBLE_DEVICES\""));
              ::setenv(tenant_variable, "other", 1);  // it has no lease, whatever says so
              REQUIRE_IN_CHILD(shows("test -z \"$DEMARC_TENANT\""));
              return 0;
            }),
            0);
  EXPECT_EQ(Supervised::apart([this] {
              ::setenv("DEMARC_FAKE_DEVICES", "3", 1);
              auto plan = plan_for(program, {"context", "launch"});
              plan.device = 2;
              const auto outcome = run_confined(plan);
              if (!outcome) return complain(outcome.error().message);
              REQUIRE_IN_CHILD(outcome->holds());
              plan.command = {"sh", "-c",
                              "test \"${CUDA_VISIBLE_DEVICES#GPU-f8f8}\" != "
                              "\"$CUDA_VISIBLE_DEVICES\""};
              REQUIRE_IN_CHILD(run_confined(plan)->program_exit_code == 0);
              return 0;
            }),
            0);
}

TEST_F(Confine, what_cannot_be_started_as_asked_is_refused_by_name) {
  const auto refused = [this](auto change, const char* words) {
    auto plan = plan_for(program, {"exit=0"});
    change(plan);
    const auto outcome = run_confined(plan);
    ASSERT_FALSE(outcome) << words;
    EXPECT_THAT(outcome.error().message, testing::HasSubstr(words));
  };
  refused([](ConfinePlan& plan) { plan.command.clear(); }, "no command was given");
  refused([](ConfinePlan& plan) { plan.preload = "/no/such.so"; },
          "/no/such.so: this library does not exist");
  refused([](ConfinePlan& plan) { plan.preload.clear(); },
          "libdemarc_preload.so was not found beside");
  refused(
      [](ConfinePlan& plan) { plan.choice = {}; },
      "which part of the card is not said: give --part K/N (SMs, L2 and memory), or exactly one "
      "of --tpcs, --gpcs and --sms");
  refused([](ConfinePlan& plan) { plan.choice.tpcs = "3-1"; }, "--tpcs: '3-1' runs backwards");
  refused([](ConfinePlan& plan) { plan.choice.sms = 4; }, "give exactly one of");
  refused([](ConfinePlan& plan) { plan.device = 1; }, "there is no GPU cuda:1");
  fake::FakeConfig deaf = fake::small_gpu();
  deaf.obey_masks = false;
  test::configure(deaf);
  refused([](ConfinePlan&) {}, "does not hold");
  EXPECT_THAT(confine_again(::getpid(), {"1", "", 0, 0}).error().message,
              testing::HasSubstr("was not started by demarc exec"));
  EXPECT_THAT(control_value_of(0).error().message, testing::HasSubstr("--pid 0: no such process"));
}

TEST_F(Confine, only_the_processes_that_the_block_counts_are_in_it) {
  EXPECT_EQ(Supervised::apart([this] {
              auto plan = plan_for(program, {"context"});
              plan.command.insert(plan.command.begin(), {"env", "-i"});
              std::optional<Control> watched;
              plan.started = [&watched](const std::string& control) {
                if (auto opened = Control::open(control)) watched.emplace(std::move(*opened));
              };
              REQUIRE_IN_CHILD(run_confined(plan).has_value());
              REQUIRE_IN_CHILD(watched->block().kept_off == 1 && watched->block().stopped == 0);
              REQUIRE_IN_CHILD(watched->block().confined == 0);
              plan.command = program.subject({"set=DEMARC_CONTROL=/proc/1/fd/0#00", "init"});
              REQUIRE_IN_CHILD(run_confined(plan).has_value());
              REQUIRE_IN_CHILD(watched->block().kept_off == 0 && watched->block().stopped == 1);
              return 0;
            }),
            0);
}

TEST_F(Confine, launches_are_counted_where_nothing_is_audited) {
  EXPECT_EQ(Supervised::apart([this] {
              const auto plan = plan_for(program, {"context", "launch"});
              const auto outcome = run_confined(plan);
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
              REQUIRE_IN_CHILD(outcome->masked[0] == 0 && outcome->masked[3] == 1);
              REQUIRE_IN_CHILD(outcome->periods.size() == 1 && outcome->periods[0].launches == 1);
              return 0;
            }),
            0);
}

TEST_F(Confine, the_block_says_on_which_card_its_program_is_and_whether_through_mps) {
  for (const bool mps : {false, true}) {
    EXPECT_EQ(Supervised::apart([&] {
                // In a client of MPS its SMs are told by what is remembered of a known card.
                fake::FakeConfig config = fake::small_gpu();
                std::snprintf(config.name, sizeof config.name, "NVIDIA H100 80GB HBM3");
                test::configure(config);
                REQUIRE_IN_CHILD(open_card(0).has_value());
                config.mps_attribute = mps ? 1 : 0;
                test::configure(config);
                ::setenv("DEMARC_FAKE_MPS", mps ? "1" : "0", 1);
                for (const bool observe : {false, true}) {
                  auto plan = plan_for(program, {"context"});
                  plan.observe = observe;
                  if (observe) plan.choice = {};
                  bool right = false;
                  plan.started = [&](const std::string& control) {
                    const auto opened = Control::open(control).value();
                    const ControlBlock& block = opened.block();
                    right = block.capability.major == 9 && block.capability.minor == 0 &&
                            block.uuid == program.card &&
                            block.sms_per_tpc == (observe ? 0U : 2U) &&
                            block.needs_mps == (mps && !observe ? 1U : 0U) &&
                            block.no_host_memory == 0 && block.count_paths == 0;
                  };
                  const auto outcome = run_confined(plan);
                  if (!outcome) return complain(outcome.error().message);
                  REQUIRE_IN_CHILD(right);
                }
                return 0;
              }),
              0)
        << mps;
  }
}

TEST_F(Confine, observed_programs_run_on_the_whole_card_and_are_counted) {
  EXPECT_EQ(Supervised::apart([this] {
              auto plan = plan_for(program, {"context", "launch", "exit=6"});
              plan.observe = true;
              REQUIRE_IN_CHILD(run_confined(plan).error().kind == ErrorKind::invalid_input);
              plan.choice = {};
              std::optional<Control> watched;
              plan.started = [&watched](const std::string& control) {
                if (auto opened = Control::open(control)) watched.emplace(std::move(*opened));
              };
              const auto outcome = run_confined(plan);
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds() && outcome->observed);
              REQUIRE_IN_CHILD(outcome->program_exit_code == 6 && outcome->sms == 24);
              REQUIRE_IN_CHILD(outcome->unmasked[3] == 1 && outcome->masked[3] == 0);
              HardwareMask mask;
              REQUIRE_IN_CHILD(watched.has_value() && !watched->block().mask.load(mask));
              plan.command = program.subject({"exit=0"});
              REQUIRE_IN_CHILD(!run_confined(plan)->holds());
              return 0;
            }),
            0);
}

TEST_F(Confine, inside_another_exec_is_refused) {
  EXPECT_EQ(
      Supervised::apart([this] {
        // For one that has ended: a living one would have to answer.
        ::close(install_filter());
        const auto nested = run_confined(plan_for(program, {}));
        REQUIRE_IN_CHILD(nested.error().kind == ErrorKind::invalid_input);
        REQUIRE_IN_CHILD(nested.error().message.find("inside another demarc exec") !=
                         std::string::npos);
        REQUIRE_IN_CHILD(confine_again(::getpid(), {}).error().message == nested.error().message);
        return 0;
      }),
      0);
}

TEST_F(Confine, another_injection_library_is_passed_on) {
  EXPECT_EQ(Supervised::apart([this] {
              auto plan = plan_for(program, {});
              plan.command = {"sh", "-c",
                              "test \"$DEMARC_CHAINED_INJECTION\" = /other.so && test "
                              "\"$CUDA_INJECTION64_PATH\" = \"$0\" && test -z \"$LD_PRELOAD\"",
                              plan.preload};
              ::setenv("CUDA_INJECTION64_PATH", "/other.so", 1);
              const auto outcome = run_confined(plan);
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->program_exit_code == 0);
              plan.command = {"sh", "-c", "test -z \"$DEMARC_CHAINED_INJECTION\""};
              ::setenv("CUDA_INJECTION64_PATH", plan.preload.c_str(), 1);  // this one itself
              REQUIRE_IN_CHILD(run_confined(plan)->program_exit_code == 0);
              return 0;
            }),
            0);
}

TEST(ChildrenThatUseTheGpu, end_with_whoever_waits_for_them) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int code = Supervised::apart([&ends]() -> int {
    ::close(ends[0]);
    const auto unheard = answer_of_child(
        [&ends]() -> ChildAnswer {
          if (::write(ends[1], "x", 1) == 1) ::kill(::getppid(), SIGKILL);
          while (true) ::pause();
        },
        child_limit);
    return unheard ? 0 : 1;
  });
  EXPECT_EQ(code, 128 + SIGKILL);
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "the child is gone";
  ::close(ends[0]);
}

}  // namespace
}  // namespace demarc::cuda
