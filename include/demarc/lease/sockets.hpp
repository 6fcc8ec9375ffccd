// Where a server of a card puts its socket, and where clients look for it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::lease {

// Names the socket to servers and clients that were told no path.
inline constexpr const char* socket_variable = "DEMARC_SOCKET";
// The socket of the server that systemd starts (packaging/demarc.service.in).
inline constexpr const char* unit_socket = "/run/demarc/demarc.sock";

// $XDG_RUNTIME_DIR, or /run if that is not set.
[[nodiscard]] std::string runtime_folder();
// Where a server listens that was told no path: $DEMARC_SOCKET; else demarc.sock in
// runtime_folder().
[[nodiscard]] std::string default_socket();

// Where servers listen if $DEMARC_SOCKET is not set, in the order in which clients look there: the
// user's own, the unit's, and the one that root starts by hand. Without $XDG_RUNTIME_DIR there is
// no place of the user.
[[nodiscard]] std::vector<std::string> socket_places();
// The first of these places at which there is a socket. A socket that a killed server has left
// counts, because a client cannot tell it from one that is busy; connecting to it says so.
// missing_capability, too, if it belongs to a user other than this one and root.
[[nodiscard]] Result<std::string> first_socket(std::span<const std::string> places);
// What clients connect to: the path that they were told; else $DEMARC_SOCKET; else the first
// one of socket_places() that exists.
[[nodiscard]] Result<std::string> find_socket(const std::string& told = {});

}  // namespace demarc::lease
