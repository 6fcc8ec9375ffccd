// Memory from malloc: its bounds, its life, and what the findings say of it. And how findings name
// the buffer at whose end an access goes wrong.
#include <set>

#include "harness.hpp"
#include "heap.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

constexpr const char* heap_functions =
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n";

std::string take(const std::string& reg, std::uint64_t bytes) {
  return fmt::format(
      "{{ .param .b64 n; .param .b64 r; st.param.b64 [n], {}; call (r), malloc, (n); ld.param.b64 "
      "{}, [r]; }}\n",
      bytes, reg);
}
std::string give(const std::string& reg) {
  return fmt::format("{{ .param .b64 p; st.param.b64 [p], {}; call free, (p); }}\n", reg);
}

struct HeapCase {
  const char* name;
  std::string wrong;
  std::string right;
  FindingKind kind;
  const char* detail;
};

std::vector<HeapCase> heap_cases() {
  const std::string one = take("%rd5", 20);
  return {
      {"a_write_behind_the_end", one + "st.u32 [%rd5+20], %r1;", one + "st.u32 [%rd5+16], %r1;",
       FindingKind::out_of_bounds,
       "0 bytes after the end of the 20 bytes at 0x680000000100 that malloc gave at line "},
      {"a_write_far_behind_the_end", one + take("%rd6", 20) + "st.u32 [%rd5+100], %r1;",
       one + take("%rd6", 20) + "st.u32 [%rd6+16], %r1;", FindingKind::out_of_bounds,
       "80 bytes after the end of the 20 bytes"},
      {"a_write_that_reaches_behind_the_end", one + "st.u64 [%rd5+16], %rd5;",
       one + "st.u64 [%rd5+8], %rd5;", FindingKind::out_of_bounds,
       "16 bytes behind the start of the 20 bytes"},
      {"a_write_before_the_start", one + "st.u32 [%rd5+-4], %r1;", one + "st.u32 [%rd5], %r1;",
       FindingKind::out_of_bounds, "bytes before the 20 bytes at 0x"},
      {"an_atomic_behind_the_end", one + "st.u32 [%rd5+16], 0;\natom.add.u32 %r3, [%rd5+20], 1;",
       one + "st.u32 [%rd5+16], 0;\natom.add.u32 %r3, [%rd5+16], 1;", FindingKind::out_of_bounds,
       "atomic of 4 bytes"},
      {"a_read_of_what_was_freed",
       one + "st.u32 [%rd5], 1;\n" + give("%rd5") + "ld.u32 %r3, [%rd5];",
       one + "st.u32 [%rd5], 1;\nld.u32 %r3, [%rd5];\n" + give("%rd5"), FindingKind::out_of_bounds,
       "it lies in the 20 bytes at 0x680000000100 that were freed at line "},
      {"a_write_to_what_was_freed_when_there_is_new_memory",
       one + give("%rd5") + take("%rd6", 20) + "st.u32 [%rd5], 1;",
       one + give("%rd5") + take("%rd6", 20) + "st.u32 [%rd6], 1;", FindingKind::out_of_bounds,
       "that were freed at line "},
      {"freeing_twice", one + give("%rd5") + give("%rd5"),
       one + give("%rd5") + "mov.u64 %rd5, 0;\n" + give("%rd5"), FindingKind::out_of_bounds,
       "which malloc did not return since it was freed at line "},
      {"freeing_the_middle", one + "add.u64 %rd6, %rd5, 16;\n" + give("%rd6"), one + give("%rd5"),
       FindingKind::out_of_bounds,
       "which malloc did not return: it lies 16 bytes behind the start of"},
      {"freeing_a_buffer", give("%rd1"), take("%rd5", 4) + give("%rd5"), FindingKind::out_of_bounds,
       "which malloc did not return"},
      {"a_read_before_a_write", one + "ld.u32 %r3, [%rd5+4];",
       one + "st.u32 [%rd5+4], 1;\nld.u32 %r3, [%rd5+4];", FindingKind::uninitialised_read,
       "4 bytes at 0x680000000104 in global memory"},
      {"a_read_of_new_memory_where_old_was_written",
       take("%rd5", 8 << 20) + "st.u32 [%rd5], 1;\n" + give("%rd5") + take("%rd6", 8 << 20) +
           "ld.u32 %r3, [%rd6];",
       take("%rd5", 8 << 20) + "st.u32 [%rd5], 1;\nld.u32 %r3, [%rd5];",
       FindingKind::uninitialised_read, "were not written before"},
  };
}

