// The kernels that copy and fill rows, on the emulator: at every alignment, plain and with one side
// or both in coloured memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/base/files.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/ptx/colored.hpp"
#include "harness.hpp"
#include "paths.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::emulate {
namespace {

constexpr std::uint64_t colors_page = 4096;
constexpr std::uint64_t slot_bytes = 8192;  // of the target, for a launch
constexpr std::uint64_t source_bytes = 10240;

ptx::Module copying() {
  const auto path = demarc::test::source_dir() / "src/guest/kernels/ptx/window_copy.ptx";
  return ptx::parse_whole(read_file(path).value(), "window_copy.ptx").value();
}

// One side of a copy: where its bytes lie, and what kernels get as their address.
class Side {
 public:
  Side(bool colored, std::uint64_t bytes)
      : colored_(colored), bytes_((colored ? 2 * bytes : bytes) + colors_page) {}

  [[nodiscard]] std::uint64_t buffer_bytes() const { return bytes_; }
  void put_at(std::uint64_t address) {
    arena_ = (address + colors_page - 1) / colors_page * colors_page;
    shift_ = arena_ - address;
  }
  [[nodiscard]] gpu::Argument pointer(std::uint64_t linear) const {
    const std::uint64_t address =
        colored_ ? color::colored_pointer(color::DeviceAddress(arena_), color::LinearByte(linear),
                                          addressing())
                       .raw()
                 : arena_ + linear;
    return gpu::make_scalar(gpu::ScalarType::u64, static_cast<std::int64_t>(address));
  }
  // In its buffer.
  [[nodiscard]] std::size_t position(std::uint64_t linear) const {
    return shift_ + (colored_
                         ? coloring_.position(color::LinearByte(linear), addressing().color).raw()
                         : linear);
  }
  static color::Parities addressing() { return {{0x600}, 1}; }

