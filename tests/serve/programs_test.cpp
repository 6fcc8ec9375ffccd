// Whole programs under `demarc exec --tenant`, beside a server, on the stand-in driver: processes
// that know nothing of each other share one card's memory.
#include <gmock/gmock.h>

#include <csignal>
#include <functional>

#include "demarc/base/json.hpp"
#include "tenant_programs.hpp"

namespace demarc::serve {
namespace {

using cuda::complain;
using test::Supervised;

TEST_F(TenantPrograms, run_unchanged_in_the_colours_of_their_tenants) {
  for (const bool remainders : {false, true}) {
    ServingProcess server(socket, remainders);
    ASSERT_TRUE(server.ready());
    EXPECT_EQ(
        Supervised::apart([&] {
          for (const char* tenant : {"a", "b"}) {
            const auto outcome = run_confined(
                plan_of(tenant, {"show=DEMARC_TENANT", "context", "count", "replay", "count"}));
            if (!outcome) return complain(outcome.error().message);
            if (!outcome->holds()) return complain(warnings(*outcome));
            REQUIRE_IN_CHILD(program.log().find(std::string("DEMARC_TENANT ") + tenant) !=
                             std::string::npos);
            REQUIRE_IN_CHILD(program.log().ends_with("count right\nreplay right\ncount right\n"));
            REQUIRE_IN_CHILD(
                (outcome->tpcs == (tenant[0] == 'a' ? gpu::TpcSet{0, 1} : gpu::TpcSet{5})));
            REQUIRE_IN_CHILD(outcome->sync_domain ==
                             (tenant[0] == 'a' ? std::nullopt : std::optional(2U)));
            const auto& report = outcome->report;
            REQUIRE_IN_CHILD(report && report->tenant == tenant && report->names.size() == 2);
            REQUIRE_IN_CHILD(report->names[0].what == cuda::Recorded::kernel);
            REQUIRE_IN_CHILD(report->names[0].name == "count" && report->names[0].count == 2);
            REQUIRE_IN_CHILD(report->names[1].name == "keep" && report->names[1].count == 1);
            REQUIRE_IN_CHILD(report->max_bytes != 0 && report->refused_bytes == 0);
          }
          return 0;
        }),
        0)
        << program.log();
    EXPECT_EQ(server.end(), 0);
  }
}

TEST_F(TenantPrograms, ask_what_they_did_until_now) {
  EXPECT_EQ(Supervised::apart([&] {
              auto plan = cuda::plan_for(program, {"context", "tenant-report"});
              const auto outcome = run_confined(plan);
              REQUIRE_IN_CHILD(outcome.has_value() && !outcome->report);
              REQUIRE_IN_CHILD(program.log().ends_with("report none\n"));
              return 0;
            }),
            0)
      << "without a lease";
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(
      Supervised::apart([&] {
        const auto outcome = run_confined(plan_of("b", {"context", "count", "tenant-report"}));
        REQUIRE_IN_CHILD(outcome.has_value());
        const std::string log = program.log();
        const auto json =
            parse_json(std::string_view(log).substr(log.rfind("report ") + 7), "report");
        REQUIRE_IN_CHILD(json.has_value() && (*json)["tenant"] == "b");
        REQUIRE_IN_CHILD((*json)["kernels"][0]["name"] == "count");
        REQUIRE_IN_CHILD((*json)["kernels"][0]["count"] == 1);
        return 0;
      }),
      0)
      << program.log();
  EXPECT_EQ(server.end(), 0);
}

// The program of this test looks at no error, so it ends with 0.
TEST_F(TenantPrograms, say_which_error_has_ended_a_context) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(Supervised::apart([&] {
              // The driver launches the first kernel, and Demarc copies for the second.
              for (const std::string kernel : {"launch", "count"}) {
                const auto outcome =
                    run_confined(plan_of("a", {"context", kernel, "fail-next=719", kernel}));
                REQUIRE_IN_CHILD(outcome.has_value() && outcome->program_exit_code == 0);
                REQUIRE_IN_CHILD(program.log().ends_with(" 719\n"));
                const auto& names = outcome->report->names;
                REQUIRE_IN_CHILD(names.size() == 2);
                REQUIRE_IN_CHILD(names[1].what == cuda::Recorded::ended_context);
                REQUIRE_IN_CHILD(names[1].name == "error 719" && names[1].count == 1);
              }
              return 0;
            }),
            0)
      << program.log();
  EXPECT_EQ(server.end(), 0);
}

// With --allow-plain a process is looked at when it first calls the driver.
TEST_F(TenantPrograms, run_on_plain_memory_where_they_hold_machine_code_alone_and_may_do_so) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  const auto folder = test::fresh_folder("machine_code");
  const auto library = test::build_dir() / "libdemarc_machine_code.so";
  const auto broken = folder / "broken.so";
  ASSERT_TRUE(write_file(broken, "no code"));
  const auto ran = [&](const std::vector<std::string>& steps, bool allowed) {
    return Supervised::apart([&] {
      auto plan = plan_of("a", steps);
      plan.allow_plain = allowed;
      const auto outcome = run_confined(plan);
      REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
      REQUIRE_IN_CHILD(program.log().ends_with("count right\n"));
      REQUIRE_IN_CHILD(outcome->report->names.size() == 1);
      const auto& kernel = outcome->report->names[0];
      REQUIRE_IN_CHILD(kernel.name == "count" && kernel.count == 1);
      const bool plain = kernel.what == cuda::Recorded::plain_kernel;
      REQUIRE_IN_CHILD(plain || kernel.what == cuda::Recorded::kernel);
      REQUIRE_IN_CHILD(outcome->report->plain_bytes == (plain ? 65536U : 0U));
      REQUIRE_IN_CHILD((outcome->report->max_bytes == 0) == plain);
      const bool told = warnings(*outcome).find("1 process(es) ran on memory WITHOUT A COLOUR") !=
                        std::string::npos;
      REQUIRE_IN_CHILD(told == plain);
      return plain ? 77 : 78;
    });
  };
  constexpr int plain = 77;
  constexpr int colored = 78;
  const std::string open = "open-library=" + library.string();
  EXPECT_EQ(ran({open, "context", "count"}, true), plain);
  EXPECT_EQ(ran({open, "context", "count"}, false), colored) << "its code is refused when loaded";
  EXPECT_EQ(ran({"context", "count"}, true), colored);
  EXPECT_EQ(ran({"context", open, "count"}, true), colored) << "too late";
  EXPECT_EQ(ran({"map-code=" + broken.string(), "context", "count"}, true), plain)
      << "what cannot be read may hold anything";
  for (const char* name : {"libcuda.so.1", "libnvidia-gpucomp.so.580"}) {
    std::filesystem::copy_file(library, folder / name);
    EXPECT_EQ(ran({"open-library=" + (folder / name).string(), "context", "count"}, true), colored)
        << name;
  }
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, are_told_what_was_refused) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(Supervised::apart([&] {
              const auto outcome = run_confined(plan_of("b", {"context", "map-memory", "count"}));
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
              REQUIRE_IN_CHILD(program.log().ends_with("map 801\ncount right\n"));
              const std::string said = warnings(*outcome);
              return said.find("left the colours of the tenant: 1") != std::string::npos
                         ? 0
                         : complain(said);
            }),
            0);
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, compile_to_ptx_where_they_ask_for_machine_code) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  const std::string compilers = (test::build_dir() / "libdemarc_fake_compilers.so").string();
  EXPECT_EQ(Supervised::apart([&] {
              ::setenv("LD_PRELOAD", compilers.c_str(), 1);
              const auto outcome = run_confined(
                  plan_of("b", {"context", "show=LD_PRELOAD", "show=CUPY_COMPILE_WITH_PTX",
                                "count-as-compiled-by=" + compilers}));
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
              REQUIRE_IN_CHILD(program.log().ends_with(
                  "LD_PRELOAD " + (test::build_dir() / "libdemarc_compilers.so").string() + ":" +
                  compilers + "\nCUPY_COMPILE_WITH_PTX 1\ncount right\n"));
              return 0;
            }),
            0)
      << program.log();
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, multiply_in_their_colours_where_machine_code_is_refused) {
  for (const bool remainders : {false, true}) {
    ServingProcess server(socket, remainders);
    ASSERT_TRUE(server.ready());
    EXPECT_EQ(Supervised::apart([&] {
                auto plan = plan_of("b", {"context", "multiply", "count"});
                plan.windows = cuda::WindowUse::never;
                const auto outcome = run_confined(plan);
                if (!outcome) return complain(outcome.error().message);
                if (!outcome->holds()) return complain(warnings(*outcome));
                REQUIRE_IN_CHILD(program.log().ends_with("product right\ncount right\n"));
                REQUIRE_IN_CHILD(outcome->report->names.size() == 2);
                std::vector<std::string> kernels;
                for (const auto& recorded : outcome->report->names) {
                  REQUIRE_IN_CHILD(recorded.what == cuda::Recorded::kernel);
                  kernels.push_back(recorded.name);
                }
                REQUIRE_IN_CHILD((kernels == std::vector<std::string>{"count", "demarc_f16_dd"}));
                return 0;
              }),
              0)
        << program.log();
    EXPECT_EQ(server.end(), 0);
  }
}

