// What comes first on the page of an interference study.
#pragma once

#include "demarc/report/page.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// What a mode does, in words: "TPC masks: …; memory in colours: …".
[[nodiscard]] std::string meaning_of_mode(const study::Mode& mode);

// The mode to use, what the two measures are, and both of every mode that ran: the worst slowdown
// and the largest overhead. Then what did not run.
void add_isolate_result(Page& page, const study::StudyResult& result);

}  // namespace demarc::report
