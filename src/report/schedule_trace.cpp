#include <algorithm>
#include <iterator>

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
        out += c;
    }
  }
  return out;
}

// Hues a golden angle apart: neighbours differ.
std::string kernel_colour(std::uint32_t kernel) {
  return fmt::format("hsl({:.0f},60%,{}%)", static_cast<double>(kernel * 222 % 360),
                     55 + kernel % 3 * 8);
}

}  // namespace

std::string schedule_trace(const sim::DispatchTimeline& timeline) {
  TraceWriter trace;
  std::vector<std::uint32_t> per_sm;
  const std::vector<std::uint32_t> lanes = lanes_of(timeline, per_sm);
  for (std::uint32_t sm = 0; sm < timeline.sms; ++sm) {
    trace.process(sm, fmt::format("SM {}", sm));
    for (std::uint32_t lane = 0; lane < per_sm[sm]; ++lane) {
      trace.thread(sm, lane, fmt::format("SM {}", sm));
    }
  }
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const auto& span = timeline.spans[i];
    trace.slice(span.sm, lanes[i], timeline.kernels[span.kernel], span.start, span.end - span.start,
                {{"blocks", fmt::format("{}", span.blocks)}});
  }
  return trace.json();
}

std::string schedule_svg(const sim::DispatchTimeline& timeline) {
  constexpr double left = 60;
  constexpr double width = 1000;
  constexpr double top = 30;
  constexpr double lane_height = 7;
  std::vector<std::uint32_t> per_sm;
  const std::vector<std::uint32_t> lanes = lanes_of(timeline, per_sm);
  double end = 0;
  for (const auto& span : timeline.spans) end = std::max(end, span.end);
  if (end <= 0) end = 1;
  std::vector<double> y;
  double bottom = top;
  for (const std::uint32_t count : per_sm) {
    y.push_back(bottom);
    bottom += lane_height * count + 3;
  }
  fmt::memory_buffer out;
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
                 "font-family=\"sans-serif\" font-size=\"10\">\n"
                 "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
                 "<text x=\"{}\" y=\"16\" font-size=\"13\">{}</text>\n",
                 left + width + 20, bottom + 25, left, escaped_xml(timeline.title));
  for (std::uint32_t sm = 0; sm < timeline.sms; ++sm) {
    fmt::format_to(to, "<text x=\"4\" y=\"{:.1f}\">SM {}</text>\n", y[sm] + lane_height, sm);
  }
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const auto& span = timeline.spans[i];
    fmt::format_to(to,
                   "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
                   "stroke=\"white\" stroke-width=\"0.3\"><title>{}: {} blocks, {:g} to {:g} "
                   "{}</title></rect>\n",
                   left + width * span.start / end, y[span.sm] + lane_height * lanes[i],
                   width * (span.end - span.start) / end, lane_height - 1,
                   kernel_colour(span.kernel), escaped_xml(timeline.kernels[span.kernel]),
                   span.blocks, span.start, span.end, timeline.unit);
  }
  for (int i = 0; i <= 10; ++i) {
    fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n",
                   left + width * i / 10, bottom + 12, end * i / 10);
  }
  fmt::format_to(to, "<text x=\"4\" y=\"{:.1f}\">{}</text>\n</svg>\n", bottom + 12, timeline.unit);
  return fmt::to_string(out);
}

}  // namespace demarc::report
