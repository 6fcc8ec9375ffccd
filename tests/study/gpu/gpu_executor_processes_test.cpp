// The executor on a real GPU where it divides the card between processes: what it starts, with
// which arguments and environment. The program that it starts notes them, and serves a planted
// lane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/study/gpu_executor.hpp"
#include "fake_card.hpp"

namespace demarc::study {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* own_uuid = "GPU-fafafafa-fafa-fafa-fafa-fafafafafafa";

class ExecutorProcesses : public testing::Test {
 protected:
  void SetUp() override {
    folder = test::fresh_folder("executor_processes");
    for (const char* name : {"bin", "tmp", "cache"}) fs::create_directories(folder / name);
    write_program(folder / "bin" / "nvidia-cuda-mps-control",
                  fmt::format("if [ \"$1\" = -d ]; then echo start; else cat; fi >> {}",
                              (folder / "mps").string()));
    // As `demarc exec` it announces what the test counts in, and becomes what follows `--`.
    write_program(
        folder / "program",
        fmt::format(R"sh(if [ "$1" = lease ]; then
  echo "$*" >> {0}/asked
  cat {0}/leases
  exit
fi
said="$CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $*"
[ -n "$DEMARC_STUDY" ] || said="unmarked $said"
[ -z "$CUDA_MPS_PIPE_DIRECTORY" ] || said="mps $said"
echo "$said" >> {0}/said
while [ $# -gt 0 ]; do
  if [ "$1" = --part ]; then
    echo "$DEMARC_STUDY $XDG_RUNTIME_DIR" >> {0}/runtime
    : > "$XDG_RUNTIME_DIR/server.sock"
  fi
  if [ "$1" = --announce ]; then echo "$(cat {0}/control)" > /proc/self/fd/"$2"; fi
  if [ "$1" = -- ]; then shift; exec "$@"; fi
  if [ "$1" = --worker ]; then exec {1} h100; fi
  shift
done)sh",
                    folder.string(),
                    (test::build_dir() / "tests" / "study" / "demarc_planted_worker").string()));
    path_before = ::getenv("PATH");
    ::setenv("PATH", ((folder / "bin").string() + ":" + path_before).c_str(), 1);
    ::setenv("TMPDIR", (folder / "tmp").c_str(), 1);
    ::setenv("DEMARC_CACHE", (folder / "cache").c_str(), 1);
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    test::configure(fake::small_gpu());
    options.program = (folder / "program").string();
    options.command_settle_seconds = 0;
  }
  void TearDown() override {
    for (const char* name : {"TMPDIR", "DEMARC_CACHE", "DEMARC_LIBCUDA"}) ::unsetenv(name);
    ::setenv("PATH", path_before.c_str(), 1);
    test::configure(fake::small_gpu());
  }
  static void write_program(const fs::path& path, const std::string& lines) {
    ASSERT_TRUE(write_file(path.string(), "#!/bin/sh\n" + lines + "\n"));
    fs::permissions(path, fs::perms::owner_all);
  }
  // An executor that is about to run a study with these aggressors.
  [[nodiscard]] std::unique_ptr<Executor> prepared(const std::vector<Workload>& aggressors) const {
    auto executor = make_gpu_executor(options).value();
    Plan plan;
    plan.aggressors = aggressors;
    EXPECT_TRUE(executor->prepare(plan, {}, {}));
    return executor;
  }
  // What the program was started with so far, in the order of its parts; then it is forgotten.
  std::vector<std::string> said() {
    std::istringstream text(read_file((folder / "said").string()).value_or(""));
    fs::remove(folder / "said");
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  static std::unique_ptr<Stage> divide(Executor& executor, std::string_view mode,
                                       std::uint32_t parts = 2) {
    auto stage = executor.divide(parse_modes(mode)->at(0), parts);
    EXPECT_TRUE(stage) << stage.error().message;
    return stage ? std::move(*stage) : nullptr;
  }
  // Until a worker has answered, it may not have said what it was started with.
  static void answer(Stage& stage) {
    for (std::uint32_t part = 0; part < stage.lanes(); ++part) {
      ASSERT_TRUE(stage.lane(part).load({"mm", "mm"}));
    }
  }
  [[nodiscard]] std::size_t folders() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder / "tmp")) {
      if (entry.path().filename().string().starts_with("demarc-study-")) ++count;
    }
    return count;
  }

  fs::path folder;
  std::string path_before;
  GpuExecutorOptions options;
};

