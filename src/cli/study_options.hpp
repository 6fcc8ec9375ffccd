// The options by which isolate and attack name a device, how it is divided, and what a time is.
//
//   auto options = std::make_shared<StudyOptions>();
//   options->declare(app);
//   return [options, &app] {
//     DEMARC_CHECK(options->note_given(app));
//     DEMARC_CHECK(options->check_device());   // what the device cannot follow is refused
//     DEMARC_CHECK(options->parse(modes));
//     DEMARC_TRY(const auto executor, options->open());
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/device/device_ref.hpp"
#include "demarc/study/gpu_executor.hpp"
#include "demarc/study/sim_executor.hpp"

namespace demarc::cli {

class StudyOptions {
 public:
  // `devices`: what --device takes, for its help.
  void declare(CLI::App& app, const std::string& devices);
  // Which device, which options of this class, and which of the verb's own that devices differ in,
  // stood on the command line.
  [[nodiscard]] Result<void> note_given(const CLI::App& app);
  [[nodiscard]] bool given(std::string_view option) const;

  [[nodiscard]] bool real() const { return std::holds_alternative<gpu::CardRef>(ref_); }
  [[nodiscard]] bool simulated() const { return std::holds_alternative<gpu::SimulatedRef>(ref_); }
  [[nodiscard]] const gpu::PlantedRef* planted() const {
    return std::get_if<gpu::PlantedRef>(&ref_);
  }
  // An option that stood on the command line and that the device cannot follow.
  [[nodiscard]] Result<void> check_device() const;
  // What the options mean apart from any device. `mode_option` names in errors where modes are
  // given.
  [[nodiscard]] Result<void> parse(const std::vector<study::Mode>& modes,
                                   std::string_view mode_option);
  // For a real or a simulated device, once parsed.
  [[nodiscard]] Result<std::unique_ptr<study::Executor>> open() const;

  [[nodiscard]] study::Clock clock() const { return clock_value_; }  // once parsed

  std::string device = "cuda:0";
  std::uint32_t parts = 2;
  std::uint64_t seed = 1;
  double settle_seconds = 8;  // seconds of commands; declared by the verb that has them
  int victim_priority = 0;
  // Memory synchronisation domain of a worker's lane; declared by the verb that serves lanes.
  std::optional<std::uint32_t> sync_domain;

 private:
  static void group(CLI::App& app);  // its options under headings

  std::string split_ = "gpc-aligned";
  std::vector<std::string> masks_;
  std::vector<std::uint32_t> colors_;
  std::string description_;
  std::optional<double> memory_gib_;
  std::string clock_ = "gpu";
  std::string dispatch_;
  std::vector<std::string> locality_;
  unsigned threads_ = 0;
  std::vector<std::string> given_;
  gpu::DeviceRef ref_;
  // Parsed.
  partition::SplitStrategy strategy_{};
  std::vector<std::uint64_t> mask_values_;
  study::Clock clock_value_{};
  std::map<std::string, sim::BlockSharing> sharing_;
};

}  // namespace demarc::cli
