// A neighbour that is made from parameters; the hunt for the worst one breeds them (attack.hpp).
// Its genes are an operation, a pattern of addresses and numbers from a table. From the genes this
// room writes a kernel in PTX and a launch that runs it.
//
//   Random random(1);
//   const Neighbour one = random_neighbour(random);
//   neighbour_ptx(one);                         // the module's text, its entry is "neighbour"
//   neighbour_launch(one, card, "one.ptx");     // the launch, as gpu::launch_to_json() writes it
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "demarc/base/random.hpp"
#include "demarc/base/result.hpp"
#include "demarc/launch/launch.hpp"
#include "demarc/study/neighbour_means.hpp"

namespace demarc::study {

// What it does to memory, again and again. The rows of operations() say the rest.
enum class Operation {
  load,
  store,
  atomic,
  reduction,
  byte,
  fence,
  local,
  variable,
  constant,
  async_copy,
  bulk_copy,
  host_load,
  host_store,
  copy_in,
  copy_out,
};

// Which address comes next. A "place" is what one step of a warp, or of a thread, goes to.
enum class Pattern {
  stream,  // place after place
  stride,  // places `stride` bytes from each other
  random,
  chase,  // random, and each address depends on what the load before it gave
  slice,  // random lines of one L2 slice
  row,    // each step another row of the DRAM
  page,   // each step another page of 2 MiB
};

// Every number is one of its gene's values (genes()). A number that operation and pattern do not
// use is the first of them, so that equal neighbours compare equal: settled() sees to it.
struct Neighbour {
  Operation operation = Operation::load;
  Pattern pattern = Pattern::stream;
  std::uint64_t footprint = 0;  // bytes
  std::uint64_t stride = 0;     // bytes
  std::uint64_t blocks = 1;
  std::uint64_t threads = 32;   // per block
  std::uint64_t shared = 0;     // bytes per block, beside what the operation needs
  std::uint64_t apart = 0;      // 1: each thread of a warp goes to a place of its own
  std::uint64_t in_flight = 1;  // accesses of a thread that do not wait for each other
  std::uint64_t steps = 1;      // accesses per thread and launch, no fewer than in_flight
  std::uint64_t launches = 1;   // per run
  friend bool operator==(const Neighbour&, const Neighbour&) = default;
};

struct OperationRow {
  Operation operation;
  std::string_view name;
  std::string_view words;             // "add to words, and wait for the old value"
  Need need;                          // of the lane it runs in
  std::uint32_t bytes;                // bytes of one thread's access
  bool answers;                       // it gets a value, on which an address can depend
  std::uint32_t target;               // lowest compute capability, 90 for 9.0
  std::uint64_t least_bytes;          // bytes of the footprint
  std::uint64_t max_bytes;            // the footprint; 0: any
  std::span<const Pattern> patterns;  // patterns that it can have
};
[[nodiscard]] std::span<const OperationRow> operations();
[[nodiscard]] const OperationRow& row_of(Operation operation);
[[nodiscard]] Result<Operation> parse_operation(std::string_view name);
// The prefix of its spec, by which a lane is told of it: "launch" for a kernel, "copy_in" and
// "copy_out" for copies by the copy engines.
[[nodiscard]] std::string_view spec_prefix(Operation operation);

struct PatternRow {
  Pattern pattern;
  std::string_view name;
  std::string_view words;     // "at random places"
  std::uint64_t least_bytes;  // below, a footprint would hold too few places
};
[[nodiscard]] std::span<const PatternRow> patterns();
[[nodiscard]] const PatternRow& row_of(Pattern pattern);

struct Gene {
  std::string_view name;
  std::uint64_t Neighbour::*value;
  std::span<const std::uint64_t> values;  // ascending
};
[[nodiscard]] std::span<const Gene> genes();

// --- Breeding. All of it is a pure function of its arguments; results are settled.

// A pattern that the operation does not have becomes its first one, a footprint moves within what
// both allow, numbers that nothing uses become the first of their gene.
[[nodiscard]] Neighbour settled(Neighbour neighbour);
[[nodiscard]] Neighbour random_neighbour(Random& random);
[[nodiscard]] Neighbour random_neighbour(Random& random, Operation operation);
[[nodiscard]] Neighbour random_neighbour(Random& random, Pattern pattern);
// Changes one or two genes; a number mostly becomes the value beside it. The result differs from
// `parent`.
[[nodiscard]] Neighbour mutated(const Neighbour& parent, Random& random);
// Takes each gene from one parent or the other.
[[nodiscard]] Neighbour crossed(const Neighbour& a, const Neighbour& b, Random& random);

// Why a lane with these means cannot take it; empty if nothing speaks against it. The words have no
// numbers of the neighbour, so equal reasons have equal words.
[[nodiscard]] std::string impossible(const Neighbour& neighbour, const NeighbourMeans& means);
// The same neighbour with no more accesses per run than the means allow: fewer launches, then fewer
// steps, then fewer blocks.
[[nodiscard]] Neighbour bounded(Neighbour neighbour, const NeighbourMeans& means);

// --- What it is

// "atomic-random-4MiB-264x256": short, not unique.
[[nodiscard]] std::string short_name(const Neighbour& neighbour);
// "264 blocks of 256 threads add to words ... at random places of 4 MiB, ..."
[[nodiscard]] std::string in_words(const Neighbour& neighbour);

// --- What it runs

// The text of a whole module. The numbers are arguments, so neighbours that differ only in these
// mostly share one text. The sizes of a module's variable, a table of constants and a frame are in
// the text.
[[nodiscard]] std::string neighbour_ptx(const Neighbour& neighbour);
inline constexpr std::string_view neighbour_entry = "neighbour";

// Bytes of shared memory that a block takes: the gene's, or more where the operation needs more.
[[nodiscard]] std::uint32_t shared_bytes_of(const Neighbour& neighbour);

// How the places of a neighbour lie: place i is at byte i * place_bytes of the footprint, i <
// places.
struct Places {
  std::uint64_t place_bytes = 0;
  std::uint64_t places = 0;
};
[[nodiscard]] Places places_of(const Neighbour& neighbour, const NeighbourMeans& means);

// `ptx` is the path that the launch names.
[[nodiscard]] gpu::Launch neighbour_launch(const Neighbour& neighbour, const NeighbourMeans& means,
                                           std::string_view name, std::string_view ptx);

// Steps of random places: x goes on by this from place to place, and place = x * places / 2^64. The
// first x of walker w (a warp, or a thread when `apart`) is (w + 1) * walker_seed, gone on once.
inline constexpr std::uint64_t walker_seed = 0x9e3779b97f4a7c15U;
inline constexpr std::uint64_t step_factor = 6364136223846793005U;
inline constexpr std::uint64_t step_summand = 1442695040888963407U;

}  // namespace demarc::study
