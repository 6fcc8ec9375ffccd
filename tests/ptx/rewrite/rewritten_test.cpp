// A module that was rewritten is known again, and what cannot be rewritten truly is refused.
#include <gtest/gtest.h>

#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/fused.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "demarc/ptx/timed.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx {
namespace {

Module module_of(const std::string& text) {
  ParseResult result = parse(text, "k.ptx");
  EXPECT_TRUE(result.diagnostics.ok()) << text;
  return std::move(result.module);
}

Module kernel_with(const std::string& body,
                   const std::string& preamble = ".version 8.0\n.target sm_90\n") {
  return module_of(preamble +
                   ".address_size 64\n"
                   ".visible .entry k(.param .u64 p)\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<6>;\n"
                   "\t.reg .b64 %rd<6>;\n\tld.param.u64 %rd1, [p];\n" +
                   body + "\tret;\n}\n");
}

Module plain() {
  return kernel_with("\tst.global.u32 [%rd1], 1;\n");
}

// Without the line of a refused function, which printing changes.
std::string said(const Error& error) {
  const std::size_t at = error.message.find("'k' is ");
  return at == std::string::npos ? error.message : error.message.substr(at);
}

// The text of a module all of whose kernels are accepted, else what is said.
std::string text_or_refusals(const Result<ColoredModule>& out) {
  if (!out) return said(out.error());
  const auto accepted = check_accepted(out->kernels, "k.ptx");
  return accepted ? *out->module.text : accepted.error().message;
}

std::string colored(const Module& module, color::Parities addressing = {{0xc4000}, 1}) {
  return text_or_refusals(color::rewrite_parities(module, addressing));
}
std::string remainders(const Module& module) {
  constexpr std::uint32_t begin = 8 * 23 * 24;
  const color::RemainderAddressing addressing{
      {.chunk_shift = 8, .page_shift = 13, .pattern_bits = 9},
      {.before = 0U - begin,
       .end = begin + 260000,
       .reciprocal = 23342214,  // of 8 * 23
       .skipped = 8 * 24}};
  return text_or_refusals(color::rewrite_remainders(module, addressing));
}
std::string affine(const Module& module) {
  const auto out = rewrite_affine(module);
  return out ? *out->text : said(out.error());
}
std::string timed(const Module& module) {
  const auto out = rewrite_timed(module, {true, false});
  return out ? *out->text : said(out.error());
}
std::string fused(const Module& module) {
  const auto out = rewrite_fused(module);
  return out ? *out->text : said(out.error());
}

std::string refusal(const char* is, const char* name, const char* wanted) {
  return fmt::format("'k' is {} already (it has '{}') and cannot be {}; give the original text", is,
                     name, wanted);
}

TEST(RewriteTwice, what_is_coloured_is_refused_by_every_pass_printed_or_not) {
  for (const std::string& once : {colored(plain()), remainders(plain())}) {
    for (const std::string& text : {once, print(module_of(once))}) {
      const Module module = module_of(text);
      EXPECT_EQ(colored(module), refusal("coloured", "%demarc_a", "coloured"));
      EXPECT_EQ(remainders(module), refusal("coloured", "%demarc_a", "coloured"));
      EXPECT_EQ(affine(module), refusal("coloured", "%demarc_a", "made SM-affine"));
      EXPECT_EQ(timed(module), refusal("coloured", "%demarc_a", "timed"));
      EXPECT_EQ(fused(module), refusal("coloured", "%demarc_a", "fused"));
    }
  }
}

TEST(RewriteTwice, the_refusal_names_file_and_line) {
  EXPECT_EQ(rewrite_affine(module_of(affine(plain()))).error().message.substr(0, 12),
            "k.ptx:4: 'k'");
}

TEST(RewriteTwice, one_coloured_function_is_enough) {
  const std::string text = colored(plain()) +
                           ".visible .entry other(.param .u64 q)\n{\n\t.reg .b64 %rd<2>;\n"
                           "\tld.param.u64 %rd1, [q];\n\tst.global.u32 [%rd1], 1;\n\tret;\n}\n";
  EXPECT_EQ(colored(module_of(text)), refusal("coloured", "%demarc_a", "coloured"));
}

TEST(RewriteTwice, what_is_affine_timed_or_fused_is_not_made_so_again_but_can_be_coloured) {
  const Module is_affine = module_of(print(module_of(affine(plain()))));
  EXPECT_EQ(affine(is_affine), refusal("SM-affine", "demarc_queue", "made SM-affine"));
  EXPECT_EQ(fused(is_affine), refusal("SM-affine", "demarc_queue", "fused"));
  const Module is_timed = module_of(print(module_of(timed(plain()))));
  EXPECT_EQ(timed(is_timed), refusal("timed", "demarc_stamps", "timed"));
  const Module is_fused = module_of(print(module_of(fused(plain()))));
  EXPECT_NE(fused(is_fused).find("'demarc_fused' is fused already"), std::string::npos);
  EXPECT_NE(affine(is_fused).find("'demarc_fused' is fused already"), std::string::npos);
  for (const Module* module : {&is_affine, &is_timed, &is_fused})
    EXPECT_NE(colored(*module).find("[%demarc_a]"), std::string::npos);
}

TEST(RewriteColored, a_colour_beyond_the_masks_is_refused) {
  EXPECT_EQ(colored(plain(), {{0xc4000}, 2}),
            "coloured addressing: there is no colour 2; the colours of 1 mask are 0 to 1");
  EXPECT_EQ(colored(plain(), {{0x38a000, 0xc4000}, 4}),
            "coloured addressing: there is no colour 4; the colours of 2 masks are 0 to 3");
  EXPECT_NE(colored(plain(), {{0x38a000, 0xc4000}, 3}).find("%demarc_a"), std::string::npos);
}

TEST(RewriteColored, an_address_written_as_a_number_is_refused) {
  EXPECT_EQ(colored(kernel_with("\tst.local.u32 [4096], 1;\n")),
            "k.ptx:10: kernel 'k': 'st.local.u32 [4096], 1;' accesses an address that none of its "
            "operands holds, which cannot be coloured");
}

TEST(RewriteColored, hints_about_lines_go_to_the_translated_address) {
  for (const std::string line :
       {"discard.global.L2 [%demarc_a], 128;",
        "applypriority.global.L2::evict_normal [%demarc_a], 128;", "discard.L2 [%demarc_a], 128;",
        "prefetch.global.L2 [%demarc_a];"}) {
    std::string plain_line = line;
    plain_line.replace(plain_line.find("%demarc_a"), 9, "%rd1");
    EXPECT_NE(colored(kernel_with("\t" + plain_line + "\n")).find("\t" + line + "\n"),
              std::string::npos);
  }
}

TEST(RewriteColored, what_takes_more_bytes_than_follow_each_other_is_refused) {
  const auto with_mask = [](const std::string& line, std::uint64_t mask) {
    return colored(
        kernel_with("\t.reg .f32 %f<9>;\n\t" + line + "\n", ".version 8.8\n.target sm_100\n"),
        {{mask}, 1});
  };
  const std::string discard = "discard.global.L2 [%rd1], 128;";
  EXPECT_EQ(with_mask(discard, 0x40), "k.ptx:11: kernel 'k': '" + discard +
                                          "' accesses 128 consecutive bytes; these colours keep "
                                          "only 64 together");
  EXPECT_NE(with_mask(discard, 0x80).find("%demarc_a"), std::string::npos);
  const std::string wide = "ld.global.v8.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, [%rd1];";
  EXPECT_NE(with_mask(wide, 0x10).find("accesses 32 consecutive bytes"), std::string::npos);
  EXPECT_NE(with_mask(wide, 0x20).find("%demarc_a"), std::string::npos);
}

TEST(RewriteColored, what_reaches_memory_by_an_address_nobody_translates_is_refused_by_line) {
  const auto refused = [](const std::string& line) {
    const std::string said = colored(kernel_with("\t" + line + "\n"));
    const std::string start = "k.ptx:10: kernel 'k': '" + line + "' ";
    return said.starts_with(start) ? said.substr(start.size(), 24) : "accepted: " + said;
  };
  const std::string other = "addresses memory in a wa";
  EXPECT_EQ(
      refused("createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd2, [%rd1], "
              "256, 512;"),
      "names a range of address");
  EXPECT_EQ(refused("wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r1,%r2,%r3,%r4}, "
                    "%r5;"),
            other);
  EXPECT_EQ(refused("wmma.store.d.sync.aligned.row.m16n16k16.f16 [%rd1], {%r1,%r2,%r3,%r4}, %r5;"),
            other);
  EXPECT_EQ(refused("st.async.release.global.b32 [%rd1], %r1;"), other);
  EXPECT_EQ(refused("cp.async.bulk.prefetch.L2.global [%rd1], 256;"), other);
  EXPECT_EQ(refused("multimem.red.global.add.u32 [%rd1], 1;"), other);
  EXPECT_EQ(refused("prefetchu.L1 [%rd1];"), other);
  EXPECT_EQ(refused("prefetch.tensormap [%rd1];"), "works on a tensor map, w");
  EXPECT_EQ(refused("tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1;"),
            "works on a tensor map, w");
  EXPECT_EQ(refused("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"),
            "works on a tensor map, w");
  EXPECT_EQ(refused("alloca.u64 %rd2, %rd1;"), "takes local memory of a ");
  EXPECT_EQ(refused("ld.newer.global.u32 %r1, [%rd1 * 2];"), "is unknown, and so is th");
  EXPECT_EQ(refused("fetch.global.u32 %r1, [%rd1];"), "is unknown, and so is th");
  EXPECT_EQ(refused("mov.u32 %r1, %envreg1;"), "reads %envreg1, through ");
  for (const std::string line :
       {"createpolicy.fractional.L2::evict_last.b64 %rd2, 1.0;", "cp.async.wait_all;",
        "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%rd1], {%r1,%r2,%r3,%r4}, %r5;",
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];",
        "mbarrier.inval.shared.b64 [%r1];", "mov.u32 %r1, %ctaid.x;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%rd1];"}) {
    EXPECT_EQ(refused(line).substr(0, 10), "accepted: ") << line;
  }
}

