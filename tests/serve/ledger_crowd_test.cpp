// The ledger gives nothing twice and loses nothing, whatever a crowd of clients does in whatever
// order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "demarc/serve/ledger.hpp"

namespace demarc::serve {
namespace {

using lease::extent_step;

// 64 clients of four tenants, each with a lease and a process of its own, beside a second book: the
// owners of every step of every tenant.
class Crowd {
 public:
  static constexpr std::uint64_t steps = 100;
  static constexpr std::size_t clients = 64;

  Crowd() {
    for (std::uint32_t t = 0; t < 4; ++t) {
      const Terms terms{name(t), {gpu::TpcIndex(t)},  {std::uint64_t{1} << t, 8},
                        {},      steps * extent_step, steps * extent_step};
      EXPECT_TRUE(ledger_.set(terms).has_value());
      owners_[name(t)].assign(steps, {});
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
    } else if (what < 11) {
      borrow(tenant, member, size);
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
      EXPECT_TRUE(owners_[tenant] == std::vector<Step>(steps));
    }
  }

  int grants = 0;
  int borrowed = 0;

 private:
  struct Step {
    std::set<ProcessId> owners;
    bool unclean = false;
    bool operator==(const Step&) const = default;
  };
  struct Member {
    LeaseId lease = 0;
    ProcessId process = 0;
    std::vector<lease::Extent> firsts;
  };
  static std::string name(std::uint32_t tenant) { return fmt::format("t{}", tenant); }

  template <class Change>
  void change(const std::string& tenant, const lease::Extent& extent, const Change& changed) {
    for (std::uint64_t i = 0; i < extent.bytes / extent_step; ++i) {
      changed(owners_.at(tenant).at(extent.first.raw() / extent_step + i));
    }
  }
  void leave(const std::string& tenant, const lease::Extent& extent, ProcessId process) {
    change(tenant, extent, [&](Step& step) {
      EXPECT_EQ(step.owners.erase(process), 1U);
      step.unclean = step.owners.empty();
    });
  }
  void take(const std::string& tenant, Member& member, std::uint64_t size) {
    const auto extent = ledger_.take(member.process, size * extent_step - 1);
    const std::vector<Step> wanted(size);
    const auto& owners = owners_.at(tenant);
    const bool free =
        std::search(owners.begin(), owners.end(), wanted.begin(), wanted.end()) != owners.end();
    EXPECT_EQ(extent.has_value(), free);
    if (!extent || !free) return;
    ++grants;
    EXPECT_TRUE(extent->bytes == size * extent_step);
    change(tenant, *extent, [&](Step& step) {
      EXPECT_TRUE(step == Step());
      step.owners = {member.process};
    });
    member.firsts.push_back(*extent);
  }
  // A range of whichever tenant, by the key that its owner gives it.
  void borrow(const std::string& tenant, Member& member, std::uint64_t which) {
    std::size_t from_client = (which * 7 + keys_) % clients;
    for (std::size_t i = 0; i < clients; ++i) {
      const auto& other = members_[from_client];
      if (other && !other->firsts.empty()) break;
      from_client = (from_client + 1) % clients;
    }
    if (!members_[from_client] || members_[from_client]->firsts.empty()) return;
    const Member& lender = *members_[from_client];
    const std::string from = name(static_cast<std::uint32_t>(from_client % 4));
    const lease::Extent wanted = lender.firsts[which % lender.firsts.size()];
    const std::string key =
        ledger_.lend(lender.process, wanted.first, 0, fmt::format("key {}", ++keys_)).value();
    const bool has =
        owners_.at(from)[wanted.first.raw() / extent_step].owners.contains(member.process);
    const auto extent = ledger_.borrow(member.process, key);
    EXPECT_EQ(extent.has_value(), from == tenant);
    if (!extent || has) return;
    ++borrowed;
    EXPECT_TRUE(*extent == wanted);
    change(tenant, *extent, [&](Step& step) { step.owners.insert(member.process); });
    member.firsts.push_back(*extent);
  }
  void give(const std::string& tenant, Member& member, std::size_t which) {
    const auto extent = member.firsts[which];
    EXPECT_TRUE(ledger_.give(member.process, extent.first).has_value());
    leave(tenant, extent, member.process);
    member.firsts.erase(member.firsts.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void end(std::size_t client) {
    if (!members_[client]) return;
    const Member member = *members_[client];
    const std::string tenant = name(static_cast<std::uint32_t>(client % 4));
    for (const auto& extent : member.firsts) leave(tenant, extent, member.process);
    // Whichever connection is seen to have ended first.
    if (client % 2 == 0) ledger_.close(member.lease);
    ledger_.detach(member.process);
    if (client % 2 != 0) ledger_.close(member.lease);
    members_[client].reset();
  }
  void clean(const Unclean& piece) {
    ledger_.cleaned(piece);
    change(piece.tenant, piece.extent, [](Step& step) {
      EXPECT_TRUE(step.unclean && step.owners.empty());
      step.unclean = false;
    });
  }

  Ledger ledger_;
  std::map<std::string, std::vector<Step>> owners_;  // [step]
  std::uint64_t keys_ = 0;
  std::array<std::optional<Member>, clients> members_;
};

TEST(Crowds, of_64_clients_never_share_a_byte_and_lose_none) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Crowd crowd;
    std::mt19937_64 random(seed);
    for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) {
      crowd.step(random() % Crowd::clients, static_cast<int>(random() % 12), 1 + random() % 12);
    }
    EXPECT_GT(crowd.grants, 100) << "seed " << seed;
    EXPECT_GT(crowd.borrowed, 20) << "seed " << seed;
    crowd.leave();
  }
}

}  // namespace
}  // namespace demarc::serve
