// Lanes of other widths than the widest, which the other tests use.
#include <gtest/gtest.h>

#include "instructions/instruction_runs.hpp"
#include "not_run.hpp"

namespace demarc::emulate::test {
namespace {

TEST(InstructionSets, every_vector_width_gives_the_same) {
  for (const auto set : {InstructionSet::baseline, InstructionSet::avx2}) {
    if (set > widest_instruction_set()) {
      demarc::test::note_not_run("a processor without it", std::string(to_string(set)));
      continue;
    }
    Options options;
    options.instruction_set = set;
    std::size_t wrong = 0;
    for (const InstructionCase& entry : all_cases()) {
      const std::string said = run_case(entry, inputs_for(entry, 96, 7), 0, false, options);
      if (said.empty()) continue;
      ADD_FAILURE() << to_string(set) << ": " << said;
      if (++wrong == 20) return;
    }
  }
}

}  // namespace
}  // namespace demarc::emulate::test
