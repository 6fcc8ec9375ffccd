// The table of figures: what runs alone, where, and what its time says.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "demarc/study/calibrate.hpp"

namespace demarc::study {

enum class SmShare : std::uint8_t { whole, half };  // how many SMs a launch may use

// What a run's time is turned into.
enum class FigureKind : std::uint8_t {
  each,  // ns one of them takes
  rate,  // so many a second: bytes as GB/s, operations as thousand millions
};

// What the L2 holds before a simulated run: on a card the run before leaves it so.
struct L2Before {
  enum class Lines : std::uint8_t { none, own, others };
  Lines lines = Lines::none;  // of the launch's own buffers, or as many of others as there is room
  double dirty = 0;           // share of them that is written and not yet in DRAM
};

struct FigureRow {
  std::string_view name;
  std::string_view meaning;
  std::string_view launch;  // a bundled workload
  SmShare share = SmShare::whole;
  FigureKind kind = FigureKind::rate;
  std::string_view unit;
  L2Before l2;
  // The parameter that says only how often the kernel runs, so that it meets none of its own lines:
  // a simulation runs it once. Empty: there is none.
  std::string_view repeats;
  LaunchParameters (*sizes)(const gpu::Device& description) = nullptr;
  // Loads, bytes, operations of a run.
  double (*work)(const LaunchParameters& parameters, const gpu::Device& description) = nullptr;
  // Whether it is a bandwidth of DRAM.
  [[nodiscard]] bool beyond_l2() const {
    return unit == "GB/s" && l2.lines != L2Before::Lines::own;
  }
};

[[nodiscard]] std::span<const FigureRow> figure_rows();
// An error lists the names.
[[nodiscard]] Result<const FigureRow*> find_figure(std::string_view name);

// Figures of half of the SMs, and sizes, are those of a device with as many as the description has.
[[nodiscard]] Result<void> check_sms(const gpu::Device& description, std::string_view device,
                                     std::uint32_t sms);

// "gauge_read16@blocks=264+elements=524288": the launch of a figure for a lane.
[[nodiscard]] Workload workload_of(const FigureRow& row, const LaunchParameters& parameters);

// What the device of check_peak() is: the one that was simulated, the card that was measured, or
// the description that a fit to a card's figures begins with, which may be that of another card.
enum class PeakOf : std::uint8_t { simulation, card, description };

// check_failed if DRAM moves more than its bus carries. A card's clock may differ from the one in
// its description, so multiply-adds are compared with the lanes of its SMs for a simulated one
// alone.
[[nodiscard]] Result<void> check_peak(const FigureRow& row, double value, const gpu::Device& device,
                                      PeakOf device_is);
// The figures, if none of them is above what the device that was simulated can do.
[[nodiscard]] Result<FigureSet> simulated_below_peaks(FigureSet set, const gpu::Device& device);
// check_peak() of a card of this name; nothing is checked if no description of it is built in.
[[nodiscard]] Result<void> check_card_peak(const FigureRow& row, double value,
                                           std::string_view card);

// A run of `ns` nanoseconds as a figure.
[[nodiscard]] double figure_of(const FigureRow& row, const LaunchParameters& parameters,
                               const gpu::Device& description, double ns);

}  // namespace demarc::study
