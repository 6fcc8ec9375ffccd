// The ledger gives nothing twice and loses nothing, whatever a crowd of clients does in whatever
// order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "demarc/serve/ledger.hpp"

namespace demarc::serve {
namespace {

using lease::extent_step;

// 64 clients of four tenants, each with a lease and a process of its own, beside a second book: the
// owner of every step of every tenant.
class Crowd {
 public:
  static constexpr std::uint64_t steps = 100;
  static constexpr std::size_t clients = 64;

  Crowd() {
    for (std::uint32_t t = 0; t < 4; ++t) {
      const Terms terms{name(t), {gpu::TpcIndex(t)},  {std::uint64_t{1} << t, 8},
                        {},      steps * extent_step, steps * extent_step};
      EXPECT_TRUE(ledger_.set(terms).has_value());
      owners_[name(t)].assign(steps, 0);
    }
  }

  void step(std::size_t client, int what, std::uint64_t size) {
    const std::string tenant = name(static_cast<std::uint32_t>(client % 4));
    if (!members_[client]) {
      const LeaseId lease = ledger_.open(tenant).value();
      members_[client] = {lease, ledger_.attach(lease).value(), {}};
      ++grants;
    }
    Member& member = *members_[client];
    if (what < 5) {
      take(tenant, member, size);
    } else if (what < 8) {
      if (!member.firsts.empty()) give(tenant, member, size % member.firsts.size());
    } else if (what == 8) {
      end(client);
    } else if (const auto piece = ledger_.next_unclean(size * extent_step / 3 + extent_step)) {
      clean(*piece);
    }
    const auto sound = prove(ledger_.book());
    EXPECT_TRUE(sound) << sound.error().message;
  }

  // Everything that was given comes back.
  void leave() {
    for (std::size_t client = 0; client < clients; ++client) end(client);
    while (const auto piece = ledger_.next_unclean(UINT64_MAX)) clean(*piece);
    EXPECT_TRUE(ledger_.book().leases.empty());
    EXPECT_TRUE(ledger_.book().processes.empty());
    for (const auto& [tenant, entry] : ledger_.book().tenants) {
      EXPECT_TRUE(entry.holdings.empty());
      EXPECT_TRUE(owners_[tenant] == std::vector<ProcessId>(steps, 0));
    }
  }

  int grants = 0;

 private:
  static constexpr ProcessId nobody = UINT64_MAX;
  struct Member {
    LeaseId lease = 0;
    ProcessId process = 0;
    std::vector<lease::Extent> firsts;
  };
  static std::string name(std::uint32_t tenant) { return fmt::format("t{}", tenant); }

  void replace_owner(const std::string& tenant, const lease::Extent& extent, ProcessId from,
                     ProcessId to) {
    for (std::uint64_t i = 0; i < extent.bytes / extent_step; ++i) {
      ProcessId& owner = owners_.at(tenant).at(extent.first.raw() / extent_step + i);
      EXPECT_EQ(owner, from);
      owner = to;
    }
  }
  void take(const std::string& tenant, Member& member, std::uint64_t size) {
    const auto extent = ledger_.take(member.process, size * extent_step - 1);
    const std::vector<ProcessId> wanted(size, 0);
    const auto& owners = owners_.at(tenant);
    const bool free =
        std::search(owners.begin(), owners.end(), wanted.begin(), wanted.end()) != owners.end();
    EXPECT_EQ(extent.has_value(), free);
    if (!extent || !free) return;
    ++grants;
    EXPECT_TRUE(extent->bytes == size * extent_step);
    replace_owner(tenant, *extent, 0, member.process);
    member.firsts.push_back(*extent);
  }
  void give(const std::string& tenant, Member& member, std::size_t which) {
    const auto extent = member.firsts[which];
    EXPECT_TRUE(ledger_.give(member.process, extent.first).has_value());
    replace_owner(tenant, extent, member.process, nobody);
    member.firsts.erase(member.firsts.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void end(std::size_t client) {
    if (!members_[client]) return;
    const Member member = *members_[client];
    const std::string tenant = name(static_cast<std::uint32_t>(client % 4));
    for (const auto& extent : member.firsts) replace_owner(tenant, extent, member.process, nobody);
    // Whichever connection is seen to have ended first.
    if (client % 2 == 0) ledger_.close(member.lease);
    ledger_.detach(member.process);
    if (client % 2 != 0) ledger_.close(member.lease);
    members_[client].reset();
  }
  void clean(const Unclean& piece) {
    ledger_.cleaned(piece);
    replace_owner(piece.tenant, piece.extent, nobody, 0);
  }

  Ledger ledger_;
  std::map<std::string, std::vector<ProcessId>> owners_;  // [step]; 0: free
  std::array<std::optional<Member>, clients> members_;
};

TEST(Crowds, of_64_clients_never_share_a_byte_and_lose_none) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Crowd crowd;
    std::mt19937_64 random(seed);
    for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) {
      crowd.step(random() % Crowd::clients, static_cast<int>(random() % 10), 1 + random() % 12);
    }
    EXPECT_GT(crowd.grants, 100) << "seed " << seed;
    crowd.leave();
  }
}

}  // namespace
}  // namespace demarc::serve
