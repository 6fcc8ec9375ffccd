// What is said of a program's code: what is refused, what spills, what was compiled anew.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "calls/colored_image.hpp"
#include "demarc/driver/driver_types.hpp"
#include "demarc/driver/launch_counters.hpp"
#include "demarc/fatbin/image.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

using Spilling = std::map<std::string, std::uint32_t>;  // kernels, with bytes per thread

class CodeNotes {
 public:
  CodeNotes(ColoredCounters& counters, ProgramRecord& record,
            const std::function<void(const std::string& line)>& tell)
      : counters_(counters), record_(record), tell_(tell) {}

  // Code of which nothing is loaded; the error is that of the call.
  CuResult refused(const std::string& name, const std::string& why) const;
  CuResult refused(const fatbin::Image& image, const Error& error) const;
  // Kernels that are not loaded, and those that spill and are.
  void left_out(const ColoredImage& image) const;
  void spilling(const ColoredImage& image) const;
  // With less optimisation.
  void calm(const ColoredImage& image, const Spilling& before) const;

 private:
  ColoredCounters& counters_;
  ProgramRecord& record_;
  const std::function<void(const std::string& line)>& tell_;
};

}  // namespace demarc::cuda
