// demarc exec: runs an unmodified program inside a partition or a tenant's share of a card.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "demarc/base/numbers.hpp"
#include "demarc/base/standard_error.hpp"
#include "demarc/device/device.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/exec/confine.hpp"
#include "demarc/serve/division.hpp"
#include "help.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct ExecOptions {
  std::string device = "cuda:0";
  std::string sync_domain = "free";
  std::string windows = "auto";
  std::string part;  // K/N
  std::string sms;   // a number, or a percentage of the card's SMs
  serve::DivisionPlan division;
  cuda::ConfinePlan plan;
  std::optional<std::int64_t> pid;
  bool strict = true;
  std::string json;
  std::optional<int> announce;
};

// Tells the program that started this one where its counters are.
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
      say_to_standard_error(fmt::format("demarc exec: --announce {}: cannot be written: {}\n", file,
                                        std::strerror(errno)));
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

// Spills of so many bytes per thread changed no result of docs/measurements/programs.md.
constexpr std::uint32_t harmless_spills = 256;

Result<void> refuse_beside_part(const ExecOptions& options) {
  const cuda::ConfinePlan& plan = options.plan;
  if (plan.tenant.empty() && !plan.observe && plan.choice.empty() && !options.pid &&
      options.sync_domain == "free") {
    return {};
  }
  return invalid_input(
      "--part {} gives the program a part of the TPCs, colours and domains: leave out --tenant, "
      "{}, --observe, --tpcs, --gpcs, --sms, --pid and --sync-domain",
      options.part, cuda::tenant_variable);
}

// The connection keeps the server while the program runs.
Result<serve::JoinedDivision> join(ExecOptions& options) {
  options.division.card = options.plan.device;
  options.division.tell = options.plan.tell;
  std::error_code ignored;
  options.division.program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  DEMARC_TRY(auto joined, serve::join_division(options.division));
  options.plan.tenant = joined.tenant;
  options.plan.socket = joined.socket;
  return joined;
}

// What can be wrong with a part before a card or a server is asked.
Result<void> read_part(ExecOptions& options) {
  if (!options.sms.empty()) {
    DEMARC_CHECK(partition::read_sms(options.sms, "--sms", options.plan.choice));
  }
  if (options.part.empty()) {
    if (options.division.memory.empty() && options.division.description.empty()) return {};
    return invalid_input("--memory and --description belong to --part K/N: give it too");
  }
  const auto part = partition::parse_part(options.part);
  if (!part) return invalid_input("--part: {}", part.error().message);
  options.division.part = *part;
  if (const std::string& description = options.division.description; !description.empty()) {
    DEMARC_CHECK(gpu::find_device(description));
  }
  DEMARC_CHECK(refuse_beside_part(options));
  if (!options.plan.command.empty()) return {};
  return invalid_input("no command was given: demarc exec --part {} -- CMD", options.part);
}

// Standard output is the program's.
std::string said_at_exit(const ExecOptions& options, const cuda::ConfineOutcome& outcome) {
  const cuda::ConfinePlan& plan = options.plan;
  if (options.json == "-") return audit_to_json(outcome);
  return (plan.audit ? audit_to_text(outcome) : warnings(outcome)) +
         (plan.report ? report_to_text(*outcome.report) : "");
}

Result<void> run_exec(ExecOptions& options) {
  DEMARC_CHECK(read_part(options));
  if (options.pid) {
    if (*options.pid < 1) {
      return invalid_input("--pid {}: give the id of a process", *options.pid);
    }
    if (!options.plan.command.empty()) {
      return invalid_input("--pid moves a running program; give no command with it");
    }
    DEMARC_TRY(const auto moved, cuda::confine_again(*options.pid, options.plan.choice));
    std::string text = fmt::format("process {}: TPCs {}\n", *options.pid, to_string(moved.tpcs));
    if (moved.has_graphs) {
      text +=
          "the program has CUDA graphs: those graphs keep the TPCs of their upload or first launch "
          "until the program instantiates them anew\n";
    }
    return emit("", text);
  }
  DEMARC_TRY(const auto card, gpu::parse_ref_as<gpu::CardRef>(
                                  options.device, "programs run on real GPUs only; give cuda:N"));
  if (!options.json.empty() && !options.plan.audit && !options.plan.report) {
    return invalid_input("--json gives what --audit and --report say: add one of them");
  }
  options.plan.device = card.index;
  DEMARC_TRY(options.plan.sync_domain, cuda::parse_domain_choice(options.sync_domain));
  DEMARC_TRY(options.plan.windows, cuda::parse_window_use(options.windows));
  if (options.announce) DEMARC_CHECK(prepare_announcement(options, *options.announce));
  options.plan.allow_plain = !options.strict;
  options.plan.tell = tell_of("exec");
  std::optional<serve::JoinedDivision> joined;
  if (!options.part.empty()) {
    DEMARC_TRY(joined, join(options));
  }
  DEMARC_TRY(const auto outcome, cuda::run_confined(options.plan));
  // A file that cannot be written must not hide what became of the program.
  Result<void> written;
  if (!options.json.empty() && options.json != "-") {
    written = emit(options.json, audit_to_json(outcome));
  }
  say_to_standard_error(said_at_exit(options, outcome));
  if (!written && (!outcome.holds() || outcome.program_exit_code != 0)) {
    options.plan.tell(written.error().message);
  }
  if (!outcome.holds()) {
    return check_failed(
        "exit code 3, because something was not confined; the program's own exit code was {}",
        outcome.program_exit_code);
  }
  // The program's own exit code, as `nice` and `taskset` pass it on.
  if (outcome.program_exit_code != 0) std::exit(outcome.program_exit_code);
  return written;
}

