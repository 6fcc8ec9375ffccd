// What a page carries, compared with what is kept in tests/report/golden: a difference is read
// before it is kept (DEMARC_UPDATE_GOLDEN=1 writes the files anew).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"

namespace demarc::report {

// Nine digits: what compilers agree on.
inline Json rounded(const Json& value) {
  if (value.is_number_float()) return std::stod(fmt::format("{:.9g}", value.get<double>()));
  if (!value.is_structured()) return value;
  Json result = value;
  for (auto& item : result) item = rounded(item);
  return result;
}

// The blocks of a page, one a line, but for the context, which names the revision.
inline std::string blocks_of(const std::string& html) {
  const std::string open = "id=\"demarc-data\">";
  const auto start = html.find(open) + open.size();
  const Json data = Json::parse(html.substr(start, html.find("</script>", start) - start));
  std::string text = json_text(Json{data["title"], data["subtitle"]}) + "\n";
  for (Json block : data["blocks"]) {
    if (block["kind"] == "context") block["rows"].erase(block["rows"].size() - 1);
    text += json_text(rounded(block)) + "\n";
  }
  return text;
}

inline void expect_golden(const std::string& name, const std::string& text) {
  const auto path = test::source_dir() / "tests" / "report" / "golden" / name;
  if (std::getenv("DEMARC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(path, text));
  }
  const auto kept = read_file(path);
  ASSERT_TRUE(kept) << kept.error().message;
  const auto differs = std::mismatch(text.begin(), text.end(), kept->begin(), kept->end()).first;
  const auto at = static_cast<std::size_t>(differs - text.begin());
  EXPECT_TRUE(text == *kept) << name << " differs at character " << at << ": ..."
                             << text.substr(at < 60 ? 0 : at - 60, 200);
}

}  // namespace demarc::report
