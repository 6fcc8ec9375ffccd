// Data of a rewritten kernel leaves the L2 first: accesses stream, whatever the program wished.
#include "colored_text.hpp"

namespace demarc::ptx::test {
namespace {

struct Case {
  const char* name;
  const char* written;
  const char* made;  // the access at its translated address
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.written;
}

const Case cases[] = {
    {"loads", "ld.global.u32 %r1, [%rd1];", "\tld.global.cs.u32 %r1, [%demarc_a];"},
    {"vectors", "@%p1 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1+16];",
     "\t@%p1 ld.global.cs.v4.b32 {%r1, %r2, %r3, %r4}, [%demarc_a];"},
    {"the_read_only_cache", "ld.global.nc.L1::no_allocate.L2::256B.v2.u32 {%r1, %r2}, [%rd1];",
     "\tld.global.cs.nc.L2::256B.v2.u32 {%r1, %r2}, [%demarc_a];"},
    {"hints_and_their_policies", "ld.global.L1::evict_last.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
     "\tld.global.cs.u32 %r1, [%demarc_a];"},
    {"hints_of_stores", "st.global.L2::cache_hint.v2.b32 [%rd1], {%r1, %r2}, %rd2;",
     "\tst.global.cs.v2.b32 [%demarc_a], {%r1, %r2};"},
    {"stores", "st.global.u32 [%rd1], 1;", "\tst.global.cs.u32 [%demarc_a], 1;"},
    {"weak_accesses", "ld.weak.global.ca.u32 %r1, [%rd1];",
     "\tld.weak.global.cs.u32 %r1, [%demarc_a];"},
    {"operators_that_are_the_default", "st.weak.global.wb.u32 [%rd1], 1;",
     "\tst.weak.global.cs.u32 [%demarc_a], 1;"},
    {"weak_generic_accesses", "ld.weak.u32 %r1, [%rd1];", "\tld.weak.cs.u32 %r1, [%demarc_a];"},
    {"local_variables", "st.local.u32 [own], 1;", "\tst.global.cs.u32 [%demarc_a], 1;"},
    // What stays.
    {"volatile_loads_stay", "ld.volatile.global.u32 %r1, [%rd1];",
     "\tld.volatile.global.u32 %r1, [%demarc_a];"},
    {"relaxed_loads_stay", "ld.relaxed.gpu.global.L1::evict_last.u32 %r1, [%rd1];",
     "\tld.relaxed.gpu.global.L1::evict_last.u32 %r1, [%demarc_a];"},
    {"acquiring_loads_stay", "ld.acquire.sys.global.u32 %r1, [%rd1];",
     "\tld.acquire.sys.global.u32 %r1, [%demarc_a];"},
    {"releasing_stores_stay", "st.release.gpu.global.u32 [%rd1], 1;",
     "\tst.release.gpu.global.u32 [%demarc_a], 1;"},
    {"loads_that_pass_the_L1_by_stay", "ld.global.cg.u32 %r1, [%rd1];",
     "\tld.global.cg.u32 %r1, [%demarc_a];"},
    {"loads_that_ask_again_stay", "ld.global.cv.u32 %r1, [%rd1];",
     "\tld.global.cv.u32 %r1, [%demarc_a];"},
    {"last_uses_stay", "ld.global.lu.u32 %r1, [%rd1];", "\tld.global.lu.u32 %r1, [%demarc_a];"},
    {"stores_through_the_L2_stay", "st.global.wt.u32 [%rd1], 1;",
     "\tst.global.wt.u32 [%demarc_a], 1;"},
    {"streaming_accesses_stay", "st.global.cs.u32 [%rd1], 1;",
     "\tst.global.cs.u32 [%demarc_a], 1;"},
    {"device_registers_stay", "ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];",
     "\tld.mmio.relaxed.sys.global.u32 %r1, [%demarc_a];"},
    {"atomics_stay", "atom.global.add.u32 %r1, [%rd1], 1;",
     "\tatom.global.add.u32 %r1, [%demarc_a], 1;"},
    {"asynchronous_copies_stay", "cp.async.cg.shared.global [%r1], [%rd1], 16;",
     "\tcp.async.cg.shared.global [%r1], [%demarc_a], 16;"},
};

class Eviction : public testing::TestWithParam<Case> {};

TEST_P(Eviction, is_that_of_data_that_goes_first) {
  const ColoredModule made = colored(
      ".version 8.2\n.target sm_90\n.address_size 64\n" +
          colored_kernel("k", ".local .b8 own[16];\nld.param.u64 %rd1, [p];\nmov.u64 %rd2, 0;\n" +
                                  std::string(GetParam().written)),
      with_places);
  ASSERT_EQ(made.kernels.size(), 1U);
  ASSERT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "k.ptx");
  EXPECT_NE(made.module.text->find(GetParam().made), std::string::npos) << *made.module.text;
}

INSTANTIATE_TEST_SUITE_P(Of, Eviction, testing::ValuesIn(cases),
                         [](const auto& one) { return std::string(one.param.name); });

// Lines of shared memory are not the L2's.
TEST(Eviction, of_an_address_that_may_be_shared_is_not_asked_for) {
  const ColoredModule made =
      colored(".version 8.2\n.target sm_90\n.address_size 64\n.shared .b32 own[4];\n" +
              colored_kernel("k",
                             "ld.param.u64 %rd1, [p];\nmov.u64 %rd2, own;\n"
                             "cvta.shared.u64 %rd3, %rd2;\nsetp.ne.u64 %p1, %rd1, 0;\n"
                             "selp.b64 %rd4, %rd1, %rd3, %p1;\nst.u32 [%rd4], 1;"));
  EXPECT_NE(made.module.text->find("\tst.u32 [%demarc_a], 1;"), std::string::npos)
      << *made.module.text;
}

}  // namespace
}  // namespace demarc::ptx::test
