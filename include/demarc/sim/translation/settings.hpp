// Every number and switch of the multi-GPU address-translation model. What the paper (Wei, Li, Lu
// 2021) does not state is a switch here; all values are echoed in every result. Times are in cycles
// of the 1 GHz GPU clock.
#pragma once

#include <any>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::sim::translation {

enum class Architecture { centralised, distributed, bypass };

// How work-groups are dealt out to GPUs. `native`: a split for each application, contiguous if its
// benchmark has code of its own for several GPUs. It is fitted: it was chosen when the published
// figures were known.
enum class Split { native, roundrobin, contiguous, dim0 };

// Where a page lies. With the two first-touch rules it comes from CPU memory.
enum class Placement {
  first_touch,  // on the GPU that touches it first when all run their work-groups in step; among
                // several at the same step one is drawn. The same in every architecture
  first_walk,   // on the GPU whose walk ends first: a race, in which a GPU that is ahead stays so
  interleaved,  // page i on GPU i mod N, from the start
  contiguous,   // equal runs of pages on each GPU, from the start
  far,          // on the GPU behind the one of first_touch: what only one GPU uses is remote
};

// How a GPU uses a page of another GPU.
enum class Remote {
  lines,      // line by line from the owner's L2; the page stays
  migration,  // the page moves to the GPU that asks for it
};

// What the first access to a page costs. The page then moves from CPU memory to the GPU that
// touched it.
enum class FirstTouch {
  free,      // nothing
  copy,      // the page crosses the links
  protocol,  // drain, flush, shootdown and copy: one page at a time in the whole system
};

// What the GMMU's table learns from an answer of the IOMMU.
enum class GmmuFill {
  local,  // the entry when the page lies in this GPU's memory (the paper)
  eager,  // every GPU's table knows its pages as soon as they are placed there
  any,    // every entry that comes back
  all,    // every page is in every table from the start, as where a driver maps before kernels run
};

enum class Topology {
  star,    // two GPUs on a switch, the switches on the root complex
  chain,   // each of those switches on the one in front of it
  single,  // all GPUs and the CPU on one switch
};

// Who decides that a request skips the GMMU (Architecture::bypass).
enum class BypassPolicy {
  residency,  // a filter of the pages in the local table: a sure miss skips the walk
  epoch,   // per GPU: skip while the share of GMMU hits of the last epoch was low, sampling now and
           // then
  oracle,  // exact knowledge of the table: the upper bound
};

// What the written-out applications do where neither the paper nor the benchmark's source says it.
// Each has a struct of its own beside its accesses (src/sim/translation/apps); the type finds it.
class ApplicationSettings {
 public:
  // The defaults where nothing was set.
  template <class Own>
  [[nodiscard]] const Own& of() const {
    static const Own defaults;
    const auto found = by_type_.find(typeid(Own));
    return found == by_type_.end() ? defaults : *std::any_cast<Own>(&found->second);
  }
  template <class Own>
  [[nodiscard]] Own& of() {
    return *std::any_cast<Own>(&by_type_.try_emplace(typeid(Own), Own{}).first->second);
  }

 private:
  std::map<std::type_index, std::any> by_type_;
};

struct Settings {
  std::uint32_t gpus = 4;
  std::uint32_t cus = 36;           // per GPU
  std::uint32_t waves_per_cu = 40;  // wavefront slots
  std::uint32_t vgprs = 256;        // per lane and SIMD, of four SIMDs
  std::uint32_t sgprs = 3200;       // per CU
  std::uint32_t lds_bytes = 65536;  // per CU
  std::uint32_t dynamic_lds = 0;    // 1: dynamic LDS counts for occupancy
  std::uint32_t wave_cycles = 4;    // cycles of a SIMD for a vector instruction of a wave
  std::uint32_t shared_rows = 1;    // of 128 bytes of LDS that a CU serves per cycle; 0: no limit
  std::uint32_t memory_pipeline = 66;
  std::uint32_t cu_lines = 1;          // line accesses that a CU begins per cycle
  std::uint32_t coalesced_lanes = 64;  // whose accesses to a line become one; 32: each half wave's
  std::uint32_t least_lines = 1;       // least number of line accesses that a memory instruction
                                       // counts there
  std::uint32_t outstanding_lines = 512;  // per CU

  std::uint32_t page_bytes = 4096;
  std::uint32_t l1_tlb_sets = 1;
  std::uint32_t l1_tlb_ways = 32;
  std::uint32_t l1_tlb_mshrs = 4;
  std::uint32_t l1_tlb_ports = 4;  // look-ups per cycle
  std::uint32_t l2_tlb_sets = 64;
  std::uint32_t l2_tlb_ways = 16;
  std::uint32_t l2_tlb_mshrs = 64;
  std::uint32_t l2_tlb_ports = 4;
  std::uint32_t l2_tlb_latency = 10;

  std::uint32_t gmmu_walkers = 64;
  std::uint32_t gmmu_latency = 100;
  std::uint32_t iommu_walkers = 8;
  std::uint32_t iommu_latency = 100;
  GmmuFill gmmu_fill = GmmuFill::local;
  BypassPolicy bypass_policy = BypassPolicy::residency;
  std::uint32_t bypass_epoch = 256;     // walks
  std::uint32_t bypass_threshold = 25;  // per cent of GMMU hits below which an epoch is skipped

