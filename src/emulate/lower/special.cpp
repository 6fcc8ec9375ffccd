// Reads special registers.
#include "lower/special.hpp"

#include <charconv>
#include <string_view>

#include "demarc/base/rounding.hpp"
#include "ops/cluster.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::SpecialRegister;

namespace {

// For %tid.y and its kin. %tid without a selector is %tid.x.
enum class Axis : std::uint8_t { x, y, z, w };

Axis axis_of(ptx::Selector selector) {
  switch (selector) {
    case ptx::Selector::y:
      return Axis::y;
    case ptx::Selector::z:
      return Axis::z;
    case ptx::Selector::w:
      return Axis::w;
    default:
      return Axis::x;
  }
}

// Grids and blocks have three dimensions; the fourth is 0.
std::uint32_t extent_of(const std::array<std::uint32_t, 3>& extents, Axis axis) {
  return axis == Axis::w ? 0 : extents[static_cast<std::size_t>(axis)];
}

// A GPU gives shared memory to a block in units: of 256 bytes before sm_80, of 128 since.
std::uint64_t allocated_shared_bytes(const KernelContext& kernel) {
  constexpr std::string_view prefix = "sm_";
  unsigned generation = 0;
  for (const std::string_view target : kernel.module().targets) {
    if (!target.starts_with(prefix)) continue;
    std::from_chars(target.data() + prefix.size(), target.data() + target.size(), generation);
  }
  return round_up(kernel.shared.bytes() + kernel.request.dynamic_shared_bytes,
                  generation >= 80 ? 128U : 256U);
}

std::optional<std::uint64_t> known_before_launch(const KernelContext& kernel, SpecialRegister which,
                                                 Axis axis) {
  const LowerRequest& request = kernel.request;
  switch (which) {
    case SpecialRegister::ntid:
      return extent_of(request.block, axis);
    case SpecialRegister::nctaid:
      return extent_of(kernel.program.grid, axis);
    case SpecialRegister::nclusterid: {
      const auto blocks = std::max(extent_of(kernel.program.cluster.blocks, axis), 1U);
      return extent_of(kernel.program.grid, axis) / blocks;
    }
    case SpecialRegister::tid:
    case SpecialRegister::ctaid:
    case SpecialRegister::clusterid:
    case SpecialRegister::cluster_ctaid:
      return axis == Axis::w ? std::optional<std::uint64_t>(0) : std::nullopt;
    case SpecialRegister::cluster_nctaid:
      return extent_of(kernel.program.cluster.blocks, axis);
    case SpecialRegister::cluster_nctarank:
      return kernel.program.cluster.size();
    case SpecialRegister::is_explicit_cluster:
      return kernel.program.explicit_clusters ? 1 : 0;
    case SpecialRegister::nwarpid:
      return kernel.program.warps();
    case SpecialRegister::nsmid:
      return request.sms;
    case SpecialRegister::gridid:
      return 0;
    case SpecialRegister::envreg1:
    case SpecialRegister::envreg2:
      if (!kernel.program.grid_workspace)
        kernel.program.grid_workspace = std::make_unique<GridWorkspace>();
      return which == SpecialRegister::envreg1 ? GridWorkspace::base >> 32
                                               : GridWorkspace::base & 0xffffffffU;
    // The system takes no shared memory for itself.
    case SpecialRegister::reserved_smem_offset_begin:
    case SpecialRegister::reserved_smem_offset_end:
    case SpecialRegister::reserved_smem_offset_cap:
      return 0;
    case SpecialRegister::dynamic_smem_size:
      return request.dynamic_shared_bytes;
    // The same, as the system takes none for itself.
    case SpecialRegister::total_smem_size:
    case SpecialRegister::aggr_smem_size:
      return allocated_shared_bytes(kernel);
    case SpecialRegister::current_graph_exec:
      return 0;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Source> special_source(const KernelContext& kernel, const ptx::Operand& operand,
                                     Frame& frame, Emitter& code) {
  const auto which = static_cast<SpecialRegister>(operand.index);
  const Axis axis = axis_of(operand.selector);
  const ptx::Type type = ptx::info(which).type;
  if (const auto value = known_before_launch(kernel, which, axis))
    return frame.constant(type, *value);

  const auto width = static_cast<std::uint8_t>(ptx::byte_size(type));
  const auto read_index = [&](Handler handler, const Register& d) {
    MicroOp& op = code.emit(handler);
    op.d = d.slot.offset;
    op.imm = static_cast<std::uint64_t>(axis);
    return value_of(d);
  };
  switch (which) {
    case SpecialRegister::tid:
      return read_index(control::read_tid, frame.vector(width));
    case SpecialRegister::ctaid:
      return read_index(control::read_block_index, frame.uniform(width));
    case SpecialRegister::clusterid:
      return read_index(cluster_ops::read_cluster, frame.uniform(width));
    case SpecialRegister::cluster_ctaid:
      return read_index(cluster_ops::read_block_in_cluster, frame.uniform(width));
    case SpecialRegister::cluster_ctarank:
      return read_index(cluster_ops::read_rank, frame.uniform(width));
    case SpecialRegister::laneid:
    case SpecialRegister::warpid:
    case SpecialRegister::smid:
    case SpecialRegister::lanemask_eq:
    case SpecialRegister::lanemask_le:
    case SpecialRegister::lanemask_lt:
    case SpecialRegister::lanemask_ge:
    case SpecialRegister::lanemask_gt:
    case SpecialRegister::clock:
    case SpecialRegister::clock_hi:
    case SpecialRegister::clock64:
    case SpecialRegister::globaltimer:
    case SpecialRegister::globaltimer_lo:
    case SpecialRegister::globaltimer_hi: {
      const Register d = frame.vector(width);
      MicroOp& op = code.emit(control::read_special);
      op.d = d.slot.offset;
      op.imm = operand.index;
      op.bytes = width;
      return value_of(d);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace demarc::emulate
