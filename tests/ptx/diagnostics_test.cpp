// Golden tests: a text and everything that is said about it.
#include <gtest/gtest.h>

#include "text.hpp"

namespace demarc::ptx {
namespace {

std::string said_of(const std::string& text) {
  return test::all_of(parse(text, "t.ptx").diagnostics);
}

TEST(Diagnostics, are_counted_by_their_severity) {
  const ParseResult result = parse(
      test::kernel("foo.b32 %r1, 4;\nfoo.b32 %r2, 4;\nmov.b32 %r1, 0f3F;\nadd.s32 %r1, %r2, 1;\n"),
      "t.ptx");
  EXPECT_EQ(result.diagnostics.malformed, 1U);
  EXPECT_EQ(result.diagnostics.unsupported, 2U);
  EXPECT_EQ(result.diagnostics.approximated, 0U);
  EXPECT_EQ(result.diagnostics.list.size(), 3U);
}

TEST(Diagnostics, an_element_that_a_register_does_not_have_is_an_error) {
  const std::string declared = ".reg .v2 .b32 v, w<3>; .reg .v4 .b32 q; .reg .b32 s;\n";
  const auto said = [&](const std::string& statement) {
    return said_of(test::kernel(declared + statement));
  };
  for (const std::string& text :
       {std::string("mov.b32 @, 1;"), std::string("mov.b32 %r1, @;"),
        std::string("add.s32 %r1, @, @;"), std::string("st.global.v2.b32 [%rd1], {%r1, @};"),
        std::string("ld.global.v2.b32 {@, %r1}, [%rd1];"), std::string("setp.eq.s32 %p1, @, 1;"),
        std::string("setp.eq.s32 %p1|%p2, 1, @;"), std::string("prmt.b32 %r1, 1, 2, @;"),
        std::string("mov.b64 %rd1, {@, %r1};")}) {
    const auto with = [&](const std::string& part) {
      std::string out = text;
      for (std::size_t at; (at = out.find('@')) != std::string::npos;) out.replace(at, 1, part);
      return said(out);
    };
    for (const std::string part : {"v.x", "v.y", "v.r", "v.g", "w0.x", "w2.y", "q.z", "q.w", "q.a"})
      EXPECT_EQ(with(part), "") << text << " with " << part;
    for (const std::string name : {"v", "w0", "w2"}) {
      for (const std::string selector : {"z", "w", "b", "a"}) {
        EXPECT_NE(with(name + "." + selector)
                      .find("malformed: '." + selector + "' is not a part of '" + name +
                            "', a register of 2 elements\n"),
                  std::string::npos)
            << text << " with " << name << "." << selector;
      }
    }
    EXPECT_NE(with("s.x").find("'.x' is not a part of 's', a register of 1 element\n"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(said("vadd.s32.s32.s32 %r1, s.b3, s.h1, %r1;"), "");
  EXPECT_NE(said("vadd.s32.s32.s32 %r1, v.b0, %r2, %r1;").find("'.b0' is not a part of 'v'"),
            std::string::npos);
}

TEST(Diagnostics, an_alignment_may_stand_before_the_state_space_of_a_variable) {
  const std::string preamble = ".version 8.0\n.target sm_90\n.address_size 64\n";
  for (const std::string space : {".global", ".const", ".shared"}) {
    for (const std::string linkage : {"", ".visible "}) {
      const Module module = test::parsed(preamble + linkage + ".align 16 " + space + " .b32 x;\n");
      ASSERT_EQ(module.variables.size(), 1U);
      EXPECT_EQ(module.variables[0].alignment(), 16U) << space;
    }
  }
  for (const std::string space : {".shared", ".local", ".param", ".global"}) {
    const Module module = test::parsed(test::kernel(".align 16 " + space + " .b32 x;"));
    EXPECT_EQ(module.functions[0].body.variables.back().alignment(), 16U) << space;
  }
  EXPECT_NE(said_of(preamble + ".align 3 .global .b32 x;\n")
                .find("malformed: an alignment must be a power of two"),
            std::string::npos);
  for (const std::string behind : {".b32 x;", ".visible .global .b32 x;", "x;", ".reg .b32 x;"}) {
    EXPECT_NE(said_of(preamble + ".align 4 " + behind + "\n")
                  .find("malformed: a state space with addresses was expected"),
              std::string::npos)
        << behind;
  }
}

TEST(Diagnostics, a_range_of_targets_must_name_labels_that_are_there) {
  EXPECT_EQ(said_of(test::kernel("T: .branchtargets A<2>;\nbrx.idx %r1, T;\nA0: ret;\nA1: ret;")),
            "");
  EXPECT_NE(said_of(test::kernel("T: .branchtargets A<3>;\nbrx.idx %r1, T;\nA0: ret;\nA1: ret;"))
                .find("malformed: 'A2' is not declared"),
            std::string::npos);
  EXPECT_NE(said_of(test::kernel("T: .branchtargets A<65537>;\nbrx.idx %r1, T;"))
                .find("malformed: too many targets in one range"),
            std::string::npos);
}

TEST(Diagnostics, a_variable_that_no_memory_holds_is_an_error) {
  const auto declared = [](const std::string& dimensions) {
    return said_of(".version 8.0\n.target sm_90\n.address_size 64\n.global .b32 a" + dimensions +
                   ";\n");
  };
  const std::string said =
      "t.ptx:4:14: malformed: 'a' has more than 70368744177664 bytes, the limit of a "
      "variable\n";
  EXPECT_EQ(declared("[4611686018427387904]").substr(0, said.size()), said);
  EXPECT_EQ(declared("[4294967296][4294967296]").substr(0, said.size()), said);
  EXPECT_EQ(declared("[17592186044417]").substr(0, said.size()), said);
  EXPECT_EQ(declared("[17592186044416]"), "");
  EXPECT_EQ(declared("[][8796093022209]={{1},{2}}").substr(0, said.size()), said)
      << "its values make two of them";
}

TEST(Diagnostics, a_file_that_holds_ptx_at_best_says_what_takes_it_out) {
  const auto refusal = [](const std::string& what, const std::string& command) {
    return "t.ptx:1:1: malformed: this is " + what + ", not PTX text; '" + command +
           " t.ptx' extracts what it holds\n";
  };
  const auto begins = [](const std::string& text, const std::string& start) {
    return text.substr(0, start.size()) == start;
  };
  const std::string program = refusal("a program or a library", "demarc ptx --extract DIR");
  EXPECT_TRUE(begins(said_of("\x7f"
                             "ELF and more"),
                     program));
  EXPECT_TRUE(begins(said_of("\x50\xed\x55\xba and more"),
                     refusal("a fat binary", "demarc ptx --extract DIR")));
  EXPECT_TRUE(begins(said_of("!<arch>\nmore"), refusal("an archive", "ar x")));
  EXPECT_FALSE(parse_whole("!<arch>\nmore", "t.ptx"));
}

TEST(Diagnostics, cuda_source_and_a_cubin_say_which_command_makes_ptx) {
  const auto said = [](const std::string& text, const std::string& name) {
    const auto checked = check_is_text(text, name);
    return checked ? std::string() : checked.error().message;
  };
  const std::string source = "this is CUDA source, not PTX; 'nvcc -ptx -o a/";
  const std::string kernel = "__global__ void k() {}";
  EXPECT_EQ(said(kernel, "a/k.ptx"), source + "k.ptx a/k.ptx' makes PTX from it");
  EXPECT_EQ(said("// one\n/* .two */ #include <x>\n", "a/k.cu"),
            source + "k.ptx a/k.cu' makes PTX from it");
  EXPECT_EQ(said("/* " + kernel + " */ .version 8.0", "a/k.cu"), "");
  for (const char* other : {"", "/", "//", "/*", "/*/", "# no source", "// no more"})
    EXPECT_EQ(said(other, "k.ptx"), "") << other;
  std::string elf =
      "\x7f"
      "ELF" +
      std::string(14, '\0');
  EXPECT_NE(said(elf, "k").find("a program or a library"), std::string::npos);
  elf += std::string("\xbe\0", 2);
  EXPECT_EQ(said(elf, "k"),
            "this is a cubin, which holds machine code and not PTX; 'nvcc -ptx -o KERNEL.ptx "
            "KERNEL.cu' makes PTX from the source");
}

TEST(Diagnostics, one_run_reports_every_error_with_line_column_and_text) {
  EXPECT_EQ(said_of(test::kernel("add.s32 %r1, %r2;\n"
                                 "add.s32 %r1, %r99, %r3;\n"
                                 "  @%r1 bra NOWHERE;\n"
                                 "mov.u32 %r1, 0f12;\n"
                                 "mov.u32 %r1, 5\n"
                                 "add.s32 %r1, %r1, %r1;\n"
                                 ".reg .wide %x;\n"
                                 "ld.global.u32 %r1, [%rd1;\n"
                                 "bra NOWHERE;")),
            "t.ptx:11:1: malformed: 'add.s32' takes 3 operands, found 2 (PTX ISA 9.7.1.1)\n"
            "  add.s32 %r1, %r2;\n"
            "t.ptx:12:14: malformed: '%r99' is not declared\n"
            "  add.s32 %r1, %r99, %r3;\n"
            "t.ptx:13:4: malformed: '%r1' guards an instruction, but is not a .pred register\n"
            "  @%r1 bra NOWHERE;\n"
            "t.ptx:14:16: malformed: a floating-point literal 0f has 8 hexadecimal digits, 0d has "
            "16, found '12'\n"
            "  mov.u32 %r1, 0f12;\n"
            "t.ptx:16:1: malformed: ';' was expected after 'mov.u32', found 'add'\n"
            "  add.s32 %r1, %r1, %r1;\n"
            "t.ptx:17:6: malformed: '.wide' is not a type of a register\n"
            "  .reg .wide %x;\n"
            "t.ptx:18:25: malformed: ']' was expected after an address, found ';'\n"
            "  ld.global.u32 %r1, [%rd1;\n"
            "t.ptx:19:5: malformed: 'NOWHERE' is not declared\n"
            "  bra NOWHERE;\n");
}

TEST(Diagnostics, missing_directives_are_named_once) {
  EXPECT_EQ(said_of(".entry k { ret; }\n.entry l { ret; }\n"),
            "t.ptx:1:1: malformed: '.version' is missing: a module begins with it, as in "
            "'.version 8.0'\n  .entry k { ret; }\n");
  EXPECT_EQ(said_of(".version 8.0\n.entry k { ret; }\n"),
            "t.ptx:2:1: malformed: '.target' is missing: it must stand before this, as in "
            "'.target sm_80'\n  .entry k { ret; }\n");
  EXPECT_EQ(said_of(""),
            "t.ptx:1:1: malformed: '.version' is missing: a module begins with it, as "
            "in '.version 8.0'\n  \n");
}

TEST(Diagnostics, a_body_that_is_not_closed_does_not_swallow_the_next_kernel) {
  const std::string text =
      test::preamble + ".entry a {\nadd.s32 %r1;\n.visible .entry b {\nret;\n}\n";
  EXPECT_EQ(said_of(text),
            "t.ptx:5:1: malformed: 'add.s32' takes 3 operands, found 1 (PTX ISA 9.7.1.1)\n"
            "  add.s32 %r1;\n"
            "t.ptx:6:1: malformed: '}' is missing at the end of 'a'\n"
            "  .visible .entry b {\n");
  EXPECT_NE(parse(text, "t.ptx").module.find_function("b"), nullptr);
}

TEST(Diagnostics, names_declared_twice_in_a_scope_are_errors) {
  EXPECT_EQ(said_of(test::kernel("L: ret;\nL: ret;\n.reg .b32 %r<3>;\n.shared .b32 tile;")),
            "t.ptx:12:1: malformed: 'L' is declared twice in this scope\n  L: ret;\n"
            "t.ptx:13:11: malformed: '%r' is declared twice in this scope\n  .reg .b32 %r<3>;\n"
            "t.ptx:14:14: malformed: 'tile' is declared twice in this scope\n"
            "  .shared .b32 tile;\n");
}

TEST(Diagnostics, only_so_many_are_listed_but_all_are_counted) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "add.s32 %r1, %r2;\n";
  const ParseResult result = parse(test::kernel(lines), "t.ptx", {.max_diagnostics = 7});
  EXPECT_EQ(result.diagnostics.list.size(), 7U);
  EXPECT_EQ(result.diagnostics.malformed, 100U);
}

TEST(Diagnostics, a_file_with_errors_cannot_be_loaded_and_the_error_lists_them) {
  const auto result = load_module("/nowhere/x.ptx");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("/nowhere/x.ptx"), std::string::npos);
}

TEST(Diagnostics, more_parameters_than_version_and_target_allow_are_malformed) {
  const auto said = [](const std::string& version, const std::string& target, int bytes) {
    const auto result = parse(".version " + version + "\n.target " + target +
                                  "\n.address_size 64\n.entry k(.param .align 4 .b8 p[" +
                                  std::to_string(bytes) + "]) {ret;}\n",
                              "t.ptx");
    return result.diagnostics.ok() ? "" : result.diagnostics.list.front().message;
  };
  EXPECT_EQ(said("8.0", "sm_90", 4352), "");
  EXPECT_EQ(said("8.0", "sm_90", 4353),
            "'k' has 4353 bytes of parameters, but version 8.0 and its target allow 4352");
  EXPECT_EQ(said("8.1", "sm_90a", 32764), "");
  EXPECT_EQ(said("8.1", "sm_90a", 32765),
            "'k' has 32765 bytes of parameters, but version 8.1 and its target allow 32764");
  EXPECT_EQ(said("8.1", "sm_60", 4353),
            "'k' has 4353 bytes of parameters, but version 8.1 and its target allow 4352");
}

TEST(Diagnostics, constant_variables_beyond_64_KiB_are_malformed) {
  const auto said = [](const std::string& variables) {
    const auto result = parse(test::preamble + variables, "t.ptx");
    return result.diagnostics.ok() ? "" : result.diagnostics.list.front().message;
  };
  EXPECT_EQ(said(".const .b8 a[65527]; .const .b8 b; .const .u64 c; .extern .const .u64 d[9];"),
            "");
  EXPECT_EQ(
      said(".const .b8 a[1]; .const .u64 b; .const .b8 c[65521];"),
      "with 'c' the module's constant variables have 65537 bytes, but constant memory has 65536");
}

}  // namespace
}  // namespace demarc::ptx
