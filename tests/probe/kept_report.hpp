// A whole report as JSON, compared with the one that is kept in tests/probe/golden.
#pragma once

#include "demarc/base/hash.hpp"
#include "demarc/probe/probe.hpp"
#include "kept.hpp"

namespace demarc::probe {

// How far each step was said to be at its first and its last mention.
class ProgressSeen {
 public:
  [[nodiscard]] Progress note() {
    return [this](double share, std::string_view what) {
      EXPECT_GE(share, furthest_) << what;
      EXPECT_LE(share, 1) << what;
      furthest_ = share;
      auto& steps = seen_[std::string(what)];
      if (steps.size() == 2) steps.erase(1);
      steps.push_back(share);
    };
  }
  [[nodiscard]] const Json& seen() const { return seen_; }

 private:
  double furthest_ = 0;
  Json seen_ = Json::object();
};

// One part a line, without what differs from run to run; of the slices of all chunks a digest.
inline void expect_kept_report(const std::string& name, const MemoryReport& report,
                               const ProgressSeen& progress = {}) {
  Json json = test::rounded(Json::parse(report_to_json(report)));
  for (const char* left_out : {"version", "revision", "seconds"}) json.erase(left_out);
  if (json.contains("pages")) json["pages"].erase("seconds");
  if (json.contains("slices")) {
    const auto slices = json["slices"]["slice_of_chunk"].get<std::vector<std::uint32_t>>();
    json["slices"]["slice_of_chunk"] = hash_of(std::as_bytes(std::span(slices)));
  }
  std::string text;
  for (const auto& [part, value] : json.items()) {
    if (part != "verdict") {
      text += part + ": " + json_text(value) + "\n";
      continue;
    }
    for (std::string sentence : value) {
      const auto at = sentence.find(" pages in ");  // and then seconds
      if (at != std::string::npos) sentence.erase(at, sentence.find(',', at) - at);
      text += "- " + sentence + "\n";
    }
  }
  for (const auto& [step, shares] : progress.seen().items()) {
    text += "progress, " + step + ": " + json_text(test::rounded(shares)) + "\n";
  }
  test::expect_kept("probe/golden/" + name + ".txt", text);
}

}  // namespace demarc::probe
