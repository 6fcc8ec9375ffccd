// The table of settings: it parses, documents and prints them.
#include "demarc/sim/translation/settings.hpp"

#include <bit>

#include "demarc/base/numbers.hpp"
#include "demarc/sim/translation/application.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

std::vector<SettingInfo> make_setting_table() {
  using S = Settings;
  std::vector<SettingInfo> table{
      number("gpus", "GPUs in the system", "1..64", &S::gpus),
      number("cus", "compute units per GPU", "1..256", &S::cus),
      number("waves_per_cu", "wavefront slots per CU", "4..64", &S::waves_per_cu),
      number("vgprs", "vector registers per lane and SIMD", "16..1024", &S::vgprs),
      number("sgprs", "scalar registers per CU", "64..65536", &S::sgprs),
      number("lds_bytes", "local data share per CU, bytes", "256..1048576", &S::lds_bytes),
      number("dynamic_lds", "1: dynamic LDS limits occupancy", "0..1", &S::dynamic_lds),
      number("wave_cycles", "cycles of a SIMD for a vector instruction of a wave", "1..64",
             &S::wave_cycles),
      number("shared_rows",
             "rows of 128 bytes of local data share that a CU serves per cycle; 0: no limit",
             "0..64", &S::shared_rows),
      number("memory_pipeline", "cycles from issue to the first line", "0..1000",
             &S::memory_pipeline),
      number("cu_lines", "line accesses that a CU begins per cycle", "1..64", &S::cu_lines),
      power_of_two("coalesced_lanes",
                   "lanes of a wave whose accesses to a line become one, a power of two", "32..64",
                   &S::coalesced_lanes),
      number("least_lines",
             "least number of line accesses that a CU counts for a memory instruction", "1..64",
             &S::least_lines),
      number("outstanding_lines", "line transactions in flight per CU", "64..65536",
             &S::outstanding_lines),
      power_of_two("page_bytes", "page size, a power of two", "4096..2097152", &S::page_bytes),
      power_of_two("l1_tlb_sets", "sets of the TLB of a CU, a power of two", "1..1024",
                   &S::l1_tlb_sets),
      number("l1_tlb_ways", "ways of the TLB of a CU", "1..1024", &S::l1_tlb_ways),
      number("l1_tlb_mshrs", "pages that a CU's TLB may wait for", "1..64", &S::l1_tlb_mshrs),
      number("l1_tlb_ports", "look-ups per cycle in a CU's TLB", "1..64", &S::l1_tlb_ports),
      power_of_two("l2_tlb_sets", "sets of the TLB of a GPU, a power of two", "1..4096",
                   &S::l2_tlb_sets),
      number("l2_tlb_ways", "ways of the TLB of a GPU", "1..4096", &S::l2_tlb_ways),
      number("l2_tlb_mshrs", "pages that a GPU's TLB may wait for", "1..4096", &S::l2_tlb_mshrs),
      number("l2_tlb_ports", "look-ups per cycle in a GPU's TLB", "1..64", &S::l2_tlb_ports),
      number("l2_tlb_latency", "cycles of a look-up in a GPU's TLB", "0..1000", &S::l2_tlb_latency),
      number("gmmu_walkers", "page-table walkers of a GPU", "1..4096", &S::gmmu_walkers),
      number("gmmu_latency", "cycles of a walk on the GPU", "1..100000", &S::gmmu_latency),
      number("iommu_walkers", "page-table walkers of the IOMMU", "1..4096", &S::iommu_walkers),
      number("iommu_latency", "cycles of a walk in the IOMMU", "1..100000", &S::iommu_latency),
      choice("gmmu_fill", "what a GMMU learns", "local|eager|any|all", &S::gmmu_fill),
      choice("bypass_policy", "who decides to skip the GMMU", "residency|epoch|oracle",
             &S::bypass_policy),
      number("bypass_epoch", "walks of an epoch of the epoch policy", "16..1000000",
             &S::bypass_epoch),
      number("bypass_threshold",
             "per cent of GMMU hits from which a walk on the GPU is worth its time", "0..100",
             &S::bypass_threshold),
      choice("topology", "how the switches hang on the root complex", "star|chain|single",
             &S::topology),
      number("flit_bytes", "bytes that a link moves per cycle", "1..1024", &S::flit_bytes),
      number("link_lanes",
             "lanes of a link: flits that it moves per cycle, each of another message", "1..64",
             &S::link_lanes),
      number("link_encoding", "per cent that a link adds to the bytes of a message", "0..100",
             &S::link_encoding),
      number("request_bytes", "bytes of a request for a line, and before the data of a write",
             "1..1024", &S::request_bytes),
      number("partial_bytes", "bytes more before the data of a write that fills sectors in part",
             "0..1024", &S::partial_bytes),
      number("reply_bytes", "bytes before the data of an answer to a read", "1..1024",
             &S::reply_bytes),
      number("switch_latency", "cycles in a switch", "0..10000", &S::switch_latency),
      choice("placement", "where a page lies", "first-touch|first-walk|interleaved|contiguous|far",
             &S::placement),
      choice("first_touch", "what moving a page at first touch costs", "free|copy|protocol",
             &S::first_touch),
      number("protocol_cycles", "cycles of one page under first_touch=protocol", "0..1000000",
             &S::protocol_cycles),
      choice("remote", "how a page of another GPU is used", "lines|migration", &S::remote),
      number("flush_cycles", "cycles to drain and flush a GPU that gives a page away", "0..1000000",
             &S::flush_cycles),
      number("migration_limit", "moves after which a page stays; 0: it always moves", "0..1000000",
             &S::migration_limit),
      number("line_sectors", "parts of a line that an L1 and a link move apart", "1..2",
             &S::line_sectors),
      number("wide_lines", "lines that share a tag of an L1 and the header of a message", "1..2",
             &S::wide_lines),
      power_of_two("l1_bytes", "L1 data cache of a CU, bytes", "4096..1048576", &S::l1_bytes),
      power_of_two("l1_ways", "ways of the L1 data cache, a power of two", "1..256", &S::l1_ways),
      number("l1_latency", "cycles of an L1 hit", "1..1000", &S::l1_latency),
      number("l1_mshrs", "misses that an L1 may wait for", "1..1024", &S::l1_mshrs),
      number("l1_fill_latency", "cycles from a line's arrival at an L1 to the wave that missed it",
             "0..1000", &S::l1_fill_latency),
      number("remote_in_l1", "1: lines of other GPUs are kept in the L1", "0..1", &S::remote_in_l1),
      power_of_two("l2_banks", "L2 banks (and DRAM channels) of a GPU, a power of two", "1..256",
                   &S::l2_banks),
      power_of_two("l2_bank_bytes", "bytes of an L2 bank", "16384..16777216", &S::l2_bank_bytes),
      number("l2_bank_hash", "1: stripes of 4 KiB go to banks by a hash, 0: in turn", "0..1",
             &S::l2_bank_hash),
      number("l2_latency", "cycles of an L2 bank", "1..1000", &S::l2_latency),
      number("l2_mshrs", "misses that an L2 bank may wait for", "1..4096", &S::l2_mshrs),
      number("dram_latency", "cycles of a DRAM access", "1..10000", &S::dram_latency),
      number("dram_line_cycles", "cycles that a line keeps a DRAM channel busy", "1..1000",
             &S::dram_line_cycles),
      power_of_two("dram_fetch_lines", "lines that a miss of the L2 brings, a power of two",
                   "1..64", &S::dram_fetch_lines),
      number("dram_turn_cycles", "cycles more for a read after a write or a write after a read",
             "0..1000", &S::dram_turn_cycles),
      number("dram_write_queue",
             "lines by which a DRAM channel may be late before writes wait; 0: no limit",
             "0..100000", &S::dram_write_queue),
      number("kernel_overhead", "cycles at the end of a kernel", "0..1000000", &S::kernel_overhead),
      number("dispatch_cycles", "cycles to dispatch a work-group", "1..1000", &S::dispatch_cycles),
      number("dispatch_groups", "work-groups that are dispatched in those cycles", "1..64",
             &S::dispatch_groups),
      choice("split", "how work-groups are dealt out to GPUs", "native|roundrobin|contiguous|dim0",
             &S::split),
      number("megabytes", "size of the application's data, MiB", "1..65536", &S::megabytes),
      number("iterations",
             "iterations of every iterative application; 0: each has its own, given below",
             "0..1000", &S::iterations),
  };
  for (const ApplicationInfo& application : application_table())
    table.insert(table.end(), application.settings.begin(), application.settings.end());
  return table;
}

}  // namespace