TEST_F(ExecutorProcesses, time_slices_are_workers_of_the_study_on_one_card_without_a_daemon) {
  options.clock = Clock::events;
  const auto executor = prepared({});
  EXPECT_EQ(folders(), 0U) << "nothing is needed yet";
  {
    const auto stage = divide(*executor, "timeslice");
    ASSERT_NE(stage, nullptr);
    EXPECT_EQ(stage->lanes(), 2U);
    EXPECT_EQ(stage->account(),
              "2 processes that take turns; each part has a memory synchronisation domain");
    answer(*stage);
    const std::string worker =
        std::string(own_uuid) + "  isolate --device cuda:0 --worker --clock events --sync-domain ";
    EXPECT_THAT(said(), ElementsAre(worker + "0", worker + "1"));
    EXPECT_EQ(folders(), 1U);
    const auto other = divide(*executor, "timeslice");
    EXPECT_EQ(folders(), 1U) << "one folder for all";
    answer(*other);
    answer(*stage);
    said();
  }
  EXPECT_FALSE(fs::exists(folder / "mps"));
}

TEST_F(ExecutorProcesses,
       under_mps_workers_are_clients_with_their_share_of_a_daemon_that_ends_with_them) {
  const auto executor = prepared({});
  {
    const auto stage = divide(*executor, "mps");
    ASSERT_NE(stage, nullptr);
    EXPECT_EQ(
        stage->account(),
        "2 processes; part 1/2: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50; part 2/2: "
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50; each part has a memory synchronisation domain");
    answer(*stage);
    const std::string worker = "mps " + std::string(own_uuid) +
                               " 50 isolate --device cuda:0 --worker --clock gpu --sync-domain ";
    EXPECT_THAT(said(), ElementsAre(worker + "0", worker + "1"));
    EXPECT_EQ(read_file((folder / "mps").string()).value(), "start\n");
  }
  EXPECT_EQ(read_file((folder / "mps").string()).value(), "start\nquit\n");
}

// Victims that were run alone on the whole card would take memory from the processes.
TEST_F(ExecutorProcesses, parts_that_are_processes_have_the_memory_of_the_workloads_of_this_one) {
  const auto executor = prepared({});
  const auto allocated = test::fake_symbol<std::uint64_t()>("fake_allocated_bytes");
  const std::uint64_t at_first = allocated();
  ASSERT_TRUE(executor->whole().value()->lane(0).load({"va", "va@n=4096"}));
  EXPECT_GT(allocated(), at_first);
  const auto stage = divide(*executor, "timeslice");
  answer(*stage);
  EXPECT_EQ(allocated(), at_first);
}

TEST_F(ExecutorProcesses, parts_without_domains_of_their_own_get_none) {
  fake::FakeConfig old = fake::small_gpu();
  old.sync_domains = 1;
  test::configure(old);
  const auto executor = prepared({});
  const auto stage = divide(*executor, "timeslice");
  ASSERT_NE(stage, nullptr);
  EXPECT_THAT(stage->account(), HasSubstr("; Fake GPU has no memory synchronisation domains"));
  answer(*stage);
  EXPECT_THAT(said(), testing::Each(Not(HasSubstr("--sync-domain"))));
}

TEST_F(ExecutorProcesses, across_processes_there_are_neither_colours_nor_changed_launches) {
  const auto executor = prepared({{"busy", "cmd:sleep 1000"}});
  for (const Mode& mode : {Mode{partition::Mode::mps, true, Launches::separate},
                           Mode{partition::Mode::mps, false, Launches::graph},
                           Mode{partition::Mode::mask, true, Launches::separate}}) {
    const auto refused = executor->divide(mode, 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message,
                HasSubstr("parts that are processes support neither colours nor changed launches"));
  }
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(ExecutorProcesses, beside_commands_masks_confine_workers_and_commands_of_each_part) {
  const auto executor = prepared({{"mm", "mm"}, {"busy", "cmd:sleep 1000"}});
  EXPECT_EQ(folders(), 1U) << "commands carry the study's mark in every mode";
  auto control = cuda::Control::create().value();
  ASSERT_TRUE(write_file((folder / "control").string(), control.value()));
  const auto stage = divide(*executor, "mask");
  ASSERT_NE(stage, nullptr);
  EXPECT_EQ(stage->account(),
            "2 processes, each confined by demarc exec; part 1/2: TPCs 0,2-3,5-6,8-9; part 2/2: "
            "TPCs 1,4,7,10-11; each part has a memory synchronisation domain");
  answer(*stage);
  const std::string exec = std::string(own_uuid) + "  exec --device cuda:0 --tpcs ";
  const std::string isolate = " isolate --device cuda:0 --worker --clock gpu --sync-domain ";
  const std::string inner = "mps " + std::string(own_uuid) + " " + isolate;
  const std::string program = (folder / "program").string();
  EXPECT_THAT(said(),
              ElementsAre("mps " + exec + "0,2-3,5-6,8-9 --sync-domain 0 --allow-overlap -- " +
                              program + isolate + "0",
                          "mps " + exec + "1,4,7,10-11 --sync-domain 1 --allow-overlap -- " +
                              program + isolate + "1",
                          inner + "0", inner + "1"));
  Lane& lane = stage->lane(1);
  control.block().counters.masked[0] = 1;
  ASSERT_TRUE(lane.load({"busy", "cmd:sleep 1000"}));
  const auto started = lane.start();
  ASSERT_TRUE(started) << started.error().message;
  const auto commands = said();
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_THAT(commands[0],
              HasSubstr("mps " + exec + "1,4,7,10-11 --sync-domain 1 --allow-overlap --announce "));
  EXPECT_THAT(commands[0], HasSubstr(" -- /bin/sh -c sleep 1000"));
  EXPECT_TRUE(lane.stop());
  EXPECT_THAT(read_file((folder / "mps").string()).value(), HasSubstr("start\nget_server_list\n"));
}

TEST_F(ExecutorProcesses, commands_of_modes_that_confine_nothing_are_observed) {
  const auto executor = prepared({{"busy", "cmd:sleep 1000"}});
  auto control = cuda::Control::create().value();
  ASSERT_TRUE(write_file((folder / "control").string(), control.value()));
  control.block().counters.masked[0] = 1;
  for (const char* mode : {"none", "timeslice"}) {
    SCOPED_TRACE(mode);
    const auto stage = divide(*executor, mode);
    ASSERT_NE(stage, nullptr);
    said();
    Lane& lane = stage->lane(1);
    ASSERT_TRUE(lane.load({"busy", "cmd:sleep 1000"}));
    const auto started = lane.start();
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_THAT(said(),
                testing::Contains(testing::AllOf(
                    HasSubstr(std::string(own_uuid) +
                              "  exec --device cuda:0 --observe --sync-domain 1 --announce "),
                    HasSubstr(" -- /bin/sh -c sleep 1000"), Not(HasSubstr("unmarked")))));
    EXPECT_TRUE(lane.stop());
    EXPECT_THAT(stage->account(), HasSubstr("; each part has a memory synchronisation domain"));
    EXPECT_EQ(
        stage->account().starts_with("2 streams of one process, and commands that take turns"),
        mode == std::string("none"));
  }
}

TEST_F(ExecutorProcesses, a_command_alone_on_the_whole_card_is_observed_too) {
  const auto executor = prepared({{"busy", "cmd:sleep 1000"}});
  auto control = cuda::Control::create().value();
  ASSERT_TRUE(write_file((folder / "control").string(), control.value()));
  control.block().counters.masked[0] = 1;
  const auto stage = executor->whole().value();
  Lane& lane = stage->lane(0);
  ASSERT_TRUE(lane.load({"busy", "cmd:exit 0"}));
  const auto times = lane.sample(1, 1);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_THAT(said(), ElementsAre(testing::AllOf(
                          testing::StartsWith(std::string(own_uuid) +
                                              "  exec --device cuda:0 --observe --sync-domain none "
                                              "--announce "),
                          testing::EndsWith(" -- /bin/sh -c exit 0"))));
}

// A command that has to be killed cannot say whether it stayed where it belongs.
TEST_F(ExecutorProcesses, a_command_that_is_confined_must_end_when_it_is_told) {
  options.command_leave_seconds = 0.05;
  const std::string program = read_file((folder / "program").string()).value();
  write_program(folder / "program", "trap '' TERM\n" + program);
  const auto executor = prepared({{"busy", "cmd:sleep 1000"}});
  auto control = cuda::Control::create().value();
  ASSERT_TRUE(write_file((folder / "control").string(), control.value()));
  control.block().counters.masked[0] = 1;
  for (const char* mode : {"none", "mask"}) {
    const auto stage = divide(*executor, mode);
    ASSERT_NE(stage, nullptr);
    Lane& lane = stage->lane(1);
    ASSERT_TRUE(lane.load({"busy", "cmd:sleep 1000"}));
    const auto started = lane.start();
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_EQ(lane.stop().has_value(), mode == std::string_view("none"));
  }
}

constexpr const char* two_leases = R"({"schema": "demarc.lease/1", "mps": "on", "tenants": [
  {"name": "part-1-of-2", "tpcs": "0-5", "colors": "0", "sync_domain": 1, "bytes": 4194304},
  {"name": "part-2-of-2", "tpcs": "6-11", "colors": "1", "sync_domain": null, "bytes": 2097152}]})";

