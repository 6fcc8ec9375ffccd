// What libdemarc_blas.so does not run: said once on standard error, by name.
#pragma once

#include <string>

#include "types.hpp"

namespace demarc::blas {

// "demarc: <function>: <why>; ..." with what to do, once per text. Returns not_supported.
Code refuse(const char* function, const std::string& why);
// The same for a function that the library lacks.
Code refuse_lacking(const char* function);
// A line of its own for what the driver refuses. Returns execution_failed.
Code fail(const char* what, int driver_code);

}  // namespace demarc::blas
