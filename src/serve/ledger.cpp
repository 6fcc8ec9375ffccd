// Changes the ledger. A change is made as a whole, or refused, and then nothing changes.
#include "demarc/serve/ledger.hpp"

#include <algorithm>

#include "demarc/base/free_ranges.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/base/text.hpp"

namespace demarc::serve {
namespace {

using color::LinearByte;
using lease::extent_step;

// So that what is told of a tenant fits a packet.
constexpr std::uint64_t max_processes = 1024;
// So that keys take little memory of the server.
constexpr std::uint64_t max_lent = 4096;
// The most that processes of a tenant may share: each grant proves all of them, whichever tenant
// asks.
constexpr std::uint64_t max_borrowed = 4096;

std::uint64_t borrowed_of(const Book::Tenant& tenant) {
  std::uint64_t sum = 0;
  for (const auto& [first, holding] : tenant.holdings) {
    sum += holding.owners.empty() ? 0 : holding.owners.size() - 1;
  }
  return sum;
}

constexpr std::uint64_t whole_steps(std::uint64_t bytes) {
  return bytes / extent_step * extent_step;
}

Holdings lost_of(const Book::Tenant& tenant) {
  Holdings lost = tenant.holdings;
  std::erase_if(lost, [](const auto& entry) { return entry.second.state != Holding::State::lost; });
  return lost;
}

LinearByte end_of_holdings(const Book::Tenant& tenant) {
  LinearByte end;
  for (const auto& [first, holding] : tenant.holdings) {
    if (holding.state != Holding::State::lost) end = first + holding.bytes;
  }
  return end;
}

Result<void> check_terms(const Terms& terms) {
  if (terms.tpcs.empty()) return invalid_input("tenant '{}' has no TPCs", terms.name);
  if (terms.colors.empty()) {
    return invalid_input("tenant '{}' has no colours: its memory would belong to all tenants",
                         terms.name);
  }
  if (terms.bytes > terms.share_bytes) {
    return invalid_input("tenant '{}': {} bytes were asked for, but its colours hold {}",
                         terms.name, terms.bytes, terms.share_bytes);
  }
  if (whole_steps(terms.bytes) == 0) {
    return invalid_input("tenant '{}': {} bytes; at least {} were expected", terms.name,
                         terms.bytes, extent_step);
  }
  return {};
}

// What a tenant that is used keeps.
Result<void> check_kept(const Book::Tenant& now, const Terms& terms) {
  if (now.terms.colors != terms.colors || now.terms.share_bytes != terms.share_bytes) {
    return invalid_input("tenant '{}' is in use: its colours stay", terms.name);
  }
  if (now.terms.sync_domain != terms.sync_domain) {
    return invalid_input("tenant '{}' is in use: its memory synchronisation domain stays",
                         terms.name);
  }
  if (end_of_holdings(now) > LinearByte(terms.bytes)) {
    return invalid_input("tenant '{}' uses its memory up to byte {}: {} bytes are too few",
                         terms.name, end_of_holdings(now), terms.bytes);
  }
  return {};
}

// What no holding has.
FreeRanges<LinearByte> free_of(const Book::Tenant& tenant) {
  FreeRanges<LinearByte> free;
  LinearByte begin;
  const LinearByte most(whole_steps(tenant.terms.bytes));
  for (const auto& [first, holding] : tenant.holdings) {
    free.put(begin, std::min(first, most));
    begin = first + holding.bytes;
  }
  free.put(begin, most);
  return free;
}

// What its last owner leaves is unclean, and cannot be borrowed any more.
void remove_owner(Holding& holding, ProcessId process) {
  if (holding.owners.erase(process) == 0 || !holding.owners.empty()) return;
  holding = {holding.bytes, {}, Holding::State::unclean};
}

std::string names_of(const Book& book) {
  std::vector<std::string> names;
  for (const auto& [name, tenant] : book.tenants) names.push_back(name);
  return names.empty() ? "none" : joined(names, ", ");
}

}  // namespace

const Book::Tenant* Ledger::tenant(const std::string& name) const {
  const auto found = book_.tenants.find(name);
  return found == book_.tenants.end() ? nullptr : &found->second;
}

Result<const Book::Tenant*> Ledger::known_tenant(const std::string& name) const {
  if (const Book::Tenant* found = tenant(name)) return found;
  return invalid_input("there is no tenant '{}'; the tenants are: {}", name, names_of(book_));
}

bool Ledger::busy(const std::string& name) const {
  const Book::Tenant* found = tenant(name);
  return (found != nullptr && end_of_holdings(*found) != LinearByte()) ||
         std::any_of(book_.leases.begin(), book_.leases.end(),
                     [&](const auto& entry) { return entry.second.tenant == name; });
}

const std::string& Ledger::tenant_of(ProcessId process) const {
  return book_.leases.at(book_.processes.at(process).lease).tenant;
}

Book::Tenant& Ledger::tenant_with(ProcessId process) {
  return book_.tenants.at(tenant_of(process));
}

std::uint64_t Ledger::processes_of(const std::string& name) const {
  return static_cast<std::uint64_t>(std::count_if(
      book_.processes.begin(), book_.processes.end(),
      [&](const auto& entry) { return book_.leases.at(entry.second.lease).tenant == name; }));
}

Result<void> Ledger::set(const Terms& terms) {
  std::vector<Terms> all;
  for (const auto& [name, tenant] : book_.tenants) {
    if (name != terms.name) all.push_back(tenant.terms);
  }
  all.push_back(terms);
  return replace(all);
}

Result<void> Ledger::replace(const std::vector<Terms>& terms) {
  Book next{{}, book_.leases, book_.processes, book_.lost};
  for (const auto& [name, tenant] : book_.tenants) {
    if (auto lost = lost_of(tenant); !lost.empty()) next.lost[tenant.terms.colors] = lost;
  }
  for (const Terms& wanted : terms) {
    DEMARC_CHECK(check_terms(wanted));
    if (next.tenants.contains(wanted.name)) {
      return invalid_input("tenant '{}' is there twice", wanted.name);
    }
    Book::Tenant& entry = next.tenants[wanted.name];
    if (const Book::Tenant* now = tenant(wanted.name)) {
      if (busy(wanted.name)) DEMARC_CHECK(check_kept(*now, wanted));
      entry = *now;
    }
    entry.terms = wanted;
    // What is lost stays so for whichever tenant has the share.
    std::erase_if(entry.holdings,
                  [](const auto& one) { return one.second.state == Holding::State::lost; });
    if (auto lost = next.lost.extract(wanted.colors)) entry.holdings.merge(lost.mapped());
  }
  for (const auto& [name, tenant] : book_.tenants) {
    if (!next.tenants.contains(name) && busy(name)) {
      return invalid_input("tenant '{}' is in use: it stays", name);
    }
  }
  if (auto sound = prove(next); !sound) return invalid_input("{}", sound.error().message);
  book_ = std::move(next);
  return {};
}

std::uint64_t shown_bytes(const Book::Tenant& tenant) {
  std::uint64_t shown = 0;
  for (const auto& [first, holding] : tenant.holdings) {
    for (const auto& [process, owner] : holding.owners) {
      if (owner.shown) shown += holding.bytes;
    }
  }
  return shown;
}

bool is_full(const Book::Tenant& tenant) {
  std::uint64_t used = 0;
  for (const auto& [first, holding] : tenant.holdings) {
    if (holding.state != Holding::State::unclean) used += holding.bytes;
  }
  return used >= whole_steps(tenant.terms.bytes);
}

Result<LeaseId> Ledger::open(const std::string& name) {
  DEMARC_TRY(const Book::Tenant* found, known_tenant(name));
  if (found->revoked) {
    return missing_capability("tenant '{}' was revoked: its processes must end first", name);
  }
  const LeaseId id = ++last_id_;
  book_.leases[id] = {name, true};
  return id;
}

void Ledger::close(LeaseId lease) {
  book_.leases.at(lease).open = false;
  end_lease_without_users(lease);
}

Result<ProcessId> Ledger::attach(LeaseId lease) {
  const std::string& name = book_.leases.at(lease).tenant;
  if (tenant(name)->revoked) {
    return missing_capability("tenant '{}' was revoked", name);
  }
  if (processes_of(name) >= max_processes) {
    return missing_capability("tenant '{}' already has {} processes, the largest possible number",
                              name, max_processes);
  }
  const ProcessId id = ++last_id_;
  book_.processes[id] = {lease};
  return id;
}

void Ledger::detach(ProcessId process) {
  const LeaseId lease = book_.processes.at(process).lease;
  for (auto& [first, holding] : tenant_with(process).holdings) remove_owner(holding, process);
  book_.processes.erase(process);
  end_lease_without_users(lease);
}

void Ledger::end_lease_without_users(LeaseId lease) {
  const Book::Lease entry = book_.leases.at(lease);
  if (entry.open) return;
  for (const auto& [id, process] : book_.processes) {
    if (process.lease == lease) return;
  }
  book_.leases.erase(lease);
  for (const auto& [id, other] : book_.leases) {
    if (other.tenant == entry.tenant) return;
  }
  book_.tenants.at(entry.tenant).revoked = false;
}

Result<lease::Extent> Ledger::take(ProcessId process, std::uint64_t bytes) {
  Book::Tenant& tenant = tenant_with(process);
  const Terms& terms = tenant.terms;
  if (tenant.revoked) {
    return missing_capability("tenant '{}' was revoked", terms.name);
  }
  if (bytes == 0) return invalid_input("0 bytes were asked for");
  auto free = free_of(tenant);
  const std::uint64_t longest = free.longest();
  const std::uint64_t whole = round_up(std::min(bytes, longest), extent_step);
  const auto first = bytes <= longest ? free.take(whole) : std::nullopt;
  if (!first) {
    return missing_capability("{} bytes for tenant '{}': the longest free run has {} of {}", bytes,
                              terms.name, longest, terms.bytes);
  }
  tenant.holdings[*first] = {whole, {{process, {}}}};
  return lease::Extent{*first, whole};
}

void Ledger::count_refusal(ProcessId process) {
  ++tenant_with(process).refused_takes;
}

Result<Holding*> Ledger::owned(ProcessId process, LinearByte first) {
  auto& holdings = tenant_with(process).holdings;
  const auto found = holdings.find(first);
  if (found == holdings.end() || !found->second.owners.contains(process)) {
    return invalid_input("no bytes of this process begin at {}", first);
  }
  return &found->second;
}

Result<void> Ledger::give(ProcessId process, LinearByte first) {
  DEMARC_TRY(Holding* const holding, owned(process, first));
  remove_owner(*holding, process);
  return {};
}

Result<std::string> Ledger::lend(ProcessId process, LinearByte first, std::uint64_t place,
                                 const std::string& key) {
  DEMARC_TRY(Holding* const holding, owned(process, first));
  if (place >= holding->bytes) {
    return invalid_input("the {} bytes at {} have no byte {}", holding->bytes, first, place);
  }
  if (const auto known = holding->keys.find(place); known != holding->keys.end()) {
    return known->second;
  }
  std::uint64_t lent = 0;
  const Book::Tenant& tenant = tenant_with(process);
  for (const auto& [other, one] : tenant.holdings) lent += one.keys.size();
  if (lent >= max_lent) {
    return missing_capability(
        "tenant '{}' already shares {} allocations between its processes, the largest possible "
        "number",
        tenant.terms.name, max_lent);
  }
  holding->keys[place] = key;
  return key;
}

Result<void> Ledger::withdraw(ProcessId process, LinearByte first, std::uint64_t place) {
  DEMARC_TRY(Holding* const holding, owned(process, first));
  if (holding->keys.erase(place) != 0) return {};
  return invalid_input("nothing at byte {} of the bytes at {} is lent", place, first);
}

Result<lease::Extent> Ledger::borrow(ProcessId process, const std::string& key) {
  Book::Tenant& tenant = tenant_with(process);
  const std::string& name = tenant.terms.name;
  if (tenant.revoked) return missing_capability("tenant '{}' was revoked", name);
  for (auto& [first, holding] : tenant.holdings) {
    const auto has_key = [&](const auto& entry) { return entry.second == key; };
    if (std::none_of(holding.keys.begin(), holding.keys.end(), has_key)) continue;
    if (!holding.owners.contains(process) && borrowed_of(tenant) >= max_borrowed) {
      return missing_capability(
          "processes of tenant '{}' already use {} ranges of each other, the largest possible "
          "number",
          name, max_borrowed);
    }
    holding.owners.try_emplace(process);
    return lease::Extent{first, holding.bytes};
  }
  return invalid_input(
      "no process of tenant '{}' shares memory under this key: the memory was freed, or it belongs "
      "to another tenant or another server",
      name);
}

Result<void> Ledger::show(ProcessId process, LinearByte first) {
  DEMARC_TRY(Holding* const holding, owned(process, first));
  Owner& owner = holding->owners.at(process);
  if (owner.shown) return {};
  const Book::Tenant& tenant = tenant_with(process);
  const std::uint64_t shown = shown_bytes(tenant);
  const Terms& terms = tenant.terms;
  if (terms.window_bytes < shown || holding->bytes > terms.window_bytes - shown) {
    return missing_capability(
        "{} bytes of windows for tenant '{}': {} of {} are in use (windows = \"...\" in the "
        "server's configuration gives more)",
        holding->bytes, terms.name, shown, terms.window_bytes);
  }
  owner.shown = true;
  return {};
}

std::uint64_t Ledger::shown_bytes_of(ProcessId process) const {
  std::uint64_t shown = 0;
  for (const auto& [first, holding] : tenant(tenant_of(process))->holdings) {
    const auto owner = holding.owners.find(process);
    if (owner != holding.owners.end() && owner->second.shown) shown += holding.bytes;
  }
  return shown;
}

Result<void> Ledger::revoke(const std::string& name) {
  DEMARC_CHECK(known_tenant(name));
  const bool leased = std::any_of(book_.leases.begin(), book_.leases.end(),
                                  [&](const auto& entry) { return entry.second.tenant == name; });
  book_.tenants.at(name).revoked = leased;
  return {};
}

std::optional<Unclean> Ledger::next_unclean(std::uint64_t most, const std::string& wanted) const {
  for (const auto& [name, tenant] : book_.tenants) {
    if (!wanted.empty() && name != wanted) continue;
    for (const auto& [first, holding] : tenant.holdings) {
      if (holding.state != Holding::State::unclean) continue;
      return Unclean{name,
                     {first, std::min(holding.bytes, std::max(whole_steps(most), extent_step))}};
    }
  }
  return std::nullopt;
}

void Ledger::cleaned(const Unclean& piece) {
  auto& holdings = book_.tenants.at(piece.tenant).holdings;
  const auto& [first, bytes] = piece.extent;
  const std::uint64_t rest = holdings.at(first).bytes - bytes;
  holdings.erase(first);
  if (rest != 0) holdings[first + bytes] = {rest, {}, Holding::State::unclean};
}

void Ledger::lose(const Unclean& piece) {
  book_.tenants.at(piece.tenant).holdings.at(piece.extent.first).state = Holding::State::lost;
}

}  // namespace demarc::serve
