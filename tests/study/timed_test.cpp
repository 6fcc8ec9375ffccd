// Tests kernels that are rewritten to note their times or to be steps of one kernel.
#include "demarc/ptx/timed.hpp"

#include <gtest/gtest.h>

#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/fused.hpp"
#include "demarc/ptx/parser.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx {
namespace {

constexpr const char* two_kernels = R"(.version 8.0
.target sm_75
.address_size 64

// a comment with a { brace
.visible .entry add(
	.param .u64 add_p,
	.param .u8 add_flag,
	.param .u32 add_n
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<4>;
	ld.param.u64 	%rd1, [add_p];
	ld.param.u32 	%r1, [add_n];
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mov.u32 	%r4, %tid.x;
	bar.sync 	0;
	setp.ge.u32 	%p1, %r2, %r1;
	@%p1 ret;
	st.global.u32 	[%rd1], %r4;
	ret;
}

.visible .entry other(.param .u64 other_p)
{
	.reg .b64 %rd<4>;
	ld.param.u64 	%rd1, [other_p];
	st.global.u64 	[%rd1], %rd1;
	exit;
}
)";

Module timed_input(const std::string& text) {
  ParseResult result = parse(text, "two.ptx");
  EXPECT_TRUE(result.diagnostics.ok())
      << (result.diagnostics.list.empty() ? "" : format(result.diagnostics.list.front(), text));
  return std::move(result.module);
}

TEST(RewriteTimed, every_way_out_of_a_kernel_passes_the_end_stamp) {
  const auto out = rewrite_timed(timed_input(two_kernels), {true, false});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_NE(out->text->find("@%p1 bra \t$demarc_timed_end;"), std::string::npos);
  const Module& again = *out;
  ASSERT_EQ(again.kernels().size(), 2U);
  for (const Function* kernel : again.kernels()) {
    EXPECT_EQ(kernel->parameters.back().name, "demarc_stamps");
    int returns = 0;
    for (const Instruction& i : kernel->body.instructions) {
      EXPECT_NE(i.opcode, Opcode::exit);
      returns += i.opcode == Opcode::ret ? 1 : 0;
    }
    EXPECT_EQ(returns, 1);
  }
  EXPECT_EQ(out->text->find("griddepcontrol"), std::string::npos);
  EXPECT_NE(out->text->find(".target sm_75"), std::string::npos);
}

TEST(RewriteTimed, overlapped_kernels_wait_before_anything_else_and_need_sm_90) {
  const auto out = rewrite_timed(timed_input(two_kernels), {false, true});
  ASSERT_TRUE(out);
  const Module& again = *out;
  EXPECT_EQ(again.targets.front(), "sm_90");
  for (const Function* kernel : again.kernels()) {
    EXPECT_EQ(again.text_of(kernel->body.instructions[0]), "griddepcontrol.launch_dependents;");
    EXPECT_EQ(again.text_of(kernel->body.instructions[1]), "griddepcontrol.wait;");
  }
  EXPECT_EQ(again.kernels()[1]->parameters.size(), 1U);
  EXPECT_EQ(std::count(out->text->begin(), out->text->end(), '\n'),
            std::count_if(two_kernels, two_kernels + std::strlen(two_kernels),
                          [](char c) { return c == '\n'; }));
}

TEST(RewriteTimed, overlapped_kernels_need_PTX_of_version_7_8) {
  const auto version = [](const std::string& given) {
    const auto out = rewrite_timed(timed_input("// PTX\n.version  " + given +
                                               "\n.target sm_70\n.address_size 64\n"
                                               ".visible .entry k()\n{\nret;\n}\n"),
                                   {false, true});
    return fmt::format("{}.{}", out->version.major, out->version.minor);
  };
  EXPECT_EQ(version("7.4"), "7.8");
  EXPECT_EQ(version("7.8"), "7.8");
  EXPECT_EQ(version("8.1"), "8.1");
  EXPECT_EQ(version("6.0 // old"), "7.8");
}

TEST(RewriteTimed, a_kernel_without_parameters_gets_one) {
  for (const std::string name : {"k()", "k", "k .maxntid 32"}) {
    const auto out = rewrite_timed(
        timed_input(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + name +
                    "\n{\nret;\n}\n"),
        {true, false});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->kernels()[0]->parameters.size(), 1U) << *out->text;
  }
}

