// Who comes by a tenant's own socket has that tenant and no other one.
#include "demarc/serve/tenant_sockets.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "demarc/base/files.hpp"
#include "not_run.hpp"
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OfATenant : public ServerTest {
 protected:
  void SetUp() override { start(); }
  [[nodiscard]] lease::PacketSocket connect_to(const std::string& tenant) const {
    return lease::PacketSocket::connect(tenant_socket(options.socket, tenant)).value();
  }
};

TEST_F(OfATenant, leases_are_of_that_tenant) {
  const auto client = connect_to("b");
  EXPECT_EQ(refusal(client, lease::OpenRequest{"a", ""}),
            "this is the socket of tenant 'b', which gives no lease of tenant 'a'");
  EXPECT_EQ(status("a").leases, 0U);
  const std::string token = open(client, "b").token;
  const auto process = connect_to("b");
  EXPECT_EQ(attach(process, token).lease.tenant, "b");
  EXPECT_EQ(take(process, 1).bytes, step);
  // A token that another tenant's program has lost helps no other.
  const auto owner = connect();
  EXPECT_EQ(refusal(connect_to("b"), lease::AttachRequest{open(owner, "a").token}),
            "this is the socket of tenant 'b', which gives no lease of tenant 'a'");
}

TEST_F(OfATenant, no_tenant_is_changed) {
  const auto client = connect_to("b");
  const std::string rule =
      "this is the socket of tenant 'b', whose programs may have leases; tenants are changed at "
      "the "
      "server's own socket, " +
      options.socket;
  for (const char* tenant : {"a", "b"}) {
    EXPECT_EQ(refusal(client, lease::GrowRequest{tenant, step}), rule);
    EXPECT_EQ(refusal(client, lease::MoveRequest{tenant, "5"}), rule);
    EXPECT_EQ(refusal(client, lease::RevokeRequest{tenant}), rule);
  }
}

TEST_F(OfATenant, only_that_tenant_is_seen) {
  const auto client = connect_to("b");
  EXPECT_EQ(ask<lease::ListHead>(client, lease::ListRequest{})->tenants, 1U);
  EXPECT_EQ(lease::parse_answer<lease::TenantStatus>(next(client).text)->name, "b");
  ASSERT_TRUE(server->turn(1));
  EXPECT_FALSE(readable(client.file()));
}

TEST_F(OfATenant, sockets_come_and_go_with_the_tenants) {
  ASSERT_TRUE(server->reload({terms_of("b", {2}, 2, 2), terms_of("c", {5}, 4, 3)}));
  EXPECT_FALSE(lease::PacketSocket::connect(tenant_socket(options.socket, "a")));
  EXPECT_EQ(open(connect_to("c"), "c").lease.tenant, "c");
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(options.socket + ".d"));
}

TEST_F(OfATenant, users_are_those_of_the_server) {
  server.reset();
  options.user = ::geteuid() + 1;
  start();
  EXPECT_THAT(next(connect_to("b")).text, HasSubstr("may not have leases of this server"));
}

// Its own user comes by the server's own socket.
TEST_F(OfATenant, connections_take_no_place_of_the_servers_own_user) {
  server.reset();
  options.limits = {6, 3, 2};
  start();
  std::vector<lease::PacketSocket> idle;
  for (int i = 0; i < 10; ++i) {
    idle.push_back(connect_to("b"));
    ASSERT_TRUE(server->turn(0));
    ASSERT_TRUE(server->turn(0));
    ASSERT_LE(server->connections(), 3U) << "as many as one party may have";
  }
  EXPECT_THAT(next(idle[0]).text, HasSubstr("another one needed its place"));
  std::vector<lease::PacketSocket> own;
  for (int i = 0; i < 3; ++i) {
    own.push_back(connect());
    EXPECT_EQ(ask<lease::ListHead>(own.back(), lease::ListRequest{})->tenants, 2U);
  }
  EXPECT_EQ(server->connections(), 6U);
}

