// Products of a warpgroup against a plain triple loop, with operands in registers and in shared
// memory in every layout that a descriptor can name.
#include <random>

#include "harness.hpp"
#include "instructions/reference.hpp"

namespace demarc::emulate::warpgroups {
namespace {

using test::narrow_bf16;
using test::narrow_e4m3;
using test::narrow_e5m2;
using test::narrow_f16;

constexpr unsigned rows = 64;

unsigned bits_of(const std::string& type) {
  if (type == "f16" || type == "bf16") return 16;
  if (type == "b1") return 1;
  return type == "tf32" || type == "f32" || type == "s32" ? 32 : 8;
}

double number_of(std::uint64_t bits, const std::string& type) {
  if (type == "f16") return narrow_f16().value(bits);
  if (type == "bf16") return narrow_bf16().value(bits);
  if (type == "e4m3") return narrow_e4m3().value(bits);
  if (type == "e5m2") return narrow_e5m2().value(bits);
  if (type == "tf32" || type == "f32") return static_cast<double>(test::f32_of(bits));
  if (type == "s32") return static_cast<double>(static_cast<std::int32_t>(bits));
  if (type == "s8") return static_cast<double>(static_cast<std::int8_t>(bits));
  return static_cast<double>(bits);
}

// Small whole numbers, so that every sum is exact whatever its order.
std::uint64_t bits_for(std::mt19937& engine, const std::string& type) {
  const int value = static_cast<int>(engine() % 9) - 4;
  if (type == "f16") return narrow_f16().round(value);
  if (type == "bf16") return narrow_bf16().round(value);
  if (type == "e4m3") return narrow_e4m3().round(value);
  if (type == "e5m2") return narrow_e5m2().round(engine() % 2 == 0 ? 2 : -3);
  if (type == "tf32" || type == "f32") return test::bits(static_cast<float>(value));
  if (type == "s32") return static_cast<std::uint32_t>(value * 1000);
  return engine() & ((1U << bits_of(type)) - 1);
}

// How an operand lies in shared memory, as CUTLASS names the canonical layouts
// (mma_sm90_desc.hpp): rows of `width` bytes (16: none is swizzled) along k or along the rows.
struct Placing {
  unsigned width = 16;
  bool along_rows = false;
};

struct Case {
  std::string name;
  unsigned n, k;
  std::string d, a, b;
  Placing of_a, of_b;
  bool a_in_registers = false;
  std::string between = "";     // modifiers: satfinite, and.popc
  std::string immediates = "";  // behind the operand that says whether d is added to
  std::string scale = "1";
  int sign = 1;  // what the immediates make of a product
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

// An operand of `count` rows, each of 32 bytes of k, in memory of its own.
class Operand {
 public:
  Operand(std::string type, unsigned count, unsigned k, Placing placing, std::mt19937& engine)
      : type_(std::move(type)), count_(count), k_(k), placing_(placing) {
    for (unsigned i = 0; i < count * k; ++i) bits_.push_back(bits_for(engine, type_));
    memory_.resize(bytes());
    for (unsigned row = 0; row < count_; ++row) {
      for (unsigned l = 0; l < k_; ++l) {
        const unsigned at = bit_at(row, l);
        memory_[at / 8] |= static_cast<std::byte>(bits_[row * k_ + l] << at % 8 & 0xff);
        for (unsigned byte = 1; byte < bits_of(type_) / 8; ++byte) {
          memory_[at / 8 + byte] = static_cast<std::byte>(bits_[row * k_ + l] >> 8 * byte & 0xff);
        }
      }
    }
  }
  [[nodiscard]] double number(unsigned row, unsigned l) const {
    return number_of(bits_[row * k_ + l], type_);
  }
  [[nodiscard]] std::uint64_t bits(unsigned row, unsigned l) const { return bits_[row * k_ + l]; }
  [[nodiscard]] const std::vector<std::byte>& memory() const { return memory_; }
  // Without the address.
  [[nodiscard]] std::uint64_t descriptor() const {
    const std::uint64_t swizzle = placing_.width == 16   ? 0
                                  : placing_.width == 32 ? 3
                                  : placing_.width == 64 ? 2
                                                         : 1;
    return swizzle << 62 | std::uint64_t{stride() / 16} << 32 | std::uint64_t{leading() / 16} << 16;
  }