TEST_F(TenantPrograms, get_no_addresses_of_the_host_into_their_kernels) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(Supervised::apart([&] {
              const auto outcome = run_confined(plan_of("b", {"context", "count-in-host-memory"}));
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
              REQUIRE_IN_CHILD(program.log().ends_with("host 801\n"));
              return 0;
            }),
            0)
      << program.log();
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, spill_and_overlap_where_they_may) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  const auto said = [&](std::uint32_t spills, bool overlap, cuda::WindowUse windows) {
    EXPECT_EQ(Supervised::apart([&] {
                auto plan = plan_of("b", {"context", "spill", "count", "early-launches"});
                plan.allow_spills = spills;
                plan.overlap_launches = overlap;
                plan.windows = windows;
                return run_confined(plan).has_value() ? 0 : 1;
              }),
              0);
    const std::string log = program.log();
    return log.substr(log.rfind("spilling "));
  };
  using cuda::WindowUse;
  EXPECT_EQ(said(0, false, WindowUse::never), "spilling 500\ncount right\nearly 0\n");
  EXPECT_EQ(said(7, true, WindowUse::never), "spilling 500\ncount right\nearly 1\n");
  EXPECT_EQ(said(8, false, WindowUse::never), "spilling 0\ncount right\nearly 0\n");
  EXPECT_EQ(said(7, false, WindowUse::automatic), "spilling 0\ncount right\nearly 0\n")
      << "as it is, in the tenant's window";
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, find_the_servers_mps) {
  ServingProcess server(socket, false, "/the/servers/mps");
  ASSERT_TRUE(server.ready());
  fake::FakeConfig client = fake::small_gpu();
  client.mps_attribute = 1;
  test::configure(client);
  ::setenv("DEMARC_FAKE_MPS", "1", 1);
  EXPECT_EQ(Supervised::apart([&] {
              const auto outcome =
                  run_confined(plan_of("b", {"show=CUDA_MPS_PIPE_DIRECTORY", "context"}));
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
              REQUIRE_IN_CHILD(program.log().find("CUDA_MPS_PIPE_DIRECTORY /the/servers/mps\n") !=
                               std::string::npos);
              return 0;
            }),
            0);
  ::unsetenv("DEMARC_FAKE_MPS");
  EXPECT_EQ(server.end(), 0);
}