TEST(RewriteColored, addresses_that_leave_the_module_are_refused_by_line) {
  const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n";
  const std::string tail = ".visible .entry k()\n{\n\tcall f, ();\n\tret;\n}\n";
  EXPECT_EQ(colored(module_of(head + ".extern .func f();\n" + tail)),
            "k.ptx:7: kernel 'k': 'call f, ();' calls a function that is not in the module, so the "
            "addresses passed to it cannot be translated");
  EXPECT_EQ(
      colored(module_of(head + ".func f();\n" + tail + ".func f()\n{\n\tret;\n}\n")).substr(0, 8),
      ".version");
}

TEST(RewriteAffine, a_barrier_that_the_persistent_block_needs_is_refused) {
  const auto refused = [](const std::string& line) {
    return affine(kernel_with("\t" + line + "\n"))
        .starts_with("k.ptx:10: '" + line +
                     "' cannot be made SM-affine: persistent blocks use barrier 15");
  };
  EXPECT_TRUE(refused("bar.sync 15;"));
  EXPECT_TRUE(refused("barrier.sync %r1;"));
  EXPECT_TRUE(refused("bar.red.popc.u32 %r1, 15, %p1;"));
  EXPECT_FALSE(refused("bar.sync 14;"));
  EXPECT_FALSE(refused("bar.red.popc.u32 %r1, 14, %p1;"));
  EXPECT_FALSE(refused("bar.warp.sync -1;"));
  const Module module = module_of(
      ".version 8.0\n.target sm_90\n.address_size 64\n.func f()\n{\n\tbar.sync 15;\n\tret;\n}\n");
  EXPECT_EQ(affine(module).substr(0, 25), "k.ptx:6: 'bar.sync 15;' c");
}

