// What a service manager, such as systemd, is told.
#pragma once

#include <string_view>

namespace demarc::serve {

// One packet, such as "READY=1", to the socket that NOTIFY_SOCKET names (sd_notify(3)). Nothing
// where the variable is not set.
void tell_service_manager(std::string_view state);

}  // namespace demarc::serve
