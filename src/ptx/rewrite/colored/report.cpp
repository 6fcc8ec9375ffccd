// Writes what is said about the kernels of a module that is to be coloured.
#include <algorithm>

#include "demarc/base/json.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::ptx {
namespace {

constexpr std::size_t max_reasons = 8;  // per kernel, in words

}  // namespace

std::string describe_refusals(const ColoredKernel& kernel, std::string_view source_name) {
  std::string out;
  std::size_t left = max_reasons;
  for (const ColoredRefusal& refusal : kernel.refusals) {
    if (left-- == 0) {
      out += fmt::format("\n{}: kernel '{}': {} more", source_name, kernel.name,
                         kernel.refusals.size() - max_reasons);
      break;
    }
    out += fmt::format("{}{}:{}: kernel '{}': {}", out.empty() ? "" : "\n", source_name,
                       refusal.line, kernel.name, refusal.reason);
  }
  return out;
}

Result<void> check_accepted(const std::vector<ColoredKernel>& kernels, std::string_view source_name,
                            const std::vector<std::string>& wanted) {
  std::string all;
  for (const ColoredKernel& kernel : kernels) {
    const bool asked =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), kernel.name) != wanted.end();
    if (!asked || kernel.accepted()) continue;
    all += fmt::format("{}{}", all.empty() ? "" : "\n", describe_refusals(kernel, source_name));
  }
  if (all.empty()) return {};
  return invalid_input("{}", all);
}

std::string needs_to_json(const ColoredNeeds& needs) {
  Json kernels = Json::array();
  for (const ColoredKernel& kernel : needs.kernels) {
    Json refusals = Json::array();
    for (const ColoredRefusal& refusal : kernel.refusals) {
      refusals.push_back({{"line", refusal.line}, {"reason", refusal.reason}});
    }
    kernels.push_back({{"name", kernel.name},
                       {"line", kernel.line},
                       {"accepted", kernel.accepted()},
                       {"local_bytes", kernel.local_bytes},
                       {"refusals", std::move(refusals)}});
  }
  Json variables = Json::array();
  for (const ColoredBlock::Variable& variable : needs.variables.variables) {
    variables.push_back(
        {{"name", variable.name}, {"offset", variable.offset}, {"bytes", variable.bytes}});
  }
  const Json document{{"schema", "demarc.rewrite.needs/1"},
                      {"kernels", std::move(kernels)},
                      {"local_bytes", needs.local_bytes},
                      {"local_alignment", needs.local_alignment},
                      {"variables_bytes", needs.variables.bytes},
                      {"variables_alignment", needs.variables.alignment},
                      {"variables", std::move(variables)}};
  return json_text(document, 2) + "\n";
}

}  // namespace demarc::ptx
