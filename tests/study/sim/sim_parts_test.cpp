// The parts of the simulated executor: colourings, the places of memory, and what workloads become.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/launch/launch_write.hpp"
#include "demarc/study/sim_executor.hpp"
#include "kept.hpp"
#include "paths.hpp"
#include "sim/sim_memory.hpp"
#include "sim/sim_workload.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t parts_l2_bytes = 2U << 20U;

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr std::uint64_t two_mib = std::uint64_t{2} << 20U;

std::string places_of_memory(const sim::memory::Translation& memory) {
  return fmt::format("{} chunks of {} bytes from {:#x}, {:016x}", memory.chunks.size(),
                     std::uint64_t{1} << memory.chunk_shift, memory.base,
                     hash_of(std::as_bytes(std::span(memory.chunks))));
}

TEST(SimParts, colourings_and_places_are_as_kept) {
  std::string text;
  for (const char* name : {"gtx1080", "v100", "titan-v", "a30", "h100-sxm"}) {
    const gpu::Device device = gpu::find_device(name).value();
    const sim::memory::Spec spec = sim::memory::make_spec(device, 5).value();
    SimMemory memory(device, spec, 5);
    text += fmt::format("{}, plain: {}\n", name,
                        places_of_memory(memory.plain(sim::Address(0x1000000), 5 * two_mib + 1)));
    for (const std::uint32_t parts : {1U, 2U, 3U, 4U, 8U, 16U, 32U}) {
      const auto coloring = choose_coloring(device, parts);
      text += fmt::format("{}, {} parts:", name, parts);
      if (!coloring) {
        text += " " + coloring.error().message + "\n";
        continue;
      }
      for (const std::uint64_t mask : coloring->masks()) text += fmt::format(" {:#x}", mask);
      const std::uint32_t last = coloring->colors() - 1;
      text += "; " +
              places_of_memory(memory.colored(sim::Address(0x1000), two_mib + 1, *coloring, last)) +
              "\n";
    }
  }
  test::expect_kept("study/golden/sim_colourings.txt", text);
}

TEST(SimParts, memory_has_pages_for_all_its_bytes_and_none_for_nothing) {
  const gpu::Device device = gpu::find_device("gtx1080").value();
  SimMemory memory(device, sim::memory::make_spec(device, 1).value(), 1);
  EXPECT_EQ(memory.plain(sim::Address(), 0).chunks.size(), 0U);
  EXPECT_EQ(memory.plain(sim::Address(), two_mib).chunks.size(), 1U);
  EXPECT_EQ(memory.plain(sim::Address(), two_mib + 1).chunks.size(), 2U);
}

TEST(SimParts, asked_masks_of_which_no_colouring_can_be_made_are_refused) {
  const gpu::Device hidden = gpu::find_device("h100-sxm").value();
  const auto refused = [&](const std::vector<std::uint64_t>& masks) {
    const auto coloring = choose_coloring(hidden, 2, masks);
    EXPECT_FALSE(coloring);
    return coloring ? "" : coloring.error().message;
  };
  EXPECT_THAT(refused({0x40}), HasSubstr("--masks: 0x40 has bits within a line of 128 bytes"));
  EXPECT_THAT(refused({0xc4000, 0xc4000}), HasSubstr("0xc4000 adds no colour within a page"));
  EXPECT_THAT(refused({0x4000}), HasSubstr("0x4000 is not a sum of the module masks"));
  EXPECT_THAT(choose_coloring(hidden, 2, {0xc4000}).value().masks(), ElementsAre(0xc4000U));
  // Where addresses are physical every mask is known.
  const gpu::Device open = gpu::find_device("gtx1080").value();
  EXPECT_THAT(choose_coloring(open, 2, {0x80}).value().masks(), ElementsAre(0x80U));
  EXPECT_THAT(choose_coloring(open, 2, {0x200000}).error().message,
              HasSubstr("0x200000 adds no colour within a page"));
}

