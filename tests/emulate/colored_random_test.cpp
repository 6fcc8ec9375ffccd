// Some random kernels of address arithmetic; tests/emulate/slow has ten thousand.
#include "colored_random.hpp"

namespace demarc::emulate::colored {
namespace {

TEST(RandomProgram, of_a_batch_leave_in_every_kind_of_colours_what_they_leave_in_plain_memory) {
  for (std::uint64_t colors = 0; colors < 3; ++colors) {
    expect_same_everywhere({.first_seed = 100'000, .colors_seed = colors, .programs = 10});
  }
}

TEST(RandomProgram, have_every_form_of_access) {
  std::string all;
  for (std::uint64_t seed = 0; seed < 200; ++seed) all += RandomProgram(seed).text();
  for (const char* form : {"ld.global.u8",
                           "ld.global.v2.",
                           "ld.global.v4.",
                           "st.global.v4.u32",
                           "st.global.v2.b64",
                           "ld.global.nc.",
                           "ld.volatile.global.",
                           "ld.relaxed.gpu.global.",
                           "\nld.b16",
                           "\nst.u64",
                           "atom.global.cas.b32",
                           "atom.global.add.u64",
                           "red.global.",
                           "\natom.exch",
                           "\nred.",
                           "cp.async.cg",
                           "cp.async.ca",
                           "prefetch.global.L2",
                           "call.uni",
                           "st.local.u32",
                           "cvta.local",
                           "selp.b64 %a",
                           "mad.wide.s32 %a",
                           "addc.u32",
                           "shl.b64 %a",
                           "sub.s64 %a",
                           "mul.lo.s64 %a",
                           "neg.s32",
                           "[%a0+",
                           "+-",
                           "table+4",
                           ", other;",
                           "red.global.add.u32 [other+",
                           "bra $L",
                           "@%p",
                           "@!%p",
                           "ld.global.L1::evict_last",
                           "ld.global.L2::128B",
                           "[pointer]"}) {
    EXPECT_NE(all.find(form), std::string::npos) << form;
  }
}

}  // namespace
}  // namespace demarc::emulate::colored
