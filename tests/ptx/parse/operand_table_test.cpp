// The table of operands, word by word: a misspelt row would check nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "demarc/ptx/vocabulary.hpp"

namespace demarc::ptx {
namespace {

struct TableRow {
  std::string name;
  std::string operands;
};

const TableRow table_rows[] = {
#define DEMARC_PTX_OPERANDS(name, operands) {name, operands},
#include "demarc/ptx/operands.def"
#undef DEMARC_PTX_OPERANDS
};

TEST(OperandTable, has_one_row_for_each_opcode_with_modifiers_that_exist) {
  std::set<std::string> seen;
  for (const TableRow& row : table_rows) {
    EXPECT_TRUE(seen.insert(row.name).second) << row.name << " stands there twice";
    const OpcodeMatch opcode = find_opcode(row.name);
    EXPECT_NE(opcode.opcode, Opcode::unknown) << row.name;
    std::istringstream modifiers(row.name.substr(std::min(opcode.length + 1, row.name.size())));
    for (std::string one; std::getline(modifiers, one, '.');) {
      EXPECT_NE(find_modifier(one), Modifier::unknown) << row.name;
      EXPECT_EQ(find_type(one), Type::none) << row.name << ": types are not told apart";
    }
  }
}

TEST(OperandTable, has_words_of_its_legend_alone) {
  const std::regex word(
      R"(=?([012]|[a-z]+[0-9]+|pred|ptr|a|i|l|T|\*)([w~_&%+!^?]|\|\|?|<<|[<>/][0-9]+|(:[0-9]+){1,3})*)");
  const std::regex type(R"(=?([a-z]+[0-9]+|pred)\b.*)");
  for (const TableRow& row : table_rows) {
    std::istringstream words(row.operands);
    for (std::string one; words >> one;) {
      EXPECT_TRUE(std::regex_match(one, word)) << row.name << ": " << one;
      std::smatch found;
      if (!std::regex_match(one, found, type)) continue;
      std::string name = found[1];
      if (name.ends_with('w')) name.pop_back();
      EXPECT_NE(find_type(name), Type::none) << row.name << ": " << one;
    }
  }
}

}  // namespace
}  // namespace demarc::ptx
