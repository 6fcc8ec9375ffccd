// Opens a lease, notes it in a control block, and lets go of it when the server ends it.
#include "tenant_lease.hpp"

#include <filesystem>

#include "demarc/color/page_pieces.hpp"
#include "demarc/lease/sockets.hpp"

namespace demarc::cuda {
namespace {

// Each process of the program finds out, too, but the program has begun by then.
Result<void> check_windows(const lease::Lease& lease) {
  if (const auto survive = color::check_survives_pages(*lease.share.law); !survive) {
    return missing_capability("--windows always is not possible in the memory of tenant '{}': {}",
                              lease.tenant, survive.error().message);
  }
  return {};
}

}  // namespace

Result<TenantLease> TenantLease::open(const ConfinePlan& plan, const Control& control) {
  DEMARC_TRY(const std::string found, lease::find_socket(plan.socket));
  // The program's processes may be in other folders.
  const std::string socket = std::filesystem::absolute(found);
  ControlBlock& block = control.block();
  if (socket.size() >= sizeof block.lease_socket) {
    return invalid_input("{}: the path of a socket has at most {} characters", socket,
                         sizeof block.lease_socket - 1);
  }
  DEMARC_TRY(auto client, lease::LeaseClient::connect(socket));
  DEMARC_TRY(auto opened, client.open(plan.tenant, control.value()));
  if (plan.windows == WindowUse::always) DEMARC_CHECK(check_windows(opened.lease));
  if (opened.token.size() >= sizeof block.lease_token) {
    return check_failed("the token of the lease has {} characters; at most {} were expected",
                        opened.token.size(), sizeof block.lease_token - 1);
  }
  // A new block is full of zeros.
  socket.copy(block.lease_socket, sizeof block.lease_socket);
  opened.token.copy(block.lease_token, sizeof block.lease_token);
  return TenantLease(std::move(client), std::move(opened));
}

bool TenantLease::refuses_machine_code(WindowUse windows) const {
  return windows == WindowUse::never || lease().window_bytes == 0 ||
         !color::check_survives_pages(*lease().share.law);
}

void TenantLease::let_go(const std::function<void(const std::string& line)>& tell) {
  if (tell) {
    tell(fmt::format("{}; no other process of the program gets anything of it",
                     client_->last_words()));
  }
  client_.reset();
}

}  // namespace demarc::cuda
