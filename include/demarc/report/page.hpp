// One self-contained HTML page. It needs no network and serves light and dark modes, wide windows
// and phones. Blocks appear in the order in which they are added. Figures below the first screen
// are drawn when they come into view. The command of the context stands on top, and each table can
// be saved as CSV.
//
//   Page page("Locality of hotspot", "43x43 blocks of 16x16 threads");
//   page.context({.command = "demarc locality ..."});
//   page.heading("Between blocks");
//   page.heat_map({.title = "Inter-block map", .rows = 3, .columns = 3, .cells = {{0, 1, 4.0}}});
//   DEMARC_CHECK(write_file("index.html", page.html()));
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "demarc/report/figures.hpp"
#include "demarc/report/table.hpp"

namespace demarc::report {

// A figure in large letters. `meaning` explains its name. A second figure may stand below it.
struct KeyFigure {
  std::string name = {};
  std::string value = {};
  std::string note = {};
  Tone tone = Tone::plain;
  std::string meaning = {};
  std::string second = {};
  std::string second_note = {};
  Tone second_tone = Tone::plain;
};

// A device of a page, and which results come from it: {"GTX 1080 (simulated)", "the slowdowns"}.
struct ContextDevice {
  std::string name = {};
  std::string use = {};  // empty if the page has one device
};

// Where the results come from. Empty members are left out; the date, and version and revision of
// the program, are always shown.
struct Context {
  std::string command = {};
  std::vector<ContextDevice> devices = {};
  std::string driver = {};
  std::string build = {};
  std::string seed = {};
  std::vector<std::pair<std::string, std::string>> more = {};
};

class Page {
 public:
  explicit Page(std::string title, std::string subtitle = {});

  // Level 2 headings and sections appear in the page's contents; level 3 and 4 structure the text.
  void heading(const std::string& text, int level = 2);
  // Plain text: blank lines separate paragraphs, `backticks` mark code, lines that start with "- "
  // are list items. Captions, notes and cells know the backticks too.
  void prose(const std::string& text);
  void key_figures(const std::vector<KeyFigure>& figures);
  void table(const Table& table);
  void heat_map(const HeatMap& map);
  void heat_maps(const HeatMaps& maps);
  void chart(const Chart& chart);
  void distribution(const Distribution& distribution);
  void runs(const Runs& runs);  // shown by a click (Cell::opens, HeatMap::opens)
  // A button at the top saves `text` as a file of this name.
  void csv(const std::string& file, const std::string& text);
  // A link at the top to another file of the same folder.
  void link(const std::string& file, const std::string& text);
  void graph(const Graph& graph);
  void timeline(const Timeline& timeline);
  void svg(const std::string& svg, const std::string& caption = {});  // shown as an image
  void code(const std::string& text, const std::string& caption = {});
  void context(const Context& context);

  // What is added until end_section() lies in a section that can be folded. Sections nest.
  void begin_section(const std::string& title, bool folded = false);
  void end_section();

  // The text of the page. Open sections are closed.
  [[nodiscard]] std::string html() const;

 private:
  void add(std::string block);

  std::string title_;
  std::string subtitle_;
  std::vector<std::string> blocks_;  // JSON
};

}  // namespace demarc::report
