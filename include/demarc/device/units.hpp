// The numbers of SMs, TPCs and GPCs. None of these mixes with another one, or with a bare number
// (demarc/base/strong.hpp). How many there are of something is a bare number.
#pragma once

#include "demarc/base/per_index.hpp"
#include "demarc/base/strong.hpp"

namespace demarc::gpu {

// A multiprocessor, as the register %smid counts them. In a client of MPS it counts those of one
// launch and names none of the card.
using SmIndex = Location<struct SmIndexTag, std::uint32_t>;
// A texture processing cluster, as masks count them: bit t of a stream mask is TPC t. The bits of
// the hardware's task descriptor have another order (Tpc::bit).
using TpcIndex = Location<struct TpcIndexTag, std::uint32_t>;
// A graphics processing cluster, as the topology counts them.
using GpcIndex = Index<struct GpcIndexTag>;

}  // namespace demarc::gpu
