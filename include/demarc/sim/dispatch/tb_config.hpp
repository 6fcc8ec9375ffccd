// The configuration of the SimTBS thread-block model: SMs, memories, overhead tables and kernels,
// in the line grammar of the program its authors published (Cho and Bahn, JIIBC 20(4), 2020).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/large_array.hpp"
#include "demarc/base/result.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim {

// Whose rules hold. `simtbs` copies the program as last published (2021). `simtbs_2020` copies it
// as of the paper (May 2020; unit_costs.hpp has its costs). `corrected` has the rules of 2021, but
// reads memory requests from the fields that the grammar names, waits for memory instead of ending,
// and accepts kernels in any order.
enum class TbModel { simtbs, simtbs_2020, corrected };

// In which form a configuration is written. 2020: one resource and one memory; tables count units.
enum class TbGrammar { of_2021, of_2020 };

[[nodiscard]] std::string_view to_string(TbModel model);
[[nodiscard]] Result<TbModel> parse_tb_model(std::string_view name);

// Piecewise-linear cost over a usage ratio, one column per resource, in IEEE single precision.
class OverheadTable {
 public:
  struct Row {
    float ratio = 0;
    std::vector<float> cost;  // one per column
    std::uint32_t line = 0;   // line of the configuration file
  };
  // The first row whose ratio is at least `ratio` ends the segment. Beyond the last row the last
  // segment goes on. An empty table costs nothing. The cost is NaN if the first row is at ratio 0
  // and `ratio` is 0 too.
  [[nodiscard]] float cost(std::size_t column, float ratio) const;

  std::vector<Row> rows;
};

// Resources below index n_sched are scheduling resources, those from there to below n_boundary are
// compute units, the rest are other units.
struct SmSpec {
  std::uint32_t n_sms = 0;
  std::uint32_t n_sched = 0;
  std::uint32_t n_boundary = 0;
  std::vector<std::uint32_t> max;  // capacity of one SM, one per resource
};

struct TbKernel {
  std::uint32_t type = 0;
  TbTicks start;                 // arrival
  std::uint32_t n_tb = 0;        // thread blocks
  TbTicks duration;              // duration of one block without overhead
  std::uint32_t line = 0;        // line of the configuration file
  bool negative_memory = false;  // a memory request was written as a number below zero
};

// One T per kernel. There may be very many kernels.
template <class T>
using PerKernel = PerIndex<KernelIndex, T, LargeAllocator<T>>;

struct IntRange {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

// What the generator draws from. Only `level` is set in the short form.
struct TbWorkload {
  bool present = false;
  bool from_kernels = false;  // short form: pick from the kernel section
  std::uint32_t level = 0;    // per cent
  IntRange n_tb, duration;
  std::vector<std::vector<std::uint32_t>> requests;  // choices of each SM resource
  std::vector<IntRange> memory;
  std::uint32_t line = 0;
};

struct TbConfig {
  std::string source;  // file name, for messages
  TbGrammar grammar = TbGrammar::of_2021;
  TbTicks max_simtime;  // 0: until all kernels are complete
  SmSpec sm;
  std::vector<std::uint32_t> memory;  // capacity of each global memory
  OverheadTable sm_overhead, memory_overhead;
  PerKernel<TbKernel> kernels;
  LargeArray<std::uint32_t> fields;  // per kernel: requests of SM resources, then of memories
  TbWorkload workload;

  [[nodiscard]] std::size_t resources() const { return sm.max.size(); }
  [[nodiscard]] std::size_t fields_per_kernel() const { return sm.max.size() + memory.size(); }
  [[nodiscard]] std::span<const std::uint32_t> kernel_fields(KernelIndex kernel) const {
    return {fields.data() + kernel.raw() * fields_per_kernel(), fields_per_kernel()};
  }
  void add_kernel(const TbKernel& kernel, std::span<const std::uint32_t> kernel_fields);
};

// For each memory, the field of a kernel from which its request is read. The published program
// reads the wrong fields in most layouts. It is an error if that program reads memory it never
// wrote (one SM resource with two memories).
[[nodiscard]] Result<std::vector<std::uint32_t>> memory_fields(const TbConfig& config,
                                                               TbModel model);

// Reads either grammar: a *sm line of two numbers is 2020's. Errors name `source` and the line.
[[nodiscard]] Result<TbConfig> parse_tb_config(std::string_view text, std::string source);

// Below this capacity the units of a row can be computed back from its single-precision ratio.
inline constexpr std::uint32_t max_units_of_2020 = 1U << 22;
// Row `row` of a table in units of `capacity`, as 2020's grammar has it.
[[nodiscard]] std::uint32_t row_units(const OverheadTable::Row& row, std::uint32_t capacity);

// Prints the configuration in its own grammar: general, sm, mem, overhead_mem, overhead_sm (six
// decimals), kernel.
[[nodiscard]] std::string print_tb_config(const TbConfig& config);

}  // namespace demarc::sim
