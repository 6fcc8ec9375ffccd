// run() in a process of its own on the stand-in driver, for tests of whole servers.
#pragma once

#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "confine_fixture.hpp"
#include "demarc/base/files.hpp"
#include "demarc/lease/card_claim.hpp"
#include "demarc/lease/client.hpp"
#include "demarc/serve/run.hpp"
#include "mps_control.hpp"

namespace demarc::serve {

inline constexpr const char* card_uuid = "GPU-fafafafa-fafa-fafa-fafa-fafafafafafa";
inline constexpr const char* file_head =
    "description = \"h100-sxm\"\nmemory = \"16 MiB\"\nmps = \"off\"\n";

inline std::string tenant_of_file(const char* name, const char* tpcs, const char* colors,
                                  const std::string& more = "") {
  return fmt::format("[tenants.{}]\ntpcs = \"{}\"\ncolors = \"{}\"\n{}", name, tpcs, colors, more);
}

// run() in a process of its own, which is gone with the object. What it tells, and its end, are
// lines of a file.
class WholeServer {
 public:
  WholeServer(ServePlan plan, const fake::FakeConfig& config,
              rlim_t max_files = RLIM_INFINITY)  // that it can have open
      : said_(test::fresh_folder("whole_server") / "said") {
    process_ = ::fork();
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);  // what the test has is not the server's
    rlimit most{};
    ::getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_max = std::min(most.rlim_max, max_files);
    most.rlim_cur = std::min<rlim_t>(most.rlim_max, 512);
    ::setrlimit(RLIMIT_NOFILE, &most);
    test::configure(config);
    const auto say = [this](const std::string& line) {
      std::ofstream(said_, std::ios::app) << line << std::endl;
    };
    plan.tell = say;
    const auto done = run(plan);
    if (!done) say(done.error().message);
    std::_Exit(done ? 0 : static_cast<int>(done.error().kind));
  }
  ~WholeServer() {
    if (process_ > 0) static_cast<void>(end_by(SIGKILL));
  }
  WholeServer(const WholeServer&) = delete;
  WholeServer& operator=(const WholeServer&) = delete;

  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] std::string said() const { return read_file(said_).value_or(""); }
  void signal(int number) const { ::kill(process_, number); }
  // Waits until it has said this so many times; whether it has.
  [[nodiscard]] bool says(const std::string& words, int times = 1) const {
    for (int looks = 0; looks < 20'000; ++looks) {
      const std::string text = said();
      int found = 0;
      for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
        ++found;
      }
      if (found >= times) return true;
      siginfo_t info{};
      const auto ended =
          ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid != 0;
      if (ended && said() == text) return false;
      ::usleep(1000);
    }
    return false;
  }
  // Its exit code.
  [[nodiscard]] int end_by(int number = SIGTERM) {
    if (number != 0) signal(number);
    int status = 0;
    ::waitpid(std::exchange(process_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  std::string said_;
  pid_t process_ = -1;
};

inline bool is_zombie(pid_t process) {
  const std::string facts = read_file(fmt::format("/proc/{}/stat", process)).value_or(") Z");
  return facts.at(facts.rfind(')') + 2) == 'Z';
}

class WholeServers : public cuda::Confine {
 protected:
  void SetUp() override {
    Confine::SetUp();
    // What the card is like is measured once, for all tests.
    static const std::string facts = test::fresh_folder("whole_server_facts");
    ::setenv("DEMARC_CACHE", facts.c_str(), 1);
  }
  void write_config(const std::string& text) const { ASSERT_TRUE(write_file(path, text)); }
  [[nodiscard]] ServePlan plan_at(const std::string& socket_path) const {
    ServePlan plan{path};
    plan.socket = socket_path;
    return plan;
  }
  [[nodiscard]] ServePlan plan() const { return plan_at(socket); }
  [[nodiscard]] lease::LeaseClient client() const {
    return lease::LeaseClient::connect(socket).value();
  }
  // "a 0-3 b 6"
  [[nodiscard]] std::string tenants_and_tpcs() const {
    std::string text;
    const auto status = client().list().value();
    for (const auto& one : status.tenants) {
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", one.name, one.tpcs);
    }
    return text;
  }
  [[nodiscard]] lease::CardClaim program_with(std::uint64_t tpcs, std::uint64_t domains) const {
    auto claim = lease::CardClaim::open(cuda::Driver::files().value()).value();
    EXPECT_TRUE(claim.hold(card_uuid, lease::PartOwner::program, {{tpcs, 0}, domains}));
    return claim;
  }

  std::filesystem::path folder = test::fresh_folder("whole");
  std::string path = folder / "f.toml";
  std::string socket = folder / "socket";
  const fake::FakeConfig good_card = fake::small_gpu();
};

inline constexpr const char* serving_line = "bytes in the colours of";
inline constexpr const char* read_again_line = "the configuration was read again";

}  // namespace demarc::serve
