// Makes the launch of a neighbour, and says in words what it does.
#include <algorithm>

#include "attack/neighbour_shape.hpp"
#include "demarc/base/text.hpp"
#include "demarc/study/neighbour.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t step_page = std::uint64_t{1} << 21U;
constexpr std::uint64_t least_buffer = 256;
constexpr std::uint32_t warp_threads = 32;
constexpr std::uint32_t sector = 32;

// Bytes from the first thread's access to the end of the last one's.
std::uint64_t width_of(const Neighbour& neighbour) {
  const std::uint32_t bytes = row_of(neighbour.operation).bytes;
  return neighbour.apart == 0 ? std::uint64_t{bytes} * warp_threads : std::max(bytes, sector);
}

// "4MiB" in names, "4 MiB" in sentences.
std::string size_text(std::uint64_t bytes, std::string_view between) {
  constexpr std::string_view units[] = {"bytes", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(units) && bytes % 1024 == 0 && bytes != 0) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}{}", bytes, between, units[unit]);
}

std::string count_of(std::uint64_t count, std::string_view what, std::string_view plural = "s") {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : plural);
}

gpu::Scalar wide(std::uint64_t value) {
  return {gpu::ScalarType::u64, value};
}

}  // namespace

bool works_on_buffer(Operation operation) {
  return operation != Operation::local && operation != Operation::variable &&
         operation != Operation::constant;
}

std::uint32_t shared_bytes_of(const Neighbour& neighbour) {
  std::uint64_t needed = 0;
  if (neighbour.operation == Operation::async_copy) needed = neighbour.threads * 16;
  if (neighbour.operation == Operation::bulk_copy) {
    needed = barrier_bytes + neighbour.threads / warp_threads * bulk_bytes;
  }
  return static_cast<std::uint32_t>(std::max(neighbour.shared, needed));
}

Places places_of(const Neighbour& neighbour, const NeighbourMeans& means) {
  if (neighbour.pattern == Pattern::slice) {
    return {sector * 4, means.slice_lines.size()};
  }
  std::uint64_t bytes = width_of(neighbour);
  if (neighbour.pattern == Pattern::stride) bytes = std::max(bytes, neighbour.stride);
  if (neighbour.pattern == Pattern::row) bytes = std::max(bytes, means.row_bytes);
  if (neighbour.pattern == Pattern::page) bytes = step_page;
  return {bytes, std::max<std::uint64_t>(neighbour.footprint / bytes, 1)};
}

gpu::Launch neighbour_launch(const Neighbour& neighbour, const NeighbourMeans& means,
                             std::string_view name, std::string_view ptx) {
  gpu::Launch launch;
  launch.name = name;
  launch.summary = in_words(neighbour);
  launch.ptx = ptx;
  gpu::Buffer data;
  data.name = "data";
  data.bytes = works_on_buffer(neighbour.operation) ? std::max(neighbour.footprint, least_buffer)
                                                    : least_buffer;
  data.host = row_of(neighbour.operation).need == Need::host_memory;
  launch.buffers.push_back(std::move(data));
  std::size_t lines = 0;
  if (neighbour.pattern == Pattern::slice) {
    gpu::Buffer table;
    table.name = "lines";
    table.bytes = means.slice_lines.size() * 4;
    table.fill.kind = gpu::FillKind::values;
    table.fill.values.assign(means.slice_lines.begin(), means.slice_lines.end());
    launch.buffers.push_back(std::move(table));
    lines = 1;
  }
  const Places places = places_of(neighbour, means);
  const std::uint64_t walkers =
      neighbour.blocks * neighbour.threads / (neighbour.apart == 0 ? warp_threads : 1);
  const std::uint64_t rounds = neighbour.steps / neighbour.in_flight;
  gpu::KernelLaunch kernel;
  kernel.kernel = neighbour_entry;
  kernel.grid.x = static_cast<std::uint32_t>(neighbour.blocks);
  kernel.block.x = static_cast<std::uint32_t>(neighbour.threads);
  kernel.dynamic_shared_bytes = shared_bytes_of(neighbour);
  kernel.arguments = {gpu::BufferUse{0, 0},
                      gpu::BufferUse{lines, 0},
                      wide(places.places),
                      wide(places.place_bytes),
                      wide(walkers % places.places),
                      gpu::Scalar{gpu::ScalarType::u32, rounds},
                      gpu::Scalar{gpu::ScalarType::u32, 0}};
  launch.kernels.assign(neighbour.launches, kernel);
  return launch;
}

std::string short_name(const Neighbour& neighbour) {
  const std::string size = size_text(neighbour.footprint, "");
  if (row_of(neighbour.operation).need == Need::copy_engines) {
    return fmt::format("{}-{}", row_of(neighbour.operation).name, size);
  }
  return fmt::format("{}-{}-{}-{}x{}", row_of(neighbour.operation).name,
                     row_of(neighbour.pattern).name, size, neighbour.blocks, neighbour.threads);
}

std::string in_words(const Neighbour& neighbour) {
  const OperationRow& row = row_of(neighbour.operation);
  const std::string size = size_text(neighbour.footprint, " ");
  if (row.need == Need::copy_engines) {
    return fmt::format("{} {}, {} per run", size, row.words, count_of(neighbour.launches, "time"));
  }
  std::string out =
      fmt::format("{} of {} threads {} {} within {}", count_of(neighbour.blocks, "block"),
                  neighbour.threads, row.words, row_of(neighbour.pattern).words, size);
  if (neighbour.operation == Operation::local) out += " per thread";
  if (neighbour.pattern == Pattern::stride) {
    append(out, ", {} from place to place", size_text(neighbour.stride, " "));
  }
  if (neighbour.apart != 0 && neighbour.operation != Operation::local) {
    out += ", every thread at a place of its own";
  }
  if (neighbour.in_flight > 1) append(out, ", {} at a time", neighbour.in_flight);
  append(out, "; {} per thread, {} per run", count_of(neighbour.steps, "access", "es"),
         count_of(neighbour.launches, "launch", "es"));
  if (neighbour.shared != 0) {
    append(out, ", {} of shared memory per block", size_text(neighbour.shared, " "));
  }
  return out;
}

}  // namespace demarc::study
