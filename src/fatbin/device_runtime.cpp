// Finds functions of CUDA's device runtime: by the functions of PTX, by the symbols of machine
// code.
#include "demarc/fatbin/device_runtime.hpp"

#include <algorithm>
#include <set>

#include "code.hpp"
#include "demarc/ptx/parser.hpp"
#include "symbols.hpp"

namespace demarc::fatbin {
namespace {

// As nvcc of CUDA 11 and 12 calls them, as libcudadevrt.a does within, and as its older versions
// did.
constexpr std::string_view of_device_runtime[] = {"cudaCDP", "cnprt", "cnpLaunch",
                                                  "cudaLaunchDevice", "cudaGetParameterBuffer"};

void add_if_of_device_runtime(std::string_view function, std::set<std::string>& names) {
  const bool is = std::any_of(
      std::begin(of_device_runtime), std::end(of_device_runtime),
      [&](std::string_view part) { return function.find(part) != std::string_view::npos; });
  if (is) names.emplace(function);
}

}  // namespace

Result<std::vector<std::string>> device_runtime_functions(const Image& image,
                                                          std::string_view name) {
  std::set<std::string> names;
  DEMARC_CHECK(for_each_code(
      image, name, "kernels that launch kernels",
      [&](std::string_view text, std::string_view where) -> Result<void> {
        DEMARC_TRY(const ptx::Module module,
                   ptx::parse_whole(std::string(text), std::string(where)));
        for (const auto& function : module.functions)
          add_if_of_device_runtime(function.name, names);
        return {};
      },
      [&](std::string_view bytes, std::string_view where) {
        return for_each_symbol(0, bytes, where, [&](std::string_view symbol) {
          add_if_of_device_runtime(symbol, names);
        });
      }));
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace demarc::fatbin
