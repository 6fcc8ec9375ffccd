// Which packages a Python program imports, as its own interpreter finds them. No package is
// imported, and nothing of the program runs.
#pragma once

#include <string>
#include <vector>

#include "demarc/exec/program_files.hpp"

namespace demarc::cuda {

// Whether a program's name is that of Python's interpreter: "python3", "python3.11".
[[nodiscard]] bool is_python(const std::string& program);

// Asks `interpreter` about the script, module or text that stands in its arguments, and about other
// arguments that are Python files. Adds to `found`: the interpreter's executable, packages with the
// libraries in their folders, what is missing, and what could not be looked at.
void add_python_packages(const std::string& interpreter, const std::vector<std::string>& arguments,
                         double limit_seconds, ProgramFiles& found);

}  // namespace demarc::cuda
