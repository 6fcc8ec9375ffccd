// Makes a memory system from a device description, checks it, and prints it.
#include "demarc/sim/memory/spec.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "demarc/base/gf2.hpp"
#include "demarc/base/random.hpp"
#include "events.hpp"
#include "tag_array.hpp"

namespace demarc::sim::memory {
namespace {

// Numbers of a description as times; remembers the first that is not a time of a simulation.
class Times {
 public:
  explicit Times(double clock_hz) : clock_hz_(clock_hz) {}

  Cycles of_ns(std::string_view name, double ns) {
    return Cycles(checked(name, std::round(ns * 1e-9 * clock_hz_)));
  }
  // Without what is left of a cycle.
  Cycles of_cycles(std::string_view name, double cycles) { return Cycles(checked(name, cycles)); }
  // What a sector takes on a link of `bytes` a cycle; 0: never the limit.
  Ticks of_sector(std::string_view name, double bytes) {
    if (bytes <= 0) return {};
    return Ticks(
        checked(name, std::round(static_cast<double>(sector_bytes * ticks_per_cycle) / bytes)));
  }
  // What one of those takes of which so many pass in a cycle.
  Ticks of_one(std::string_view name, double in_a_cycle) {
    return Ticks(checked(name, std::round(ticks_per_cycle / in_a_cycle)));
  }
  [[nodiscard]] Result<void> all_well(std::string_view device) const {
    if (wrong_.empty()) return {};
    return invalid_input("{}: {}: such a time cannot be simulated", device, wrong_);
  }

