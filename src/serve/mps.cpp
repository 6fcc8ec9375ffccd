// Starts and ends the daemon of MPS by its own program, and by force where that does not help.
#include "mps.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/base/process.hpp"
#include "demarc/card/mps_clients.hpp"
#include "mps_processes.hpp"

namespace demarc::serve {
namespace {

namespace fs = std::filesystem;
using cuda::mps_control;

constexpr double start_seconds = 20;
constexpr double kill_seconds = 0.5;

Environment environment_of(const std::string& folder) {
  return {{"CUDA_MPS_PIPE_DIRECTORY", folder}, {"CUDA_MPS_LOG_DIRECTORY", folder}};
}

// Until the daemon of the folder, and the folder, are gone. True: it had to be killed.
bool end_daemon(const std::string& folder, double end_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(end_seconds);
  const auto asked = cuda::ask_mps_daemon(environment_of(folder), "quit", {end_seconds});
  // It answers first and ends then.
  while (asked && Clock::now() < until && !mps_processes_of(folder).empty()) ::usleep(10'000);
  const bool killed = kill_mps(folder, kill_seconds);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return killed;
}

// What it says goes into a file, which it may have open as long as it lives.
Result<void> start_daemon(const std::string& folder, const std::string& card) {
  if (find_program(mps_control).empty()) {
    return missing_capability("mps: '{}' is not in PATH; the NVIDIA driver brings it", mps_control);
  }
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return missing_capability("mps: cannot make {}: {}", folder, failed.message());
  ProcessOptions options;
  options.own_group = false;
  options.set = environment_of(folder);
  options.set.emplace_back("CUDA_VISIBLE_DEVICES", card);
  const auto ended = run_process(
      {"/bin/sh", "-c", R"(exec "$0" -d >"$CUDA_MPS_LOG_DIRECTORY/start.log" 2>&1)", mps_control},
      options, start_seconds);
  if (ended && ended->exit_code == 0) return {};
  const std::string said = read_file(folder + "/start.log").value_or("");
  return missing_capability("mps: '{} -d' does not start: {}{}{}", mps_control,
                            ended ? ended->words() : ended.error().message,
                            said.empty() ? "" : ": ",
                            said.substr(0, said.find_last_not_of('\n') + 1));
}

void name_others(const MpsPlan& plan) {
  const std::vector<MpsProcess> all = mps_processes();
  std::set<std::string> folders;
  for (const MpsProcess& one : all) folders.insert(one.folder);
  folders.erase(plan.folder);
  for (const std::string& folder : folders) {
    plan.tell(
        fmt::format("mps: another daemon runs, process {} with {}: if it uses this card, its "
                    "programs and those "
                    "of the tenants take turns; end it (echo quit | CUDA_MPS_PIPE_DIRECTORY={} {})",
                    mps_processes_of(folder, all).front(), folder, folder, mps_control));
  }
}

// pidfd of the daemon; -1 where /proc does not show it.
OwnedFile watch(const std::string& folder) {
  const auto found = mps_processes_of(folder);
  if (found.empty()) return {};
  return OwnedFile(static_cast<int>(::syscall(SYS_pidfd_open, found.front(), 0)));
}

}  // namespace

Result<std::unique_ptr<Mps>> Mps::start(const MpsPlan& plan) {
  if (plan.use == MpsUse::off) return std::unique_ptr<Mps>(new Mps(plan, ""));
  if (plan.use == MpsUse::automatic && find_program(mps_control).empty()) {
    plan.tell(fmt::format(
        "without MPS: '{}' is not in PATH. Programs of the tenants take turns on the card instead "
        "of running side by side; mps = \"on\" refuses that, and \"off\" says that it is meant",
        mps_control));
    return std::unique_ptr<Mps>(new Mps(plan, ""));
  }
  // The folder is this socket's, whose lock this server has: who left it has ended.
  if (fs::exists(plan.folder) && end_daemon(plan.folder, plan.end_seconds)) {
    plan.tell("mps: the daemon of a server that was killed still ran, and was killed");
  }
  name_others(plan);
  std::unique_ptr<Mps> mps(new Mps(plan, plan.folder));  // ends what it started halfway, too
  DEMARC_CHECK(start_daemon(plan.folder, plan.card));
  mps->process_ = watch(plan.folder);
  return mps;
}

void Mps::hurry(double seconds) {
  until_ = Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::vector<Result<void>> Mps::end_work_of(const std::vector<WorkTarget>& targets) const {
  if (folder_.empty()) return std::vector<Result<void>>(targets.size());
  const cuda::MpsPatience patience{20, [this] { return Clock::now() >= until_.load(); }};
  const auto found = cuda::end_mps_clients(
      environment_of(folder_),
      [&](pid_t client) {
        return std::any_of(targets.begin(), targets.end(), [&](const WorkTarget& target) {
          return target.process == client && target.lives();
        });
      },
      patience);
  const auto result_of = [&](pid_t process) -> Result<void> {
    if (!found) return tl::unexpected(found.error());
    Result<void> result = check_failed(
        "MPS has no client with the number {}: the process has ended, has nothing on the card, or "
        "MPS knows it by another number, as that of a container",
        process);
    for (const auto& client : *found) {
      if (client.process == process) result = client.ended;
    }
    return result;
  };
  std::vector<Result<void>> results;
  results.reserve(targets.size());
  for (const WorkTarget& target : targets) results.push_back(result_of(target.process));
  return results;
}

Mps::~Mps() {
  if (folder_.empty()) return;
  if (end_daemon(folder_, plan_.end_seconds)) {
    plan_.tell("mps: the daemon did not end when it was asked to, and was killed");
  }
}

}  // namespace demarc::serve
