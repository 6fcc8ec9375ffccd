// What findings say of accesses that go wrong, space by space, and what becomes of the other
// threads of such an access.
#include <gmock/gmock.h>

#include <algorithm>

#include "harness.hpp"
#include "started_block.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::shared_area;
using test::words_of;
using testing::HasSubstr;

constexpr const char* access_declarations =
    ".const .align 16 .b8 table[48];\n.global .align 16 .b8 wide[64];\n";
constexpr const char* access_places =
    ".shared .align 16 .b8 tile[64];\n.local .align 16 .b8 own[80];\nmov.u64 %rd3, tile;\nmov.u64 "
    "%rd4, own;\nmov.u64 %rd5, table;\ncvta.shared.u64 %rd6, %rd3;\ncvta.local.u64 %rd7, "
    "%rd4;\ncvta.const.u64 %rd8, %rd5;\nmov.b64 %rd9, out;\ncvta.param.u64 %rd10, %rd9;\n"
    "mov.u32 %r9, tile;\n";

std::string access_detail_of(const std::string& body,
                             FindingKind kind = FindingKind::out_of_bounds) {
  const auto outcome = run_text(kernel_of(access_declarations, body), launch_of(1, 1, 256));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return {};
  EXPECT_EQ(outcome->findings.size(), 1U) << body;
  if (outcome->findings.empty()) return {};
  EXPECT_EQ(outcome->findings[0].kind, kind) << body;
  return outcome->findings[0].detail;
}

std::string access_detail(const std::string& instruction, FindingKind kind) {
  return access_detail_of(access_places + instruction, kind);
}

TEST(Accesses, beyond_a_space_say_what_they_are_where_and_how_large_it_is) {
  for (
      const auto& [instruction, detail] : std::vector<std::pair<std::string, std::string>>{
          {"ld.const.u32 %r3, [%rd5+48];",
           "read of 4 bytes at 0x30 in constant memory: it has 48 "
           "bytes"},
          {"ld.u32 %r3, [%rd8+48];", "read of 4 bytes at 0x30 in constant memory: it has 48 bytes"},
          {"st.local.u16 [%rd4+80], %h1;",
           "write of 2 bytes at 0x50 in local memory: it has 80 "
           "bytes"},
          {"st.u64 [%rd7+80], %rd1;", "write of 8 bytes at 0x50 in local memory: it has 80 bytes"},
          {"ld.u64 %rd11, [%rd10+8];",
           "read of 8 bytes at 0x8 in kernel parameters: it has 8 "
           "bytes"},
          {"atom.shared.add.u32 %r3, [%rd3+64], 1;",
           "atomic of 4 bytes at 0x40 in shared memory: it has 64 bytes; it lies 0 bytes after the "
           "end of the 64 bytes of 'tile'"},
          {"st.u8 [%rd6+100], %r1;",
           "write of 1 bytes at 0x64 in shared memory: it has 64 bytes; "
           "it lies 36 bytes after the end of the 64 bytes of 'tile'"},
          {"st.global.u32 [%rd1+256], %r1;",
           "write of 4 bytes at 0x700000000100 in global memory: "
           "it lies 0 bytes after the end of the 256 bytes at "
           "0x700000000000"}}) {
    EXPECT_EQ(access_detail(instruction, FindingKind::out_of_bounds), detail) << instruction;
  }
}

TEST(Accesses, that_write_what_may_only_be_read_say_so) {
  EXPECT_EQ(access_detail("st.u32 [%rd8], %r1;", FindingKind::out_of_bounds),
            "write of 4 bytes at 0x0 in constant memory: it is read-only");
  EXPECT_EQ(access_detail("st.u32 [%rd10], %r1;", FindingKind::out_of_bounds),
            "write of 4 bytes at 0x0 in kernel parameters: it is read-only");
  EXPECT_EQ(access_detail("atom.add.u32 %r3, [%rd8+4], 1;", FindingKind::out_of_bounds),
            "atomic of 4 bytes at 0x4 in constant memory: it is read-only");
}

