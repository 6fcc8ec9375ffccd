// Which socket a server listens at, and which one a client connects to: each step of the order.
#include "demarc/lease/sockets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "demarc/base/files.hpp"
#include "demarc/lease/packet.hpp"
#include "paths.hpp"

namespace demarc::lease {
namespace {

using testing::ElementsAre;

class Sockets : public testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv(socket_variable);
  }
  [[nodiscard]] std::string place(const std::string& name) const { return folder / name; }
  [[nodiscard]] static PacketListener listen(const std::string& path) {
    return PacketListener::listen(path, {}).value();
  }

  std::filesystem::path folder = test::fresh_folder("sockets");
};

TEST_F(Sockets, of_servers_are_what_the_environment_says_then_the_users_then_the_machines) {
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  ::setenv(socket_variable, "/a/b", 1);
  ASSERT_EQ(default_socket(), "/a/b");
  ::setenv(socket_variable, "", 1);
  ASSERT_EQ(default_socket(), "/run/user/7/demarc.sock");
  ::unsetenv(socket_variable);
  ASSERT_EQ(default_socket(), "/run/user/7/demarc.sock");
  ::setenv("XDG_RUNTIME_DIR", "", 1);
  ASSERT_EQ(runtime_folder(), "/run");
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(default_socket(), "/run/demarc.sock");
}

TEST_F(Sockets, are_looked_for_at_the_users_place_then_at_the_units_then_at_roots) {
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_THAT(socket_places(), ElementsAre("/run/user/7/demarc.sock", "/run/demarc/demarc.sock",
                                           "/run/demarc.sock"));
}

TEST_F(Sockets, are_looked_for_at_two_places_for_a_user_without_a_folder) {
  EXPECT_THAT(socket_places(), ElementsAre("/run/demarc/demarc.sock", "/run/demarc.sock"));
  ::setenv("XDG_RUNTIME_DIR", "", 1);
  EXPECT_THAT(socket_places(), ElementsAre("/run/demarc/demarc.sock", "/run/demarc.sock"));
}

TEST_F(Sockets, that_a_client_was_told_come_before_the_environment) {
  ::setenv(socket_variable, "/a/b", 1);
  EXPECT_EQ(find_socket("/c").value(), "/c");
}

TEST_F(Sockets, of_the_environment_come_before_those_that_are_there) {
  ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  const auto users = listen(place("demarc.sock"));
  ::setenv(socket_variable, "/a/b", 1);
  EXPECT_EQ(find_socket().value(), "/a/b");
  ::setenv(socket_variable, "", 1);
  EXPECT_EQ(find_socket().value(), place("demarc.sock"));
}

TEST_F(Sockets, that_are_there_are_taken_in_the_order_of_the_places) {
  const std::vector<std::string> places{place("user"), place("unit"), place("system")};
  const auto system = listen(places[2]);
  EXPECT_EQ(first_socket(places).value(), places[2]);
  const auto unit = listen(places[1]);
  EXPECT_EQ(first_socket(places).value(), places[1]);
  const auto user = listen(places[0]);
  EXPECT_EQ(first_socket(places).value(), places[0]);
}

TEST_F(Sockets, are_not_files_of_another_kind) {
  const std::vector<std::string> places{place("file"), place("socket")};
  ASSERT_TRUE(write_file(places[0], "no socket"));
  const auto socket = listen(places[1]);
  EXPECT_EQ(first_socket(places).value(), places[1]);
}

TEST_F(Sockets, are_not_links_to_sockets) {
  const std::vector<std::string> places{place("link"), place("socket")};
  const auto socket = listen(places[1]);
  std::filesystem::create_symlink(places[1], places[0]);
  EXPECT_EQ(first_socket(places).value(), places[1]);
}

TEST_F(Sockets, of_another_user_are_refused) {
  if (::geteuid() != 0) DEMARC_NOT_RUN("only root gives files away");
  const std::vector<std::string> places{place("theirs"), place("socket")};
  const auto theirs = listen(places[0]);
  const auto socket = listen(places[1]);
  ASSERT_EQ(::chown(places[0].c_str(), 1000, 1000), 0);
  const auto found = first_socket(places);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(found.error().message, "'" + places[0] +
                                       "' is a socket of user 1000, neither yours nor root's: name "
                                       "the socket that you mean by --socket or DEMARC_SOCKET");
}

TEST_F(Sockets, that_are_nowhere_are_refused_with_every_place) {
  const std::vector<std::string> places{"/no/a", "/no/b"};
  const auto found = first_socket(places);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(found.error().message,
            "there is no socket of demarc serve at /no/a, /no/b: start a server, or name its "
            "socket by --socket or DEMARC_SOCKET");
}

TEST_F(Sockets, of_the_unit_are_where_clients_look) {
  const auto unit = read_file(test::source_dir() / "packaging" / "demarc.service.in").value();
  EXPECT_THAT(unit, testing::HasSubstr("--socket " + std::string(unit_socket) + "\n"));
}

}  // namespace
}  // namespace demarc::lease
