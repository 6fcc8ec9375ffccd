// What `demarc exec --tenant` makes of the lease that a server gives, and which leases it refuses.
#include <gmock/gmock.h>

#include "confine_fixture.hpp"
#include "lease_stand_in.hpp"

namespace demarc::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class LeasedPrograms : public Confine {
 protected:
  void SetUp() override {
    Confine::SetUp();
    server.emplace();
  }
  // The exit code and what is told of a program of tenant a that runs `words`; or why it does not
  // run, after the code of that.
  std::string run(const std::string& words, const std::function<void(ConfinePlan&)>& change = {}) {
    const std::string said = test::fresh_folder("leased") / "text";
    static_cast<void>(server->apart([&] {
      ConfinePlan plan = plan_for(program, {});
      plan.choice = {};
      plan.command = {"sh", "-c", words};
      plan.tenant = "a";
      plan.socket = server->socket();
      plan.sync_domain.kind = DomainChoice::Kind::none;
      std::string told;
      plan.tell = [&told](const std::string& line) { told += line; };
      if (change) change(plan);
      const auto outcome = run_confined(plan);
      const int code =
          outcome ? outcome->program_exit_code : static_cast<int>(outcome.error().kind);
      const std::string domain =
          outcome && outcome->sync_domain ? fmt::format("domain {} ", *outcome->sync_domain) : "";
      if (outcome) told += also(*outcome);
      return write_file(said, fmt::format("{} {}{}", code, domain,
                                          outcome ? told : outcome.error().message))
                 ? 0
                 : 1;
    }));
    return read_file(said).value_or("nothing was said");
  }

  std::optional<test::LeaseStandIn> server;
  // What else is told of an outcome.
  std::function<std::string(const ConfineOutcome&)> also = [](const auto&) { return ""; };
};

TEST_F(LeasedPrograms, find_their_tenant_their_mps_and_the_compilers_in_their_environment) {
  const std::string compilers = test::build_dir() / "libdemarc_compilers.so";
  EXPECT_THAT(run("test \"$DEMARC_TENANT\" = a && test \"$CUPY_COMPILE_WITH_PTX\" = 1 && "
                  "test \"$LD_PRELOAD\" = '" +
                  compilers + "' && test -z \"$CUDA_MPS_PIPE_DIRECTORY\""),
              AllOf(StartsWith("0 "), HasSubstr("demarc serve runs without MPS"),
                    HasSubstr("'a' has its TPCs alone while it has its turn")));
  const std::string both = "test \"$LD_PRELOAD\" = '" + compilers + ":" + compilers + "'";
  ::setenv("LD_PRELOAD", compilers.c_str(), 1);
  EXPECT_THAT(run(both), StartsWith("0 "));
  ::setenv("LD_PRELOAD", "", 1);
  EXPECT_THAT(run("test \"$LD_PRELOAD\" = '" + compilers + "'"), StartsWith("0 "));
  ::unsetenv("LD_PRELOAD");
  EXPECT_THAT(run("test -z \"$LD_PRELOAD\" && test -z \"$CUPY_COMPILE_WITH_PTX\"",
                  [](ConfinePlan& plan) { plan.windows = WindowUse::always; }),
              StartsWith("0 "))
      << "what runs as it is is compiled as it was";
}

TEST_F(LeasedPrograms, are_not_started_to_run_as_they_are_where_colours_change_within_a_page) {
  server->lease.share.law = color::make_law(color::RemainderSteps{.chunk_shift = 8});
  EXPECT_EQ(run("true", [](ConfinePlan& plan) { plan.windows = WindowUse::always; }),
            "2 --windows always is not possible in the memory of tenant 'a': slices change every "
            "256 bytes: a page of 4 KiB has bytes of several colours, so no page table divides "
            "them; give the program PTX, or a build of it that has PTX");
  EXPECT_THAT(run("true"), StartsWith("0 ")) << "what has PTX runs";
}

TEST_F(LeasedPrograms, are_told_whether_machine_code_runs) {
  const std::string runs = "test \"$DEMARC_WINDOWS\" = 1";
  const std::string refused = "test \"${DEMARC_WINDOWS-1}\" = ''";
  EXPECT_THAT(run(runs), StartsWith("0 "));
  EXPECT_THAT(run(runs, [](ConfinePlan& plan) { plan.windows = WindowUse::always; }),
              StartsWith("0 "));
  ::setenv("DEMARC_WINDOWS", "1", 1);  // as if a program in a window had started this one
  EXPECT_THAT(run(refused, [](ConfinePlan& plan) { plan.windows = WindowUse::never; }),
              StartsWith("0 "));
  server->lease.share.law = color::make_law(color::RemainderSteps{.chunk_shift = 8});
  EXPECT_THAT(run(refused), StartsWith("0 "));
  ::unsetenv("DEMARC_WINDOWS");
}

