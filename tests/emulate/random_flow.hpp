// Random kernels whose lanes part, wait for each other and leave: what they give does not depend on
// the order in which threads make progress, and no thread does what PTX leaves undefined. Each line
// is one instruction, as thread_reference.hpp reads it.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace demarc::emulate::test {

struct RandomFlow {
  std::string text;
  std::uint32_t threads = 32;  // of the one block
};

// Words of the buffer `data`: an input for each thread, then a lock, its counter, and flags with
// their values.
inline constexpr std::uint32_t flow_inputs = 128;
inline constexpr std::uint32_t flow_lock = flow_inputs;
inline constexpr std::uint32_t flow_counter = flow_lock + 1;
inline constexpr std::uint32_t flow_flags = flow_counter + 1;
inline constexpr std::uint32_t flow_most_flags = 40;
inline constexpr std::uint32_t flow_data_words = flow_flags + 2 * flow_most_flags;
inline constexpr std::uint32_t flow_never = 0xdeadbeef;  // is no input

class FlowWriter {
 public:
  explicit FlowWriter(std::uint64_t seed) : random_(seed) {}

  RandomFlow write() {
    RandomFlow made;
    made.threads = std::array<std::uint32_t, 7>{32, 32, 64, 20, 96, 77, 128}[below(7)];
    threads_ = made.threads;
    warps_ = (made.threads + 31) / 32;
    Scope whole;
    whole.members = "-1";
    for (std::uint32_t w = 0; w < warps_; ++w) {
      const std::uint32_t left = made.threads - 32 * w;
      whole.lanes.push_back(left >= 32 ? ~0U : (1U << left) - 1);
    }
    whole.top = true;
    statements(whole, 4 + below(5), 0);
    finish();
    line("exit;");
    if (dead_end_) body_ += "DEAD:\n" + std::string(chance(50) ? "trap;\nexit;\n" : "exit;\n");
    made.text = fmt::format(
        ".version 8.0\n.target sm_80\n.address_size 64\n{}"
        ".visible .entry k(.param .u64 out, .param .u64 data)\n{{\n"
        ".reg .pred %p<{}>;\n.reg .b32 %r<{}>;\n.reg .b64 %rd<9>;\n.shared .align 4 .b8 "
        "area[1024];\n"
        "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [data];\nmov.u32 %r1, %tid.x;\n"
        "mov.u32 %r2, %laneid;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
        "add.s64 %rd5, %rd2, %rd3;\nmov.u32 %r4, area;\nshl.b32 %r3, %r1, 2;\nadd.u32 %r5, %r4, "
        "%r3;\n"
        "ld.global.u32 %r10, [%rd5];\nmov.u32 %r11, 1;\nst.shared.u32 [%r5], %r10;\nbar.sync 0;\n"
        "{}}}\n",
        functions_, predicates_, registers_, body_);
    return made;
  }

 private:
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

  void statements(Scope& scope, std::uint32_t count, std::uint32_t depth) {
    for (; count > 0; --count) {
      if (empty(scope) && scope.exact) return;
      statement(scope, depth);
    }
  }

  void statement(Scope& scope, std::uint32_t depth) {
    const bool deep = depth >= 3;
    switch (below(24)) {
      case 0:
        line("xor.b32 %r10, %r10, {};", below(1000));
        line("add.u32 %r11, %r11, %r10;");
        return;
      case 1:
      case 2:
      case 3:
      case 4:
        exchange(choose_exchange(scope, true), scope.members);
        return;
      case 5:
      case 6:
        if (!deep) either_side(scope, depth);
        return;
      case 7:
      case 8:
        both_sides(scope);
        return;
      case 9:
        if (!deep) data_branch(scope, depth);
        return;
      case 10:
        if (!deep) shrinking_loop(scope, depth);
        return;
      case 11:
        if (!deep) uniform_loop(scope, depth);
        return;
      case 12:
      case 13:
        guard_that_leaves(scope);
        return;
      case 14:
        if (scope.leaves) leave(scope);
        return;
      case 15:
      case 16:
        if (scope.top) block_barrier(scope);
        return;
      case 17:
        lock(scope);
        return;
      case 18:
        if (!scope.repeats && scope.exact) flag(scope);
        return;
      case 19:
        if (!deep) switch_of(scope, depth);
        return;
      case 20:
        if (scope.exact) guarded_exchange(scope);
        return;
      case 21:
        call(scope);
        return;
      case 22:
        if (scope.top && warps_ > 1) named_barrier(scope);
        return;
      default:
        plain_loop();
        return;
    }
  }

  void branch_around(const std::string& p, bool when, const std::string& to) {
    line("@{}{} bra {};", when ? "" : "!", p, to);
  }