// Thread 7 and those behind it return before `line`.
std::string affine_after_return(const std::string& line, const std::string& preamble,
                                const std::string& functions = "") {
  return affine(
      module_of(preamble + ".address_size 64\n" + functions +
                ".entry k()\n{\n.reg .pred %p<3>; .reg .b32 %r<3>;\nmov.u32 %r1, %tid.x;\n"
                "setp.gt.u32 %p1, %r1, 6;\n@%p1 ret;\n" +
                line + "\nret;\n}\n"));
}

TEST(RewriteAffine, a_barrier_behind_a_return_joins_those_that_returned_or_is_refused_by_line) {
  const std::string newer = ".version 8.0\n.target sm_90\n";
  const std::string refused =
      "cannot be made SM-affine: threads of the block may have returned before, ";
  const std::string text = affine_after_return("@!%p2 bar.sync 3;", newer);
  EXPECT_NE(text.find("@!%p2 barrier.red.and.pred \t%demarc_ended, 15, !%demarc_true;"),
            std::string::npos);
  EXPECT_NE(text.find("@%p1 bra \t$demarc_returned;"), std::string::npos);
  // Counted barriers wait for as many threads as they say.
  EXPECT_EQ(affine_after_return("bar.sync 3, 32;", newer).find("demarc_returned"),
            std::string::npos);
  EXPECT_EQ(affine_after_return("bar.red.popc.u32 %r2, 0, %p1;", newer),
            "k.ptx:10: 'bar.red.popc.u32 %r2, 0, %p1;' " + refused +
                "and their values would count; use bar.sync");
  for (const std::string older :
       {".version 5.0\n.target sm_60\n", ".version 6.0\n.target sm_60\n"}) {
    EXPECT_EQ(affine_after_return("bar.sync 0;", older),
              "k.ptx:10: 'bar.sync 0;' " + refused +
                  "and barriers of the others alone need PTX 6.0 and sm_70");
  }
  const std::string function = ".func f()\n{\nbar.sync 0;\nret;\n}\n";
  EXPECT_EQ(
      affine_after_return("call f;", newer, function),
      "k.ptx:15: 'call f;' " + refused + "and the called function may have a barrier; inline it");
  EXPECT_EQ(affine_after_return("call f;", newer, ".func f()\n{\nbar.sync 0, 32;\nret;\n}\n")
                .find("demarc_returned"),
            std::string::npos);
}