// Beside a neighbour latencies tell nothing, and in a client of MPS numbers of SMs do not either.
TEST_F(TenantPrograms, start_beside_busy_neighbours_in_clients_of_mps) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  config.latency_noise = 100;
  test::configure(config);
  EXPECT_EQ(Supervised::apart([&] {
              const auto outcome = run_confined(plan_of("a", {"context", "count"}));
              if (!outcome) return complain(outcome.error().message);
              REQUIRE_IN_CHILD(outcome->holds() && outcome->sms == 4);
              return 0;
            }),
            0);
  config.obey_masks = false;
  test::configure(config);
  EXPECT_EQ(Supervised::apart([&] {
              const auto outcome = run_confined(plan_of("a", {"context"}));
              REQUIRE_IN_CHILD(!outcome.has_value());
              REQUIRE_IN_CHILD(outcome.error().message.find("its mask leaves 4 SMs") !=
                               std::string::npos);
              return 0;
            }),
            0);
  test::configure(fake::small_gpu());
  EXPECT_EQ(server.end(), 0);
}

// A server of one program: it gives this mask of tenant a's TPCs, and writes none into the program.
class AskedOnce {
 public:
  AskedOnce(const std::string& socket, const std::function<std::vector<std::uint64_t>()>& disabled)
      : listener_(lease::PacketListener::listen(socket, std::nullopt).value()), process_(::fork()) {
    if (process_ == 0) answer(disabled());
  }
  ~AskedOnce() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  AskedOnce(const AskedOnce&) = delete;
  AskedOnce& operator=(const AskedOnce&) = delete;

