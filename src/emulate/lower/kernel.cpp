// Lowers a kernel: its own body, then each function as it turns out to be called.
#include "lower/kernel.hpp"

#include <algorithm>

#include "lower/function.hpp"

namespace demarc::emulate {

namespace {

// Clusters of a size that the kernel says; with one that the launch says it is refused.
Result<ClusterShape> cluster_shape(const LowerRequest& request) {
  const ptx::Function& kernel = *request.kernel;
  ClusterShape shape;
  std::string_view open;  // the directive that leaves the size to the launch
  for (const ptx::PerformanceDirective& directive : kernel.directives) {
    if (directive.name == "blocksareclusters" || directive.name == "explicitcluster")
      open = directive.name;
  }
  for (const ptx::PerformanceDirective& directive : kernel.directives) {
    if (directive.name != "reqnctapercluster") continue;
    if (open == "explicitcluster") open = {};
    for (std::size_t i = 0; i < std::min<std::size_t>(directive.values.size(), 3); ++i)
      shape.blocks[i] = static_cast<std::uint32_t>(directive.values[i]);
  }
  std::uint64_t size = 1;
  for (const std::uint32_t blocks : shape.blocks) size = std::min<std::uint64_t>(size * blocks, 64);
  if (!open.empty() || size == 0 || size > most_cluster_blocks) {
    return invalid_input(
        "{}:{}: kernel '{}' is launched in clusters of blocks (.{}), which the emulator covers "
        "where .reqnctapercluster gives a size of up to {} blocks",
        request.source, kernel.line, kernel.name, open.empty() ? "reqnctapercluster" : open,
        most_cluster_blocks);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (request.grid[i] % shape.blocks[i] == 0) continue;
    return invalid_input(
        "{}:{}: kernel '{}' is launched in clusters of {} x {} x {} blocks, which do not divide a "
        "grid of {} x {} x {}",
        request.source, kernel.line, kernel.name, shape.blocks[0], shape.blocks[1], shape.blocks[2],
        request.grid[0], request.grid[1], request.grid[2]);
  }
  return shape;
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
  DEMARC_TRY(const ClusterShape clusters, cluster_shape(request));
  std::unique_ptr<Program> program = empty_program(request);
  program->cluster = clusters;
  program->in_clusters = clusters.size() > 1;
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