TEST_F(ExecutorProcesses, tenants_are_programs_under_exec_part_with_a_server_of_the_study) {
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  ASSERT_TRUE(write_file((folder / "leases").string(), two_leases));
  options.arena_pages = 32;
  options.description = "h100-sxm";
  const auto executor = prepared({{"busy", "cmd:sleep 1000"}});
  auto control = cuda::Control::create().value();
  ASSERT_TRUE(write_file((folder / "control").string(), control.value()));
  control.block().counters.masked[0] = 1;
  const auto leases = [this] {
    std::string found;
    for (const auto& entry : fs::directory_iterator(folder / "tmp")) {
      if (fs::exists(entry.path() / "leases")) found = (entry.path() / "leases").string();
    }
    return found;
  };
  {
    const auto stage = divide(*executor, "tenant");
    ::unsetenv("XDG_RUNTIME_DIR");
    ASSERT_NE(stage, nullptr);
    EXPECT_EQ(stage->account(),
              "2 leases of demarc exec --part, which run at the same time by MPS; part-1-of-2: "
              "TPCs 0-5, colours 0, 4 MiB, memory synchronisation domain 1; part-2-of-2: TPCs "
              "6-11, colours 1, 2 MiB, no memory synchronisation domain of its own");
    EXPECT_EQ(read_file((folder / "asked").string()).value(),
              "lease list --socket " + leases() + "/server.sock --json\n");
    const std::string both = leases() + " " + leases() + "\n";
    EXPECT_EQ(read_file((folder / "runtime").string()).value(), both + both);
    const std::string exec = std::string(own_uuid) + "  exec --device cuda:0 --part ";
    const std::string memory = " --memory 64MiB --description h100-sxm ";
    const std::string isolate = " isolate --device cuda:0 --worker --clock gpu";
    const std::string worker = "-- " + (folder / "program").string() + isolate;
    EXPECT_THAT(said(), ElementsAre(exec + "1/2" + memory + worker, exec + "2/2" + memory + worker,
                                    std::string(own_uuid) + " " + isolate,
                                    std::string(own_uuid) + " " + isolate));
    Lane& lane = stage->lane(1);
    ASSERT_TRUE(lane.load({"busy", "cmd:sleep 1000"}));
    const auto started = lane.start();
    ASSERT_TRUE(started) << started.error().message;
    const auto commands = said();
    ASSERT_EQ(commands.size(), 1U);
    EXPECT_THAT(commands[0], testing::StartsWith(exec + "2/2" + memory + "--announce "));
    EXPECT_THAT(commands[0],
                testing::EndsWith(" -- env XDG_RUNTIME_DIR=/run/user/7 /bin/sh -c sleep 1000"));
    EXPECT_TRUE(lane.stop());
    EXPECT_FALSE(fs::exists(folder / "mps")) << "the server has its own";
  }
  EXPECT_EQ(leases(), "");
}

