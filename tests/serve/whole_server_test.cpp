// A whole server on the stand-in driver, from its configuration to its end: what it says, what
// SIGHUP takes over, and what it leaves to other servers and to programs beside it.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "demarc/base/files.hpp"
#include "demarc/lease/client.hpp"
#include "demarc/serve/run.hpp"
#include "exec/confine_fixture.hpp"
#include "staying_process.hpp"

namespace demarc::serve {
namespace {

using lease::LeaseClient;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr const char* card_uuid = "GPU-fafafafa-fafa-fafa-fafa-fafafafafafa";
constexpr const char* file_head =
    "description = \"h100-sxm\"\nmemory = \"16 MiB\"\nmps = \"off\"\n";

std::string tenant_of_file(const char* name, const char* tpcs, const char* colors,
                           const std::string& more = "") {
  return fmt::format("[tenants.{}]\ntpcs = \"{}\"\ncolors = \"{}\"\n{}", name, tpcs, colors, more);
}

// run() in a process of its own, which is gone with the object. What it tells, and its end, are
// lines of a file.
class WholeServer {
 public:
  WholeServer(ServePlan plan, const fake::FakeConfig& config)
      : said_(test::fresh_folder("whole_server") / "said") {
    process_ = ::fork();
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);  // what the test has is not the server's
    rlimit most{};
    ::getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = std::min<rlim_t>(most.rlim_cur, 512);
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

bool is_zombie(pid_t process) {
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
  [[nodiscard]] LeaseClient client() const { return LeaseClient::connect(socket).value(); }
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

constexpr const char* serving_line = "bytes in the colours of";
constexpr const char* read_again_line = "the configuration was read again";

TEST_F(WholeServers, TakeOverAtSighupWhatTenantsThatAreNotUsedAreToHave) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2") + tenant_of_file("b", "6-11", "2/2"));
  WholeServer server(plan(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  EXPECT_EQ(tenants_and_tpcs(), "a 0-3 b 6-11");
  int reads = 0;
  const auto read_again = [&](const std::string& tenants) {
    write_config(file_head + tenants);
    server.signal(SIGHUP);
    EXPECT_TRUE(server.says(read_again_line, ++reads)) << server.said();
    return tenants_and_tpcs();
  };
  ASSERT_TRUE(client().move("b", "7"));
  EXPECT_EQ(read_again(tenant_of_file("a", "0-3", "1/2") + tenant_of_file("b", "6-11", "2/2")),
            "a 0-3 b 7")
      << "a tenant of which the file says what it said keeps what it has";
  EXPECT_EQ(read_again(tenant_of_file("a", "0-3", "1/2") + tenant_of_file("b", "8-9", "2/2")),
            "a 0-3 b 8-9");
  ASSERT_TRUE(client().move("b", "10"));
  {
    auto owner = client();
    ASSERT_TRUE(owner.open("a", ""));
    EXPECT_EQ(read_again(tenant_of_file("a", "4-5", "1/2") + tenant_of_file("b", "8-9", "2/2")),
              "a 0-3 b 10");
    EXPECT_TRUE(server.says("tenant 'a' is in use and stays as it is"));
  }
  while (client().list().value().tenants[0].leases != 0) ::usleep(1000);
  EXPECT_EQ(read_again(tenant_of_file("a", "4-5", "1/2") + tenant_of_file("b", "8-9", "2/2")),
            "a 4-5 b 10")
      << "what stayed before is done as soon as it can be";
  EXPECT_EQ(read_again(tenant_of_file("b", "8-9", "2/2")), "b 10");
  EXPECT_EQ(read_again(tenant_of_file("b", "8-9", "2/2") + tenant_of_file("c", "1", "1/2")),
            "b 10 c 1");
  EXPECT_EQ(server.end_by(), 0) << server.said();
}

TEST_F(WholeServers, StayAsTheyAreWhereTheNextConfigurationIsWrong) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  const auto refused = [&](const std::string& text, const std::string& words) {
    write_config(text);
    server.signal(SIGHUP);
    EXPECT_TRUE(server.says("the configuration stays as it was: " + path + words)) << server.said();
    EXPECT_EQ(tenants_and_tpcs(), "a 0-3");
  };
  refused(std::string("reserve = 1\n") + "mps = \"off\"\n" + tenant_of_file("a", "4", "1/2"),
          ": description, memory, reserve: this cannot change while the server runs");
  refused(file_head + tenant_of_file("a", "12", "1/2"), ":5:8: --tpcs");
  refused(file_head + tenant_of_file("a", "4", "1/2") + tenant_of_file("b", "4", "2/2"),
          ":8:8: tenant 'b': the TPCs 4 also belong to tenant 'a'");
  // Each tenant keeps its own: the refused ones were not taken over halfway.
  write_config(file_head + tenant_of_file("a", "4", "1/2"));
  server.signal(SIGHUP);
  EXPECT_TRUE(server.says(read_again_line));
  EXPECT_EQ(tenants_and_tpcs(), "a 4");
  EXPECT_EQ(server.end_by(SIGINT), 0);
}

TEST_F(WholeServers, SayWhatTheyServe) {
  const bool root = ::geteuid() == 0;
  write_config((root ? "group = \"root\"\n" : "") + std::string(file_head) +
               tenant_of_file("a", "0-3", "1/2", "sync_domain = \"none\"\n") +
               tenant_of_file("b", "4", "2/2"));
  const std::string manager = folder / "manager";
  const OwnedFile told(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, manager.data(), manager.size());
  ASSERT_EQ(::bind(told.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto next_told = [&] {
    char text[64] = {};
    pollfd item{told.get(), POLLIN, 0};
    if (::poll(&item, 1, 10'000) > 0) {
      static_cast<void>(::recv(told.get(), text, sizeof text - 1, MSG_DONTWAIT));
    }
    return std::string(text);
  };
  ::setenv("NOTIFY_SOCKET", manager.c_str(), 1);
  WholeServer server(plan(), good_card);
  ::unsetenv("NOTIFY_SOCKET");
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  EXPECT_EQ(next_told(), "READY=1");
  const auto status = client().list().value();
  EXPECT_EQ(server.said(),
            fmt::format("tenant 'a' has no memory synchronisation domain of its own: its kernels "
                        "wait for the accesses of all other programs without one\n"
                        "{}: {} bytes in the colours of 2 tenants, at {}, without MPS\n",
                        card_uuid, status.arena_bytes, socket));
  EXPECT_EQ(status.card, card_uuid);
  EXPECT_EQ(status.arena_bytes % (1U << 21U), 0U) << "whole pages";
  EXPECT_GE(status.arena_bytes, status.tenants[0].bytes + status.tenants[1].bytes);
  EXPECT_LE(status.arena_bytes, 16U << 20U) << "what was asked for";
  struct stat facts {};
  ASSERT_EQ(::stat(socket.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, root ? 0660U : 0600U);
  EXPECT_EQ(status.mps, "off");
  EXPECT_EQ(status.tenants[1].sync_domain, 1U);
  auto owner = client();
  EXPECT_GT(owner.open("a", "")->locks, 1U) << "that of the socket, and those of the card's claim";
  rlimit most{};
  ASSERT_EQ(::prlimit(server.process(), RLIMIT_NOFILE, nullptr, &most), 0);
  EXPECT_EQ(most.rlim_cur, most.rlim_max) << "pages are lent by descriptors";
  EXPECT_EQ(server.end_by(), 0) << server.said();
  EXPECT_EQ(next_told(), "STOPPING=1");
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST_F(WholeServers, SayNothingOfDomainsOnACardThatHasOne) {
  fake::FakeConfig old = good_card;
  old.sync_domains = 1;
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), old);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  EXPECT_THAT(server.said(), HasSubstr("colours of 1 tenant, at"));
  EXPECT_THAT(server.said(), Not(HasSubstr("synchronisation domain")));
}

TEST_F(WholeServers, TakeNoMoreMemoryThanIsFreeAndLeaveWhatTheyAreToLeave) {
  fake::FakeConfig small = good_card;
  small.free_bytes = 16 << 20;
  const auto refusal = [&](const char* line) {
    write_config(std::string("description = \"h100-sxm\"\nmps = \"off\"\n") + line +
                 tenant_of_file("a", "0-3", "1/2"));
    WholeServer server(plan(), small);
    if (server.says(serving_line)) return std::string("serves");
    EXPECT_EQ(server.end_by(0), 2);
    return server.said();
  };
  EXPECT_EQ(refusal("memory = \"17 MiB\"\n"),
            "memory: 17825792 bytes were asked for, but 16777216 are free on Fake GPU\n");
  EXPECT_EQ(refusal("memory = \"16 MiB\"\n"), "serves");
  EXPECT_EQ(refusal("reserve = \"16 MiB\"\n"),
            "reserve: 16777216 bytes must be left, but 16777216 are free on Fake GPU\n");
  EXPECT_EQ(refusal("reserve = \"4 MiB\"\n"), "serves");
}

TEST_F(WholeServers, ThatTheCardCannotHaveAreRefusedBeforeItsMemoryIsLookedAt) {
  const auto refusal = [&](const std::string& tenants) {
    write_config("description = \"h100-sxm\"\nmps = \"off\"\nmemory = \"1024 GiB\"\n" + tenants);
    WholeServer server(plan(), good_card);
    EXPECT_NE(server.end_by(0), 0);
    return server.said();
  };
  EXPECT_THAT(refusal(tenant_of_file("a", "0-99", "1/2")),
              HasSubstr("99 is above the highest index, 11"));
  std::string four;
  for (const char* number : {"1", "2", "3", "4"}) {
    const std::string part = std::string(number) + "/4";
    four += tenant_of_file(number, number, part.c_str());
  }
  EXPECT_THAT(refusal(four),
              HasSubstr("the card has 3 that a tenant can have, and programs beside the server may "
                        "have some of them: divide it among fewer tenants (--share K/N: give a "
                        "smaller N), or give sync_domain = \"none\""));
  EXPECT_THAT(refusal(tenant_of_file("a", "0-3", "1/2")), HasSubstr("bytes were asked for, but"))
      << "then it is";
}

TEST_F(WholeServers, OfTenantsThatHaveSomethingInCommonAreRefusedBeforeTheCardIsLookedFor) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2") + tenant_of_file("b", "3", "2/2"));
  ::setenv("DEMARC_LIBCUDA", "/no/such/library", 1);
  WholeServer server(plan(), good_card);
  EXPECT_EQ(server.end_by(0), 1);
  EXPECT_THAT(server.said(), HasSubstr("the TPCs 3 also belong to tenant 'a'"));
}

TEST_F(WholeServers, LeaveToProgramsBesideThemWhatTheseHave) {
  const auto beside = program_with(0x20, 0x2);
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  EXPECT_EQ(client().list()->tenants[0].sync_domain, 2U) << "the first one that is free";
  EXPECT_THAT(client().move("a", "4-5").error().message,
              HasSubstr("the TPCs 5 of GPU-fafafafa-fafa-fafa-fafa-fafafafafafa belong to a "
                        "program under demarc exec"));
  EXPECT_TRUE(client().move("a", "4"));
}

TEST_F(WholeServers, HaveTheirCardAndTheirSocketAlone) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  WholeServer same(plan(), good_card);
  EXPECT_EQ(same.end_by(0), 1);
  EXPECT_EQ(same.said(), fmt::format("socket '{}': another demarc serve listens there; give "
                                     "another --socket\n",
                                     socket));
  WholeServer other(plan_at(folder / "other"), good_card);
  EXPECT_EQ(other.end_by(0), 2);
  EXPECT_THAT(other.said(),
              HasSubstr(fmt::format("another demarc serve (process {} (", server.process())));
}

TEST_F(WholeServers, ThatWouldEndAreWaitedForAndThoseThatAreUsedAreNot) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  ServePlan idle = plan();
  idle.end_when_idle = 1000;
  WholeServer server(idle, good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  const auto second = [&] {
    auto one = std::make_unique<WholeServer>(plan_at(folder / "other"), good_card);
    return one;
  };
  {
    const auto waits = second();
    EXPECT_TRUE(waits->says("starts or ends on")) << waits->said();
    EXPECT_EQ(waits->end_by(), 0);
    EXPECT_THAT(waits->said(), HasSubstr("told to end before the card was free"));
  }
  {
    const auto used = client();
    ASSERT_TRUE(used.list());
    EXPECT_EQ(second()->end_by(0), 2) << "at once";
  }
  // It sees that the connection has ended within a tenth of a second.
  for (bool waits = false; !waits;) {
    const auto one = second();
    waits = one->says("starts or ends on");
  }
}

// The next one waits for it, and is not refused.
TEST_F(WholeServers, SayThatTheyEndBeforeTheyHaveEnded) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  fake::FakeConfig slow = good_card;
  slow.release_us = 100'000;
  WholeServer server(plan(), slow);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  const auto claim = lease::CardClaim::open({test::fake_libcuda()}).value();
  EXPECT_TRUE(claim.others(card_uuid)->serving);
  server.signal(SIGTERM);
  auto seen = claim.others(card_uuid).value();
  for (; seen.serving; seen = claim.others(card_uuid).value()) ::usleep(100);
  EXPECT_TRUE(seen.server) << "it frees its memory";
  EXPECT_EQ(server.end_by(0), 0);
}

TEST_F(WholeServers, ThatWereKilledLeaveTheirPartsToTheirPrograms) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer killed(plan(), good_card);
  ASSERT_TRUE(killed.says(serving_line)) << killed.said();
  const pid_t owner = test::staying_process([&] {
    static auto own = client();
    EXPECT_TRUE(own.open("a", ""));
  });
  EXPECT_EQ(killed.end_by(SIGKILL), 128 + SIGKILL);
  ServePlan next = plan_at(folder / "other");
  WholeServer refused(next, good_card);
  EXPECT_EQ(refused.end_by(0), 2);
  EXPECT_THAT(refused.said(), HasSubstr("still have its parts"));
  next.survivors = Survivors::wait;
  for (const int signal : {SIGTERM, SIGINT}) {
    WholeServer told(next, good_card);
    EXPECT_TRUE(told.says("waiting for them")) << told.said();
    EXPECT_EQ(told.end_by(signal), 0);
    EXPECT_THAT(told.said(), EndsWith("told to end before the card was free\n"));
  }
  WholeServer waits(next, good_card);
  EXPECT_TRUE(waits.says("waiting for them")) << waits.said();
  test::end_process(owner);
  EXPECT_TRUE(waits.says(serving_line)) << waits.said();
}

TEST_F(WholeServers, ClaimADriverThatIsInstalledAnewForThemAndForTheirPrograms) {
  const std::string driver = folder / "libcuda.so.1";
  std::filesystem::copy_file(test::fake_libcuda(), driver);
  ::setenv("DEMARC_LIBCUDA", driver.c_str(), 1);
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  std::filesystem::copy_file(driver, driver + ".new");
  std::filesystem::rename(driver + ".new", driver);
  EXPECT_TRUE(server.says("were installed anew")) << server.said();
  const auto seen = [&] { return lease::CardClaim::open({driver})->others(card_uuid).value(); };
  EXPECT_TRUE(seen().serving);
  const pid_t tenant = test::staying_process([&] {
    static auto owner = client();
    static auto process = client();
    EXPECT_TRUE(process.attach(owner.open("a", "")->token));
  });
  EXPECT_EQ(server.end_by(SIGKILL), 128 + SIGKILL);
  EXPECT_FALSE(seen().server);
  EXPECT_TRUE(seen().lent) << "its program has the claims on the new file, too";
  EXPECT_EQ(seen().of(lease::PartOwner::tenants).tpcs[0], 0xfU);
  test::end_process(tenant);
  EXPECT_FALSE(seen().lent);
}

// A child of a process with a lease has closed all files, and the lease's owner stays.
TEST_F(WholeServers, LeaveNothingOfATenantBehind) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  const auto child_of_a_program = [&] {
    const std::string number = test::fresh_folder("child") / "number";
    const pid_t attached = test::staying_process([&] {
      static auto owner = client();
      static auto process = client();
      EXPECT_TRUE(process.attach(owner.open("a", "")->token));
      const pid_t child = ::fork();
      if (child == 0) {
        ::syscall(SYS_close_range, 3, ~0U, 0);
        for (;;) ::pause();
      }
      EXPECT_TRUE(write_file(number, std::to_string(child)));
    });
    test::end_process(attached);
    return std::stoi(read_file(number).value());
  };
  const auto ends = [](pid_t process) { return ::kill(process, 0) != 0 || is_zombie(process); };
  for (const bool by_revoke : {true, false}) {
    WholeServer server(plan(), good_card);
    ASSERT_TRUE(server.says(serving_line)) << server.said();
    const pid_t child = child_of_a_program();
    EXPECT_FALSE(ends(child));
    if (by_revoke) {
      EXPECT_TRUE(client().revoke("a"));
      EXPECT_TRUE(ends(child));
    }
    EXPECT_EQ(server.end_by(), 0) << server.said();
    EXPECT_TRUE(ends(child));
  }
}

// A script stands in for the daemon of MPS.
TEST_F(WholeServers, EndWithTheDaemonOfMpsThatTheyStarted) {
  const auto control = folder / "nvidia-cuda-mps-control";
  ASSERT_TRUE(write_file(control, R"(#!/bin/sh
d=$CUDA_MPS_PIPE_DIRECTORY
case "$1" in
-d) "$0" --daemon </dev/null >/dev/null 2>&1 & while [ ! -s "$d/pid" ]; do sleep 0.01; done; exit 0;;
--daemon) echo $$ > "$d/pid"; while [ ! -e "$d/quit" ]; do sleep 0.01; done; exit 0;;
esac
read word; [ "$word" = quit ] && touch "$d/quit"
exit 0
)"));
  std::filesystem::permissions(control, std::filesystem::perms::owner_all);
  const std::string programs = std::getenv("PATH");
  ::setenv("PATH", (folder.string() + ":" + programs).c_str(), 1);
  write_config("description = \"h100-sxm\"\nmemory = \"16 MiB\"\nmps = \"on\"\n" +
               tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  const bool serves = server.says(serving_line);
  ::setenv("PATH", programs.c_str(), 1);
  ASSERT_TRUE(serves) << server.said();
  EXPECT_THAT(server.said(), EndsWith(", with MPS\n"));
  EXPECT_EQ(client().list()->mps, "on");
  auto owner = client();
  EXPECT_EQ(owner.open("a", "")->lease.mps, socket + ".mps");
  EXPECT_THAT(client().revoke("a").has_value(), true);
  ::kill(std::stoi(read_file(socket + ".mps/pid").value()), SIGKILL);
  EXPECT_TRUE(server.says("the daemon of MPS has ended: programs that run may have failed"))
      << server.said();
  { const auto last = std::move(owner); }
  EXPECT_EQ(server.end_by(0), 2);
  EXPECT_THAT(server.said(), EndsWith("the daemon of MPS has ended: start demarc serve again\n"));
  EXPECT_FALSE(std::filesystem::exists(socket + ".mps"));
}

}  // namespace
}  // namespace demarc::serve
