// The published program's outputs, kept as reference data, byte for byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::sim {
namespace {

struct Expected {
  int exit_status = -1;
  std::string out, err;
  std::size_t verbose_lines = 0;
  std::string verbose_digest;
  std::vector<std::string> verbose_parts;  // excerpts of the verbose output, in order
};

// Sections of an expected file: "===== policy P", then parts headed "----- ...".
std::map<std::string, Expected> parse_expected(const std::string& text) {
  std::istringstream in(text);
  std::map<std::string, Expected> all;
  Expected* current = nullptr;
  std::string* part = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("===== policy ")) {
      current = &all[line.substr(13)];
      part = nullptr;
    } else if (line.starts_with("===== end")) {
      part = nullptr;
    } else if (line.starts_with("exit status: ")) {
      current->exit_status = std::stoi(line.substr(13));
    } else if (line.starts_with("----- stdout of: -p")) {
      part = &current->out;
    } else if (line == "----- stderr") {
      part = &current->err;
    } else if (line.starts_with("----- sha256")) {
      if (const auto at = line.find('('); at != std::string::npos) {
        current->verbose_lines = std::stoul(line.substr(at + 1));
      }
      part = &current->verbose_digest;
    } else if (line.starts_with("----- stdout of: -v")) {
      part = &current->verbose_parts.emplace_back();
    } else if (part != nullptr) {
      *part += line + "\n";
    }
  }
  return all;
}

std::string sha256(const std::string& text) {
  const auto file = test::fresh_folder("sha256") / "text";
  EXPECT_TRUE(write_file(file, text));
  return test::run_program({"sha256sum", file.string()}).out.substr(0, 64) + "\n";
}

class ClassicOutput : public testing::TestWithParam<const char*> {};

TEST_P(ClassicOutput, equals_the_published_programs_for_every_policy) {
  const std::filesystem::path folder = test::source_dir() / "tests/sim/data/simtbs";
  const std::string name = GetParam();
  const auto text = read_file(folder / (name + ".conf"));
  ASSERT_TRUE(text) << text.error().message;
  const auto kept = read_file(folder / (name + ".expected.txt"));
  ASSERT_TRUE(kept) << kept.error().message;
  const auto expected = parse_expected(*kept);
  ASSERT_EQ(expected.size(), 6U);
  for (const auto& [policy, want] : expected) {
    SCOPED_TRACE(policy);
    const auto plain = run_classic(*text, name, policy, TbModel::simtbs, false);
    EXPECT_EQ(plain.exit_status, want.exit_status);
    EXPECT_EQ(plain.out, want.out);
    EXPECT_EQ(plain.err, want.err);

    const auto verbose = run_classic(*text, name, policy, TbModel::simtbs, true);
    EXPECT_EQ(verbose.exit_status, want.exit_status);
    EXPECT_EQ(verbose.err, want.err);
    EXPECT_EQ(std::count(verbose.out.begin(), verbose.out.end(), '\n'),
              static_cast<std::ptrdiff_t>(want.verbose_lines));
    ASSERT_FALSE(want.verbose_parts.empty());
    std::size_t at = 0;
    for (const std::string& part : want.verbose_parts) {
      at = verbose.out.find(part, at);
      EXPECT_NE(at, std::string::npos) << part.substr(0, 200);
    }
    EXPECT_EQ(sha256(verbose.out), want.verbose_digest);
  }
}

class ClassicOutputOf2020 : public testing::TestWithParam<const char*> {};

TEST_P(ClassicOutputOf2020, equals_that_programs_for_every_policy) {
  const std::filesystem::path folder = test::source_dir() / "tests/sim/data/simtbs-2020";
  const std::string name = GetParam();
  const std::string text = read_file(folder / (name + ".conf")).value();
  const auto expected = parse_expected(read_file(folder / (name + ".expected.txt")).value());
  ASSERT_EQ(expected.size(), 4U);
  for (const auto& [policy, want] : expected) {
    SCOPED_TRACE(policy);
    const auto plain = run_classic(text, name, policy, TbModel::simtbs_2020, false);
    EXPECT_EQ(plain.exit_status, want.exit_status);
    EXPECT_EQ(plain.out, want.out);
    EXPECT_EQ(plain.err, want.err);
    const auto verbose = run_classic(text, name, policy, TbModel::simtbs_2020, true);
    EXPECT_EQ(sha256(verbose.out), want.verbose_digest);
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, ClassicOutputOf2020,
                         testing::Values("uniform_010_0", "uniform_080_0", "uniform_125_0",
                                         "extreme_120_0"),
                         [](const auto& test) { return std::string(test.param); });

// small.txt: what the program gave for configurations drawn at random, outputs as hashes. Where it
// crashes there is an error.
TEST(ClassicOutput2020, equals_that_programs_for_small_configurations) {
  std::istringstream in(
      read_file(test::source_dir() / "tests/sim/data/simtbs-2020/small.txt").value());
  std::string text;
  std::string name;
  std::size_t compared = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("===== ")) {
      name = line.substr(6);
      text.clear();
    } else if (line.starts_with("----- ")) {
      std::istringstream fields(line.substr(6));
      std::string policy;
      std::string status;
      fields >> policy >> status;
      SCOPED_TRACE(fmt::format("{}, {}\n{}", name, policy, text));
      for (const bool verbose : {false, true}) {
        std::uint64_t want = 0;
        fields >> std::hex >> want;
        const auto got = run_classic(text, name, policy, TbModel::simtbs_2020, verbose);
        ++compared;
        if (status == "crashes") {
          EXPECT_EQ(got.exit_status, 1);
          EXPECT_NE(got.err, "");
          continue;
        }
        EXPECT_EQ(got.exit_status, std::stoi(status));
        EXPECT_EQ(hash_of(got.out + got.err), want) << got.out;
      }
    } else {
      text += line + "\n";
    }
  }
  EXPECT_EQ(compared, 1040U);
}

INSTANTIATE_TEST_SUITE_P(Reference, ClassicOutput,
                         testing::Values("01_tiny", "02_uniform_050_memtable", "05_multi5_static",
                                         "07_memory_limit"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace demarc::sim
