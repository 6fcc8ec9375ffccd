// demarc isolate where it divides the GPU between processes, against the stand-in for libcuda and a
// stand-in for the control program of MPS.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/process.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* tick_launch = R"({"schema": "demarc.launch/1", "name": "tick",
  "ptx": "tick.ptx", "buffers": [],
  "launches": [{"kernel": "tick", "grid": 1, "block": 32, "args": ["i32:5"]}]})";
constexpr const char* tick_ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry tick(.param .u32 p) { ret; }
)";

class IsolateProcesses : public testing::Test {
 protected:
  void SetUp() override {
    folder = fresh_folder("isolate_processes");
    for (const char* name : {"bin", "tmp", "cache"}) fs::create_directories(folder / name);
    const fs::path control = folder / "bin" / "nvidia-cuda-mps-control";
    ASSERT_TRUE(
        write_file(control.string(), fmt::format("#!/bin/sh\nif [ \"$1\" = -d ]; then echo \"start "
                                                 "$CUDA_VISIBLE_DEVICES\"; else cat; fi >> {}\n",
                                                 (folder / "mps").string())));
    fs::permissions(control, fs::perms::owner_all);
    ASSERT_TRUE(write_file((folder / "tick.json").string(), tick_launch));
    ASSERT_TRUE(write_file((folder / "tick.ptx").string(), tick_ptx));
    path_before = ::getenv("PATH");
    set("PATH", (folder / "bin").string() + ":" + path_before);
    set("DEMARC_LIBCUDA", test::fake_libcuda().string());
    set("TMPDIR", (folder / "tmp").string());
    set("DEMARC_CACHE", (folder / "cache").string());
  }
  void TearDown() override {
    for (const char* name : {"TMPDIR", "DEMARC_CACHE", "DEMARC_LIBCUDA", "DEMARC_FAKE_DEVICES"}) {
      ::unsetenv(name);
    }
    set("PATH", path_before);
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

  [[nodiscard]] std::string tick() const { return "launch:" + (folder / "tick.json").string(); }
  [[nodiscard]] std::vector<std::string> study(const std::string& modes,
                                               const std::vector<std::string>& more) const {
    std::vector<std::string> out{
        "isolate", "--clock",      "events", "--modes",       modes, "--victims",
        tick(),    "--aggressors", tick(),   "--rounds",      "1",   "--warm-up",
        "0",       "--samples",    "2",      "--max-samples", "2"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  // A command that launches kernels without end.
  [[nodiscard]] std::string busy() const {
    return fmt::format(
        R"((printf '{{"do":"load","name":"tick","spec":"{}"}}\n{{"do":"start"}}\n'; exec sleep 1000) )"
        "| {} isolate --clock events --worker",
        tick(), (build_dir() / "demarc").string());
  }
  // A command that launches some kernels and ends.
  [[nodiscard]] std::string short_run() const {
    return fmt::format(
        R"(printf '{{"do":"load","name":"tick","spec":"{}"}}\n)"
        R"({{"do":"sample","count":2,"longest_seconds":9}}\n' | {} isolate --clock events --worker)",
        tick(), (build_dir() / "demarc").string());
  }
  [[nodiscard]] std::vector<std::string> left_behind() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder / "tmp")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("demarc-study-")) names.push_back(name);
    }
    return names;
  }
  [[nodiscard]] std::string told() const {
    return read_file((folder / "mps").string()).value_or("");
  }

  fs::path folder;
  std::string path_before;
};

// Without MPS, of which the stand-in for libcuda makes no process a client.
class IsolateTenants : public IsolateProcesses {
 protected:
  void SetUp() override {
    IsolateProcesses::SetUp();
    fs::remove(folder / "bin" / "nvidia-cuda-mps-control");
  }
  // Another study, whose card has colours.
  [[nodiscard]] std::vector<std::string> study(const std::string& modes,
                                               const std::vector<std::string>& more) const {
    std::vector<std::string> options{"--description", "h100-sxm", "--memory-gib", "0.25",
                                     "--settle",      "0",        "--longest",    "100"};
    options.insert(options.end(), more.begin(), more.end());
    return IsolateProcesses::study(modes, options);
  }
};

