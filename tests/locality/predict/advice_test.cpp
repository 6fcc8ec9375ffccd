// What a kernel is told about its worst access.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Loads p0[stride * (tid.x + 32 * ctaid.x)], after a load of neighbouring words.
Analysis with_stride(int stride, const std::string& more = "", const Options& options = {}) {
  const std::string text = fmt::format(R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p0, .param .u32 p1)
{{
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.loc 1 10 0
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.u32 %r3, %r2, 32, %r1;
mul.wide.u32 %rd2, %r3, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r4, [%rd3];
.loc 1 12 0
mul.wide.u32 %rd4, %r3, {};
add.s64 %rd5, %rd1, %rd4;
ld.global.u32 %r5, [%rd5+32768];
{}
ret;
}}
.file 1 "k.cu"
)",
                                       4 * stride, more);
  const ptx::ParseResult parsed = ptx::parse(text, "k.ptx");
  EXPECT_TRUE(parsed.diagnostics.ok());
  return analysed(parsed.module, launch_of("2", "32", "buf:65536:zero,i32:0"), options);
}

TEST(Advice, there_is_none_where_neighbours_read_neighbours_and_nothing_is_shared) {
  EXPECT_THAT(with_stride(1).advice, IsEmpty());
}

TEST(Advice, names_the_access_that_coalesces_worst_by_its_source_line_and_the_stride_of_its_lanes) {
  const Analysis analysis = with_stride(16);
  EXPECT_EQ(analysis.all.accesses[1].source_line, "k.cu:12");
  ASSERT_EQ(analysis.advice.size(), 1U);
  EXPECT_THAT(
      analysis.advice[0],
      HasSubstr("k.cu:12 (ld.global.u32 %r5, [%rd5+32768];) coalesces worst: 32.0 sectors per "
                "request where 4.0 would do. Neighbouring lanes are 64 bytes apart. Let "));
  // Twice the least is worth a word, a quarter more is not.
  EXPECT_THAT(with_stride(2).advice, ElementsAre(HasSubstr("8.0 sectors")));
  EXPECT_THAT(with_stride(1, "ld.global.u32 %r6, [%rd3+49156];").advice, IsEmpty());
}

TEST(Advice, the_worst_is_the_one_with_the_most_sectors_too_many_over_all_requests) {
  // Worse for a request, and executed by one warp of the two.
  const Analysis analysis =
      with_stride(4,
                  "mul.wide.u32 %rd6, %r3, 64;\nadd.s64 %rd7, %rd1, %rd6;\n"
                  "setp.eq.u32 %p1, %r2, 0;\n@%p1 ld.global.u32 %r6, [%rd7+49152];");
  EXPECT_THAT(analysis.advice, ElementsAre(HasSubstr("@%p1 ld.global.u32 %r6")));
  EXPECT_THAT(with_stride(6,
                          "mul.wide.u32 %rd6, %r3, 64;\nadd.s64 %rd7, %rd1, %rd6;\n"
                          "setp.eq.u32 %p1, %r2, 0;\n@%p1 ld.global.u32 %r6, [%rd7+49152];")
                  .advice,
              ElementsAre(HasSubstr("ld.global.u32 %r5")));
}

TEST(Advice, of_addresses_that_depend_on_data_speaks_of_their_order) {
  const Analysis analysis =
      with_stride(1,
                  "ld.global.u32 %r6, [%rd1];\nmul.lo.u32 %r7, %r6, 4;\n"
                  "mad.lo.u32 %r7, %r3, 64, %r7;\ncvt.u64.u32 %rd6, %r7;\n"
                  "add.s64 %rd7, %rd1, %rd6;\nld.global.u32 %r8, [%rd7+49152];");
  ASSERT_EQ(analysis.advice.size(), 2U);
  EXPECT_THAT(analysis.advice[0],
              HasSubstr("Its addresses depend on data: sort or group the indices"));
}

TEST(Advice, of_neighbouring_elements_that_begin_within_a_sector_speaks_of_where_rows_begin) {
  const Analysis analysis = analysed(module_of(R"(
ld.param.u64 %rd1, [p0];
mov.u32 %r3, %tid.x;
mul.wide.u32 %rd2, %r3, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r1, [%rd3+16];
)",
                                               one_pointer),
                                     launch_of("1", "8", "buf:64,i32:0"));
  EXPECT_THAT(analysis.advice, ElementsAre(HasSubstr("align or pad them to 32 bytes")));
}

TEST(Advice, names_the_access_that_most_blocks_share_and_what_helps_its_kind) {
  const std::string read = "ld.global.u32 %r6, [%rd1+49152];";
  EXPECT_THAT(
      with_stride(1, read).advice,
      ElementsAre(HasSubstr("k.cu:12 (ld.global.u32 %r6, [%rd1+49152];) is shared most: on average "
                            "2.00 blocks touch each of its places. Larger tiles")));
  Options options;
  options.kind = AccessKind::store;
  EXPECT_THAT(
      with_stride(1, read + "\nst.global.u32 [%rd1+61440], %r6;", options).advice,
      ElementsAre(HasSubstr("st.global.u32 [%rd1+61440], %r6;) is shared most: on "
                            "average 2.00 blocks touch each of its places. Only the last")));
  options.kind = AccessKind::atomic;
  EXPECT_THAT(with_stride(1, "red.global.add.u32 [%rd1+61440], 1;", options).advice,
              ElementsAre(HasSubstr("Combine within the block")));
}

TEST(Advice, what_a_block_touches_twice_counts_once_among_the_blocks_of_a_place) {
  const Analysis analysis = with_stride(0);
  EXPECT_EQ(analysis.inter.blocks_per_place, (std::vector<double>{1, 2}));
  // Half of the places of each block are the other's too.
  const Analysis half = with_stride(1, "ld.global.u32 %r6, [%rd3+32832];");
  EXPECT_EQ(half.inter.blocks_per_place, (std::vector<double>{1, 1.25, 1.25}));
}

TEST(Advice, without_source_lines_names_the_line_of_the_ptx) {
  const Analysis analysis = analysed(module_of(R"(
ld.param.u64 %rd1, [p0];
ld.global.u32 %r1, [%rd1];
)",
                                               one_pointer),
                                     launch_of("2", "32", "buf:64,i32:0"));
  EXPECT_EQ(analysis.all.accesses[0].source_line, "");
  EXPECT_THAT(analysis.advice,
              ElementsAre(HasSubstr("line 12 (ld.global.u32 %r1, [%rd1];) is sh")));
}

}  // namespace
}  // namespace demarc::locality