TEST_F(LeasedPrograms, find_demarcs_cublas_where_machine_code_is_refused) {
  const std::string compilers = test::build_dir() / "libdemarc_compilers.so";
  const std::string both = "test \"$LD_PRELOAD\" = '" + compilers + ":" +
                           (test::build_dir() / "libdemarc_blas.so").string() + "'";
  EXPECT_THAT(run(both), StartsWith("1 ")) << "windows show machine code its bytes";
  EXPECT_THAT(run(both, [](ConfinePlan& plan) { plan.windows = WindowUse::never; }),
              StartsWith("0 "));
  const std::uint64_t window_bytes = std::exchange(server->lease.window_bytes, 0);
  EXPECT_THAT(run(both), StartsWith("0 "));
  server->lease.window_bytes = window_bytes;
  server->lease.share.law = color::make_law(color::RemainderSteps{.chunk_shift = 8});
  EXPECT_THAT(run(both), StartsWith("0 "));
}

TEST_F(LeasedPrograms, are_not_started_without_demarcs_cublas_where_machine_code_is_refused) {
  const auto folder = test::fresh_folder("no_blas");
  for (const char* name : {"libdemarc_preload.so", "libdemarc_compilers.so"}) {
    std::filesystem::copy_file(test::build_dir() / name, folder / name);
  }
  const auto beside = [&folder](WindowUse windows) {
    return [&folder, windows](ConfinePlan& plan) {
      plan.preload = folder / "libdemarc_preload.so";
      plan.windows = windows;
    };
  };
  EXPECT_EQ(run("true", beside(WindowUse::never)), "2 libdemarc_blas.so was not found beside " +
                                                       (folder / "libdemarc_preload.so").string() +
                                                       "; a tenant's program needs both");
  EXPECT_THAT(run("true", beside(WindowUse::automatic)), StartsWith("0 "));
}

TEST_F(LeasedPrograms, have_the_domain_of_their_lease_or_none) {
  const auto free = [](ConfinePlan& plan) { plan.sync_domain.kind = DomainChoice::Kind::free; };
  EXPECT_THAT(run("exit 5", free), StartsWith("5 demarc serve"));
  server->lease.sync_domain = 2;
  EXPECT_THAT(run("exit 5", free), StartsWith("5 domain 2 "));
  server->lease.sync_domain = 4;
  EXPECT_THAT(run("exit 5", free),
              StartsWith("2 there is no memory synchronisation domain 4; the card has 0 to 3"));
}

TEST_F(LeasedPrograms, run_in_the_mps_of_their_lease_alone) {
  server->lease.mps = "/run/mps";
  EXPECT_THAT(run("true"), StartsWith("2 this process is not a client of the MPS whose folder is "
                                      "/run/mps"));
  fake::FakeConfig config = fake::small_gpu();
  config.mps_attribute = 1;
  server.emplace(config);
  server->lease.mps = "/run/mps";
  EXPECT_EQ(run("test \"$CUDA_MPS_PIPE_DIRECTORY\" = /run/mps"), "0 ");
}

TEST_F(LeasedPrograms, do_not_run_without_a_whole_mask_of_the_server) {
  const auto words = server->lease.mask.disabled;
  const auto refused = [&](const std::vector<std::uint64_t>& disabled) {
    server->lease.mask.disabled = disabled;
    EXPECT_THAT(run("true"), StartsWith(fmt::format(
                                 "3 the lease of demarc serve has no mask of TPCs: expected 4 "
                                 "words of 32 bits that leave some TPC, but {} words came",
                                 disabled.size())));
  };
  refused({});
  refused({words[0], words[1], words[2]});
  refused({words[0], words[1], words[2], words[3], 0});
  for (const std::size_t wide : {0U, 3U}) {
    auto wider = words;
    wider[wide] |= std::uint64_t{1} << 32U;
    refused(wider);
  }
  refused({~0U, ~0U, ~0U, ~0U});
  refused({words[0], words[1], words[2], words[3] & ~(std::uint64_t{1} << 31U)});
  server->lease.mask.disabled = words;
  server->lease.mask.sms = 5;
  EXPECT_THAT(run("true"), StartsWith("3 "));
  server->lease.mask.sms = 4;
  EXPECT_THAT(run("true"), StartsWith("0 "));
  server->given.disabled[3] &= ~0x80000000U;
  EXPECT_EQ(run("true"), "3 demarc serve gave tenant 'a' a lease, but gave the program no mask");
}

