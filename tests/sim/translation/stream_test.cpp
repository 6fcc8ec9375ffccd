// Access streams from outside: a real kernel, and files against what they were written from.
#include "demarc/sim/translation/stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/ptx/parser.hpp"
#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/translation/simulate.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::sim::translation {
namespace {

using testing::HasSubstr;

TEST(TranslationLaunch, a_launch_runs_under_both_architectures_and_walks_for_each_page) {
  const auto launch = workload::instance("relu");
  const auto module = ptx::parse(*workload::ptx_text(*launch, 90), "relu");
  const auto application = application_of_launch(module.module, *launch, {});
  ASSERT_TRUE(application);
  EXPECT_EQ((*application)->kernels()[0].groups(), 2048U);
  EXPECT_EQ((*application)->kernels()[0].waves_per_group, 1U);
  const auto centralised = simulate({}, Architecture::centralised, **application);
  ASSERT_TRUE(centralised);
  const auto pages = (*application)->bytes() / 4096;
  EXPECT_GE(centralised->iommu_accesses, pages);
  EXPECT_EQ(centralised->first_touches, pages);
}

Result<std::unique_ptr<Application>> from_text(std::string_view text,
                                               const StreamOptions& options = {}) {
  const auto launch = memory::parse_access_text(text, "a.txt");
  if (!launch) return tl::unexpected(launch.error());
  return application_of_stream(**launch, options);
}

TEST(TranslationStream, warps_in_step_are_one_instruction_of_the_lines_of_both) {
  const auto application = from_text(
      "kernel threads=64\nblock\n"
      "warp\nwork +1 shared=6\nload +2 0x1000/15 0x2080/1 shared=2\nwait store +2 0x4000\n"
      "warp\nload +5 0x1080/12 shared=1\nwait store +2 0x4000\n");
  ASSERT_TRUE(application) << application.error().message;
  MemoryInstruction out;
  ASSERT_TRUE((*application)->instruction({0, 0, 0, 0}, out));
  // Pages 1, 2 and 4 become 0, 1 and 2; a line of 128 bytes has two of 64.
  EXPECT_EQ(std::vector<LineNumber>(out.line.begin(), out.line.begin() + out.lines),
            (std::vector{LineNumber(0), LineNumber(1), LineNumber(64 + 2), LineNumber(3)}));
  EXPECT_EQ(out.alu, 5U);
  EXPECT_EQ(out.shared_rows, 9U) << "one after the other, as both share the pipe";
  EXPECT_FALSE(out.store);
  ASSERT_TRUE((*application)->instruction({0, 0, 0, 1}, out));
  EXPECT_EQ(out.lines, 1U) << "the same line twice is one access";
  EXPECT_EQ(out.line[0], LineNumber(128));
  EXPECT_TRUE(out.store && out.wait);
  EXPECT_FALSE((*application)->instruction({0, 0, 0, 2}, out));
  EXPECT_EQ((*application)->bytes(), 3U * 4096);
}

TEST(TranslationStream, half_waves_that_are_not_coalesced_keep_their_own_lines) {
  const std::string_view text =
      "kernel threads=64\nblock\n"
      "warp\nstore 0x1000/7 0x1080/1\n"
      "warp\nstore.part 0x1080/15\n";
  MemoryInstruction out;
  const auto touched = [&] {
    std::vector<std::pair<LineNumber, Sectors>> lines;
    for (std::uint32_t i = 0; i < out.lines; ++i) lines.emplace_back(out.line[i], out.sectors(i));
    return lines;
  };
  using Lines = std::vector<std::pair<LineNumber, Sectors>>;
  const auto together = from_text(text);
  ASSERT_TRUE((*together)->instruction({0, 0, 0, 0}, out));
  EXPECT_EQ(
      touched(),
      (Lines{{LineNumber(0), 3}, {LineNumber(1), 1}, {LineNumber(2), 3}, {LineNumber(3), 3}}));
  EXPECT_TRUE(out.partial);
  StreamOptions options;
  options.coalesced_lanes = 32;
  const auto apart = from_text(text, options);
  ASSERT_TRUE((*apart)->instruction({0, 0, 0, 0}, out));
  EXPECT_EQ(touched(), (Lines{{LineNumber(0), 3},
                              {LineNumber(1), 1},
                              {LineNumber(2), 1},
                              {LineNumber(2), 3},
                              {LineNumber(3), 3}}));
}

TEST(TranslationStream, a_warp_that_has_left_counts_as_arrived_at_the_barrier) {
  const auto application = from_text(
      "kernel threads=128\nblock\n"
      "warp\nload 0x0\nbarrier\nload 0x1000\nwarp\nload 0x40\nwarp\nload 0x80\nwarp\nload 0xc0\n");
  ASSERT_TRUE(application) << application.error().message;
  const auto summary = simulate({}, Architecture::distributed, **application);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->lines, 5U);
}

TEST(TranslationStream, what_cannot_be_run_is_refused_with_the_name_of_the_stream) {
  StreamOptions options;
  options.name = "mine";
  const auto silent = from_text("kernel threads=32\nblock\nwarp\nwork +3\n", options);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().message, "mine: no kernel touches global memory");
  options.max_lines = 1;
  const auto large =
      from_text("kernel threads=32\nblock\nwarp\nload 0x0 0x1000\nload 0x2000\n", options);
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message, HasSubstr("mine: more than 1 line accesses"));
}

