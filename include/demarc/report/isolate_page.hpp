// The page of an interference study: who slows whom under each mode, what each partition costs,
// the distribution of every run, and a recommendation in words.
#pragma once

#include <string>

namespace demarc::study {
struct StudyResult;
}

namespace demarc::report {

class Page;

// Summary, variation table, heat maps, costs and distributions of a study, as blocks of a page.
void add_isolate_study(Page& page, const study::StudyResult& result);

// One self-contained HTML page.
[[nodiscard]] std::string isolate_page(const study::StudyResult& result,
                                       const std::string& command);

}  // namespace demarc::report