TEST(HeapBlocks, have_bounds_and_an_end_of_their_life) {
  for (const HeapCase& one : heap_cases()) {
    const auto wrong = run_text(kernel_of(heap_functions, one.wrong), launch_of(1, 1, 256));
    ASSERT_TRUE(wrong) << wrong.error().message;
    ASSERT_EQ(wrong->findings.size(), 1U) << one.name;
    const std::string said = describe(wrong->findings[0], "t.ptx");
    EXPECT_EQ(wrong->findings[0].kind, one.kind) << said;
    EXPECT_NE(said.find(one.detail), std::string::npos) << one.name << ": " << said;
    const auto right = run_text(kernel_of(heap_functions, one.right), launch_of(1, 1, 256));
    ASSERT_TRUE(right) << right.error().message;
    for (const Finding& finding : right->findings)
      ADD_FAILURE() << one.name << ": " << describe(finding, "t.ptx");
  }
}

TEST(HeapBlocks, are_not_what_an_access_behind_a_buffer_is_near) {
  const auto outcome =
      run_text(kernel_of(heap_functions, take("%rd5", 20) + "st.global.u32 [%rd1+256], %r1;"),
               launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].detail,
            "write of 4 bytes at 0x700000000100 in global memory: it lies 0 bytes after the end of "
            "the 256 bytes at 0x700000000000");
}

// The blocks of all threads lie beside each other.
TEST(HeapBlocks, of_all_threads_have_margins_between_them) {
  const auto outcome =
      run_text(kernel_of(heap_functions, take("%rd5", 64) + "st.u32 [%rd5+64], %r1;"),
               launch_of(1, 64, 512));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].count, 64U);
}

