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
    // What has no `.cs` has a policy.
    {"relaxed_loads", "ld.relaxed.gpu.global.L1::evict_last.u32 %r1, [%rd1];",
     "\tld.relaxed.gpu.global.L2::cache_hint.u32 %r1, [%demarc_a], %demarc_e;"},
    {"acquiring_loads", "@!%p1 ld.acquire.sys.global.v2.u32 {%r1, %r2}, [%rd1+8];",
     "\t@!%p1 ld.acquire.sys.global.L2::cache_hint.v2.u32 {%r1, %r2}, [%demarc_a], %demarc_e;"},
    {"releasing_stores", "st.release.gpu.global.u32 [%rd1], 1;",
     "\tst.release.gpu.global.L2::cache_hint.u32 [%demarc_a], 1, %demarc_e;"},
    {"loads_that_pass_the_L1_by", "ld.global.cg.L2::128B.u32 %r1, [%rd1];",
     "\tld.global.cg.L2::cache_hint.L2::128B.u32 %r1, [%demarc_a], %demarc_e;"},
    {"stores_that_pass_the_L1_by", "st.global.cg.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};",
     "\tst.global.cg.L2::cache_hint.v4.b32 [%demarc_a], {%r1, %r2, %r3, %r4}, %demarc_e;"},
    {"policies_of_the_program", "ld.global.cg.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
     "\tld.global.cg.L2::cache_hint.u32 %r1, [%demarc_a], %demarc_e;"},
    {"loads_that_ask_again", "ld.global.cv.u32 %r1, [%rd1];",
     "\tld.global.cv.L2::cache_hint.u32 %r1, [%demarc_a], %demarc_e;"},
    {"stores_through_the_L2", "st.global.wt.u32 [%rd1], 1;",
     "\tst.global.wt.L2::cache_hint.u32 [%demarc_a], 1, %demarc_e;"},
    // What stays.
    {"volatile_loads_stay", "ld.volatile.global.u32 %r1, [%rd1];",
     "\tld.volatile.global.u32 %r1, [%demarc_a];"},
    {"last_uses_stay", "ld.global.lu.u32 %r1, [%rd1];", "\tld.global.lu.u32 %r1, [%demarc_a];"},
    {"streaming_accesses_stay", "st.global.cs.u32 [%rd1], 1;",
     "\tst.global.cs.u32 [%demarc_a], 1;"},
    {"device_registers_stay", "ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];",
     "\tld.mmio.relaxed.sys.global.u32 %r1, [%demarc_a];"},
    {"atomics_stay", "atom.global.add.u32 %r1, [%rd1], 1;",
     "\tatom.global.add.u32 %r1, [%demarc_a], 1;"},
};

// The text of an accepted kernel with that access.
std::string with_access(const std::string& written, const std::string& version = "8.2") {
  const ColoredModule made =
      colored(".version " + version + "\n.target " + (version < "7.8" ? "sm_80" : "sm_90") +
                  "\n.address_size 64\n.global .align 16 .b8 from[16];\n" +
                  colored_kernel("k",
                                 ".local .b8 own[16]; .shared .align 16 .b8 tile[32];\n"
                                 "ld.param.u64 %rd1, [p];\nmov.u64 %rd2, 0;\n" +
                                     written),
              with_places);
  EXPECT_EQ(made.kernels.size(), 1U);
  EXPECT_TRUE(made.kernels[0].accepted()) << describe_refusals(made.kernels[0], "k.ptx");
  return *made.module.text;
}

class Eviction : public testing::TestWithParam<Case> {};

