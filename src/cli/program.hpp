// The program as a function, for verbs that run others, and its verbs, for those that speak of
// them.
#pragma once

#include <string>
#include <vector>

#include "verb.hpp"

namespace demarc::cli {

// `arguments`: a verb and its own. Once a process; gives the exit code.
int run_arguments(const std::vector<std::string>& arguments);

[[nodiscard]] std::vector<Verb>& registered_verbs();

// What demarc --help says.
[[nodiscard]] std::string program_help();

// Answers demarc completion --words, as the scripts of demarc completion ask; false: it was not
// asked.
[[nodiscard]] bool answers_completion(int argc, char** argv);

}  // namespace demarc::cli
