// Checks launches, places their buffers, and makes the initial content.
#include "demarc/launch/launch.hpp"
#include "demarc/base/rounding.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <set>

namespace demarc::gpu {
namespace {

constexpr std::uint64_t buffer_alignment = 256;    // bytes
constexpr std::size_t max_argument_bytes = 32764;  // per kernel, CUDA 12.1 and later
constexpr std::uint32_t max_block_threads = 1024;
constexpr std::uint32_t max_block_z = 64;
constexpr std::uint32_t max_grid_yz = 65535;
constexpr std::uint32_t max_grid_x = 0x7fffffff;

std::size_t size_of_argument(const Argument& argument) {
  if (const auto* scalar = std::get_if<Scalar>(&argument)) return size_of(scalar->type);
  if (const auto* bytes = std::get_if<ByteArgument>(&argument)) return bytes->bytes.size();
  if (std::holds_alternative<TensorMap>(argument)) return tensor_map_bytes;
  return sizeof(std::uint64_t);
}

Result<void> validate_shape(const KernelLaunch& kernel, const std::string& where) {
  const Dim3& block = kernel.block;
  const Dim3& grid = kernel.grid;
  if (block.count() == 0 || grid.count() == 0)
    return invalid_input("{}: grid and block must not be empty", where);
  if (block.count() > max_block_threads || block.z > max_block_z) {
    return invalid_input(
        "{}: a block of {}x{}x{} threads; a GPU takes at most {} threads, and 64 in z", where,
        block.x, block.y, block.z, max_block_threads);
  }
  if (kernel.dynamic_shared_bytes > max_shared_bytes) {
    return invalid_input("{}: {} bytes of dynamic shared memory; a GPU takes at most {} per block",
                         where, kernel.dynamic_shared_bytes, max_shared_bytes);
  }
  if (grid.x > max_grid_x || grid.y > max_grid_yz || grid.z > max_grid_yz) {
    return invalid_input("{}: a grid of {}x{}x{} blocks; a GPU takes at most {}x{}x{}", where,
                         grid.x, grid.y, grid.z, max_grid_x, max_grid_yz, max_grid_yz);
  }
  if (!kernel.cluster) return {};
  const Dim3& cluster = *kernel.cluster;
  const std::uint64_t sides = std::max({cluster.x, cluster.y, cluster.z});
  if (cluster.count() == 0 || sides > max_cluster_blocks || cluster.count() > max_cluster_blocks) {
    return invalid_input("{}: a cluster of {}x{}x{} blocks; a GPU takes 1 to {}", where, cluster.x,
                         cluster.y, cluster.z, max_cluster_blocks);
  }
  return {};
}

Result<void> validate_arguments(const Launch& launch, const KernelLaunch& kernel,
                                const std::string& where) {
  std::size_t bytes = 0;
  for (const Argument& argument : kernel.arguments) {
    bytes += size_of_argument(argument);
    const auto* const map = std::get_if<TensorMap>(&argument);
    if (map != nullptr) DEMARC_CHECK(validate(*map, where + ", a tensor map"));
    const auto* const image = std::get_if<ImageUse>(&argument);
    if (image != nullptr && image->image >= launch.images.size()) {
      return invalid_input("{}: texture or surface {} of {}", where, image->image,
                           launch.images.size());
    }
    const auto use = used_buffer(launch, argument);
    if (!use) continue;
    if (use->buffer >= launch.buffers.size()) {
      return invalid_input("{}: buffer {} of {}", where, use->buffer, launch.buffers.size());
    }
    const Buffer& buffer = launch.buffers[use->buffer];
    if (use->offset > buffer.bytes) {
      return invalid_input("{}: offset {} into buffer '{}' of {} bytes", where, use->offset,
                           buffer.name, buffer.bytes);
    }
  }
  if (bytes > max_argument_bytes) {
    return invalid_input("{}: {} bytes of arguments; a kernel takes at most {}", where, bytes,
                         max_argument_bytes);
  }
  return {};
}

Result<void> validate_images(const Launch& launch) {
  for (std::size_t i = 0; i < launch.images.size(); ++i) {
    const Image& image = launch.images[i];
    const std::string where = fmt::format("{} {}", kind_of(image), i);
    DEMARC_CHECK(validate(image, where));
    if (image.buffer >= launch.buffers.size())
      return invalid_input("{}: buffer {} of {}", where, image.buffer, launch.buffers.size());
    const Buffer& buffer = launch.buffers[image.buffer];
    const std::uint64_t end = image.offset + image.extent();
    if (image.offset > buffer.bytes || end > buffer.bytes) {
      return invalid_input("{}: its texels end {} bytes into buffer '{}' of {} bytes", where, end,
                           buffer.name, buffer.bytes);
    }
  }
  return {};
}

// In order of where they lie: buffers that say so.
std::map<std::uint64_t, const Buffer*> fixed_buffers(const Launch& launch) {
  std::map<std::uint64_t, const Buffer*> fixed;
  for (const Buffer& buffer : launch.buffers) {
    if (buffer.address != 0) fixed.emplace(buffer.address, &buffer);
  }
  return fixed;
}

// Bytes that a buffer takes. One more unit keeps a short overrun from landing in the next buffer.
std::uint64_t taken_by(const Buffer& buffer) {
  return round_up(buffer.bytes, buffer_alignment) + buffer_alignment;
}

Result<void> validate_addresses(const Launch& launch) {
  std::uint64_t end = 0;
  const Buffer* before = nullptr;
  for (const Buffer& buffer : launch.buffers) {
    if (buffer.address % buffer_alignment != 0) {
      return invalid_input("buffer '{}': its address {:#x} is not a multiple of {}", buffer.name,
                           buffer.address, buffer_alignment);
    }
  }
  const auto fixed = fixed_buffers(launch);
  const auto count = std::count_if(launch.buffers.begin(), launch.buffers.end(),
                                   [](const Buffer& buffer) { return buffer.address != 0; });
  if (fixed.size() != static_cast<std::size_t>(count)) {
    return invalid_input("two buffers have the same address");
  }
  for (const auto& [address, buffer] : fixed) {
    if (before != nullptr && address < end) {
      return invalid_input("buffers '{}' and '{}': they overlap, from {:#x} on", before->name,
                           buffer->name, address);
    }
    end = address + buffer->bytes;
    before = buffer;
  }
  return {};
}

}  // namespace

std::optional<std::string_view> bundled_name(std::string_view text) {
  constexpr std::string_view prefix = "bundled:";
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

Result<void> refuse_fixed_addresses(const Launch& launch) {
  for (const Buffer& buffer : launch.buffers) {
    if (buffer.address == 0) continue;
    return invalid_input(
        "buffer '{}' must lie at {:#x}, which no GPU can promise; only demarc emulate and demarc "
        "locality support fixed addresses",
        buffer.name, buffer.address);
  }
  return {};
}

std::optional<BufferUse> used_buffer(const Launch& launch, const Argument& argument) {
  if (const auto* use = std::get_if<BufferUse>(&argument)) return *use;
  if (const auto* map = std::get_if<TensorMap>(&argument))
    return BufferUse{map->buffer, map->offset};
  if (const auto* use = std::get_if<ImageUse>(&argument)) {
    const Image& image = launch.images[use->image];
    return BufferUse{image.buffer, image.offset};
  }
  return std::nullopt;
}

Result<void> refuse_tensor_maps(const Launch& launch, std::string_view who) {
  for (const KernelLaunch& kernel : launch.kernels) {
    for (const Argument& argument : kernel.arguments) {
      if (!std::holds_alternative<TensorMap>(argument)) continue;
      return invalid_input("kernel '{}': the launch gives it a tensor map, which {} not support",
                           kernel.kernel, who);
    }
  }
  return {};
}

Result<void> refuse_images(const KernelLaunch& kernel, std::string_view who) {
  for (const Argument& argument : kernel.arguments) {
    if (!std::holds_alternative<ImageUse>(argument)) continue;
    return invalid_input(
        "kernel '{}': the launch gives it a texture or a surface, which {} not take", kernel.kernel,
        who);
  }
  return {};
}

Result<void> refuse_clusters(const Launch& launch, std::string_view who) {
  for (const KernelLaunch& kernel : launch.kernels) {
    if (!kernel.cluster) continue;
    return invalid_input(
        "kernel '{}': the launch gives the size of its clusters, which {} not support",
        kernel.kernel, who);
  }
  return {};
}

Result<void> validate(const Launch& launch) {
  for (const Buffer& buffer : launch.buffers) {
    if (buffer.bytes == 0)
      return invalid_input("buffer '{}': at least one byte was expected", buffer.name);
    if (buffer.bytes > std::uint64_t{1} << 46) {
      return invalid_input("buffer '{}': {} bytes are above 2^46", buffer.name, buffer.bytes);
    }
    if (buffer.fill.kind == FillKind::pointers && buffer.fill.target >= launch.buffers.size()) {
      return invalid_input("buffer '{}': it points into buffer {} of {}", buffer.name,
                           buffer.fill.target, launch.buffers.size());
    }
  }
  DEMARC_CHECK(validate_addresses(launch));
  std::set<std::string_view> names;
  for (const Buffer& variable : launch.variables) {
    if (!names.insert(variable.name).second)
      return invalid_input("variable '{}': it is given twice", variable.name);
    if (variable.fill.kind == FillKind::pointers && variable.fill.target >= launch.buffers.size()) {
      return invalid_input("variable '{}': it points into buffer {} of {}", variable.name,
                           variable.fill.target, launch.buffers.size());
    }
  }
  DEMARC_CHECK(validate_images(launch));
  for (std::size_t i = 0; i < launch.kernels.size(); ++i) {
    const KernelLaunch& kernel = launch.kernels[i];
    const std::string where = fmt::format("kernel {} ('{}')", i, kernel.kernel);
    DEMARC_CHECK(validate_shape(kernel, where));
    DEMARC_CHECK(validate_arguments(launch, kernel, where));
  }
  return {};
}

std::vector<std::uint64_t> default_addresses(const Launch& launch, std::uint64_t base) {
  const auto fixed = fixed_buffers(launch);
  std::vector<std::uint64_t> addresses;
  std::uint64_t next = round_up(base, buffer_alignment);
  for (const Buffer& buffer : launch.buffers) {
    if (buffer.address != 0) {
      addresses.push_back(buffer.address);
      continue;
    }
    for (const auto& [address, other] : fixed) {
      if (next < address + taken_by(*other) && address < next + taken_by(buffer)) {
        next = address + taken_by(*other);
      }
    }
    addresses.push_back(next);
    next += taken_by(buffer);
  }
  return addresses;
}

std::vector<std::byte> pack_argument(const Argument& argument,
                                     std::span<const std::uint64_t> addresses) {
  if (const auto* structure = std::get_if<ByteArgument>(&argument)) return structure->bytes;
  if (const auto* map = std::get_if<TensorMap>(&argument)) {
    const PackedTensorMap packed = pack_tensor_map(*map, addresses[map->buffer] + map->offset);
    return {packed.begin(), packed.end()};
  }
  std::uint64_t bits = 0;
  if (const auto* scalar = std::get_if<Scalar>(&argument)) {
    bits = scalar->bits;
  } else if (const auto* image = std::get_if<ImageUse>(&argument)) {
    bits = image_handle(image->image);
  } else {
    const auto& use = std::get<BufferUse>(argument);
    bits = addresses[use.buffer] + use.offset;
  }
  std::vector<std::byte> bytes(size_of_argument(argument));
  std::memcpy(bytes.data(), &bits, bytes.size());
  return bytes;
}

Result<Memory> initial_memory(const Launch& launch, std::span<const std::uint64_t> addresses,
                              Zeros zeros) {
  const auto left_out = [&](const Buffer& buffer) {
    return zeros == Zeros::left_out && buffer.fill.kind == FillKind::zero;
  };
  const auto too_large = [](const Buffer& buffer) {
    return missing_capability("buffer '{}': {} bytes do not fit into this machine's memory",
                              buffer.name, buffer.bytes);
  };
  // The system promises more than it has, and ends a process that believes it.
  const auto machine = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t taken = 0;
  for (const Buffer& buffer : launch.buffers) {
    if (left_out(buffer)) continue;
    taken += buffer.bytes;
    if (taken > machine) return too_large(buffer);
  }
  Memory memory(launch.buffers.size());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const Buffer& buffer = launch.buffers[i];
    if (left_out(buffer)) continue;
    try {
      memory[i].resize(buffer.bytes);
    } catch (const std::bad_alloc&) {
      return too_large(buffer);
    }
    DEMARC_CHECK(fill_buffer(launch, i, addresses, memory[i]));
  }
  return memory;
}

}  // namespace demarc::gpu
