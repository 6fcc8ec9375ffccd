// A launch: one or more kernels of one PTX module, run in sequence on shared buffers, with grids,
// blocks and arguments. The same launch is analysed, emulated, simulated, rewritten and run on a
// GPU.
//
//   auto launch = read_launch("vecadd.json");                        // from a launch file, or
//   launch = parse_launch({.ptx = "k.ptx", .kernel = "vecadd", .grid = "64", .block = "256",
//                          .arguments = "buf:65536:iota:f32,buf:65536,i32:16384"});
//   const auto addresses = default_addresses(*launch);               // or where a GPU put them
//   fill_buffer(*launch, 0, addresses, bytes);                       // content of buffer 0
//   for (const KernelLaunch& kernel : launch->kernels) {
//     pack_argument(kernel.arguments[i], addresses);                 // bytes of a parameter
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/launch/image.hpp"
#include "demarc/launch/scalar_type.hpp"
#include "demarc/launch/tensor_map.hpp"

namespace demarc::gpu {

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;

  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

// A value of `type` in the low size_of(type) bytes of `bits`, as it lies in memory (little endian).
struct Scalar {
  ScalarType type = ScalarType::u32;
  std::uint64_t bits = 0;
  friend bool operator==(const Scalar&, const Scalar&) = default;
};
// Rounds to the nearest value of a floating type; an integer type takes the low bits.
[[nodiscard]] Scalar make_scalar(ScalarType type, double value);
[[nodiscard]] Scalar make_scalar(ScalarType type, std::int64_t value);
[[nodiscard]] double to_double(const Scalar& scalar);

// The address of a buffer plus a distance.
struct BufferUse {
  std::size_t buffer = 0;    // index into Launch::buffers
  std::uint64_t offset = 0;  // bytes
  friend bool operator==(const BufferUse&, const BufferUse&) = default;
};

// A structure passed by value.
struct ByteArgument {
  std::vector<std::byte> bytes;
  friend bool operator==(const ByteArgument&, const ByteArgument&) = default;
};

// The handle of a texture or a surface.
struct ImageUse {
  std::size_t image = 0;  // index into Launch::images
  friend bool operator==(const ImageUse&, const ImageUse&) = default;
};

using Argument = std::variant<Scalar, BufferUse, ByteArgument, TensorMap, ImageUse>;

enum class FillKind {
  zero,
  iota,       // element i = i
  random,     // integers: uniform in [low, high] or all bits; floating: uniform in [low, high)
  file,       // the content of a file (content_file.hpp), zeros behind its end
  values,     // the given elements, repeated to the end of the buffer
  pointers,   // element i (u64) = address of buffer `target` + i * stride
  generated,  // a named generator of structured data (generator_names())
  bytes,      // the given bytes, as many as there are
};

// What a buffer holds before the first kernel.
struct Fill {
  FillKind kind = FillKind::zero;
  double low = 0;
  double high = 0;  // low == high: full range for integers, [0, 1) for floating types
  std::string file;
  std::vector<double> values;
  std::size_t target = 0;
  std::uint64_t stride = 0;                        // bytes
  std::string generator;                           // name
  std::map<std::string, std::int64_t> parameters;  // parameters of the generator
  std::vector<std::byte> bytes;
  friend bool operator==(const Fill&, const Fill&) = default;
};

struct Buffer {
  std::string name;
  std::uint64_t bytes = 0;
  ScalarType element = ScalarType::u32;
  Fill fill;
  bool output = false;  // compared by the check
  bool host = false;    // in host memory, which a GPU reaches over its bus
  // The address of the buffer, for contents and structures that hold addresses; a multiple of 256.
  // 0: anywhere. The emulator and the locality analysis put it there. Cards and simulated GPUs
  // refuse it.
  std::uint64_t address = 0;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

struct KernelLaunch {
  std::string kernel;
  Dim3 grid;
  Dim3 block;
  std::optional<Dim3> cluster;  // blocks of a cluster; nothing: as the kernel says
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t registers = 0;  // per thread, as ptxas -v counts them; 0: not said
  std::vector<Argument> arguments;
  friend bool operator==(const KernelLaunch&, const KernelLaunch&) = default;
};

// How the outputs are judged: by a reference or by files. A reference is a function on the CPU; the
// room `workload` knows it by name. Integer outputs must be equal; a floating output x meets
// expectation y when |x-y| <= absolute + relative*|y|.
struct Check {
  std::string reference;
  double absolute = 0;
  double relative = 0;
  std::map<std::size_t, std::string> files{};  // per output, by its index in Launch::buffers