bool same_application(const Application& a, const Application& b) {
  if (a.bytes() != b.bytes() || a.kernels().size() != b.kernels().size()) return false;
  MemoryInstruction one;
  MemoryInstruction two;
  for (std::uint32_t k = 0; k < a.kernels().size(); ++k) {
    for (std::uint32_t group = 0; group < a.kernels()[k].groups(); ++group) {
      for (std::uint32_t wave = 0; wave < a.kernels()[k].waves_per_group; ++wave) {
        for (std::uint32_t i = 0;; ++i) {
          const bool more = a.instruction({k, group, wave, i}, one);
          if (more != b.instruction({k, group, wave, i}, two)) return false;
          if (!more) break;
          if (one.store != two.store || one.partial != two.partial ||
              one.untouched != two.untouched || one.wait != two.wait ||
              one.barrier != two.barrier || one.alu != two.alu ||
              one.shared_rows != two.shared_rows || one.lines != two.lines ||
              !std::equal(one.line.begin(), one.line.begin() + one.lines, two.line.begin())) {
            return false;
          }
        }
      }
    }
  }
  return true;
}

memory::PackedLaunch any_launch() {
  memory::PackedLaunch launch;
  memory::PackedKernel kernel;
  kernel.shape.threads = *rc::gen::inRange(1U, 129U);
  const auto blocks = *rc::gen::inRange(1U, 4U);
  for (std::uint32_t b = 0; b < blocks; ++b) {
    auto block = std::make_shared<memory::PackedBlock>();
    for (std::uint32_t w = 0; w < kernel.shape.warps(); ++w) {
      memory::PackedSteps steps;
      const auto count = *rc::gen::inRange(1, 5);
      for (int s = 0; s < count; ++s) {
        memory::Step step;
        step.kind = *rc::gen::element(memory::StepKind::load, memory::StepKind::store,
                                      memory::StepKind::barrier, memory::StepKind::work);
        step.wait = *rc::gen::arbitrary<bool>();
        step.partial = step.kind == memory::StepKind::store && *rc::gen::arbitrary<bool>();
        step.instructions = *rc::gen::inRange(1U, 9U);
        step.shared_rows = *rc::gen::inRange<std::uint16_t>(0, 9);
        if (step.kind == memory::StepKind::load || step.kind == memory::StepKind::store) {
          step.count = static_cast<std::uint8_t>(*rc::gen::inRange(1, 5));
          for (std::uint32_t i = 0; i < step.count; ++i)
            step.lines[i] = {Address(std::uint64_t{*rc::gen::inRange(0U, 400U)} * 128),
                             *rc::gen::inRange(1U, 16U)};
        }
        steps.add(step);
      }
      block->warps.push_back(std::move(steps));
    }
    kernel.blocks.push_back(std::move(block));
  }
  kernel.shape.blocks = blocks;
  launch.kernels.push_back(std::move(kernel));
  return launch;
}

RC_GTEST_PROP(TranslationStream, text_and_binary_give_the_application_they_were_written_from, ()) {
  const memory::PackedLaunch launch = any_launch();
  const auto direct = application_of_stream(launch, {});
  const auto text = memory::parse_access_text(memory::access_text(launch), "text");
  const auto binary = memory::parse_access_binary(memory::access_binary(launch), "binary");
  RC_ASSERT(text.has_value());
  RC_ASSERT(binary.has_value());
  const auto of_text = application_of_stream(**text, {});
  const auto of_binary = application_of_stream(**binary, {});
  RC_ASSERT(direct.has_value() == of_text.has_value());
  RC_ASSERT(direct.has_value() == of_binary.has_value());
  if (!direct) return;
  RC_ASSERT(same_application(**direct, **of_text));
  RC_ASSERT(same_application(**direct, **of_binary));
  const auto summary = simulate({}, Architecture::bypass, **direct);
  RC_ASSERT(summary.has_value());
}

RC_GTEST_PROP(TranslationMachine, a_description_reads_back_as_it_was_written, ()) {
  Settings settings;
  settings.gpus = *rc::gen::inRange(1U, 65U);
  settings.page_bytes = 4096U << *rc::gen::inRange(0, 10);
  settings.l2_tlb_ways = *rc::gen::inRange(1U, 4097U);
  settings.placement = *rc::gen::element(Placement::first_touch, Placement::first_walk,
                                         Placement::interleaved, Placement::contiguous);
  settings.remote = *rc::gen::element(Remote::lines, Remote::migration);
  settings.topology = *rc::gen::element(Topology::star, Topology::chain);
  const std::string text = machine_json(settings, "any");
  const auto back = parse_machine(text, "any.json");
  RC_ASSERT(back.has_value());
  RC_ASSERT(machine_json(*back, "any") == text);
}

TEST(TranslationMachine, what_is_wrong_is_named_by_file_and_key) {
  const auto message = [](std::string_view text) {
    const auto settings = parse_machine(text, "m.json");
    return settings ? std::string("accepted") : settings.error().message;
  };
  const std::string head = R"({"schema": "demarc.translate.machine/1", )";
  EXPECT_EQ(message(head + R"("settings": {"gpus": 65}})"),
            "m.json: settings.gpus: gpus: 65 is not within 1..64");
  EXPECT_THAT(message(head + R"("settings": {"gpu": 4}})"),
              HasSubstr("m.json: settings.gpu: there is no setting 'gpu'; there are gpus cus"));
  EXPECT_EQ(message(head + R"("settings": {"gpus": 1.5}})"),
            "m.json: settings.gpus: a whole number or a word was expected");
  EXPECT_EQ(message(head + R"("settings": {"page_bytes": 5000}})"),
            "m.json: page_bytes: 5000 is not a power of two");
  EXPECT_THAT(message(R"({"schema": "x", "settings": {}})"), HasSubstr("m.json: schema: 'x'"));
  EXPECT_THAT(message(head + R"("settings": {}, "setings": {}})"), HasSubstr("setings"));
}

}  // namespace
}  // namespace demarc::sim::translation
