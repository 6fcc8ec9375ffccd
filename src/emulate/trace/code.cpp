// Encodes and decodes the chunks of a trace file as variable-length integers.
#include "trace/code.hpp"

#include <algorithm>
#include <bit>

#include "demarc/emulate/trace.hpp"

namespace demarc::emulate {

namespace {

void put_integer(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void put_signed(std::string& out, std::uint64_t value) {
  put_integer(out, (value << 1) ^ (0U - (value >> 63)));
}

struct ByteReader {
  std::string_view bytes;
  std::size_t at = 0;
  bool failed = false;

  std::uint64_t integer() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at >= bytes.size()) break;
      const auto byte = static_cast<std::uint8_t>(bytes[at++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    failed = true;
    return 0;
  }
  std::uint64_t signed_integer() {
    const std::uint64_t value = integer();
    return (value >> 1) ^ (0U - (value & 1U));
  }
};

// Full masks are the rule: 0 stands for one.
std::uint64_t mask_code(std::uint64_t head) {
  return (head >> 32) ^ 0xffffffffU;
}

}  // namespace

void TraceCoder::encode(std::span<const std::uint64_t> words, std::string& out) {
  for (std::size_t at = 0; at < words.size();) {
    const std::uint64_t head = words[at++];
    const std::uint64_t id = (head >> 3) & 0x1fffffffU;
    const std::uint64_t kind = head & 7U;
    const std::uint64_t mask = mask_code(head);
    put_integer(out, (id << 4) | (kind << 1) | (mask != 0 ? 1U : 0U));
    if (mask != 0) put_integer(out, mask);
    std::uint64_t& last = last_[std::min<std::size_t>(id, last_.size() - 1)];
    switch (kind) {
      case trace_detail::kind_run:
        put_integer(out, words[at++]);
        break;
      case trace_detail::kind_affine:
      case trace_detail::kind_halves: {
        const std::uint64_t base = words[at];
        put_signed(out, words[at] - last);
        last = words[at++];
        put_integer(out, words[at] >> 56);
        put_signed(out,
                   static_cast<std::uint64_t>(static_cast<std::int64_t>(words[at++] << 8) >> 8));
        if (kind == trace_detail::kind_halves) put_signed(out, words[at++] - base);
        break;
      }
      case trace_detail::kind_scattered: {
        put_integer(out, words[at++]);
        std::uint64_t before = last;
        const auto lanes = static_cast<unsigned>(std::popcount(head >> 32));
        for (unsigned i = 0; i < lanes; ++i) {
          put_signed(out, words[at] - before);
          before = words[at++];
          if (i == 0) last = before;
        }
        break;
      }
      default:
        break;
    }
  }
}

Result<void> TraceCoder::decode(std::string_view bytes, std::vector<std::uint64_t>& words) {
  constexpr auto max_space = static_cast<std::uint64_t>(MemorySpace::param);
  ByteReader in{bytes};
  while (in.at < bytes.size() && !in.failed) {
    const std::uint64_t code = in.integer();
    const std::uint64_t kind = (code >> 1) & 7U;
    const std::uint64_t id = code >> 4;
    const std::uint64_t mask = ((code & 1U) != 0 ? in.integer() : 0) ^ 0xffffffffU;
    if (mask > 0xffffffffU || id > 0x1fffffffU || kind > trace_detail::kind_halves)
      return invalid_input("byte {}: no record", in.at);
    if (kind != trace_detail::kind_warp && id >= last_.size()) {
      return invalid_input("byte {}: instruction {} of {}", in.at, id, last_.size() - 1);
    }
    words.push_back(
        trace_detail::head(kind, static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(mask)));
    std::uint64_t& last = last_[std::min<std::size_t>(id, last_.size() - 1)];
    switch (kind) {
      case trace_detail::kind_run: {
        const std::uint64_t count = in.integer();
        if (count > last_.size() - 1 - id) {
          return invalid_input("byte {}: a run of {} instructions from {} on, of {}", in.at, count,
                               id, last_.size() - 1);
        }
        words.push_back(count);
        break;
      }
      case trace_detail::kind_affine:
      case trace_detail::kind_halves: {
        last += in.signed_integer();
        words.push_back(last);
        const std::uint64_t space = in.integer();
        if (space > max_space) return invalid_input("byte {}: state space {}", in.at, space);
        words.push_back((in.signed_integer() & 0x00ffffffffffffffU) | (space << 56));
        if (kind == trace_detail::kind_halves) words.push_back(last + in.signed_integer());
        break;
      }
      case trace_detail::kind_scattered: {
        const std::uint64_t space = in.integer();
        if (space > max_space) return invalid_input("byte {}: state space {}", in.at, space);
        words.push_back(space);
        std::uint64_t before = last;
        const auto lanes = static_cast<unsigned>(std::popcount(mask));
        for (unsigned i = 0; i < lanes; ++i) {
          before += in.signed_integer();
          words.push_back(before);
          if (i == 0) last = before;
        }
        break;
      }
      default:
        break;
    }
  }
  if (in.failed) return invalid_input("it ends in the middle of a record");
  return {};
}

}  // namespace demarc::emulate