 private:
  [[noreturn]] void answer(std::vector<std::uint64_t> disabled) {
    std::optional<lease::PacketSocket> client;
    while (!client) client = listener_.accept();
    while (!client->receive()->packet) ::usleep(1000);
    const std::string uuid = test::fake_gpu()->uuid();
    const lease::Lease lease{"a", uuid, "0-1", {std::move(disabled), 4}, {}, 8, {}, ""};
    const int lock = listener_.lock();
    const bool sent = client->send(to_text(lease::Opened{lease, "0"}), std::span(&lock, 1)).value();
    ::pause();
    std::_Exit(sent ? 0 : 1);
  }

  lease::PacketListener listener_;
  pid_t process_;
};

// What a server says is looked at before a program relies on it.
TEST_F(TenantPrograms, are_not_started_under_a_mask_that_is_none) {
  constexpr std::uint64_t ours = 1ULL << 31;
  constexpr std::uint64_t all = 0xffffffff;
  for (const std::vector<std::uint64_t>& disabled : {std::vector<std::uint64_t>{},
                                                     {1, 2, ours},
                                                     {1, 2, 3, ours, 0},
                                                     {1, 2, 3, 4},
                                                     {1, 1ULL << 32, 3, ours},
                                                     {all, all, all, all}}) {
    const AskedOnce server(socket, [&] { return disabled; });
    EXPECT_EQ(
        Supervised::apart([&] {
          const auto outcome = run_confined(plan_of("a", {"context"}));
          REQUIRE_IN_CHILD(!outcome.has_value());
          REQUIRE_IN_CHILD(outcome.error().message ==
                           fmt::format("the lease of demarc serve has no mask of TPCs: expected 4 "
                                       "words of 32 bits that leave some TPC, but {} words came",
                                       disabled.size()));
          return 0;
        }),
        0);
  }
}

TEST_F(TenantPrograms, are_not_started_where_the_server_wrote_them_no_mask) {
  const AskedOnce server(socket, [] {
    const auto card = test::fake_card(fake::small_gpu()).value();
    const auto mask = card->hardware_mask({0, 1}).value();
    return std::vector<std::uint64_t>{mask.disabled.begin(), mask.disabled.end()};
  });
  EXPECT_EQ(
      Supervised::apart([&] {
        const auto outcome = run_confined(plan_of("a", {"context"}));
        REQUIRE_IN_CHILD(!outcome.has_value());
        REQUIRE_IN_CHILD(outcome.error().message ==
                         "demarc serve gave tenant 'a' a lease, but gave the program no mask");
        REQUIRE_IN_CHILD(program.log().empty());
        return 0;
      }),
      0);
}

TEST_F(TenantPrograms, lose_their_memory_however_they_end) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  for (const auto windows : {cuda::WindowUse::automatic, cuda::WindowUse::always}) {
    for (const std::string end : {"exit=0", "_exit=3", "die=9"}) {
      EXPECT_EQ(Supervised::apart([&] {
                  auto plan = plan_of("a", {"context", "count", end});
                  plan.windows = windows;
                  const auto outcome = run_confined(plan);
                  REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
                  REQUIRE_IN_CHILD(program.log().ends_with("count right\n"));
                  const bool shown = outcome->report->max_window_bytes != 0;
                  REQUIRE_IN_CHILD(shown == (windows == cuda::WindowUse::always));
                  return 0;
                }),
                0)
          << end;
    }
  }
  EXPECT_EQ(server.end(), 0) << "what they left is filled with zeros";
}