TEST(Accesses, at_odd_addresses_say_what_would_be_right) {
  for (const auto& [instruction, detail] : std::vector<std::pair<std::string, std::string>>{
           {"ld.const.u32 %r3, [%rd5+2];",
            "read of 4 bytes at 0x2 in constant memory: the address "
            "must be a multiple of 4"},
           {"ld.const.u32 %r3, [%rd5+1];",
            "read of 4 bytes at 0x1 in constant memory: the address must be a multiple of 4"},
           {"st.local.u16 [%rd4+1], %h1;",
            "write of 2 bytes at 0x1 in local memory: the address must be a multiple of 2"},
           {"st.local.u64 [%rd4+12], %rd1;",
            "write of 8 bytes at 0xc in local memory: the address "
            "must be a multiple of 8"},
           {"atom.global.add.u64 %rd11, [%rd1+4], 1;",
            "atomic of 8 bytes at 0x700000000004 in global memory: the address must be a multiple "
            "of 8"},
           {"st.shared.v4.u32 [%rd3+8], {%r1, %r1, %r1, %r1};",
            "write of 16 bytes at 0x8 in shared memory: the address must be a multiple of 16"}}) {
    EXPECT_EQ(access_detail(instruction, FindingKind::misaligned), detail) << instruction;
  }
}

// A gibibyte around a buffer is near it, and the first page is what null pointers lead to.
TEST(Accesses, far_from_every_buffer_are_near_none) {
  const auto at = [](std::uint64_t address) {
    return access_detail(fmt::format("mov.u64 %rd11, {};\nld.global.u32 %r3, [%rd11];", address),
                         FindingKind::out_of_bounds);
  };
  constexpr std::uint64_t buffer = 0x7000'0000'0000;
  constexpr std::uint64_t near = 1 << 30;
  EXPECT_THAT(at(0), HasSubstr("global memory: it is a null pointer"));
  EXPECT_THAT(at(4092), HasSubstr("it is a null pointer"));
  EXPECT_THAT(at(4096), HasSubstr("no buffer is near it"));
  EXPECT_THAT(
      at(buffer + 256 + near - 4),
      HasSubstr("it lies 1073741820 bytes after the end of the 256 bytes at 0x700000000000"));
  EXPECT_THAT(at(buffer + 256 + near), HasSubstr("no buffer is near it"));
  EXPECT_THAT(at(buffer - near + 4),
              HasSubstr("it lies 1073741820 bytes before the 256 bytes at 0x700000000000"));
  EXPECT_THAT(at(buffer - near), HasSubstr("no buffer is near it"));
}

TEST(Accesses, name_the_buffer_that_they_reach_beyond_or_begin_before) {
  EXPECT_EQ(
      access_detail("ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1+248];",
                    FindingKind::out_of_bounds),
      "read of 16 bytes at 0x7000000000f8 in global memory: it reaches 8 bytes behind the end "
      "of the 256 bytes at 0x700000000000");
  EXPECT_EQ(access_detail("ld.global.u64 %rd11, [%rd1+-4];", FindingKind::out_of_bounds),
            "read of 8 bytes at 0x6ffffffffffc in global memory: it begins 4 bytes before the 256 "
            "bytes at 0x700000000000");
  EXPECT_EQ(access_detail("ld.global.u64 %rd11, [%rd1+-8];", FindingKind::out_of_bounds),
            "read of 8 bytes at 0x6ffffffffff8 in global memory: it lies 8 bytes before the 256 "
            "bytes at 0x700000000000");
}

// The last buffer before the address, or the first behind it.
TEST(Accesses, name_the_nearest_of_several_buffers) {
  gpu::Launch launch = launch_of(1, 1, 256);
  for (int i = 0; i < 2; ++i) {
    launch.buffers.push_back(launch.buffers[0]);
    launch.kernels[0].arguments.emplace_back(gpu::BufferUse{static_cast<std::size_t>(i) + 1, 0});
  }
  const auto detail = [&](const char* parameter, int offset) {
    std::string text = kernel_of("", fmt::format("ld.param.u64 %rd3, [{}];\nld.global.u32 %r3, "
                                                 "[%rd3+{}];",
                                                 parameter, offset));
    text.replace(text.find(".param .u64 out"), 15,
                 ".param .u64 out, .param .u64 second, .param .u64 third");
    const auto outcome = run_text(text, launch);
    EXPECT_TRUE(outcome) << outcome.error().message;
    if (!outcome || outcome->findings.size() != 1) return std::string();
    return outcome->findings[0].detail;
  };
  const auto addresses = gpu::default_addresses(launch);
  const auto named = [&](std::size_t buffer) {
    return fmt::format("the 256 bytes at 0x{:x}", addresses[buffer]);
  };
  EXPECT_THAT(detail("out", -4), HasSubstr("it lies 4 bytes before " + named(0)));
  EXPECT_THAT(detail("second", 256), HasSubstr("it lies 0 bytes after the end of " + named(1)));
  EXPECT_THAT(detail("third", 260), HasSubstr("it lies 4 bytes after the end of " + named(2)));
}

