// Tests what the coloured and the SM-affine rewriting change in a kernel and what they refuse.
#include <gtest/gtest.h>

#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx {
namespace {

constexpr const char* small_kernel = R"(.version 8.0
.target sm_90
.address_size 64

.visible .entry twice(.param .u64 p, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<4>;
	ld.param.u64 	%rd1, [p];
	ld.param.u32 	%r1, [n];
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %nctaid.x;
	setp.ge.u32 	%p1, %r2, %r1;
	@%p1 bra 	$done;
	mul.wide.u32 	%rd2, %r2, 4;
	add.s64 	%rd3, %rd1, %rd2;
	@!%p1 ld.global.nc.u32 	%r4, [%rd3+8];
	st.global.u32 	[%rd3+8], %r4;
$done:
	ret;
}
)";

Module read_back(const std::string& text) {
  ParseResult result = parse(text, "small.ptx");
  EXPECT_TRUE(result.diagnostics.ok());
  return std::move(result.module);
}

std::string with_body(const std::string& body) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .b32 counter;\n"
         ".visible .entry k(.param .u64 p)\n{\n\t.reg .b32 %r<6>;\n\t.reg .b64 %rd<6>;\n\t.shared "
         ".align 4 .b32 s[8];\n\tld.param.u64 %rd1, [p];\n" +
         body + "\tret;\n}\n";
}

// The text of a module whose kernels are all accepted.
std::string text_of(const Result<ColoredModule>& made) {
  if (!made) return made.error().message;
  const auto accepted = check_accepted(made->kernels, "small.ptx");
  return accepted ? *made->module.text : accepted.error().message;
}

TEST(RewriteColored, translates_only_global_accesses_and_keeps_predicates) {
  const std::string out = text_of(color::rewrite_parities(read_back(small_kernel), {{0xc4000}, 1}));
  EXPECT_NE(out.find(R"({
	.reg .b64 %demarc_a, %demarc_h;
	.reg .b32 %demarc_l, %demarc_u, %demarc_o, %demarc_x, %demarc_s;
	add.s64 	%demarc_a, %rd3, 8;
	cvt.u32.u64 	%demarc_l, %demarc_a;
	mov.b32 	%demarc_o, %demarc_l;
	shr.u32 	%demarc_x, %demarc_l, 4;
	add.u32 	%demarc_x, %demarc_x, 24576;
	xor.b32 	%demarc_x, %demarc_x, %demarc_o;
	and.b32 	%demarc_x, %demarc_x, 4294950912;
	xor.b32 	%demarc_o, %demarc_o, %demarc_x;
	shl.b64 	%demarc_h, %demarc_a, 1;
	mov.b64 	{%demarc_x, %demarc_u}, %demarc_h;
	xor.b32 	%demarc_x, %demarc_x, %demarc_o;
	and.b32 	%demarc_x, %demarc_x, 4294934528;
	xor.b32 	%demarc_o, %demarc_o, %demarc_x;
	mov.b64 	%demarc_a, {%demarc_o, %demarc_u};
	@!%p1 ld.global.cs.nc.u32 	%r4, [%demarc_a];
	})"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("ld.param.u64 	%rd1, [p];"), std::string::npos);
  EXPECT_EQ(read_back(out).kernels().size(), 1U);
}

// A copy into a colour has coloured stores only, one out of it coloured loads only.
TEST(RewriteColored, one_side_of_a_copy_can_be_left_as_it_is) {
  const Module module = read_back(small_kernel);
  const std::string in = text_of(
      color::rewrite_parities(module, {{0xc4000}, 1}, {.accesses = ColoredAccesses::stores}));
  const std::string out = text_of(
      color::rewrite_parities(module, {{0xc4000}, 1}, {.accesses = ColoredAccesses::loads}));
  const std::string load = "ld.global.cs.nc.u32 \t%r4, [%rd3+8];";
  const std::string store = "st.global.cs.u32 \t[%rd3+8], %r4;";
  EXPECT_NE(in.find(load), std::string::npos);
  EXPECT_EQ(in.find(store), std::string::npos);
  EXPECT_EQ(out.find(load), std::string::npos);
  EXPECT_NE(out.find(store), std::string::npos);
}

