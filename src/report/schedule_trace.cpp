// Draws which kernel ran on which SM and when, as a Perfetto trace and as a picture.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "demarc/report/perfetto.hpp"
#include "demarc/report/schedule_page.hpp"

namespace demarc::report {
namespace {

// Spans of one SM may overlap: each gets the first lane that is free.
std::vector<std::uint32_t> lanes_of(const sim::DispatchTimeline& timeline,
                                    std::vector<std::uint32_t>& lanes_per_sm) {
  std::vector<std::vector<double>> busy_until(timeline.sms);
  std::vector<std::uint32_t> lanes;
  for (const auto& span : timeline.spans) {
    std::vector<double>& busy = busy_until[span.sm];
    std::size_t lane = 0;
    while (lane < busy.size() && busy[lane] > span.start) ++lane;
    if (lane == busy.size()) busy.push_back(0);
    busy[lane] = span.end;
    lanes.push_back(static_cast<std::uint32_t>(lane));
  }
  lanes_per_sm.clear();
  for (const auto& busy : busy_until) {
    lanes_per_sm.push_back(std::max(1U, static_cast<std::uint32_t>(busy.size())));
  }
  return lanes;
}

std::string escaped_xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML has no control characters
    }
  }
  return out;
}

// Light enough for dark letters; hues a golden angle apart, so that neighbours differ.
std::string kernel_colour(std::uint32_t kernel) {
  return fmt::format("hsl({:.0f},{}%,{}%)", std::fmod(kernel * 222.49, 360.0), 55 + kernel % 2 * 20,
                     66 + kernel % 3 * 7);
}

// One rectangle: a span, or spans of one kernel that follow each other and are too narrow to see.
struct Bar {
  std::uint32_t sm = 0, lane = 0, kernel = 0;
  double start = 0, end = 0;
  std::uint64_t blocks = 0;
  std::uint64_t spans = 1;
};

// `resolution`: spans shorter than this join the one before them, of the same kernel and lane.
std::vector<Bar> bars_of(const sim::DispatchTimeline& timeline,
                         const std::vector<std::uint32_t>& lanes, double resolution) {
  std::vector<Bar> bars;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> last;  // bar of an SM's lane
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const auto& span = timeline.spans[i];
    const auto [at, first] = last.try_emplace({span.sm, lanes[i]}, bars.size());
    if (!first) {
      Bar& before = bars[at->second];
      if (before.kernel == span.kernel && before.end == span.start &&
          span.end - span.start < resolution) {
        before.end = span.end;
        before.blocks += span.blocks;
        ++before.spans;
        continue;
      }
    }
    at->second = bars.size();
    bars.push_back({span.sm, lanes[i], span.kernel, span.start, span.end, span.blocks, 1});
  }
  return bars;
}

// 1, 2 or 5 times a power of ten: at most ten of them reach `end`.
double tick_step(double end) {
  const double power = std::pow(10.0, std::floor(std::log10(end / 10)));
  for (const double step : {power, 2 * power, 5 * power}) {
    if (end / step <= 10) return step;
  }
  return 10 * power;
}

constexpr double picture_left = 60;
constexpr double picture_width = 1000;
constexpr double letter_width = 6.2;  // width of the 10 pixel font, on average

// Names of the kernels under the picture; returns the height taken.
double append_legend(std::string& out, const sim::DispatchTimeline& timeline, double top) {
  constexpr std::size_t most = 64;
  std::vector<bool> seen(timeline.kernels.size());
  for (const auto& span : timeline.spans) seen[span.kernel] = true;
  const auto count = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
  if (count > most) {
    out +=
        fmt::format("<text x=\"{}\" y=\"{:.1f}\">{} kernels: point at a bar for its name</text>\n",
                    picture_left, top + 9, count);
    return 14;
  }
  double x = picture_left;
  double y = top;
  for (std::uint32_t k = 0; k < timeline.kernels.size(); ++k) {
    if (!seen[k]) continue;
    const double wide = 26 + letter_width * static_cast<double>(timeline.kernels[k].size());
    if (x > picture_left && x + wide > picture_left + picture_width) {
      x = picture_left;
      y += 14;
    }
    out += fmt::format(
        "<rect class=\"key\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        x, y, kernel_colour(k), x + 14, y + 9, escaped_xml(timeline.kernels[k]));
    x += wide;
  }
  return y + 14 - top;
}

}  // namespace

