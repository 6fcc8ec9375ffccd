// Assembles blocks, scripts and style into one HTML page that fetches nothing.
#include "demarc/report/page.hpp"

#include <fmt/format.h>

#include <array>
#include <ctime>

#include "assets.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/version.hpp"
#include "figure_json.hpp"

namespace demarc::report {
namespace {

const char* tone_name(Tone tone) {
  switch (tone) {
    case Tone::good:
      return "good";
    case Tone::warning:
      return "warning";
    case Tone::bad:
      return "bad";
    case Tone::plain:
      break;
  }
  return "";
}

// JSON that may stand inside a <script> element: no "</script", no "<!--", no line separators that
// older engines refuse.
std::string script_safe(const Json& value) {
  const std::string text = json_text(value);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') {
      out += "\\u003c";
    } else if (text.compare(i, 3, "\xe2\x80\xa8") == 0 || text.compare(i, 3, "\xe2\x80\xa9") == 0) {
      out += text[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// "2026-03-01 14:05 UTC"
std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts)};
}

}  // namespace

Page::Page(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void Page::add(std::string block) {
  blocks_.push_back(std::move(block));
}

void Page::heading(const std::string& text, int level) {
  add(script_safe({{"kind", "heading"}, {"text", text}, {"level", level}}));
}

void Page::prose(const std::string& text) {
  add(script_safe({{"kind", "prose"}, {"text", text}}));
}

void Page::key_figures(const std::vector<KeyFigure>& figures) {
  Json list = Json::array();
  for (const KeyFigure& figure : figures) {
    list.push_back({{"name", figure.name},
                    {"value", figure.value},
                    {"note", figure.note},
                    {"tone", tone_name(figure.tone)},
                    {"meaning", figure.meaning},
                    {"second", figure.second},
                    {"second_note", figure.second_note},
                    {"second_tone", tone_name(figure.second_tone)}});
  }
  add(script_safe({{"kind", "key_figures"}, {"figures", std::move(list)}}));
}

void Page::table(const Table& table) {
  Json columns = Json::array();
  for (const Column& column : table.columns)
    columns.push_back({{"name", column.name}, {"right", column.align == Align::right}});
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const Cell cell = c < row.size() ? row[c] : Cell();
      Json value = {{"t", cell.text}};
      if (cell.number) value["n"] = *cell.number;
      if (cell.tone != Tone::plain) value["c"] = tone_name(cell.tone);
      if (!cell.meaning.empty()) value["d"] = cell.meaning;
      if (!cell.opens.empty()) value["r"] = cell.opens;
      cells.push_back(std::move(value));
    }
    rows.push_back(std::move(cells));
  }
  add(script_safe({{"kind", "table"},
                   {"caption", table.caption},
                   {"columns", std::move(columns)},
                   {"rows", std::move(rows)}}));
}

void Page::heat_map(const HeatMap& map) {
  add(script_safe(heat_map_json(map)));
}
void Page::heat_maps(const HeatMaps& maps) {
  add(script_safe(heat_maps_json(maps)));
}
void Page::chart(const Chart& chart) {
  add(script_safe(chart_json(chart)));
}
void Page::distribution(const Distribution& distribution) {
  add(script_safe(distribution_json(distribution)));
}
void Page::runs(const Runs& runs) {
  add(script_safe(runs_json(runs)));
}

void Page::csv(const std::string& file, const std::string& text) {
  add(script_safe({{"kind", "csv"}, {"file", file}, {"text", text}}));
}

void Page::link(const std::string& file, const std::string& text) {
  add(script_safe({{"kind", "link"}, {"file", file}, {"text", text}}));
}

void Page::graph(const Graph& graph) {
  add(script_safe(graph_json(graph)));
}
void Page::timeline(const Timeline& timeline) {
  add(script_safe(timeline_json(timeline)));
}

void Page::svg(const std::string& svg, const std::string& caption) {
  add(script_safe({{"kind", "svg"}, {"svg", svg}, {"caption", caption}}));
}

void Page::code(const std::string& text, const std::string& caption) {
  add(script_safe({{"kind", "code"}, {"text", text}, {"caption", caption}}));
}

void Page::context(const Context& context) {
  Json rows = Json::array();
  const auto row = [&rows](const std::string& name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, value});
  };
  row("command", context.command);
  for (const ContextDevice& device : context.devices) {
    row(device.use.empty() ? "device" : "device of " + device.use, device.name);
  }
  row("driver", context.driver);
  row("build", context.build);
  row("seed", context.seed);
  for (const auto& [name, value] : context.more) row(name, value);
  row("date", time_now());
  row("demarc", fmt::format("{} ({})", version(), revision()));
  add(script_safe({{"kind", "context"}, {"rows", std::move(rows)}}));
}

void Page::begin_section(const std::string& title, bool folded) {
  add(script_safe({{"kind", "begin"}, {"title", title}, {"folded", folded}}));
}

void Page::end_section() {
  add(R"({"kind":"end"})");
}

std::string Page::html() const {
  const PageAssets assets = page_assets();
  std::string out;
  std::size_t size = assets.echarts.size() + 100000;
  for (const std::string& block : blocks_) size += block.size() + 2;
  out.reserve(size);
  out += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // Nothing may be fetched, whatever the content says.
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out +=
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n";
  out += "<title>" + html_text(title_) + "</title>\n<style>\n";
  out += assets.style;
  out +=
      "</style>\n</head>\n<body>\n<noscript>This page draws its figures with JavaScript, which is "
      "switched off.</noscript>\n";
  out += "<script type=\"application/json\" id=\"demarc-data\">\n{\"title\":";
  out += script_safe(title_) + ",\"subtitle\":" + script_safe(subtitle_) + ",\"blocks\":[\n";
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (i > 0) out += ",\n";
    out += blocks_[i];
  }
  out += "\n]}\n</script>\n";
  for (const std::string_view script :
       {assets.echarts, assets.page, assets.heat_map, assets.charts, assets.graph}) {
    out += "<script>\n";
    out += script;
    out += "</script>\n";
  }
  out += "<script>demarc.start();</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace demarc::report
