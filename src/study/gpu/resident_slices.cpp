// Cuts the launches of a neighbour into slices.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "gpu/resident_launch.hpp"

namespace demarc::study {
namespace {

constexpr std::size_t slices_in_flight = 2;  // one runs, and one is ready when it ends
constexpr std::uint32_t waves = 8;           // per slice; with one, short blocks wait for the host

}  // namespace

// The parameters that rewrite_grid_part() added, and all blocks in a row.
Result<void> ResidentLaunch::make_sliced(const LaunchForm& form, Kernel& kernel) {
  gives_way_to_ = form.gives_way_to;
  longest_slice_ = form.longest_slice;
  while (slice_ends_.size() < slices_in_flight) {
    DEMARC_TRY(auto event, cuda::Event::create(gpu_));
    slice_ends_.push_back(std::move(event));
  }
  const auto& block = kernel.shape.block;
  DEMARC_TRY(const auto resident, kernel.function.blocks_per_sm(block[0] * block[1] * block[2],
                                                                kernel.shape.shared_bytes));
  kernel.slice_blocks = waves * std::max(resident, 1U) * gpu_->sm_count();
  std::uint64_t blocks = 1;
  const auto push = [&kernel](std::uint32_t value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    kernel.arguments.push_back(std::move(bytes));
  };
  push(0);  // the number of the first block
  for (std::uint32_t& extent : kernel.shape.grid) {
    push(extent);
    blocks *= std::exchange(extent, 1);
  }
  if (blocks > std::numeric_limits<std::uint32_t>::max()) {
    return missing_capability("it cannot be cut into slices: a grid has {} blocks", blocks);
  }
  kernel.shape.grid[0] = static_cast<std::uint32_t>(blocks);
  return {};
}

// `arguments` are pointers to the kernel's arguments, and more behind them.
Result<void> ResidentLaunch::enqueue_slices(const cuda::Stream& stream, const Kernel& kernel,
                                            std::vector<void*> arguments) const {
  constexpr std::size_t added = 4;  // the first block and the grid
  const std::uint64_t blocks = kernel.shape.grid[0];
  cuda::LaunchShape shape = kernel.shape;
  for (std::uint64_t at = 0; at < blocks; at += kernel.slice_blocks) {
    auto first = static_cast<std::uint32_t>(at);
    arguments[kernel.arguments.size() - added] = &first;
    shape.grid[0] =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(kernel.slice_blocks, blocks - at));
    const cuda::Event& end = slice_ends_[slices_ % slices_in_flight];
    if (slices_ >= slices_in_flight) DEMARC_CHECK(wait_for_slice(end));
    gives_way_to_->give_way();
    DEMARC_CHECK(cuda::launch_raw(stream, kernel.function, shape, arguments.data()));
    DEMARC_CHECK(end.record(stream));
    ++slices_;
  }
  return {};
}

// Looks without a pause, because a slice may take a few microseconds.
Result<void> ResidentLaunch::wait_for_slice(const cuda::Event& end) const {
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {
    const cuda::CuResult code = gpu_->api().cuEventQuery(end.handle());
    if (code != cuda::cu_error_not_ready) return gpu_->check(code, "a slice of a neighbour");
    if (std::chrono::steady_clock::now() - begun > longest_slice_) {
      return check_failed("a slice of '{}' did not end within {} ms", loaded_.launch.name,
                          longest_slice_.count());
    }
    std::this_thread::yield();
  }
}

}  // namespace demarc::study