TEST_F(ExecutorProcesses, tenants_have_what_exec_gives_where_nothing_was_chosen) {
  ::unsetenv("XDG_RUNTIME_DIR");
  // A list of many bytes.
  std::string off = two_leases;
  off.insert(1, "\"card\": \"" + std::string(9000, 'x') + "\", ");
  off.replace(off.find("\"on\""), 4, "\"off\"");
  ASSERT_TRUE(write_file((folder / "leases").string(), off));
  options.command_leave_seconds = 0.05;
  const auto before = fs::current_path();
  fs::current_path(folder);
  options.description = "leases";  // a file, which the server reads in any folder
  write_program(folder / "program",
                "trap '' TERM\n" + read_file((folder / "program").string()).value());
  const auto executor = prepared({});
  auto control = cuda::Control::create().value();
  ASSERT_TRUE(write_file((folder / "control").string(), control.value()));
  control.block().counters.masked[0] = 1;
  const auto stage = divide(*executor, "tenant");
  ASSERT_NE(stage, nullptr);
  EXPECT_THAT(stage->account(), testing::StartsWith("2 leases of demarc exec --part, without MPS, "
                                                    "so they take turns; part-1-of-2: "));
  fs::current_path(before);
  EXPECT_THAT(said(), testing::Contains(HasSubstr("exec --device cuda:0 --part 1/2 --description " +
                                                  (folder / "leases").string() + " -- ")));
  Lane& lane = stage->lane(0);
  ASSERT_TRUE(lane.load({"busy", "cmd:sleep 1000"}));
  ASSERT_TRUE(lane.start());
  EXPECT_THAT(said(), testing::Contains(HasSubstr(" -- env -u XDG_RUNTIME_DIR /bin/sh -c ")));
  EXPECT_FALSE(lane.stop()) << "what had to be killed could not say whether it stayed in its part";
  const auto room = executor->bytes_of_part(parse_modes("tenant")->at(0), 2);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(room.error().message, HasSubstr("tenant: what a part has is known once"));
}

