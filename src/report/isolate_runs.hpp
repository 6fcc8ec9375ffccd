// The runs behind each number of an interference study, which a click on its page shows.
#pragma once

#include <optional>
#include <string>

#include "demarc/report/page.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

// The key of a cell's runs: "mask|va|mm", and "mask|va|idle" next to idle neighbours.
[[nodiscard]] std::string runs_key(const study::StudyResult& result, std::size_t mode,
                                   std::size_t victim, std::optional<std::size_t> aggressor);

// `command`, which ran a whole study, with the options of one of its cells in the place of those of
// all cells and of its outputs. A cell with a command as aggressor, and a line that does not run
// demarc isolate, give the line as it is.
[[nodiscard]] std::string command_of_cell(const std::string& command,
                                          const study::StudyResult& result,
                                          const study::Cell& cell);

// The runs of each cell that counts, with those next to idle neighbours.
void add_runs(Page& page, const study::StudyResult& result, const std::string& command);

}  // namespace demarc::report