TEST(SimParts, measured_masks_are_taken_from_the_one_that_isolates_best) {
  gpu::Device device = gpu::find_device("h100-sxm").value();
  device.address_map->isolation = {{0xc4000, 1.0, 1.0, 1.0, 1.3},
                                   {0x18a000, 1.2, 1.0, 1.0, 1.0},
                                   {0x139000, 1.0, 1.1, 1.0, 1.0}};
  EXPECT_THAT(choose_coloring(device, 2).value().masks(), ElementsAre(0x139000U));
  const auto best_two = color::Coloring::make(std::vector<std::uint64_t>{0x139000, 0x18a000},
                                              device.address_map->page_bytes)
                            .value();
  EXPECT_THAT(choose_coloring(device, 4).value().masks(), ElementsAreArray(best_two.masks()));
  EXPECT_THAT(choose_coloring(device, 16).error().message,
              HasSubstr("16 parts need 16 colours, but its modules give 8 per page"));
}

// The sizes at which bundled workloads are simulated.
TEST(SimParts, workloads_have_their_sizes) {
  std::string text;
  for (const char* spec :
       {"va", "sp", "fwt", "mm", "cfd", "nn", "sn", "gaussian", "dram_read", "dram_write",
        "l2_read", "l2_write", "chase", "va@small", "VA", "nothing", "cmd:true", "stream:x"}) {
    const auto code = sim_workload_code(spec, 90, parts_l2_bytes);
    if (!code) {
      text += fmt::format("{}: {}\n", spec, code.error().message.substr(0, 44));
      continue;
    }
    text += fmt::format("{}: {} launches, buffers of", spec, code->launch.kernels.size());
    for (const gpu::Buffer& buffer : code->launch.buffers) {
      text += fmt::format(" {}", buffer.bytes);
    }
    text += fmt::format(", {} blocks in the first\n", code->launch.kernels[0].grid.x);
  }
  test::expect_kept("study/golden/sim_workloads.txt", text);
}

TEST(SimParts, a_launch_that_sets_variables_of_its_module_is_refused_by_name) {
  const auto file = test::fresh_folder("study_variables") / "l.json";
  ASSERT_TRUE(write_file(file, R"({"schema": "demarc.launch/1", "ptx": "bundled:vecadd",
    "buffers": [], "variables": [{"name": "taps"}],
    "launches": [{"kernel": "k", "grid": 1, "block": 1, "args": []}]})"));
  EXPECT_THAT(sim_workload_code("launch:" + file.string(), 90, parts_l2_bytes).error().message,
              HasSubstr("l.json: it sets the variable 'taps' of its module; only"));
}

TEST(SimParts, a_launch_whose_memory_has_to_lie_somewhere_is_refused_by_name) {
  const auto file = test::fresh_folder("study_addresses") / "l.json";
  ASSERT_TRUE(write_file(file, R"({"schema": "demarc.launch/1", "ptx": "bundled:vecadd",
    "buffers": [{"name": "words", "bytes": 4, "address": 4096}],
    "launches": [{"kernel": "k", "grid": 1, "block": 1, "args": []}]})"));
  EXPECT_THAT(sim_workload_code("launch:" + file.string(), 90, parts_l2_bytes).error().message,
              HasSubstr("buffer 'words' must lie at 0x1000, which no GPU can promise"));
}

TEST(SimParts, a_launch_that_sizes_its_clusters_is_refused_by_name) {
  const auto file = test::fresh_folder("study_clusters") / "l.json";
  ASSERT_TRUE(
      write_file(file, R"({"schema": "demarc.launch/1", "ptx": "bundled:vecadd", "buffers": [],
    "launches": [{"kernel": "k", "grid": 2, "block": 1, "cluster": 2, "args": []}]})"));
  EXPECT_THAT(sim_workload_code("launch:" + file.string(), 90, parts_l2_bytes).error().message,
              HasSubstr("kernel 'k': the launch gives the size of its clusters, which a study"));
}

TEST(SimParts, a_launch_with_a_tensor_map_is_refused_by_name) {
  const auto file = test::fresh_folder("study_tensors") / "l.json";
  ASSERT_TRUE(write_file(file, R"({"schema": "demarc.launch/1", "ptx": "bundled:vecadd",
    "buffers": [{"name": "in", "bytes": 64}], "launches": [{"kernel": "k", "grid": 1, "block": 1, "args":
      [{"tensor_map": {"buffer": "in", "type": "f32", "dims": [16], "box": [4]}}]}]})"));
  EXPECT_THAT(
      sim_workload_code("launch:" + file.string(), 90, parts_l2_bytes).error().message,
      HasSubstr("kernel 'k': the launch gives it a tensor map, which a study does not support"));
}