// A mebibyte behind a variable is near it, and as much before address 0 of shared memory.
TEST(Accesses, in_shared_memory_name_the_variable_that_is_near) {
  const auto at = [](std::uint32_t address) {
    return access_detail(fmt::format("mov.u32 %r10, {};\nadd.u32 %r10, %r10, %r9;\nst.shared.u32 "
                                     "[%r10], 1;",
                                     address),
                         FindingKind::out_of_bounds);
  };
  constexpr std::uint32_t near = 1 << 20;
  EXPECT_THAT(at(near), HasSubstr("it has 64 bytes; it lies 1048512 bytes after the end of the 64 "
                                  "bytes of 'tile'"));
  EXPECT_THAT(at(near + 4), testing::EndsWith("it has 64 bytes"));
  EXPECT_THAT(at(-4U), HasSubstr("it has 64 bytes; it lies 4 bytes before 'tile'"));
  EXPECT_THAT(at(-near), HasSubstr("it lies 1048576 bytes before 'tile'"));
  EXPECT_THAT(at(-near - 4), testing::EndsWith("it has 64 bytes"));
  for (const char* far : {"0x100000000", "0x1000000f0"}) {
    EXPECT_THAT(access_detail(fmt::format("mov.u64 %rd11, {};\nst.shared.u32 [%rd11], 1;", far),
                              FindingKind::out_of_bounds),
                testing::EndsWith("it has 64 bytes"))
        << "beyond 32 bits";
  }
}

// The mebibyte is counted from where the last variable begins, behind 64 bytes of others.
TEST(Accesses, in_shared_memory_are_near_the_last_variable_wherever_that_begins) {
  const auto behind_the_last = [](std::uint32_t bytes) {
    return access_detail_of(fmt::format(
        ".shared .align 16 .b8 one[32];\n.shared .align 16 .b8 two[32];\n.shared .align "
        "16 .b8 three[32];\nmov.u32 %r3, one;\nmov.u32 %r4, two;\nmov.u32 %r5, three;\n"
        "max.u32 %r3, %r3, %r4;\nmax.u32 %r3, %r3, %r5;\nadd.u32 %r3, %r3, {};\n"
        "st.shared.u32 [%r3], 1;",
        bytes));
  };
  EXPECT_THAT(
      behind_the_last(1 << 20),
      HasSubstr("it has 96 bytes; it lies 1048544 bytes after the end of the 32 bytes of '"));
  EXPECT_THAT(behind_the_last((1 << 20) + 4), testing::EndsWith("it has 96 bytes"));
}

