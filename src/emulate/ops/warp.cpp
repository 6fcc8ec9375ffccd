// Carries out shuffles, votes, matches and reductions between the lanes of a warp.
#include "ops/warp.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "groups.hpp"

namespace demarc::emulate {

namespace warp_ops {

namespace {

std::uint64_t get(Warp& w, const WarpDetails& details, unsigned operand, unsigned width,
                  unsigned lane) {
  std::uint64_t value = 0;
  std::memcpy(
      &value,
      w.frame + details.slot[operand] + (details.uniform[operand] ? 0 : std::size_t{lane} * width),
      width);
  return value;
}

// The lanes that run get their results.
void give(Warp& w, const MicroOp* op, const std::uint32_t (&result)[warp_size]) {
  auto* d = w.at<std::uint32_t>(op->d);
  if (w.mask == full_mask) {
    std::memcpy(d, result, sizeof result);
    return;
  }
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1)
    d[std::countr_zero(rest)] = result[std::countr_zero(rest)];
}

void shuffle(Warp& w, const MicroOp* op, const WarpDetails& details) {
  std::uint32_t result[warp_size];
  Mask in_range = 0;
  const auto* data = w.at<std::uint32_t>(details.slot[0]);
  std::uint32_t offered[warp_size];
  if (w.mask != full_mask || details.uniform[0]) {
    // What a lane that takes no part has is not defined; a card gives 0.
    for (unsigned lane = 0; lane < warp_size; ++lane)
      offered[lane] = (w.mask >> lane & 1U) != 0 ? data[details.uniform[0] ? 0 : lane] : 0;
    data = offered;
  }
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const auto b = static_cast<unsigned>(get(w, details, 1, 4, lane)) & 31U;
    const auto c = static_cast<unsigned>(get(w, details, 2, 4, lane));
    const unsigned clamp = c & 31U;
    const unsigned segment = (c >> 8) & 31U;
    const unsigned highest = (lane & segment) | (clamp & ~segment & 31U);
    const unsigned lowest = lane & segment;
    unsigned from = lowest | (b & ~segment & 31U);
    if (details.operation == WarpOperation::shuffle_up) from = lane - b;
    if (details.operation == WarpOperation::shuffle_down) from = lane + b;
    if (details.operation == WarpOperation::shuffle_butterfly) from = lane ^ b;
    const bool valid =
        details.operation == WarpOperation::shuffle_up ? lane >= highest + b : from <= highest;
    if (!valid) from = lane;
    in_range |= static_cast<Mask>(valid) << lane;
    result[lane] = data[from];
  }
  if (details.has_result) give(w, op, result);
  if (details.has_predicate) {
    Mask& p = *w.at<Mask>(details.predicate);
    p = (p & ~w.mask) | (in_range & w.mask);
  }
}

// Lanes of `voters` that are in `p` vote yes.
bool outcome_of_vote(WarpOperation operation, Mask p, Mask voters) {
  switch (operation) {
    case WarpOperation::vote_all:
      return p == voters;
    case WarpOperation::vote_any:
      return p != 0;
    default:
      return p == 0 || p == voters;
  }
}

void vote(Warp& w, const MicroOp* op, const WarpDetails& details) {
  Mask p = *w.at<Mask>(details.slot[0]);
  if (details.negated) p = ~p;
  p &= w.mask;
  if (details.operation == WarpOperation::vote_ballot) {
    std::uint32_t result[warp_size];
    std::fill_n(result, warp_size, p);
    give(w, op, result);
    return;
  }
  Mask& d = *w.at<Mask>(op->d);
  d = (d & ~w.mask) | (outcome_of_vote(details.operation, p, w.mask) ? w.mask : 0);
}

void match(Warp& w, const MicroOp* op, const WarpDetails& details) {
  Mask result[warp_size] = {};
  Mask same_everywhere = 0;
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const auto members = static_cast<Mask>(get(w, details, 1, 4, lane)) & w.mask;
    const std::uint64_t mine = get(w, details, 0, details.width, lane);
    for (Mask others = members; others != 0; others &= others - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(others));
      if (get(w, details, 0, details.width, other) == mine) result[lane] |= Mask{1} << other;
    }
    if (details.operation == WarpOperation::match_all) {
      if (result[lane] == members) {
        same_everywhere |= Mask{1} << lane;
      } else {
        result[lane] = 0;
      }
    }
  }
  if (details.has_result) give(w, op, result);
  if (details.has_predicate) {
    Mask& p = *w.at<Mask>(details.predicate);
    p = (p & ~w.mask) | (same_everywhere & w.mask);
  }
}

