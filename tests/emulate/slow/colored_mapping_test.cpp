// Where rewritten code writes, chunk by chunk: the places that color::RemainderColoring and
// color::Coloring give, for all chunks of all colours of 64 pages.
#include "colored_launch.hpp"
#include "demarc/base/random.hpp"

namespace demarc::emulate::colored {
namespace {

constexpr std::uint64_t pages = 64;
constexpr std::uint32_t block = 256;

// Thread i writes i + `begin` at the beginning of chunk i, and its complement at the end.
constexpr const char* marking = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry mark(.param .u64 first, .param .u32 chunks, .param .u32 chunk_bytes, .param .u32 begin)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<6>;
ld.param.u64 %rd1, [first];
ld.param.u32 %r1, [chunks];
ld.param.u32 %r2, [chunk_bytes];
ld.param.u32 %r3, [begin];
mov.u32 %r4, %ctaid.x;
mov.u32 %r5, %tid.x;
mad.lo.u32 %r4, %r4, 256, %r5;
setp.ge.u32 %p1, %r4, %r1;
@%p1 ret;
mad.wide.u32 %rd2, %r4, %r2, %rd1;
cvt.u64.u32 %rd3, %r2;
add.u64 %rd3, %rd2, %rd3;
add.u32 %r6, %r4, %r3;
not.b32 %r7, %r6;
st.global.u32 [%rd2], %r6;
st.global.u32 [%rd3+-4], %r7;
ret;
}
)";

// The table that the code of a colour needs, and an arena behind which nothing lies.
class MarkedArena {
 public:
  explicit MarkedArena(const Colors& colors) : memory_{colors.table(), {}} {
    launch_.buffers.resize(2);
    launch_.buffers[0].bytes = memory_[0].size();
    addresses_ = gpu::default_addresses(launch_);
    base_ = colors.first_from(addresses_[1]);
    memory_[1].resize(base_ - addresses_[1] + pages * page, untouched);
    launch_.buffers[1].bytes = memory_[1].size();
  }

  // Marks so many chunks from a linear byte on. Findings are left to the caller.
  [[nodiscard]] Result<std::vector<Finding>> mark(const Colors& colors, std::uint64_t linear,
                                                  std::uint64_t chunks, std::uint32_t begin) {
    DEMARC_TRY(const auto module, ptx::parse_whole(marking, "mark.ptx"));
    DEMARC_TRY(const auto made, colors.rewrite(module, base_, addresses_[0], {}));
    DEMARC_CHECK(ptx::check_accepted(made.kernels, "mark.ptx"));
    gpu::KernelLaunch kernel;
    kernel.kernel = "mark";
    kernel.grid.x = static_cast<std::uint32_t>((chunks + block - 1) / block);
    kernel.block.x = block;
    kernel.arguments.emplace_back(number(gpu::ScalarType::u64, colors.pointer(base_, linear)));
    for (const std::uint64_t value : {chunks, colors.granule(), std::uint64_t{begin}}) {
      kernel.arguments.emplace_back(number(gpu::ScalarType::u32, value));
    }
    launch_.kernels = {kernel};
    DEMARC_TRY(auto outcome, run_on(made.module, launch_, std::move(memory_)));
    memory_ = std::move(outcome.buffers);
    return std::move(outcome.findings);
  }

  // Whether the chunks of the colour hold these marks, which are then taken away.
  [[nodiscard]] Result<void> take_marks(const Colors& colors, std::uint32_t begin) {
    std::byte* const arena = memory_[1].data() + (base_ - addresses_[1]);
    for (std::uint64_t i = 0; i < colors.bytes() / colors.granule(); ++i) {
      const std::uint64_t first = i * colors.granule();
      const auto mark = static_cast<std::uint32_t>(i + begin);
      DEMARC_CHECK(take(arena, colors.position(first), mark, first));
      const std::uint64_t last = first + colors.granule() - sizeof mark;
      DEMARC_CHECK(take(arena, colors.position(last), ~mark, last));
    }
    return {};
  }

  [[nodiscard]] bool is_untouched() const {
    return std::count(memory_[1].begin(), memory_[1].end(), untouched) == std::ssize(memory_[1]);
  }

 private:
  static gpu::Scalar number(gpu::ScalarType type, std::uint64_t value) {
    return gpu::make_scalar(type, static_cast<std::int64_t>(value));
  }
  static Result<void> take(std::byte* arena, std::uint64_t position, std::uint32_t mark,
                           std::uint64_t linear) {
    std::uint32_t found = 0;
    std::memcpy(&found, arena + position, sizeof found);
    std::fill_n(arena + position, sizeof found, untouched);
    if (found == mark) return {};
    return check_failed("linear byte {}, which lies at {}, holds {:#x} and not {:#x}", linear,
                        position, found, mark);
  }

  gpu::Memory memory_;
  gpu::Launch launch_;
  std::vector<std::uint64_t> addresses_;
  std::uint64_t base_ = 0;
};

using AllColors = std::vector<std::unique_ptr<Colors>>;

// Each colour's code writes where its chunks lie, and nowhere else.
void expect_mapping(const AllColors& colors) {
  MarkedArena arena(*colors[0]);
  constexpr std::uint32_t apart = 1U << 24U;  // marks of two colours
  for (std::size_t i = 0; i < colors.size(); ++i) {
    const auto findings = arena.mark(*colors[i], 0, colors[i]->bytes() / colors[i]->granule(),
                                     static_cast<std::uint32_t>(i) * apart);
    ASSERT_TRUE(findings) << findings.error().message;
    ASSERT_TRUE(findings->empty()) << describe(findings->front(), "mark.ptx");
  }
  for (std::size_t i = 0; i < colors.size(); ++i) {
    const auto taken = arena.take_marks(*colors[i], static_cast<std::uint32_t>(i) * apart);
    ASSERT_TRUE(taken) << "colour " << i << ": " << taken.error().message;
  }
  EXPECT_TRUE(arena.is_untouched()) << "bytes of no colour were written";
}

