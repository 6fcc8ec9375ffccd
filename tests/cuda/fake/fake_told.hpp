// Functions of the driver that callbacks are told of, with their arguments laid out as they see
// them.
#pragma once

#include "fake_state.hpp"
#include "laid_out.hpp"

namespace demarc::fake {

// Carries a call out between its callbacks, unless it was answered.
template <class Work, class... Arguments>
CuResult told(int id, const char* name, Work&& work, const Arguments&... arguments) {
  const auto bytes = laid_out(arguments...);
  return called(id, name, sizeof...(arguments) == 0 ? nullptr : bytes.data(),
                std::forward<Work>(work));
}

}  // namespace demarc::fake