TEST_F(LeasedPrograms, do_not_run_where_the_lease_or_the_driver_is_not_understood) {
  server->lease.tpcs = "0-200";
  EXPECT_THAT(run("true"), AllOf(StartsWith("1 "), HasSubstr("the TPCs of the lease")));
  server->lease.card = "GPU-of-another-machine";
  EXPECT_THAT(run("true"), AllOf(StartsWith("2 "), HasSubstr("is not visible here")));
  server.emplace();
  EXPECT_THAT(run("true",
                  [](ConfinePlan&) {
                    fake::FakeConfig config = fake::small_gpu();
                    config.cuda_version = 13010;
                    test::configure(config);
                  }),
              StartsWith("2 a tenant's program cannot be watched: this driver has CUDA 13.1"));
  EXPECT_THAT(run("true",
                  [](ConfinePlan&) {
                    fake::FakeConfig config = fake::small_gpu();
                    config.unwatched_function = 598;
                    test::configure(config);
                  }),
              StartsWith("2 the driver refuses callback 598"));
}

TEST_F(LeasedPrograms, do_not_run_with_a_token_for_which_their_block_has_no_room) {
  constexpr std::size_t room = sizeof ControlBlock::lease_token;
  server->opened_token = std::string(room - 1, 'f');
  EXPECT_THAT(run("true"), StartsWith("0 "));
  server->opened_token += 'f';
  EXPECT_EQ(run("true"), fmt::format("3 the token of the lease has {} characters; at most {} were "
                                     "expected",
                                     room, room - 1));
}

// Its server can start again then, although the program still runs.
TEST_F(LeasedPrograms, run_on_when_their_lease_ends_and_let_go_of_the_claim_of_the_server) {
  const std::string heard = server->socket() + ".heard";
  const auto notes_end = [&](ConfinePlan& plan) {
    plan.tell = [heard, tell = plan.tell](const std::string& line) {
      tell(line);
      if (line.find("revoked") != std::string::npos) static_cast<void>(write_file(heard, ""));
    };
  };
  // This process has one of the locks, too.
  const std::string words =
      "n() { readlink /proc/$PPID/fd/* | grep -c 'socket.lock$'; }; test $(n) = 2 || exit 9; "
      "touch " +
      server->end_file() + "; until test -e " + heard +
      " && test $(n) = 1; do sleep 0.01; done; exit 4";
  EXPECT_THAT(run(words, notes_end),
              testing::MatchesRegex("4 .*tenant 'a' was revoked: this lease has ended; no other "
                                    "process of the program gets anything of it"));
}

TEST_F(LeasedPrograms, ask_at_the_socket_that_is_given) {
  const auto at = [](const std::string& socket) {
    return [socket](ConfinePlan& plan) { plan.socket = socket; };
  };
  const std::string longest = "/" + std::string(106, 's');
  EXPECT_THAT(run("true", at(longest + "s")),
              StartsWith("1 " + longest + "s: the path of a socket has at most 107 characters"));
  EXPECT_THAT(run("true", at(longest)), HasSubstr("demarc serve does not run there"));
  ::setenv("DEMARC_SOCKET", server->socket().c_str(), 1);
  EXPECT_THAT(run("true", at("")), StartsWith("0 "));
  ::unsetenv("DEMARC_SOCKET");
}

TEST_F(LeasedPrograms, bring_their_own_tpcs_and_have_options_of_their_own) {
  for (const auto& [change, said] :
       {std::pair{+[](ConfinePlan& plan) { plan.choice.tpcs = "1"; }, "brings its own TPCs"},
        {+[](ConfinePlan& plan) { plan.observe = true; }, "brings its own TPCs"},
        {+[](ConfinePlan& plan) { plan.allow_overlap = true; }, "--allow-overlap is for programs"},
        {+[](ConfinePlan& plan) { plan.command.clear(); }, "no command was given"}}) {
    EXPECT_THAT(run("true", change), AllOf(StartsWith("1 "), HasSubstr(said)));
  }
  const auto alone = [](void (*change)(ConfinePlan&)) {
    return [change](ConfinePlan& plan) {
      plan.tenant.clear();
      plan.choice.tpcs = "1";
      change(plan);
    };
  };
  for (const auto& [change, option] :
       {std::pair{+[](ConfinePlan& plan) { plan.report = true; }, "--report"},
        {+[](ConfinePlan& plan) { plan.allow_plain = true; }, "--allow-plain"},
        {+[](ConfinePlan& plan) { plan.allow_spills = 1; }, "--allow-spills"},
        {+[](ConfinePlan& plan) { plan.silence_printf = true; }, "--silence-printf"},
        {+[](ConfinePlan& plan) { plan.windows = WindowUse::never; }, "--windows"},
        {+[](ConfinePlan& plan) { plan.overlap_launches = true; }, "--overlap-launches"}}) {
    EXPECT_EQ(run("true", alone(change)), fmt::format("1 {} needs --part or --tenant", option));
    EXPECT_THAT(run("true", change), StartsWith("0 ")) << option;
  }
  EXPECT_THAT(run("true", alone([](ConfinePlan& plan) { plan.observe = true; })),
              StartsWith("1 --observe chooses no TPCs"));
}