 private:
  // Groups of eight rows, and of eight k where k does not follow k.
  [[nodiscard]] unsigned in_row() const { return placing_.width / 2; }  // of 16 bits
  [[nodiscard]] unsigned stride() const {
    if (placing_.width != 16) return 8 * placing_.width;
    return placing_.along_rows ? 128 : 256;
  }
  [[nodiscard]] unsigned leading() const {
    if (placing_.width != 16) return placing_.along_rows ? stride() * k_ / 8 : 16;
    return placing_.along_rows ? 128 * count_ / 8 : 128;
  }
  [[nodiscard]] unsigned bytes() const {
    const unsigned wide = placing_.along_rows ? (count_ + in_row() - 1) / in_row() : 1;
    return std::max(count_ * 32U,
                    placing_.along_rows ? wide * k_ * placing_.width : count_ * placing_.width);
  }
  [[nodiscard]] unsigned bit_at(unsigned row, unsigned l) const {
    const unsigned width = placing_.width;
    unsigned bit = 0;
    if (placing_.along_rows) {
      bit = 8 * (width == 16 ? row / 8 * stride() + l / 8 * leading() + l % 8 * 16 + row % 8 * 2
                             : row / in_row() * leading() + l / 8 * stride() + l % 8 * width +
                                   row % in_row() * 2);
    } else {
      const unsigned along = l * bits_of(type_);  // bits
      bit = width == 16
                ? 8 * (row / 8 * stride() + along / 128 * leading() + row % 8 * 16) + along % 128
                : 8 * (row / 8 * stride() + row % 8 * width) + along;
    }
    const unsigned byte = bit / 8;
    const unsigned swizzled = byte ^ (byte >> 7 & (width / 16 - 1)) << 4;
    return 8 * swizzled + bit % 8;
  }