  void either_side(Scope& scope, std::uint32_t depth) {
    const auto [p, lanes] = lane_condition();
    auto [then, other] = sides(scope, p, lanes);
    const std::string over = label();
    const std::string end = label();
    branch_around(p, false, over);
    statements(then, 1 + below(3), depth + 1);
    const bool two = chance(60);
    if (two) line("bra {};", end);
    body_ += over + ":\n";
    if (two) statements(other, 1 + below(3), depth + 1);
    if (two) body_ += end + ":\n";
  }

  // Both sides have the same exchanges, which the lanes of both do together.
  void both_sides(Scope& scope) {
    const auto [p, lanes] = lane_condition();
    auto [then, other] = sides(scope, p, lanes);
    then.leaves = other.leaves = false;
    std::vector<Exchange> script(1 + below(3));
    for (Exchange& what : script) what = choose_exchange(scope, true);
    const bool called = chance(25);
    const std::string function = called ? new_function() : "";
    const std::uint32_t recursion = below(3);
    const std::string over = label();
    const std::string end = label();
    const bool barrier = scope.top && chance(20);
    branch_around(p, chance(50), over);
    // Which side comes first does not matter to what both do; their own members do not differ.
    for (unsigned side = 0; side < 2; ++side) {
      for (const Exchange& what : script) {
        if (chance(40)) line("add.u32 %r10, %r10, {};", below(99));
        exchange(what, scope.members);
        if (chance(20)) lock(scope);
      }
      if (called) call_function(function, scope.members, recursion);
      if (barrier) line("barrier.sync 1;");
      if (side == 0) line("bra {};", end);
      if (side == 0) body_ += over + ":\n";
    }
    body_ += end + ":\n";
  }

  void data_branch(Scope& scope, std::uint32_t depth) {
    const std::string p = data_condition();
    Scope inner = scope;
    inner.top = false;
    inner.exact = false;
    inner.leaves = false;
    inner.members = reg();
    ++inner.nested;
    line("vote.sync.ballot.b32 {}, {}, {};", inner.members, p, scope.members);
    const std::string over = label();
    branch_around(p, false, over);
    statements(inner, 1 + below(3), depth + 1);
    body_ += over + ":\n";
  }

  void shrinking_loop(Scope& scope, std::uint32_t depth) {
    Scope inner = scope;
    inner.top = false;
    inner.exact = false;
    inner.leaves = false;
    inner.repeats = true;
    inner.members = reg();
    ++inner.nested;
    const std::string n = reg();
    const std::string i = reg();
    const std::string p = predicate();
    line("and.b32 {}, {}, 3;", n, chance(50) ? "%r10" : "%r2");
    line("mov.u32 {}, 0;", i);
    line("mov.u32 {}, {};", inner.members, scope.members);
    const std::string again = label();
    const std::string end = label();
    body_ += again + ":\n";
    line("setp.lt.u32 {}, {}, {};", p, i, n);
    const std::string next = reg();
    line("vote.sync.ballot.b32 {}, {}, {};", next, p, inner.members);
    branch_around(p, false, end);
    line("mov.u32 {}, {};", inner.members, next);
    statements(inner, 1 + below(2), depth + 1);
    line("add.u32 {}, {}, 1;", i, i);
    line("bra {};", again);
    body_ += end + ":\n";
  }

