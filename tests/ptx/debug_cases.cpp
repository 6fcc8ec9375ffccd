// Makes modules with debug data, of texts that golden/debug_verdicts.json has with what ptxas 13.0
// says of them.
#include "debug_cases.hpp"

#include <initializer_list>
#include <utility>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"

namespace demarc::ptx::test {
namespace {

const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
const std::string first_kernel = ".visible .entry k() { L1: ret; }\n";
const std::string strings =
    ".section .debug_str\n{\ninfo_string0:\n.b8 95,0\ninfo_string1:\n.b8 95,0\n}\n";

std::string with_data(const std::string& data) {
  return head + ".global .align 1 .b8 foo$bar[2] = {107, 0};\n.global .b32 glob;\n" + first_kernel +
         ".section .debug_info\n{\n" + data + "\n}\n";
}
std::string with_name(const std::string& name) {
  return head + first_kernel + ".section " + name + "\n{\n.b8 1\n}\n";
}
std::string with_file(const std::string& file) {
  return head + file + "\n" + first_kernel;
}
std::string before_sections(const std::string& line) {
  return head + ".file 1 \"a\"\n.file 2 \"b\"\n.entry k() {\n.reg .b32 %r1;\nL0:\n" + line +
         "\nmov.b32 %r1, 1;\nret;\n}\n";
}
std::string with_line(const std::string& line) {
  return before_sections(line) + strings;
}

const std::string inlined = ".loc 2 5 1, function_name info_string0, inlined_at 1 1 1\n";
std::string inlining(const std::string& first, const std::string& sections,
                     const std::string& version = "9.0") {
  return ".version " + version + "\n.target sm_80\n" + first + ".entry k() {\n" + inlined +
         "ret;\n}\n" + sections;
}

std::vector<DebugCase> whole_modules() {
  const std::string line = ".func f() {\n.loc 1 1 1\nret;\n}\n";
  const std::string info = ".section .debug_info\n{\ninfo_string0:\n.b8 95,0\n}\n";
  const std::string one = ".section .debug_info {\nlab:\n.b8 1\n}\n";
  return {
      {"inlined after a function with the place", inlining(line, strings), true},
      {"strings before the function", inlining(strings + line, ""), true},
      {"inlined in PTX 7.0", inlining(line, strings, "7.0"), true},
      {"inlined in PTX 6.5", inlining(line, strings, "6.5")},
      {"inlined without the place", inlining("", strings)},
      {"inlined without strings", inlining(line, "")},
      {"inlined with a label of another section", before_sections(".loc 1 1 1\n" + inlined) + info,
       true},
      {"a section twice", head + first_kernel + one + ".section .debug_info {\n.b8 1\n}\n", true},
      {"a label twice", head + first_kernel + one + ".section .debug_abbrev {\nlab:\n.b8 1\n}\n"},
      {"a label of another section",
       head + first_kernel + one + ".section .debug_abbrev {\n.b64 lab\nx:\n.b32 x-lab\n}\n", true},
      {"a section that does not begin", head + first_kernel + ".section .debug_info\n.b8 1\n}\n"},
      {"a section that does not end", head + first_kernel + ".section .debug_info\n{\n.b8 1\n"},
      {"a section in a section",
       head + first_kernel + ".section .a\n{\n.b8 1\n.section .b\n{\n.b8 1\n}\n"},
      {"a section in a function", head + ".entry k() {\n.section .debug_info { .b8 1 }\nret; }\n"},
      {"a semicolon behind a section", head + first_kernel + ".section .a { .b8 1 };\n"},
      {"a semicolon behind a function", head + first_kernel + ";\n"},
      {"a semicolon behind a variable", head + ".global .b32 x;;\n" + first_kernel},
      {"a semicolon as a statement", head + ".entry k() {\n;\nret;\n}\n"},
      {"a semicolon twice", head + ".entry k() {\nret;;\n}\n"},
      {"a semicolon in a scope", head + ".entry k() {\n{ ; }\nret;\n}\n"},
      {"a semicolon behind a label", head + ".entry k() {\nL: ;\nret;\n}\n"},
      {"a file behind a kernel", head + first_kernel + ".file 1 \"a\"\n", true},
      {"a file in a function", head + ".entry k() {\n.file 1 \"a\"\nret;\n}\n"},
      {"a file before the version", ".file 1 \"a\"\n" + head + first_kernel},
      {"a file before the target", ".version 9.0\n.file 1 \"a\"\n.target sm_90\n" + first_kernel},
      {"a line at module scope", head + ".file 1 \"a\"\n.loc 1 1 1\n" + first_kernel},
      {"a line without a file", head + ".entry k() {\n.loc 3 1 1\nret;\n}\n", true},
      {"@@DWARF", head + first_kernel + "@@DWARF .byte 1\n"},
      {"@@DWARF of a section", head + "@@DWARF .section .debug_info\n" + first_kernel},
      {"@@DWARF in a function", head + ".entry k() {\n@@DWARF .byte 1\nret; }\n"},
  };
}

}  // namespace

std::vector<DebugCase> debug_cases() {
  const auto kept = demarc::test::source_dir() / "tests" / "ptx" / "golden" / "debug_verdicts.json";
  const Json verdicts = Json::parse(read_file(kept).value());
  std::vector<DebugCase> all = whole_modules();
  for (const auto& [kind, module] :
       std::initializer_list<std::pair<const char*, std::string (*)(const std::string&)>>{
           {"data", with_data}, {"name", with_name}, {"file", with_file}, {"line", with_line}}) {
    for (const bool taken : {true, false}) {
      for (const Json& text : verdicts.at(kind).at(taken ? "taken" : "refused")) {
        all.push_back({text, module(text), taken});
      }
    }
  }
  return all;
}

}  // namespace demarc::ptx::test