void reduce(Warp& w, const MicroOp* op, const WarpDetails& details) {
  std::uint32_t result[warp_size] = {};
  // Signed numbers are in the order of unsigned ones once their sign is turned over.
  const std::uint32_t sign = details.is_signed ? 0x80000000U : 0;
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const auto members = static_cast<Mask>(get(w, details, 1, 4, lane)) & w.mask;
    const auto value_of_first = [&](Mask some) {
      return static_cast<std::uint32_t>(
          get(w, details, 0, 4, static_cast<unsigned>(std::countr_zero(some))));
    };
    std::uint32_t sum = value_of_first(members);
    for (Mask others = members & (members - 1); others != 0; others &= others - 1) {
      const std::uint32_t value = value_of_first(others);
      switch (details.operation) {
        case WarpOperation::reduce_add:
          sum += value;
          break;
        case WarpOperation::reduce_min:
          sum = std::min(sum ^ sign, value ^ sign) ^ sign;
          break;
        case WarpOperation::reduce_max:
          sum = std::max(sum ^ sign, value ^ sign) ^ sign;
          break;
        case WarpOperation::reduce_and:
          sum &= value;
          break;
        case WarpOperation::reduce_or:
          sum |= value;
          break;
        default:
          sum ^= value;
          break;
      }
    }
    result[lane] = sum;
  }
  give(w, op, result);
}

void elect(Warp& w, const MicroOp* op, const WarpDetails& details) {
  const auto leader = static_cast<unsigned>(std::countr_zero(w.mask));
  auto* d = w.at<std::uint32_t>(op->d);
  for (Mask rest = w.mask; rest != 0 && details.has_result; rest &= rest - 1) {
    d[std::countr_zero(rest)] = details.operation == WarpOperation::elect ? leader : w.mask;
  }
  if (details.has_predicate) {
    Mask& p = *w.at<Mask>(details.predicate);
    p = (p & ~w.mask) | (Mask{1} << leader);
  }
}

void exchange_here(Warp& w, const MicroOp* op, const WarpDetails& details) {
  switch (details.operation) {
    case WarpOperation::shuffle_up:
    case WarpOperation::shuffle_down:
    case WarpOperation::shuffle_butterfly:
    case WarpOperation::shuffle_index:
      shuffle(w, op, details);
      break;
    case WarpOperation::vote_all:
    case WarpOperation::vote_any:
    case WarpOperation::vote_uniform:
    case WarpOperation::vote_ballot:
      vote(w, op, details);
      break;
    case WarpOperation::match_any:
    case WarpOperation::match_all:
      match(w, op, details);
      break;
    case WarpOperation::active_mask:
    case WarpOperation::elect:
      elect(w, op, details);
      break;
    case WarpOperation::reduce_add:
    case WarpOperation::reduce_min:
    case WarpOperation::reduce_max:
    case WarpOperation::reduce_and:
    case WarpOperation::reduce_or:
    case WarpOperation::reduce_xor:
      reduce(w, op, details);
      break;
    case WarpOperation::synchronize:
      break;
  }
}

Mask members_of(Warp& w, const WarpDetails& details, unsigned lane) {
  return static_cast<Mask>(
      get(w, details, static_cast<unsigned>(details.members), sizeof(Mask), lane));
}