const RegisterVerb registered_exec({
    0,
    "exec",
    "run an unmodified program in a part of a card",
    "demarc exec --part 1/2 -- python3 infer.py",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<ExecOptions>();
      auto& choice = options->plan.choice;
      CLI::Option* device = app.add_option("--device", options->device, "GPU: cuda:N");
      app.add_option("--part", options->part,
                     "part K of N of the whole card: SMs, L2 and memory; 1/2 is the first half")
          ->option_text("K/N");
      app.add_option("--memory", options->division.memory,
                     "bytes of the card for all parts of --part K/N, such as 64GiB (default: all "
                     "free memory but 6 GiB)");
      app.add_option("--description", options->division.description,
                     "description of the card's memory for --part K/N: a file or a name (default: "
                     "the built-in one of the card)");
      app.add_option("--tpcs", choice.tpcs, "TPCs of the program, such as 0-15,20");
      app.add_option("--gpcs", choice.gpcs, "all TPCs of these GPCs, such as 0-2");
      app.add_option("--sms", options->sms,
                     "at least this many SMs, such as 66, or this percentage of them, such as 50%")
          ->option_text("NUMBER|PERCENT%");
      app.add_flag("--allow-overlap", options->plan.allow_overlap,
                   "other programs that are given this option may have the same TPCs");
      CLI::Option* domain =
          app.add_option("--sync-domain", options->sync_domain,
                         "memory synchronisation domain of all launches: its number, free or none");
      CLI::Option* tenant = app.add_option("--tenant", options->plan.tenant,
                                           "tenant of demarc serve: the program gets the TPCs, the "
                                           "colours and the memory of the tenant");
      tenant->envname(cuda::tenant_variable);
      app.add_option(
             "--socket", options->plan.socket,
             "socket of the server (default: DEMARC_SOCKET, else the user's, the unit's or root's: "
             "docs/serve.md)")
          ->needs(tenant);
      tenant->excludes(device)->excludes(domain);
      app.add_flag(
          "!--no-host-memory", options->plan.host_memory,
          "refuse pinned, registered and managed host memory, which no partition isolates");
      app.add_option("--pid", options->pid, "process id of a running program that gets other TPCs");
      app.add_flag(
          "--audit", options->plan.audit,
          "count the launches by path and by the masks in their descriptors, and report at exit");
      app.add_flag("--strict,!--allow-plain", options->strict,
                   "refuse code without PTX (default), or run it with uncoloured memory on the "
                   "tenant's TPCs and count it");
      CLI::Option* spills = app.add_option(
          "--allow-spills", options->plan.allow_spills,
          fmt::format("bytes per thread of uncoloured local memory that a kernel of a tenant may "
                      "use (default: {} with --part, else 0)",
                      harmless_spills));
      spills->default_str("");
      app.add_flag("--silence-printf", options->plan.silence_printf,
                   "let kernels of a tenant that call printf run; they print nothing (default: "
                   "they are refused)");
      app.add_option(
          "--windows", options->windows,
          "code of a tenant as it is, its memory coloured by the page table: auto (without "
          "usable PTX), never, always");
      app.add_flag("--overlap-launches", options->plan.overlap_launches,
                   "launch a tenant's kernel while the one before it in its stream still runs "
                   "(compute capability 9.0); slows long kernels");
      app.add_flag("--report", options->plan.report,
                   "report at exit what ran in the tenant's colours, and what was refused and why");
      add_json(app, options->json, "", {})
          ->description(
              "--audit and --report as one object (demarc.exec/2), on standard error or in FILE");
      app.add_flag("--observe", options->plan.observe,
                   "choose no TPCs and set no mask; only count the launches");
      app.add_option("--announce", options->announce,
                     "write the value of DEMARC_CONTROL to this open file descriptor when the "
                     "program has started")
          ->check(CLI::Range(0, std::numeric_limits<int>::max()));
      app.add_option("--preload", options->plan.preload,
                     "path of libdemarc_preload.so (default: the one next to this program)");
      app.add_option("command", options->plan.command, "program and its arguments, after --");
      app.positionals_at_end();
      app.footer(app.get_footer() +
                 "\n"
                 "\n"
                 "The exit code is that of the program, or 3 if something was not confined.\n"
                 "--sync-domain free takes a domain that no other demarc exec has. --sync-domain "
                 "none does not\n"
                 "change the domains of launches; it is the default of --observe.\n"
                 "\n"
                 "--part divides SMs, L2 and memory; --tpcs, --gpcs and --sms divide the SMs "
                 "alone. If no server runs,\n"
                 "--part starts one; --memory says how much of the card it takes.");
      std::vector<const CLI::Option*> others;  // that say nothing of a running program
      for (const CLI::Option* option : app.get_options()) {
        if (option->check_name("--pid") || option->check_name("command")) continue;
        if (option->check_name("--tpcs") || option->check_name("--gpcs")) continue;
        if (option->check_name("--sms") || option->check_name("--part")) continue;
        others.push_back(option);
      }
      group_options(app, "Part of the card",
                    {"--part", "--memory", "--description", "--tpcs", "--gpcs", "--sms", "--pid",
                     "--observe"});
      group_options(app, "Tenant",
                    {"--tenant", "--socket", "--allow-plain", "--allow-spills", "--silence-printf",
                     "--windows", "--overlap-launches"});
      group_options(app, "Report", {"--audit", "--report", "--json", "--announce"});
      return [options, others, domain, spills]() -> Result<void> {
        if (options->pid) DEMARC_CHECK(refuse_beside_pid(others));
        if (options->plan.observe && domain->count() == 0) options->sync_domain = "none";
        if (!options->part.empty() && spills->count() == 0) {
          options->plan.allow_spills = harmless_spills;
        }
        return run_exec(*options);
      };
    },
});

}  // namespace
}  // namespace demarc::cli