TEST(Accesses, name_the_last_variable_of_shared_memory_before_them) {
  const auto outcome = run_text(
      kernel_of("",
                ".shared .align 16 .b8 one[32];\n.shared .align 16 .b8 two[32];\n.shared "
                ".align 16 .b8 three[24];\nmov.u32 %r3, one;\nmov.u32 %r4, two;\nmov.u32 %r5, "
                "three;\nmax.u32 %r6, %r3, %r4;\nmax.u32 %r6, %r6, %r5;\nadd.u32 %r6, %r6, "
                "128;\nst.shared.u32 [%r6], 1;"),
      launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_THAT(outcome->findings[0].detail,
              testing::AnyOf(HasSubstr("96 bytes after the end of the 32 bytes of 'one'"),
                             HasSubstr("96 bytes after the end of the 32 bytes of 'two'"),
                             HasSubstr("104 bytes after the end of the 24 bytes of 'three'")));
}

// Half of a warp is in one buffer, half in the other.
TEST(Accesses, of_one_instruction_may_lead_to_several_buffers) {
  gpu::Launch launch = launch_of(1, 32, 256);
  launch.buffers.push_back(launch.buffers[0]);
  launch.kernels[0].arguments.emplace_back(gpu::BufferUse{1, 0});
  std::string text = kernel_of(
      "",
      "ld.param.u64 %rd3, [other];\nsetp.lt.u32 %p1, %r1, 16;\nand.b32 %r3, %r1, "
      "15;\nselp.u64 %rd4, %rd1, %rd3, %p1;\nmul.wide.u32 %rd5, %r3, 8;\nadd.s64 %rd5, %rd5, "
      "%rd4;\nadd.u32 %r4, %r1, 100;\ncvt.u64.u32 %rd6, %r4;\nst.global.u64 [%rd5], "
      "%rd6;\nld.global.u64 %rd7, [%rd5];\nst.global.u64 [%rd5+128], %rd7;");
  text.replace(text.find(".param .u64 out"), 15, ".param .u64 out, .param .u64 other");
  const auto outcome = run_text(text, launch);
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  for (std::size_t buffer = 0; buffer < 2; ++buffer) {
    std::vector<std::uint64_t> words(32);
    std::memcpy(words.data(), outcome->buffers[buffer].data(), 256);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(words[i], 100 + 16 * buffer + i % 16);
  }
}

TEST(Accesses, to_local_memory_of_a_kernel_that_has_none_are_beyond_its_end) {
  EXPECT_EQ(access_detail_of("mov.u64 %rd5, 0;\nld.local.u8 %r4, [%rd5];"),
            "read of 1 bytes at 0x0 in local memory: it has 0 bytes");
}

// Each kind of mistake at an instruction is a finding of its own, which counts the threads.
TEST(Accesses, of_one_instruction_that_go_wrong_in_two_ways_are_two_findings) {
  const auto outcome = run_text(
      kernel_of("",
                "rem.u32 %r3, %r1, 3;\nmul.lo.u32 %r4, %r3, 511;\nmul.wide.u32 %rd3, %r4, 2;\n"
                "setp.eq.u32 %p1, %r3, 1;\nselp.u64 %rd4, 514, %rd3, %p1;\nadd.s64 %rd5, %rd1, "
                "%rd4;\nst.global.u32 [%rd5], 7;\nst.global.u32 [%rd2+4], 9;"),
      launch_of(1, 32, 1024));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 2U);
  const bool first_odd = outcome->findings[0].kind == FindingKind::misaligned;
  const Finding& odd = outcome->findings[first_odd ? 0 : 1];
  const Finding& beyond = outcome->findings[first_odd ? 1 : 0];
  EXPECT_EQ(odd.kind, FindingKind::misaligned);
  EXPECT_EQ(odd.thread[0], 1U);
  EXPECT_EQ(odd.count, 11U);
  EXPECT_EQ(beyond.kind, FindingKind::out_of_bounds);
  EXPECT_EQ(beyond.thread[0], 2U);
  EXPECT_EQ(beyond.count, 10U);
  const auto words = words_of(*outcome);
  EXPECT_EQ(words[0] & 0xffffffffU, 7U) << "the other threads store";
  EXPECT_EQ(words[64], 0U) << "and these do not";
  for (unsigned thread = 0; thread < 32; ++thread) EXPECT_EQ(words[thread] >> 32U, 9U) << thread;
}

TEST(Accesses, name_block_and_thread_in_all_three_dimensions) {
  gpu::Launch launch = launch_of(2, 4, 256);
  launch.kernels[0].grid = {2, 3, 4};
  launch.kernels[0].block = {4, 2, 16};
  const auto finding = [&](const std::string& body) {
    const auto outcome =
        run_text(kernel_of(shared_area,
                           "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ctaid.y;\nmov.u32 %r4, "
                           "%ctaid.z;\nmad.lo.u32 %r2, %r3, 10, %r2;\nmad.lo.u32 %r2, %r4, "
                           "100, %r2;\nmov.u32 %r5, %tid.y;\nmov.u32 %r6, %tid.z;\nmad.lo.u32 "
                           "%r1, %r5, 10, %r1;\nmad.lo.u32 %r1, %r6, 100, %r1;\nsetp.eq.u32 "
                           "%p1, %r2, 321;\n" +
                               body),
                 launch);
    EXPECT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->findings.size(), 1U);
    return outcome && !outcome->findings.empty() ? outcome->findings[0] : Finding{};
  };
  const Finding beyond =
      finding("setp.eq.and.u32 %p2, %r1, 913, %p1;\n@%p2 st.global.u32 [%rd1+256], 1;");
  EXPECT_EQ(beyond.block, (std::array<std::uint32_t, 3>{1, 2, 3}));
  EXPECT_EQ(beyond.thread, (std::array<std::uint32_t, 3>{3, 1, 9}));
  const Finding race = finding(
      "setp.eq.and.u32 %p2, %r1, 913, %p1;\n@%p2 st.shared.u32 [area], 1;\n"
      "setp.eq.and.u32 %p2, %r1, 1412, %p1;\n@%p2 st.shared.u32 [area], 2;");
  EXPECT_EQ(race.thread, (std::array<std::uint32_t, 3>{2, 1, 14}));
  EXPECT_THAT(race.detail, HasSubstr("thread (3,1,9) touched it"));
  const Finding apart = finding(
      "setp.ne.and.u32 %p2, %r1, 913, %p1;\n@%p2 bra MOST;\n@!%p1 bra MOST;\nbarrier.sync 3, "
      "128;\nMOST:\n@%p1 barrier.sync 2, 128;");
  EXPECT_THAT(apart.detail, HasSubstr("among them thread (0,0,8): thread (0,0,8) waits at line"));
}

