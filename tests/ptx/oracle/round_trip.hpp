// Modules sent through parser and printer, and what ptxas makes of both texts.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace demarc::ptx::test {

struct RoundTrip {
  std::string name;
  std::function<std::string()> ptx;  // makes the module's text
  std::vector<std::string> ptxas_flags;
};

// The .ptx files of a folder, by name.
[[nodiscard]] std::vector<RoundTrip> modules_in(const std::filesystem::path& folder);

// Runs them on two threads. Every module must parse with nothing malformed and nothing unsupported,
// print to a fixed point, and give the same machine code. Returns what does not hold, with names.
[[nodiscard]] std::string failures_of(const std::vector<RoundTrip>& trips);

}  // namespace demarc::ptx::test
