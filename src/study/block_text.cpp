// Writes where and when blocks ran as JSON and as a picture.
#include <algorithm>
#include <array>

#include "demarc/base/json.hpp"
#include "demarc/base/version.hpp"
#include "demarc/study/block_runs.hpp"

namespace demarc::study {
namespace {

constexpr std::array<const char*, 8> kernel_colors = {"#4878a8", "#e08a3c", "#6aa84f", "#b85450",
                                                      "#8e6bb0", "#c9a227", "#5fa8a8", "#999999"};
constexpr double plot_width = 640;
constexpr double sm_height = 2.5;
constexpr double plot_left = 60;
constexpr double plot_top = 40;

Json run_json(const BlockRun& run) {
  Json kernels = Json::array();
  for (const RunKernel& k : run.kernels) {
    kernels.push_back({{"name", k.name},
                       {"stream", k.stream},
                       {"priority", k.priority},
                       {"sms", k.sms},
                       {"blocks", k.blocks},
                       {"hold_us", k.hold_us}});
  }
  Json blocks = Json::array();
  for (const BlockTime& b : run.blocks) {
    blocks.push_back(Json::array({b.kernel, b.block, b.sm, b.begin_us, b.end_us}));
  }
  Json points = Json::array();
  for (const RunPoint& p : run.points) points.push_back(Json::array({p.series, p.x, p.y}));
  return {{"name", run.name},   {"finding", run.finding},
          {"holds", run.holds}, {"faults", faults_of(run)},
          {"kernels", kernels}, {"blocks_columns", {"kernel", "block", "sm", "begin_us", "end_us"}},
          {"blocks", blocks},   {"x", run.x_name},
          {"y", run.y_name},    {"points", points}};
}

}  // namespace

std::string block_runs_json(const std::vector<BlockRun>& runs, const std::string& command) {
  Json out{{"schema", "demarc.blocks/2"}};
  out["context"] = {{"program", fmt::format("demarc {}", version())},
                    {"revision", revision()},
                    {"command", command}};
  for (const BlockRun& run : runs) out["runs"].push_back(run_json(run));
  return json_text(out) + "\n";
}

std::string block_run_svg(const BlockRun& run) {
  double last = 1e-9;
  std::uint32_t sms = 1;
  for (const BlockTime& b : run.blocks) {
    last = std::max(last, b.end_us);
    sms = std::max(sms, b.sm + 1);
  }
  const double height = plot_top + sms * sm_height + 40;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"12\" "
      "width=\"{:.0f}\" height=\"{:.0f}\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n<text x=\"8\" y=\"18\" font-size=\"14\">{}</text>\n",
      plot_left + plot_width + 20, height, run.name);
  for (std::size_t k = 0; k < std::min<std::size_t>(run.kernels.size(), 8); ++k) {
    out +=
        fmt::format("<text x=\"{:.0f}\" y=\"34\" fill=\"{}\">{}</text>\n",
                    plot_left + static_cast<double>(k) * 80, kernel_colors[k], run.kernels[k].name);
  }
  for (const BlockTime& b : run.blocks) {
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
        "fill-opacity=\"0.6\"/>\n",
        plot_left + b.begin_us / last * plot_width, plot_top + b.sm * sm_height,
        std::max((b.end_us - b.begin_us) / last * plot_width, 0.5), sm_height,
        kernel_colors[b.kernel % kernel_colors.size()]);
  }
  out += fmt::format(
      "<text x=\"8\" y=\"{:.0f}\">SM 0</text>\n<text x=\"8\" y=\"{:.0f}\">SM {}</text>\n<text "
      "x=\"{:.0f}\" y=\"{:.0f}\">0</text>\n<text x=\"{:.0f}\" y=\"{:.0f}\" "
      "text-anchor=\"end\">{:.0f} us</text>\n</svg>\n",
      plot_top + 10, plot_top + sms * sm_height, sms - 1, plot_left, height - 15,
      plot_left + plot_width, height - 15, last);
  return out;
}

}  // namespace demarc::study