TEST(Accesses, that_are_no_plain_loads_name_the_bytes_that_were_not_written) {
  const auto outcome = run_text(
      kernel_of(
          shared_area,
          "mov.u32 %r3, area;\nshl.b32 %r4, %r1, 2;\nadd.u32 %r3, %r3, %r4;\nsetp.ne.u32 %p1, "
          "%r1, 3;\n@%p1 st.shared.u32 [%r3], 1;\n@!%p1 st.shared.u8 [%r3+2], 1;\n"
          "atom.shared.add.u32 %r5, [%r3], 1;\nld.shared.u32 %r6, [%r3];\nst.global.u32 "
          "[%rd2], %r6;"),
      launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U) << "an atomic writes them";
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::uninitialised_read);
  EXPECT_EQ(outcome->findings[0].kernel, "k");
  EXPECT_EQ(outcome->findings[0].thread[0], 3U);
  EXPECT_EQ(outcome->findings[0].count, 1U);
  EXPECT_EQ(outcome->findings[0].detail, "4 bytes at 0xc in shared memory were not written before");
}

// Odd threads look at local memory, which is written, the others at shared memory, which is not.
TEST(Accesses, to_several_spaces_at_once_find_the_bytes_that_were_not_written) {
  const auto outcome = run_text(
      kernel_of(access_declarations,
                std::string(access_places) +
                    "st.local.u32 [%rd4+8], 7;\nand.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, "
                    "0;\nselp.u64 %rd11, %rd6, %rd7, %p1;\nld.u32 %r4, [%rd11+8];\n"
                    "st.global.u32 [%rd2], %r4;\nst.u32 [%rd11+8], 9;\nld.u32 %r5, "
                    "[%rd11+8];\nst.global.u32 [%rd2+4], %r5;"),
      launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U) << "the second load finds what the store left";
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::uninitialised_read);
  EXPECT_EQ(outcome->findings[0].instruction, "ld.u32 %r4, [%rd11+8];");
  EXPECT_EQ(outcome->findings[0].count, 16U);
  EXPECT_EQ(outcome->findings[0].thread[0], 0U);
  EXPECT_THAT(outcome->findings[0].detail, HasSubstr("4 bytes at 0x8 in shared memory"));
}

// Odd threads look at constant memory, of which no bytes are unwritten.
TEST(Accesses, to_constants_and_another_space_at_once_find_what_was_not_written_there) {
  const auto outcome = run_text(
      kernel_of(access_declarations,
                std::string(access_places) +
                    "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\nselp.u64 %rd11, %rd7, %rd8, "
                    "%p1;\nld.u32 %r4, [%rd11+8];\nst.global.u32 [%rd2], %r4;"),
      launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].count, 16U);
  EXPECT_THAT(outcome->findings[0].detail, HasSubstr("4 bytes at 0x8 in local memory"));
}

TEST(Accesses, that_begin_with_a_buffer_and_are_longer_say_by_how_much) {
  const auto outcome = run_text(kernel_of("", "ld.global.u64 %rd11, [%rd1];"), launch_of(1, 1, 4));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].detail,
            "read of 8 bytes at 0x700000000000 in global memory: it reaches 4 bytes behind the end "
            "of the 4 bytes at 0x700000000000");
}

// The window of each space ends where the next thing is global memory.
TEST(Accesses, through_generic_addresses_behind_a_window_are_of_global_memory) {
  for (const char* window : {"%rd6", "%rd7", "%rd8", "%rd10"}) {
    const auto detail = [&](const std::string& offset) {
      return access_detail(
          fmt::format("shr.u64 %rd11, {}, 44;\nshl.b64 %rd11, %rd11, 44;\nadd.u64 %rd11, %rd11, "
                      "{};\nld.u32 %r3, [%rd11];",
                      window, offset),
          FindingKind::out_of_bounds);
    };
    EXPECT_THAT(detail("0x0000010000000000"), HasSubstr("in global memory")) << window;
    EXPECT_THAT(detail("-4"), HasSubstr("in global memory")) << window;
    EXPECT_THAT(detail("0x000000fffffffffc"), testing::Not(HasSubstr("in global memory")))
        << window;
  }
}