// The lanes that run and name the same members as the first of `rest`.
Mask party_of_first(Warp& w, const WarpDetails& details, Mask rest, Mask members) {
  if (details.uniform[details.members]) return rest;
  Mask party = 0;
  for (; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (members_of(w, details, lane) == members) party |= Mask{1} << lane;
  }
  return party;
}

// The places of operands and results in a frame that an exchange between other frames takes.
using ScratchRow = std::array<std::byte, warp_size * sizeof(std::uint64_t)>;
struct alignas(64) Scratch {
  std::array<ScratchRow, std::size(WarpDetails{}.slot)> operands{};
  ScratchRow result{};
  ScratchRow predicate{};
};

bool votes(const WarpDetails& details) {
  return details.operation >= WarpOperation::vote_all &&
         details.operation <= WarpOperation::vote_ballot;
}

bool gives_predicate(const WarpDetails& details) {
  return votes(details) && details.operation != WarpOperation::vote_ballot;
}

// Bytes of an operand; 0: a predicate.
unsigned operand_width(const WarpDetails& details, unsigned operand) {
  if (operand != 0) return sizeof(std::uint32_t);
  if (votes(details)) return 0;
  const bool matches = details.operation == WarpOperation::match_any ||
                       details.operation == WarpOperation::match_all;
  return matches ? details.width : sizeof(std::uint32_t);
}

void gather_operands(Warp& w, const WarpDetails& details, Mask lanes, Scratch& scratch) {
  for (unsigned operand = 0; operand <= static_cast<unsigned>(details.members); ++operand) {
    ScratchRow& to = scratch.operands[operand];
    const unsigned width = operand_width(details, operand);
    if (width == 0) {
      const Mask p = *w.at<Mask>(details.slot[operand]) ^ (details.negated ? full_mask : 0);
      Mask& d = *reinterpret_cast<Mask*>(to.data());
      d = (d & ~lanes) | (p & lanes);
      continue;
    }
    for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      const std::uint64_t value = get(w, details, operand, width, lane);
      std::memcpy(&to[std::size_t{lane} * width], &value, width);
    }
  }
}

void scatter_results(Warp& w, const MicroOp* op, const WarpDetails& details, Mask lanes,
                     const Scratch& scratch) {
  const auto give_predicate = [&](std::uint32_t slot, const ScratchRow& from) {
    Mask& p = *w.at<Mask>(slot);
    p = (p & ~lanes) | (*reinterpret_cast<const Mask*>(from.data()) & lanes);
  };
  if (gives_predicate(details)) {
    give_predicate(op->d, scratch.result);
  } else if (details.has_result) {
    const auto* from = reinterpret_cast<const std::uint32_t*>(scratch.result.data());
    for (Mask rest = lanes; rest != 0; rest &= rest - 1)
      w.at<std::uint32_t>(op->d)[std::countr_zero(rest)] = from[std::countr_zero(rest)];
  }
  if (details.has_predicate) give_predicate(details.predicate, scratch.predicate);
}

}  // namespace

bool is_same(const MicroOp* a, const MicroOp* b) {
  const auto& one = *static_cast<const WarpDetails*>(a->aux);
  const auto& other = *static_cast<const WarpDetails*>(b->aux);
  return one.operation == other.operation && operand_width(one, 0) == operand_width(other, 0) &&
         one.is_signed == other.is_signed;
}

