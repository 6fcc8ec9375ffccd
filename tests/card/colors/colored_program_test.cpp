// A module that is loaded into a share of a pool: what it brings lies there, what does not is
// refused by kernel.
#include "demarc/card/colored_program.hpp"
#include "demarc/card/code_of_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "demarc/ptx/parser.hpp"
#include "pools.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

std::shared_ptr<ColoredPool> small_pool() {
  return test::parity_pool(std::uint64_t{32} << 20U).value();
}

ptx::Module module_of(const std::string& text) {
  return ptx::parse_whole(".version 8.0\n.target sm_90\n.address_size 64\n" + text, "k.ptx")
      .value();
}

std::string kernel(const std::string& name, const std::string& body,
                   const std::string& directives = "") {
  return ".visible .entry " + name + "(.param .u64 p)\n" + directives +
         "{\n.reg .b64 %rd<4>; .reg .b32 %r<4>;\n" + body + "\nret;\n}\n";
}

const std::string variables =
    ".visible .global .align 4 .u32 table[2] = {7, 9};\n"
    ".visible .global .align 8 .u64 second = generic(table)+4;\n"
    ".visible .global .align 4 .u32 zeros[1024];\n";

Result<ColoredProgram> load(const std::shared_ptr<ColoredPool>& pool, const std::string& text,
                            const std::vector<KernelUse>& uses) {
  return ColoredProgram::load(pool, 1, module_of(text), uses);
}

TEST(ColoredProgram, variables_lie_in_the_share_with_their_first_content) {
  const auto pool = small_pool();
  const auto program =
      load(pool,
           variables + kernel("k",
                              "ld.global.u64 %rd1, [second];\nld.u32 %r1, [%rd1];\n"
                              "st.global.u32 [zeros+8], %r1;"),
           {{"k", 64, 64}});
  ASSERT_TRUE(program) << program.error().message;
  const auto table = program->variable("table");
  const auto second = program->variable("second");
  const auto zeros = program->variable("zeros");
  ASSERT_TRUE(table && second && zeros);
  EXPECT_FALSE(program->variable("other"));
  EXPECT_EQ(table->bytes, 8U);
  EXPECT_EQ(table->offset, 0U) << "a pool's start is aligned for everything";
  EXPECT_EQ(zeros->bytes, 4096U);
  const auto read = [&](const ColoredProgram::Variable& variable, auto value) {
    EXPECT_TRUE(program->variables()->download(&value, sizeof value, variable.offset));
    return value;
  };
  EXPECT_EQ(read(*table, std::uint64_t{0}), 7U + (std::uint64_t{9} << 32U));
  EXPECT_EQ(read(*second, std::uint64_t{0}), table->address + 4);
  EXPECT_EQ(read(*zeros, std::array<std::uint32_t, 1024>{1}), (std::array<std::uint32_t, 1024>{}));
  const auto stream = Stream::create(pool->arena().gpu()).value();
  const auto function = program->module().function("k").value();
  ASSERT_TRUE(launch(stream, function, LaunchShape::line(1, 64), std::uint64_t{0}));
  ASSERT_TRUE(stream.wait());
  EXPECT_EQ(read(*zeros, std::array<std::uint32_t, 1024>{})[2], 9U) << "read by way of second";
  EXPECT_EQ(table->address - table->offset,
            code_of_pool(*pool, 1)->pointer(program->variables()->first()).raw());
}

TEST(ColoredProgram, variables_lie_at_multiples_of_their_alignment_wherever_the_share_begins) {
  const auto pool = small_pool();
  const auto before = pool->allocate(1, 256).value();
  const auto program = load(pool,
                            ".visible .global .align 1024 .u32 wide[3] = {7, 9, 11};\n" +
                                kernel("k", "st.global.u32 [wide], 1;"),
                            {{"k", 64, 64}});
  ASSERT_TRUE(program) << program.error().message;
  const auto wide = program->variable("wide").value();
  EXPECT_EQ(wide.address % 1024, 0U);
  EXPECT_EQ(wide.offset, 768U) << "no more is skipped than must be";
  std::array<std::uint32_t, 3> values{};
  ASSERT_TRUE(program->variables()->download(values.data(), sizeof values, wide.offset));
  EXPECT_EQ(values, (std::array<std::uint32_t, 3>{7, 9, 11}));
}

