// Asks the control program of MPS for its clients, and ends what some of them have on the card.
#include "demarc/card/mps_clients.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <sstream>

namespace demarc::cuda {
namespace {

constexpr double look_seconds = 0.05;

// The numbers of processes that the daemon answers with.
Result<std::vector<pid_t>> ask_for_processes(const Environment& daemon, const std::string& question,
                                             const MpsPatience& patience) {
  DEMARC_TRY(const std::string answer, ask_mps_daemon(daemon, question, patience));
  std::istringstream words(answer);
  std::vector<pid_t> numbers;
  for (pid_t number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

// Where it has, the answer is 0, seen on driver 580; else words, and a 1.
Result<void> end_client(const Environment& daemon, pid_t server, pid_t client,
                        const MpsPatience& patience) {
  const std::string question = fmt::format("terminate_client {} {}", server, client);
  DEMARC_TRY(const std::string answer, ask_mps_daemon(daemon, question, patience));
  if (answer == "0\n") return {};
  return check_failed("the daemon of MPS answers '{}' with '{}'; 0 was expected", question, answer);
}

// For several questions: what is left of the patience with all.
MpsPatience with_deadline(const MpsPatience& patience) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(patience.seconds);
  return {patience.seconds,
          [until, is_over = patience.is_over] { return Clock::now() >= until || is_over(); }};
}

}  // namespace

Result<std::string> ask_mps_daemon(const Environment& daemon, const std::string& question,
                                   const MpsPatience& patience) {
  const MpsPatience limit = with_deadline(patience);
  ProcessOptions options;
  options.set = daemon;
  options.output = ChildStream::kept;
  options.error = ChildStream::null;
  options.kept_bytes = std::size_t{1} << 20U;
  DEMARC_TRY(Process asked,
             Process::spawn({"/bin/sh", "-c", fmt::format("echo {} | {}", question, mps_control)},
                            options));
  auto ended = asked.wait(look_seconds);
  while (!ended && !limit.is_over()) ended = asked.wait(look_seconds);
  if (ended && ended->exit_code == 0) return asked.kept();
  asked.signal(SIGKILL);
  return check_failed("the daemon of MPS does not answer '{}': {}", question,
                      ended ? ended->words() : fmt::format("no word in {} s", patience.seconds));
}

Result<std::vector<EndedMpsClient>> end_mps_clients(const Environment& daemon,
                                                    const std::function<bool(pid_t client)>& chosen,
                                                    const MpsPatience& patience) {
  const MpsPatience limit = with_deadline(patience);
  std::vector<EndedMpsClient> all;
  DEMARC_TRY(const auto servers, ask_for_processes(daemon, "get_server_list", limit));
  for (const pid_t server : servers) {
    DEMARC_TRY(const auto clients,
               ask_for_processes(daemon, fmt::format("get_client_list {}", server), limit));
    for (const pid_t client : clients) {
      if (chosen(client)) all.push_back({client, end_client(daemon, server, client, limit)});
    }
  }
  return all;
}

}  // namespace demarc::cuda
