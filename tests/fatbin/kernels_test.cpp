// The kernels of machine code are found by name.
#include "demarc/fatbin/kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Result<std::vector<std::string>> kernels_in(const std::string& bytes) {
  DEMARC_TRY(const Image image, image_in(bytes, "f"));
  return machine_code_kernels(image, "f");
}

TEST(MachineCodeKernels, have_a_bit_of_their_symbol_on_every_target) {
  for (const char* file :
       {"counted_75.cubin", "counted_90.cubin", "counted_100.cubin", "counted_11.8_80.cubin"}) {
    EXPECT_THAT(kernels_in(kept_file(file)).value(), ElementsAre("_Z7countedPi")) << file;
  }
}

TEST(MachineCodeKernels, of_fat_binaries_are_those_of_all_their_machine_code) {
  EXPECT_THAT(kernels_in(kept_file("elf_only.fatbin")).value(), ElementsAre("_Z7countedPi"));
  EXPECT_THAT(kernels_in(kept_file("ptx_only.fatbin")).value(), IsEmpty());
  const std::string both = made_fat_binary({{.kind = 2, .content = kept_file("counted_90.cubin")},
                                            {.kind = 2, .content = kept_file("managed_90.cubin")}});
  EXPECT_THAT(kernels_in(both).value(), ElementsAre("_Z7countedPi")) << "each once";
}

TEST(MachineCodeKernels, of_what_a_program_was_linked_from_count) {
  const std::string linked_from = kept_file("elf_only.fatbin");
  const std::string bytes = kept_file("ptx_only.fatbin");
  Image image = *image_in(bytes, "f");
  image.prelinked.push_back(linked_from);
  EXPECT_THAT(machine_code_kernels(image, "f").value(), ElementsAre("_Z7countedPi"));
  image.prelinked.front() = std::string_view("no fat binary");
  EXPECT_FALSE(machine_code_kernels(image, "f"));
}

Result<bool> alone(const std::string& bytes, std::uint32_t sm) {
  DEMARC_TRY(const Image image, image_in(bytes, "f"));
  return is_machine_code_alone(image, sm, "f");
}

TEST(MachineCodeKernels, without_ptx_that_the_card_can_run_are_alone) {
  EXPECT_TRUE(alone(kept_file("elf_only.fatbin"), 90).value());
  EXPECT_TRUE(alone(kept_file("counted_90.cubin"), 90).value());
  EXPECT_FALSE(alone(kept_file("ptx_only.fatbin"), 90).value());
  EXPECT_FALSE(alone(std::string(small_ptx), 90).value());
  const std::string mixed = made_fat_binary(
      {{.kind = 2, .content = kept_file("counted_90.cubin")}, {.sm = 80, .content = "ptx"}});
  EXPECT_FALSE(alone(mixed, 90).value());
  EXPECT_TRUE(alone(mixed, 75).value()) << "its PTX is for later cards";
}

TEST(MachineCodeKernels, of_a_linked_program_have_the_ptx_of_its_parts) {
  const std::string linked = kept_file("elf_only.fatbin");
  const std::string part = kept_file("ptx_only.fatbin");
  Image image = *image_in(linked, "f");
  EXPECT_TRUE(is_machine_code_alone(image, 90, "f").value());
  image.prelinked.push_back(part);
  EXPECT_FALSE(is_machine_code_alone(image, 90, "f").value());
  image.prelinked.front() = std::string_view("no fat binary");
  EXPECT_FALSE(is_machine_code_alone(image, 90, "f"));
}

TEST(MachineCode, is_there_if_the_card_runs_it_as_it_is) {
  const auto has = [](const std::string& bytes, std::uint32_t sm) {
    return has_machine_code(image_in(bytes, "f").value(), sm, "f").value();
  };
  // For sm_75, sm_90a and sm_100.
  const std::string three = kept_file("elf_only.fatbin");
  EXPECT_TRUE(has(three, 75));
  EXPECT_FALSE(has(three, 80)) << "of another major version";
  EXPECT_TRUE(has(three, 90));
  EXPECT_TRUE(has(three, 103)) << "of a lower minor version";
  EXPECT_FALSE(has(kept_file("ptx_only.fatbin"), 90));
  EXPECT_FALSE(has(std::string(small_ptx), 90));
  EXPECT_TRUE(has(kept_file("counted_90.cubin"), 90));
  EXPECT_FALSE(has_machine_code(Image{ImageKind::fat_binary, "none", {}}, 90, "f"));
}

TEST(MachineCodeKernels, of_nothing_are_not_alone) {
  EXPECT_FALSE(alone(made_fat_binary({}), 90).value());
  EXPECT_FALSE(alone(made_fat_binary({{.kind = 2, .content = "no cubin"}}), 90));
}

TEST(MachineCodeKernels, of_code_that_cannot_be_read_are_an_error) {
  EXPECT_FALSE(kernels_in(made_fat_binary({{.kind = 2, .content = "no cubin"}})));
  const std::string cubin = kept_file("counted_90.cubin");
  EXPECT_FALSE(machine_code_kernels(Image{ImageKind::cubin, cubin.substr(0, 100), {}}, "f"));
  EXPECT_THAT(kernels_in(std::string(small_ptx)).value(), IsEmpty());
}

}  // namespace
}  // namespace demarc::fatbin::test
