// Who comes by a tenant's own socket has that tenant and no other one.
#include "demarc/serve/tenant_sockets.hpp"

#include <sys/stat.h>

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
  // A token that another tenant's program has lost helps nobody.
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

TEST(TenantSocketsOf, a_folder_that_others_can_write_is_used_by_nobody) {
  const std::string socket = test::fresh_folder("doors") / "s";
  ASSERT_EQ(::mkdir((socket + ".d").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((socket + ".d").c_str(), 0777), 0);
  std::vector<std::string> told;
  TenantSockets doors(socket, {}, [&](const std::string& line) { told.push_back(line); });
  doors.listen_for({"a"});
  EXPECT_TRUE(doors.all().empty());
  EXPECT_THAT(told, ElementsAre(HasSubstr("is not a folder of this user alone")));
}

}  // namespace
}  // namespace demarc::serve
