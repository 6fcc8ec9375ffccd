// Tests that every opcode, modifier and special register is found by its name.
#include "demarc/ptx/vocabulary.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "demarc/base/files.hpp"
#include "parse/mnemonic_table.hpp"
#include "paths.hpp"
#include "text.hpp"

namespace demarc::ptx {
namespace {

TEST(Vocabulary, every_opcode_row_is_found_by_its_name_and_has_a_section) {
  for (std::size_t i = 1; i < opcode_count(); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OpcodeInfo& row = info(opcode);
    EXPECT_EQ(find_opcode(row.name).opcode, opcode) << row.name;
    EXPECT_EQ(row.section.substr(0, 4), "9.7.") << row.name;
    EXPECT_LE(row.fewest_operands, row.max_operands) << row.name;
    EXPECT_LE(row.written, row.max_operands) << row.name;
  }
}

// What ptxas is shown (and, in newer/, what it does not know yet) has every instruction.
TEST(Vocabulary, every_opcode_stands_in_a_module_of_the_corpus) {
  std::set<Opcode> seen;
  const auto corpus = demarc::test::source_dir() / "tests" / "ptx" / "corpus";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus)) {
    if (entry.path().extension() != ".ptx") continue;
    const ParseResult result = parse(read_file(entry.path()).value(), entry.path().string());
    EXPECT_TRUE(result.diagnostics.list.empty()) << test::all_of(result.diagnostics);
    for (const auto& mnemonic : result.module.mnemonics) seen.insert(mnemonic.opcode);
  }
  for (std::size_t i = 1; i < opcode_count(); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_TRUE(seen.contains(opcode)) << info(opcode).name;
  }
}

TEST(Vocabulary, every_modifier_row_is_found_by_its_text) {
  for (std::size_t i = 1; i + 1 < modifier_count(); ++i) {
    const auto modifier = static_cast<Modifier>(i);
    EXPECT_EQ(find_modifier(info(modifier).text), modifier) << info(modifier).text;
    EXPECT_FALSE(info(modifier).section.empty());
  }
}

TEST(Vocabulary, every_special_register_is_found_by_its_name) {
  for (std::size_t i = 0; i < special_register_count(); ++i) {
    const auto special = static_cast<SpecialRegister>(i);
    EXPECT_EQ(find_special_register(info(special).name), special);
  }
}

TEST(Vocabulary, the_longest_row_that_fits_is_the_opcode) {
  EXPECT_EQ(find_opcode("cp.async.bulk.tensor.2d").opcode, Opcode::cp_async_bulk_tensor);
  EXPECT_EQ(find_opcode("cp.async.ca.shared.global").opcode, Opcode::cp_async);
  EXPECT_EQ(find_opcode("mbarrier.arrive.expect_tx").opcode, Opcode::mbarrier_arrive);
  EXPECT_EQ(find_opcode("addx.s32").opcode, Opcode::unknown);
}

TEST(Vocabulary, a_mnemonic_is_decoded_into_types_space_width_and_shape) {
  const Mnemonic cvt = decode_mnemonic("cvt.rn.f32.s64");
  EXPECT_EQ(cvt.type(0), Type::f32);
  EXPECT_EQ(cvt.type(1), Type::s64);
  EXPECT_EQ(cvt.first(ModifierClass::rounding), Modifier::rn);
  const Mnemonic load = decode_mnemonic("ld.shared::cluster.v4.b32");
  EXPECT_EQ(load.space, StateSpace::shared);
  EXPECT_EQ(load.vector_width, 4);
  EXPECT_TRUE(decode_mnemonic("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").understood);
  EXPECT_FALSE(decode_mnemonic("add.s33").understood);
}

TEST(Vocabulary, sizes_are_those_of_memory) {
  EXPECT_EQ(byte_size(Type::pred), 1U);
  EXPECT_EQ(byte_size(Type::bf16x2), 4U);
  EXPECT_EQ(byte_size(Type::b128), 16U);
  EXPECT_EQ(byte_size(Type::texref), 8U);
}

}  // namespace
}  // namespace demarc::ptx
