// Random kernels whose lanes part, wait for each other and leave: what they give does not depend on
// the order in which threads make progress, and no thread does what PTX leaves undefined. Each line
// is one instruction, as thread_reference.hpp reads it.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "flow_parts.hpp"

namespace demarc::emulate::test {

struct RandomFlow {
  std::string text;
  std::uint32_t threads = 32;  // threads of the one block
};

class FlowWriter : FlowParts {
 public:
  explicit FlowWriter(std::uint64_t seed) : FlowParts(seed) {}

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
        lock();
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
        if (chance(20)) lock();
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
};

inline RandomFlow random_flow(std::uint64_t seed) {
  return FlowWriter(seed).write();
}

}  // namespace demarc::emulate::test