TEST(ColoredProgram, every_thread_has_local_memory_of_its_own_in_the_share) {
  const auto pool = small_pool();
  const auto program =
      load(pool,
           ".visible .global .align 4 .u32 seen[64];\n" +
               kernel("k",
                      ".local .align 4 .b8 own[8];\nmov.u32 %r1, %tid.x;\n"
                      "st.local.u32 [own+4], %r1;\nbar.sync 0;\nld.local.u32 %r2, [own+4];\n"
                      "add.u32 %r2, %r2, 5;\nmul.wide.u32 %rd1, %r1, 4;\nmov.u64 %rd2, seen;\n"
                      "add.u64 %rd2, %rd2, %rd1;\nst.global.u32 [%rd2], %r2;"),
           {{"k", 64, 64}});
  ASSERT_TRUE(program) << program.error().message;
  const auto stream = Stream::create(pool->arena().gpu()).value();
  const auto function = program->module().function("k").value();
  ASSERT_TRUE(launch(stream, function, LaunchShape::line(1, 64), std::uint64_t{0}));
  ASSERT_TRUE(stream.wait());
  std::array<std::uint32_t, 64> seen{};
  ASSERT_TRUE(
      program->variables()->download(seen.data(), sizeof seen, program->variable("seen")->offset));
  for (std::uint32_t thread = 0; thread < 64; ++thread) EXPECT_EQ(seen[thread], thread + 5);
}

// A share of remainders, and a kernel that counts along its pointer.
struct RemainderHalf {
  std::shared_ptr<ColoredPool> pool;
  ColoredBuffer before;
  ColoredBuffer buffer;
};

RemainderHalf remainder_half() {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  const auto scheme = color::color_scheme(gpu::find_device("h200").value(), 2).value();
  constexpr ShareRequest each_side[] = {{{0x1, 2}, 0}, {{0x2, 2}, 0}};
  auto pool =
      ColoredPool::create(test::fake_card(config).value(), scheme, 8 << 20U, each_side).value();
  ColoredBuffer before = pool->allocate(1, 3000).value();
  ColoredBuffer buffer = pool->allocate(1, std::uint64_t{4} << 18U).value();
  return {std::move(pool), std::move(before), std::move(buffer)};
}

const std::string counting = kernel(  // NOLINT(cert-err58-cpp)
    "k",
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n"
    "mad.lo.u32 %r1, %r1, 64, %r2;\nmul.wide.u32 %rd2, %r1, 1024;\n"
    "add.u64 %rd1, %rd1, %rd2;\nld.global.u32 %r3, [%rd1];\nadd.u32 %r3, %r3, %r1;\n"
    "st.global.u32 [%rd1], %r3;");

// It finds each byte of the share where the host put it.
void expect_counted(const RemainderHalf& half, const Module& module) {
  std::vector<std::uint32_t> words(std::size_t{1} << 18U);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i * 77);
  ASSERT_TRUE(half.buffer.upload(words.data(), 4 * words.size()));
  const auto pointer = code_of_pool(*half.pool, 1)->pointer(half.buffer.first()).raw();
  EXPECT_EQ(pointer, half.pool->arena().address() + half.buffer.first().raw());
  const auto stream = Stream::create(half.pool->arena().gpu()).value();
  ASSERT_TRUE(launch(stream, module.function("k").value(), LaunchShape::line(16, 64), pointer));
  ASSERT_TRUE(stream.wait());
  for (std::uint32_t thread = 0; thread < 1024; ++thread) words[256 * thread] += thread;
  std::vector<std::uint32_t> back(words.size());
  ASSERT_TRUE(half.buffer.download(back.data(), 4 * back.size()));
  EXPECT_EQ(back, words);
}

