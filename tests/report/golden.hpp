// What a page carries, compared with what is kept in tests/report/golden.
#pragma once

#include <cmath>

#include "kept.hpp"

namespace demarc::report {

using test::rounded;

inline Json data_of(const std::string& html) {
  const std::string open = "id=\"demarc-data\">";
  const auto start = html.find(open) + open.size();
  return Json::parse(html.substr(start, html.find("</script>", start) - start));
}

inline std::vector<Json> blocks_in(const std::string& html) {
  return data_of(html)["blocks"];
}

// The blocks of a page, one per line, but for the context's last two rows: date and revision.
inline std::string blocks_of(const std::string& html) {
  const Json data = data_of(html);
  std::string text = json_text(Json{data["title"], data["subtitle"]}) + "\n";
  for (Json block : data["blocks"]) {
    if (block["kind"] == "context")
      block["rows"].erase(block["rows"].end() - 2, block["rows"].end());
    text += json_text(rounded(block)) + "\n";
  }
  return text;
}

inline void expect_golden(const std::string& name, const std::string& text) {
  test::expect_kept("report/golden/" + name, text);
}

}  // namespace demarc::report
