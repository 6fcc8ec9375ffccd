// What the pages of dispatch studies have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/report/page.hpp"
#include "demarc/sim/dispatch/tb_study.hpp"

namespace demarc::report {

// "1.40 ± 0.02", three digits of the mean; one run gives no interval.
[[nodiscard]] Cell estimate_cell(const sim::Estimate& e, std::size_t runs);
[[nodiscard]] std::string_view mix_title(sim::TbMix mix);

// A section, closed at first, with a row for each cell of `mix` that has runs, with all its
// figures.
void add_all_numbers(Page& page, const std::vector<sim::TbCell>& cells, sim::TbMix mix);

// Command, seeds and what was simulated: at a page's end.
void add_study_context(Page& page, const sim::TbStudy& study, const std::string& command);

}  // namespace demarc::report