TEST(RewriteAffine, a_collective_of_a_warp_behind_a_return_is_refused_by_line) {
  const std::string header = ".version 8.0\n.target sm_90\n";
  const std::string refused =
      "' cannot be made SM-affine: threads of the warp may have returned before, and here the "
      "others would wait for them";
  for (const std::string line :
       {"shfl.sync.down.b32 %r2, %r1, 1, 0x1f, 0xffffffff;", "bar.warp.sync 0xffffffff;",
        "vote.sync.any.pred %p2, %p1, 0xffffffff;", "vote.sync.ballot.b32 %r2, %p1, -1;",
        "match.any.sync.b32 %r2, %r1, -1;", "redux.sync.add.s32 %r2, %r1, -1;",
        "elect.sync %r2|%p2, -1;"}) {
    EXPECT_EQ(affine_after_return(line, header), "k.ptx:10: '" + line + refused);
  }
  EXPECT_EQ(
      affine_after_return("call f;", header, ".func f()\n{\nbar.warp.sync 0xffffffff;\nret;\n}\n"),
      "k.ptx:15: 'call f;" + refused);
  EXPECT_EQ(affine_after_return("add.u32 %r2, %r1, 1;", header).find("cannot"), std::string::npos);
}

// Both ways have collectives, but the last one of one way names threads that left by the other.
TEST(RewriteAffine, a_collective_behind_the_returns_of_threads_that_had_one_too_is_refused) {
  const std::string vote = "vote.sync.any.pred %p2, %p1, -1;\n";
  const auto of = [&](const std::string& decides) {
    return affine(
        module_of(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
                  ".reg .pred %p<3>; .reg .b32 %r<3>;\nmov.u32 %r1, %tid.x;\n" +
                  decides + "\n@%p1 bra A;\n" + vote + vote + "ret;\nA:\n" + vote + "ret;\n}\n"));
  };
  EXPECT_NE(of("setp.ge.u32 %p1, %r1, 20;").find("threads of the warp may have returned before"),
            std::string::npos);
  EXPECT_EQ(of("setp.ge.u32 %p1, %r1, 32;").find("threads of the warp"), std::string::npos);
}

