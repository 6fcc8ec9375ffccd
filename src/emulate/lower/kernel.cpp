// Lowers a kernel: its own body, then each function as it turns out to be called.
#include "lower/kernel.hpp"

#include <algorithm>

#include "demarc/launch/launch.hpp"
#include "lower/function.hpp"

namespace demarc::emulate {

namespace {

// Blocks, and how clusters divide them.
struct LaunchedGrid {
  std::array<std::uint32_t, 3> blocks{1, 1, 1};
  ClusterShape clusters;
  bool in_clusters = false;  // the kernel or the launch says that there are clusters
};

std::string extents_text(const std::array<std::uint32_t, 3>& extents) {
  return fmt::format("{} x {} x {}", extents[0], extents[1], extents[2]);
}

std::array<std::uint32_t, 3> extents_of(const ptx::PerformanceDirective& directive) {
  std::array<std::uint32_t, 3> extents{1, 1, 1};
  for (std::size_t i = 0; i < std::min<std::size_t>(directive.values.size(), 3); ++i)
    extents[i] = static_cast<std::uint32_t>(directive.values[i]);
  return extents;
}

// The size that the kernel says, or else the launch.
Result<ClusterShape> cluster_shape(const LowerRequest& request) {
  const ptx::Function& kernel = *request.kernel;
  const std::string where =
      fmt::format("{}:{}: kernel '{}'", request.source, kernel.line, kernel.name);
  ClusterShape shape;
  if (request.cluster) shape.blocks = *request.cluster;
  const auto* const required = kernel.directive("reqnctapercluster");
  if (required != nullptr) {
    shape.blocks = extents_of(*required);
    if (request.cluster && *request.cluster != shape.blocks) {
      return invalid_input("{} has clusters of {} blocks (.reqnctapercluster), the launch says {}",
                           where, extents_text(shape.blocks), extents_text(*request.cluster));
    }
  } else if (!request.cluster && kernel.directive("explicitcluster") != nullptr) {
    return invalid_input(
        "{} leaves the size of its clusters to the launch (.explicitcluster); give \"cluster\" in "
        "the launch file, or --cluster",
        where);
  }
  std::uint64_t size = 1;
  for (const std::uint32_t blocks : shape.blocks) size = std::min<std::uint64_t>(size * blocks, 64);
  std::uint64_t most = gpu::max_cluster_blocks;
  const auto* const limit = kernel.directive("maxclusterrank");
  if (limit != nullptr && !limit->values.empty())
    most = std::min<std::uint64_t>(most, static_cast<std::uint64_t>(limit->values[0]));
  if (size == 0 || size > most) {
    return invalid_input("{} is launched in clusters of {} blocks; it takes 1 to {}{}", where,
                         extents_text(shape.blocks), most,
                         limit != nullptr ? " (.maxclusterrank)" : "");
  }
  return shape;
}

// The extents of .reqntid are those of a block; of .maxntid, the product counts.
Result<void> check_block(const LowerRequest& request) {
  const ptx::Function& kernel = *request.kernel;
  const std::string where =
      fmt::format("{}:{}: kernel '{}'", request.source, kernel.line, kernel.name);
  const auto* const required = kernel.directive("reqntid");
  if (required != nullptr && extents_of(*required) != request.block) {
    return invalid_input("{} has blocks of {} threads (.reqntid), the launch says {}", where,
                         extents_text(extents_of(*required)), extents_text(request.block));
  }
  const auto* const limit = kernel.directive("maxntid");
  if (limit == nullptr) return {};
  const auto threads = [](const std::array<std::uint32_t, 3>& extents) {
    return std::uint64_t{std::min(extents[0], 1U << 16)} * std::min(extents[1], 1U << 16) *
           std::min(extents[2], 1U << 16);
  };
  if (threads(request.block) <= threads(extents_of(*limit))) return {};
  return invalid_input("{} takes blocks of at most {} threads (.maxntid), the launch says {}",
                       where, threads(extents_of(*limit)), threads(request.block));
}

// Where blocks are clusters, the launch counts these, and the kernel says how large a block is.
Result<LaunchedGrid> launched_grid(const LowerRequest& request) {
  const ptx::Function& kernel = *request.kernel;
  const std::string where =
      fmt::format("{}:{}: kernel '{}'", request.source, kernel.line, kernel.name);
  LaunchedGrid made;
  made.blocks = request.grid;
  DEMARC_TRY(made.clusters, cluster_shape(request));
  const auto* const required = kernel.directive("reqnctapercluster");
  made.in_clusters = required != nullptr || request.cluster;
  const bool counts_clusters = kernel.directive("blocksareclusters") != nullptr;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint32_t blocks = made.clusters.blocks[i];
    if (counts_clusters) {
      if (made.blocks[i] > UINT32_MAX / blocks) {
        return invalid_input("{} is launched in a grid of {} clusters, which are too many", where,
                             extents_text(request.grid));
      }
      made.blocks[i] *= blocks;
    }
    if (made.blocks[i] % blocks == 0) continue;
    return invalid_input(
        "{} is launched in clusters of {} blocks, which do not divide a grid of {}", where,
        extents_text(made.clusters.blocks), extents_text(request.grid));
  }
  return made;
}

std::unique_ptr<Program> empty_program(const LowerRequest& request) {
  auto program = std::make_unique<Program>();
  program->tables = request.tables;
  program->kernel = std::string(request.kernel->name);
  program->block = request.block;
  program->dynamic_shared_bytes = request.dynamic_shared_bytes;
  program->parameters = request.parameters;
  program->images = request.images;
  program->constants = request.memory->constants;
  program->code.emplace_back();  // index 0 is not a micro-op
  return program;
}

}  // namespace

Result<std::unique_ptr<Program>> lower(const LowerRequest& request) {
  DEMARC_CHECK(check_block(request));
  DEMARC_TRY(const LaunchedGrid launched, launched_grid(request));
  std::unique_ptr<Program> program = empty_program(request);
  program->grid = launched.blocks;
  program->cluster = launched.clusters;
  program->explicit_clusters = launched.in_clusters;
  program->in_clusters = launched.clusters.size() > 1;
  Refusals refusals(*request.module);
  const SharedVariables shared(request, refusals);
  FunctionList functions(*program, refusals);
  const KernelContext kernel{request, *program, refusals, shared, functions};
  functions.index_of(*request.kernel);
  for (std::uint32_t index = 0; index < functions.size(); ++index) lower_function(kernel, index);
  DEMARC_CHECK(refusals.verdict(request.source));
  program->shared_places = shared.places(request.dynamic_shared_bytes);
  program->shared_bytes = shared.bytes() + request.dynamic_shared_bytes;
  return program;
}

}  // namespace demarc::emulate
