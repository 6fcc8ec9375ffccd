// The options by which emulate and run show what the buffers of a launch hold after it.
//
//   auto options = std::make_shared<BufferOptions>();
//   options->declare(app);
//   …
//   DEMARC_TRY(const auto shown, options->choose(launch));  // before the launch runs
//   DEMARC_CHECK(write_buffers(shown, launch, memory));     // after it
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "demarc/base/json.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::cli {

// What is wanted of one buffer.
struct ShownBuffer {
  std::size_t buffer = 0;   // buffer of the launch
  std::string file;         // to be written; empty: it is printed
  std::uint64_t count = 0;  // elements to print, no more than there are
};

class BufferOptions {
 public:
  void declare(CLI::App& app);
  // An error names the option and what would be right.
  [[nodiscard]] Result<std::vector<ShownBuffer>> choose(const gpu::Launch& launch) const;

 private:
  std::vector<std::string> files_;    // NAME=FILE
  std::vector<std::string> printed_;  // NAME[:COUNT]
};

// All files are complete before the first has its name.
[[nodiscard]] Result<void> write_buffers(const std::vector<ShownBuffer>& shown,
                                         const gpu::Launch& launch, const gpu::Memory& memory);
// A line per printed buffer.
[[nodiscard]] std::string buffers_text(const std::vector<ShownBuffer>& shown,
                                       const gpu::Launch& launch, const gpu::Memory& memory);
// An object per printed buffer.
[[nodiscard]] Json buffers_json(const std::vector<ShownBuffer>& shown, const gpu::Launch& launch,
                                const gpu::Memory& memory);

}  // namespace demarc::cli
