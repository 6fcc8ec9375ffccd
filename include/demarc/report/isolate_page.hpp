// The page of an interference study: which mode to use, which kernels slow each other under each
// mode, the overhead of each partition, and the runs.
#pragma once

#include <string>

#include "demarc/report/page.hpp"

namespace demarc::study {
struct StudyResult;
}

namespace demarc::report {

// Result, slowdowns, overheads, forecast and runs of a study, as blocks of a page. A click on a
// cell shows its runs, and `command`, which ran the study, for that cell alone.
void add_isolate_study(Page& page, const study::StudyResult& result, const std::string& command);

// "card in 2 parts: answers of a model, not measurements"
[[nodiscard]] std::string study_subtitle(const study::StudyResult& result);
// The device that the study comes from. On a page with several devices, `use` says what this one is
// for.
[[nodiscard]] ContextDevice study_device(const study::StudyResult& result,
                                         const std::string& use = {});
[[nodiscard]] Context study_context(const study::StudyResult& result, const std::string& command);

// One self-contained HTML page.
[[nodiscard]] std::string isolate_page(const study::StudyResult& result,
                                       const std::string& command);

}  // namespace demarc::report
