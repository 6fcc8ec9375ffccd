// Says before a program runs what of it is PTX and what is machine code, and what happens to it in
// a tenant on a card; `demarc doctor PROGRAM` prints it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/color/page_colors.hpp"
#include "demarc/device/device.hpp"
#include "demarc/exec/program_files.hpp"

namespace demarc::cuda {

// What decides on a card whether code without PTX can run in a tenant.
struct TenantCard {
  std::string name;
  gpu::ComputeCapability capability;
  std::uint64_t memory_bytes = 0;
  std::uint32_t sms = 0;
  bool has_colors = false;
  std::string why_no_colors;
  std::optional<color::PageColors> windows;  // machine code runs in windows
  std::string why_no_windows;
  std::vector<std::string> options;  // name this card to demarc exec
  std::string description;           // is its --description for a part with colours
};
// As its description says.
[[nodiscard]] TenantCard tenant_card(const gpu::Device& device);
// Card `index` of this machine, which the driver names in a process of its own. `description` is
// given to gpu::describe_card(); a card without one has no colours.
[[nodiscard]] Result<TenantCard> tenant_card(std::uint32_t index, const std::string& description);

// What matters most comes first.
enum class FileState {
  refused,      // some of it is refused in a tenant on this card
  not_checked,  // it cannot be read, or holds code of an unknown kind
  replaced,     // libdemarc_blas.so computes in its place, where it would be refused
  ok,
  no_code,  // holds no code for a card
};

struct FileCode {
  ProgramFile file;
  std::string library;  // "cuBLAS": a library of NVIDIA's that is known by its name
  FileState state = FileState::no_code;
  std::string why;         // not_checked: a sentence's part
  bool uses_cuda = false;  // it is linked with libcuda or libcudart, or loads libcuda itself
  std::uint32_t images = 0;
  std::uint32_t other_images = 0;  // for other cards alone
  std::uint32_t link_images = 0;   // to be linked while the program runs
  std::uint32_t unknown_images = 0;
  std::uint64_t ptx_kernels = 0;  // Demarc rewrites them
  // With PTX that Demarc does not rewrite; the first one's reason.
  std::uint64_t unfit_kernels = 0;
  std::string why_unfit;
  std::uint64_t untried_kernels = 0;  // with PTX, beyond what is tried of one program
  std::uint64_t machine_kernels = 0;  // without PTX that the card can compile
};

// A package of Python, or a library, that makes code while the program runs.
struct RuntimeCompiler {
  std::string name;
  bool gives_ptx = false;
  std::string what;  // a sentence
};

enum class Verdict { isolated, in_part, cannot, not_known };

struct ProgramFindings {
  TenantCard card;
  ProgramFiles program;
  std::vector<FileCode> files;  // what matters most first
  std::vector<RuntimeCompiler> compilers;
  Verdict verdict = Verdict::not_known;
  std::string because;  // a sentence
};

// PTX of one program that it is tried to rewrite.
inline constexpr std::uint64_t tried_ptx_bytes = std::uint64_t{32} << 20U;

// `progress` may be empty. Kernels in PTX beyond `max_ptx_bytes` are counted as not tried.
[[nodiscard]] ProgramFindings look_at_program(ProgramFiles program, TenantCard card,
                                              const Progress& progress = {},
                                              std::uint64_t max_ptx_bytes = tried_ptx_bytes);

// check_failed unless the program can be isolated.
[[nodiscard]] Result<void> check_isolated(const ProgramFindings& findings);

// "can be isolated", "in part", "cannot be isolated", "not known"
[[nodiscard]] std::string_view to_string(Verdict verdict);
// "no code", "ok", "replaced", "refused", "not checked"
[[nodiscard]] std::string_view to_string(FileState state);
// The command that starts the program in a part of the card, quoted for a shell.
[[nodiscard]] std::string command_to_type(const ProgramFindings& findings);
// At most 25 lines of 100 columns, but for long commands.
[[nodiscard]] std::string findings_to_text(const ProgramFindings& findings);
// Schema demarc.doctor.program/1; `device` is what --device said.
[[nodiscard]] std::string findings_to_json(const ProgramFindings& findings,
                                           const std::string& device);

}  // namespace demarc::cuda
