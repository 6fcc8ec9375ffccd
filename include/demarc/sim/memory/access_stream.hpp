// Access streams from outside: launches as kernels, blocks, warps and steps, in a text that people
// write and a binary form that programs write (docs/simulate.md gives both formats).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/sim/memory/work.hpp"

namespace demarc::sim::memory {

// `source` names the text in errors, which give the line.
[[nodiscard]] Result<std::shared_ptr<const PackedLaunch>> parse_access_text(
    std::string_view text, std::string_view source);
[[nodiscard]] std::string access_text(const PackedLaunch& launch);

// Errors give the offset in bytes.
[[nodiscard]] Result<std::shared_ptr<const PackedLaunch>> parse_access_binary(
    std::string_view bytes, std::string_view source);
[[nodiscard]] std::string access_binary(const PackedLaunch& launch);

// Reads either form; the first bytes tell which. Also reads a trace of the emulator, a kernel's
// trace of Accel-Sim, or a list of these (docs/trace-format.md).
[[nodiscard]] Result<std::shared_ptr<const PackedLaunch>> read_access_stream(
    const std::filesystem::path& path);

}  // namespace demarc::sim::memory
