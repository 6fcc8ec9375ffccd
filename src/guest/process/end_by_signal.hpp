// A client of MPS that a signal ends while its kernels run takes the work of all others along
// (docs/measurements/programs.md). So a signal that ends a tenant's process by default waits until
// demarc serve has ended what the process has on the card.
#pragma once

#include <string>

#include "demarc/base/result.hpp"

namespace demarc::cuda::end_by_signal {

// Once a process, before it has work on the card: takes all signals that are at their default and
// end a process by it. SIGKILL cannot be taken. A program that sets a signal's disposition later
// has it as it says. `socket`: of demarc serve.
[[nodiscard]] Result<void> take_signals(const std::string& socket);

// Returns no more once such a signal has come: what the driver still says would be of work that was
// ended.
void hold();

}  // namespace demarc::cuda::end_by_signal