TEST_F(LeasedPrograms, have_in_their_block_what_they_may_and_where_they_attach) {
  const auto block_of = [this](void (*change)(ConfinePlan&)) {
    return run("true", [change](ConfinePlan& plan) {
      change(plan);
      plan.started = [tell = plan.tell](const std::string& control) {
        const auto opened = Control::open(control).value();
        const ControlBlock& block = opened.block();
        tell(fmt::format(
            "; windows {} plain {} spills {} silent {} overlap {} paths {} without host memory {} "
            "at "
            "{} by {} with {} on {}, {}.{}",
            static_cast<std::uint32_t>(block.windows), block.allow_plain, block.allow_spills,
            block.silence_printf, block.overlap, block.count_paths, block.no_host_memory,
            block.lease_socket, block.lease_token, block.sms_per_tpc, block.uuid,
            block.capability.major, block.capability.minor));
      };
    });
  };
  const std::string where =
      fmt::format(" at {} by 00ff with 2 on {}, 9.0", server->socket(), server->lease.card);
  EXPECT_THAT(
      block_of([](ConfinePlan&) {}),
      HasSubstr("; windows 1 plain 0 spills 0 silent 0 overlap 0 paths 0 without host memory 0" +
                where));
  EXPECT_THAT(block_of([](ConfinePlan& plan) { plan.allow_plain = true; }), HasSubstr(" plain 1"));
  EXPECT_THAT(block_of([](ConfinePlan& plan) { plan.windows = WindowUse::never; }),
              HasSubstr("; windows 0"));
  EXPECT_THAT(block_of([](ConfinePlan& plan) { plan.windows = WindowUse::always; }),
              HasSubstr("; windows 2"));
  EXPECT_THAT(block_of([](ConfinePlan& plan) { plan.allow_spills = 48; }), HasSubstr(" spills 48"));
  EXPECT_THAT(block_of([](ConfinePlan& plan) { plan.silence_printf = true; }),
              HasSubstr(" silent 1"));
  EXPECT_THAT(block_of([](ConfinePlan& plan) { plan.overlap_launches = true; }),
              HasSubstr(" overlap 1"));
  EXPECT_THAT(block_of([](ConfinePlan& plan) { plan.audit = true; }), HasSubstr(" paths 1"));
  EXPECT_THAT(block_of([](ConfinePlan& plan) { plan.host_memory = false; }),
              HasSubstr(" without host memory 1"));
}

TEST_F(LeasedPrograms, are_reported_with_their_tenant_and_what_their_processes_did) {
  also = [](const ConfineOutcome& outcome) {
    if (!outcome.report) return std::string("; no report");
    const ProgramReport& report = *outcome.report;
    return fmt::format("; {} launched {} {} times, at most {} bytes", report.tenant,
                       report.names.at(0).name, report.names.at(0).count, report.max_bytes);
  };
  const auto note = [](ConfinePlan& plan) {
    plan.started = [](const std::string& value) {
      const Control control = Control::open(value).value();
      control.block().record.counter(Recorded::kernel, "k").fetch_add(3);
      control.block().record.note_bytes(77);
    };
  };
  EXPECT_THAT(run("true", note), HasSubstr("; a launched k 3 times, at most 77 bytes"));
  EXPECT_EQ(run("true",
                [](ConfinePlan& plan) {
                  plan.tenant.clear();
                  plan.choice.tpcs = "1";
                }),
            "0 ; no report");
}

TEST_F(LeasedPrograms, are_moved_by_their_server_alone) {
  program.control.block().lease_token[0] = 'a';
  const std::string control = std::string(control_variable) + "=" + program.control.value();
  const pid_t process = server->fork();
  if (process == 0) {
    const char* const environment[] = {control.c_str(), nullptr};
    ::execle("/bin/sleep", "sleep", "60", nullptr, environment);
    ::_exit(1);
  }
  while (!control_value_of(process)) ::usleep(1000);
  const auto moved = confine_again(process, {"0", "", 0, 0});
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().kind, ErrorKind::invalid_input);
  EXPECT_EQ(moved.error().message,
            fmt::format("--pid {}: its TPCs are those of a tenant's lease: demarc lease move moves "
                        "them",
                        process));
  HardwareMask mask;
  ASSERT_TRUE(program.control.block().mask.load(mask));
  EXPECT_EQ(mask, (HardwareMask{{~1U, ~0U, ~0U, ~0U}})) << "it keeps the one that it had";
}

}  // namespace
}  // namespace demarc::cuda
