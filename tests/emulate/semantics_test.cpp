// Every instruction the emulator accepts, run as a kernel of its own, against an evaluation that
// shares no code with it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "instructions/instruction_runs.hpp"
#include "sanitized.hpp"

namespace demarc::emulate::test {
namespace {

std::string opcode_of(const InstructionCase& entry) {
  return std::string(ptx::info(ptx::find_opcode(mnemonic_of(entry)).opcode).name);
}

const std::map<std::string, std::vector<const InstructionCase*>>& cases_by_opcode() {
  static const auto cases = [] {
    std::map<std::string, std::vector<const InstructionCase*>> out;
    for (const InstructionCase& entry : all_cases()) out[opcode_of(entry)].push_back(&entry);
    return out;
  }();
  return cases;
}

std::vector<std::string> opcode_names() {
  std::vector<std::string> names;
  for (const auto& [name, cases] : cases_by_opcode()) names.push_back(name);
  return names;
}

class Semantics : public testing::TestWithParam<std::string> {};

TEST_P(Semantics, every_lane_gives_what_an_independent_evaluation_gives) {
  std::size_t wrong = 0;
  for (const InstructionCase* entry : cases_by_opcode().at(GetParam())) {
    const std::string said = run_case(*entry, inputs_for(*entry, 1024, 1), 0, false);
    if (said.empty()) continue;
    ADD_FAILURE() << said;
    if (++wrong == 20) break;
  }
}

// Operands that are the same in all threads have code of their own, and so have all their
// combinations; a destination all of whose operands are the same, too. Under a sanitizer, which
// makes this the longest test there, each case has one combination, in turn.
TEST_P(Semantics, operands_that_all_lanes_share_give_the_same) {
  std::size_t wrong = 0;
  std::size_t turn = 0;
  for (const InstructionCase* entry : cases_by_opcode().at(GetParam())) {
    const unsigned most = 1U << std::min<std::size_t>(entry->sources.size(), 3);
    const unsigned chosen = 1 + static_cast<unsigned>(turn++ % std::max(most - 1, 1U));
    for (unsigned uniform = 1; uniform < most; ++uniform) {
      if (demarc::test::sanitized && uniform != chosen) continue;
      const std::string said =
          run_case(*entry, inputs_for(*entry, 33, 2 + uniform), uniform, false);
      if (said.empty()) continue;
      ADD_FAILURE() << "shared operands " << uniform << ": " << said;
      if (++wrong == 20) return;
    }
  }
}

TEST_P(Semantics, lanes_that_do_not_execute_keep_their_destination) {
  std::size_t wrong = 0;
  for (const InstructionCase* entry : cases_by_opcode().at(GetParam())) {
    const std::string said = run_case(*entry, inputs_for(*entry, 96, 3), 0, true);
    if (said.empty()) continue;
    ADD_FAILURE() << said;
    if (++wrong == 20) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Opcodes, Semantics, testing::ValuesIn(opcode_names()),
                         [](const testing::TestParamInfo<std::string>& given) {
                           std::string name = given.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

RC_GTEST_PROP(RandomOperands, give_what_an_independent_evaluation_gives, (std::uint64_t seed)) {
  const auto& cases = all_cases();
  const InstructionCase& entry = cases[*rc::gen::inRange<std::size_t>(0, cases.size())];
  const auto uniform = *rc::gen::inRange(0U, 1U << std::min<std::size_t>(entry.sources.size(), 3));
  const bool masked = *rc::gen::arbitrary<bool>();
  RC_ASSERT(run_case(entry, inputs_for(entry, 64, seed), uniform, masked) == "");
}

}  // namespace
}  // namespace demarc::emulate::test
