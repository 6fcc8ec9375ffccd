// demarc exec: runs an unmodified program inside a partition or a tenant's share of a card.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "demarc/base/numbers.hpp"
#include "demarc/cuda/confine.hpp"
#include "demarc/gpu/device.hpp"
#include "demarc/serve/division.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct ExecOptions {
  std::string device = "cuda:0";
  std::string sync_domain = "free";
  std::string share;  // per cent of the SMs, or K/N
  serve::DivisionPlan division;
  cuda::ConfinePlan plan;
  std::optional<std::int64_t> pid;
  bool strict = true;
  std::string json;
  std::optional<int> announce;
};

// Tells whoever started this program where its counters are.
Result<void> prepare_announcement(ExecOptions& options, int file) {
  const int flags = ::fcntl(file, F_GETFD);
  if (flags < 0) {
    return invalid_input("--announce {}: no such open file descriptor ({})", file,
                         std::strerror(errno));
  }
  // Open to the end here and not in the program, so that its reader sees this process end.
  if (file > STDERR_FILENO) ::fcntl(file, F_SETFD, flags | FD_CLOEXEC);
  options.plan.started = [file](const std::string& control) {
    const std::string line = control + "\n";
    if (::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      fmt::print(stderr, "demarc exec: --announce {}: cannot be written: {}\n", file,
                 std::strerror(errno));
    }
  };
  return {};
}

Result<void> refuse_beside_pid(const std::vector<const CLI::Option*>& others) {
  for (const CLI::Option* option : others) {
    if (option->count() == 0) continue;
    return invalid_input(
        "--pid gives a running program other TPCs and changes nothing else: leave "
        "{} out",
        option->get_name());
  }
  return {};
}

// "50" is a part of the SMs, "1/2" one of the SMs and of the memory's colours.
bool is_card_part(const std::string& share) {
  return share.find('/') != std::string::npos;
}

Result<void> refuse_beside_part(const ExecOptions& options) {
  const cuda::ConfinePlan& plan = options.plan;
  if (plan.tenant.empty() && !plan.observe && plan.choice.empty() && !options.pid &&
      options.sync_domain == "free") {
    return {};
  }
  return invalid_input(
      "--share {} is a part of TPCs, colours and domains: leave --tenant, {}, --observe, --tpcs, "
      "--gpcs, --sms, --pid and --sync-domain out",
      options.share, cuda::tenant_variable);
}

// The connection keeps the server while the program runs.
Result<serve::JoinedDivision> join(ExecOptions& options) {
  DEMARC_TRY(options.division.part, serve::parse_card_part(options.share));
  options.division.card = options.plan.device;
  options.division.tell = options.plan.tell;
  std::error_code ignored;
  options.division.program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  DEMARC_TRY(auto joined, serve::join_division(options.division));
  options.plan.tenant = joined.tenant;
  options.plan.socket = joined.socket;
  return joined;
}

Result<void> read_share(ExecOptions& options) {
  const bool part = is_card_part(options.share);
  if (part) {
    DEMARC_CHECK(refuse_beside_part(options));
    if (options.plan.command.empty()) {
      return invalid_input("no command was given: demarc exec --share {} -- CMD", options.share);
    }
    return {};
  }
  if (!options.division.memory.empty() || !options.division.description.empty()) {
    return invalid_input("--memory and --description are of a part: give --share K/N too");
  }
  if (options.share.empty()) return {};
  DEMARC_TRY(options.plan.choice.share_percent, parse_double(options.share, "--share"));
  return {};
}

// Standard output is the program's.
std::string said_at_exit(const ExecOptions& options, const cuda::ConfineOutcome& outcome) {
  const cuda::ConfinePlan& plan = options.plan;
  if (options.json == "-") return audit_to_json(outcome);
  return (plan.audit ? audit_to_text(outcome) : warnings(outcome)) +
         (plan.report ? report_to_text(*outcome.report) : "");
}

Result<void> run_exec(ExecOptions& options) {
  DEMARC_CHECK(read_share(options));
  if (options.pid) {
    if (*options.pid < 1) {
      return invalid_input("--pid {}: give the number of a process", *options.pid);
    }
    if (!options.plan.command.empty()) {
      return invalid_input("--pid moves a running program; give no command with it");
    }
    DEMARC_TRY(const auto moved, cuda::confine_again(*options.pid, options.plan.choice));
    std::string text = fmt::format("process {}: TPCs {}\n", *options.pid, to_string(moved.tpcs));
    if (moved.graphs_before != 0) {
      text +=
          "the program has launched CUDA graphs: those graphs keep the TPCs of their first launch "
          "until the program instantiates them anew\n";
    }
    return emit("", text);
  }
  DEMARC_TRY(const gpu::DeviceRef ref, gpu::parse_device_ref(options.device));
  if (ref.kind != gpu::DeviceRef::Kind::cuda) {
    return invalid_input("--device {}: programs run on real GPUs only; give cuda:N",
                         options.device);
  }
  if (!options.json.empty() && !options.plan.audit && !options.plan.report) {
    return invalid_input("--json gives what --audit and --report say: add one of them");
  }
  options.plan.device = ref.index;
  DEMARC_TRY(options.plan.sync_domain, cuda::parse_domain_choice(options.sync_domain));
  if (options.announce) DEMARC_CHECK(prepare_announcement(options, *options.announce));
  options.plan.allow_plain = !options.strict;
  options.plan.tell = [](const std::string& line) {
    fmt::print(stderr, "demarc exec: {}\n", line);
  };
  std::optional<serve::JoinedDivision> joined;
  if (is_card_part(options.share)) {
    DEMARC_TRY(joined, join(options));
  }
  DEMARC_TRY(const auto outcome, cuda::run_confined(options.plan));
  if (!options.json.empty() && options.json != "-") {
    DEMARC_CHECK(emit(options.json, audit_to_json(outcome)));
  }
  fmt::print(stderr, "{}", said_at_exit(options, outcome));
  if (!outcome.holds()) {
    return check_failed("exit code 3, since not all was confined; the program's own was {}",
                        outcome.program_exit_code);
  }
  // The program's own exit code, as `nice` and `taskset` pass it on.
  if (outcome.program_exit_code != 0) std::exit(outcome.program_exit_code);
  return {};
}

