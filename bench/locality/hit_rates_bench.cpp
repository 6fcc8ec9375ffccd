// Predicted hit rates beside those of hardware counters: a Markdown table and the mean absolute
// errors, for the tables of tests/locality/measured or for those named on the command line
// (tools/measure-hit-rates.sh writes them).
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "../../tests/locality/measured.hpp"
#include "paths.hpp"

namespace {

using namespace demarc;
using namespace demarc::locality;

constexpr const char* table_2[] = {"kmeans", "convsep", "backprop", "leukocyte",
                                   "bfs",    "hotspot", "scan"};

struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) {
    if (value < 0) return;
    sum += value;
    ++count;
  }
  [[nodiscard]] bool within(double most) const { return count == 0 || sum / count <= most; }
  [[nodiscard]] std::string text() const {
    return fmt::format("{:.2f} over {}", count > 0 ? sum / count : 0, count);
  }
};

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f}", 100 * part / whole) : "-";
}

// 0: the means reach the targets, 3: they do not, 1: there was nothing to compare.
int compare(const std::string& path, const gpu::Device& device) {
  const auto rows = measured::read(path);
  if (!rows) {
    fmt::print("{}\n", rows.error().message);
    return 1;
  }
  fmt::print("\n{}, predicted for {}\n\n", std::filesystem::path(path).filename().string(),
             device.name);
  fmt::print(
      "| launch | kernel | L1 predicted | L1 counters | L2 predicted | L2 counters | L2 reads "
      "predicted | L2 reads counters | time predicted | time measured |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  Mean l1, l2, l1_seven, l2_seven;
  for (const measured::Row& row : *rows) {
    const auto predicted = measured::predict(row, device);
    if (!predicted) {
      fmt::print("{}\n", predicted.error().message);
      return 1;
    }
    const CachePrediction& p = predicted->whole;
    const measured::Errors errors = measured::errors(row, p);
    l1.add(errors.l1);
    l2.add(errors.l2);
    const std::string workload = row.launch.substr(0, row.launch.find(' '));
    if (std::find(std::begin(table_2), std::end(table_2), workload) != std::end(table_2)) {
      l1_seven.add(errors.l1);
      l2_seven.add(errors.l2);
    }
    const auto rate = [](double value, double whole) {
      return whole > 0 ? fmt::format("{:.1f}", 100 * value) : "-";
    };
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} us | {:.1f} us |\n", row.launch,
               row.kernel, rate(p.l1_hit_rate, row.l1_sectors),
               percent(row.l1_hits, row.l1_sectors), rate(p.l2_hit_rate, row.l2_sectors),
               percent(row.l2_hits, row.l2_sectors), rate(p.l2_read_hit_rate, row.l2_read_sectors),
               percent(row.l2_read_hits, row.l2_read_sectors), predicted->time_s * 1e6,
               row.time_ns / 1e3);
    std::fflush(stdout);
  }
  fmt::print(
      "\nmean absolute error in points: L1 {} kernels (target 7), L2 {} kernels (target 5); of the "
      "seven workloads: L1 {}, L2 {}\n",
      l1.text(), l2.text(), l1_seven.text(), l2_seven.text());
  const bool reached = l1.within(7) && l2.within(5) && l1_seven.within(7) && l2_seven.within(5);
  fmt::print("{}\n", reached ? "reached" : "MISSED");
  return reached ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  const auto device = gpu::find_device("h100-sxm");
  if (!device) {
    fmt::print("{}\n", device.error().message);
    return 1;
  }
  std::vector<std::string> paths(argv + 1, argv + argc);
  if (paths.empty()) {
    const auto folder = test::source_dir() / "tests/locality/measured";
    paths = {(folder / "h100.csv").string(), (folder / "h100_larger.csv").string()};
  }
  int worst = 0;
  for (const std::string& path : paths) {
    const int code = compare(path, *device);
    if (code == 1) return 1;
    worst = std::max(worst, code);
  }
  return worst;
}