  [[nodiscard]] bool exists() const { return !reference.empty() || !files.empty(); }
  friend bool operator==(const Check&, const Check&) = default;
};

struct Launch {
  std::string name;                                // name of the launch; may be empty
  std::string summary;                             // one line
  std::string source;                              // where the idea comes from
  std::vector<std::string> groups;                 // e.g. "table2", "study"
  std::string ptx;                                 // path of a PTX file, or "bundled:NAME"
  std::uint64_t seed = 1;                          // seed of random and generated contents
  std::map<std::string, std::int64_t> parameters;  // parameters of the launch file, as resolved
  std::vector<Buffer> buffers;
  // Variables of the module (__constant__, __device__) that are set before the first kernel. The
  // module says how large they are; `bytes` is not used.
  std::vector<Buffer> variables;
  std::vector<Image> images;          // textures and surfaces whose handles are arguments
  std::vector<KernelLaunch> kernels;  // in the order they run, each after the one before has ended
  Check check;
  friend bool operator==(const Launch&, const Launch&) = default;
};

// The place in a buffer to which an argument of the launch leads.
[[nodiscard]] std::optional<BufferUse> used_buffer(const Launch& launch, const Argument& argument);

// "vecadd" of "bundled:vecadd", a module or a launch that comes with Demarc; none of a file's path.
[[nodiscard]] std::optional<std::string_view> bundled_name(std::string_view text);

// --- The command line: kernel.ptx --kernel NAME --grid X[,Y[,Z]] --block X[,Y[,Z]] --args SPEC

struct LaunchText {
  std::string ptx;
  std::string kernel;  // may be empty: the reader of the PTX takes its only entry
  std::string grid = "1";
  std::string block = "1";
  std::string cluster{};  // empty: as the kernel says
  std::string arguments;  // comma list: i32:7, u64:0x10, f32:1.5, hex:0011 (by-value structure,
                          // bytes in memory order), buf:BYTES[:zero|iota|random|@file[:ELEMENT]]
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint64_t seed = 1;
};

[[nodiscard]] Result<Dim3> parse_dim3(std::string_view text, std::string_view what);
[[nodiscard]] Result<Launch> parse_launch(const LaunchText& text);
// NAME=SPEC, where SPEC is i32:7, hex:0011 or zero|iota|random|@file[:ELEMENT].
[[nodiscard]] Result<Buffer> parse_variable(std::string_view text);

// --- The launch file (docs/gpu.md gives the format)

struct LaunchFileOptions {
  std::string scale;  // name of a row of "scales"; empty: the default size
  std::map<std::string, std::int64_t>
      parameters;  // replace those of the file; unknown names are errors
};
[[nodiscard]] Result<Launch> read_launch(const std::filesystem::path& path,
                                         const LaunchFileOptions& options = {});
// `where` names the text in errors; file names in it are relative to `folder`.
[[nodiscard]] Result<Launch> parse_launch_json(std::string_view text, std::string_view where,
                                               const std::filesystem::path& folder = {},
                                               const LaunchFileOptions& options = {});

// --- Running one

inline constexpr std::uint32_t max_shared_bytes = 227 * 1024;  // per block, on an H100 and a B200
inline constexpr std::uint32_t max_cluster_blocks = 16;

// invalid_input if a buffer has a fixed address, because such a launch runs only where memory can
// be had at any address. The error names the buffer.
[[nodiscard]] Result<void> refuse_fixed_addresses(const Launch& launch);

// invalid_input if the launch says how large the clusters of a kernel are, or if a kernel takes a
// tensor map, a texture or a surface. The error names the kernel, and `who` ("a study does") as the
// one who does not take it.
[[nodiscard]] Result<void> refuse_clusters(const Launch& launch, std::string_view who);
[[nodiscard]] Result<void> refuse_tensor_maps(const Launch& launch, std::string_view who);
[[nodiscard]] Result<void> refuse_images(const KernelLaunch& kernel, std::string_view who);

// Limits that no GPU exceeds: 1024 threads and 227 KiB of shared memory per block, 16 blocks per
// cluster, grid, block and cluster not empty, arguments within 32764 bytes, buffers that exist.
// Both parsers call it.
[[nodiscard]] Result<void> validate(const Launch& launch);

// Distinct addresses that are aligned to 256 bytes and at least 256 bytes apart, in the order of
// the buffers. Buffers with a fixed address keep it.
inline constexpr std::uint64_t default_base_address = 0x7000'0000'0000;
[[nodiscard]] std::vector<std::uint64_t> default_addresses(
    const Launch& launch, std::uint64_t base = default_base_address);

// Writes the initial content of buffer `index` into `out` (out.size() == buffers[index].bytes). A
// pure function of the launch and the addresses; reads a file for FillKind::file.
[[nodiscard]] Result<void> fill_buffer(const Launch& launch, std::size_t index,
                                       std::span<const std::uint64_t> addresses,
                                       std::span<std::byte> out);

// The same for variable `index`; the module says how large it is.
[[nodiscard]] Result<void> fill_variable(const Launch& launch, std::size_t index,
                                         std::span<const std::uint64_t> addresses,
                                         std::span<std::byte> out);

// All buffers on the host, in order. Zeros::left_out: buffers that begin as zeros stay empty; the
// caller fills them where they lie.
using Memory = std::vector<std::vector<std::byte>>;
enum class Zeros { made, left_out };
[[nodiscard]] Result<Memory> initial_memory(const Launch& launch,
                                            std::span<const std::uint64_t> addresses,
                                            Zeros zeros = Zeros::made);

// The bytes of one argument as the kernel sees them. Tensor maps, and handles of textures and
// surfaces, have the emulator's own form. No card reads it.
[[nodiscard]] std::vector<std::byte> pack_argument(const Argument& argument,
                                                   std::span<const std::uint64_t> addresses);

// Names of the generators that "fill": {"generator": …} accepts, with a line on each: parameters
// and meaning.
struct GeneratorInfo {
  std::string_view name;
  std::string_view meaning;
};
[[nodiscard]] std::span<const GeneratorInfo> generator_names();

}  // namespace demarc::gpu
