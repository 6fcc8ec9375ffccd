// The bundled workloads: kernels of our own (kernels/*.cu), each with a launch file
// (kernels/launch/*.json) and a reference on the CPU that says what the outputs must be. All of
// this is part of the program.
//
//   DEMARC_TRY(const gpu::Launch launch, workload::instance("vecadd"));
//   DEMARC_TRY(const std::string ptx, workload::ptx_text(launch, 90));  // for sm_90 or below
//   ...                                                                 // run it
//   DEMARC_CHECK(workload::check(launch, addresses, buffers));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::workload {

struct Workload {
  std::string name;
  std::string summary;              // one line
  std::string source;               // where the idea comes from
  std::vector<std::string> groups;  // table2, study, stress, translation, basic, …
  std::vector<std::string>
      scales;  // "large": fills a real GPU for a while; the default is small enough to emulate
  std::string_view launch_text;  // its launch file
};

// All bundled workloads, sorted by name.
[[nodiscard]] std::span<const Workload> all();
// Finds a workload by its name or its short name, in capital or small letters. An error lists the
// known names.
[[nodiscard]] Result<const Workload*> find(std::string_view name);

// The launch of a bundled workload, at its default size unless `options` names a scale or
// parameters.
[[nodiscard]] Result<gpu::Launch> instance(std::string_view name,
                                           const gpu::LaunchFileOptions& options = {});

// The module of a launch. For a bundled launch it is the PTX for the highest target not above
// `target` (90 for sm_90), otherwise the text of the file.
[[nodiscard]] Result<std::string> ptx_text(const gpu::Launch& launch, std::uint32_t target);

// Targets for which the bundled module has PTX in this build, ascending.
[[nodiscard]] std::vector<std::uint32_t> targets_of(std::string_view module);

// Turns the initial content of the buffers (gpu::initial_memory) into what it must be after the
// launch, by its reference or from its files. Buffers that are not outputs may be left in any
// state.
[[nodiscard]] Result<void> run_reference(const gpu::Launch& launch, gpu::Memory& memory);

// Compares the outputs of a run with the reference. The error (check_failed) names the buffer and
// the element, and says what was expected and what was found. A launch without a check passes.
[[nodiscard]] Result<void> check(const gpu::Launch& launch,
                                 std::span<const std::uint64_t> addresses,
                                 const gpu::Memory& result);

// The same with an expectation that run_reference made before, for repeated checks.
[[nodiscard]] Result<void> compare_outputs(const gpu::Launch& launch, const gpu::Memory& expected,
                                           const gpu::Memory& result);

}  // namespace demarc::workload
