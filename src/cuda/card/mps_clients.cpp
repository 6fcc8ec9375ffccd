#include "demarc/cuda/mps_clients.hpp"

#include <fmt/format.h>

#include <sstream>

namespace demarc::cuda {
namespace {

constexpr double answer_seconds = 20;

// The numbers of processes that the daemon answers with; none when it does not answer.
std::vector<pid_t> ask_daemon(const Environment& environment, const std::string& question) {
  ProcessOptions options;
  options.set = environment;
  options.output = ChildStream::kept;
  options.error = ChildStream::null;
  auto asked = Process::spawn({"/bin/sh", "-c", fmt::format("echo {} | {}", question, mps_control)},
                              options);
  if (!asked || !asked->wait(answer_seconds)) return {};
  std::istringstream words(asked->kept());
  std::vector<pid_t> numbers;
  for (pid_t number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace

void end_mps_clients(const Environment& daemon, const std::function<bool(pid_t client)>& chosen) {
  for (const pid_t server : ask_daemon(daemon, "get_server_list")) {
    for (const pid_t client : ask_daemon(daemon, fmt::format("get_client_list {}", server))) {
      if (!chosen(client)) continue;
      static_cast<void>(ask_daemon(daemon, fmt::format("terminate_client {} {}", server, client)));
    }
  }
}

}  // namespace demarc::cuda
