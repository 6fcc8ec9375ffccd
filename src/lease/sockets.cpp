// Decides which socket a server listens at and which one a client connects to.
#include "demarc/lease/sockets.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace demarc::lease {
namespace {

constexpr const char* system_folder = "/run";
constexpr const char* socket_name = "/demarc.sock";

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

std::string folder_of_user() {
  return value_of("XDG_RUNTIME_DIR");
}

}  // namespace

std::string runtime_folder() {
  const std::string folder = folder_of_user();
  return folder.empty() ? system_folder : folder;
}

std::string default_socket() {
  const std::string path = value_of(socket_variable);
  return path.empty() ? runtime_folder() + socket_name : path;
}

std::vector<std::string> socket_places() {
  std::vector<std::string> places;
  if (const std::string folder = folder_of_user(); !folder.empty()) {
    places.push_back(folder + socket_name);
  }
  places.emplace_back(unit_socket);
  places.push_back(std::string(system_folder) + socket_name);
  return places;
}

Result<std::string> first_socket(std::span<const std::string> places) {
  std::string looked;
  for (const std::string& place : places) {
    // A link may lead to a socket of anyone.
    struct stat status {};
    if (::lstat(place.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
      if (status.st_uid == 0 || status.st_uid == ::geteuid()) return place;
      return missing_capability(
          "'{}' is a socket of user {}, neither yours nor root's: name the socket that you mean by "
          "--socket or {}",
          place, status.st_uid, socket_variable);
    }
    looked += (looked.empty() ? "" : ", ") + place;
  }
  return missing_capability(
      "there is no socket of demarc serve at {}: start a server, or name its socket by --socket or "
      "{}",
      looked, socket_variable);
}

Result<std::string> find_socket(const std::string& told) {
  if (!told.empty()) return told;
  if (std::string path = value_of(socket_variable); !path.empty()) return path;
  return first_socket(socket_places());
}

}  // namespace demarc::lease
