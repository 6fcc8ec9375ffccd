// A locality study of one launch (analysis, predicted hit rates, page maps), as text, as JSON and
// as a page.
#pragma once

#include <string>
#include <vector>

#include "demarc/device/device.hpp"
#include "demarc/locality/analyse.hpp"
#include "demarc/locality/pages.hpp"
#include "demarc/locality/predict.hpp"
#include "demarc/report/page.hpp"

namespace demarc::report {

// What the degree of sharing is, in a sentence.
inline constexpr const char* degree_of_sharing_words =
    "Degree of sharing: the share of the accesses of two blocks, or of two threads, that goes to "
    "places which both touch. It is taken over all pairs of those that share at all: 0 is none, 1 "
    "is all.";

// The most cells of a map that a page shows. A larger map has several blocks per row.
inline constexpr std::uint64_t max_map_cells = 1U << 18U;

struct LocalityStudy {
  std::string name;  // name of the launch or the file
  locality::Analysis analysis;
  std::string device;
  std::uint64_t seed = 1;  // seed of the launch's random contents
  locality::Sensitivity sensitivity;
  std::string no_prediction;               // why `sensitivity` is not filled in; empty if it is
  std::vector<locality::PageSplit> pages;  // for 4 KiB, 64 KiB and 2 MiB; empty for one GPU
};

// `ptx` is the module's text, `device` as in --device (simulated ones only).
[[nodiscard]] Result<LocalityStudy> study_locality(
    const std::string& ptx, const std::string& ptx_name, const gpu::Launch& launch,
    const locality::Options& options, const std::string& device, std::uint32_t gpus = 1);

// The simulated device that --device names.
[[nodiscard]] Result<gpu::Device> described_device(std::string_view device);
// What is missing in a device's description for a prediction of its caches; empty if nothing is.
[[nodiscard]] std::string missing_for_prediction(const gpu::Device& device);
// A remark on predicted rates that do not cover the whole launch; empty if they do.
[[nodiscard]] std::string incomplete_prediction(const LocalityStudy& study);
[[nodiscard]] std::string locality_text(const LocalityStudy& study);
// JSON with the keys of locality::analysis_json, and "prediction" and "pages".
[[nodiscard]] std::string locality_json(const LocalityStudy& study, bool with_maps);
[[nodiscard]] std::string locality_page(const LocalityStudy& study, const std::string& command);

// Tables, maps, trees and prediction of a study as blocks of a page.
void add_locality_summary(Page& page, const LocalityStudy& study);
void add_locality_maps(Page& page, const LocalityStudy& study);
void add_syntax_trees(Page& page, const LocalityStudy& study);

}  // namespace demarc::report
