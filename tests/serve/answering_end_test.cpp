// What a server that ends still says, and whose work it ends.
#include "answering.hpp"

namespace demarc::serve {
namespace {

using lease::LeaseClient;
using testing::HasSubstr;

class AnsweringAtItsEnd : public Answering {};

// At its end it waits for MPS no longer than it says.
TEST_F(AnsweringAtItsEnd, kills_at_its_end_what_MPS_does_not_end) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = program_with(token);
  mps_hangs = true;
  server->end_all();
  EXPECT_FALSE(mps_hangs) << "MPS was not told to hurry";
  turn_until([&] { return status("a").processes.empty(); });
  EXPECT_EQ(end_of(process), SIGKILL);
}

TEST_F(AnsweringAtItsEnd, has_not_ended_before_the_owners_of_leases_have_heard_it) {
  server.reset();
  options.farewell_seconds = 1000;
  start();
  auto owner = std::make_optional(connect());
  static_cast<void>(open(*owner));
  server->end_all();
  turn_until([&] { return left_of.size() == 2; });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(server->turn(1));
  EXPECT_FALSE(server->ended());
  EXPECT_TRUE(server->all_ended()) << "no program is left";
  EXPECT_THAT(words(next(*owner)), HasSubstr("tenant 'a' was revoked"));
  owner.reset();
  turn_until([&] { return server->ended(); });
}

TEST_F(AnsweringAtItsEnd, tells_the_owners_of_leases_at_once) {
  const auto owner = connect();
  static_cast<void>(open(owner));
  server->end_all();
  EXPECT_TRUE(readable(owner.file())) << "not in its next turn";
}

TEST_F(AnsweringAtItsEnd, ends_the_work_of_all_tenants_in_one_conversation_at_its_end) {
  server.reset();
  int conversations = 0;
  options.end_work = [&, end = options.end_work](const std::vector<WorkTarget>& targets) {
    ++conversations;
    return end(targets);
  };
  // Between the first and the last of them there are others with leases alone.
  std::vector<Terms> tenants;
  for (std::uint32_t i = 0; i < 60; ++i) {
    const std::string name = i == 0 ? "a" : i == 1 ? "b" : fmt::format("a{:02}", i);
    tenants.push_back({name,
                       gpu::TpcSet{gpu::TpcIndex(i)},
                       color::ColorSet::run(i, 1, 64),
                       {},
                       PlantedCard::share_bytes,
                       PlantedCard::share_bytes});
  }
  server = Server::start(options, card, tenants).value();
  std::vector<lease::PacketSocket> owners;
  std::vector<pid_t> programs;
  for (const char* tenant : {"a", "b"}) {
    owners.push_back(connect());
    programs.push_back(in_process([&, token = open(owners.back(), tenant).token] {
      auto client = LeaseClient::connect(options.socket).value();
      static_cast<void>(client.attach(token).value());
      ::pause();
      return 0;
    }));
    turn_until([&] { return status(tenant).processes.size() == 1; });
  }
  for (std::size_t i = 2; i < tenants.size(); ++i) {
    owners.push_back(connect());
    static_cast<void>(open(owners.back(), tenants[i].name));
  }
  server->end_all();
  turn_until([&] { return status("a").processes.size() + status("b").processes.size() == 0; });
  EXPECT_EQ(conversations, 1);
  EXPECT_THAT(ended_work, testing::UnorderedElementsAreArray(programs));
  for (const pid_t program : programs) EXPECT_EQ(end_of(program), SIGKILL);
}

// The server has not seen its end yet, and its number may be another's.
TEST_F(AnsweringAtItsEnd, ends_no_work_of_a_program_that_has_just_died) {
  const auto owner = connect();
  const pid_t program = program_with(open(owner).token);
  ASSERT_EQ(::kill(program, SIGKILL), 0);
  EXPECT_EQ(end_of(program), SIGKILL);
  server->end_all();
  turn_until([&] { return left_of.size() == 2; });
  EXPECT_TRUE(ended_work.empty());
}

TEST_F(AnsweringAtItsEnd, gives_nothing_any_more_while_it_ends) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t program = program_with(token);
  mps_hangs = true;
  server->end_all();
  const auto is_refused = [&] {
    EXPECT_EQ(refusal(connect(), lease::AttachRequest{token}), "this server ends: start it again");
    EXPECT_EQ(refusal(connect(), lease::OpenRequest{"a", ""}), "this server ends: start it again");
  };
  is_refused();
  turn_until([&] { return status("a").processes.empty(); });
  EXPECT_EQ(end_of(program), SIGKILL);
  is_refused();
}

TEST_F(AnsweringAtItsEnd, tells_MPS_to_hurry_when_it_ends_and_not_to_be_waited_for_when_it_goes) {
  server.reset();
  std::vector<double> hurries;
  options.ending_seconds = 7;
  options.hurry = [&](double seconds) { hurries.push_back(seconds); };
  start();
  server->end_all();
  EXPECT_THAT(hurries, testing::ElementsAre(7));
  server.reset();
  EXPECT_THAT(hurries, testing::ElementsAre(7, 0));
}

TEST_F(AnsweringAtItsEnd, kills_at_its_end_though_the_thread_that_asks_MPS_stands_still) {
  server.reset();
  options.hurry = [](double) {};
  options.ending_seconds = 0.05;
  may_be_dead = true;
  start();
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = program_with(token);
  mps_hangs = true;
  server->end_all();
  EXPECT_NO_FATAL_FAILURE(turn_until([&] { return status("a").processes.empty(); }));
  EXPECT_FALSE(is_alive(process));
  mps_hangs = false;
  ::kill(process, SIGKILL);
  EXPECT_EQ(end_of(process), SIGKILL);
}

TEST_F(AnsweringAtItsEnd, kills_nothing_before_MPS_has_had_its_time) {
  server.reset();
  options.hurry = [](double) {};
  options.ending_seconds = 1000;
  start();
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = program_with(token);
  mps_hangs = true;
  server->end_all();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(server->turn(1));
  EXPECT_TRUE(is_alive(process));
  mps_hangs = false;
  turn_until([&] { return status("a").processes.empty(); });
  EXPECT_EQ(end_of(process), SIGKILL);
}

}  // namespace
}  // namespace demarc::serve
