// What `demarc doctor` says of a machine, row by row, on the stand-in driver.
#include "demarc/exec/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "confine_fixture.hpp"
#include "demarc/base/json.hpp"
#include "demarc/guest/seccomp_filter.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

class Doctor : public Confine {
 protected:
  void SetUp() override {
    Confine::SetUp();
    plan.preload = (test::build_dir() / "libdemarc_preload.so").string();
    // What this machine has of these does not matter.
    keep("PATH");
    keep("CUDA_MPS_PIPE_DIRECTORY");
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", folder.c_str(), 1);
  }
  void TearDown() override {
    for (const auto& [name, value] : kept) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
    Confine::TearDown();
  }
  void keep(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    kept.emplace_back(name, value == nullptr ? std::nullopt : std::optional<std::string>(value));
  }

  // What is said, in a process of its own: the driver and signals are used there.
  std::string look() {
    test::configure(config);
    const std::string file = (folder / "said").string();
    EXPECT_EQ(Supervised::apart([&] {
                before();
                const auto checks = look_at_machine(plan);
                const auto confines = check_confines(checks);
                const std::string last = confines ? "confines\n" : confines.error().message + "\n";
                if (!write_file(file, checks_to_text(checks) + last)) return 1;
                return ::waitpid(-1, nullptr, WNOHANG) == -1 ? 0 : 2;  // nothing that it started
              }),
              0);
    return read_file(file).value_or("");
  }
  // `name` does nothing.
  void add_program(const std::string& name) {
    const auto file = folder / name;
    ASSERT_TRUE(write_file(file, "#!/bin/sh\n"));
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  static fake::FakeConfig described_card() {
    fake::FakeConfig card = fake::small_gpu();
    std::snprintf(card.name, sizeof card.name, "NVIDIA H100 80GB HBM3");
    return card;
  }
  void remember(const fake::FakeConfig& card) const {
    EXPECT_EQ(Supervised::apart([&] {
                test::configure(card);
                return open_card(0, {}) ? 0 : 1;
              }),
              0);
  }

  DoctorPlan plan;
  std::function<void()> before = [] {};  // in that process
  fake::FakeConfig config = described_card();
  std::filesystem::path folder = test::fresh_folder("doctor");
  std::vector<std::pair<std::string, std::optional<std::string>>> kept;
};

TEST_F(Doctor, A_whole_machine_confines_and_nothing_is_remembered_of_it) {
  const std::string said = look();
  EXPECT_THAT(said, HasSubstr("driver    works      " + test::fake_libcuda().string() +
                              ", driver cuda-13.0, CUDA 13.0\n"));
  EXPECT_THAT(said, HasSubstr("card      works      NVIDIA H100 80GB HBM3, GPU-fafa"));
  EXPECT_THAT(said, HasSubstr("masks     works      CUDA 13.0 keeps a stream's mask at offset "
                              "0x51c, as is known; task descriptors have version V04_00\n"));
  EXPECT_THAT(said, HasSubstr("partition works      launches of this process stay on TPCs 0-5 of "
                              "12, seen from inside\n"));
  EXPECT_THAT(said, HasSubstr("colours   works      NVIDIA H100 80GB HBM3: by its description 80 "
                              "slices of L2; its memory can be divided into 2, 4, 8 colours\n"));
  EXPECT_THAT(said, HasSubstr("cache     works      "));
  EXPECT_THAT(said, HasSubstr("processes works      "));
  EXPECT_THAT(said, HasSubstr("preload   works      " + plan.preload + "\n"));
  EXPECT_THAT(said, HasSubstr("compilers works      "));
  EXPECT_THAT(said, HasSubstr("cuBLAS    works      "));
  EXPECT_THAT(said, HasSubstr("\nconfines\n"));
  EXPECT_TRUE(std::filesystem::is_empty(std::getenv("DEMARC_CACHE")));
}

TEST_F(Doctor, the_larger_half_of_an_odd_number_of_tpcs_is_proved) {
  config.tpcs = 11;
  EXPECT_THAT(look(), HasSubstr("partition works      launches of this process stay on TPCs 0-5 of "
                                "11, seen from inside\n"));
}

TEST_F(Doctor, without_a_driver_what_builds_on_it_is_unknown_and_the_driver_is_named) {
  ::setenv("DEMARC_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  const std::string said = look();
  EXPECT_THAT(said, HasSubstr("driver    does not   no NVIDIA driver on this machine"));
  EXPECT_THAT(said, HasSubstr("DEMARC_LIBCUDA"));
  for (const char* row : {"card     ", "masks    ", "partition", "colours  ", "topology "}) {
    EXPECT_THAT(said,
                HasSubstr(std::string(row) + " unknown    not looked at without the driver\n"));
  }
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: driver (for exec, isolate, serve)\n"));
}

TEST_F(Doctor, A_card_that_is_not_there_and_a_part_of_one_are_no_cards) {
  plan.device = 7;
  std::string said = look();
  EXPECT_THAT(said, HasSubstr("card      does not   there is no GPU cuda:7; this machine has 1\n"));
  EXPECT_THAT(said, HasSubstr("masks     unknown    not looked at without the card\n"));
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: card (for exec, isolate, serve)\n"));
  plan.device = 0;
  config.instance_uuid = 0xab;
  said = look();
  EXPECT_THAT(said, HasSubstr("is a MIG instance"));
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: card (for exec, isolate, serve)\n"));
}

TEST_F(Doctor, masks_of_an_unknown_driver_do_not_work_until_topo_has_found_them) {
  config.cuda_version = 14020;
  config.stream_offset = 0x25c;
  std::string said = look();
  EXPECT_THAT(said, HasSubstr("masks     does not   CUDA 14.2: it is not known where this driver "
                              "keeps the mask of a stream"));
  EXPECT_THAT(said, HasSubstr("partition unknown    not looked at without the masks\n"));
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: masks (for exec, isolate, serve)\n"));
  EXPECT_EQ(Supervised::apart([&] {
              CardOptions options;
              options.refresh = true;
              return open_card(0, options) ? 0 : 1;
            }),
            0);
  said = look();
  EXPECT_THAT(said, HasSubstr("masks     works      CUDA 14.2 keeps a stream's mask at offset "
                              "0x25c, as topo has found"));
  EXPECT_THAT(said, HasSubstr("\nconfines\n"));
}

TEST_F(Doctor, masks_at_another_place_than_the_table_says_do_not_work) {
  config.stream_field_works = false;
  const std::string said = look();
  EXPECT_THAT(said, HasSubstr("masks     does not   CUDA 13.0: offset 0x51c does not hold"));
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: masks (for exec, isolate, serve)\n"));
}

TEST_F(Doctor, A_mask_that_the_card_does_not_obey_is_no_partition) {
  config.obey_masks = false;
  const std::string said = look();
  EXPECT_THAT(said, HasSubstr("masks     works"));
  EXPECT_THAT(said, HasSubstr("partition does not   "));
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: partition (for exec, isolate, serve)\n"));
}

TEST_F(Doctor, A_card_without_a_description_has_no_colours_unless_one_is_given) {
  config = fake::small_gpu();
  std::string said = look();
  EXPECT_THAT(said, HasSubstr("colours   does not   no description of 'Fake GPU' is built in"));
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: colours (for serve, exec --part K/N, "));
  plan.description = "h200";
  said = look();
  EXPECT_THAT(said, HasSubstr("by its description 94 slices of L2; its memory can be divided into "
                              "2, 3, 4 colours\n"));
  EXPECT_THAT(said, HasSubstr("\nconfines\n"));
  plan.description = "titan-v";
  EXPECT_THAT(look(), HasSubstr("colours   does not   "));
}

TEST_F(Doctor, what_is_remembered_of_the_card_is_told_and_is_not_needed) {
  std::string said = look();
  EXPECT_THAT(said, HasSubstr("topology  does not   nothing is remembered of this card in "));
  EXPECT_THAT(said, HasSubstr("demarc topo --refresh, outside MPS"));
  remember(config);
  said = look();
  EXPECT_THAT(said, HasSubstr("topology  works      " + std::string(std::getenv("DEMARC_CACHE")) +
                              "/GPU-fafa"));
  EXPECT_THAT(said, HasSubstr("has a topology of 24 SMs\n"));
  config.tpcs = 10;  // another card than the remembered one
  said = look();
  EXPECT_THAT(said, HasSubstr("topology  does not   "));
  EXPECT_THAT(said, HasSubstr("masks     does not   "));
  EXPECT_THAT(said,
              HasSubstr("it belongs to another card: the number of SMs is 24 there and 20 now"));
}

TEST_F(Doctor, A_cache_that_cannot_be_written_is_named_and_not_needed) {
  ::setenv("DEMARC_CACHE", "/proc/cache/of/demarc", 1);
  std::string said = look();
  EXPECT_THAT(said, HasSubstr("cache     does not   /proc/cache/of/demarc: "));
  EXPECT_THAT(said, HasSubstr("name a folder in DEMARC_CACHE"));
  EXPECT_THAT(said, HasSubstr("\nconfines\n"));
  const auto fresh = folder / "not" / "yet";
  ::setenv("DEMARC_CACHE", fresh.c_str(), 1);
  said = look();
  EXPECT_THAT(said, HasSubstr("cache     works      " + fresh.string() + "\n"));
  EXPECT_FALSE(std::filesystem::exists(folder / "not"));
}

TEST_F(Doctor, A_library_that_is_not_there_or_cannot_be_loaded_does_not_work) {
  plan.preload = (folder / "libdemarc_preload.so").string();
  std::string said = look();
  EXPECT_THAT(said,
              HasSubstr("preload   does not   " + plan.preload + ": this library does not exist"));
  EXPECT_THAT(said, HasSubstr("compilers unknown    not looked at without the preload\n"));
  EXPECT_THAT(said, HasSubstr("cuBLAS    unknown    not looked at without the preload\n"));
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: preload (for exec)\n"));
  ASSERT_TRUE(write_file(plan.preload, "no library"));
  said = look();
  EXPECT_THAT(said, HasSubstr("preload   does not   " + plan.preload + ": file too short"));
  EXPECT_THAT(said, HasSubstr("compilers does not   libdemarc_compilers.so was not found beside "));
  EXPECT_THAT(said, HasSubstr("cuBLAS    does not   libdemarc_blas.so was not found beside "));
  plan.preload.clear();  // and this test program has none beside it
  EXPECT_THAT(look(), HasSubstr("preload   does not   libdemarc_preload.so was not found beside "));
}

TEST_F(Doctor, mps_works_where_a_daemon_runs_or_can_be_started) {
  ::setenv("PATH", folder.c_str(), 1);
  add_program("true");
  std::string said = look();
  EXPECT_THAT(said, HasSubstr("MPS       does not   no daemon has its pipes in " + folder.string() +
                              ", and there is no nvidia-cuda-mps-control"));
  EXPECT_THAT(said, HasSubstr("\nconfines\n"));
  add_program("nvidia-cuda-mps-control");
  EXPECT_THAT(look(), HasSubstr("MPS       works      " + folder.string() +
                                "/nvidia-cuda-mps-control starts a daemon\n"));
  ASSERT_TRUE(write_file(folder / "control", ""));
  EXPECT_THAT(look(), HasSubstr("MPS       works      a daemon has its pipes in " +
                                folder.string() + "\n"));
}

TEST_F(Doctor, compilers_of_cuda_sources_are_told_and_not_needed) {
  ::setenv("PATH", folder.c_str(), 1);
  add_program("true");
  std::string said = look();
  EXPECT_THAT(said, HasSubstr("nvcc      does not   nvcc: not in PATH; ptxas: not in PATH\n"));
  EXPECT_THAT(said, HasSubstr("\nconfines\n"));
  add_program("nvcc");
  EXPECT_THAT(look(), HasSubstr("nvcc      does not   nvcc: " + folder.string() +
                                "/nvcc; ptxas: not in PATH\n"));
  add_program("ptxas");
  EXPECT_THAT(look(), HasSubstr("nvcc      works      nvcc: "));
}

TEST_F(Doctor, inside_another_exec_no_processes_can_be_watched) {
  // For one that has ended: a living one would have to answer.
  before = [] { ::close(install_filter()); };
  const std::string said = look();
  EXPECT_THAT(said, HasSubstr("processes does not   this runs inside another demarc exec, which "
                              "confines it already"));
  EXPECT_THAT(said, testing::EndsWith("processes (for exec)\n")) << "the last of what it lacks";
}

TEST_F(Doctor, A_driver_that_ends_the_process_is_one_that_does_not_work) {
  config.deadly_from = 0;
  config.deadly_until = 0x1000;
  const std::string said = look();
  EXPECT_THAT(said, HasSubstr("driver    does not   a process that used the GPU ended without an"));
  EXPECT_THAT(said, HasSubstr("card      unknown    not looked at without the driver\n"));
  EXPECT_THAT(said, HasSubstr("\nthis machine lacks: driver (for exec, isolate, serve)\n"));
}

TEST_F(Doctor, json_has_a_field_for_whatever_the_text_says) {
  const std::vector<Check> checks{{"driver", CheckState::works, "found", "", "exec", true},
                                  {"MPS", CheckState::lacks, "nothing", "more", "serve", false},
                                  {"card", CheckState::unknown, "not looked at", "", "exec", true}};
  const Json json = Json::parse(checks_to_json(checks, "cuda:1"));
  EXPECT_EQ(json.at("schema"), "demarc.doctor/1");
  EXPECT_EQ(json.at("device"), "cuda:1");
  EXPECT_EQ(json.at("confines"), true);
  ASSERT_EQ(json.at("checks").size(), 3U);
  EXPECT_EQ(json.at("checks").at(0).at("state"), "works");
  const Json second{{"name", "MPS"},  {"state", "does not"}, {"found", "nothing"},
                    {"cure", "more"}, {"used_by", "serve"},  {"needed", false}};
  EXPECT_EQ(json.at("checks").at(1), second);
  EXPECT_EQ(json.at("checks").at(2).at("state"), "unknown");
}

}  // namespace
}  // namespace demarc::cuda