  void uniform_loop(Scope& scope, std::uint32_t depth) {
    const std::string i = reg();
    const std::string twice = reg();
    const std::string p = predicate();
    const bool left = scope.leaves;
    const bool repeated = scope.repeats;
    scope.leaves = false;
    scope.repeats = true;
    line("mov.u32 {}, 0;", i);
    const std::string again = label();
    body_ += again + ":\n";
    line("shl.b32 {}, {}, 1;", twice, i);
    statements(scope, 1 + below(3), depth + 1);
    mix(i);
    mix(twice);
    line("add.u32 {}, {}, 1;", i, i);
    line("setp.lt.u32 {}, {}, {};", p, i, 2 + below(3));
    line("@{} bra {};", p, again);
    scope.leaves = left;
    scope.repeats = repeated;
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

  // An error that does not happen, in a part of the lanes: nothing behind it post-dominates it.
  void guard_that_leaves(Scope&) {
    const auto [p, lanes] = lane_condition();
    const std::string x = reg();
    const std::string q = predicate();
    const std::string over = label();
    branch_around(p, false, over);
    line("ld.global.u32 {}, [%rd5];", x);
    line("setp.eq.u32 {}, {}, {};", q, x, flow_never);
    switch (below(4)) {
      case 0:
        line("@{} exit;", q);
        break;
      case 1:
        line("@{} trap;", q);
        break;
      default:
        line("@{} bra DEAD;", q);
        dead_end_ = true;
    }
    line("add.u32 %r10, %r10, {};", x);
    body_ += over + ":\n";
  }

  void leave(Scope& scope) {
    const auto [p, lanes] = lane_condition();
    bool some = false;
    for (const std::uint32_t mask : there(scope)) some = some || (mask & ~lanes) != 0;
    if (!some) return;
    if (chance(50)) {
      const std::string over = label();
      branch_around(p, false, over);
      finish();
      line("exit;");
      body_ += over + ":\n";
    } else {
      line("@{} st.global.u32 [%rd4], %r10;", p);
      line("@{} exit;", p);
    }
    left_.resize(scope.lanes.size());
    for (std::size_t w = 0; w < left_.size(); ++w) left_[w] |= scope.lanes[w] & lanes;
  }

  void block_barrier(Scope&) {
    const std::string r = reg();
    switch (below(4)) {
      case 0: {
        const std::string p = data_condition();
        line("bar.red.popc.u32 {}, 0, {};", r, p);
        mix(r);
        return;
      }
      case 1: {
        const std::string p = data_condition();
        const std::string q = predicate();
        line("barrier.red.{}.pred {}, 2, {};", chance(50) ? "and" : "or", q, p);
        line("selp.u32 {}, 3, 4, {};", r, q);
        mix(r);
        return;
      }
      default: {
        // Each reads the word of another thread, which may have left.
        const std::string a = reg();
        line("st.shared.u32 [%r5], %r10;");
        line("bar.sync 0;");
        const std::string p = predicate();
        line("xor.b32 {}, %r1, {};", a, 1 + below(63));
        line("setp.ge.u32 {}, {}, {};", p, a, threads_);
        line("selp.u32 {}, %r1, {}, {};", a, a, p);
        line("shl.b32 {}, {}, 2;", a, a);
        line("add.u32 {}, {}, %r4;", a, a);
        line("ld.shared.u32 {}, [{}];", r, a);
        line("bar.sync 0;");
        mix(r);
      }
    }
  }

  // The first warp arrives, all others that have lanes wait for it and for each other.
  void named_barrier(Scope& scope) {
    const auto lanes = there(scope);
    std::uint32_t count = 0;
    for (const std::uint32_t mask : lanes) count += mask != 0 ? 32 : 0;
    if (lanes[0] == 0 || count < 64) return;
    const std::string p = predicate();
    const std::string over = label();
    const std::string end = label();
    line("setp.lt.u32 {}, %r1, 32;", p);
    branch_around(p, false, over);
    line("bar.arrive 3, {};", count);
    line("bra {};", end);
    body_ += over + ":\n";
    line("bar.sync 3, {};", count);
    body_ += end + ":\n";
    line("bar.sync 0;");
  }

  void lock(const Scope&) {
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

  // Some lanes wait until a lane that comes to it elsewhere, or behind them, has set a flag.
  void flag(Scope& scope) {
    if (flags_ >= flow_most_flags) return;
    const auto lanes = there(scope);
    std::uint32_t first = 32;
    for (std::uint32_t l = 0; l < 32 && first == 32; ++l)
      first = (lanes[0] >> l & 1U) != 0 ? l : 32;
    if (first == 32) return;
    const std::uint32_t at = 4 * (flow_flags + 2 * flags_++);
    const std::string sets = predicate();
    const std::string seen = reg();
    const std::string r = reg();
    const std::string p = predicate();
    const std::string again = label();
    const std::string over = label();
    const std::string end = label();
    const auto wait = [&] {
      body_ += again + ":\n";
      line("ld.volatile.global.u32 {}, [%rd2+{}];", seen, at);
      line("setp.eq.u32 {}, {}, 0;", p, seen);
      line("@{} bra {};", p, again);
      line("ld.volatile.global.u32 {}, [%rd2+{}];", r, at + 4);
      mix(r);
    };
    const auto set = [&] {
      line("st.volatile.global.u32 [%rd2+{}], %r10;", at + 4);
      line("membar.gl;");
      line("st.volatile.global.u32 [%rd2+{}], 1;", at);
    };
    line("setp.eq.u32 {}, %r1, {};", sets, first);
    branch_around(sets, true, over);
    wait();
    if (chance(50)) {  // b: two branches one behind the other
      body_ += over + ":\n";
      branch_around(sets, false, end);
      set();
    } else {
      line("bra {};", end);
      body_ += over + ":\n";
      set();
    }
    body_ += end + ":\n";
  }

  void switch_of(Scope& scope, std::uint32_t depth) {
    const std::string i = reg();
    line("and.b32 {}, %r2, 3;", i);
    std::vector<Scope> cases;
    for (std::uint32_t c = 0; c < 3; ++c) {
      Scope one = scope;
      one.top = false;
      ++one.nested;
      const std::uint32_t lanes = c == 2 ? 0xccccccccU : 0x11111111U << c;
      one.lanes = both(scope.lanes, lanes);
      const std::string p = predicate();
      const std::string clamped = reg();
      line("setp.{}.u32 {}, {}, {};", c == 2 ? "ge" : "eq", p, i, c);
      one.members = members_of(scope, p, lanes);
      cases.push_back(one);
    }
    const std::string table = fmt::format("T{}", labels_++);
    const std::string l[3] = {label(), label(), label()};
    const std::string end = label();
    line("{}: .branchtargets {}, {}, {}, {};", table, l[0], l[1], l[2], l[2]);
    line("brx.idx {}, {};", i, table);
    for (std::size_t c = 0; c < 3; ++c) {
      body_ += l[c] + ":\n";
      statements(cases[c], 1 + below(2), depth + 1);
      if (c < 2) line("bra {};", end);
    }
    body_ += end + ":\n";
  }

  void guarded_exchange(Scope& scope) {
    const auto [p, lanes] = lane_condition();
    Scope then = scope;
    then.lanes = both(scope.lanes, lanes);
    then.members = members_of(scope, p, lanes);
    if (chance(40)) {  // the two halves of one exchange
      const Exchange what = choose_exchange(scope, false);
      exchange(what, scope.members, fmt::format("@{} ", p));
      exchange(what, scope.members, fmt::format("@!{} ", p));
      return;
    }
    exchange(choose_exchange(then, true), then.members, fmt::format("@{} ", p));
  }

  // f(value, members): an exchange, for a third of them once more by a call of itself.
  std::string new_function() {
    const std::string name = fmt::format("f{}", names_++);
    const bool guards = chance(50);
    functions_ += fmt::format(
        ".func (.param .b32 o) {0}(.param .b32 a, .param .b32 m, .param .b32 n)\n{{\n"
        ".reg .pred %p<4>;\n.reg .b32 %r<12>;\n"
        "ld.param.b32 %r1, [a];\nld.param.b32 %r2, [m];\nld.param.b32 %r3, [n];\n"
        "mov.u32 %r4, 77;\n",
        name);
    if (guards) {
      functions_ +=
          "and.b32 %r5, %r1, 1;\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra SKIP;\n"
          "setp.eq.u32 %p2, %r1, 3735928559;\n@%p2 exit;\nadd.u32 %r4, %r4, 5;\nSKIP:\n";
    }
    functions_ +=
        "redux.sync.add.u32 %r6, %r1, %r2;\nadd.u32 %r4, %r4, %r6;\n"
        "setp.eq.u32 %p3, %r3, 0;\n@%p3 bra DONE;\nsub.u32 %r7, %r3, 1;\n"
        "{\n.param .b32 x;\n.param .b32 y;\n.param .b32 z;\n.param .b32 w;\n"
        "st.param.b32 [x], %r4;\nst.param.b32 [y], %r2;\nst.param.b32 [z], %r7;\n"
        "call (w), " +
        name +
        ", (x, y, z);\nld.param.b32 %r4, [w];\n}\nDONE:\n"
        "bar.warp.sync %r2;\nst.param.b32 [o], %r4;\nret;\n}\n";
    // Labels of a function are its own in PTX, and one list in the reference.
    for (const char* word : {"SKIP", "DONE"}) {
      for (std::size_t at = 0; (at = functions_.find(word, at)) != std::string::npos; at += 4)
        if (functions_.compare(at + 4, 1, "_") != 0)
          functions_.replace(at, 4, fmt::format("{}_{}", word, names_));
    }
    return name;
  }
  void call_function(const std::string& name, const std::string& members, std::uint32_t depth) {
    const std::string m = reg();
    const std::string d = reg();
    line("mov.u32 {}, {};", m, members);
    body_ += fmt::format(
        "{{\n.param .b32 x;\n.param .b32 y;\n.param .b32 z;\n.param .b32 w;\n"
        "st.param.b32 [x], %r10;\nst.param.b32 [y], {};\nst.param.b32 [z], {};\n"
        "call (w), {}, (x, y, z);\nld.param.b32 {}, [w];\n}}\n",
        m, depth, name, d);
    mix(d);
  }
  void call(const Scope& scope) { call_function(new_function(), scope.members, below(3)); }

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

inline RandomFlow random_flow(std::uint64_t seed) {
  return FlowWriter(seed).write();
}

}  // namespace demarc::emulate::test
