// Finds what is wrong with accesses to memory, lane by lane, and reports it.
#include <algorithm>
#include <bit>

#include "machine.hpp"
#include "unwritten.hpp"

namespace demarc::emulate {

std::string thread_name(const Warp& warp, unsigned lane) {
  return fmt::format("thread ({},{},{})", warp.tid[0][lane], warp.tid[1][lane], warp.tid[2][lane]);
}

PendingFinding* Block::reported(const MicroOp* op, FindingKind kind) {
  for (PendingFinding& known : findings)
    if (known.instruction == op->instruction && known.finding.kind == kind) return &known;
  return nullptr;
}

bool Block::counted(const MicroOp* op, FindingKind kind) {
  PendingFinding* const known = reported(op, kind);
  if (known != nullptr) ++known->finding.count;
  return known != nullptr;
}

void Block::report(const Warp& warp, const MicroOp* op, unsigned lane, FindingKind kind,
                   std::string detail) {
  if (counted(op, kind)) return;
  const CodeInstruction& instruction = program->instructions[op->instruction];
  PendingFinding pending;
  pending.instruction = op->instruction;
  Finding& finding = pending.finding;
  finding.kind = kind;
  finding.kernel = program->kernel;
  finding.block = index;
  finding.thread = {warp.tid[0][lane], warp.tid[1][lane], warp.tid[2][lane]};
  finding.line = instruction.trace.line;
  finding.source = instruction.source;
  finding.instruction = instruction.trace.text;
  finding.detail = std::move(detail);
  findings.push_back(std::move(pending));
}

const MicroOp* Block::stop_with(const Warp& warp, const MicroOp* op, unsigned lane,
                                FindingKind kind, std::string detail) {
  report(warp, op, lane, kind, std::move(detail));
  stopped = true;
  return nullptr;
}

namespace {

const char* block_mode_name(AccessMode mode) {
  switch (mode) {
    case AccessMode::load:
      return "read";
    case AccessMode::store:
      return "write";
    case AccessMode::atomic:
      return "atomic";
  }
  return "";
}

const char* block_place_name(AddressKind kind) {
  switch (kind) {
    case AddressKind::shared:
      return "shared memory";
    case AddressKind::local:
      return "local memory";
    case AddressKind::constant:
      return "constant memory";
    case AddressKind::param:
      return "kernel parameters";
    default:
      return "global memory";
  }
}

// Why no buffer has all of the bytes at `address`.
std::string describe_global_neighbourhood(const Program& program, std::uint64_t address,
                                          std::uint32_t bytes) {
  const Region* below = nullptr;
  const Region* above = nullptr;
  for (const Region& region : program.regions) {
    if (region.low <= address) {
      below = &region;
    } else if (above == nullptr) {
      above = &region;
    }
  }
  if (address < 4096) return "it is a null pointer";
  if (program.heap != nullptr && DeviceHeap::contains(address))
    return program.heap->describe(address);
  if (below != nullptr && address < below->high) {
    return fmt::format("it reaches {} bytes behind the end of the {} bytes at 0x{:x}",
                       address + bytes - below->high, below->high - below->low, below->low);
  }
  if (above != nullptr && above->low - address < bytes) {
    return fmt::format("it begins {} bytes before the {} bytes at 0x{:x}", above->low - address,
                       above->high - above->low, above->low);
  }
  if (below != nullptr && address - below->high < (std::uint64_t{1} << 30)) {
    return fmt::format("it lies {} bytes after the end of the {} bytes at 0x{:x}",
                       address - below->high, below->high - below->low, below->low);
  }
  if (above != nullptr && above->low - address < (std::uint64_t{1} << 30)) {
    return fmt::format("it lies {} bytes before the {} bytes at 0x{:x}", above->low - address,
                       above->high - above->low, above->low);
  }
  return "no buffer is near it";
}

// Where in shared memory an access goes beyond its end, by the variable before it.
std::string describe_shared_neighbourhood(const Program& program, std::uint64_t address,
                                          std::uint64_t size) {
  constexpr std::uint64_t near = 1 << 20;
  std::string out = fmt::format("it has {} bytes", size);
  const SharedPlace* before = nullptr;
  for (const SharedPlace& place : program.shared_places) {
    if (place.offset <= address && (before == nullptr || place.offset >= before->offset))
      before = &place;
    // Addresses have 32 bits.
    if (place.offset == 0 && address + near > UINT32_MAX && address <= UINT32_MAX) {
      return out + fmt::format("; it lies {} bytes before '{}'", (std::uint64_t{1} << 32) - address,
                               place.name);
    }
  }
  if (before == nullptr || address - before->offset > near) return out;
  const std::uint64_t inside = address - before->offset;
  return out + (inside < before->bytes
                    ? fmt::format("; it reaches behind the end of '{}'", before->name)
                    : fmt::format("; it lies {} bytes after the end of the {} bytes of '{}'",
                                  inside - before->bytes, before->bytes, before->name));
}

}  // namespace

void Block::slow_access(Warp& warp, const MicroOp* op, Access& access, AddressKind kind,
                        std::uint32_t bytes, AccessMode mode) {
  count_repeated(warp, op, access, kind, bytes, mode);
  if (access.mask == 0) return;
  Region local_area;
  if (kind == AddressKind::local) local_area = local_region(warp);
  const auto region_of = [&](AddressKind place, std::uint64_t address) -> const Region* {
    switch (place) {
      case AddressKind::shared:
        return &shared_region;
      case AddressKind::local:
        return &local_area;
      case AddressKind::constant:
        return &program->constant_region;
      case AddressKind::param:
        return &program->parameter_region;
      default:
        return program->find_region(address, address + bytes);
    }
  };
  Mask good = 0;
  LaneShadows shadows{};
  LaneSpaces spaces{};
  spaces.fill(access.space);
  std::array<std::uint64_t, warp_size> hosts;
  for (Mask rest = access.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::uint64_t address = access.addresses[lane];
    AddressKind place = kind;
    if (kind == AddressKind::global &&
        op->kind == static_cast<std::uint8_t>(AddressKind::generic)) {
      // The lanes of a generic access may lead to different spaces.
      if (address - shared_window < window_bytes) {
        place = AddressKind::shared;
        spaces[lane] = MemorySpace::shared;
        address -= shared_window;
      } else if (address - local_window < window_bytes) {
        place = AddressKind::local;
        spaces[lane] = MemorySpace::local;
        address -= local_window;
        local_area = local_region(warp);
      } else if (address - constant_window < window_bytes) {
        place = AddressKind::constant;  // always written, as parameters are
        address -= constant_window;
      } else if (address - param_window < window_bytes) {
        place = AddressKind::param;
        address -= param_window;
      }
    }
    const Region* region = nullptr;
    if (place == AddressKind::shared && cluster != nullptr && address >= shared_rank_unit) {
      const std::uint64_t rank = (address >> shared_rank_shift) - 1;
      const Block* const other = cluster->block(rank);
      if (other == nullptr) {
        report(warp, op, lane, FindingKind::out_of_bounds,
               fmt::format(
                   "{} of {} bytes in shared memory of block {} of the cluster, which {}",
                   block_mode_name(mode), bytes, rank,
                   rank < cluster->size() ? "has not begun, or has ended" : "has no such block"));
        continue;
      }
      region = &other->shared_region;
      address &= shared_rank_unit - 1;
    } else {
      region = region_of(place, address);
    }
    const std::uint64_t pitch = place == AddressKind::local ? local_bytes : 0;
    const bool writes = mode != AccessMode::load;
    const bool read_only = place == AddressKind::constant || place == AddressKind::param ||
                           (region != nullptr && !region->writable);
    // What find_region() gives has all of the bytes, and the other spaces begin at 0.
    if (region == nullptr || address > region->high || region->high - address < bytes ||
        (writes && read_only)) {
      if (counted(op, FindingKind::out_of_bounds)) continue;
      report(warp, op, lane, FindingKind::out_of_bounds,
             fmt::format("{} of {} bytes at 0x{:x} in {}: {}", block_mode_name(mode), bytes,
                         address, block_place_name(place),
                         region == nullptr ? describe_global_neighbourhood(*program, address, bytes)
                         : writes && read_only ? std::string("it is read-only")
                         : place == AddressKind::shared
                             ? describe_shared_neighbourhood(*program, address, region->high)
                             : fmt::format("it has {} bytes", region->high)));
      continue;
    }
    if ((address & (bytes - 1)) != 0) {
      if (counted(op, FindingKind::misaligned)) continue;
      report(warp, op, lane, FindingKind::misaligned,
             fmt::format("{} of {} bytes at 0x{:x} in {}: the address must be a multiple of {}",
                         block_mode_name(mode), bytes, address, block_place_name(place), bytes));
      continue;
    }
    if (region->shadow != nullptr)
      shadows[lane] = region->shadow + (address - region->low) + lane * pitch;
    access.addresses[lane] = address;
    hosts[lane] = address + region->delta + lane * pitch;
    good |= Mask{1} << lane;
  }
  access.mask = good;
  if (mode != AccessMode::store) read_unwritten(warp, op, access, bytes, shadows, spaces);
  for (Mask rest = good; rest != 0 && mode != AccessMode::load; rest &= rest - 1) {
    std::uint8_t* const shadow = shadows[static_cast<unsigned>(std::countr_zero(rest))];
    if (shadow != nullptr) std::fill(shadow, shadow + bytes, wholly_written);
  }
  if (mode == AccessMode::store && warp.tracked) store_tracked(warp, op, access, shadows);
  for (Mask rest = good; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    access.addresses[lane] = hosts[lane];
  }
  access.affine = false;
  access.halves = false;
  access.delta = 0;
  access.pitch = 0;
  access.shadow = nullptr;
}

void Block::read_unwritten(Warp& warp, const MicroOp* op, const Access& access, std::uint32_t bytes,
                           const LaneShadows& shadows, const LaneSpaces& spaces) {
  const auto some_missing = [&](unsigned lane) {
    const std::uint8_t* const at = shadows[lane];
    return at != nullptr &&
           std::any_of(at, at + bytes, [](std::uint8_t byte) { return byte != wholly_written; });
  };
  Mask missing = 0;
  for (Mask rest = access.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (some_missing(lane)) missing |= Mask{1} << lane;
  }
  if (missing == 0) return;
  if ((op->flags & memory_tracked) != 0) {
    if (unwritten == nullptr) unwritten = std::make_unique<Unwritten>(*this);
    unwritten->load(warp, op, access, shadows, spaces);
    warp.begins = !warp.tracked;
    return;
  }
  for (Mask rest = missing; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (counted(op, FindingKind::uninitialised_read)) continue;
    report(warp, op, lane, FindingKind::uninitialised_read,
           fmt::format("{} bytes at 0x{:x} in {} memory were not written before", bytes,
                       access.addresses[lane], to_string(spaces[lane])));
  }
}

void Block::store_tracked(Warp& warp, const MicroOp* op, const Access& access,
                          const LaneShadows& shadows) {
  if (program->tracked[op->instruction].rule == TrackRule::access)
    unwritten->store(warp, op, access, shadows);
}

}  // namespace demarc::emulate