// Random pages, whose remainders are cut into colours at random places.
color::RemainderColoring random_coloring(std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint32_t> constants(pages);
  for (std::uint32_t& constant : constants) constant = static_cast<std::uint32_t>(random.below(64));
  constexpr std::uint32_t modulus = 47;
  std::vector<color::RemainderColoring::Window> windows;
  auto first = static_cast<std::uint32_t>(random.below(modulus));
  for (std::uint32_t left = modulus; left != 0;) {
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random.below(left));
    windows.push_back({first, count});
    first = (first + count) % modulus;
    left -= count;
  }
  return color::RemainderColoring::make(color::h200_remainders(), windows, constants).value();
}

template <class Form>
AllColors all_of(const color::RemainderColoring& coloring) {
  AllColors colors;
  for (std::uint32_t i = 0; i < coloring.colors(); ++i) {
    colors.push_back(std::make_unique<Form>(i, coloring));
  }
  return colors;
}

// With a quotient that is shifted, as those of large arenas are.
template <class Form>
class ShiftedQuotients : public Form {
 public:
  using Form::Form;

 protected:
  [[nodiscard]] color::RemainderAddressing addressing(std::uint64_t arena,
                                                      std::uint64_t table) const override {
    color::RemainderAddressing made = Form::addressing(arena, table);
    constexpr std::uint32_t shift = 2;
    constexpr std::uint32_t all = 8 * 47;  // chunks of a round
    const std::uint64_t own = all - made.constants.skipped;
    made.constants.reciprocal =
        static_cast<std::uint32_t>(((std::uint64_t{1} << (32 + shift)) + own - 1) / own);
    made.constants.reciprocal_shift = shift;
    made.shape.shifts_quotients = true;
    return made;
  }
};

class RemainderMapping : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RemainderMapping, of_rewritten_code_is_that_of_the_colouring_for_all_chunks_of_64_pages) {
  const color::RemainderColoring coloring = random_coloring(GetParam());
  expect_mapping(all_of<RemainderColors>(coloring));
  expect_mapping(all_of<RemainderPlacesAtLoad>(coloring));
  expect_mapping(all_of<RemainderColorsAtLoad>(coloring));
  expect_mapping(all_of<ShiftedQuotients<RemainderColors>>(coloring));
  expect_mapping(all_of<ShiftedQuotients<RemainderColorsAtLoad>>(coloring));
}

// The next chunk, chunks of as many pages again, and the last that a chunk's number can tell.
TEST_P(RemainderMapping, leads_outside_of_the_arena_behind_the_last_chunk) {
  const color::RemainderColoring coloring = random_coloring(GetParam());
  const AllColors known = all_of<RemainderColors>(coloring);
  const AllColors at_load = all_of<RemainderColorsAtLoad>(coloring);
  MarkedArena arena(*known[0]);
  for (std::uint32_t i = 0; i < coloring.colors(); ++i) {
    const color::RemainderSteps steps = coloring.steps(i).value();
    const std::uint64_t behind = steps.end - steps.begin;
    for (const std::uint64_t chunk : {behind, behind + 1, 2 * behind, std::uint64_t{1} << 31U}) {
      for (const Colors* colors : {known[i].get(), at_load[i].get()}) {
        const auto findings = arena.mark(*colors, chunk << steps.chunk_shift, 1, 0);
        ASSERT_TRUE(findings) << findings.error().message;
        ASSERT_EQ(findings->size(), 2U);
        for (const Finding& finding : *findings) {
          EXPECT_EQ(finding.kind, FindingKind::out_of_bounds);
          // Not a load from the table.
          EXPECT_TRUE(finding.instruction.starts_with("st.")) << finding.instruction;
        }
      }
    }
  }
  EXPECT_TRUE(arena.is_untouched());
}

INSTANTIATE_TEST_SUITE_P(Pages, RemainderMapping, testing::Range<std::uint64_t>(1, 6));

TEST(ParityMapping, of_rewritten_code_is_that_of_the_colouring_for_all_chunks_of_64_pages) {
  for (const auto& [masks, pivots] :
       std::vector<std::pair<std::vector<std::uint64_t>, std::vector<std::uint32_t>>>{
           {{0xc4000}, {}},
           {{0x18a000, 0xc4000}, {}},
           {{0x600, 0x1fa000}, {}},
           {{0x110, 0x420, 0x1f5840}, {}},
           {{0x22000, 0x14000, 0x48000}, {}},
           {{0x2c4000}, {21}},
           {{0x6c4000}, {22}},
           {{0x38a000, 0x4c4000}, {21, 22}},
           {{0x200110, 0x400420, 0x9f5840}, {21, 22, 23}}}) {
    for (const bool at_load : {false, true}) {
      AllColors colors;
      for (std::uint32_t color = 0; color < 1U << masks.size(); ++color) {
        if (at_load) {
          colors.push_back(std::make_unique<MaskColorsAtLoad>(masks, color, pages, pivots));
        } else {
          colors.push_back(std::make_unique<MaskColors>(masks, color, pages, pivots));
        }
      }
      expect_mapping(colors);
    }
  }
}

}  // namespace
}  // namespace demarc::emulate::colored