TEST_F(ExecutorProcesses, tenants_whose_server_does_not_say_what_they_have_are_not_used) {
  const auto executor = prepared({});
  const auto refused = [&](const std::string& why) {
    const auto stage = executor->divide(parse_modes("tenant")->at(0), 2);
    ASSERT_FALSE(stage) << why;
    EXPECT_THAT(stage.error().message, HasSubstr(why));
  };
  refused("demarc lease list, which says what the parts have, ended with exit code 1");
  for (const char* text : {"{", "{}", R"({"mps": "on", "tenants": [{}]})"}) {
    ASSERT_TRUE(write_file((folder / "leases").string(), text));
    refused("demarc lease list --json");
  }
  std::string program = read_file((folder / "program").string()).value();
  const std::string_view makes_socket = " > \"$XDG_RUNTIME_DIR/server.sock\"";
  program.erase(program.find(makes_socket), makes_socket.size());
  write_program(folder / "program", program);
  fs::remove(folder / "leases");
  refused("demarc exec --part has left no socket in ");
}

TEST_F(ExecutorProcesses, a_worker_that_does_not_start_and_a_daemon_that_does_not_are_errors) {
  const auto executor = prepared({});
  options.program = "/no/such/program";
  const auto wrong = prepared({});
  const auto stage = wrong->divide(parse_modes("mps")->at(0), 2);
  EXPECT_FALSE(stage && (*stage)->lane(0).load({"mm", "mm"}));
  fs::remove(folder / "mps");
  write_program(folder / "bin" / "nvidia-cuda-mps-control", "exit 1");
  const auto refused = executor->divide(parse_modes("mps")->at(0), 2);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("nvidia-cuda-mps-control -d' does not start"));
}

}  // namespace
}  // namespace demarc::study