TEST_F(IsolateProcesses, commands_are_confined_counted_and_leave_nothing_behind) {
  const std::string json = (folder / "x.json").string();
  const Outcome outcome = run_demarc(study(
      "none,timeslice,mps,mask", {"--aggressor-cmd", busy(), "--settle", "0", "--json=" + json}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const Json result = Json::parse(read_file(json).value());
  EXPECT_EQ(result["cells"].size(), 12U) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("mask (2 processes, each confined by demarc exec; part "));
  EXPECT_THAT(outcome.out, HasSubstr("; each part has a memory synchronisation domain"));
  EXPECT_THAT(left_behind(), IsEmpty());
  // Asked for its clients before the command is ended; it has none here.
  const std::string daemon =
      "start GPU-fafafafa-fafa-fafa-fafa-fafafafafafa\nget_server_list\nquit\n";
  EXPECT_EQ(told(), daemon + daemon);  // mps and mask
}

// The default victims and aggressors are left out.
TEST_F(IsolateProcesses, a_command_may_be_the_victim_in_every_mode_that_keeps_it_in_its_part) {
  const std::string json = (folder / "x.json").string();
  const std::string page = (folder / "x.html").string();
  std::vector<std::string> arguments = study(
      "none,mps,mask", {"--victim-cmd", short_run(), "--aggressor-cmd", busy(), "--settle", "0"});
  for (const char* list : {"--victims", "--aggressors"}) {
    const auto given = std::find(arguments.begin(), arguments.end(), list);
    arguments.erase(given, given + 2);
  }
  arguments.insert(arguments.end(), {"--longest", "100", "--json=" + json, "--html", page});
  const Outcome outcome = run_demarc(arguments);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const Json result = Json::parse(read_file(json).value());
  ASSERT_EQ(result["plan"]["victims"].size(), 1U);
  EXPECT_EQ(result["plan"]["victims"][0]["spec"], "cmd:" + short_run());
  ASSERT_EQ(result["plan"]["aggressors"].size(), 1U);
  ASSERT_EQ(result["cells"].size(), 6U);
  for (const Json& cell : result["cells"]) {
    EXPECT_EQ(cell["samples_ns"].size(), 2U) << cell.dump();
    EXPECT_EQ(cell["run_samples_ns"].size(), 0U);
    EXPECT_GT(cell["times_ns"]["best"], 0);
  }
  const std::string sentence =
      "A time of a command is that of a run, from its first kernel launch to its end.";
  EXPECT_THAT(outcome.out, HasSubstr(sentence + "\n"));
  EXPECT_THAT(read_file(page).value(), HasSubstr(sentence));
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(IsolateTenants, tenants_run_kernels_and_commands_as_victims_and_as_aggressors) {
  const std::string json = (folder / "x.json").string();
  const auto arguments =
      study("none,tenant", {"--victim-cmd", short_run(), "--aggressor-cmd", busy()});
  const std::string page = (folder / "x.html").string();
  const std::string csv = (folder / "x.csv").string();
  auto first = arguments;
  first.insert(first.end(), {"--json=" + json, "--html", page, "--csv", csv});
  const Outcome outcome = run_demarc(first);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("tenant (2 leases of demarc exec --part, "));
  EXPECT_THAT(outcome.out,
              HasSubstr("; part-1-of-2: TPCs 0,2-3,5-6,8-9, colours 0, 124 MiB, memory "
                        "synchronisation domain 1; part-2-of-2: TPCs "));
  const std::string text = read_file(json).value();
  const Json result = Json::parse(text);
  ASSERT_EQ(result["cells"].size(), 12U);
  for (const Json& cell : result["cells"]) EXPECT_EQ(cell["samples_ns"].size(), 2U) << cell.dump();
  EXPECT_EQ(result["modes"][1]["victims"].size(), 2U);
  EXPECT_THAT(result["modes"][1].dump(), HasSubstr("leases of demarc exec --part"));
  EXPECT_THAT(read_file(page).value(), HasSubstr("processes under demarc exec --part"));
  EXPECT_THAT(read_file(csv).value(), HasSubstr("\ntenant,tick,tick,2,"));
  EXPECT_THAT(left_behind(), IsEmpty());

  auto again = arguments;
  again.insert(again.end(), {"--resume", json});
  const Outcome resumed = run_demarc(again);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const Json kept = Json::parse(read_file(json).value());
  for (std::size_t i = 0; i < kept["cells"].size(); ++i) {
    EXPECT_EQ(kept["cells"][i]["samples_ns"], result["cells"][i]["samples_ns"]) << "it ran again";
  }
  auto compared = arguments;
  compared.insert(compared.end(), {"--baseline", json, "--verbose"});
  EXPECT_THAT(run_demarc(compared).out, testing::ContainsRegex("\n  tenant +tick "));
}

TEST_F(IsolateTenants, a_command_that_fails_as_a_tenant_is_named_in_its_cells_alone) {
  const std::string command = "[ -z \"$DEMARC_TENANT\" ] || exit 5; " + short_run();
  const Outcome outcome = run_demarc(study("tenant,none", {"--victim-cmd", command}));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("the program's own exit code was 5"));
  EXPECT_THAT(outcome.err, HasSubstr("2 of the study's cells and modes ended with an error"));
  EXPECT_THAT(outcome.out, HasSubstr("\n  tick ")) << "the other victim has its row";
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(IsolateTenants, tenants_that_the_card_cannot_have_leave_out_their_mode_with_the_reason) {
  const Outcome outcome = run_demarc(study("none,tenant", {"--parts", "4"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\ntenant: not run: worker "));
  EXPECT_THAT(outcome.out, HasSubstr("the server that divides the card has ended: "));
  EXPECT_THAT(left_behind(), IsEmpty());
  const Outcome simulated = run_demarc({"isolate", "--device", "sim:gtx1080", "--modes", "tenant",
                                        "--victims", "mm", "--aggressors", "mm"});
  EXPECT_EQ(simulated.exit_code, 2);
  EXPECT_THAT(simulated.err, HasSubstr("tenant"));
}

TEST_F(IsolateProcesses, a_victim_command_that_fails_alone_ends_the_study) {
  const Outcome outcome = run_demarc({"isolate", "--victim-cmd", "echo no model >&2; exit 4",
                                      "--aggressors", tick(), "--modes", "none"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("no model"));
  EXPECT_THAT(outcome.err, HasSubstr("the program's own exit code was 4"));
}

TEST_F(IsolateProcesses, commands_are_refused_where_kernels_alone_run) {
  for (const char* list : {"--victims", "--aggressors"}) {
    const Outcome outcome =
        run_demarc({"isolate", "--device", "sim:gtx1080", list, "cmd:make all"});
    EXPECT_EQ(outcome.exit_code, 1) << list;
    EXPECT_THAT(outcome.err, HasSubstr("--device sim:gtx1080 runs kernels, not the command 'make "
                                       "all': use cuda:N"));
  }
  const Outcome attack = run_demarc({"attack", "--mode", "mask", "--victims", "cmd:make all"});
  EXPECT_EQ(attack.exit_code, 1);
  EXPECT_THAT(attack.err, HasSubstr("--victims: 'make all' is a command, and an attack times "
                                    "kernels alone"));
}

// The command's parent is the demarc exec that it runs under.
TEST_F(IsolateProcesses, commands_have_the_domain_of_their_part) {
  const std::string seen = (folder / "seen").string();
  const std::string command =
      fmt::format("tr '\\0' ' ' < /proc/$PPID/cmdline >> {}; echo >> {}; {}", seen, seen, busy());
  const Outcome outcome = run_demarc(study("none,timeslice,mask,none+common-domain",
                                           {"--aggressor-cmd", command, "--settle", "0"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const std::string all = read_file(seen).value();
  EXPECT_THAT(all, HasSubstr("exec --device cuda:0 --observe --sync-domain 1 "));
  EXPECT_THAT(all, HasSubstr("exec --device cuda:0 --observe --sync-domain none "));
  EXPECT_THAT(all, testing::ContainsRegex("exec --device cuda:0 --tpcs [0-9,-]+ --sync-domain 1 "));
}

TEST_F(IsolateProcesses, a_command_that_fails_is_an_error_of_its_cells_and_exit_code_3) {
  const Outcome outcome = run_demarc(study(
      "none,timeslice", {"--aggressor-cmd", "echo out of memory >&2; exit 5", "--settle", "0"}));
  EXPECT_EQ(outcome.exit_code, 3);
  for (const char* mode : {"none", "timeslice"}) {
    EXPECT_THAT(outcome.out,
                HasSubstr(fmt::format("ERROR: {}: tick next to echo out of memory >&2; exit 5: the "
                                      "command 'echo out of memory >&2; exit 5' ended with exit "
                                      "code 3; the last of its output: ",
                                      mode)));
  }
  // In front of it may stand that another test has the domain, too.
  EXPECT_THAT(outcome.out, HasSubstr("out of memory | demarc exec: no process of the program"));
  EXPECT_THAT(outcome.out, HasSubstr("the program's own exit code was 5"));
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(IsolateProcesses, a_mode_that_cannot_confine_a_command_is_refused_before_anything_runs) {
  const Outcome outcome = run_demarc(study("none,green", {"--aggressor-cmd", busy()}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--modes: 'green' cannot keep the command"));
  EXPECT_EQ(outcome.out, "");
  const Outcome priority =
      run_demarc(study("mask", {"--aggressor-cmd", busy(), "--victim-priority", "-1"}));
  EXPECT_EQ(priority.exit_code, 1);
  EXPECT_THAT(priority.err, HasSubstr("--victim-priority does not support the command"));
  const Outcome requests =
      run_demarc({"isolate", "--modes", "none", "--victim-cmd", "true", "--clock", "requests"});
  EXPECT_EQ(requests.exit_code, 1);
  EXPECT_THAT(requests.err, HasSubstr("--clock requests does not support the command 'true': a "
                                      "command's runs follow each other"));
  for (const char* wrong : {"-1", "nan", "soon"}) {
    EXPECT_EQ(run_demarc(study("none", {"--aggressor-cmd", "true", "--settle", wrong})).exit_code,
              1)
        << wrong;
  }
}

TEST_F(IsolateProcesses, under_mps_the_second_card_is_the_only_one_and_the_clients_first) {
  set("DEMARC_FAKE_DEVICES", "2");
  const Outcome outcome = run_demarc(study("mps,timeslice", {"--device", "cuda:1"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(told(), "start GPU-f9f9f9f9-f9f9-f9f9-f9f9-f9f9f9f9f9f9\nquit\n");
  EXPECT_THAT(outcome.out, HasSubstr("(cuda:1"));
  EXPECT_EQ(run_demarc(study("mps", {"--device", "cuda:2"})).exit_code, 2);
}

TEST_F(IsolateProcesses, what_a_killed_study_leaves_is_taken_away_by_the_next) {
  const std::string seen = (folder / "seen").string();
  auto argv = study("mps", {"--aggressor-cmd", ": > " + seen + "; " + busy(), "--settle", "1000"});
  argv.insert(argv.begin(), (build_dir() / "demarc").string());
  ProcessOptions options;
  options.error = ChildStream::null;
  const auto run_until_seen = [&] {
    fs::remove(seen);
    auto process = Process::spawn(argv, options);
    while (process && process->running() && !fs::exists(seen)) std::this_thread::yield();
    return process;
  };
  auto interrupted = run_until_seen();
  ASSERT_TRUE(interrupted);
  interrupted->signal(SIGHUP);
  EXPECT_EQ(interrupted->wait(-1)->signal, SIGHUP);
  EXPECT_THAT(left_behind(), IsEmpty());
  EXPECT_THAT(told(), HasSubstr("quit\n"));

  fs::remove(folder / "mps");
  auto killed = run_until_seen();
  killed->signal(SIGKILL);
  killed->wait(-1);
  ASSERT_EQ(left_behind().size(), 1U);
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  ::utimensat(AT_FDCWD, (folder / "tmp" / left_behind().front()).c_str(), long_ago, 0);
  EXPECT_EQ(run_demarc(study("timeslice", {})).exit_code, 0);
  EXPECT_THAT(left_behind(), IsEmpty());
  EXPECT_THAT(told(), HasSubstr("quit\n"));
}

}  // namespace
}  // namespace demarc::test
