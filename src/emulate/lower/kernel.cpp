// Lowers a kernel: its own body, then each function as it turns out to be called.
#include "lower/kernel.hpp"

#include <algorithm>

#include "lower/function.hpp"

namespace demarc::emulate {

namespace {

Result<void> check_no_cluster(const ptx::Function& kernel, const std::string& source) {
  for (const ptx::PerformanceDirective& directive : kernel.directives) {
    const bool several = std::any_of(directive.values.begin(), directive.values.end(),
                                     [](std::uint64_t blocks) { return blocks > 1; });
    if (directive.name != "explicitcluster" &&
        (directive.name != "reqnctapercluster" || !several)) {
      continue;
    }
    return invalid_input(
        "{}:{}: kernel '{}' is launched in clusters of blocks (.{}), which the emulator does not "
        "cover",
        source, kernel.line, kernel.name, directive.name);
  }
  return {};
}

std::unique_ptr<Program> empty_program(const LowerRequest& request) {
  auto program = std::make_unique<Program>();
  program->tables = request.tables;
  program->kernel = std::string(request.kernel->name);
  program->grid = request.grid;
  program->block = request.block;
  program->dynamic_shared_bytes = request.dynamic_shared_bytes;
  program->parameters = request.parameters;
  program->constants = request.memory->constants;
  program->code.emplace_back();  // index 0 is no micro-op
  return program;
}

}  // namespace

Result<std::unique_ptr<Program>> lower(const LowerRequest& request) {
  DEMARC_CHECK(check_no_cluster(*request.kernel, request.source));
  std::unique_ptr<Program> program = empty_program(request);
  Refusals refusals(*request.module);
  const SharedVariables shared(request, refusals);
  FunctionList functions(*program, refusals);
  const KernelContext kernel{request, *program, refusals, shared, functions};
  functions.index_of(*request.kernel);
  for (std::uint32_t index = 0; index < functions.size(); ++index) lower_function(kernel, index);
  DEMARC_CHECK(refusals.verdict(request.source));
  program->shared_bytes = shared.bytes() + request.dynamic_shared_bytes;
  return program;
}

}  // namespace demarc::emulate