TEST(SimParts, a_launch_with_a_texture_is_refused_by_name) {
  const auto file = test::fresh_folder("study_textures") / "l.json";
  ASSERT_TRUE(write_file(file, R"({"schema": "demarc.launch/1", "ptx": "bundled:vecadd",
    "buffers": [{"name": "in", "bytes": 64}], "launches": [{"kernel": "k", "grid": 1, "block": 1, "args":
      [{"texture": {"buffer": "in", "shape": "1d", "type": "f32", "size": [16]}}]}]})"));
  EXPECT_THAT(
      sim_workload_code("launch:" + file.string(), 90, parts_l2_bytes).error().message,
      HasSubstr("kernel 'k': the launch gives it a texture or a surface, which a study does "
                "not take"));
}

TEST(SimParts, a_workload_is_emulated_once_and_its_outputs_are_checked) {
  const auto loaded = load_sim_workload("va@small", 90, parts_l2_bytes);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto code = sim_workload_code("va@small", 90, parts_l2_bytes).value();
  const auto addresses = gpu::default_addresses(code.launch);
  EXPECT_EQ(loaded->base, sim::Address(addresses.front()));
  EXPECT_EQ(loaded->bytes, addresses.back() + code.launch.buffers.back().bytes - addresses[0]);
  EXPECT_EQ(loaded->outputs.mismatch, "");
  EXPECT_TRUE(loaded->outputs.exact);
  EXPECT_NE(loaded->outputs.digest, 0U);
  EXPECT_NE(loaded->outputs.digest,
            load_sim_workload("sp@small", 90, parts_l2_bytes)->outputs.digest);
  EXPECT_THAT(load_sim_workload("host_read", 90, parts_l2_bytes).error().message,
              HasSubstr("lies in host memory, which simulated GPUs lack"));
}

class SimStreams : public testing::Test {
 protected:
  static Result<SimWorkload> loaded(const std::string& text) {
    const auto file = test::fresh_folder("stream") / "s.txt";
    EXPECT_TRUE(write_file(file, text));
    return load_sim_workload("stream:" + file.string(), 90, parts_l2_bytes);
  }
};

TEST_F(SimStreams, span_the_pages_from_their_first_address_to_the_end_of_their_last_line) {
  const auto one = loaded(
      "kernel threads=64\nblock\nwarp\nload 0x700080/1 0x500100/1\nbarrier\nwarp\nstore "
      "0x600000\n");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->base, sim::Address(0x400000));
  EXPECT_EQ(one->bytes, 0x300100U);
  EXPECT_EQ(one->outputs.digest, 0U);
  EXPECT_TRUE(one->source() != nullptr);
}

TEST_F(SimStreams, without_accesses_are_refused) {
  EXPECT_THAT(loaded("kernel threads=32\nblock\nwarp\nwork +5\n").error().message,
              HasSubstr("the stream does not access memory"));
}

TEST(SimParts, on_an_h100_neighbours_have_what_its_description_says) {
  SimExecutorOptions options;
  options.device = "h100-sxm";
  const auto executor = make_sim_executor(options).value();
  const gpu::Device card = gpu::find_device("h100-sxm").value();
  const auto means = executor->neighbour_means(Mode{partition::Mode::mask, false}, 2).value();
  EXPECT_EQ(means.target, 90U);
  EXPECT_EQ(means.shared_bytes, card.sm.shared_block_bytes);
  EXPECT_GT(means.shared_bytes, 48U << 10U);
}

TEST(SimParts, a_mode_without_its_like_in_the_simulation_is_refused_by_name) {
  const auto executor = make_sim_executor({}).value();
  const auto refused = [&](const Mode& mode) {
    const auto stage = executor->divide(mode, 2);
    EXPECT_FALSE(stage);
    return stage ? "" : stage.error().message;
  };
  EXPECT_THAT(refused(Mode{partition::Mode::mask, false, Launches::graph}),
              HasSubstr("mask+graph: the simulated GPU runs launches one after the other only"));
  EXPECT_THAT(refused(Mode{partition::Mode::mask, false, Launches::separate, true}),
              HasSubstr("mask+common-domain: the simulated GPU has no memory synchronisation"));
}

