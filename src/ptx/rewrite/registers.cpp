// Removes the directives that limit the registers of a kernel.
#include "demarc/ptx/registers.hpp"

#include <algorithm>

#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"

namespace demarc::ptx {

Result<Module> with_most_registers(Module module, std::string_view kernel, std::uint32_t threads) {
  const auto found =
      std::find_if(module.functions.begin(), module.functions.end(), [&](const Function& function) {
        return function.is_entry && function.has_body && function.name == kernel;
      });
  if (found == module.functions.end()) {
    return invalid_input("{}: there is no kernel '{}'", module.source_name, kernel);
  }
  auto& directives = found->directives;
  std::erase_if(directives, [](const PerformanceDirective& directive) {
    return directive.name == "maxnreg" || directive.name == "minnctapersm" ||
           directive.name == "maxnctapersm" || directive.name == "maxntid";
  });
  if (found->directive("reqntid") == nullptr) {
    directives.push_back({"maxntid", {threads}, {}});
  }
  return parse_whole(print(module), module.source_name);
}

}  // namespace demarc::ptx
