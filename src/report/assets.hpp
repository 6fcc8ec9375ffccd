// The files a page carries: the chart library, the style and our scripts.
#pragma once

#include <string_view>

namespace demarc::report {

struct PageAssets {
  std::string_view echarts;
  std::string_view style;
  std::string_view page;
  std::string_view heat_map;
  std::string_view charts;
  std::string_view graph;
};

[[nodiscard]] PageAssets page_assets();

}  // namespace demarc::report
