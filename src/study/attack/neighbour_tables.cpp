// What neighbours can be made of: the tables of operations, patterns and genes.
#include <algorithm>
#include <array>

#include "demarc/base/text.hpp"
#include "demarc/study/neighbour.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;

using enum Pattern;
constexpr Pattern all_patterns[] = {stream, stride, random, chase, slice, row, page};
constexpr Pattern without_answer[] = {stream, stride, random, slice, row, page};
constexpr Pattern copied_patterns[] = {stream, stride, random, row, page};
constexpr Pattern own_patterns[] = {stream, stride, random};
constexpr Pattern constant_patterns[] = {stream, stride, random, chase};
constexpr Pattern host_load_patterns[] = {stream, random, chase, page};
constexpr Pattern host_store_patterns[] = {stream, random, page};
constexpr Pattern stream_alone[] = {stream};

// clang-format off
constexpr OperationRow operation_rows[] = {
    {Operation::load, "load", "load words", Need::nothing, 4, true, 0, 0, 0, all_patterns},
    {Operation::store, "store", "store words", Need::nothing, 4, false, 0, 0, 0, without_answer},
    {Operation::atomic, "atomic", "add to words and take the old value", Need::nothing, 4, true, 0, 0, 0, all_patterns},
    {Operation::reduction, "reduction", "add to words", Need::nothing, 4, false, 0, 0, 0, without_answer},
    {Operation::byte, "byte", "store single bytes", Need::nothing, 1, false, 0, 0, 0, without_answer},
    {Operation::fence, "fence", "store words, each followed by a system-wide fence", Need::nothing, 4, false, 0, 0, 0, without_answer},
    {Operation::local, "local", "store and load words of local memory", Need::nothing, 4, false, 0, 4 * kib, 16 * kib, own_patterns},
    {Operation::variable, "variable", "store words of a variable of the module", Need::module_variables, 4, false, 0, 0, 256 * mib, own_patterns},
    {Operation::constant, "constant", "load words of constant memory", Need::nothing, 4, true, 0, 0, 64 * kib, constant_patterns},
    {Operation::async_copy, "async_copy", "copy 16 bytes each to shared memory by cp.async", Need::nothing, 16, false, 80, 0, 0, copied_patterns},
    {Operation::bulk_copy, "bulk_copy", "copy 1 KiB per warp to shared memory by cp.async.bulk", Need::nothing, 32, false, 90, 0, 0, copied_patterns},
    {Operation::host_load, "host_load", "load words of the host's memory", Need::host_memory, 4, true, 0, 0, 256 * mib, host_load_patterns},
    {Operation::host_store, "host_store", "store words of the host's memory", Need::host_memory, 4, false, 0, 0, 256 * mib, host_store_patterns},
    {Operation::copy_in, "copy_in", "are copied from the host by a copy engine", Need::copy_engines, 4, false, 0, 0, 256 * mib, stream_alone},
    {Operation::copy_out, "copy_out", "are copied to the host by a copy engine", Need::copy_engines, 4, false, 0, 0, 256 * mib, stream_alone},
};

constexpr PatternRow pattern_rows[] = {
    {Pattern::stream, "stream", "one after the other", 0},
    {Pattern::stride, "stride", "at a fixed distance", 0},
    {Pattern::random, "random", "at random places", 0},
    {Pattern::chase, "chase", "at random places, each address from the result of the load before it", 0},
    {Pattern::slice, "slice", "in random lines of one L2 slice", 2 * mib},
    {Pattern::row, "row", "each in another row of the DRAM", 16 * mib},
    {Pattern::page, "page", "each in another page of 2 MiB", 16 * mib},
};
// clang-format on

// 4 KiB to 112 GiB, four steps from each power of two to the next.
constexpr auto footprints = [] {
  std::array<std::uint64_t, 100> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (4 + i % 4) << (10 + i / 4);
  return values;
}();
static_assert(footprints.front() == 4 * kib && footprints.back() == 112 * kib * mib);
constexpr auto strides = [] {
  std::array<std::uint64_t, 15> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 128ULL << i;
  return values;
}();
constexpr std::uint64_t block_counts[] = {1,   2,   4,   8,   16,  32,   48,   64,  96,
                                          132, 192, 264, 384, 528, 1056, 2112, 4224};
constexpr std::uint64_t thread_counts[] = {32, 64, 128, 256, 512, 1024};
constexpr std::uint64_t shared_sizes[] = {0, 16 * kib, 40 * kib, 96 * kib, 160 * kib, 227 * kib};
constexpr std::uint64_t zero_or_one[] = {0, 1};
constexpr std::uint64_t in_flight_counts[] = {1, 2, 4, 8};
constexpr std::uint64_t step_counts[] = {1, 4, 16, 64, 256, 1024, 4096};
constexpr std::uint64_t launch_counts[] = {1, 2, 4, 16, 64};

constexpr Gene gene_rows[] = {
    {"footprint", &Neighbour::footprint, footprints},
    {"stride", &Neighbour::stride, strides},
    {"blocks", &Neighbour::blocks, block_counts},
    {"threads", &Neighbour::threads, thread_counts},
    {"shared", &Neighbour::shared, shared_sizes},
    {"apart", &Neighbour::apart, zero_or_one},
    {"in_flight", &Neighbour::in_flight, in_flight_counts},
    {"steps", &Neighbour::steps, step_counts},
    {"launches", &Neighbour::launches, launch_counts},
};

}  // namespace

std::span<const OperationRow> operations() {
  return operation_rows;
}

const OperationRow& row_of(Operation operation) {
  return *std::find_if(std::begin(operation_rows), std::end(operation_rows),
                       [&](const OperationRow& row) { return row.operation == operation; });
}

Result<Operation> parse_operation(std::string_view name) {
  std::string known;
  for (const OperationRow& row : operation_rows) {
    if (row.name == name) return row.operation;
    append(known, "{}{}", known.empty() ? "" : ", ", row.name);
  }
  return invalid_input("'{}' is not an operation of a neighbour; the operations are {}", name,
                       known);
}

std::span<const PatternRow> patterns() {
  return pattern_rows;
}

const PatternRow& row_of(Pattern pattern) {
  return *std::find_if(std::begin(pattern_rows), std::end(pattern_rows),
                       [&](const PatternRow& row) { return row.pattern == pattern; });
}

std::span<const Gene> genes() {
  return gene_rows;
}

std::string_view spec_prefix(Operation operation) {
  const OperationRow& row = row_of(operation);
  return row.need == Need::copy_engines ? row.name : "launch";
}

}  // namespace demarc::study
