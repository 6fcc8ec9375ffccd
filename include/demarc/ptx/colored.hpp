// PTX in, PTX out: every access to global memory goes through coloured addressing, so that a kernel
// keeps to the chunks of one colour and its source need not change [Fractional GPUs, section V-F].
// There the driver's page tables do it; here a few integer instructions do.
//
// The kernel computes with linear addresses: consecutive bytes of one colour's memory. Before an
// access, the linear address becomes the position of that byte in the arena:
//
//   a % 2^14 | a / 2^14 * 2^15               // a 0 inserted at bit 14, the mask's lowest bit
//   (a >> 17 ^ a >> 18 ^ color) % 2 << 14    // that bit, for the mask 0xc4000
//
// Inserting a bit doubles what lies above it. So a pointer that the kernel gets is
// colored_pointer(): the arena's address divided by the number of colours, plus the linear offset.
// Then the insertion restores the arena's address, and nothing needs to be subtracted. The arena's
// address must be a multiple of its page size, and no pointer may be used on the host as it is.
//
// Variables of the module and local variables of its functions get places in coloured memory. The
// caller provides that memory; find_colored_needs() says how much. The places are numbers in the
// text, or are set when the module is loaded (PlacesAtLoad). Shared and constant memory and the
// kernel's own parameters stay where they are. If the text does not tell which memory a generic
// address means, the address is tested at run time (isspacep). Therefore linear addresses must lie
// outside of the windows that the GPU has for the other memories.
//
// Plain accesses become streaming ones (`.cs`; for cp.async a cache policy). So a kernel's data
// makes room in the L2 before the data that the driver keeps there for everybody.
//
// Kernels are refused, not modules. Refused kernels, and functions that only they run, are not in
// the result, so nothing uncoloured can be launched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct ColoredAddressing {
  // At least one mask. The lowest bits of the masks differ and occur in no other mask; masks are
  // sorted by them. All bits are below bit 32.
  std::vector<std::uint64_t> masks;
  // Bit i says what parity(position & masks[i]) must be: the colour XOR the page constant of the
  // arena.
  std::uint32_t color = 0;

  friend bool operator==(const ColoredAddressing&, const ColoredAddressing&) = default;
};

// The same for colours that are remainders, by color::RemainderSteps
// (color/remainder_coloring.hpp). It takes about 20 machine instructions; three of them are loads
// from tables that the L1 holds. Linear addresses follow each other from the start of a window of
// addresses, which may be the arena itself. Those that do not belong to the colour lead in front of
// the arena or behind it. If text is rewritten before its colours are known, it knows their shape:
struct RemainderShape {
  std::uint32_t chunk_shift = 0;
  std::uint32_t page_shift = 0;
  std::uint32_t pattern_bits = 0;
  // False: the text serves only constants whose reciprocal_shift is 0. An access then takes one
  // instruction less.
  bool shifts_quotients = true;
};

// ... and finds the rest in its constant variable `demarc_colors`, see colored_constants().
struct RemainderConstants {
  std::uint64_t arena = 0;   // address of position 0, a multiple of the page size
  std::uint64_t table = 0;   // address of RemainderColoring::table()
  std::uint64_t pages = 0;   // address of pages[0]
  std::uint32_t before = 0;  // number of the window's first chunk among addresses, less `begin`
  std::uint32_t end = 0;
  std::uint32_t reciprocal = 0;
  std::uint32_t reciprocal_shift = 0;
  std::uint32_t skipped = 0;
  std::uint32_t unused = 0;
};

struct RemainderAddressing {
  RemainderShape shape;
  RemainderConstants constants;
};

// Which accesses go to the coloured memory. The others keep their addresses; they stream, too, so
// their lines of the L2 make room first. If only loads or only stores are rewritten, the kernel
// must not have variables of its own.
enum class ColoredAccesses { all, loads, stores };

// What printf of a kernel does. Its buffer belongs to the driver and has no colour.
enum class ColoredPrinting {
  refused,  // a kernel that prints is refused
  silenced  // it prints nothing and goes on; printf returns 0
};

// Linear addresses of coloured memory for the module's own variables; 0: nothing is there.
struct ColoredPlaces {
  std::uint64_t variables = 0;  // ColoredNeeds::variables.bytes
  std::uint64_t local = 0;      // local_threads times ColoredNeeds::local_bytes
  // The largest number of threads of a launch that have local variables. Threads beyond it stop
  // their kernel (trap).
  std::uint64_t local_threads = 0;

  friend bool operator==(const ColoredPlaces&, const ColoredPlaces&) = default;
};
// One text serves all places: it takes them from its constant variable `demarc_colors`, see
// colored_constants().
struct PlacesAtLoad {};

inline constexpr const char* colored_constants_name = "demarc_colors";

