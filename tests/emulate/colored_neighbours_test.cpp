// Accesses that lie near each other, at every distance from the end of a chunk.
#include "colored_kernels.hpp"

namespace demarc::emulate::colored {
namespace {

// Each thread has 264 bytes, %rd3 is their address: no two begin equally far from a chunk's end.
const std::string own_bytes = "mul.wide.u32 %rd3, %r2, 264;\nadd.s64 %rd3, %rd1, %rd3;\n";
const Shape many_bytes{.words = std::uint64_t{3} * 40 * 33};

void expect_own_bytes_contained(const std::string& body) {
  expect_contained(kernel("", own_bytes + body), many_bytes);
}

TEST(ColoredNeighbours, are_translated_together_whichever_comes_first) {
  expect_own_bytes_contained(R"(
    st.global.u32 [%rd3+248], 1;
    st.global.v2.u32 [%rd3], {%r2, 3};
    st.global.u8 [%rd3+37], %r2;
    st.global.u16 [%rd3+130], 5;
    ld.global.u32 %r5, [%rd3];
    atom.global.add.u32 %r6, [%rd3+248], %r5;
    red.global.add.u32 [%rd3+36], %r6;
  )");
}

TEST(ColoredNeighbours, are_found_by_what_is_added_to_a_register) {
  expect_own_bytes_contained(R"(
    add.s64 %rd4, %rd3, 100;
    add.u64 %rd5, %rd4, -96;
    st.global.u32 [%rd3], 1;
    st.global.u32 [%rd4], 2;
    st.global.u32 [%rd5+200], 3;
    ld.global.u32 %r5, [%rd5+96];
    add.u32 %r5, %r5, %r2;
    st.global.u32 [%rd4+-4], %r5;
    add.s64 %rd3, %rd3, 8;
    st.global.u32 [%rd3+44], %r5;
  )");
}

TEST(ColoredNeighbours, whose_first_access_is_not_carried_out) {
  expect_own_bytes_contained(R"(
    and.b32 %r5, %r2, 1;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 st.global.u32 [%rd3+4], 1;
    @!%p1 st.global.u32 [%rd3+128], 2;
    st.global.u32 [%rd3+252], 3;
  )");
}

TEST(ColoredNeighbours, of_registers_that_change) {
  expect_own_bytes_contained(R"(
    mov.u32 %r5, 0;
$next:
    st.global.u32 [%rd3], %r5;
    st.global.u32 [%rd3+40], %r5;
    st.global.u32 [%rd3+80], %r2;
    @%p1 add.s64 %rd3, %rd3, 4;
    st.global.u32 [%rd3+44], %r5;
    add.s64 %rd3, %rd3, 8;
    st.global.u32 [%rd3+120], %r5;
    setp.ne.u32 %p1, %r5, 5;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 9;
    @%p2 bra $next;
  )");
}

TEST(ColoredNeighbours, that_are_loaded_over_their_own_address) {
  expect_own_bytes_contained(R"(
    st.global.u64 [%rd3], %rd3;
    st.global.u64 [%rd3+8], %rd3;
    st.global.u64 [%rd3+16], 7;
    ld.global.u64 %rd3, [%rd3+8];
    st.global.u32 [%rd3+16], 9;
    st.global.u32 [%rd3+20], %r2;
    mov.u64 %rd4, 0;
    st.global.u64 [%rd3], %rd4;
    st.global.u64 [%rd3+8], %rd4;
  )");
}

}  // namespace
}  // namespace demarc::emulate::colored
