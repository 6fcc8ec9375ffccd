// A whole server on the stand-in driver, from its configuration on: what it says, what SIGHUP takes
// over, and what it refuses.
#include "whole_server.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace demarc::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(WholeServers, take_over_at_sighup_what_tenants_that_are_not_used_are_to_have) {
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

TEST_F(WholeServers, stay_as_they_are_where_the_next_configuration_is_wrong) {
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
  refused(file_head + tenant_of_file("a", "12", "1/2"),
          ":5:8: tpcs: 12 is above the highest index");
  refused(file_head + tenant_of_file("a", "4", "1/2") + tenant_of_file("b", "4", "2/2"),
          ":8:8: tenant 'b': the TPCs 4 also belong to tenant 'a'");
  // Each tenant keeps its own: the refused ones were not taken over halfway.
  write_config(file_head + tenant_of_file("a", "4", "1/2"));
  server.signal(SIGHUP);
  EXPECT_TRUE(server.says(read_again_line));
  EXPECT_EQ(tenants_and_tpcs(), "a 4");
  EXPECT_EQ(server.end_by(SIGINT), 0);
}

TEST_F(WholeServers, say_what_they_serve) {
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

TEST_F(WholeServers, give_no_more_leases_than_they_can_have_files_open) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  const auto for_files = SeatLimits::for_files(448).value();
  WholeServer server(plan(), good_card, 448);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  std::vector<lease::LeaseClient> owners;
  for (std::size_t i = 0; i < for_files.holders(); ++i) {
    owners.push_back(client());
    ASSERT_TRUE(owners.back().open("a", "")) << i;
  }
  EXPECT_THAT(client().open("a", "").error().message,
              HasSubstr(fmt::format("this server already has {} leases", for_files.holders())));
  EXPECT_EQ(server.end_by(), 0) << server.said();
  WholeServer none(plan(), good_card, 447);
  EXPECT_EQ(none.end_by(0), 2);
  EXPECT_THAT(none.said(), HasSubstr("this process may have 447 files open, and a server needs "
                                     "448 at least"));
}

TEST_F(WholeServers, do_not_start_where_the_port_of_their_pages_is_taken) {
  const OwnedFile other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  ASSERT_EQ(::getsockname(other.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int port = ntohs(address.sin_port);
  write_config(fmt::format("metrics = {}\n{}", port, file_head) +
               tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), good_card);
  EXPECT_EQ(server.end_by(0), 2);
  EXPECT_THAT(server.said(), HasSubstr(fmt::format("metrics: cannot listen at port {}", port)));
}

TEST_F(WholeServers, say_nothing_of_domains_on_a_card_that_has_one) {
  fake::FakeConfig old = good_card;
  old.sync_domains = 1;
  write_config(file_head + tenant_of_file("a", "0-3", "1/2"));
  WholeServer server(plan(), old);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  EXPECT_THAT(server.said(), HasSubstr("colours of 1 tenant, at"));
  EXPECT_THAT(server.said(), Not(HasSubstr("synchronisation domain")));
}

TEST_F(WholeServers, take_no_more_memory_than_is_free_and_leave_what_they_are_to_leave) {
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

TEST_F(WholeServers, that_the_card_cannot_have_are_refused_before_its_memory_is_looked_at) {
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
                        "have some of them: divide it among fewer tenants (--part K/N: give a "
                        "smaller N), or give sync_domain = \"none\""));
  EXPECT_THAT(refusal(tenant_of_file("a", "0-3", "1/2")), HasSubstr("bytes were asked for, but"))
      << "then it is";
}

TEST_F(WholeServers,
       of_tenants_that_have_something_in_common_are_refused_before_the_card_is_looked_for) {
  write_config(file_head + tenant_of_file("a", "0-3", "1/2") + tenant_of_file("b", "3", "2/2"));
  ::setenv("DEMARC_LIBCUDA", "/no/such/library", 1);
  WholeServer server(plan(), good_card);
  EXPECT_EQ(server.end_by(0), 1);
  EXPECT_THAT(server.said(), HasSubstr("the TPCs 3 also belong to tenant 'a'"));
}

TEST_F(WholeServers, leave_to_programs_beside_them_what_these_have) {
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

}  // namespace
}  // namespace demarc::serve
