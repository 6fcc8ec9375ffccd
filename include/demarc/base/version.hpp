// The version of the library and the source revision from which it was built. Both are part of
// every result's context.
#pragma once

namespace demarc {

[[nodiscard]] const char* version();   // "0.1.0"
[[nodiscard]] const char* revision();  // short commit id, "unknown" outside a checkout

}  // namespace demarc