TEST(RewriteAffine, a_collective_that_whole_warps_jump_over_is_taken) {
  const auto refused = [](const std::string& decides, const std::string& more) {
    const std::string text =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 n)\n{\n"
        ".reg .pred %p<5>; .reg .b32 %r<9>;\nmov.u32 %r1, %tid.x;\nld.param.u32 %r5, [n];\n" +
        decides + more +
        "\n@%p1 bra END;\nshfl.sync.down.b32 %r4, %r1, 1, 0x1f, -1;\nEND:\nret;\n}\n";
    const auto module = parse_whole(text, "k.ptx");
    EXPECT_TRUE(module) << decides;
    const auto made = rewrite_affine(*module);
    if (!made) {
      EXPECT_NE(made.error().message.find("threads of the warp"), std::string::npos);
    }
    return !made;
  };
  for (const std::string decides :
       {"setp.gt.u32 %p1, %r1, 31;", "setp.le.u32 %p1, %r1, 63;", "setp.lt.u32 %p1, %r1, 32;",
        "setp.ge.s32 %p1, %r1, 96;", "setp.gt.u32 %p1, %r5, 7;",
        "shr.u32 %r2, %r1, 5;\nsetp.ne.u32 %p1, %r2, 3;",
        "shr.u32 %r2, %r1, 5;\nsetp.ge.u32 %p1, %r2, %r5;",
        "and.b32 %r2, %r1, 992;\nsetp.ne.s32 %p1, %r2, 0;",
        "div.u32 %r2, %r1, 64;\nsetp.ne.s32 %p1, %r2, 0;",
        "setp.gt.u32 %p2, %r1, 31;\nsetp.gt.u32 %p3, %r5, 7;\nor.pred %p1, %p2, %p3;"}) {
    EXPECT_FALSE(refused(decides, "")) << decides;
    const bool by_threads = decides != "setp.gt.u32 %p1, %r5, 7;";
    EXPECT_EQ(refused(decides, "\nmov.u32 %r6, %tid.y;"), by_threads) << decides;
  }
  for (const std::string decides :
       {"setp.gt.u32 %p1, %r1, 32;", "setp.lt.u32 %p1, %r1, 31;", "setp.ge.u32 %p1, %r1, 20;",
        "setp.le.u32 %p1, %r1, 64;", "setp.ge.u32 %p1, %r1, %r5;", "setp.eq.u32 %p1, %r1, 32;",
        "shr.u32 %r2, %r1, 4;\nsetp.ne.u32 %p1, %r2, 3;",
        "and.b32 %r2, %r1, 31;\nsetp.ne.s32 %p1, %r2, 0;",
        "div.u32 %r2, %r1, 48;\nsetp.ne.s32 %p1, %r2, 0;",
        "setp.gt.u32 %p2, %r1, 31;\nsetp.gt.u32 %p3, %r1, 7;\nor.pred %p1, %p2, %p3;",
        "mov.u32 %r2, %laneid;\nsetp.gt.u32 %p1, %r2, 31;",
        "add.u32 %r2, %r1, 1;\nsetp.gt.u32 %p1, %r2, 31;"}) {
    EXPECT_TRUE(refused(decides, "")) << decides;
  }
}