TEST(RewriteColored, masks_that_do_not_fit_are_refused) {
  const Module module = read_back(small_kernel);
  EXPECT_FALSE(color::rewrite_parities(module, {{}, 0}));
  EXPECT_FALSE(color::rewrite_parities(module, {{0xc4000, 0x38a000}, 0}));  // lowest bits descend
  EXPECT_FALSE(
      color::rewrite_parities(module, {{0x6000, 0xc000}, 0}));  // 0x4000 also in the second
  EXPECT_TRUE(color::rewrite_parities(module, {{0x38a000, 0xc4000}, 3}));
}

TEST(RewriteColored, pointers_are_divided_so_that_inserting_bits_restores_the_arena) {
  const color::Parities two{{0x38a000, 0xc4000}, 0};
  const color::DeviceAddress arena(0x7f00'0020'0000);
  std::uint64_t a = color::colored_pointer(arena, color::LinearByte(0x1fff), two).raw();
  for (const std::uint64_t mask : two.masks) a += a & ~((mask & -mask) - 1);
  EXPECT_EQ(a, (arena + 0x1fff).raw());
}

TEST(RewriteAffine, adds_parameters_and_takes_block_indices_from_the_queue) {
  const auto out = rewrite_affine(read_back(small_kernel));
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_NE(out->text->find("mov.u32 	%r2, %demarc_ctaid_x;"), std::string::npos);
  EXPECT_NE(out->text->find("mov.u32 	%r3, %demarc_nctaid_x;"), std::string::npos);
  EXPECT_NE(out->text->find("$done:\n	bra 	$demarc_next;"), std::string::npos);
  const Module& again = *out;
  ASSERT_EQ(again.kernels().size(), 1U);
  EXPECT_EQ(again.kernels()[0]->parameters.size(), 6U);
  EXPECT_EQ(again.kernels()[0]->parameters[2].name, "demarc_queue");
}

TEST(RewriteAffine, barriers_that_it_cannot_keep_apart_from_its_own_are_refused_by_line) {
  const auto refusal = [](const std::string& barrier) {
    const auto out = rewrite_affine(
        read_back(with_body("\t.reg .pred %p<3>;\n\tmov.u32 %r1, 1;\n\t" + barrier + "\n")));
    return out ? "" : out.error().message;
  };
  for (const char* kept :
       {"bar.sync 0;", "bar.sync 14, 64;", "barrier.sync 3;", "bar.arrive 2, 64;",
        "bar.red.popc.u32 %r2, 14, %p1;", "bar.warp.sync 0xffffffff;"})
    EXPECT_EQ(refusal(kept), "") << kept;
  for (const char* refused :
       {"bar.sync 15;", "bar.sync %r1;", "barrier.sync 15;", "bar.arrive 15, 64;",
        "bar.red.popc.u32 %r2, 15, %p1;", "bar.red.popc.u32 %r2, %r1, %p1;"}) {
    EXPECT_EQ(refusal(refused).substr(0, 13), "small.ptx:13:") << refused;
    EXPECT_NE(refusal(refused).find("persistent blocks use barrier 15"), std::string::npos);
  }
}

TEST(RewriteAffine, keeps_predicates_on_early_returns) {
  const auto out =
      rewrite_affine(read_back(with_body("\t.reg .pred %p1;\n\t@%p1 ret;\n\texit;\n")));
  ASSERT_TRUE(out);
  EXPECT_NE(out->text->find("@%p1 bra \t$demarc_next;"), std::string::npos);
  EXPECT_EQ(out->text->find("exit"), std::string::npos);
}

}  // namespace
}  // namespace demarc::ptx