TEST_F(TenantPrograms, reach_neither_the_arena_by_the_driver_nor_the_lease_from_forks) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(Supervised::apart([&] {
              const auto outcome = run_confined(plan_of(
                  "a", {"context", "count", "look-into-arena", "allocate-in-child", "count"}));
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
              REQUIRE_IN_CHILD(program.log().ends_with("look 1\nchild 3\ncount right\n"));
              return 0;
            }),
            0)
      << program.log();
  EXPECT_EQ(server.end(), 0);
}

TEST_F(TenantPrograms, are_moved_by_their_server_alone) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(Supervised::apart([&] {
              auto plan = plan_of("a", {"context"});
              std::string said;
              plan.started = [&](const std::string&) {
                for (const pid_t process : cuda::family_since(0)) {
                  if (!cuda::control_value_of(process)) continue;
                  const auto moved = cuda::confine_again(process, {"5", "", 0, 0});
                  said = moved ? "moved" : moved.error().message;
                }
              };
              const auto outcome = run_confined(plan);
              REQUIRE_IN_CHILD(outcome.has_value() && outcome->holds());
              return said.find("demarc lease move") != std::string::npos ? 0 : complain(said);
            }),
            0);
  EXPECT_EQ(server.end(), 0);
}

// The server goes between two processes of a program: the second one finds no server to attach to.
TEST_F(TenantPrograms, are_ended_where_nobody_lends_them_memory) {
  auto server = std::make_unique<ServingProcess>(socket, false);
  ASSERT_TRUE(server->ready());
  EXPECT_EQ(Supervised::apart([&] {
              auto plan = plan_of("a", {"wait-for=" + socket + ".gone", "context", "count"});
              plan.started = [&](const std::string&) {
                ::kill(server->process(), SIGKILL);
                while (lease::LeaseClient::connect(socket)) ::usleep(1000);
                static_cast<void>(write_file(socket + ".gone", ""));
              };
              const auto outcome = run_confined(plan);
              REQUIRE_IN_CHILD(outcome.has_value() && !outcome->holds());
              REQUIRE_IN_CHILD(outcome->processes.stopped == 1);
              REQUIRE_IN_CHILD(program.log().find("context") == std::string::npos);
              return 0;
            }),
            0)
      << program.log();
}

// For a server that is killed programs run on: until they have ended no other divides the card.
TEST_F(TenantPrograms, are_waited_for_by_the_server_that_comes_after_theirs) {
  const std::string may_end = socket + ".end";
  auto server = std::make_unique<ServingProcess>(socket, false);
  ASSERT_TRUE(server->ready());
  const pid_t watcher = once_the_server_is_killed(*server, [&] {
    const bool refused = !lease::PacketListener::listen(socket, std::nullopt);
    return write_file(may_end, "") && refused ? 0 : 1;
  });
  EXPECT_EQ(Supervised::apart([&] {
              const auto outcome =
                  run_confined(plan_of("a", {"context", "count", "wait-for=" + may_end}));
              if (!outcome) return complain(outcome.error().message);
              return 0;
            }),
            0);
  int status = -1;
  ::waitpid(watcher, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(lease::PacketListener::listen(socket, std::nullopt));
}

TEST_F(TenantPrograms, are_not_started_without_a_lease) {
  const auto refusal = [&](cuda::ConfinePlan plan) {
    return Supervised::apart([&] {
      const auto outcome = run_confined(plan);
      if (outcome) return complain("it ran");
      std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
      return outcome.error().kind == ErrorKind::missing_capability ? 2
             : outcome.error().kind == ErrorKind::invalid_input    ? 1
                                                                   : 0;
    });
  };
  EXPECT_EQ(refusal(plan_of("a", {"context"})), 2) << "there is no server";
  auto with_tpcs = plan_of("a", {"context"});
  with_tpcs.choice.tpcs = "1";
  EXPECT_EQ(refusal(with_tpcs), 1);
  auto observed = plan_of("a", {"context"});
  observed.observe = true;
  EXPECT_EQ(refusal(observed), 1);
  auto far = plan_of("a", {"context"});
  far.socket = "/" + std::string(200, 's');
  EXPECT_EQ(refusal(far), 1);
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  EXPECT_EQ(refusal(plan_of("c", {"context"})), 1) << "no such tenant";
  EXPECT_EQ(program.log(), "") << "nothing was started";
  EXPECT_EQ(server.end(), 0);
}

}  // namespace
}  // namespace demarc::serve
