// Hit rates that hardware counters gave (tools/measure-hit-rates.sh), and the prediction for the
// same launches.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/device/device.hpp"
#include "demarc/locality/analyse.hpp"
#include "demarc/locality/predict.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::locality::measured {

struct Row {
  std::string launch;  // "stencil2d width=1024": a bundled launch and parameters
  std::string kernel;
  std::uint64_t instance = 0;  // which of its launches, from 0
  double l1_sectors = 0, l1_hits = 0;
  double l2_sectors = 0, l2_hits = 0, l2_read_sectors = 0, l2_read_hits = 0;
  double dram_read_bytes = 0, dram_written_bytes = 0, time_ns = 0;
};

[[nodiscard]] inline std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts{""};
  for (const char c : text)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// For every kernel of every launch the instance that loads most, the first of equals.
[[nodiscard]] inline Result<std::vector<Row>> read(const std::filesystem::path& path) {
  DEMARC_TRY(const std::string text, read_file(path));
  std::vector<Row> rows;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> part = split(line, ',');
    if (part.size() != 12 || part[0] == "launch") continue;
    Row row{.launch = part[0], .kernel = part[1]};
    DEMARC_TRY(row.instance, parse_u64(part[2], "instance"));
    double* const values[] = {
        &row.l1_sectors,      &row.l1_hits,      &row.l2_sectors,      &row.l2_hits,
        &row.l2_read_sectors, &row.l2_read_hits, &row.dram_read_bytes, &row.dram_written_bytes,
        &row.time_ns};
    for (std::size_t i = 0; i < std::size(values); ++i) *values[i] = std::stod(part[3 + i]);
    const auto same = std::find_if(rows.begin(), rows.end(), [&row](const Row& other) {
      return other.launch == row.launch && other.kernel == row.kernel;
    });
    if (same == rows.end())
      rows.push_back(row);
    else if (row.l1_sectors > same->l1_sectors)
      *same = row;
  }
  return rows;
}

// The launch of a row, and which of its kernels the row is of.
struct KernelCode {
  ptx::Module module;
  gpu::Launch launch;
  std::size_t kernel = 0;
};

[[nodiscard]] inline Result<KernelCode> code_of(const Row& row) {
  const std::vector<std::string> words = split(row.launch, ' ');
  gpu::LaunchFileOptions options;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::vector<std::string> setting = split(words[i], '=');
    DEMARC_TRY(options.parameters[setting.at(0)], parse_i64(setting.at(1), words[i]));
  }
  KernelCode code;
  DEMARC_TRY(code.launch, workload::instance(words[0], options));
  DEMARC_TRY(const std::string text, workload::ptx_text(code.launch, 90));
  DEMARC_TRY(code.module, ptx::parse_whole(text, words[0]));
  std::uint64_t instance = 0;
  for (; code.kernel < code.launch.kernels.size(); ++code.kernel) {
    if (code.launch.kernels[code.kernel].kernel == row.kernel && instance++ == row.instance) {
      return code;
    }
  }
  return invalid_input("{} does not launch {} {} times", row.launch, row.kernel, row.instance + 1);
}

[[nodiscard]] inline Result<Sensitivity> predict(const Row& row, const gpu::Device& device) {
  DEMARC_TRY(const KernelCode code, code_of(row));
  DEMARC_TRY(const Collected collected,
             collect_runs(code.module, code.launch, code.kernel, Force::automatic));
  PredictOptions how;
  how.shared_bytes_per_block = shared_bytes_of(code.module, code.launch.kernels[code.kernel]);
  return predict_sensitivity(collected.runs, device, how);
}

// In points; negative: nothing was asked of that cache.
struct Errors {
  double l1 = -1;
  double l2 = -1;
};
[[nodiscard]] inline Errors errors(const Row& row, const CachePrediction& prediction) {
  Errors result;
  if (row.l1_sectors > 0)
    result.l1 = 100 * std::abs(prediction.l1_hit_rate - row.l1_hits / row.l1_sectors);
  if (row.l2_sectors > 0)
    result.l2 = 100 * std::abs(prediction.l2_hit_rate - row.l2_hits / row.l2_sectors);
  return result;
}

}  // namespace demarc::locality::measured