TEST(RewriteAffine, a_barrier_of_the_grid_is_refused_by_line) {
  EXPECT_EQ(affine(kernel_with("\tmov.u32 %r1, %envreg2;\n")),
            "k.ptx:10: 'mov.u32 %r1, %envreg2;' cannot be made SM-affine: %envreg2 serves barriers "
            "of the "
            "whole grid, and persistent blocks do not run side by side");
  const Module module = module_of(
      ".version 8.0\n.target sm_90\n.address_size 64\n.func f()\n{\n.reg .b32 %r<2>;\n"
      "mov.u32 %r1, %envreg1;\nret;\n}\n");
  EXPECT_EQ(affine(module).substr(0, 33), "k.ptx:7: 'mov.u32 %r1, %envreg1;'");
}

TEST(RewriteAffine, more_parameters_than_a_kernel_may_have_are_refused) {
  const auto said_of = [](const std::string& version, int bytes) {
    const std::string out =
        affine(module_of(".version " + version +
                         "\n.target sm_90\n.address_size 64\n.entry k(.param .align 8 .b8 p[" +
                         std::to_string(bytes) + "])\n{\nret;\n}\n"));
    return out.substr(0, out.find(':', 6));
  };
  EXPECT_EQ(said_of("8.0", 4328).substr(0, 9), ".version ");
  EXPECT_EQ(said_of("8.0", 4336), "k.ptx: what the rewritten text would be is not valid PTX");
  EXPECT_EQ(said_of("8.1", 4336).substr(0, 9), ".version ");
}

TEST(RewriteAffine, block_indices_that_it_cannot_replace_are_refused) {
  for (const std::string line : {"mov.v4.u32 {%r1, %r2, %r3, %r4}, %ctaid;",
                                 "mov.u32 %r1, %clusterid.x;", "mov.u32 %r1, %cluster_ctarank;"}) {
    EXPECT_EQ(affine(kernel_with("\t" + line + "\n")),
              "k.ptx:10: '" + line +
                  "' cannot be made SM-affine; read one axis of %ctaid or %nctaid at a time");
  }
}

TEST(RewriteAffine, a_kernel_without_parameters_gets_those_of_the_queue_alone) {
  for (const std::string name : {"k()", "k( /* ) */ )", "k", "k .maxntid 32"}) {
    const std::string text =
        affine(module_of(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + name +
                         "\n{\n\tret;\n}\n"));
    EXPECT_EQ(module_of(text).kernels()[0]->parameters.size(), 4U) << text;
  }
}

TEST(RewriteAffine, barriers_are_those_that_the_module_s_version_has) {
  const auto barriers = [](const std::string& version) {
    return affine(module_of(".version " + version +
                            "\n.target sm_60\n.address_size 64\n.entry k()\n{\n\tret;\n}\n"));
  };
  EXPECT_NE(barriers("6.0").find("\tbarrier.sync \t15;"), std::string::npos);
  EXPECT_EQ(barriers("5.0").find("barrier.sync"), std::string::npos);
  EXPECT_NE(barriers("5.0").find("\tbar.sync \t15;"), std::string::npos);
}

TEST(RewriteAffine, a_bracket_in_a_comment_is_no_body) {
  const Module module = module_of(
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 p /* ) { */)\n// {\n{\n\tret;\n}\n");
  const std::string text = affine(module);
  EXPECT_EQ(module_of(text).kernels()[0]->parameters.size(), 5U) << text;
}

}  // namespace
}  // namespace demarc::ptx
