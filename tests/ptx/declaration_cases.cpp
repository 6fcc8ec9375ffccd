// Makes modules of the texts that golden/declarations.txt has with what ptxas 13.0 says of them:
// verdict, kind and text, with a tab between them.
#include "declaration_cases.hpp"

#include <sstream>
#include <stdexcept>

#include "demarc/base/files.hpp"
#include "paths.hpp"

namespace demarc::ptx::test {
namespace {

const std::string header = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::string with_body(const std::string& in_front, const std::string& body) {
  return header + in_front +
         "\n.visible .entry k(.param .u64 o){\n.reg .pred p<9>; .reg .b16 h<9>; .reg .b32 r<9>; "
         ".reg .b64 d<9>;\n" +
         body + "\nret;\n}\n";
}

// "in front||body", "\\n" for the end of a line.
std::string module_of(const std::string& kind, std::string text) {
  if (kind == "module") return header + text + "\n";
  if (kind == "calls") return with_body(".func (.param .b32 q) f(.param .b32 a){ret;}", text);
  if (kind == "header") {
    for (std::size_t at; (at = text.find("\\n")) != std::string::npos;) text.replace(at, 2, "\n");
    return text + ".visible .entry k(){ ret; }\n";
  }
  const std::size_t bars = text.find("||");
  if (bars == std::string::npos) return with_body("", text);
  return with_body(text.substr(0, bars), text.substr(bars + 2));
}

}  // namespace

std::vector<DeclarationCase> declaration_cases() {
  const auto kept =
      read_file(demarc::test::source_dir() / "tests" / "ptx" / "golden" / "declarations.txt");
  if (!kept) throw std::runtime_error(kept.error().message);
  std::vector<DeclarationCase> read;
  std::istringstream in(*kept);
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find('\t');
    const std::size_t second = line.find('\t', first + 1);
    const std::string text = line.substr(second + 1);
    read.push_back({text, module_of(line.substr(first + 1, second - first - 1), text),
                    line.starts_with("taken")});
  }
  return read;
}

}  // namespace demarc::ptx::test
