// Tells slices that look alike apart by where their chunks move.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "chunk_moves.hpp"
#include "demarc/base/gf2.hpp"

namespace demarc::probe {
namespace {

// A digit's value and the slice that the digit moves a chunk to: all chunks that share both belong
// to one twin.
struct Token {
  std::size_t digit;
  unsigned value;
  std::uint32_t to;
  friend bool operator<(const Token& a, const Token& b) {
    return std::tie(a.digit, a.value, a.to) < std::tie(b.digit, b.value, b.to);
  }
};

// The twins among the chunks of one label: two tokens belong to the same one when many chunks have
// both. A chunk that was measured wrongly has tokens of both twins, but there are few of those.
class Twins {
 public:
  void add(const std::vector<Token>& tokens) {
    std::vector<std::uint32_t> numbers;
    for (const Token& token : tokens) {
      const auto next = static_cast<std::uint32_t>(number_.size());
      numbers.push_back(number_.try_emplace(token, next).first->second);
    }
    chunks_.push_back(std::move(numbers));
  }

  // Which twin each chunk is, by the tokens of most chunks: 0, or 1, or more where there are more.
  [[nodiscard]] std::vector<std::uint32_t> separate() {
    constexpr std::uint32_t fewest = 8;  // chunks of a token that counts
    const std::size_t tokens = number_.size();
    std::vector<std::uint32_t> size(tokens), both(tokens * tokens);
    for (const auto& chunk : chunks_) {
      for (const std::uint32_t a : chunk) {
        ++size[a];
        for (const std::uint32_t b : chunk) ++both[a * tokens + b];
      }
    }
    root_.resize(tokens);
    std::iota(root_.begin(), root_.end(), 0U);
    for (std::uint32_t a = 0; a < tokens; ++a) {
      for (std::uint32_t b = 0; b < a; ++b) {
        const std::uint32_t less = std::min(size[a], size[b]);
        if (less >= fewest && 4 * both[a * tokens + b] > less) root_[find(a)] = find(b);
      }
    }
    std::map<std::uint32_t, std::uint32_t> names;
    std::vector<std::uint32_t> twin_of;
    for (const auto& chunk : chunks_) {
      std::map<std::uint32_t, std::uint32_t> votes;
      for (const std::uint32_t token : chunk) {
        if (size[token] >= fewest) ++votes[find(token)];
      }
      const auto most =
          std::max_element(votes.begin(), votes.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const auto next = static_cast<std::uint32_t>(names.size());
      twin_of.push_back(most == votes.end() ? 0
                                            : names.try_emplace(most->first, next).first->second);
    }
    return twin_of;
  }

 private:
  std::uint32_t find(std::uint32_t token) {
    while (root_[token] != token) token = root_[token] = root_[root_[token]];
    return token;
  }

  std::map<Token, std::uint32_t> number_;
  std::vector<std::vector<std::uint32_t>> chunks_;
  std::vector<std::uint32_t> root_;
};

}  // namespace

Labels split_twins(const Labels& slice_of, std::span<const Digit> digits) {
  constexpr double twin_size = 1.5;  // size of the usual one
  const std::uint32_t slices = label_count(slice_of);
  std::vector<std::vector<std::uint32_t>> members(slices);
  for (std::uint32_t i = 0; i < slice_of.size(); ++i) members[slice_of[i]].push_back(i);
  std::vector<std::size_t> sizes;
  sizes.reserve(slices);
  for (const auto& list : members) sizes.push_back(list.size());
  std::nth_element(sizes.begin(), sizes.begin() + slices / 2, sizes.end());
  const double usual = static_cast<double>(sizes[slices / 2]);
  const auto is_twin = [&](std::uint32_t slice) {
    return static_cast<double>(members[slice].size()) > twin_size * usual;
  };

  Labels labels = slice_of;
  std::uint32_t next = slices;
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    if (!is_twin(slice)) continue;
    Twins twins;
    for (const std::uint32_t i : members[slice]) {
      std::vector<Token> tokens;
      for (std::size_t j = 0; j < digits.size(); ++j) {
        const std::uint32_t to = slice_of[i ^ digits[j].pattern];
        if (!is_twin(to)) tokens.push_back({j, parity(i, digits[j].mask), to});
      }
      twins.add(tokens);
    }
    const auto twin_of = twins.separate();
    const std::uint32_t found = label_count(twin_of);
    for (std::uint32_t t = 1; t < found; ++t) {
      if (4 * std::count(twin_of.begin(), twin_of.end(), t) <
          static_cast<std::ptrdiff_t>(twin_of.size())) {
        continue;
      }
      for (std::size_t k = 0; k < twin_of.size(); ++k) {
        if (twin_of[k] == t) labels[members[slice][k]] = next;
      }
      ++next;
    }
  }
  return labels;
}

}  // namespace demarc::probe