// The block has 100 bytes of shared memory, and each thread 40 of local memory.
class LaneByLane : public StartedBlock {
 protected:
  // Lanes 1 to 5 are at `first`, and 4 bytes behind each other.
  Access access_from(Block& block, std::uint64_t first, AddressKind kind, AccessMode mode) {
    program.instructions.resize(2);
    Access x{};
    x.mask = 0x3e;
    x.space = kind == AddressKind::shared ? MemorySpace::shared : MemorySpace::local;
    for (unsigned lane = 1; lane < 6; ++lane) x.addresses[lane] = first + 4 * (lane - 1);
    x.affine = true;
    x.halves = true;
    x.delta = 5;
    x.pitch = 7;
    std::uint8_t shadow = 0;
    x.shadow = &shadow;
    MicroOp op;
    op.instruction = 1;
    op.bytes = 4;
    op.kind = static_cast<std::uint8_t>(kind);
    block.slow_access(block.warps[1], &op, x, kind, 4, mode);
    EXPECT_FALSE(x.affine);
    EXPECT_FALSE(x.halves);
    EXPECT_EQ(x.delta, 0U);
    EXPECT_EQ(x.pitch, 0U);
    EXPECT_EQ(x.shadow, nullptr);
    return x;
  }
};

TEST_F(LaneByLane, find_the_place_of_each_thread_and_note_what_it_writes) {
  Block block(program, pool);
  block.start(0, false, false);
  const Access shared = access_from(block, 88, AddressKind::shared, AccessMode::store);
  EXPECT_EQ(shared.mask, 0xeU) << "the others are beyond the end";
  for (unsigned lane = 1; lane < 4; ++lane)
    EXPECT_EQ(shared.addresses[lane], block.shared_region.delta + 88 + 4 * (lane - 1));
  ASSERT_EQ(block.findings.size(), 1U);
  EXPECT_EQ(block.findings[0].finding.count, 2U);
  const auto& written = block.shared_shadow;
  EXPECT_EQ(std::count(written.begin(), written.end(), wholly_written), 12);
  EXPECT_EQ(std::count(written.begin() + 88, written.begin() + 100, wholly_written), 12);

  const Access local = access_from(block, 28, AddressKind::local, AccessMode::store);
  EXPECT_EQ(local.mask, 0xeU);
  for (unsigned lane = 1; lane < 4; ++lane) {
    const std::size_t at = (32 + lane) * block.local_bytes + 28 + 4 * (lane - 1);
    EXPECT_EQ(local.addresses[lane], reinterpret_cast<std::uint64_t>(block.local.data()) + at);
    const auto written_at = block.local_shadow.begin() + static_cast<std::ptrdiff_t>(at);
    EXPECT_EQ(std::count(written_at, written_at + 4, wholly_written), 4);
  }
  EXPECT_EQ(std::count(block.local_shadow.begin(), block.local_shadow.end(), wholly_written), 12);
}

TEST_F(LaneByLane, leave_what_they_only_read_as_it_is_and_do_nothing_at_odd_addresses) {
  Block block(program, pool);
  block.start(0, false, false);
  EXPECT_EQ(access_from(block, 2, AddressKind::shared, AccessMode::store).mask, 0U);
  EXPECT_EQ(access_from(block, 0, AddressKind::shared, AccessMode::load).mask, 0x3eU);
  EXPECT_THAT(block.shared_shadow, testing::Each(0));
  ASSERT_EQ(block.findings.size(), 2U);
  EXPECT_EQ(block.findings[0].finding.kind, FindingKind::misaligned);
  EXPECT_EQ(block.findings[0].finding.count, 5U);
  EXPECT_EQ(block.findings[1].finding.kind, FindingKind::uninitialised_read);
  EXPECT_EQ(block.findings[1].finding.count, 5U);
  EXPECT_EQ(block.findings[1].finding.detail,
            "4 bytes at 0x0 in shared memory were not written before");
  access_from(block, 0, AddressKind::shared, AccessMode::atomic);
  EXPECT_EQ(std::count(block.shared_shadow.begin(), block.shared_shadow.end(), wholly_written), 20);
}

}  // namespace
}  // namespace demarc::emulate
