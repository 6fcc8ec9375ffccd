// Shows a policy one client's SMs.
#include "block_dispatch.hpp"

#include <algorithm>

namespace demarc::sim::memory {
namespace {

SmSpec sm_capacity(const Spec& spec, const ClientSpec& client) {
  const std::uint32_t own = client.threads_per_sm == 0 ? spec.threads : client.threads_per_sm;
  return {static_cast<std::uint32_t>(client.sms.size()),
          4,
          4,
          {spec.threads, spec.blocks, std::max(spec.shared_bytes, 1U), own}};
}

}  // namespace

BlockDispatch::BlockDispatch(const Spec& spec, const ClientSpec& client)
    : sms_(client.sms.begin(), client.sms.end()),
      position_(spec.sms(), no_sm),
      machine_(sm_capacity(spec, client)),
      sharing_(client.sharing),
      limits_shared_(spec.shared_bytes != 0),
      request_(4) {
  for (const SmIndex own : sms_.keys()) position_.at(sms_[own]) = own;
  PolicySettings settings;
  if (sharing_) settings.sharing = {sharing_.get()};
  policy_ = client.dispatch->make(settings);
}

void BlockDispatch::set_request(const KernelShape& shape, bool own) {
  const std::uint32_t threads = shape.warps() * 32;
  request_ = {threads, 1, limits_shared_ ? shape.shared_bytes : 0, own ? threads : 0};
}

BlockDispatch::Choice BlockDispatch::choose(const KernelShape& shape, std::uint32_t placed) {
  set_request(shape, true);
  const SmIndex chosen =
      policy_->choose(machine_, {request_, KernelIndex(), BlockNumber(placed), shape.blocks});
  const std::span<const BlockNumber> given = policy_->given();
  return {chosen == no_sm ? SmIndex(none) : sms_[chosen],
          given.empty() ? placed : given.front().raw()};
}

void BlockDispatch::placed(SmIndex sm, const KernelShape& shape, bool own) {
  if (position_[sm] == no_sm) return;
  set_request(shape, own);
  machine_.place(position_[sm], {.sm = request_, .kernel = {}, .block = {}, .blocks = 0});
}

void BlockDispatch::ended(SmIndex sm, const KernelShape& shape, bool own) {
  if (position_[sm] == no_sm) return;
  set_request(shape, own);
  Machine::Release<false> release(machine_);
  release(position_[sm], request_.data(), 1);
}

}  // namespace demarc::sim::memory