const RegisterVerb registered_exec({
    40,
    "exec",
    "run an unmodified program inside a partition; exit code 3 when not all of it was confined",
    "demarc exec --tpcs 0-15 --audit -- python3 infer.py",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<ExecOptions>();
      auto& choice = options->plan.choice;
      CLI::Option* device =
          app.add_option("--device", options->device, "cuda:N")->capture_default_str();
      app.add_option("--tpcs", choice.tpcs, "TPCs, such as 0-15,20");
      app.add_option("--gpcs", choice.gpcs, "all TPCs of these GPCs, such as 0-2");
      app.add_option("--sms", choice.sms, "at least this many SMs");
      app.add_option(
          "--share", options->share,
          "at least this share of the SMs, per cent; or K/N: the K-th of N parts of "
          "the TPCs and of the memory's colours, as a tenant of a server that is started "
          "where there is none");
      app.add_option("--memory", options->division.memory,
                     "of the card, for all parts of --share K/N, such as 64GiB (default: what is "
                     "free but 6 GiB); of the first program alone, which starts the server");
      app.add_option("--description", options->division.description,
                     "of the card's memory, for the same, as in the configuration of demarc serve");
      CLI::Option* domain =
          app.add_option("--sync-domain", options->sync_domain,
                         "memory synchronisation domain of all launches: a number, `free` for one "
                         "that no other demarc exec has (default), `none` to leave launches theirs "
                         "(default with --observe)");
      CLI::Option* tenant = app.add_option(
          "--tenant", options->plan.tenant,
          "a tenant of `demarc serve`: the program runs on its TPCs, and all of its memory and "
          "kernels lie in its colours; what has no PTX or leaves the colours is refused by name "
          "(default: DEMARC_TENANT, which containers of a tenant have)");
      tenant->envname(cuda::tenant_variable);
      app.add_option("--socket", options->plan.socket,
                     "of the server (default: DEMARC_SOCKET, else as demarc serve)")
          ->needs(tenant);
      tenant->excludes(device)->excludes(domain);
      app.add_flag("!--no-host-memory", options->plan.host_memory,
                   "refuse the program what its kernels would reach memory of the host by: pinned, "
                   "registered and managed memory and the like; no partition isolates that path");
      app.add_option("--pid", options->pid,
                     "give a running program other TPCs, from outside of it");
      app.add_flag(
          "--audit", options->plan.audit,
          "count the launches by path and by the masks in their descriptors, report at exit");
      app.add_flag(
          "--strict,!--allow-plain", options->strict,
          "what a tenant's program has as machine code alone is refused by name (default); "
          "with --allow-plain a process that holds such code has plain memory, on its "
          "tenant's TPCs but outside of its colours, and is counted");
      app.add_option(
          "--allow-spills", options->plan.allow_spills,
          "bytes per thread that the compiler may keep of a tenant's kernel in local memory, which "
          "has no colour; such kernels are counted (default: 0, which refuses them by name)");
      app.add_flag(
          "--overlap-launches", options->plan.overlap_launches,
          "a tenant's kernels are launched while the one in front of them in their stream runs, "
          "and "
          "wait for its end themselves (programmatic dependent launch, compute capability 9.0): "
          "neighbours are felt less between kernels");
      app.add_flag(
          "--report", options->plan.report,
          "of a tenant's program: which kernels ran in the tenant's colours and how often, "
          "which code and which calls were refused and why, and its bytes, at exit");
      add_json(app, options->json, "", {})
          ->description(
              "--audit and --report as one object (demarc.exec/2), on standard error or in FILE");
      app.add_flag("--observe", options->plan.observe,
                   "choose no TPCs and set no mask: see and count the launches only");
      app.add_option("--announce", options->announce,
                     "once the program has started, write a line to this open file descriptor that "
                     "names the memory with the live counters (the value of DEMARC_CONTROL)")
          ->check(CLI::NonNegativeNumber);
      app.add_option("--preload", options->plan.preload, "path of libdemarc_preload.so");
      app.add_option("command", options->plan.command, "the program and its arguments, after --");
      app.positionals_at_end();
      std::vector<const CLI::Option*> others;  // that say nothing of a running program
      for (const CLI::Option* option : app.get_options()) {
        if (option->check_name("--pid") || option->check_name("command")) continue;
        if (option->check_name("--tpcs") || option->check_name("--gpcs")) continue;
        if (option->check_name("--sms") || option->check_name("--share")) continue;
        others.push_back(option);
      }
      return [options, others, domain]() -> Result<void> {
        if (options->pid) DEMARC_CHECK(refuse_beside_pid(others));
        if (options->plan.observe && domain->count() == 0) options->sync_domain = "none";
        return run_exec(*options);
      };
    },
});

}  // namespace
}  // namespace demarc::cli
