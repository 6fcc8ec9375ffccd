// Proves from the ledger that leases do not overlap.
#include "demarc/serve/ledger.hpp"

namespace demarc::serve {
namespace {

Result<void> prove_apart(const Terms& a, const Terms& b) {
  if (const auto both = a.tpcs & b.tpcs; !both.empty()) {
    return check_failed("tenants '{}' and '{}' share the TPCs {}", a.name, b.name, to_string(both));
  }
  if (const auto both = a.colors.common(b.colors); !both.empty()) {
    return check_failed("tenants '{}' and '{}' share the colours {}", a.name, b.name,
                        to_string(both));
  }
  if (a.sync_domain && a.sync_domain == b.sync_domain) {
    return check_failed("tenants '{}' and '{}' share the memory synchronisation domain {}", a.name,
                        b.name, *a.sync_domain);
  }
  return {};
}

Result<void> prove_owner(const Book& book, const std::string& tenant, color::LinearByte first,
                         ProcessId owner) {
  const auto process = book.processes.find(owner);
  if (process == book.processes.end()) {
    return check_failed("tenant '{}': the bytes at {} are of a process that is gone", tenant,
                        first);
  }
  const auto lease = book.leases.find(process->second.lease);
  if (lease == book.leases.end() || lease->second.tenant != tenant) {
    return check_failed("tenant '{}': the bytes at {} are of another tenant's process", tenant,
                        first);
  }
  return {};
}

Result<void> prove_owners(const Book& book, const std::string& tenant, color::LinearByte first,
                          const Holding& holding) {
  const bool given = holding.state == Holding::State::given;
  if (given && holding.owners.empty()) {
    return check_failed("tenant '{}': the bytes at {} are given, but to no process", tenant, first);
  }
  if (!given && (!holding.owners.empty() || !holding.keys.empty())) {
    return check_failed("tenant '{}': the bytes at {} belong to a process and to none", tenant,
                        first);
  }
  for (const auto& [process, owner] : holding.owners) {
    DEMARC_CHECK(prove_owner(book, tenant, first, process));
  }
  return {};
}

Result<void> prove_holdings(const Book& book, const Book::Tenant& tenant) {
  const std::string& name = tenant.terms.name;
  color::LinearByte end;  // the holdings so far end here
  for (const auto& [first, holding] : tenant.holdings) {
    if (first < end) {
      return check_failed("tenant '{}': the bytes at {} are given twice", name, first);
    }
    // What is lost is the tenant's no more, and lies anywhere in its share.
    const bool lost = holding.state == Holding::State::lost;
    const std::uint64_t most = lost ? tenant.terms.share_bytes : tenant.terms.bytes;
    if (holding.bytes == 0 || holding.bytes > most || first.raw() > most - holding.bytes) {
      return check_failed("tenant '{}': {} bytes at {}, of {} that it may have", name,
                          holding.bytes, first, most);
    }
    end = first + holding.bytes;
    DEMARC_CHECK(prove_owners(book, name, first, holding));
  }
  return {};
}

}  // namespace

Result<void> prove(const Book& book) {
  for (auto a = book.tenants.begin(); a != book.tenants.end(); ++a) {
    if (a->second.terms.bytes > a->second.terms.share_bytes) {
      return check_failed("tenant '{}': {} bytes of a share of {}", a->first, a->second.terms.bytes,
                          a->second.terms.share_bytes);
    }
    if (a->second.terms.sync_domain == 0U) {
      return check_failed(
          "tenant '{}' has the memory synchronisation domain 0, which is that of all programs "
          "without one",
          a->first);
    }
    for (auto b = std::next(a); b != book.tenants.end(); ++b) {
      DEMARC_CHECK(prove_apart(a->second.terms, b->second.terms));
    }
    DEMARC_CHECK(prove_holdings(book, a->second));
  }
  for (const auto& [id, lease] : book.leases) {
    if (book.tenants.contains(lease.tenant)) continue;
    return check_failed("lease {} is of '{}', a tenant that is gone", id, lease.tenant);
  }
  for (const auto& [id, process] : book.processes) {
    if (book.leases.contains(process.lease)) continue;
    return check_failed("process {} is of a lease that is gone", id);
  }
  return {};
}

}  // namespace demarc::serve
