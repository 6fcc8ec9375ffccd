// The page of an interference study: who slows whom under each mode, what each partition costs,
// the distribution of every run, and which mode to use.
#pragma once

#include <string>

#include "demarc/report/page.hpp"

namespace demarc::study {
struct StudyResult;
}

namespace demarc::report {

// Result, slowdowns, heat maps, prices, forecast and distributions of a study, as blocks of a page.
void add_isolate_study(Page& page, const study::StudyResult& result);

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