std::string schedule_trace(const sim::DispatchTimeline& timeline) {
  TraceWriter trace;
  std::vector<std::uint32_t> per_sm;
  const std::vector<std::uint32_t> lanes = lanes_of(timeline, per_sm);
  // Numbers from 1, each thread's its own: viewers keep 0 for the idle process and take a thread
  // number for one thread of the whole machine.
  std::vector<std::uint32_t> first_thread;
  std::uint32_t thread = 1;
  for (std::uint32_t sm = 0; sm < timeline.sms; ++sm) {
    first_thread.push_back(thread);
    trace.process(sm + 1, fmt::format("SM {}", sm));
    for (std::uint32_t lane = 0; lane < per_sm[sm]; ++lane) {
      trace.thread(sm + 1, thread++,
                   lane == 0 ? fmt::format("SM {}", sm) : fmt::format("SM {}, lane {}", sm, lane));
    }
  }
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const auto& span = timeline.spans[i];
    trace.slice(span.sm + 1, first_thread[span.sm] + lanes[i], timeline.kernels[span.kernel],
                span.start, span.end - span.start, {{"blocks", fmt::format("{}", span.blocks)}});
  }
  return trace.json();
}

std::string schedule_svg(const sim::DispatchTimeline& timeline) {
  constexpr double top = 30;
  std::vector<std::uint32_t> per_sm;
  const std::vector<std::uint32_t> lanes = lanes_of(timeline, per_sm);
  const auto all_lanes =
      static_cast<double>(std::accumulate(per_sm.begin(), per_sm.end(), std::uint64_t{0}));
  // A small machine gets lanes that hold the kernel's name.
  const double lane_height = std::clamp(std::floor(520 / std::max(all_lanes, 1.0)), 6.0, 18.0);
  double end = 0;
  for (const auto& span : timeline.spans) end = std::max(end, span.end);
  if (end <= 0) end = 1;
  const double scale = picture_width / end;
  std::vector<double> y;
  double bottom = top;
  for (const std::uint32_t count : per_sm) {
    y.push_back(bottom);
    bottom += std::max(lane_height * count, 8.0) + 3;
  }
  std::string legend;
  const double height = bottom + 40 + append_legend(legend, timeline, bottom + 36);
  const double width = picture_left + picture_width + 30;

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"10\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"16\" font-size=\"13\">{3}</text>\n",
      width, height, picture_left, escaped_xml(timeline.title));
  for (std::uint32_t sm = 0; sm < timeline.sms; ++sm) {
    out += fmt::format("<text x=\"4\" y=\"{:.1f}\">SM {}</text>\n",
                       y[sm] + std::max(lane_height, 8.0) / 2 + 4, sm);
  }
  const double step = tick_step(end);
  for (int i = 0; i * step <= end * (1 + 1e-9); ++i) {
    const double x = picture_left + scale * i * step;
    out += fmt::format(
        "<line x1=\"{0:.2f}\" y1=\"{1}\" x2=\"{0:.2f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{0:.2f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n",
        x, top - 4, bottom, bottom + 12, i * step);
  }
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">time in {}{}</text>\n",
                     picture_left + picture_width / 2, bottom + 26, timeline.unit,
                     timeline.unit == "tick" ? "s" : "");
  for (const Bar& bar : bars_of(timeline, lanes, 3 / scale)) {
    const double x = picture_left + scale * bar.start;
    const double wide = scale * (bar.end - bar.start);
    const double above = y[bar.sm] + lane_height * bar.lane;
    const std::string name = escaped_xml(timeline.kernels[bar.kernel]);
    out += fmt::format(
        "<rect class=\"bar\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:g}\" "
        "fill=\"{}\"{}><title>{}: {} block{}{}, {:g} to {:g} {}</title></rect>\n",
        x, above, wide, lane_height - 1, kernel_colour(bar.kernel),
        wide > 3 ? " stroke=\"white\" stroke-width=\"0.5\"" : "", name, bar.blocks,
        bar.blocks == 1 ? "" : "s",
        bar.spans > 1 ? fmt::format(" in {} waves", bar.spans) : std::string(), bar.start, bar.end,
        timeline.unit);
  }
  // One name for all waves of a kernel that follow each other.
  for (const Bar& bar : bars_of(timeline, lanes, end + 1)) {
    const std::string& name = timeline.kernels[bar.kernel];
    const double letters = letter_width * static_cast<double>(name.size());
    if (lane_height < 11 || letters + 4 > scale * (bar.end - bar.start)) continue;
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#111\" "
        "pointer-events=\"none\">{}</text>\n",
        picture_left + scale * (bar.start + bar.end) / 2,
        y[bar.sm] + lane_height * bar.lane + lane_height / 2 + 3, escaped_xml(name));
  }
  return out + legend + "</svg>\n";
}

}  // namespace demarc::report
