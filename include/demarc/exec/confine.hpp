// Unmodified programs inside a partition: what `demarc exec` does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/device/tpc_set.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/partition/tpc_choice.hpp"

namespace demarc::cuda {

// The memory synchronisation domain of a program (sync_domain.hpp).
struct DomainChoice {
  enum class Kind {
    free,  // one that no other `demarc exec` on the card has, never 0, which is everybody's
    none,  // launches keep what they and their streams have
    given,
  };
  Kind kind = Kind::free;
  std::uint32_t domain = 0;  // given
};
// "auto", "never" or "always".
[[nodiscard]] Result<WindowUse> parse_window_use(std::string_view text);
// "free", "none" or a number.
[[nodiscard]] Result<DomainChoice> parse_domain_choice(std::string_view text);

struct ConfinePlan {
  std::uint32_t device = 0;
  DomainChoice sync_domain;
  partition::TpcChoice choice;
  std::vector<std::string> command;  // program and arguments
  bool audit = false;                // also count launches by path
  // If a process of a tenant has kernels without PTX, it gets plain memory, runs them and is
  // counted. Without this option such kernels are refused.
  bool allow_plain = false;
  // The compiler may keep up to so many bytes per thread of a tenant's kernel in local memory,
  // which has no colour. Such a kernel runs and is counted.
  std::uint32_t allow_spills = 0;
  // A tenant's kernels that call printf run, and print nothing. Without this option they are
  // refused.
  bool silence_printf = false;
  // A tenant's kernel may be launched before the one in front of it in its stream has ended; it
  // then waits itself. Needs compute capability 9.0.
  bool overlap_launches = false;
  // Whether a tenant's code runs as it is, at addresses that the page table leads to the tenant's
  // bytes.
  WindowUse windows = WindowUse::automatic;
  // Other programs that say the same may have the program's TPCs too.
  bool allow_overlap = false;
  bool report = false;      // the outcome's report is wanted, which needs a tenant
  bool host_memory = true;  // the program's kernels may reach host memory
  bool observe = false;     // no partition, `choice` is empty: launches are only seen and counted
  // A tenant of `demarc serve`, or empty. Its lease says which card, TPCs, domain and colours the
  // program has; then `choice` is empty.
  std::string tenant;
  std::string socket;  // path of the server's; empty: lease::find_socket()
  // Called with a line for the user about each process that is kept off, as it happens.
  std::function<void(const std::string& line)> tell;
  // Called once the program has started, with the text that Control::open() takes.
  std::function<void(const std::string& control)> started;
  std::string preload;  // path of libdemarc_preload.so; empty: beside the program, or in ../lib
};

// Processes of a program, from their exec to the next one, as the kernel showed them.
struct ProcessCounts {
  std::uint32_t confined = 0;  // made a context on the card, their launches hooked
  std::uint32_t contexts = 0;  // that these made
  std::uint32_t kept_off = 0;  // were refused a context
  std::uint32_t stopped = 0;   // ended because they could not be confined
};

// Something that was counted and that may mean that the partition did not hold.
struct Finding {
  enum class Severity { none, warns, fails };
  std::string name;  // as in the JSON report
  std::string text;  // a sentence with the count
  std::uint64_t count = 0;
  Severity severity = Severity::none;  // of a count that is not 0
};

struct ConfineOutcome {
  int program_exit_code = 0;  // 128 + signal when a signal ended it
  bool observed = false;      // without a partition
  gpu::TpcSet tpcs;           // as the program started
  std::uint32_t sms = 0;
  std::vector<MaskPeriod> periods;           // one after the other; several: it was moved
  std::optional<std::uint32_t> sync_domain;  // of all launches; nothing: they kept their own
  std::string no_domain_because;             // why there is none though one was wanted
  ProcessCounts processes;
  // What the hook saw in all processes of the program.
  std::uint64_t masked[launch_paths] = {};
  std::uint64_t unmasked[launch_paths] = {};
  std::uint64_t refused[launch_paths] = {};
  std::uint64_t masked_blocks[launch_paths] = {};
  std::uint64_t graphs = 0;             // launches of CUDA graphs
  std::vector<Finding> findings;        // all that are looked for, also those with count 0
  std::optional<ProgramReport> report;  // of a program that has a lease

  // Whether something reached the GPU, and everything that did was confined.
  [[nodiscard]] bool holds() const;
};

// The path of libdemarc_preload.so: `wanted`, or, if that is empty, beside this program or in
// ../lib. invalid_input or missing_capability if it is not there.
[[nodiscard]] Result<std::string> find_preload(const std::string& wanted);
// The path of libdemarc_compilers.so, which lies beside that one. missing_capability if it does
// not.
[[nodiscard]] Result<std::string> find_compilers(const std::string& preload);
// Likewise that of libdemarc_blas.so.
[[nodiscard]] Result<std::string> find_blas(const std::string& preload);

// invalid_input inside another run_confined(). What that does needs a context of its own on the
// whole card, which the outer one keeps the processes below it off, and a second supervisor for
// what the first one watches.
[[nodiscard]] Result<void> refuse_inside();

// Finds the mask in a child process (so that this one holds no GPU memory), proves there with a
// probe kernel that it holds, then runs the program with libdemarc_preload.so and waits for it and
// all that it started. Processes that would reach a GPU without being confined are kept off it by
// the kernel. An existing injection library is kept. Call it before anything in this process has
// used CUDA, and while the process has only one thread. check_failed if the proof fails,
// invalid_input inside another run_confined(), missing_capability for a domain that the card lacks.
[[nodiscard]] Result<ConfineOutcome> run_confined(const ConfinePlan& plan);

struct Moved {
  gpu::TpcSet tpcs;
  bool has_graphs = false;  // CUDA graphs of the program stay on the TPCs before
};
// Gives a running program, started by run_confined(), other TPCs: launches from now on use
// them, but graphs launched before keep their first mask; their launches are counted as stale.
[[nodiscard]] Result<Moved> confine_again(std::int64_t pid, const partition::TpcChoice& choice);

// Everything that is looked for in what was seen. Each finding is a row of one table.
[[nodiscard]] std::vector<Finding> look_for_findings(const ProcessCounts& processes,
                                                     const LaunchCounters& launches, bool observed);
// What the user has to know even without an audit, one line each; empty if all is well.
[[nodiscard]] std::string warnings(const ConfineOutcome& outcome);
// The outcome as sentences and as JSON (schema demarc.exec/2).
[[nodiscard]] std::string audit_to_text(const ConfineOutcome& outcome);
[[nodiscard]] std::string audit_to_json(const ConfineOutcome& outcome);

}  // namespace demarc::cuda
