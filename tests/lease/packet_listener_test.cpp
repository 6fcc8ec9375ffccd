// Who can connect to a listener, who is then known, and what is refused by name.
#include "demarc/lease/packet.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>

#include "demarc/base/files.hpp"
#include "own_process.hpp"
#include "paths.hpp"
#include "refusal.hpp"
#include "staying_process.hpp"

namespace demarc::lease {
namespace {

using test::passes_in_a_process;
using test::refuse_calls;
using test::why;
using testing::HasSubstr;

class Listening : public testing::Test {
 protected:
  std::filesystem::path folder = test::fresh_folder("listening");
  std::string path = folder / "socket";
  [[nodiscard]] mode_t mode() const {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    return status.st_mode & 0777U;
  }
  // "Pid:", "Gid:" or "Groups:": the numbers behind it.
  [[nodiscard]] static std::vector<std::int64_t> numbers_in(const std::string& file,
                                                            const std::string& name) {
    std::ifstream lines(file);
    std::string line;
    while (std::getline(lines, line) && !line.starts_with(name)) continue;
    std::istringstream rest(line.substr(std::min(line.size(), name.size())));
    return {std::istream_iterator<std::int64_t>(rest), {}};
  }
  // The process that a descriptor (pidfd) is of; 0: it is none.
  [[nodiscard]] static std::int64_t process_of(const OwnedFile& file) {
    const auto found = numbers_in(fmt::format("/proc/self/fdinfo/{}", file.get()), "Pid:");
    return found.empty() ? 0 : found[0];
  }
  static bool is_for_this_program_alone(int file) {
    return (::fcntl(file, F_GETFD) & FD_CLOEXEC) != 0;
  }
};

TEST_F(Listening, knows_the_process_at_the_other_end) {
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  const pid_t client = test::staying_process([&] {
    const std::array<gid_t, 3> groups{70, 71, 72};
    static_cast<void>(::setgroups(groups.size(), groups.data()));  // which root alone may
    static const auto connected = PacketSocket::connect(path).value();
  });
  const auto server = listener.accept();
  ASSERT_TRUE(server);
  const auto peer = server->peer();
  ASSERT_TRUE(peer) << why(peer);
  EXPECT_EQ(peer->process, client);
  EXPECT_EQ(peer->user, ::geteuid());
  const std::string status = fmt::format("/proc/{}/status", client);
  std::vector<std::int64_t> groups = numbers_in(status, "Groups:");
  groups.insert(groups.begin(), numbers_in(status, "Gid:").at(1));
  EXPECT_EQ(std::vector<std::int64_t>(peer->groups.begin(), peer->groups.end()), groups);
  EXPECT_EQ(process_of(server->peer_process()), client);
  test::end_process(client);
  EXPECT_EQ(server->peer()->process, client) << "as it was when it connected";
}

TEST_F(Listening, knows_the_process_on_a_kernel_that_gives_no_descriptor_of_it) {
  constexpr int peer_pidfd = 77;  // SO_PEERPIDFD
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  EXPECT_TRUE(passes_in_a_process([&] {
    const auto client = PacketSocket::connect(path).value();
    const auto server = listener.accept();
    const PacketSocket no_socket(OwnedFile(::open("/", O_RDONLY | O_CLOEXEC)));
    refuse_calls({SYS_getsockopt}, ENOPROTOOPT, peer_pidfd);
    EXPECT_EQ(process_of(server->peer_process()), ::getpid());
    EXPECT_EQ(no_socket.peer_process().get(), -1) << "it has no other end";
  }));
  EXPECT_TRUE(passes_in_a_process([&] {
    const auto client = PacketSocket::connect(path).value();
    const auto server = listener.accept();
    refuse_calls({SYS_getsockopt}, EPERM, peer_pidfd);
    EXPECT_EQ(server->peer_process().get(), -1) << "it was refused";
  }));
}

TEST_F(Listening, says_why_it_does_not_know_the_other_end) {
  EXPECT_TRUE(passes_in_a_process([&] {
    const PacketSocket alone(OwnedFile(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
    const auto nobody = alone.peer();
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(nobody.error().message,
                HasSubstr("does not say the groups of its other end: No data available"));
  }));
}

TEST_F(Listening, has_sockets_that_no_other_program_inherits_and_of_which_the_clients_wait) {
  EXPECT_TRUE(passes_in_a_process([&] {
    const auto listener = PacketListener::listen(path, std::nullopt).value();
    ASSERT_NE(::fcntl(listener.file(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_TRUE(is_for_this_program_alone(listener.file()));
    EXPECT_TRUE(is_for_this_program_alone(listener.lock()));
    EXPECT_FALSE(listener.accept());
    const auto client = PacketSocket::connect(path).value();
    EXPECT_TRUE(is_for_this_program_alone(client.file()));
    EXPECT_EQ(::fcntl(client.file(), F_GETFL) & O_NONBLOCK, 0);
    timeval patience{};
    socklen_t length = sizeof patience;
    ASSERT_EQ(::getsockopt(client.file(), SOL_SOCKET, SO_SNDTIMEO, &patience, &length), 0);
    EXPECT_TRUE(patience.tv_sec == 10 && patience.tv_usec == 0);
    const auto server = listener.accept();
    ASSERT_TRUE(server);
    EXPECT_TRUE(is_for_this_program_alone(server->file()));
    ASSERT_NE(::fcntl(server->file(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_FALSE(server->receive()->packet);
  }));
}

TEST_F(Listening, uses_descriptor_0_as_any_other) {
  EXPECT_TRUE(passes_in_a_process([&] {
    ::close(0);
    auto lock = PacketListener::claim(path);
    ASSERT_TRUE(lock) << why(lock);
    ASSERT_EQ(lock->get(), 0);
    ASSERT_EQ(::dup2(lock->get(), 100), 100);
    ::close(lock->release());
    auto listener = PacketListener::listen(path, std::nullopt, OwnedFile(100));
    ASSERT_TRUE(listener) << why(listener);
    ASSERT_EQ(listener->file(), 0);
    ASSERT_EQ(::dup2(0, 101), 101);  // where it listens on
    ::close(0);
    const auto client = PacketSocket::connect(path);
    ASSERT_TRUE(client) << why(client);
    ASSERT_EQ(client->file(), 0);
    EXPECT_TRUE(client->is_open());
  }));
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  EXPECT_TRUE(passes_in_a_process([&] {
    const auto client = PacketSocket::connect(path).value();
    ::close(0);
    const auto server = listener.accept();
    ASSERT_TRUE(server);
    EXPECT_EQ(server->file(), 0);
  }));
}

TEST_F(Listening, keeps_clients_waiting_until_they_are_taken) {
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  std::vector<OwnedFile> waiting;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  for (;;) {
    OwnedFile file(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(file.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      break;
    }
    waiting.push_back(std::move(file));
  }
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(waiting.size(), 65U) << "64, and the one that the kernel adds";
  EXPECT_TRUE(passes_in_a_process([&] {
    static const PacketListener* taking = &listener;
    struct sigaction handler {};
    handler.sa_handler = [](int) { ::close(::accept(taking->file(), nullptr, nullptr)); };
    ASSERT_EQ(::sigaction(SIGVTALRM, &handler, nullptr), 0);
    const pid_t self = ::getpid();
    const pid_t interrupting = ::fork();
    if (interrupting == 0) {
      ::alarm(10);
      for (;;) {
        ::usleep(1000);
        if (::kill(self, SIGVTALRM) != 0) ::_exit(0);
      }
    }
    EXPECT_TRUE(PacketSocket::connect(path)) << "a signal interrupts it";
    test::end_process(interrupting);
  }));
}

TEST_F(Listening, says_that_a_server_takes_no_connections) {
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  EXPECT_TRUE(passes_in_a_process([&] {
    refuse_calls({SYS_connect}, EAGAIN);  // which takes 10 s
    const auto refused = PacketSocket::connect(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("has taken no connection for 10 s"));
    EXPECT_THAT(refused.error().message, HasSubstr(path));
  }));
}

TEST_F(Listening, is_refused_by_name_where_the_kernel_refuses_it) {
  EXPECT_TRUE(passes_in_a_process([&] {
    auto lock = PacketListener::claim(path).value();
    test::allow_no_more_files();
    EXPECT_EQ(why(PacketListener::claim(path + "2")), "'" + path + "2.lock': Too many open files");
    for (const auto& refused : {why(PacketSocket::connect(path)),
                                why(PacketListener::listen(path, std::nullopt, std::move(lock)))}) {
      EXPECT_EQ(refused, "cannot make a socket: Too many open files");
    }
  }));
  EXPECT_TRUE(passes_in_a_process([&] {
    refuse_calls({SYS_listen}, EACCES);
    const auto refused = PacketListener::listen(path, std::nullopt);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_EQ(refused.error().message, "socket '" + path + "': Permission denied");
    EXPECT_FALSE(std::filesystem::exists(path));
  }));
  const std::string not_given = fmt::format("it cannot be given to group {}: ", ::getegid());
  std::vector<long> changing_mode{SYS_fchmodat};
  std::vector<long> changing_group{SYS_fchownat};
#ifdef SYS_chmod
  changing_mode.push_back(SYS_chmod);
  changing_group.push_back(SYS_lchown);
#endif
  for (const auto& calls : {changing_mode, changing_group}) {
    EXPECT_TRUE(passes_in_a_process([&] {
      for (const long call : calls) refuse_calls({call}, EPERM);
      const auto refused = PacketListener::listen(path, ::getegid());
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
      EXPECT_THAT(refused.error().message, HasSubstr(not_given + "Operation not permitted"));
      EXPECT_FALSE(std::filesystem::exists(path));
    }));
  }
}

TEST_F(Listening, is_for_its_user_alone_or_for_a_group) {
  {
    const auto listener = PacketListener::listen(path, std::nullopt).value();
    EXPECT_EQ(mode(), 0600U);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  const mode_t before = ::umask(0027);
  const gid_t group = ::geteuid() == 0 ? 70 : ::getegid();  // others may not give it away
  const auto listener = PacketListener::listen(path, group).value();
  EXPECT_EQ(::umask(before), 0027U) << "other files of this process are as they were";
  EXPECT_EQ(mode(), 0660U);
  struct stat status {};
  ASSERT_EQ(::lstat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid());
  EXPECT_EQ(status.st_gid, group);
  ASSERT_EQ(::stat((path + ".lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(Listening, has_no_lock_that_leads_elsewhere) {
  std::filesystem::create_symlink(folder / "elsewhere", path + ".lock");
  const auto refused = PacketListener::listen(path, std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
  EXPECT_EQ(refused.error().message, "'" + path + ".lock': Too many levels of symbolic links");
  EXPECT_FALSE(std::filesystem::exists(folder / "elsewhere"));
}

TEST_F(Listening, belongs_to_one_listener_and_is_taken_over_from_a_dead_one) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto listener = PacketListener::listen(path, std::nullopt);
    ::_exit(listener ? 0 : 1);  // without destructors, as when it is killed
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  EXPECT_THAT(why(PacketListener::listen(path, std::nullopt)),
              HasSubstr("another demarc serve listens there"));
  EXPECT_TRUE(PacketSocket::connect(path)) << "the refused one has taken the path away";
}

TEST_F(Listening, is_kept_off_by_a_listener_that_has_closed_and_not_gone) {
  auto listener = PacketListener::listen(path, std::nullopt).value();
  EXPECT_EQ(PacketListener::claim(path).error().kind, ErrorKind::invalid_input);
  listener.close();
  EXPECT_FALSE(PacketSocket::connect(path));
  EXPECT_TRUE(std::filesystem::exists(path));
  const auto refused = PacketListener::claim(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("is still ending, or programs of one"));
}

TEST_F(Listening, closes_descriptors_that_nobody_took_with_their_connection) {
  EXPECT_TRUE(passes_in_a_process([&] {
    const auto listener = PacketListener::listen(path, std::nullopt).value();
    const auto client = PacketSocket::connect(path).value();
    auto server = listener.accept();
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    ASSERT_TRUE(client.send("question", std::span(&pipe[1], 1)).value());
    ::close(pipe[1]);
    close_apart(*std::move(server));
    char byte = 0;
    EXPECT_EQ(::read(pipe[0], &byte, 1), 0) << "a thread does it";
    EXPECT_TRUE(client.receive()->ended);
  }));
}

TEST_F(Listening, ends_connections_whose_packets_nobody_read) {
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  const auto client = PacketSocket::connect(path).value();
  auto server = listener.accept();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::send(client.file(), "", 0, 0), 0);
    ASSERT_TRUE(client.send("question").value());
  }
  ASSERT_TRUE(server->send("why").value());
  EXPECT_TRUE(passes_in_a_process([&] {
    close_apart(*std::move(server));
    // No reset overtakes what was said.
    char text[4] = {};
    EXPECT_EQ(::recv(client.file(), text, sizeof text, 0), 3);
    EXPECT_EQ(::recv(client.file(), text, sizeof text, 0), 0);
  }));
}

TEST_F(Listening, refuses_paths_that_are_no_place_for_a_socket) {
  std::ofstream(path) << "mine";
  EXPECT_THAT(why(PacketListener::listen(path, std::nullopt)),
              HasSubstr("there is a file of this name that is not a socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_THAT(why(PacketListener::listen(folder / "no" / "socket", std::nullopt)),
              HasSubstr("No such file"));
  EXPECT_THAT(why(PacketListener::listen(folder / "no" / "socket", std::nullopt, OwnedFile())),
              HasSubstr("No such file"));
}

TEST_F(Listening, is_at_a_path_that_the_kernel_has_room_for) {
  EXPECT_TRUE(passes_in_a_process([&] {
    std::filesystem::current_path(folder);
    const std::string longest(107, 'x');
    const auto listener = PacketListener::listen(longest, std::nullopt);
    ASSERT_TRUE(listener) << why(listener);
    EXPECT_TRUE(PacketSocket::connect(longest));
    for (const std::size_t size : {0U, 108U, 109U, 200U}) {
      const std::string words =
          fmt::format("its path has {} characters; give one of 1 to 107", size);
      const std::string wrong(size, 'x');
      const auto refused = PacketListener::listen(wrong, std::nullopt);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
      EXPECT_THAT(refused.error().message, HasSubstr(words));
      EXPECT_THAT(why(PacketSocket::connect(wrong)), HasSubstr(words));
      EXPECT_THAT(why(PacketListener::claim(wrong)), HasSubstr(words));
    }
  }));
}

TEST_F(Listening, where_nobody_does_is_said_with_the_path) {
  EXPECT_TRUE(passes_in_a_process([&] {
    const auto refused = PacketSocket::connect(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr(path));
    EXPECT_THAT(refused.error().message, HasSubstr("demarc serve does not run there"));
  }));
}

}  // namespace
}  // namespace demarc::lease