TEST(RewriteTimed, the_latest_end_of_any_sm_counts) {
  std::vector<std::uint64_t> words(stamp_bytes / 8);
  words[0] = 100;
  words[8] = 150;
  words[39] = 170;
  words[40] = 999;  // beyond
  EXPECT_EQ(stamped_time(words).begin_ns, 100U);
  EXPECT_EQ(stamped_time(words).end_ns, 170U);
}

TEST(RewriteFused, kernels_become_steps_of_one_kernel) {
  const auto out = rewrite_fused(timed_input(two_kernels));
  ASSERT_TRUE(out) << out.error().message;
  const Module& again = *out;
  ASSERT_EQ(again.kernels().size(), 1U);
  EXPECT_EQ(again.kernels()[0]->name, "demarc_fused");
  // add_n lies behind an u64 and an u8, at the next multiple of 4.
  EXPECT_NE(out->text->find("ld.global.u32 \t%r1, [%demarc_arguments+12];"), std::string::npos)
      << *out->text;
  EXPECT_NE(out->text->find("mov.u32 \t%r2, %demarc_ctaid_x;"), std::string::npos);
  EXPECT_NE(out->text->find("mov.u32 \t%r3, %demarc_ntid_x;"), std::string::npos);
  EXPECT_NE(out->text->find("mov.u32 \t%r4, %demarc_tid_x;"), std::string::npos);
  EXPECT_NE(out->text->find("bar.sync \t0, %demarc_threads;"), std::string::npos);
  EXPECT_NE(out->text->find("@%p1 bra \t$demarc_fused_done;"), std::string::npos);
}

TEST(RewriteFused, a_module_older_than_its_barriers_is_refused) {
  const auto fused = [](const std::string& version, const std::string& target) {
    return rewrite_fused(timed_input(".version " + version + "\n.target " + target +
                                     "\n.address_size 64\n.entry k()\n{\nret;\n}\n"));
  };
  EXPECT_EQ(fused("5.0", "sm_60").error().message,
            "two.ptx: fused kernels need .version 6.0 or later, but the module has 5.0");
  const auto made = fused("6.0", "sm_70");
  EXPECT_TRUE(made) << made.error().message;
}

TEST(RewriteFused, the_result_can_be_timed_and_coloured) {
  const auto fused = rewrite_fused(timed_input(two_kernels));
  ASSERT_TRUE(fused);
  const auto timed = rewrite_timed(*fused, {true, false});
  ASSERT_TRUE(timed) << timed.error().message;
  const auto colored = color::rewrite_parities(*timed, {{0xc4000}, 1});
  ASSERT_TRUE(colored) << colored.error().message;
  ASSERT_TRUE(check_accepted(colored->kernels, "two.ptx"));
  EXPECT_EQ(colored->module.kernels()[0]->parameters.size(), 4U);
}

TEST(RewriteFused, what_cannot_be_a_step_is_refused_by_line) {
  const auto refusal = [](const std::string& line) {
    const auto out = rewrite_fused(timed_input(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n"
        "{\n\t.reg .b64 %rd<3>;\n\t.reg .pred %p<3>;\n\t.reg .b32 %r<3>;\n" +
        line + "\n\tret;\n}\n"));
    return out ? std::string("accepted") : out.error().message;
  };
  EXPECT_EQ(refusal("\tmov.u64 %rd1, p;"),
            "two.ptx:9: 'mov.u64 %rd1, p;' cannot become part of a fused kernel: parameters can "
            "only be loaded");
  EXPECT_EQ(refusal("\tbar.sync 1, 64;"),
            "two.ptx:9: 'bar.sync 1, 64;' cannot become part of a fused kernel: only a barrier of "
            "the whole block, with a constant number, can be fused");
  EXPECT_EQ(refusal("\tbar.sync 1;"), "accepted");
  EXPECT_EQ(refusal("\tbar.warp.sync -1;"), "accepted");
}

TEST(RewriteFused, parameters_that_do_not_fit_a_step_are_refused) {
  const auto module = timed_input(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .align 8 .b8 "
      "s[232])\n{\n\tret;\n}\n");
  const auto offsets = fused_offsets(*module.kernels()[0]);
  ASSERT_FALSE(offsets);
  EXPECT_EQ(offsets.error().message,
            "kernel 'k' has 232 bytes of parameters; a fused step holds 224");
}

}  // namespace
}  // namespace demarc::ptx
