// Special registers of machine code: those asked for are replaced, and nothing else is touched.
#include "demarc/fatbin/special_registers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

using testing::HasSubstr;

// An instruction of 16 bytes that reads a special register.
std::string reading(std::uint16_t opcode, char from) {
  std::string bytes(16, '\x5a');
  bytes[0] = static_cast<char>(opcode & 0xffU);
  bytes[1] = static_cast<char>(0x70U | opcode >> 8U);  // above it lies the predicate
  bytes[9] = from;
  return bytes;
}

constexpr std::uint16_t s2r = 0x919;
constexpr std::uint16_t s2ur = 0x9c3;
constexpr char launch_sm = 0x43;

std::string cubin_of(const std::string& code, std::uint32_t sm = 90,
                     std::uint64_t flags = SHF_ALLOC | SHF_EXECINSTR) {
  std::string made = made_elf(EM_CUDA, {{".text.k", code, SHT_PROGBITS, flags}});
  made[EI_OSABI] = 0x33;
  made[EI_ABIVERSION] = 7;
  return with(made, offsetof(Elf64_Ehdr, e_flags), sm);
}

Result<std::size_t> replace(std::string& cubin) {
  return replace_special_register(cubin, SpecialRegister::launch_sm, SpecialRegister::virtual_id,
                                  "f");
}

TEST(SpecialRegisters, both_instructions_that_read_it_are_changed_in_one_byte) {
  const std::string before =
      cubin_of(reading(s2r, launch_sm) + reading(s2r, 0x21) + reading(s2ur, launch_sm));
  std::string cubin = before;
  EXPECT_EQ(replace(cubin).value(), 2U);
  const std::string expected =
      cubin_of(reading(s2r, 0x03) + reading(s2r, 0x21) + reading(s2ur, 0x03));
  EXPECT_EQ(cubin, expected);
}

TEST(SpecialRegisters, other_instructions_and_other_sections_are_left_alone) {
  constexpr std::uint16_t others[] = {0x918, 0x91a, 0x9c2, 0x819, 0x119};
  for (const std::uint16_t opcode : others) {
    const std::string before = cubin_of(reading(opcode, launch_sm));
    std::string cubin = before;
    EXPECT_EQ(replace(cubin).value(), 0U) << opcode;
    EXPECT_EQ(cubin, before);
  }
  std::string data = cubin_of(reading(s2r, launch_sm), 90, SHF_ALLOC);
  EXPECT_EQ(replace(data).value(), 0U) << "constants may look like code";
  // Not at a place where an instruction begins, and not whole.
  std::string shifted = cubin_of(std::string(8, '\0') + reading(s2r, launch_sm));
  EXPECT_EQ(replace(shifted).value(), 0U);
}

TEST(SpecialRegisters, what_is_no_machine_code_of_a_known_kind_is_refused) {
  std::string text = "no ELF file";
  EXPECT_THAT(message_of(replace(text)), HasSubstr("f: is not an ELF file"));
  std::string host = made_elf(EM_X86_64, {{".text", reading(s2r, launch_sm)}});
  EXPECT_THAT(message_of(replace(host)), HasSubstr("not one of a GPU"));
  std::string old = cubin_of(reading(s2r, launch_sm), 61);
  EXPECT_THAT(message_of(replace(old)),
              HasSubstr("f: machine code for sm_61; its special registers are known from sm_70"));
  std::string volta = cubin_of(reading(s2r, launch_sm), 70);
  EXPECT_EQ(replace(volta).value(), 1U);
  std::string unknown = cubin_of(reading(s2r, launch_sm));
  unknown[EI_OSABI] = 0x55;
  EXPECT_THAT(message_of(replace(unknown)), HasSubstr("ABI 0x55"));
}

}  // namespace
}  // namespace demarc::fatbin::test
