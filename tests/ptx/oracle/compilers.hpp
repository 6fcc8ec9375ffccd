// nvcc, clang and ptxas, with a cache in the build tree: the key is the content of everything that
// goes in, so a second run of the tests compiles nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace demarc::ptx::test {

inline constexpr int all_targets[] = {75, 80, 90, 100};

// The .cu files of a folder, by name.
[[nodiscard]] std::vector<std::filesystem::path> cuda_sources(const std::filesystem::path& folder);

// PTX of a CUDA source. `flags` as for nvcc, -arch included. Throws with the compiler's messages.
[[nodiscard]] std::string nvcc_ptx(const std::filesystem::path& source,
                                   const std::vector<std::string>& flags);

// PTX of a C, CUDA or LLVM source by clang.
[[nodiscard]] std::string clang_ptx(const std::filesystem::path& source,
                                    const std::vector<std::string>& flags);

// One line a section with machine code or first contents of variables, of what ptxas makes of the
// module: name, size, hash of the content.
// ptxas is told the target that the module names, sm_75 at least. Throws with its messages.
[[nodiscard]] std::string machine_code_digest(const std::string& ptx,
                                              const std::vector<std::string>& flags);

// What ptxas says of the module, for the target that it names. It may also end by a signal:
// divisions that overflow and some uninitialised matrices do that to version 13.0.
enum class Verdict : std::uint8_t { taken, refused, crashed };
[[nodiscard]] Verdict verdict_of_ptxas(const std::string& ptx);

// Whether ptxas makes an object of a module that may need others.
[[nodiscard]] bool is_taken_as_a_part(const std::string& ptx);

// The lines of the module that ptxas refuses; none where it fails without a line.
struct Judgement {
  bool taken = false;
  std::set<int> lines;
};
[[nodiscard]] Judgement judgement_of_ptxas(const std::string& ptx);

// What ptxas makes of a module: of all its functions together, registers of the one with most.
struct MachineCodeFigures {
  std::uint64_t instructions = 0;
  // cp.async that add a uniform register to their address of shared memory; with a cache policy no
  // GPU of sm_90 carries them out.
  std::uint64_t uniform_copies = 0;
  std::uint32_t registers = 0;
  std::uint64_t spilled_bytes = 0;
};
// For a target that the module names, sm_75 at least. Throws with its messages.
[[nodiscard]] MachineCodeFigures machine_code_figures(const std::string& ptx);

}  // namespace demarc::ptx::test