// What a study of one victim says of its mode; parts of the H100 have a colour in runs of 16 KiB.
TEST(SimParts, windows_need_known_tlbs_and_colours_that_last_for_a_page) {
  const auto divided = [](const std::string& device, std::uint32_t parts,
                          std::vector<std::uint64_t> masks = {}) {
    SimExecutorOptions options;
    options.device = device;
    options.masks = std::move(masks);
    const auto executor = make_sim_executor(options).value();
    const auto stage = executor->divide(
        Mode{.division = partition::Mode::mask, .color = true, .windows = true}, parts);
    return stage ? (*stage)->account() : stage.error().message;
  };
  EXPECT_THAT(
      divided("h100-sxm", 2),
      HasSubstr(
          ", but windows share TLBs and page walkers, where the simulation is far from a card "
          "(docs/measurements/windows.md)"));
  EXPECT_THAT(
      divided("h100-sxm", 2, {0x91800}),
      HasSubstr("H100 SXM 80GB: its colours change every 2048 bytes, so a page of 4 KiB has "
                "bytes of several colours"));
  EXPECT_THAT(
      divided("gtx1080", 2),
      HasSubstr("the description has no address_translation, so what pages of 4 KiB cost is "
                "not known"));
}

TEST(SimParts, options_that_do_not_exist_are_refused) {
  const auto refused = [](auto change) {
    SimExecutorOptions options;
    change(options);
    const auto executor = make_sim_executor(options);
    EXPECT_FALSE(executor);
    return executor ? "" : executor.error().message;
  };
  EXPECT_THAT(refused([](auto& options) { options.device = "nothing"; }), HasSubstr("nothing"));
  EXPECT_THAT(refused([](auto& options) { options.masks = {0x40}; }), HasSubstr("--masks: 0x40"));
  EXPECT_THAT(refused([](auto& options) { options.dispatch = "nobody"; }), HasSubstr("nobody"));
  SimExecutorOptions colors;
  colors.colors = {0, 7};
  const auto stage = make_sim_executor(colors).value()->divide({partition::Mode::mask, true}, 2);
  ASSERT_FALSE(stage);
  EXPECT_THAT(stage.error().message, HasSubstr("--colors: part 1 has colour 7"));
}

// A lane that never started has no rate, and one that did has that of all neighbours, once.
TEST_F(SimStreams, lanes_tell_the_rate_of_their_neighbours_once) {
  const auto file = test::fresh_folder("rates") / "s.txt";
  ASSERT_TRUE(write_file(file, "kernel threads=32\nblock\nwarp\nload 0x1000/15\nwait work +9\n"));
  const Workload stream{"s", "stream:" + file.string()};
  const auto executor = make_sim_executor({}).value();
  const auto stage = executor->divide({partition::Mode::mask, false}, 3).value();
  ASSERT_EQ(stage->lanes(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(stage->lane(i).load(stream));
  const std::vector<double> alone = stage->lane(0).sample(2, 1).value();
  EXPECT_EQ(alone.size(), 2U);
  EXPECT_EQ(stage->lane(0).sample(99, 1)->size(), 99U);
  EXPECT_EQ(stage->lane(1).stop().value(), 0);
  ASSERT_TRUE(stage->lane(1).start() && stage->lane(2).start());
  ASSERT_TRUE(stage->lane(0).sample(50, 1));
  const double both = stage->lane(1).stop().value();
  EXPECT_EQ(stage->lane(2).stop().value(), 0);
  const auto pair = executor->divide({partition::Mode::mask, false}, 2).value();
  for (std::uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(pair->lane(i).load(stream));
  ASSERT_TRUE(pair->lane(1).start());
  EXPECT_GT(pair->lane(1).stop().value(), 0) << "the victim was not timed";
  ASSERT_TRUE(pair->lane(1).start() && pair->lane(0).sample(50, 1));
  const double one = pair->lane(1).stop().value();
  EXPECT_NEAR(both, 2 * one, 0.2 * one);
}

}  // namespace
}  // namespace demarc::study