TEST(ColoredProgram, of_a_share_of_remainders_finds_its_bytes_where_the_host_put_them) {
  const RemainderHalf half = remainder_half();
  const auto program = load(half.pool, counting, {{"k", 1024, 64}});
  ASSERT_TRUE(program) << program.error().message;
  expect_counted(half, program->module());
}

// Each thread adds a number of the table to its own, by way of an address among first contents and
// of a local variable.
const std::string by_places =
    variables +
    kernel("k",
           ".local .align 4 .b8 own[8];\nmov.u32 %r1, %tid.x;\nld.global.u64 %rd1, [second];\n"
           "ld.u32 %r2, [%rd1];\nadd.u32 %r2, %r2, %r1;\nst.local.u32 [own+4], %r2;\n"
           "bar.sync 0;\nld.local.u32 %r3, [own+4];\nmul.wide.u32 %rd2, %r1, 4;\n"
           "mov.u64 %rd3, zeros;\nadd.u64 %rd3, %rd3, %rd2;\nst.global.u32 [%rd3], %r3;");

// The text is as good for any place: it is loaded once and told two, one after the other.
void expect_placed_at_load(const std::shared_ptr<ColoredPool>& pool) {
  constexpr std::uint64_t threads = 64;
  const auto code = code_of_pool(*pool, 1).value();
  const auto needs = ptx::find_colored_needs(module_of(by_places)).value();
  const auto made = code.rewrite(module_of(by_places), {.places = ptx::PlacesAtLoad{}});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(ptx::check_accepted(made->kernels, "k.ptx"));
  const GpuPointer gpu = pool->arena().gpu();
  const auto module = Module::load(gpu, *made->module.text, "k.ptx").value();
  const auto variable = module.global(ptx::colored_constants_name).value();
  const auto stream = Stream::create(gpu).value();
  std::vector<ColoredBuffer> kept;  // no two places are the same
  for (int round = 0; round < 2; ++round) {
    ColoredBuffer block = pool->allocate(1, needs.variables.bytes).value();
    ColoredBuffer local = pool->allocate(1, threads * needs.local_bytes).value();
    const ptx::ColoredPlaces places{code.pointer(block.first()).raw(),
                                    code.pointer(local.first()).raw(), threads};
    auto content = needs.variables.content(places.variables);
    content.resize(needs.variables.bytes);
    ASSERT_TRUE(block.upload(content.data(), content.size()));
    const auto constants = code.constants(places);
    ASSERT_EQ(variable.second, constants.size());
    ASSERT_EQ(gpu->api().cuMemcpyHtoD_v2(variable.first, constants.data(), constants.size()), 0);
    ASSERT_TRUE(launch(stream, module.function("k").value(), LaunchShape::line(1, threads),
                       std::uint64_t{0}));
    ASSERT_TRUE(stream.wait());
    ASSERT_TRUE(block.download(content.data(), content.size()));
    std::array<std::uint32_t, threads> seen{};
    std::memcpy(seen.data(), content.data() + needs.variables.variables.back().offset, sizeof seen);
    for (std::uint32_t thread = 0; thread < threads; ++thread) EXPECT_EQ(seen[thread], 9 + thread);
    kept.push_back(std::move(block));
    kept.push_back(std::move(local));
  }
}

// The text knows no colours; those of the share are written into its variable.
TEST(ColoredProgram, rewritten_before_the_colours_were_known_is_told_them_when_it_is_loaded) {
  const RemainderHalf half = remainder_half();
  const GpuPointer gpu = half.pool->arena().gpu();
  const auto made = color::rewrite_remainders(module_of(counting), color::RemainderShape{8, 13, 9});
  ASSERT_TRUE(made) << made.error().message;
  const auto module = Module::load(gpu, *made->module.text, "k.ptx").value();
  const auto variable = module.global(ptx::colored_constants_name);
  ASSERT_TRUE(variable) << variable.error().message;
  const auto constants = code_of_pool(*half.pool, 1)->constants({});
  ASSERT_EQ(variable->second, constants.size());
  ASSERT_EQ(gpu->api().cuMemcpyHtoD_v2(variable->first, constants.data(), constants.size()), 0);
  expect_counted(half, module);
  expect_placed_at_load(half.pool);
}

