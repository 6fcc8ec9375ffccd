// The pages of the demonstration: an interference study, and the locality studies of the kernels of
// the paper (KNOM Review 2022, Table 2).
#pragma once

#include <span>

#include "demarc/report/demo.hpp"
#include "demarc/report/locality_page.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// Table 2 of the paper, and what its text says of the results. A workload of two kernels is two
// rows here and one there: the paper adds their loads up.
struct PaperRow {
  const char* workload;
  const char* kernel;
  std::uint32_t grid_x, grid_y, block_x, block_y, loads;
  const char* remark;  // of a workload's first row
  const char* place;   // where the paper says it
};
[[nodiscard]] std::span<const PaperRow> paper_rows();

// An error where the kernel was launched with another grid than the paper's.
[[nodiscard]] Result<void> check_grid(const LocalityStudy& study, const PaperRow& row);

// The locality of each kernel on `device`, pages split over `demo_gpus`.
inline constexpr std::uint32_t demo_gpus = 4;
[[nodiscard]] Result<std::vector<LocalityStudy>> study_rows(std::span<const PaperRow> rows,
                                                            const std::string& device,
                                                            const Progress& progress);

// `studies` are those of the first rows of paper_rows(), in this order, and not empty.
[[nodiscard]] Demo demo_of(const DemoOptions& options, const study::StudyResult& isolate,
                           const std::vector<LocalityStudy>& studies);

}  // namespace demarc::report