 private:
  color::Coloring coloring_ = color::Coloring::make({{0x600}}, colors_page).value();
  bool colored_;
  std::uint64_t bytes_;
  std::uint64_t arena_ = 0;
  std::uint64_t shift_ = 0;
};

struct Rows {
  std::uint64_t target = 0;  // linear
  std::uint64_t source = 0;  // linear
  std::uint64_t target_pitch = 0;
  std::uint64_t source_pitch = 0;
  std::uint64_t width = 0;  // bytes
  std::uint64_t height = 0;
  std::uint32_t element = 1;
};

void add_kernel(gpu::Launch& launch, const char* name, std::vector<gpu::Argument> arguments) {
  static constexpr std::uint32_t shapes[][4] = {{1, 1, 32, 1}, {2, 1, 8, 4}, {1, 3, 5, 1}};
  const auto& shape = shapes[launch.kernels.size() % std::size(shapes)];
  gpu::KernelLaunch kernel;
  kernel.kernel = name;
  kernel.grid = {shape[0], shape[1], 1};
  kernel.block = {shape[2], shape[3], 1};
  kernel.arguments = std::move(arguments);
  launch.kernels.push_back(std::move(kernel));
}

gpu::Argument u64_argument(std::uint64_t value) {
  return gpu::make_scalar(gpu::ScalarType::u64, static_cast<std::int64_t>(value));
}
gpu::Argument u32_argument(std::uint32_t value) {
  return gpu::make_scalar(gpu::ScalarType::u32, std::int64_t{value});
}

// What a byte of the target is before, of the source, and what elements are filled with.
constexpr std::byte unwritten{0xa5};
std::byte source_byte(std::uint64_t linear) {
  return static_cast<std::byte>(linear * 151 + linear / 251 + 1);
}
std::uint32_t value_of(std::size_t launch) {
  return 0x1c2d'3e4fU + 0x0101'0305U * static_cast<std::uint32_t>(launch);
}

enum class Work { copy, fill };

// Launches for all `rows`, one behind the other; launch i has slot i of the target to itself.
void expect_rows(Work work, const ptx::Module& module, bool colored_source, bool colored_target,
                 const std::vector<Rows>& rows) {
  Side source(colored_source, source_bytes);
  Side target(colored_target, rows.size() * slot_bytes);
  gpu::Launch launch;
  launch.buffers.resize(2);
  launch.buffers[0].bytes = source.buffer_bytes();
  launch.buffers[1].bytes = target.buffer_bytes();
  const auto addresses = gpu::default_addresses(launch);
  source.put_at(addresses[0]);
  target.put_at(addresses[1]);

  gpu::Memory memory{std::vector<std::byte>(source.buffer_bytes()),
                     std::vector<std::byte>(target.buffer_bytes(), unwritten)};
  for (std::uint64_t i = 0; i < source_bytes; ++i) memory[0][source.position(i)] = source_byte(i);
  gpu::Memory expected = memory;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Rows& one = rows[i];
    const std::uint64_t to = i * slot_bytes + one.target;
    if (work == Work::copy) {
      add_kernel(
          launch, "demarc_copy2d",
          {target.pointer(to), u64_argument(one.target_pitch), source.pointer(one.source),
           u64_argument(one.source_pitch), u64_argument(one.width), u64_argument(one.height)});
    } else {
      add_kernel(launch, "demarc_fill2d",
                 {target.pointer(to), u64_argument(one.target_pitch), u32_argument(value_of(i)),
                  u32_argument(one.element), u64_argument(one.width / one.element),
                  u64_argument(one.height)});
    }
    for (std::uint64_t row = 0; row < one.height; ++row) {
      for (std::uint64_t k = 0; k < one.width; ++k) {
        const auto filled = static_cast<std::byte>(value_of(i) >> (8 * (k % one.element)));
        expected[1][target.position(to + row * one.target_pitch + k)] =
            work == Work::fill ? filled : source_byte(one.source + row * one.source_pitch + k);
      }
    }
  }
  Options options;
  options.threads = 1;
  const auto outcome = run_on(module, launch, std::move(memory), options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_TRUE(outcome->findings.empty()) << describe(outcome->findings[0], "window_copy.ptx");
  EXPECT_EQ(outcome->buffers[0], expected[0]) << "the source changed";
  if (outcome->buffers[1] == expected[1]) return;
  for (std::uint64_t linear = 0; linear < rows.size() * slot_bytes; ++linear) {
    const std::size_t at = target.position(linear);
    const Rows& one = rows[linear / slot_bytes];
    ASSERT_EQ(outcome->buffers[1][at], expected[1][at])
        << "byte " << linear % slot_bytes << " of " << one.height << " rows of " << one.width
        << " bytes, from " << one.source << " to " << one.target;
  }
  FAIL() << "bytes beside the target's changed";
}

// Widths up to 200; the rows of each go through all alignments of the target, the widths through
// those of the source.
std::vector<Rows> copied_rows(std::uint64_t first_width, std::uint64_t step) {
  std::vector<Rows> rows;
  for (std::uint64_t width = first_width; width <= 200; width += step) {
    const std::uint64_t even = (width + 31) / 32 * 32;
    rows.push_back({.target = width * 7 % 32,
                    .source = width % 32,
                    .target_pitch = even + 1 + width / 32 * 2,
                    .source_pitch = even + width / 64 * 32,
                    .width = width,
                    .height = 32});
  }
  return rows;
}

TEST(WindowCopy, rows_arrive_whole_at_every_alignment_and_nothing_beside_them_changes) {
  const ptx::Module plain = copying();
  expect_rows(Work::copy, plain, false, false, copied_rows(0, 1));
  std::uint64_t first_width = 0;
  for (const auto accesses :
       {ptx::ColoredAccesses::all, ptx::ColoredAccesses::loads, ptx::ColoredAccesses::stores}) {
    const auto made = color::rewrite_parities(plain, Side::addressing(), {.accesses = accesses});
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(ptx::check_accepted(made->kernels, "window_copy.ptx"));
    expect_rows(Work::copy, made->module, accesses != ptx::ColoredAccesses::stores,
                accesses != ptx::ColoredAccesses::loads, copied_rows(first_width++, 3));
  }
}

TEST(WindowCopy, fills_give_each_element_its_bytes_at_every_alignment) {
  std::vector<Rows> rows;
  for (const std::uint32_t element : {1U, 2U, 4U}) {
    for (std::uint64_t width = 0; width <= 200; width += element) {
      const std::uint64_t i = rows.size();
      rows.push_back({.target = i * 11 % 32,
                      .source = 0,
                      .target_pitch = width + i % 21,
                      .source_pitch = 0,
                      .width = width,
                      .height = 1 + i % 3,
                      .element = element});
    }
  }
  const ptx::Module plain = copying();
  expect_rows(Work::fill, plain, false, false, rows);
  const auto made = color::rewrite_parities(plain, Side::addressing());
  ASSERT_TRUE(made) << made.error().message;
  expect_rows(Work::fill, made->module, false, true, rows);
}

// Colours would not hold what lies there.
TEST(WindowCopy, its_kernels_need_no_memory_of_their_own) {
  const auto needs = ptx::find_colored_needs(copying());
  ASSERT_TRUE(needs) << needs.error().message;
  ASSERT_EQ(needs->kernels.size(), 2U);
  EXPECT_TRUE(ptx::check_accepted(needs->kernels, "window_copy.ptx"));
  EXPECT_EQ(needs->variables.bytes, 0U);
  EXPECT_EQ(needs->local_bytes, 0U);
}

}  // namespace
}  // namespace demarc::emulate