  std::string type_;
  unsigned count_, k_;
  Placing placing_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::byte> memory_;
};

unsigned d_registers(const Case& one) {
  return one.n * rows / 128 * bits_of(one.d) / 32;
}

std::string list_of(const char* name, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, i);
  return text + "}";
}

// The buffer: a and b as they lie in shared memory, fragments of a, d. Fragments: register r of
// thread t is word r * 128 + t.
struct Places {
  std::size_t a, b, fragment, d, bytes;
};

Places places_of(const Case& one, const Operand& a, const Operand& b) {
  const auto up = [](std::size_t bytes) { return (bytes + 1023) / 1024 * 1024; };
  Places places{};
  places.b = up(a.memory().size());
  places.fragment = places.b + up(b.memory().size());
  places.d = places.fragment + 4 * 128 * 4;
  places.bytes = places.d + std::size_t{d_registers(one)} * 128 * 4;
  return places;
}

std::string text_of(const Case& one, const Operand& a, const Operand& b, const Places& places) {
  const bool floats = one.d == "f32";
  const std::string d_type = floats ? ".f32" : ".b32";
  std::string text = fmt::format(
      ".version 8.4\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 tile[{}];\n"
      ".visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<3>; .reg .b32 %r<20>, %x<4>; .reg .b64 "
      "%rd<9>; .reg {} %d<128>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, "
      "tile;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd1, %rd2;\n",
      places.fragment, d_type);
  for (std::size_t at = 0; at < places.fragment; at += 512) {
    text += fmt::format(
        "ld.global.u32 %r3, [%rd2+{0}];\nshl.b32 %r4, %r1, 2;\nadd.u32 %r4, %r4, %r2;\n"
        "st.shared.u32 [%r4+{0}], %r3;\n",
        at);
  }
  for (unsigned i = 0; i < 4; ++i) {
    text += fmt::format("ld.global.b32 %x{}, [%rd2+{}];\n", i, places.fragment + 512 * i);
  }
  for (unsigned i = 0; i < d_registers(one); ++i) {
    text += fmt::format("ld.global{} %d{}, [%rd2+{}];\n", d_type, i, places.d + 512 * i);
  }
  text +=
      "bar.sync 0;\nsetp.ne.u32 %p1, %r2, %r2;\nfence.proxy.async;\nshr.u32 %r5, %r2, 4;\n"
      "cvt.u64.u32 %rd3, %r5;\nwgmma.fence.sync.aligned;\n";
  text += fmt::format("or.b64 %rd4, %rd3, {};\nadd.s64 %rd5, %rd3, {};\nor.b64 %rd5, %rd5, {};\n",
                      static_cast<std::int64_t>(a.descriptor()), places.b / 16,
                      static_cast<std::int64_t>(b.descriptor()));
  text +=
      fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{}{} {}, {}, %rd5, {}{};\n",
                  one.n, one.k, one.between == "satfinite" ? ".satfinite" : "", one.d, one.a, one.b,
                  one.between == "and.popc" ? ".and.popc" : "", list_of("d", d_registers(one)),
                  one.a_in_registers ? list_of("x", 4) : "%rd4", one.scale, one.immediates);
  text += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (unsigned i = 0; i < d_registers(one); ++i) {
    text += fmt::format("st.global{} [%rd2+{}], %d{};\n", d_type, places.d + 512 * i, i);
  }
  return text + "ret;\n}\n";
}

// Element `i` of thread `t`: its row and column in d, as the manual's figures have them.
std::pair<unsigned, unsigned> place_in_d(unsigned t, unsigned i) {
  return {t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, i / 4 * 8 + t % 4 * 2 + i % 2};
}
// ... and in a.
std::pair<unsigned, unsigned> place_in_a(unsigned t, unsigned i, unsigned together) {
  const unsigned part = i / together;
  return {t / 32 * 16 + t % 32 / 4 + part % 2 * 8,
          part / 2 * 4 * together + t % 4 * together + i % together};
}

class Warpgroups : public testing::TestWithParam<Case> {};

TEST_P(Warpgroups, multiply_as_a_plain_loop_does) {
  const Case& one = GetParam();
  std::mt19937 engine(17);
  const Operand a(one.a, rows, one.k, one.of_a, engine);
  const Operand b(one.b, one.n, one.k, one.of_b, engine);
  const Places places = places_of(one, a, b);
  std::vector<std::byte> memory(places.bytes);
  std::copy(a.memory().begin(), a.memory().end(), memory.begin());
  std::copy(b.memory().begin(), b.memory().end(),
            memory.begin() + static_cast<std::ptrdiff_t>(places.b));
  const auto word_at = [&](std::size_t base, unsigned t, unsigned bit) {
    return base + (std::size_t{bit / 32} * 128 + t) * 4 + bit % 32 / 8;
  };
  std::vector<double> before(std::size_t{rows} * one.n);
  for (unsigned t = 0; t < 128; ++t) {
    const unsigned width = bits_of(one.a);
    for (unsigned i = 0; i < 128 / width; ++i) {
      const auto [row, l] = place_in_a(t, i, 32 / width);
      const std::uint64_t bits = a.bits(row, l);
      const std::size_t at = word_at(places.fragment, t, i * width);
      for (unsigned byte = 0; byte < std::max(width / 8, 1U); ++byte) {
        memory[at + byte] |= static_cast<std::byte>((bits >> 8 * byte << i * width % 8) & 0xff);
      }
    }
    for (unsigned i = 0; i < one.n / 2; ++i) {
      const std::uint64_t bits = bits_for(engine, one.d);
      std::memcpy(&memory[word_at(places.d, t, i * bits_of(one.d))], &bits, bits_of(one.d) / 8);
      const auto [row, column] = place_in_d(t, i);
      before[row * one.n + column] = number_of(bits, one.d);
    }
  }
  const ptx::ParseResult parsed = ptx::parse(text_of(one, a, b, places), "t.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok()) << ptx::format(parsed.diagnostics.list.front(), "t.ptx");
  const auto outcome = run_on(parsed.module, test::launch_of(1, 128, places.bytes), {{memory}}, {});
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_TRUE(outcome->findings.empty()) << describe(outcome->findings[0], "t.ptx");
  for (unsigned t = 0; t < 128; ++t) {
    for (unsigned i = 0; i < one.n / 2; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &outcome->buffers[0][word_at(places.d, t, i * bits_of(one.d))],
                  bits_of(one.d) / 8);
      const auto [row, column] = place_in_d(t, i);
      double sum = one.scale == "1" || one.scale == "!%p1" ? before[row * one.n + column] : 0;
      for (unsigned l = 0; l < one.k; ++l) {
        sum += one.sign * a.number(row, l) * b.number(column, l);
      }
      ASSERT_EQ(number_of(bits, one.d), sum) << row << ", " << column;
    }
  }
}

std::vector<Case> cases() {
  const Placing plain;
  std::vector<Case> all;
  for (const unsigned width : {16U, 32U, 64U, 128U}) {
    const auto named = [&](const char* name) { return fmt::format("{}_of_{}_bytes", name, width); };
    const Placing along_k{width, false};
    const Placing along_rows{width, true};
    all.push_back({named("rows_along_k"), 64, 16, "f32", "f16", "f16", along_k, along_k, false, "",
                   ", 1, 1, 0, 0"});
    all.push_back({named("a_along_rows"), 64, 16, "f32", "bf16", "bf16", along_rows, along_k, false,
                   "", ", 1, 1, 1, 0"});
    all.push_back({named("b_along_rows"), 128, 16, "f32", "f16", "f16", along_k, along_rows, false,
                   "", ", 1, 1, 0, 1"});
    all.push_back({named("a_in_registers"), 64, 16, "f32", "f16", "f16", plain, along_rows, true,
                   "", ", 1, 1, 1"});
    all.push_back({named("bytes"), 32, 32, "s32", "u8", "s8", along_k, along_k});
  }
  all.push_back({"the_least", 8, 16, "f16", "f16", "f16", plain, plain, false, "", ", 1, 1, 0, 0"});
  all.push_back(
      {"the_largest", 256, 16, "f32", "f16", "f16", plain, plain, false, "", ", 1, 1, 0, 0"});
  all.push_back(
      {"no_sum_before", 16, 16, "f32", "f16", "f16", plain, plain, false, "", ", 1, 1, 0, 0", "0"});
  all.push_back({"no_sum_before_by_a_predicate", 16, 16, "f32", "f16", "f16", plain, plain, false,
                 "", ", 1, 1, 0, 0", "%p1"});
  all.push_back({"a_sum_before_by_a_predicate", 16, 16, "f32", "f16", "f16", plain, plain, false,
                 "", ", 1, 1, 0, 0", "!%p1"});
  all.push_back(
      {"one_sign", 16, 16, "f32", "f16", "f16", plain, plain, false, "", ", -1, 1, 0, 0", "1", -1});
  all.push_back({"another_sign", 16, 16, "f32", "f16", "f16", plain, plain, false, "",
                 ", 1, -1, 0, 0", "1", -1});
  all.push_back({"both_signs", 16, 16, "f32", "f16", "f16", plain, plain, false, "",
                 ", -1, -1, 0, 0", "1", 1});
  all.push_back({"tf32", 24, 8, "f32", "tf32", "tf32", plain, {128, false}, false, "", ", 1, 1"});
  all.push_back(
      {"tf32_in_registers", 24, 8, "f32", "tf32", "tf32", plain, plain, true, "", ", 1, 1"});
  all.push_back({"fp8", 40, 32, "f32", "e4m3", "e5m2", plain, {64, false}, false, "", ", 1, 1"});
  all.push_back({"fp8_to_f16", 40, 32, "f16", "e5m2", "e4m3", plain, plain, true, "", ", 1, 1"});
  all.push_back({"saturated", 16, 32, "s32", "s8", "s8", plain, plain, false, "satfinite"});
  all.push_back({"bytes_in_registers", 16, 32, "s32", "s8", "u8", plain, plain, true});
  all.push_back({"bits", 16, 256, "s32", "b1", "b1", plain, plain, false, "and.popc"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, Warpgroups, testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

Result<Outcome> outcome_of(const std::string& instructions, std::uint32_t threads = 128) {
  return test::run_text(
      ".version 8.4\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 tile[4096];\n"
      ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; "
      ".reg .f32 %f<9>;\n"
      "mov.u32 %r6, tile;\nmov.u32 %r8, %tid.x;\ncvt.u64.u32 %rd1, %r8;\nmov.u64 %rd2, "
      "0;\nsetp.lt.u32 %p1, %r8, 5;\n" +
          instructions + "ret;\n}\n",
      test::launch_of(1, threads, 64));
}

struct Stopped {
  const char* name;
  const char* instructions;
  const char* said;
  FindingKind kind = FindingKind::trap;
  std::uint32_t threads = 128;
};

void PrintTo(const Stopped& one, std::ostream* out) {
  *out << one.name;
}

class WarpgroupStops : public testing::TestWithParam<Stopped> {};

TEST_P(WarpgroupStops, end_the_launch_with_a_finding) {
  const auto outcome = outcome_of(GetParam().instructions, GetParam().threads);
  ASSERT_TRUE(outcome) << outcome.error().message;
  std::string said;
  for (const Finding& one : outcome->findings) {
    EXPECT_NE(one.kind, FindingKind::hang) << "the block ends there";
    if (one.kind != GetParam().kind) continue;
    said += describe(one, "t.ptx");
    EXPECT_EQ(one.count, 1U);
  }
  EXPECT_NE(said.find(GetParam().said), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Of, WarpgroupStops,
    testing::Values(
        Stopped{"lanes_missing",
                "@%p1 wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, %rd2, 0, "
                "1, 1, 0, 0;\n",
                "not all lanes of a warp take part"},
        Stopped{"warps_missing",
                "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, %rd2, 0, 1, "
                "1, 0, 0;\n",
                "not all warps of a warpgroup take part", FindingKind::trap, 224},
        Stopped{"descriptors_that_differ",
                "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, %rd1, 0, 1, "
                "1, 0, 0;\n",
                "different descriptors"},
        Stopped{"a_base_offset",
                "mov.u64 %rd2, 0x4002000000000000;\n"
                "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, %rd2, 0, 1, "
                "1, 0, 0;\n",
                "a base offset, which the emulator does not cover", FindingKind::limit}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Warpgroups, memory_that_is_not_there_is_found) {
  const auto outcome = outcome_of(
      "mov.u64 %rd2, 0x1000;\nwgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, "
      "%rd2, 0, 1, 1, 0, 0;\n");
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(outcome->findings.empty());
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::out_of_bounds);
}

TEST(Warpgroups, a_row_that_another_warp_writes_meanwhile_is_a_race) {
  const auto outcome = outcome_of(
      "mul.wide.u32 %rd3, %r8, 16;\ncvt.u32.u64 %r7, %rd3;\nst.shared.u32 [%r7], 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, %rd2, 0, 1, 1, 0, 0;\n");
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto& found = outcome->findings;
  EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                          [](const Finding& one) { return one.kind == FindingKind::shared_race; }));
}

TEST(Warpgroups, forms_that_there_are_not_are_refused) {
  for (const char* form :
       {"wgmma.mma_async.sync.aligned.m64n12k16.f16.f16.f16 {%r1, %r2, %r3}, %rd2, %rd2, 0, 1, 1, "
        "0, "
        "0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1}, %rd2, %rd2, 0, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, %rd2, 0, 2, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, %rd2, 0, 1, 1, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r1, %r2}, %rd2, %rd2, 0, 1, 1, 0, "
        "0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 0, "
        "1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.s8 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 0, 1, "
        "1;",
        "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, "
        "%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r1, %r2, %r3, %r4}, %rd2, %rd2, 0;"}) {
    const auto outcome = outcome_of(std::string(form) + "\n");
    ASSERT_FALSE(outcome) << form;
    EXPECT_NE(outcome.error().message.find("does not cover"), std::string::npos)
        << outcome.error().message;
  }
}

}  // namespace
}  // namespace demarc::emulate::warpgroups