TEST(TenantSocketsOf, tenants_that_can_have_none_are_named) {
  const std::string socket = test::fresh_folder("doors") / "s";
  std::vector<std::string> told;
  TenantSockets doors(socket, {}, [&](const std::string& line) { told.push_back(line); });
  doors.listen_for({"a/x", "good", std::string(63, 'l')});
  EXPECT_EQ(doors.all().size() + told.size(), 3U);
  EXPECT_TRUE(doors.all().contains("good"));
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told[0], HasSubstr("tenant 'a/x' has no socket of its own"));
}

TEST(TenantSocketsOf, tenants_lie_in_their_folder_and_stay_while_others_come) {
  const std::string socket = test::fresh_folder("doors") / "s";
  {
    TenantSockets before(socket, {}, [](const std::string&) {});
    before.listen_for({"a"});
    EXPECT_TRUE(std::filesystem::exists(socket + ".d"));
  }
  EXPECT_FALSE(std::filesystem::exists(socket + ".d"));
  std::vector<std::string> told;
  TenantSockets doors(socket, ::getegid(), [&](const std::string& line) { told.push_back(line); });
  doors.listen_for({"a"});
  doors.listen_for({"a", "b"});
  EXPECT_THAT(told, ElementsAre());
  EXPECT_EQ(doors.all().size(), 2U);
  struct stat facts {};
  ASSERT_EQ(::stat(tenant_socket(socket, "a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0660U) << "for the group";
  const std::string outside = std::string("..") + "/c";
  doors.listen_for({outside});
  EXPECT_THAT(told, ElementsAre(HasSubstr("has no socket of its own")));
  EXPECT_FALSE(std::filesystem::exists(tenant_socket(socket, outside)));
}

// Which of them a socket is made in: `folder` becomes what `make` makes of it.
std::vector<std::string> refusals_of(const std::function<void(const std::string& folder)>& make) {
  const std::string socket = test::fresh_folder("doors") / "s";
  make(socket + ".d");
  std::vector<std::string> told;
  TenantSockets doors(socket, {}, [&](const std::string& line) { told.push_back(line); });
  doors.listen_for({"a"});
  EXPECT_EQ(doors.all().size() + told.size(), 1U);
  return told;
}

TEST(TenantSocketsOf, a_folder_that_others_can_write_is_used_by_nobody) {
  for (const auto& [mode, good] : std::vector<std::pair<mode_t, bool>>{
           {0777, false}, {0720, false}, {0702, false}, {0755, true}, {0700, true}}) {
    const auto told = refusals_of([mode = mode](const std::string& folder) {
      ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
      ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
    });
    EXPECT_EQ(told.empty(), good) << std::oct << mode;
    if (!good) {
      EXPECT_THAT(told, ElementsAre(HasSubstr("is not a folder of this user alone")));
    }
  }
}

TEST(TenantSocketsOf, what_is_not_a_folder_of_this_user_is_used_by_nobody) {
  const auto others = ElementsAre(HasSubstr("is not a folder of this user alone"));
  EXPECT_THAT(refusals_of([](const std::string& folder) {
                ASSERT_TRUE(write_file(folder, ""));
                ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
              }),
              others);
  EXPECT_THAT(refusals_of([](const std::string& folder) {
                const std::string elsewhere = test::fresh_folder("elsewhere");
                ASSERT_EQ(::symlink(elsewhere.c_str(), folder.c_str()), 0);
              }),
              others);
  EXPECT_THAT(refusals_of([](const std::string& folder) {
                std::filesystem::remove(std::filesystem::path(folder).parent_path());
              }),
              ElementsAre(HasSubstr("No such file or directory")));
  if (::geteuid() != 0) return test::note_not_run("only root gives folders away", "another user's");
  EXPECT_THAT(refusals_of([](const std::string& folder) {
                ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
                ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
              }),
              others);
}

// Containers of other users come through it.
TEST(TenantSocketsOf, the_folder_can_be_entered_and_read_by_all_and_written_by_its_user_alone) {
  const std::string socket = test::fresh_folder("doors") / "s";
  TenantSockets doors(socket, {}, [](const std::string&) {});
  const mode_t before = ::umask(0);
  doors.listen_for({"a"});
  ::umask(before);
  struct stat facts {};
  ASSERT_EQ(::stat((socket + ".d").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0755U);
}

}  // namespace
}  // namespace demarc::serve
