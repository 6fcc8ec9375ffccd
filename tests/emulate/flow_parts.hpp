// What random kernels are made of: lanes, members, conditions, and exchanges between lanes.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace demarc::emulate::test {

// Words of the buffer `data`: an input for each thread, then a lock, its counter, and flags with
// their values.
inline constexpr std::uint32_t flow_inputs = 128;
inline constexpr std::uint32_t flow_lock = flow_inputs;
inline constexpr std::uint32_t flow_counter = flow_lock + 1;
inline constexpr std::uint32_t flow_flags = flow_counter + 1;
inline constexpr std::uint32_t flow_most_flags = 40;
inline constexpr std::uint32_t flow_data_words = flow_flags + 2 * flow_most_flags;
inline constexpr std::uint32_t flow_never = 0xdeadbeef;  // is not an input

class FlowParts {
 protected:
  explicit FlowParts(std::uint64_t seed) : random_(seed) {}

  // Lanes that run a piece of text, and the operand that names them as members.
  struct Scope {
    std::vector<std::uint32_t> lanes;  // by warp: at most these
    bool exact = true;                 // and at least these, but for those that left
    std::string members;
    bool top = false;    // all threads of the block that are left, and no side of a branch
    bool leaves = true;  // lanes may exit
    std::uint32_t nested = 0;
    bool repeats = false;  // the text runs several times
  };

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  std::string reg() { return fmt::format("%r{}", registers_++); }
  std::string predicate() { return fmt::format("%p{}", predicates_++); }
  std::string label() { return fmt::format("L{}", labels_++); }
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    body_ += fmt::format(text, std::forward<Args>(args)...) + "\n";
  }
  void mix(const std::string& value) { line("mad.lo.u32 %r10, %r10, 33, {};", value); }
  void finish() { line("st.global.u32 [%rd4], %r10;"); }

  static std::vector<std::uint32_t> both(std::vector<std::uint32_t> a, std::uint32_t lanes) {
    for (std::uint32_t& mask : a) mask &= lanes;
    return a;
  }
  std::vector<std::uint32_t> there(const Scope& scope) const {
    std::vector<std::uint32_t> out = scope.lanes;
    for (std::size_t w = 0; w < out.size() && w < left_.size(); ++w) out[w] &= ~left_[w];
    return out;
  }
  bool empty(const Scope& scope) const {
    for (const std::uint32_t mask : there(scope))
      if (mask != 0) return false;
    return true;
  }

  // A predicate of the lane's number, and the lanes for which it holds.
  std::pair<std::string, std::uint32_t> lane_condition() {
    const std::string p = predicate();
    std::uint32_t lanes = 0;
    if (chance(50)) {
      const std::uint32_t k = 1 + below(31);
      line("setp.lt.u32 {}, %r2, {};", p, k);
      lanes = (1U << k) - 1;
    } else {
      const std::uint32_t m = std::array<std::uint32_t, 4>{1, 3, 5, 16}[below(4)];
      const std::uint32_t v = below(2) * m;
      const std::string r = reg();
      line("and.b32 {}, %r2, {};", r, m);
      line("setp.eq.u32 {}, {}, {};", p, r, v);
      for (std::uint32_t l = 0; l < 32; ++l) lanes |= (l & m) == v ? 1U << l : 0U;
    }
    return {p, lanes};
  }
  std::string data_condition() {
    const std::string p = predicate();
    const std::string r = reg();
    line("shr.u32 {}, %r10, {};", r, below(8));
    line("and.b32 {}, {}, 3;", r, r);
    line("setp.{}.u32 {}, {}, {};", chance(50) ? "lt" : "ne", p, r, 1 + below(3));
    return p;
  }

  // What an exchange is, without registers: both sides of a branch may have the same.
  struct Exchange {
    std::string opcode;
    std::string operands = {};  // between the data and the members
    bool of_predicate = false;
    bool gives_predicate = false;
    bool two_results = false;
    bool matches = false;
  };
  Exchange choose_exchange(const Scope& scope, bool shuffles) {
    if (shuffles && scope.exact && chance(40)) {
      for (unsigned attempt = 0; attempt < 4; ++attempt) {
        const std::uint32_t d = 1U << below(5);
        if (sources_are_there(scope, [&](std::uint32_t l) { return l ^ d; }))
          return {.opcode = "shfl.sync.bfly.b32",
                  .operands = fmt::format("{}, 31", d),
                  .two_results = true};
        const std::uint32_t up = 1 + below(8);
        if (sources_are_there(scope, [&](std::uint32_t l) { return l >= up ? l - up : l; }))
          return {.opcode = "shfl.sync.up.b32",
                  .operands = fmt::format("{}, 0", up),
                  .two_results = true};
        const std::uint32_t from = below(32);
        if (sources_are_there(scope, [&](std::uint32_t) { return from; }))
          return {.opcode = "shfl.sync.idx.b32",
                  .operands = fmt::format("{}, 31", from),
                  .two_results = true};
      }
    }
    switch (below(10)) {
      case 0:
      case 1:
        return {.opcode = "vote.sync.ballot.b32", .of_predicate = true};
      case 2:
        return {.opcode = "vote.sync.any.pred", .of_predicate = true, .gives_predicate = true};
      case 3:
        return {.opcode = "vote.sync.all.pred", .of_predicate = true, .gives_predicate = true};
      case 4:
        return {.opcode = "vote.sync.uni.pred", .of_predicate = true, .gives_predicate = true};
      case 5:
        return {.opcode = "match.any.sync.b32", .matches = true};
      case 6:
        return {.opcode = "match.all.sync.b32", .two_results = true, .matches = true};
      case 7:
        return {.opcode = "bar.warp.sync"};
      default:
        return {.opcode = std::array<const char*, 5>{"redux.sync.add.u32", "redux.sync.min.u32",
                                                     "redux.sync.max.s32", "redux.sync.xor.b32",
                                                     "redux.sync.or.b32"}[below(5)]};
    }
  }
  template <class From>
  bool sources_are_there(const Scope& scope, From&& from) const {
    for (const std::uint32_t mask : there(scope)) {
      for (std::uint32_t l = 0; l < 32; ++l) {
        if ((mask >> l & 1U) != 0 && (mask >> from(l) & 1U) == 0) return false;
      }
    }
    return true;
  }
  void exchange(const Exchange& what, const std::string& members, const std::string& guard = "") {
    if (what.opcode == "bar.warp.sync") {
      line("{}bar.warp.sync {};", guard, members);
      return;
    }
    std::string data = "%r10";
    if (what.matches) {
      data = reg();
      line("and.b32 {}, %r10, 1;", data);
    }
    if (what.of_predicate) data = (chance(30) ? "!" : "") + data_condition();
    const std::string d = what.gives_predicate ? predicate() : reg();
    const std::string p = what.two_results ? predicate() : "";
    if (!guard.empty()) {
      if (what.gives_predicate) line("setp.ne.u32 {}, %r2, %r2;", d);
      if (!what.gives_predicate) line("mov.u32 {}, 5;", d);
      if (what.two_results) line("setp.ne.u32 {}, %r2, %r2;", p);
    }
    line("{}{} {}{}, {}{}{}, {};", guard, what.opcode, d, what.two_results ? "|" + p : "", data,
         what.operands.empty() ? "" : ", ", what.operands, members);
    if (!what.gives_predicate) mix(d);
    for (const std::string& flag : {what.gives_predicate ? d : std::string(), p}) {
      if (flag.empty()) continue;
      const std::string r = reg();
      line("selp.u32 {}, 7, 2, {};", r, flag);
      mix(r);
    }
  }

  std::string members_of(const Scope& around, const std::string& p, std::uint32_t lanes) {
    if (around.exact && around.members[0] != '%' && chance(60)) {
      const std::uint32_t all =
          around.members == "-1" ? ~0U : static_cast<std::uint32_t>(std::stoul(around.members));
      return fmt::format("{}", all & lanes);
    }
    const std::string m = reg();
    line("vote.sync.ballot.b32 {}, {}, {};", m, p, around.members);
    return m;
  }
  // The lanes of `around` for which p holds, or does not. Its ballot is taken before the branch.
  std::pair<Scope, Scope> sides(const Scope& around, const std::string& p, std::uint32_t lanes) {
    Scope then = around;
    then.top = false;
    ++then.nested;
    Scope other = then;
    then.lanes = both(around.lanes, lanes);
    other.lanes = both(around.lanes, ~lanes);
    then.members = members_of(around, p, lanes);
    other.members = members_of(around, "!" + p, ~lanes);
    return {then, other};
  }

  void branch_around(const std::string& p, bool when, const std::string& to) {
    line("@{}{} bra {};", when ? "" : "!", p, to);
  }

  void plain_loop() {
    const std::string n = reg();
    const std::string i = reg();
    const std::string p = predicate();
    line("and.b32 {}, %r10, 7;", n);
    line("mov.u32 {}, 0;", i);
    const std::string again = label();
    body_ += again + ":\n";
    line("mad.lo.u32 %r10, %r10, 5, {};", i);
    line("add.u32 {}, {}, 1;", i, i);
    line("setp.le.u32 {}, {}, {};", p, i, n);
    line("@{} bra {};", p, again);
  }

  void lock() {
    const std::string old = reg();
    const std::string n = reg();
    const std::string p = predicate();
    const std::string again = label();
    body_ += again + ":\n";
    line("atom.global.cas.b32 {}, [%rd2+{}], 0, 1;", old, 4 * flow_lock);
    line("setp.ne.u32 {}, {}, 0;", p, old);
    if (chance(30)) line("nanosleep.u32 20;");
    line("@{} bra {};", p, again);
    line("ld.volatile.global.u32 {}, [%rd2+{}];", n, 4 * flow_counter);
    line("add.u32 {}, {}, 1;", n, n);
    line("st.volatile.global.u32 [%rd2+{}], {};", 4 * flow_counter, n);
    line("membar.gl;");
    line("atom.global.exch.b32 {}, [%rd2+{}], 0;", old, 4 * flow_lock);
  }

  std::mt19937_64 random_;
  std::string body_;
  std::string functions_;
  std::uint32_t threads_ = 32;
  std::uint32_t warps_ = 1;
  std::uint32_t registers_ = 12;
  std::uint32_t predicates_ = 1;
  std::uint32_t labels_ = 0;
  std::uint32_t names_ = 0;
  std::uint32_t flags_ = 0;
  bool dead_end_ = false;
  std::vector<std::uint32_t> left_;  // lanes that have exited, by warp
};

}  // namespace demarc::emulate::test
