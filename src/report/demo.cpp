// Runs the demonstration; demo_page.cpp makes its page.
#include "demarc/report/demo.hpp"

#include <filesystem>
#include <system_error>

#include "demarc/device/device.hpp"
#include "demarc/workload/workload.hpp"
#include "demo_page.hpp"
#include "isolate_demo.hpp"

namespace demarc::report {

Result<std::vector<LocalityStudy>> study_rows(std::span<const PaperRow> rows,
                                              const std::string& device, const Progress& progress) {
  std::vector<LocalityStudy> studies;
  for (const PaperRow& row : rows) {
    report_progress(progress,
                    static_cast<double>(studies.size()) / static_cast<double>(rows.size()),
                    row.kernel);
    DEMARC_TRY(const gpu::Launch launch, workload::instance(row.workload));
    DEMARC_TRY(const std::string ptx, workload::ptx_text(launch, 90));
    locality::Options options;
    options.kernel = row.kernel;
    DEMARC_TRY(LocalityStudy study,
               study_locality(ptx, launch.ptx, launch, options, device, demo_gpus));
    study.name = row.workload;
    DEMARC_CHECK(check_grid(study, row));
    studies.push_back(std::move(study));
  }
  return studies;
}

std::vector<std::string> name_pages(const std::string& html, std::string& locality_html,
                                    DemoOptions& options) {
  namespace fs = std::filesystem;
  const fs::path first(html);
  std::error_code ignored;
  const fs::file_type kind = fs::status(first, ignored).type();
  const bool file =
      html != "-" && (kind == fs::file_type::regular || kind == fs::file_type::not_found);
  if (locality_html.empty() && file) {
    const std::string name = first.stem().string() + "-locality" + first.extension().string();
    locality_html = (first.parent_path() / name).string();
  }
  std::vector<std::string> files;
  if (html != "-") files.push_back(html);
  if (!locality_html.empty() && locality_html != "-") files.push_back(locality_html);
  const fs::path second(locality_html);
  if (files.size() == 2 && first.parent_path() == second.parent_path()) {
    options.interference_link = first.filename().string();
    options.locality_link = second.filename().string();
  }
  return files;
}

Result<Demo> run_demo(const DemoOptions& options, const Progress& progress) {
  const Progress first = [&](double share, std::string_view what) {
    report_progress(progress, 0.6 * share, what);
  };
  const Progress second = [&](double share, std::string_view what) {
    report_progress(progress, 0.6 + 0.4 * share, what);
  };
  // What was given is looked at before half a minute's work.
  DEMARC_TRY(const study::Plan plan, isolate_demo_plan(options));
  DEMARC_TRY(const gpu::Device described, described_device(options.device));
  const std::string missing = missing_for_prediction(described);
  if (!missing.empty()) return invalid_input("--device {}: {}", options.device, missing);
  DEMARC_TRY(const study::StudyResult isolate, run_isolate_demo(plan, first));
  DEMARC_TRY(const std::vector<LocalityStudy> studies,
             study_rows(paper_rows(), options.device, second));
  report_progress(progress, 1, "writing the page");
  return demo_of(options, isolate, studies);
}

}  // namespace demarc::report