TEST(ColoredProgram, whose_share_is_small_shifts_no_quotients) {
  for (const std::uint32_t shift : {0U, 1U}) {
    const color::RemainderSteps steps{.chunk_shift = 8,
                                      .page_shift = 13,
                                      .pattern_bits = 9,
                                      .end = 1,
                                      .reciprocal = 1,
                                      .reciprocal_shift = shift};
    const ColoredCode code({}, color::make_law(steps), {9, 0});
    const auto made = code.rewrite(module_of(counting), {.places = ptx::PlacesAtLoad{}});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(
        made->module.text->find("shr.u32 \t%demarc_u, %demarc_u, %demarc_c") == std::string::npos,
        shift == 0);
  }
}

TEST(ColoredProgram, rewritten_before_places_were_known_is_told_them_when_it_is_loaded) {
  expect_placed_at_load(small_pool());
}

TEST(ColoredProgram, local_memory_is_as_large_as_the_largest_launch_needs) {
  const auto pool = small_pool();
  const std::string keeps = ".local .align 8 .b8 own[100];\nst.local.u32 [own], 1;";
  const auto before = pool->usage(1).largest_free_bytes;
  {
    const auto program = load(pool, kernel("k", keeps), {{"k", 1000, 64}});
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_GE(before - pool->usage(1).largest_free_bytes, 1000U * 112U);
  }
  EXPECT_EQ(pool->usage(1).largest_free_bytes, before);
  const auto plain = load(pool, kernel("k", "st.global.u32 [%rd1], 1;"), {{"k", 1000, 64}});
  ASSERT_TRUE(plain);
  EXPECT_EQ(pool->usage(1).largest_free_bytes, before);
  EXPECT_THAT(load(pool, kernel("k", keeps), {{"k", std::uint64_t{1} << 30U, 64}}).error().message,
              HasSubstr("bytes of local variables"));
}

TEST(ColoredProgram,
     a_kernel_that_is_launched_and_cannot_be_coloured_is_named_and_another_does_not_matter) {
  const auto pool = small_pool();
  const std::string text =
      kernel("bad", "prefetchu.L1 [%rd1];") + kernel("good", "st.global.u32 [%rd1], 1;");
  const auto good = load(pool, text, {{"good", 64, 64}});
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_TRUE(good->module().function("good"));
  EXPECT_FALSE(good->module().function("bad"));
  EXPECT_THAT(load(pool, text, {{"bad", 64, 64}}).error().message,
              HasSubstr("k.ptx:7: kernel 'bad': 'prefetchu.L1 [%rd1];' addresses memory"));
}

TEST(ColoredProgram,
     what_ptxas_keeps_in_local_memory_is_tried_with_more_registers_and_then_refused) {
  const auto pool = small_pool();
  const std::string spills = ".reg .b32 %spills<24>;\n";
  const std::string limited = ".maxntid 256, 1, 1\n.minnctapersm 8\n";
  const std::vector<KernelUse> uses{{"a", 64, 64}, {"b", 64, 64}};
  const auto freed = load(pool, kernel("a", spills, limited) + kernel("b", spills, limited), uses);
  ASSERT_TRUE(freed) << freed.error().message;
  EXPECT_EQ(freed->module().function("a")->attribute(function_local_bytes).value(), 0);
  EXPECT_EQ(freed->module().function("b")->attribute(function_local_bytes).value(), 0);
  const auto kept =
      load(pool, kernel("a", spills, limited) + kernel("b", ".reg .b32 %stack<8>;\n"), uses);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(kept.error().message,
              HasSubstr("kernel 'b' is not contained: ptxas keeps 8 bytes per thread"));
}

}  // namespace
}  // namespace demarc::cuda