TEST_P(Eviction, is_that_of_data_that_goes_first) {
  const std::string text = with_access(GetParam().written);
  EXPECT_NE(text.find(GetParam().made), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Of, Eviction, testing::ValuesIn(cases),
                         [](const auto& one) { return std::string(one.param.name); });

struct Copy {
  const char* name;
  const char* written;
  const char* address;  // of shared memory, as it is computed
  const char* made;
};

void PrintTo(const Copy& one, std::ostream* out) {
  *out << one.written;
}

const Copy copies[] = {
    {"guarded", "@%p1 cp.async.cg.shared.global [%r1+64], [%rd1], 16;",
     "add.s32 %demarc_d, %r1, 64;",
     "@%p1 cp.async.cg.shared.global.L2::cache_hint [%demarc_d], [%demarc_a], 16, %demarc_e;"},
    {"of_fewer_bytes", "cp.async.ca.shared.global.L2::128B [%r1], [%rd1], 8, %r2;",
     "add.s32 %demarc_d, %r1, 0;",
     "cp.async.ca.shared.global.L2::cache_hint.L2::128B [%demarc_d], [%demarc_a], 8, %r2, "
     "%demarc_e;"},
    {"to_a_variable", "cp.async.ca.shared::cta.global [tile+16], [%rd1], 4;",
     "mov.u32 %demarc_d, tile+16;",
     "cp.async.ca.shared::cta.global.L2::cache_hint [%demarc_d], [%demarc_a], 4, %demarc_e;"},
    {"to_a_wide_address", "cp.async.cg.shared.global [%rd2+8], [%rd1], 16;",
     "cvt.u32.u64 %demarc_d, %rd2;\n\tadd.s32 %demarc_d, %demarc_d, 8;",
     "cp.async.cg.shared.global.L2::cache_hint [%demarc_d], [%demarc_a], 16, %demarc_e;"},
    {"with_a_policy", "cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1], 16, 8, %rd2;",
     "add.s32 %demarc_d, %r1, 0;",
     "cp.async.cg.shared.global.L2::cache_hint [%demarc_d], [%demarc_a], 16, 8, %demarc_e;"},
    {"of_a_variable", "cp.async.cg.shared.global [%r1], [from], 16;", "add.s32 %demarc_d, %r1, 0;",
     "cp.async.cg.shared.global.L2::cache_hint [%demarc_d], [%demarc_a], 16, %demarc_e;"},
};

class EvictionOfCopies : public testing::TestWithParam<Copy> {};

TEST_P(EvictionOfCopies, is_asked_for_by_a_policy) {
  const std::string text = with_access(GetParam().written);
  const std::string made =
      std::string("\tcreatepolicy.fractional.L2::evict_first.b64 %demarc_e, 0f3F800000;\n\t") +
      GetParam().address + "\n\txor.b32 %demarc_d, %demarc_d, %demarc_zero;\n\t" + GetParam().made +
      "\n";
  EXPECT_NE(text.find(made), std::string::npos) << text;
  EXPECT_NE(text.find("and.b32 %demarc_zero, %demarc_zero, %demarc_below;"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Of, EvictionOfCopies, testing::ValuesIn(copies),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(EvictionOfCopies, is_left_alone_in_PTX_without_policies) {
  const std::string text = with_access("cp.async.cg.shared.global [%r1], [%rd1], 16;", "7.3");
  EXPECT_NE(text.find("\tcp.async.cg.shared.global [%r1], [%demarc_a], 16;"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("demarc_zero"), std::string::npos);
}

TEST(EvictionOfOrderedAccesses, is_left_alone_in_PTX_without_policies) {
  const std::string text = with_access("ld.global.cg.u32 %r1, [%rd1];", "7.3");
  EXPECT_NE(text.find("\tld.global.cg.u32 %r1, [%demarc_a];"), std::string::npos) << text;
}

// The text of a kernel for `target` that passes the L1 by, for a card.
std::string for_card(const std::string& target, std::uint32_t card) {
  ColoredOptions options = with_places;
  options.card = card;
  const ColoredModule made =
      colored(".version 8.2\n.target " + target + "\n.address_size 64\n" +
                  colored_kernel("k", "ld.param.u64 %rd1, [p];\nld.global.cg.u32 %r1, [%rd1];"),
              options);
  return *made.module.text;
}

TEST(EvictionOfOrderedAccesses, names_an_older_target_anew_where_the_card_is_newer) {
  for (const char* target : {"sm_70", "sm_75", "sm_75, texmode_independent"}) {
    const std::string text = for_card(target, 90);
    EXPECT_NE(text.find(".target sm_80"), std::string::npos) << text;
    EXPECT_NE(text.find("ld.global.cg.L2::cache_hint.u32"), std::string::npos) << text;
  }
  EXPECT_NE(for_card("sm_75, texmode_independent", 90).find(".target sm_80, texmode_independent"),
            std::string::npos);
  EXPECT_NE(for_card("sm_86", 90).find(".target sm_86"), std::string::npos);
}

TEST(EvictionOfOrderedAccesses, leaves_the_target_of_a_module_without_them) {
  ColoredOptions options = with_places;
  options.card = 90;
  const ColoredModule made =
      colored(".version 8.2\n.target sm_75\n.address_size 64\n" + colored_kernel("k", plain_store),
              options);
  EXPECT_NE(made.module.text->find(".target sm_75"), std::string::npos) << *made.module.text;
}

TEST(EvictionOfOrderedAccesses, is_left_alone_where_the_code_would_not_run) {
  struct Of {
    const char* target;
    std::uint32_t card;
  };
  for (const auto& [target, card] : {Of{"sm_75", 75}, Of{"sm_75", 0}, Of{"sm_61", 90}}) {
    const std::string text = for_card(target, card);
    EXPECT_NE(text.find(std::string(".target ") + target), std::string::npos) << text;
    EXPECT_EQ(text.find("cache_hint"), std::string::npos) << text;
  }
}

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