 private:
  static constexpr double most = 4294967295;
  std::uint64_t checked(std::string_view name, double number) {
    if (number >= 0 && number <= most) return static_cast<std::uint64_t>(number);
    if (wrong_.empty()) wrong_ = name;
    return 0;
  }
  double clock_hz_;
  std::string wrong_;
};

// The rows of `hash` that the module does not already fix: what is left to tell apart inside one.
gpu::LinearHash inside_module(const gpu::LinearHash& hash, const gpu::LinearHash& module) {
  gpu::LinearHash left;
  auto known = module.rows;
  for (const std::uint64_t row : hash.rows) {
    const std::size_t before = gf2_rank(known);
    known.push_back(row);
    if (gf2_rank(known) > before) {
      left.rows.push_back(row);
    } else {
      known.pop_back();
    }
  }
  return left;
}

// Folds the line address onto `bits` set bits, for caches whose hash is not known.
gpu::LinearHash folded_sets(std::uint32_t bits) {
  gpu::LinearHash hash;
  for (std::uint32_t i = 0; i < bits; ++i) {
    std::uint64_t mask = 0;
    for (std::uint32_t bit = line_shift + i; bit < 39; bit += bits) mask |= std::uint64_t{1} << bit;
    hash.rows.push_back(mask);
  }
  return hash;
}

// As many sets as a power of two allows with at least `least` ways.
CacheSpec shape_cache(std::uint64_t lines, std::uint32_t least) {
  CacheSpec cache;
  if (lines == 0) return cache;
  const std::uint64_t sets = std::bit_floor(std::max<std::uint64_t>(lines / least, 1));
  cache.sets = static_cast<std::uint32_t>(sets);
  cache.ways = static_cast<std::uint32_t>(lines / sets);
  return cache;
}

// SMs and slices lie on a plane, drawn from the seed; latency grows with the distance.
std::vector<std::uint8_t> plane_distances(const Spec& spec, double spread, std::uint64_t seed) {
  std::vector<std::uint8_t> table;
  if (spread <= 0) return table;
  Random random(seed);
  struct Spot {
    double x, y;
  };
  std::vector<Spot> sms(spec.sms());
  for (Spot& spot : sms) spot = {random.uniform(), random.uniform()};
  for (std::uint32_t slice = 0; slice < spec.slices; ++slice) {
    const Spot here{random.uniform(), random.uniform()};
    for (const Spot& sm : sms) {
      const double share = std::hypot(here.x - sm.x, here.y - sm.y) / std::sqrt(2.0);
      table.push_back(static_cast<std::uint8_t>(std::min(255.0, std::round(share * spread))));
    }
  }
  return table;
}

Result<void> fill_address(const gpu::Device& device, std::uint64_t seed, Spec& spec) {
  const gpu::AddressMap& map = *device.address_map;
  if (device.dram.size_bytes > max_bytes) {
    return invalid_input("{}: dram.size_bytes: {} are more than the {} that can be simulated",
                         device.name, device.dram.size_bytes, max_bytes);
  }
  AddressSpec& address = spec.address;
  address.module = map.module;
  if (map.stack) address.stack = *map.stack;
  address.page_bytes = map.page_bytes;
  address.row_shift = device.memory_system->row_shift;
  address.seed = seed;
  spec.slices = address.module.count() * address.stack.modulus;
  const std::uint64_t lines = device.l2.size_bytes / line_bytes / spec.slices;
  if (map.set.empty()) {
    spec.l2 = shape_cache(lines, device.l2.ways != 0 ? device.l2.ways : 16);
    address.set = folded_sets(static_cast<std::uint32_t>(std::countr_zero(spec.l2.sets)));
  } else {
    address.set = inside_module(map.set, map.module);
    if (address.set.rows.size() + map.module.rows.size() != map.set.rows.size()) {
      return invalid_input("{}: address_map.set_masks must contain every mask of module_masks",
                           device.name);
    }
    spec.l2 = {address.set.count(), static_cast<std::uint32_t>(lines / address.set.count())};
  }
  if (spec.l2.ways == 0) {
    return invalid_input(
        "{}: an L2 of {} bytes is too small: each of its {} sets per slice needs a line",
        device.name, device.l2.size_bytes, spec.l2.sets);
  }
  address.bank =
      map.bank.empty() ? device.memory_system->bank : inside_module(map.bank, map.module);
  spec.banks = address.bank.count();
  spec.miss_registers = device.memory_system->miss_registers;
  spec.uncached_registers = map.miss_registers;
  return {};
}

void fill_ports(const gpu::LinearHash& port, Spec& spec) {
  const std::uint32_t stacks = spec.address.stack.modulus;
  for (std::uint32_t slice = 0; slice < spec.slices; ++slice) {
    spec.port_of_slice.push_back(port.empty() ? slice
                                              : port(slice / stacks) * stacks + slice % stacks);
  }
  spec.ports = 1 + *std::max_element(spec.port_of_slice.begin(), spec.port_of_slice.end());
}

Result<void> fill_timing(const gpu::Device& device, Spec& spec) {
  const gpu::MemorySystem& system = *device.memory_system;
  Times times(spec.clock_hz);
  const auto at_least_one = [](Ticks ticks) { return std::max(ticks, Ticks(1)); };
  spec.sm_ticks =
      at_least_one(times.of_sector("memory_system.sm_link_bytes", system.sm_link_bytes));
  spec.gpc_ticks = times.of_sector("memory_system.gpc_link_bytes", system.gpc_link_bytes);
  const auto or_else = [](double bytes, double other) { return bytes > 0 ? bytes : other; };
  spec.sm_store_ticks = at_least_one(times.of_sector(
      "memory_system.sm_store_bytes", or_else(system.sm_store_bytes, system.sm_link_bytes)));
  const double gpc_store_bytes = or_else(system.gpc_store_bytes, system.gpc_link_bytes);
  spec.gpc_store_ticks = times.of_sector("memory_system.gpc_store_bytes", gpc_store_bytes);
  spec.gpc_atomic_ticks = times.of_sector("memory_system.gpc_atomic_bytes",
                                          or_else(system.gpc_atomic_bytes, gpc_store_bytes));
  const double write_bytes = or_else(system.port_write_bytes, system.port_bytes);
  spec.port_ticks = at_least_one(times.of_sector("memory_system.port_bytes", system.port_bytes));
  spec.port_write_ticks =
      at_least_one(times.of_sector("memory_system.port_write_bytes", write_bytes));
  spec.port_atomic_ticks = at_least_one(times.of_sector(
      "memory_system.port_atomic_bytes", or_else(system.port_atomic_bytes, write_bytes)));
  spec.shared_ticks = times.of_sector("memory_system.shared_bytes",
                                      system.shared_bytes * sector_bytes / shared_row_bytes);
  spec.block_start_cycles =
      times.of_cycles("memory_system.block_start_cycles", std::round(system.block_start_cycles));
  spec.launch_misses = system.launch_misses;
  spec.issue_ticks = times.of_one("memory_system.issue_per_cycle", system.issue_per_cycle);
  if (system.float_per_cycle > 0)
    spec.float_ticks = times.of_one("memory_system.float_per_cycle", system.float_per_cycle);
  spec.instruction_cycles =
      times.of_cycles("memory_system.instruction_latency_cycles",
                      std::max(1.0, std::round(system.instruction_latency_cycles)));
  if (device.l1.latency_cycles > 0)
    spec.l1_hit_cycles = times.of_cycles("l1.latency_cycles", device.l1.latency_cycles);
  spec.burst_ticks =
      at_least_one(times.of_sector("dram.bandwidth_bytes_per_s", device.dram.bandwidth_bytes_per_s /
                                                                     spec.clock_hz / spec.slices));
  spec.burst_sectors = std::max(system.burst_bytes / sector_bytes, 1U);
  spec.precharge_cycles = times.of_ns("memory_system.precharge_ns", system.precharge_ns);
  spec.activate_cycles = times.of_ns("memory_system.activate_ns", system.activate_ns);
  spec.column_cycles = times.of_ns("memory_system.column_ns", system.column_ns);
  spec.row_cycles = times.of_ns("memory_system.row_cycle_ns", system.row_cycle_ns);
  spec.activate_gap_cycles = times.of_ns("memory_system.activate_gap_ns", system.activate_gap_ns);
  spec.activate_window_cycles =
      times.of_ns("memory_system.activate_window_ns", system.activate_window_ns);
  spec.refresh_interval_cycles =
      times.of_ns("memory_system.refresh_interval_ns", system.refresh_interval_ns);
  spec.refresh_cycles = times.of_ns("memory_system.refresh_ns", system.refresh_ns);
  spec.row_idle_cycles = times.of_ns("memory_system.row_idle_ns", system.row_idle_ns);
  spec.turnaround_cycles = times.of_ns("memory_system.turnaround_ns", system.turnaround_ns);
  spec.write_high = system.write_queue;
  spec.write_low = system.write_queue / 4;
  spec.turn = system.turn_accesses == 0 ? spec.write_high - spec.write_low : system.turn_accesses;
  spec.launch_cycles = times.of_ns("memory_system.launch_gap_ns", system.launch_gap_ns);
  const Cycles hit = times.of_cycles("l2.latency_cycles", device.l2.latency_cycles);
  const Cycles miss = times.of_cycles("dram.latency_cycles", device.dram.latency_cycles);
  const Cycles spread =
      times.of_cycles("memory_system.latency_spread_cycles", system.latency_spread_cycles / 2);
  DEMARC_CHECK(times.all_well(device.name));
  // What is left of the latencies measured from outside is the way there and back.
  spec.request_cycles = spec.reply_cycles = spec.l2_cycles = spec.dram_cycles = Cycles();
  if (hit < spec.l2_hit_latency() + spread + Cycles(8)) {
    return invalid_input("{}: l2.latency_cycles: {} cycles are less than the links alone take ({})",
                         device.name, hit, spec.l2_hit_latency() + spread);
  }
  const Cycles rest = hit - spread - spec.l2_hit_latency();
  spec.l2_cycles = rest / 4;
  spec.request_cycles = (rest - spec.l2_cycles) / 2;
  spec.reply_cycles = rest - spec.l2_cycles - spec.request_cycles;
  if (miss < spec.dram_latency() + spread) {
    return invalid_input(
        "{}: dram.latency_cycles: {} cycles are less than an L2 hit and a row activation take ({})",
        device.name, miss, spec.dram_latency() + spread);
  }
  spec.dram_cycles = miss - spread - spec.dram_latency();
  return {};
}

Result<void> fill_translation(const gpu::Device& device, Spec& spec) {
  if (!device.address_translation) return {};
  const gpu::AddressTranslation& translation = *device.address_translation;
  Times times(spec.clock_hz);
  for (const gpu::TranslationLevel& level : translation.levels) {
    spec.tlbs.push_back(
        {.entries = level.entries,
         .page_bits = static_cast<std::uint32_t>(std::countr_zero(level.pages_per_entry)),
         .hit_cycles =
             times.of_cycles("address_translation.levels.hit_cycles", std::round(level.hit_cycles)),
         .per_sm = level.per_sm});
  }
  spec.walkers = translation.walkers;
  spec.table_entry_bytes = translation.entry_bytes;
  const Cycles walk =
      times.of_cycles("address_translation.walk_cycles", std::round(translation.walk_cycles));
  DEMARC_CHECK(times.all_well(device.name));
  if (walk < spec.walk_latency()) {
    return invalid_input(
        "{}: address_translation.walk_cycles: {} cycles are fewer than a read of the L2 takes ({})",
        device.name, walk, spec.walk_latency());
  }
  spec.walk_cycles = walk - spec.walk_latency();
  return {};
}

}  // namespace

Cycles Spec::walk_latency() const {
  return walk_cycles + cycles_of(port_ticks) + cycles_of(walk_sectors() * port_ticks) + l2_cycles;
}

Cycles Spec::l2_hit_latency() const {
  return 2 * (cycles_of(sm_ticks) + cycles_of(gpc_ticks) + cycles_of(port_ticks)) + request_cycles +
         l2_cycles + reply_cycles;
}

Cycles Spec::dram_latency() const {
  return l2_hit_latency() + dram_cycles + activate_cycles + column_cycles +
         cycles_of(burst_sectors * burst_ticks) + cycles_of(burst_sectors * port_write_ticks);
}

Result<Spec> make_spec(const gpu::Device& device, std::uint64_t seed) {
  const auto lacks = [&](std::string_view what) {
    return missing_capability("{}: the description has no {}, so its memory cannot be simulated",
                              device.name, what);
  };
  if (!device.address_map || device.address_map->module.empty()) return lacks("address_map");
  if (!device.memory_system) return lacks("memory_system");
  if (device.l2.size_bytes == 0 || device.l2.latency_cycles == 0)
    return lacks("l2 size or latency");
  if (device.dram.bandwidth_bytes_per_s == 0 || device.dram.latency_cycles == 0) {
    return lacks("dram bandwidth or latency");
  }
  if (device.sm_clock_hz == 0) return lacks("sm_clock_hz");
  Spec spec;
  spec.name = device.name;
  spec.clock_hz = device.sm_clock_hz;
  spec.gpc_of_sm.assign(device.topology.sm_count(), 0);
  for (const gpu::Tpc& tpc : device.topology.tpcs) {
    for (const SmIndex sm : tpc.sms) spec.gpc_of_sm[sm] = tpc.gpc.raw();
  }
  spec.gpcs = device.topology.gpc_count();
  spec.threads = device.sm.threads;
  spec.blocks = device.sm.blocks;
  spec.shared_bytes = device.sm.shared_bytes;
  spec.registers = device.sm.registers;
  spec.l1_miss_registers = device.memory_system->l1_miss_registers;
  spec.store_registers = device.memory_system->store_registers;
  spec.l1 = shape_cache(device.l1.size_bytes / line_bytes, 4);
  DEMARC_CHECK(fill_address(device, seed, spec));
  fill_ports(device.memory_system->port, spec);
  DEMARC_CHECK(fill_timing(device, spec));
  DEMARC_CHECK(fill_translation(device, spec));
  spec.distances =
      plane_distances(spec, device.memory_system->latency_spread_cycles, seed ^ 0x6d61ULL);
  DEMARC_CHECK(check_spec(spec));
  return spec;
}

Result<void> check_spec(const Spec& spec) {
  const auto wrong = [&](std::string_view what) {
    return invalid_input("{}: {}", spec.name.empty() ? "memory system" : spec.name, what);
  };
  if (spec.gpc_of_sm.empty()) return wrong("there is no SM");
  for (const std::uint32_t gpc : spec.gpc_of_sm) {
    if (gpc >= spec.gpcs) return wrong("an SM lies in a GPC that does not exist");
  }
  if (spec.slices != spec.address.module.count() * spec.address.stack.modulus) {
    return wrong("the address map leads to another number of slices than there are");
  }
  if (spec.slices > 65535 || spec.sms() > 65535) return wrong("more SMs or slices than 65535");
  if (spec.port_of_slice.size() != spec.slices) return wrong("not every slice has a port");
  for (const std::uint32_t port : spec.port_of_slice) {
    if (port >= spec.ports) return wrong("a slice has a port that does not exist");
  }
  if (spec.l2.ways == 0 || spec.l2.sets != spec.address.set.count()) {
    return wrong("the set function leads to another number of L2 sets than there are");
  }
  if (spec.banks != spec.address.bank.count()) {
    return wrong("the bank function leads to another number of banks than there are");
  }
  if (spec.address.module.rows.size() > 16 || spec.address.set.rows.size() > 16 ||
      spec.address.bank.rows.size() > 8 || spec.address.stack.number.rows.size() > 24) {
    return wrong("more than 16 module or set bits, 8 bank bits or 24 bits of the modulo stage");
  }
  if (std::max(spec.l1.ways, spec.l2.ways) > max_ways) {
    return wrong(fmt::format("a cache has more than {} ways", max_ways));
  }
  if (spec.threads > 65536 || std::uint64_t{spec.threads} * spec.sms() > Event::indices) {
    return wrong(
        fmt::format("an SM has more than 65536 threads, or all have more than {}", Event::indices));
  }
  if (spec.l1.sets != 0 && !std::has_single_bit(spec.l1.sets)) {
    return wrong("the number of L1 sets is not a power of two");
  }
  if (!spec.distances.empty() && spec.distances.size() != std::size_t{spec.slices} * spec.sms()) {
    return wrong("distances are given for some pairs of slice and SM only");
  }
  if (spec.miss_registers == 0 || spec.l1_miss_registers == 0 || spec.store_registers == 0 ||
      spec.write_high == 0 || spec.write_low >= spec.write_high) {
    return wrong(
        "registers and the write queue must hold at least one entry, and write_low must be below "
        "write_high");
  }
  if (spec.address.row_shift < line_shift) return wrong("a row is smaller than a line");
  if (spec.tlbs.empty()) return {};
  if (spec.walkers == 0) return wrong("page walks need at least one walker");
  if (spec.table_entry_bytes == 0 ||
      (std::uint64_t{spec.table_entry_bytes} << spec.tlbs.back().page_bits) > line_bytes) {
    return wrong(fmt::format(
        "a page walk reads the entries of {} pages of {} bytes, which are not within a line of {}",
        1U << spec.tlbs.back().page_bits, spec.table_entry_bytes, line_bytes));
  }
  for (const TlbSpec& level : spec.tlbs) {
    if (level.entries == 0) return wrong("a TLB has no entries");
  }
  return {};
}

std::string spec_text(const Spec& spec) {
  const auto bytes = [](Ticks ticks) {
    if (ticks == Ticks()) return std::string("no limit");
    return fmt::format("{:.1f} B per cycle", static_cast<double>(sector_bytes * ticks_per_cycle) /
                                                 static_cast<double>(ticks.raw()));
  };
  std::string text = fmt::format("{}: {} SMs in {} GPCs at {:.0f} MHz\n", spec.name, spec.sms(),
                                 spec.gpcs, spec.clock_hz / 1e6);
  text += fmt::format(
      "SM: {:.1f} instructions per cycle, {} of them 32-bit floating-point, {} cycles between "
      "dependent ones; {} registers; shared "
      "memory {}; a block begins after {} cycles, a kernel {} cycles after the last and {} reads\n",
      static_cast<double>(ticks_per_cycle) / static_cast<double>(spec.issue_ticks.raw()),
      spec.float_ticks == Ticks()
          ? "any number"
          : fmt::format("{:.1f}", static_cast<double>(ticks_per_cycle) /
                                      static_cast<double>(spec.float_ticks.raw())),
      spec.instruction_cycles, spec.registers,
      bytes(spec.shared_ticks * sector_bytes / shared_row_bytes), spec.block_start_cycles,
      spec.launch_cycles, spec.launch_misses);
  text += fmt::format("L1: {} sets of {} ways, hit {} cycles, {} miss and {} store registers\n",
                      spec.l1.sets, spec.l1.ways, spec.l1_hit_cycles, spec.l1_miss_registers,
                      spec.store_registers);
  text += fmt::format(
      "crossbar: SM {} ({} of stores), GPC {} ({} of stores, {} of atomics), {} ports of {} ({} of "
      "writes, {} of "
      "atomics), {} cycles there, {} back\n",
      bytes(spec.sm_ticks), bytes(spec.sm_store_ticks), bytes(spec.gpc_ticks),
      bytes(spec.gpc_store_ticks), bytes(spec.gpc_atomic_ticks), spec.ports, bytes(spec.port_ticks),
      bytes(spec.port_write_ticks), bytes(spec.port_atomic_ticks), spec.request_cycles,
      spec.reply_cycles);
  text += fmt::format(
      "L2: {} slices of {} sets of {} ways, {} cycles, {} miss registers per slice, {} of "
      "them for reads past the cache\n",
      spec.slices, spec.l2.sets, spec.l2.ways, spec.l2_cycles, spec.miss_registers,
      spec.uncached_registers == 0 ? spec.miss_registers
                                   : std::min(spec.miss_registers, spec.uncached_registers));
  text += fmt::format(
      "DRAM: one channel per slice, {} banks, bus {}, bursts of {} sectors; precharge {}, activate "
      "{}, "
      "column {}, row {}, turnaround {}, controller {} cycles; activations of a channel {} apart, "
      "four in {}; {} of {} cycles are refresh; rows close after {}; writes drain from {} to {}; "
      "{} accesses and one row of each bank go before the other direction, if it waits\n",
      spec.banks, bytes(spec.burst_ticks), spec.burst_sectors, spec.precharge_cycles,
      spec.activate_cycles, spec.column_cycles, spec.row_cycles, spec.turnaround_cycles,
      spec.dram_cycles, spec.activate_gap_cycles, spec.activate_window_cycles, spec.refresh_cycles,
      spec.refresh_interval_cycles, spec.row_idle_cycles, spec.write_high, spec.write_low,
      spec.turn);
  text += fmt::format("unloaded: L2 hit {} cycles, DRAM {} cycles\n", spec.l2_hit_latency(),
                      spec.dram_latency());
  if (spec.tlbs.empty()) return text;
  text += "address translation, if small pages or more memory than the last level reaches need it:";
  for (const TlbSpec& level : spec.tlbs) {
    text += fmt::format(" {} entries of {} pages {}, a hit adds {} cycles;", level.entries,
                        1U << level.page_bits, level.per_sm ? "per SM" : "for all SMs",
                        level.hit_cycles);
  }
  text += fmt::format(" {} walkers, a walk adds {} cycles and reads {} bytes\n", spec.walkers,
                      spec.walk_latency(), spec.table_entry_bytes << spec.tlbs.back().page_bits);
  return text;
}

}  // namespace demarc::sim::memory
