// Textures and surfaces as an H200 read them: what examples/texture/fetches.cu wrote on the card
// lies in tests/emulate/textures, and the emulator gives the same bytes.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "image_kernels.hpp"
#include "paths.hpp"

namespace demarc::emulate {
namespace {

std::filesystem::path folder() {
  return demarc::test::source_dir() / "tests" / "emulate" / "textures";
}

// What the kernel writes, and then the texels, as the card's file has them.
std::string outputs_of(const std::string& name) {
  const auto file = folder() / (name + ".json");
  const auto launch = gpu::parse_launch_json(read_file(file).value(), file.string());
  EXPECT_TRUE(launch) << (launch ? "" : launch.error().message);
  if (!launch) return {};
  const auto ran = test::run_image(read_file(folder() / "fetches.ptx").value(), *launch);
  std::string bytes(ran.words.size() * sizeof(std::uint32_t), '\0');
  std::memcpy(bytes.data(), ran.words.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(ran.texels.data()), ran.texels.size());
  return bytes;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  return names;
}

float float_at(const std::string& bytes, std::size_t word) {
  float value = 0;
  std::memcpy(&value, bytes.data() + word * sizeof value, sizeof value);
  return value;
}

// How the card filters signed 8-bit fractions is not known to the last step.
constexpr const char* not_exact = "plane-i8-linear";

TEST(TexturesOfACard, are_read_with_the_same_bytes) {
  const auto names = case_names();
  EXPECT_EQ(names.size(), 45U);
  for (const std::string& name : names) {
    const std::string card = read_file(folder() / (name + ".card")).value();
    const std::string here = outputs_of(name);
    ASSERT_EQ(here.size(), card.size()) << name;
    EXPECT_TRUE(name == not_exact || here == card) << name;
  }
}

TEST(TexturesOfACard, of_filtered_signed_bytes_are_one_step_off_at_most) {
  const std::string card = read_file(folder() / (std::string(not_exact) + ".card")).value();
  const std::string here = outputs_of(not_exact);
  ASSERT_EQ(here.size(), card.size());
  std::size_t others = 0;
  for (std::size_t word = 0; word < 256; ++word) {
    const float off = std::abs(float_at(here, word) - float_at(card, word));
    EXPECT_LE(off, 1.001F / 32767) << word;
    if (off > 0) ++others;
  }
  EXPECT_EQ(others, 4U);
}

}  // namespace
}  // namespace demarc::emulate
