// A whole result compared with a kept one: a difference is read before it is kept
// (DEMARC_UPDATE_GOLDEN=1 writes the files anew).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"

namespace demarc::test {

// Nine digits: what compilers agree on.
inline Json rounded(const Json& value) {
  if (value.is_number_float()) return std::stod(fmt::format("{:.9g}", value.get<double>()));
  if (!value.is_structured()) return value;
  Json result = value;
  for (auto& item : result) item = rounded(item);
  return result;
}

// `file` counts from the folder tests.
inline void expect_kept(const std::string& file, const std::string& text) {
  const auto path = source_dir() / "tests" / file;
  if (std::getenv("DEMARC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(path, text));
  }
  const auto kept = read_file(path);
  ASSERT_TRUE(kept) << kept.error().message;
  const auto differs = std::mismatch(text.begin(), text.end(), kept->begin(), kept->end()).first;
  const auto at = static_cast<std::size_t>(differs - text.begin());
  EXPECT_TRUE(text == *kept) << file << " differs at character " << at << ": ..."
                             << text.substr(at < 60 ? 0 : at - 60, 200);
}

}  // namespace demarc::test