namespace {

// The header behind the exchange counts the rest of the run again.
void count_no_rest(Warp& w, const MicroOp* op) {
  const std::uint64_t rest = op[1].imm;
  w.budget += static_cast<std::int64_t>(rest);
  w.warp_instructions -= rest;
  w.thread_instructions -= rest * static_cast<unsigned>(std::popcount(w.mask));
}

// Some of the lanes that run may have to wait for others. It is kept out of exchange(), which would
// save more registers for it than the lanes of a whole warp need.
[[gnu::noinline]] const MicroOp* exchange_apart(Warp& w, const MicroOp* op,
                                                const WarpDetails& details) {
  if ((op->flags & within_run) != 0) count_no_rest(w, op);
  const Mask all = w.mask;
  for (Mask rest = all; rest != 0;) {
    const auto first = static_cast<unsigned>(std::countr_zero(rest));
    const Mask members = members_of(w, details, first);
    const Mask party = party_of_first(w, details, rest, members);
    rest &= ~party;
    if ((party & ~members) != 0) {
      return w.block->stop_with(
          w, op, static_cast<unsigned>(std::countr_zero(party & ~members)),
          FindingKind::barrier_divergence,
          fmt::format("the thread executes it and is not in its member mask, 0x{:08x}", members));
    }
    if ((members & w.live & ~party) == 0) {
      w.mask = party;
      exchange_here(w, op, details);
      if (party == all) return op + 1;
      park(w, index_of(w, op) + 1, party);
    } else {
      park(w, index_of(w, op), party, Wait::members).members = members;
    }
  }
  settle(w);
  unite(w);
  return next_group(w);
}

}  // namespace

const MicroOp* exchange(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const WarpDetails*>(op->aux);
  if (details.members >= 0 &&
      (!details.one_mask || ((*w.at<Mask>(details.slot[details.members]) ^ w.mask) & w.live) != 0))
    return exchange_apart(w, op, details);
  exchange_here(w, op, details);
  if ((op->flags & within_run) == 0) return op + 1;
  if (!w.trace_runs) return op + 2;
  count_no_rest(w, op);
  return op + 1;
}

void exchange_among(Warp& w, const std::vector<Group*>& groups) {
  const Group& leader = *groups.front();
  const MicroOp* const code = w.program->code.data();
  const bool together = std::all_of(groups.begin(), groups.end(), [&](const Group* group) {
    return group->pc == leader.pc && group->frame == leader.frame && same_uniforms(*group, leader);
  });
  Mask all = 0;
  for (const Group* group : groups) all |= group->mask;
  if (together) {
    put_in_place(w, leader);
    w.mask = all;
    exchange_here(w, code + leader.pc, *static_cast<const WarpDetails*>(code[leader.pc].aux));
    return;
  }
  Scratch scratch;
  for (const Group* group : groups) {
    put_in_place(w, *group);
    gather_operands(w, *static_cast<const WarpDetails*>(code[group->pc].aux), group->mask, scratch);
  }
  WarpDetails details = *static_cast<const WarpDetails*>(code[leader.pc].aux);
  for (std::uint32_t& slot : details.slot)
    slot = static_cast<std::uint32_t>(&slot - details.slot) * std::uint32_t{sizeof(ScratchRow)};
  std::fill(std::begin(details.uniform), std::end(details.uniform), false);
  details.negated = false;
  details.has_result = true;
  details.has_predicate = !votes(details);
  details.predicate = offsetof(Scratch, predicate);
  MicroOp op = code[leader.pc];
  op.d = offsetof(Scratch, result);
  w.frame = reinterpret_cast<std::byte*>(&scratch);
  w.mask = all;
  exchange_here(w, &op, details);
  for (const Group* group : groups) {
    const MicroOp* const at = code + group->pc;
    put_in_place(w, *group);
    scatter_results(w, at, *static_cast<const WarpDetails*>(at->aux), group->mask, scratch);
  }
}

const MicroOp* move_matrix(Warp& w, const MicroOp* op) {
  const auto* a = w.at<std::uint32_t>(op->a);
  std::uint16_t rows[8][8];
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    rows[lane / 4][lane % 4 * 2] = static_cast<std::uint16_t>(a[lane]);
    rows[lane / 4][lane % 4 * 2 + 1] = static_cast<std::uint16_t>(a[lane] >> 16);
  }
  auto* d = w.at<std::uint32_t>(op->d);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    if (((w.mask >> lane) & 1U) == 0) continue;
    const std::uint32_t low = rows[lane % 4 * 2][lane / 4];
    const std::uint32_t high = rows[lane % 4 * 2 + 1][lane / 4];
    d[lane] = low | (high << 16);
  }
  return op + 1;
}

}  // namespace warp_ops
}  // namespace demarc::emulate
