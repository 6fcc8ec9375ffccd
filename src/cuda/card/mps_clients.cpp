// Asks the control program of MPS for its clients, and ends what some of them have on the card.
#include "demarc/cuda/mps_clients.hpp"

#include <fmt/format.h>

#include <sstream>

namespace demarc::cuda {
namespace {

constexpr double answer_seconds = 20;

Result<std::string> ask_daemon(const Environment& environment, const std::string& question) {
  ProcessOptions options;
  options.set = environment;
  options.output = ChildStream::kept;
  options.error = ChildStream::null;
  DEMARC_TRY(Process asked,
             Process::spawn({"/bin/sh", "-c", fmt::format("echo {} | {}", question, mps_control)},
                            options));
  const auto ended = asked.wait(answer_seconds);
  if (ended && ended->exit_code == 0) return asked.kept();
  return check_failed("the daemon of MPS does not answer '{}': {}", question,
                      ended ? ended->words() : fmt::format("no word in {} s", answer_seconds));
}

// The numbers of processes that the daemon answers with.
Result<std::vector<pid_t>> ask_for_processes(const Environment& environment,
                                             const std::string& question) {
  DEMARC_TRY(const std::string answer, ask_daemon(environment, question));
  std::istringstream words(answer);
  std::vector<pid_t> numbers;
  for (pid_t number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

// Where it has, the answer is 0, seen on driver 580; else words, and a 1.
Result<void> end_client(const Environment& environment, pid_t server, pid_t client) {
  const std::string question = fmt::format("terminate_client {} {}", server, client);
  DEMARC_TRY(const std::string answer, ask_daemon(environment, question));
  if (answer == "0\n") return {};
  return check_failed("the daemon of MPS answers '{}' with '{}'; 0 was expected", question, answer);
}

}  // namespace

Result<void> end_mps_clients(const Environment& daemon,
                             const std::function<bool(pid_t client)>& chosen) {
  Result<void> all;
  DEMARC_TRY(const auto servers, ask_for_processes(daemon, "get_server_list"));
  for (const pid_t server : servers) {
    DEMARC_TRY(const auto clients,
               ask_for_processes(daemon, fmt::format("get_client_list {}", server)));
    for (const pid_t client : clients) {
      if (!chosen(client)) continue;
      if (auto ended = end_client(daemon, server, client); !ended && all) all = std::move(ended);
    }
  }
  return all;
}

}  // namespace demarc::cuda
