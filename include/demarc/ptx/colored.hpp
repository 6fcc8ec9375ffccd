// PTX in, PTX out: every access to global memory goes through coloured addressing, so that a kernel
// keeps to the chunks of one colour and its source need not change [Fractional GPUs, section V-F].
// There the driver's page tables do it; here a few integer instructions do.
//
// The kernel computes with linear addresses: consecutive bytes of one colour's memory. Before an
// access, a Translation turns the linear address into that of the byte in the arena. No pointer
// that the kernel gets may be used on the host as it is.
//
// Variables of the module and local variables of its functions get places in coloured memory. The
// caller provides that memory; find_colored_needs() says how much. The places are numbers in the
// text, or are set when the module is loaded (PlacesAtLoad). Shared and constant memory and the
// kernel's own parameters stay where they are. If the text does not tell which memory a generic
// address means, the address is tested at run time (isspacep). Therefore linear addresses must lie
// outside of the windows that the GPU has for the other memories.
//
// Plain accesses become streaming ones (`.cs`; for cp.async a cache policy). So a kernel's data
// makes room in the L2 before the data that the driver keeps there for all.
//
// Kernels are refused, not modules. Refused kernels, and functions that only they run, are not in
// the result, so nothing uncoloured can be launched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// The instructions that turn the linear address of a byte into its address in the arena. The
// room color writes them (color/law.hpp). They may use all registers that `declarations` declares,
// whose names begin with %demarc_.
struct Translation {
  std::string prologue = {};      // at the start of each function with translated accesses
  std::string declarations = {};  // the registers that `arithmetic` uses
  std::string arithmetic = {};    // changes %demarc_a
  std::uint64_t granule = 0;      // bytes that follow each other whatever the colours
  // Bytes that the prologue reads in the constant variable `demarc_colors`, behind the
  // ColoredPlaces. If there are some, places are set when the module is loaded, too.
  std::size_t constant_bytes = 0;
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
// places that are known only when it is loaded (PlacesAtLoad). The program that loads the module
// writes it. Until then accesses fault, and threads with local variables stop their kernel.
// `of_colors`: the Translation::constant_bytes that its translation reads.
[[nodiscard]] std::vector<std::byte> colored_constants(const ColoredPlaces& places,
                                                       std::span<const std::byte> of_colors = {});

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
  std::uint32_t line = 0;  // line of the instruction, in the module that was given
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
  std::vector<std::uint8_t> image;  // image of the first bytes; those behind it are zeros
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

// Places that are given for a translation that reads constants are an error, too.
[[nodiscard]] Result<ColoredModule> rewrite_colored(const Module& module,
                                                    const Translation& translation,
                                                    const ColoredOptions& options = {});

// "" or ".L1::evict_last": what a load of the module says so that its line stays in the L1,
// whatever the kernel streams through it.
[[nodiscard]] std::string_view kept_in_l1(const Module& module);

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

}  // namespace demarc::ptx