  Topology topology = Topology::star;
  std::uint32_t flit_bytes = 17;     // PCIe 3 x16 at 1 GHz
  std::uint32_t link_lanes = 1;      // per link; each moves a flit per cycle, a message takes one
  std::uint32_t link_encoding = 25;  // per cent on top of a message's bytes
  std::uint32_t request_bytes = 12;  // of a request for a line, and before the data of a write
  std::uint32_t partial_bytes = 0;   // more before data that fills sectors of 32 bytes in part
  std::uint32_t reply_bytes = 4;     // before the data of an answer
  std::uint32_t switch_latency = 140;
  Placement placement = Placement::first_touch;
  FirstTouch first_touch = FirstTouch::free;
  std::uint32_t protocol_cycles = 4800;  // cycles of one page under FirstTouch::protocol

  Remote remote = Remote::lines;
  std::uint32_t flush_cycles =
      1400;  // flushing a GPU that gives a page away: with it a move takes 4800
  std::uint32_t migration_limit =
      0;  // moves after which a page stays and is used by lines; 0: none

  // 2: an access of a sector of 32 bytes moves this half of its line alone over a link and into
  // an L1.
  std::uint32_t line_sectors = 1;
  // Lines side by side that share a tag of an L1 and, as parts of one access, a message's header.
  std::uint32_t wide_lines = 1;
  std::uint32_t l1_bytes = 16384;  // bytes of 64-byte lines
  std::uint32_t l1_ways = 4;
  std::uint32_t l1_latency = 60;      // latency of a hit
  std::uint32_t l1_mshrs = 16;        // misses to this GPU's memory that a CU's L1 may wait for
  std::uint32_t l1_fill_latency = 0;  // from a line's arrival at the L1 to the wave that missed it
  std::uint32_t remote_in_l1 = 0;     // 1: lines of other GPUs may be kept in the L1
  std::uint32_t l2_banks = 8;
  std::uint32_t l2_bank_bytes = 262144;  // 16 ways
  std::uint32_t l2_bank_hash = 0;        // 1: stripes go to banks by a hash of their number
  std::uint32_t l2_latency = 10;
  std::uint32_t l2_mshrs = 64;  // per bank
  std::uint32_t dram_latency = 100;
  std::uint32_t dram_line_cycles = 1;  // cycles that a line keeps a bank's DRAM channel busy
  std::uint32_t dram_fetch_lines = 1;  // lines that a miss of the L2 brings, a power of two
  // Cycles that a read after a write, or a write after a read, takes more.
  std::uint32_t dram_turn_cycles = 0;
  // Lines by which a channel may be late before writes to its bank wait; 0: no limit.
  std::uint32_t dram_write_queue = 0;

  std::uint32_t kernel_overhead = 1600;
  std::uint32_t dispatch_cycles = 3;  // per work-group of up to four waves, +1 per further wave
  std::uint32_t dispatch_groups = 1;  // work-groups that are dispatched in those cycles
  Split split = Split::roundrobin;
  std::uint32_t megabytes = 64;  // size of the application's data
  std::uint32_t iterations = 0;  // each iterative application does so many; 0: its own number

  ApplicationSettings applications;
};

// One row of the table that parses, documents and prints the settings.
struct SettingInfo {
  std::string_view name;
  std::string_view meaning;
  std::string_view range;  // "1..64" or "star|chain"
  std::function<std::string(const Settings&)> get;
  std::function<Result<void>(Settings&, std::string_view)> set;
  bool power_of_two = false;  // validate() looks at it
};
// The machine's, and behind them those of the applications, in the order of their table.
[[nodiscard]] std::span<const SettingInfo> setting_table();

// "name=value"; an unknown name or a value out of range is an error that says what would be right.
[[nodiscard]] Result<void> apply_setting(Settings& settings, std::string_view assignment);
// "name=value name=value ...", of every setting, in lines of at most 100 characters.
[[nodiscard]] std::string settings_text(const Settings& settings);
// Checks relations between settings (powers of two, at least one way, ...).
[[nodiscard]] Result<void> validate(const Settings& settings);

// A machine description (docs/translation.md): settings by name in a JSON object. Settings that the
// object does not name keep their defaults. Errors name the source and the key.
[[nodiscard]] Result<Settings> parse_machine(std::string_view text, std::string_view source);
[[nodiscard]] Result<Settings> read_machine(const std::filesystem::path& path);
// A built-in machine (devices/machines) by name. A name that has a '/' or ends in .json is a file.
// An unknown name is an error that lists the known ones.
[[nodiscard]] Result<Settings> find_machine(std::string_view name);
[[nodiscard]] std::vector<std::string> builtin_machine_names();
[[nodiscard]] std::string machine_json(const Settings& settings, std::string_view name);

[[nodiscard]] std::string_view to_string(Architecture architecture);
[[nodiscard]] std::string_view to_string(Split split);

}  // namespace demarc::sim::translation
