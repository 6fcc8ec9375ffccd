// The last bytes of shared and local memory, which every access may touch, and the byte behind
// them, which none may.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;

// Both memories end one byte before a multiple of 16, so that an aligned access of any width can
// reach exactly one byte too far.
constexpr const char* memories = ".shared .align 16 .b8 area[511];\n";
constexpr const char* places =
    ".local .align 16 .b8 mine[111];\n"
    "mov.u32 %r3, area;\nmov.u64 %rd3, area;\ncvta.shared.u64 %rd4, %rd3;\n"
    "mov.u64 %rd5, mine;\ncvta.local.u64 %rd6, %rd5;\n"
    "st.shared.v4.u32 [%r3+480], {%r1, %r1, %r1, %r1};\n"
    "st.shared.v2.u32 [%r3+496], {%r1, %r1};\nst.shared.u32 [%r3+504], %r1;\n"
    "st.shared.u16 [%r3+508], %h1;\nst.shared.u8 [%r3+510], %r1;\n";

// `instruction` with @ for the offset.
struct Reach {
  const char* name;
  const char* instruction;
  std::uint32_t inside;  // the last offset that stays inside
  std::uint32_t behind;  // reaches one byte behind the end
};

const Reach reaches[] = {
    {"shared_store_8", "st.shared.u8 [%r3+@], %r1;", 510, 511},
    {"shared_store_16", "st.shared.u16 [%r3+@], %h1;", 508, 510},
    {"shared_store_32", "st.shared.u32 [%r3+@], %r1;", 504, 508},
    {"shared_store_64", "st.shared.u64 [%r3+@], %rd1;", 496, 504},
    {"shared_store_v2", "st.shared.v2.u32 [%r3+@], {%r1, %r1};", 496, 504},
    {"shared_store_v4", "st.shared.v4.u32 [%r3+@], {%r1, %r1, %r1, %r1};", 480, 496},
    {"shared_load_8", "ld.shared.u8 %r4, [%r3+@];", 510, 511},
    {"shared_load_16", "ld.shared.u16 %h2, [%r3+@];", 508, 510},
    {"shared_load_32", "ld.shared.u32 %r4, [%r3+@];", 504, 508},
    {"shared_load_64", "ld.shared.u64 %rd7, [%r3+@];", 496, 504},
    {"shared_load_v4", "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3+@];", 480, 496},
    {"shared_load_v4_of_bytes", "ld.shared.v4.u8 {%r4, %r5, %r6, %r7}, [%r3+@];", 504, 508},
    {"shared_atomic_32", "atom.shared.add.u32 %r4, [%r3+@], 1;", 504, 508},
    {"shared_atomic_64", "atom.shared.add.u64 %rd7, [%r3+@], %rd1;", 496, 504},
    {"shared_exchange", "atom.shared.exch.b32 %r4, [%r3+@], %r1;", 504, 508},
    {"shared_compare", "atom.shared.cas.b32 %r4, [%r3+@], %r1, %r1;", 504, 508},
    {"shared_reduction", "red.shared.add.u32 [%r3+@], 1;", 504, 508},
    {"shared_copy_4", "cp.async.ca.shared.global [%r3+@], [%rd1], 4;\ncp.async.wait_all;", 504,
     508},
    {"shared_copy_16", "cp.async.cg.shared.global [%r3+@], [%rd1], 16;\ncp.async.wait_all;", 480,
     496},
    {"shared_matrix", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r3+@];", 480, 496},
    {"shared_barrier", "mbarrier.init.shared.b64 [%r3+@], 32;", 496, 504},
    {"generic_shared_store", "st.u32 [%rd4+@], %r1;", 504, 508},
    {"generic_shared_load", "ld.u8 %r4, [%rd4+@];", 510, 511},
    {"generic_shared_atomic", "atom.add.u32 %r4, [%rd4+@], 1;", 504, 508},
    {"local_store_8", "st.local.u8 [%rd5+@], %r1;", 110, 111},
    {"local_store_32", "st.local.u32 [%rd5+@], %r1;", 104, 108},
    {"local_store_64", "st.local.u64 [%rd5+@], %rd1;", 96, 104},
    {"local_store_v4", "st.local.v4.u32 [%rd5+@], {%r1, %r1, %r1, %r1};", 80, 96},
    {"local_load_8", "st.local.u8 [%rd5+110], %r1;\nld.local.u8 %r4, [%rd5+@];", 110, 111},
    {"local_load_32", "st.local.u32 [%rd5+104], %r1;\nld.local.u32 %r4, [%rd5+@];", 104, 108},
    {"local_load_v2",
     "st.local.v2.u32 [%rd5+96], {%r1, %r1};\nld.local.v2.u32 {%r4, %r5}, [%rd5+@];", 96, 104},
    {"generic_local_store", "st.u32 [%rd6+@], %r1;", 104, 108},
    {"generic_local_load", "st.local.u8 [%rd5+110], %r1;\nld.u8 %r4, [%rd6+@];", 110, 111},
};

class Bounds : public testing::TestWithParam<const Reach*> {
 protected:
  static std::vector<Finding> findings_at(std::uint32_t offset) {
    std::string instruction = GetParam()->instruction;
    instruction.replace(instruction.find('@'), 1, std::to_string(offset));
    Options options;
    options.check_races = false;  // all threads use the same place
    const auto outcome =
        run_text(kernel_of(memories, places + instruction), launch_of(1, 32, 512), options);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->findings : std::vector<Finding>{};
  }
};

TEST_P(Bounds, the_last_bytes_may_be_touched) {
  for (const Finding& finding : findings_at(GetParam()->inside))
    ADD_FAILURE() << describe(finding, "t.ptx");
}

TEST_P(Bounds, one_byte_behind_the_end_is_a_finding) {
  const auto findings = findings_at(GetParam()->behind);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, FindingKind::out_of_bounds) << describe(findings[0], "t.ptx");
  const bool local = std::string_view(GetParam()->name).find("local") != std::string_view::npos;
  EXPECT_NE(findings[0].detail.find(local ? "111 bytes" : "511 bytes"), std::string::npos)
      << findings[0].detail;
}

std::vector<const Reach*> every_reach() {
  std::vector<const Reach*> out;
  for (const Reach& reach : reaches) out.push_back(&reach);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, Bounds, testing::ValuesIn(every_reach()),
                         [](const testing::TestParamInfo<const Reach*>& given) {
                           return std::string(given.param->name);
                         });

}  // namespace
}  // namespace demarc::emulate