TEST(HeapBlocks, that_do_not_fit_are_null_and_those_that_were_freed_fit_again) {
  const auto outcome = run_text(
      kernel_of(heap_functions, take("%rd5", (8 << 20) + 1) + take("%rd6", 6 << 20) +
                                    take("%rd7", 4 << 20) + give("%rd6") + take("%rd8", 4 << 20) +
                                    "st.global.u64 [%rd1], %rd5;\nst.global.u64 [%rd1+8], %rd7;\n"
                                    "st.global.u64 [%rd1+16], %rd8;"),
      launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  EXPECT_EQ(words_of(*outcome)[0], 0U);
  EXPECT_EQ(words_of(*outcome)[1], 0U);
  EXPECT_NE(words_of(*outcome)[2], 0U);
}

// So do as many as the heap has room for without wide margins.
TEST(HeapBlocks, as_many_small_ones_fit_as_their_bytes_do) {
  const auto outcome =
      run_text(kernel_of(heap_functions,
                         "mov.u64 %rd9, 0;\nmov.u32 %r4, 0;\nLOOP:\n" + take("%rd5", 64) +
                             "setp.eq.u64 %p1, %rd5, 0;\n@!%p1 add.u64 %rd9, %rd9, 1;\n"
                             "add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p1, %r4, 50000;\n@%p1 bra LOOP;\n"
                             "st.global.u64 [%rd2], %rd9;"),
               launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(words_of(*outcome)[0], 50000U);
}

TEST(HeapBlocks, live_on_in_kernels_that_do_not_call_malloc) {
  const std::string text =
      kernel_of(heap_functions,
                take("%rd5", 8) + "st.u64 [%rd5], 41;\nst.global.u64 [%rd1], %rd5;") +
      ".visible .entry reader(.param .u64 out)\n{\n.reg .b64 %rd<9>;\nld.param.u64 %rd1, [out];\n"
      "ld.global.u64 %rd2, [%rd1];\nld.u64 %rd3, [%rd2];\nst.global.u64 [%rd1+8], %rd3;\nld.u64 "
      "%rd3, [%rd2+8];\nret;\n}\n";
  gpu::Launch launch = launch_of(1, 1, 256);
  launch.kernels.push_back(launch.kernels[0]);
  launch.kernels[1].kernel = "reader";
  const auto outcome = run_text(text, launch);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(words_of(*outcome)[1], 41U);
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_NE(outcome->findings[0].detail.find("0 bytes after the end of the 8 bytes"),
            std::string::npos)
      << outcome->findings[0].detail;
}

// ---- the heap itself ----

constexpr std::uint64_t heap_start = DeviceHeap::base + DeviceHeap::wide_margin;

TEST(DeviceHeaps, place_blocks_one_behind_the_other_at_multiples_of_16_with_a_margin) {
  DeviceHeap heap(true);
  EXPECT_EQ(heap.allocate(20, 3), heap_start);
  EXPECT_EQ(heap.allocate(16, 3), heap_start + 32 + 256);
  EXPECT_EQ(heap.allocate(1, 3), heap_start + 32 + 256 + 16 + 256);
  EXPECT_EQ(heap.allocate(0, 3), 0U);
}

TEST(DeviceHeaps, give_as_many_bytes_as_they_have_and_not_one_more) {
  DeviceHeap heap(true);
  EXPECT_EQ(heap.allocate(DeviceHeap::bytes + 1, 3), 0U);
  const std::uint64_t all = heap.allocate(DeviceHeap::bytes, 3);
  EXPECT_EQ(all, heap_start);
  EXPECT_EQ(heap.allocate(1, 3), 0U);
  EXPECT_EQ(heap.allocate(1, 3), 0U);
  EXPECT_EQ(heap.release(all, 4), "");
  EXPECT_EQ(heap.allocate(DeviceHeap::bytes, 5), heap_start);
}

TEST(DeviceHeaps, keep_a_narrow_margin_where_there_is_no_room_for_a_wide_one_until_one_is_freed) {
  DeviceHeap heap(true);
  constexpr std::uint64_t part = DeviceHeap::bytes / 4;
  EXPECT_EQ(heap.allocate(part, 3), heap_start);
  EXPECT_EQ(heap.allocate(part, 3), heap_start + part + 256);
  EXPECT_EQ(heap.allocate(part, 3), heap_start + 2 * (part + 256));
  EXPECT_EQ(heap.allocate(part, 3), 0U);
  const std::uint64_t last = heap_start + 3 * part + 2 * 256 + 16;
  EXPECT_EQ(heap.allocate(64, 3), last);
  EXPECT_EQ(heap.allocate(64, 3), last + 64 + 16);
  EXPECT_EQ(heap.release(last, 4), "");
  EXPECT_EQ(heap.allocate(64, 3), last + 64 + 16 + 64 + 256) << "wide again";
}

// The place between two others is taken where it has margins on both sides.
TEST(DeviceHeaps, take_a_place_between_two_blocks_only_if_the_margins_fit_too) {
  constexpr std::uint64_t part = 2 << 20;
  constexpr std::uint64_t rest = DeviceHeap::bytes - 3 * part - 2 * 256;
  const auto filled = [&](DeviceHeap& heap) {
    std::vector<std::uint64_t> taken;
    for (int i = 0; i < 3; ++i) taken.push_back(heap.allocate(part, 3));
    // So that nothing is free behind the last one.
    taken.push_back(heap.allocate(rest - 256, 3));
    return taken;
  };
  DeviceHeap heap(true);
  const auto taken = filled(heap);
  ASSERT_EQ(std::set<std::uint64_t>(taken.begin(), taken.end()).size(), 4U);
  ASSERT_EQ(std::count(taken.begin(), taken.end(), 0U), 0);
  EXPECT_EQ(heap.release(taken[1], 4), "");
  EXPECT_EQ(heap.allocate(part + 16, 5), taken[1] - 256 + 16) << "with narrow margins";
  EXPECT_EQ(heap.release(taken[1] - 256 + 16, 6), "");
  EXPECT_EQ(heap.allocate(part + 2 * 256 - 2 * 16 + 1, 7), 0U);
  EXPECT_EQ(heap.allocate(part + 2 * 256 - 2 * 16, 7), taken[1] - 256 + 16);
}

TEST(DeviceHeaps, find_the_block_that_has_all_of_the_bytes) {
  DeviceHeap heap(true);
  const std::uint64_t first = heap.allocate(20, 3);
  const std::uint64_t second = heap.allocate(8, 3);
  const auto found = [&](std::uint64_t low, std::uint64_t high) {
    const Region* const region = heap.find(low, high);
    return region != nullptr ? region->low : 0;
  };
  EXPECT_EQ(found(first, first + 1), first);
  EXPECT_EQ(found(first + 16, first + 20), first);
  EXPECT_EQ(found(second, second + 8), second);
  for (const auto& [low, high] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {first - 1, first + 1},
           {first + 16, first + 21},
           {second - 4, second},
           {second + 8, second + 9},
           {first + 4, first + 4},
           {first + 4, first + 3},
           {DeviceHeap::base, DeviceHeap::base + 1},
           {DeviceHeap::base - 1, first + 1},
           {DeviceHeap::base + DeviceHeap::bytes + 256,
            DeviceHeap::base + DeviceHeap::bytes + 257}}) {
    EXPECT_EQ(found(low, high), 0U) << low - DeviceHeap::base << " " << high - DeviceHeap::base;
  }
  EXPECT_EQ(heap.release(first, 4), "");
  EXPECT_EQ(found(first, first + 1), 0U);
  EXPECT_EQ(found(second, second + 8), second);
}

TEST(DeviceHeaps, keep_the_bytes_of_each_block_apart_and_follow_whether_they_are_written) {
  for (const bool follows : {false, true}) {
    DeviceHeap heap(follows);
    const std::uint64_t first = heap.allocate(20, 3);
    const std::uint64_t second = heap.allocate(20, 3);
    const Region* const one = heap.find(first, first + 20);
    const Region* const two = heap.find(second, second + 20);
    ASSERT_NE(one, nullptr);
    ASSERT_NE(two, nullptr);
    EXPECT_EQ(second + two->delta - (first + one->delta), second - first);
    EXPECT_TRUE(one->writable);
    EXPECT_EQ(one->shadow != nullptr, follows);
    if (!follows) continue;
    EXPECT_EQ(two->shadow - one->shadow, static_cast<std::ptrdiff_t>(second - first));
    std::fill_n(one->shadow, 20, wholly_written);
    std::fill_n(two->shadow, 20, wholly_written);
    EXPECT_EQ(heap.release(first, 4), "");
    constexpr std::uint64_t large = DeviceHeap::bytes - (32 + 256) * 2 - 256;
    ASSERT_NE(heap.allocate(large, 5), 0U);
    const std::uint64_t again = heap.allocate(18, 5);
    ASSERT_EQ(again, first);
    const Region* const three = heap.find(again, again + 18);
    ASSERT_NE(three, nullptr);
    EXPECT_EQ(std::count(three->shadow, three->shadow + 18, 0), 18) << "none of it is written";
    EXPECT_EQ(std::count(two->shadow, two->shadow + 20, wholly_written), 20);
  }
}

// An access looks first where it was last.
TEST(DeviceHeaps, use_the_region_of_a_freed_block_for_one_other_and_delete_none) {
  DeviceHeap heap(true);
  const auto region_of = [&](std::uint64_t address) { return heap.find(address, address + 1); };
  const std::uint64_t first = heap.allocate(20, 3);
  const std::uint64_t second = heap.allocate(20, 3);
  const Region* const one = region_of(first);
  const Region* const other = region_of(second);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(heap.release(first, 4), "");
  EXPECT_EQ(one->low, 0U);
  EXPECT_EQ(one->high, 0U);
  EXPECT_EQ(one->delta, 0U);
  EXPECT_EQ(one->shadow, nullptr);
  const std::uint64_t third = heap.allocate(24, 5);
  EXPECT_EQ(region_of(third), one);
  EXPECT_EQ(one->low, third);
  EXPECT_EQ(one->high, third + 24);
  const std::uint64_t fourth = heap.allocate(28, 5);
  const Region* const more = region_of(fourth);
  ASSERT_NE(more, nullptr);
  EXPECT_NE(more, one);
  EXPECT_NE(more, other);
  EXPECT_EQ(more->high, fourth + 28);
  EXPECT_EQ(region_of(third), one);
  EXPECT_EQ(region_of(second), other);
}

TEST(DeviceHeaps, say_what_lies_at_an_address_that_no_block_has) {
  DeviceHeap heap(true);
  EXPECT_EQ(heap.describe(heap_start), "malloc gave no memory near it");
  const std::uint64_t first = heap.allocate(20, 3);
  const std::uint64_t second = heap.allocate(40, 5);
  const std::string of_first =
      fmt::format("the 20 bytes at 0x{:x} that malloc gave at line 3", first);
  const std::string of_second =
      fmt::format("the 40 bytes at 0x{:x} that malloc gave at line 5", second);
  EXPECT_EQ(heap.describe(first - 4), "it lies 4 bytes before " + of_first);
  EXPECT_EQ(heap.describe(first), "it lies 0 bytes behind the start of " + of_first);
  EXPECT_EQ(heap.describe(first + 19), "it lies 19 bytes behind the start of " + of_first);
  EXPECT_EQ(heap.describe(first + 20), "it lies 0 bytes after the end of " + of_first);
  EXPECT_EQ(heap.describe(second - 1),
            fmt::format("it lies {} bytes after the end of ", second - 1 - first - 20) + of_first);
  EXPECT_EQ(heap.describe(second + 50), "it lies 10 bytes after the end of " + of_second);
  EXPECT_EQ(heap.release(first, 7), "");
  const std::string freed =
      fmt::format("it lies in the 20 bytes at 0x{:x} that were freed at line 7", first);
  EXPECT_EQ(heap.describe(first), freed);
  EXPECT_EQ(heap.describe(first + 19), freed);
  EXPECT_EQ(heap.describe(first + 20),
            fmt::format("it lies {} bytes before ", second - first - 20) + of_second);
  EXPECT_EQ(heap.describe(first - 1),
            fmt::format("it lies {} bytes before ", second - first + 1) + of_second);
}

TEST(DeviceHeaps, free_what_they_gave_and_say_why_they_do_not_free_the_rest) {
  DeviceHeap heap(true);
  const std::uint64_t first = heap.allocate(20, 3);
  const std::string not_given = "free of 0x{:x}, which malloc did not return";
  const auto said = [&](std::uint64_t address, const std::string& more) {
    return fmt::format(fmt::runtime(not_given), address) + more;
  };
  EXPECT_EQ(heap.release(0x7000, 4), said(0x7000, ""));
  EXPECT_EQ(heap.release(DeviceHeap::base - 1, 4), said(DeviceHeap::base - 1, ""));
  EXPECT_EQ(heap.release(first + 4, 4),
            said(first + 4, fmt::format(": it lies 4 bytes behind the start of the 20 bytes at "
                                        "0x{:x} that malloc gave at line 3",
                                        first)));
  EXPECT_EQ(heap.release(first, 4), "");
  EXPECT_EQ(heap.release(first, 5), said(first, " since it was freed at line 4"));
  EXPECT_EQ(heap.release(first + 8, 5),
            said(first + 8, fmt::format(": it lies in the 20 bytes at 0x{:x} that were freed at "
                                        "line 4",
                                        first)));
}

// What was freed is forgotten where something new lies, and only there.
TEST(DeviceHeaps, forget_what_was_freed_where_they_give_the_place_out_again) {
  DeviceHeap heap(true);
  std::vector<std::uint64_t> old;
  for (int i = 0; i < 4; ++i) old.push_back(heap.allocate(1 << 20, 3));
  for (const std::uint64_t address : old) EXPECT_EQ(heap.release(address, 9), "");
  ASSERT_NE(heap.allocate((7 << 20) - 4096, 10), 0U) << "no place behind the four is so large";
  const auto was_freed = [&](std::uint64_t address) {
    return heap.release(address, 11).find("since it was freed at line 9") != std::string::npos;
  };
  for (const std::uint64_t address : old) EXPECT_FALSE(was_freed(address)) << address;
  // From inside the second on.
  DeviceHeap other(true);
  old.clear();
  for (int i = 0; i < 3; ++i) old.push_back(other.allocate(2 << 20, 3));
  EXPECT_EQ(other.release(old[1], 9), "");
  EXPECT_EQ(other.release(old[2], 9), "");
  const std::uint64_t large = other.allocate((5 << 20) - 4096, 10);
  ASSERT_EQ(large, old[1] - 256 + 16) << "with a narrow margin";
  EXPECT_EQ(other.describe(old[2] + (1 << 20)),
            fmt::format("it lies {} bytes behind the start of the {} bytes at 0x{:x} that malloc "
                        "gave at line 10",
                        old[2] + (1 << 20) - large, (5 << 20) - 4096, large));
}

// Buffers of 504 and of 128 bytes, of which the second lies a few bytes behind the first.
TEST(BufferEnds, an_access_across_an_end_names_the_buffer_that_it_crosses) {
  gpu::Launch launch = launch_of(1, 1, 504);
  gpu::Buffer other;
  other.bytes = 128;
  launch.buffers.push_back(other);
  const std::pair<const char*, const char*> rows[] = {
      {"ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1+496];",
       "it reaches 8 bytes behind the end of the 504 bytes at 0x700000000000"},
      {"st.global.v2.u64 [%rd1+496], {%rd1, %rd1};", "8 bytes behind the end of the 504 bytes"},
      {"ld.global.u32 %r3, [%rd1+504];", "it lies 0 bytes after the end of the 504 bytes"},
      {"ld.global.u32 %r3, [%rd1+512];", "it lies 8 bytes after the end of the 504 bytes"},
      {"ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1+-16];",
       "it lies 16 bytes before the 504 bytes"},
      {"add.u64 %rd5, %rd1, -4;\nld.global.u64 %rd6, [%rd5];",
       "it begins 4 bytes before the 504 bytes"},
  };
  for (const auto& [text, detail] : rows) {
    const auto outcome = run_text(kernel_of("", text), launch);
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_EQ(outcome->findings.size(), 1U) << text;
    EXPECT_EQ(outcome->findings[0].kind, FindingKind::out_of_bounds);
    EXPECT_NE(outcome->findings[0].detail.find(detail), std::string::npos)
        << outcome->findings[0].detail;
  }
}

TEST(BufferEnds, an_access_behind_shared_memory_names_the_variable_before_it) {
  const std::pair<const char*, const char*> rows[] = {
      {"st.shared.u32 [last+32], %r1;",
       "it has 96 bytes; it lies 0 bytes after the end of the 32 bytes of 'last'"},
      {"st.shared.v2.u32 [last+28], {%r1, %r1};", "it reaches behind the end of 'last'"},
      {"mov.u32 %r3, first;\nst.shared.u32 [%r3+-8], %r1;", "it lies 8 bytes before 'first'"},
  };
  for (const auto& [text, detail] : rows) {
    const auto outcome =
        run_text(kernel_of(".shared .align 4 .b8 first[64];\n.shared .align 4 .b8 last[32];\n",
                           std::string("st.shared.u32 [first], %r1;\n") + text),
                 launch_of(1, 1, 256));
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_EQ(outcome->findings.size(), 1U) << text;
    EXPECT_NE(outcome->findings[0].detail.find(detail), std::string::npos)
        << outcome->findings[0].detail;
  }
}

}  // namespace
}  // namespace demarc::emulate