// What the constant variable `demarc_colors` of a module must hold if the module was rewritten for
// places that are known only when it is loaded (PlacesAtLoad, RemainderShape). Whoever loads the
// module writes it. Until then accesses fault, and threads with local variables stop their kernel.
// `remainders` is for a module that knows only the RemainderShape of its colours. The result has as
// many bytes as the variable.
[[nodiscard]] std::vector<std::byte> colored_constants(
    const ColoredPlaces& places, const RemainderConstants* remainders = nullptr);

struct ColoredOptions {
  ColoredAccesses accesses = ColoredAccesses::all;
  ColoredPrinting printing = ColoredPrinting::refused;
  std::variant<ColoredPlaces, PlacesAtLoad> places = {};
  std::vector<std::string> kernels = {};  // the result has only these; empty: all
  bool counts_shared = false;             // also find ColoredKernel::shared_accesses, which takes
                                          // time
  // 90 for a card of compute capability 9.0; 0: not known. From 80 on, a module for sm_70 to sm_79
  // with accesses that need cache policies becomes one for sm_80, which has them.
  std::uint32_t card = 0;
};

struct ColoredRefusal {
  std::uint32_t line = 0;  // of the instruction, in the module that was given
  std::string reason;      // "'tex.2d…;' addresses memory in a way that cannot be coloured"
};

struct ColoredKernel {
  std::string name;
  std::uint32_t line = 0;
  std::vector<ColoredRefusal> refusals;  // empty: accepted
  std::uint64_t local_bytes = 0;         // local variables per thread, including those of the
                                         // functions that it calls
  std::uint64_t accesses = 0;            // accesses whose addresses are translated, in the
                                         // functions that it runs
  // How many of these use the translation of an earlier access: one to the same address, which the
  // compiler translates once, or one to a neighbour (rewrite/colored/neighbours.hpp). The others
  // cost the full translation.
  std::uint64_t shared_accesses = 0;

  [[nodiscard]] bool accepted() const { return refusals.empty(); }
};

// A module's variables of global memory (those that can be placed), one behind the other.
struct ColoredBlock {
  struct Variable {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  // An address in the initial content: (address of the block + target) >> shift.
  struct Pointer {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint32_t shift = 0;
    std::int64_t target = 0;
  };
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 16;
  std::vector<Variable> variables;  // what cuModuleGetGlobal asks for
  std::vector<std::uint8_t> image;  // of the first bytes; those behind it are zeros
  std::vector<Pointer> pointers;

  // The initial content of the bytes of `image` if the block has the linear address `address`.
  [[nodiscard]] std::vector<std::uint8_t> content(std::uint64_t address) const;
};

// What must be provided before a module is rewritten. A kernel that is refused here is also refused
// by the rewriting. The rewriting may refuse more (accesses wider than a chunk).
struct ColoredNeeds {
  std::vector<ColoredKernel> kernels;  // in the order of the module
  ColoredBlock variables;
  std::uint64_t local_bytes = 0;  // per thread; the largest number of an accepted kernel
  std::uint64_t local_alignment = 16;
};

struct ColoredModule {
  Module module;                       // accepted kernels
  std::vector<ColoredKernel> kernels;  // all that were asked for
};

// Addresses of 32 bits, a module that was coloured before, and a kernel in `options.kernels` that
// the module does not have are errors.
[[nodiscard]] Result<ColoredNeeds> find_colored_needs(const Module& module,
                                                      const ColoredOptions& options = {});

// Masks, colours or remainders that do not fit together are errors, too.
[[nodiscard]] Result<ColoredModule> rewrite_colored(const Module& module,
                                                    const ColoredAddressing& addressing,
                                                    const ColoredOptions& options = {});
[[nodiscard]] Result<ColoredModule> rewrite_remainders(const Module& module,
                                                       const RemainderAddressing& addressing,
                                                       const ColoredOptions& options = {});
// The same for colours and places that `demarc_colors` gets when the module is loaded. Places that
// are already known are an error, too.
[[nodiscard]] Result<ColoredModule> rewrite_remainders(const Module& module, RemainderShape shape,
                                                       const ColoredOptions& options = {});

// "k.ptx:12: kernel 'k': 'tex.2d…;' addresses memory …", one line for each of the first reasons.
// Empty if the kernel is accepted.
[[nodiscard]] std::string describe_refusals(const ColoredKernel& kernel,
                                            std::string_view source_name);

// An error that names every refused kernel among `wanted` (empty: all).
[[nodiscard]] Result<void> check_accepted(const std::vector<ColoredKernel>& kernels,
                                          std::string_view source_name,
                                          const std::vector<std::string>& wanted = {});

// Schema demarc.rewrite.needs/1.
[[nodiscard]] std::string needs_to_json(const ColoredNeeds& needs);

// The address that a kernel gets for byte `linear` of the coloured memory.
[[nodiscard]] std::uint64_t colored_pointer(std::uint64_t arena_address, std::uint64_t linear,
                                            const ColoredAddressing& addressing);

}  // namespace demarc::ptx
