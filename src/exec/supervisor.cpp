// Serves the filter: answers by the table of what it saw, waits, and passes signals on.
#include "supervisor.hpp"

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <set>
#include <utility>

#include "loaded_drivers.hpp"

namespace demarc::cuda {
namespace {

constexpr const char* device_file = "nvidia-uvm";

std::string uuid_digits(const std::array<unsigned char, 16>& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

// A profiler takes the place of the library that hooks.
std::string why_not_hooked(pid_t process) {
  const std::string other = variable_of(process, "CUDA_INJECTION64_PATH");
  if (!other.empty() && std::filesystem::path(other).filename() != "libdemarc_preload.so") {
    return fmt::format(
        "its launches cannot be confined, because its driver loads {} in the place of "
        "libdemarc_preload.so: a profiler (nsys, ncu) and Demarc need the same callbacks of the "
        "driver; profile the program without demarc exec",
        other);
  }
  return "its launches cannot be confined, because its driver did not load libdemarc_preload.so "
         "(did its launcher drop the environment?)";
}

}  // namespace

OrphanKeeper::OrphanKeeper() {
  int before = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &before);
  ends_it_ = before == 0;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

OrphanKeeper::~OrphanKeeper() {
  if (ends_it_) ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

OrphanKeeper::OrphanKeeper(OrphanKeeper&& other) noexcept
    : ends_it_(std::exchange(other.ends_it_, false)) {}

Result<Supervisor> Supervisor::start(SupervisorRules rules, const ProgramPlan& plan) {
  OrphanKeeper keeper;
  DEMARC_TRY(SignalFile signals, SignalFile::open());
  DEMARC_TRY(StartedProgram program, start_program(plan, signals.mask_before()));
  // They take copies of its descriptors (pidfd_getfd), which Yama lets no process but these do.
  ::prctl(PR_SET_PTRACER, program.process, 0, 0, 0);
  return Supervisor(std::move(rules), std::move(keeper), std::move(signals), std::move(program));
}

Supervisor::Supervisor(SupervisorRules rules, OrphanKeeper keeper, SignalFile signals,
                       StartedProgram program)
    : rules_(std::move(rules)),
      keeper_(std::move(keeper)),
      signals_(std::move(signals)),
      program_(std::move(program)),
      start_time_(start_time_of(program_.process).value_or(0)) {}

int Supervisor::wait() {
  bool ended = false;
  while (!ended) {
    // Where it fails it tells of nothing.
    pollfd waiting[] = {{program_.listener.file(), POLLIN, {}},
                        {signals_.file(), POLLIN, {}},
                        {rules_.watched, POLLIN, {}}};
    constexpr int look_ms = 200;
    ::poll(waiting, std::size(waiting), rules_.look ? look_ms : -1);
    if (rules_.look) rules_.look();
    take_signals();
    if (waiting[2].revents != 0) {
      rules_.watched = -1;
      rules_.heed();
    }
    if ((waiting[0].revents & POLLIN) != 0) serve_call();
    // No process has the filter any more. It outlives the program, whatever its parent is.
    ended = (waiting[0].revents & POLLHUP) != 0;
  }
  while (!status_) {
    int status = 1 << 8;  // unless the kernel has another
    if (::waitpid(program_.process, &status, 0) == program_.process || errno != EINTR) {
      status_ = status;
    }
  }
  return WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
}

void Supervisor::serve_call() {
  const auto call = program_.listener.receive();
  if (!call) return;
  Image& image = image_of(*call);
  if (call->command == static_cast<std::uint32_t>(OwnCommand::hooked)) {
    // A library with another's control block would count and confine for that one.
    const bool agreed = call->argument == rules_.token && image.mark.has_value();
    // One driver in a process: a second one reports as well, from a library of its own.
    const int error = !agreed ? EACCES : image.hooked ? EEXIST : 0;
    if (program_.listener.answer(*call, error) && agreed) {
      image.second_driver = image.hooked;
      image.hooked = true;
    }
  } else if (call->command == static_cast<std::uint32_t>(OwnCommand::stopped)) {
    image.stopped = program_.listener.answer(*call, 0);
  } else if (call->command == make_context_command) {
    judge_context(*call, image);
  } else {
    program_.listener.answer(*call, 0);
  }
  if (rules_.changed) rules_.changed(counts());
}

void Supervisor::judge_context(const FilteredCall& call, Image& image) {
  const bool device = may_be_device(call.thread, call.file, device_file);
  const std::string objected = device ? objection(call, image) : "";
  if (!objected.empty()) {
    keep_off(call, image, objected);
  } else if (program_.listener.let_pass(call) && device) {
    ++image.contexts;
  }
}

void Supervisor::keep_off(const FilteredCall& call, Image& image, const std::string& objected) {
  const std::string name = name_of(call.thread);
  if (!program_.listener.answer(call, EPERM) || image.kept_off) return;
  image.kept_off = true;
  if (rules_.tell) {
    rules_.tell(fmt::format("process {} ({}) was KEPT OFF GPU {}", image.process, name, objected));
  }
}

// Empty when there is none.
std::string Supervisor::objection(const FilteredCall& call, const Image& image) const {
  std::array<unsigned char, 16> uuid{};
  if (!read_memory(call.thread, call.argument, uuid.data(), uuid.size())) {
    return "of unknown name: its memory cannot be read from outside, so it is not known which card "
           "it "
           "chose";
  }
  const std::string chosen = uuid_digits(uuid);
  if (!image.hooked) return fmt::format("{}: {}", chosen, why_not_hooked(image.process));
  const auto drivers = drivers_of(call.thread);
  if (!drivers) {
    return fmt::format("{}: what it has loaded cannot be read, so its drivers are unknown", chosen);
  }
  if (image.second_driver || drivers->size() > 1) {
    return fmt::format(
        "{}: it has loaded several drivers of CUDA ({}), and the launches of one of them alone can "
        "be confined",
        chosen, fmt::join(*drivers, ", "));
  }
  if (chosen != rules_.card.substr(rules_.card.find('-') + 1)) {
    return fmt::format("{}: it chose another card than that of the partition, {}", chosen,
                       rules_.card);
  }
  return "";
}

Supervisor::Image& Supervisor::image_of(const FilteredCall& call) {
  const pid_t process = process_of(call.thread).value_or(0);
  const auto mark = image_mark(call.thread);
  const auto found = std::find_if(images_.begin(), images_.end(), [&](const Image& image) {
    return image.process == process && image.mark == mark;
  });
  if (found != images_.end()) return *found;
  images_.push_back({process, mark});
  return images_.back();
}

ProcessCounts Supervisor::counts() const {
  ProcessCounts counts;
  for (const Image& image : images_) {
    counts.confined += image.contexts != 0 ? 1 : 0;
    counts.contexts += image.contexts;
    counts.kept_off += image.kept_off ? 1 : 0;
    counts.stopped += image.stopped ? 1 : 0;
  }
  return counts;
}

void Supervisor::take_signals() {
  while (const auto signal = signals_.take()) {
    if (signal->number == SIGCHLD) {
      reap();
    } else if (signal->number != SIGPIPE && !signal->from_kernel) {
      // What the kernel sends, for the terminal, went to the program as well.
      pass_on(signal->number);
    }
  }
}

void Supervisor::pass_on(int signal) const {
  // Once more when processes were started meanwhile, but not for ever.
  constexpr int max_rounds = 8;
  std::set<pid_t> told;
  for (int round = 0; round < max_rounds; ++round) {
    const std::size_t before = told.size();
    for (const pid_t process : family_since(start_time_)) {
      if (told.insert(process).second) ::kill(process, signal);
    }
    if (told.size() == before) return;
  }
}

void Supervisor::reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == program_.process) status_ = status;
  }
}

}  // namespace demarc::cuda