std::span<const SettingInfo> setting_table() {
  static const std::vector<SettingInfo> table = make_setting_table();
  return table;
}

Result<void> apply_setting(Settings& settings, std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return invalid_input("'{}' is not of the form NAME=VALUE", assignment);
  }
  const std::string_view name = assignment.substr(0, equals);
  for (const SettingInfo& info : setting_table()) {
    if (info.name == name) return info.set(settings, assignment.substr(equals + 1));
  }
  std::string known;
  for (const SettingInfo& info : setting_table()) known += fmt::format(" {}", info.name);
  return invalid_input("there is no setting '{}'; there are{}", name, known);
}

std::string settings_text(const Settings& settings) {
  constexpr std::size_t widest = 100;
  std::string text;
  std::string line;
  for (const SettingInfo& info : setting_table()) {
    const std::string entry = fmt::format("{}={}", info.name, info.get(settings));
    if (line.size() + 1 + entry.size() > widest) {
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + entry;
  }
  return text + line + "\n";
}

Result<void> validate(const Settings& settings) {
  for (const SettingInfo& info : setting_table()) {
    if (!info.power_of_two) continue;
    const std::string value = info.get(settings);
    if (!std::has_single_bit(*parse_u64(value, info.name)))
      return invalid_input("{}: {} is not a power of two", info.name, value);
  }
  const std::uint32_t l1_line = line_bytes * settings.wide_lines;
  if (std::uint64_t{settings.l1_ways} * l1_line > settings.l1_bytes) {
    return invalid_input("l1_ways: {} lines of {} bytes are more than l1_bytes={}",
                         settings.l1_ways, l1_line, settings.l1_bytes);
  }
  if (settings.gmmu_fill != GmmuFill::all) return {};
  if (settings.placement == Placement::first_walk) {
    return invalid_input(
        "gmmu_fill=all needs the places of pages from the start, but placement=first-walk decides "
        "them at the first walk");
  }
  if (settings.first_touch != FirstTouch::free || settings.remote != Remote::lines) {
    return invalid_input(
        "gmmu_fill=all needs pages that have a place from the start and stay there; give "
        "first_touch=free and remote=lines");
  }
  return {};
}

std::string_view to_string(Architecture architecture) {
  switch (architecture) {
    case Architecture::centralised:
      return "centralised";
    case Architecture::distributed:
      return "distributed";
    case Architecture::bypass:
      return "bypass";
  }
  return "?";
}

std::string_view to_string(Split split) {
  switch (split) {
    case Split::native:
      return "native";
    case Split::roundrobin:
      return "roundrobin";
    case Split::contiguous:
      return "contiguous";
    case Split::dim0:
      return "dim0";
  }
  return "?";
}

}  // namespace demarc::sim::translation
