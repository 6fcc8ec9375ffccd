// A slow reference of how threads make progress: every thread has a place of its own in the text
// and runs by itself for a while, in an order that a seed chooses. It shares no code with the
// emulator and knows only the instructions that random_flow.hpp writes, one to a line.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "flow_text.hpp"

namespace demarc::emulate::test {

class ThreadReference : FlowText {
 public:
  struct Memory {
    std::vector<std::uint32_t> out;   // at `out_address`, 4 bytes each
    std::vector<std::uint32_t> data;  // at `data_address`
  };
  static constexpr std::uint64_t out_address = 0x10000000;
  static constexpr std::uint64_t data_address = 0x20000000;

  ThreadReference(const std::string& text, std::uint32_t threads, std::uint64_t seed)
      : threads_(threads), order_(seed) {
    read(text);
  }

  // Runs one block on `memory`. Empty: all threads have ended; otherwise what went wrong.
  std::string run(Memory& memory) {
    memory_ = &memory;
    shared_.assign(4096, 0);
    states_.assign(threads_, {});
    for (std::uint32_t t = 0; t < threads_; ++t) {
      states_[t].place = functions_.at("k");
      states_[t].calls.emplace_back().registers.resize(places_.size());
    }
    for (std::uint64_t steps = 0; wrong_.empty();) {
      std::vector<std::uint32_t> able;
      bool left = false;
      for (std::uint32_t t = 0; t < threads_; ++t) {
        left = left || !states_[t].ended;
        if (!states_[t].ended && states_[t].waits.empty()) able.push_back(t);
      }
      if (!left) return {};
      if (able.empty()) return "all threads wait: " + where();
      const std::uint32_t thread = able[order_() % able.size()];
      for (std::uint64_t turn = order_() % 24 + 1; turn > 0 && wrong_.empty(); --turn) {
        if (states_[thread].ended || !states_[thread].waits.empty()) break;
        step(thread);
        if (++steps > 20'000'000) return "it does not end: " + where();
      }
    }
    return wrong_;
  }

 private:
  struct Call {
    std::vector<std::uint64_t> registers;  // and .param variables
    std::size_t back = 0;                  // line behind the call
    std::vector<std::string> results;      // results of the caller
    std::string function;
  };
  struct State {
    std::size_t place = 0;
    std::vector<Call> calls;
    bool ended = false;
    std::string waits;  // for what, as text; empty: it runs
    std::uint32_t members = 0;
    std::uint32_t barrier = 0;
    std::uint32_t count = 0;
    std::vector<std::uint64_t> values;  // values of the operands
  };
  struct Arrivals {
    std::vector<std::uint32_t> only;  // threads that arrived without waiting
  };

  std::string where() const {
    std::string out;
    for (std::uint32_t t = 0; t < threads_ && out.size() < 300; ++t) {
      if (states_[t].ended) continue;
      const Line& line = lines_[states_[t].place];
      out += fmt::format("thread {} at {}", t, line.opcode);
      for (const Operand& operand : line.operands) out += " " + operand.text;
      out += "; ";
    }
    return out;
  }

  std::uint64_t value(std::uint32_t thread, const Operand& operand) {
    if (operand.place >= 0) return at(thread, operand.place);
    if (operand.place == thread_number) return thread;
    return operand.place == lane_number ? thread % 32 : operand.number;
  }
  std::uint64_t& at(std::uint32_t thread, int place) {
    return states_[thread].calls.back().registers[static_cast<std::size_t>(place)];
  }
  void set(std::uint32_t thread, const Operand& operand, std::uint64_t to) {
    at(thread, operand.place) = to;
  }

  std::uint32_t* word(std::uint32_t thread, const Operand& operand, bool shared) {
    const std::uint64_t address = at(thread, operand.address) + operand.number;
    auto& area = shared ? shared_ : address >= data_address ? memory_->data : memory_->out;
    const std::uint64_t base = shared ? 0 : address >= data_address ? data_address : out_address;
    if ((address - base) / 4 >= area.size()) {
      wrong_ = fmt::format("address 0x{:x}", address);
      return &area[0];
    }
    return &area[(address - base) / 4];
  }

  void step(std::uint32_t thread) {
    State& state = states_[thread];
    const Line& line = lines_[state.place];
    ++state.place;
    if (line.guard != none && (at(thread, line.guard) != 0) == line.negated) return;
    const auto in = [&](std::size_t i) { return value(thread, line.operands[i]); };
    const auto in32 = [&](std::size_t i) { return static_cast<std::uint32_t>(in(i)); };
    const auto give = [&](std::uint64_t result) { set(thread, line.operands[0], result); };
    switch (line.kind) {
      case Kind::ret:
        if (state.calls.size() > 1) {
          give_back(thread);
          return;
        }
        [[fallthrough]];
      case Kind::exit:
        state.ended = true;
        release_all();
        return;
      case Kind::trap:
        wrong_ = "a trap";
        return;
      case Kind::branch:
        state.place = labels_.at(line.operands[0].text);
        return;
      case Kind::indexed:
        state.place = labels_.at(targets_.at(line.operands[1].text).at(in32(0)));
        return;
      case Kind::call:
        call(thread, line);
        return;
      case Kind::wait:
        wait(thread, line);
        return;
      case Kind::kernel_parameter:
        give(line.operands[1].text == "[out]" ? out_address : data_address);
        return;
      case Kind::load_parameter:
        give(at(thread, line.operands[1].address));
        return;
      case Kind::store_parameter:
        at(thread, line.operands[0].address) = in32(1);
        return;
      case Kind::load:
        give(*word(thread, line.operands[1], line.shared));
        return;
      case Kind::store:
        *word(thread, line.operands[0], line.shared) = in32(1);
        return;
      case Kind::atomic:
        atomic(thread, line);
        return;
      case Kind::wide:
        give(static_cast<std::uint64_t>(in32(1)) * in32(2));
        return;
      case Kind::add64:
        give(in(1) + in(2));
        return;
      case Kind::compare:
        give(compare(line.opcode, in32(1), in32(2)) ? 1 : 0);
        return;
      case Kind::select:
        give(in(3) != 0 ? in32(1) : in32(2));
        return;
      case Kind::move:
        give(in32(1));
        return;
      case Kind::nothing:
        return;
      case Kind::arithmetic:
        arithmetic(line.opcode, thread, line);
    }
  }

  void arithmetic(const std::string& op, std::uint32_t thread, const Line& line) {
    const auto a = static_cast<std::uint32_t>(value(thread, line.operands[1]));
    const auto b =
        line.operands.size() > 2 ? static_cast<std::uint32_t>(value(thread, line.operands[2])) : 0U;
    std::uint32_t d = 0;
    if (op == "add.u32") {
      d = a + b;
    } else if (op == "sub.u32") {
      d = a - b;
    } else if (op == "mul.lo.u32") {
      d = a * b;
    } else if (op == "and.b32") {
      d = a & b;
    } else if (op == "or.b32") {
      d = a | b;
    } else if (op == "xor.b32") {
      d = a ^ b;
    } else if (op == "shl.b32") {
      d = b > 31 ? 0 : a << b;
    } else if (op == "shr.u32") {
      d = b > 31 ? 0 : a >> b;
    } else if (op == "not.b32") {
      d = ~a;
    } else if (op == "mad.lo.u32") {
      d = a * b + static_cast<std::uint32_t>(value(thread, line.operands[3]));
    } else {
      wrong_ = "an instruction that the reference does not know: " + op;
    }
    set(thread, line.operands[0], d);
  }

  static bool compare(const std::string& op, std::uint32_t a, std::uint32_t b) {
    const std::string how = op.substr(5, 2);
    if (how == "eq") return a == b;
    if (how == "ne") return a != b;
    if (how == "lt") return a < b;
    if (how == "le") return a <= b;
    if (how == "gt") return a > b;
    return a >= b;
  }

  void atomic(std::uint32_t thread, const Line& line) {
    std::uint32_t* const at = word(thread, line.operands[1], line.shared);
    const auto b = static_cast<std::uint32_t>(value(thread, line.operands[2]));
    const std::uint32_t old = *at;
    if (line.opcode.find(".cas.") != std::string::npos) {
      if (old == b) *at = static_cast<std::uint32_t>(value(thread, line.operands[3]));
    } else {
      *at = b;
    }
    set(thread, line.operands[0], old);
  }

  static std::vector<std::string> list_of(const Operand& operand) {
    return parts(operand.text.substr(1, operand.text.size() - 2));
  }

  void call(std::uint32_t thread, const Line& line) {
    Call made;
    made.function = line.operands[1].text;
    made.back = states_[thread].place;
    made.results = list_of(line.operands[0]);
    made.registers.resize(places_.size());
    const auto arguments = list_of(line.operands[2]);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      made.registers[static_cast<std::size_t>(places_.at(parameters_.at(made.function)[i]))] =
          at(thread, places_.at(arguments[i]));
    states_[thread].place = functions_.at(made.function);
    states_[thread].calls.push_back(std::move(made));
  }

  void give_back(std::uint32_t thread) {
    State& state = states_[thread];
    const Call done = std::move(state.calls.back());
    state.calls.pop_back();
    const auto& names = results_.at(done.function);
    for (std::size_t i = 0; i < done.results.size(); ++i)
      at(thread, places_.at(done.results[i])) =
          done.registers[static_cast<std::size_t>(places_.at(names[i]))];
    state.place = done.back;
  }

  // ---- waiting ----

  void wait(std::uint32_t thread, const Line& line) {
    State& state = states_[thread];
    const bool of_warp = !begins(line.opcode, "bar") || line.opcode == "bar.warp.sync";
    --state.place;  // until it is let go
    state.values.clear();
    for (std::size_t i = 0; i < line.operands.size(); ++i) {
      const Operand& operand = line.operands[i];
      const bool inverted = operand.text[0] == '!';
      const bool result =
          i == 0 && line.opcode != "bar.warp.sync" && !begins(line.opcode, "bar.sync") &&
          !begins(line.opcode, "barrier.sync") && line.opcode.find("arrive") == std::string::npos;
      const std::uint64_t v = result ? 0 : value(thread, operand);
      state.values.push_back(inverted ? (v == 0 ? 1 : 0) : v);
    }
    if (of_warp) {
      state.waits = line.opcode;
      state.members = static_cast<std::uint32_t>(state.values.back());
      if ((state.members >> (thread % 32) & 1U) == 0) wrong_ = "not in its member mask";
    } else {
      const bool reduces = line.opcode.find(".red.") != std::string::npos;
      const std::size_t first = reduces ? 1 : 0;
      const std::size_t inputs = line.operands.size() - (reduces ? 2 : 0);
      state.barrier = static_cast<std::uint32_t>(state.values[first]);
      state.count = inputs > 1 ? static_cast<std::uint32_t>(state.values[first + 1]) : 0;
      if (line.opcode.find("arrive") != std::string::npos) {
        arrivals_[state.barrier].only.push_back(thread);
        ++state.place;
      } else {
        state.waits = "barrier";
      }
      release_barrier(state.barrier);
    }
    if (of_warp) release_members(thread);
  }

  // A thread has ended, for which others may have waited.
  void release_all() {
    for (std::uint32_t t = 0; t < threads_; ++t) {
      if (states_[t].waits == "barrier") {
        release_barrier(states_[t].barrier);
      } else if (!states_[t].waits.empty()) {
        release_members(t);
      }
    }
  }

  void release_members(std::uint32_t one) {
    const std::string waits = states_[one].waits;
    const std::uint32_t members = states_[one].members;
    const std::uint32_t warp = one / 32 * 32;
    std::vector<std::uint32_t> there;
    for (std::uint32_t lane = 0; lane < 32 && warp + lane < threads_; ++lane) {
      if ((members >> lane & 1U) == 0 || states_[warp + lane].ended) continue;
      if (states_[warp + lane].waits != waits || states_[warp + lane].members != members) return;
      there.push_back(warp + lane);
    }
    for (const std::uint32_t t : there) give_exchanged(t, there);
    for (const std::uint32_t t : there) let_go(t);
  }

  void let_go(std::uint32_t thread) {
    states_[thread].waits.clear();
    ++states_[thread].place;
  }

  void give_exchanged(std::uint32_t thread, const std::vector<std::uint32_t>& there) {
    const Line& line = lines_[states_[thread].place];
    const std::string& op = line.opcode;
    if (op == "bar.warp.sync") return;
    const auto of = [&](std::uint32_t t, std::size_t i) {
      return static_cast<std::uint32_t>(states_[t].values[i]);
    };
    const std::string& both = line.operands[0].text;
    const std::size_t bar = both.find('|');
    std::uint32_t result = 0;
    bool flag = false;
    if (begins(op, "shfl")) {
      const std::uint32_t lane = thread % 32;
      const std::uint32_t b = of(thread, 2);
      std::uint32_t from = lane;
      flag = true;
      if (op.find(".bfly.") != std::string::npos) from = lane ^ b;
      if (op.find(".idx.") != std::string::npos) from = b;
      if (op.find(".up.") != std::string::npos) {
        flag = lane >= b;
        from = flag ? lane - b : lane;
      }
      if (op.find(".down.") != std::string::npos) {
        flag = lane + b <= 31;
        from = flag ? lane + b : lane;
      }
      const std::uint32_t source = thread - lane + from;
      if (std::find(there.begin(), there.end(), source) == there.end()) {
        wrong_ = "a shuffle from a thread that takes no part";
        return;
      }
      result = of(source, 1);
    } else if (begins(op, "vote")) {
      std::uint32_t ballot = 0;
      std::uint32_t all = 0;
      for (const std::uint32_t t : there) {
        all |= 1U << t % 32;
        if (states_[t].values[1] != 0) ballot |= 1U << t % 32;
      }
      if (op == "vote.sync.ballot.b32") result = ballot;
      if (op == "vote.sync.all.pred") result = ballot == all ? 1 : 0;
      if (op == "vote.sync.any.pred") result = ballot != 0 ? 1 : 0;
      if (op == "vote.sync.uni.pred") result = ballot == 0 || ballot == all ? 1 : 0;
    } else if (begins(op, "match")) {
      std::uint32_t all = 0;
      for (const std::uint32_t t : there) {
        all |= 1U << t % 32;
        if (of(t, 1) == of(thread, 1)) result |= 1U << t % 32;
      }
      flag = result == all;
      if (begins(op, "match.all") && !flag) result = 0;
    } else {
      result = of(there[0], 1);
      for (std::size_t i = 1; i < there.size(); ++i) {
        const std::uint32_t v = of(there[i], 1);
        if (op == "redux.sync.add.u32") result += v;
        if (op == "redux.sync.min.u32") result = std::min(result, v);
        if (op == "redux.sync.max.s32")
          result = static_cast<std::uint32_t>(
              std::max(static_cast<std::int32_t>(result), static_cast<std::int32_t>(v)));
        if (op == "redux.sync.xor.b32") result ^= v;
        if (op == "redux.sync.or.b32") result |= v;
      }
    }
    at(thread, bar == std::string::npos ? line.operands[0].place
                                        : places_.at(both.substr(0, bar))) = result;
    if (bar != std::string::npos) at(thread, places_.at(both.substr(bar + 1))) = flag ? 1 : 0;
  }

  // A warp that has arrived as a whole counts 32 threads, those that have ended included.
  void release_barrier(std::uint32_t id) {
    std::vector<std::uint32_t> waiting;
    std::uint32_t count = 0;
    std::uint32_t arrived = 0;
    bool everyone = true;
    for (std::uint32_t warp = 0; warp < threads_; warp += 32) {
      std::uint32_t here = 0;
      bool whole = true;
      for (std::uint32_t t = warp; t < std::min(warp + 32, threads_); ++t) {
        if (states_[t].ended) continue;
        const auto& only = arrivals_[id].only;
        const bool waits = states_[t].waits == "barrier" && states_[t].barrier == id;
        const bool came = waits || std::find(only.begin(), only.end(), t) != only.end();
        if (waits) {
          waiting.push_back(t);
          count = states_[t].count;
        }
        everyone = everyone && waits;
        whole = whole && came;
        here += came ? 1 : 0;
      }
      for (const std::uint32_t t : arrivals_[id].only) {
        if (states_[t].ended && t / 32 == warp / 32) ++here;
      }
      arrived += here > 0 && whole ? 32 : 0;
    }
    if (waiting.empty() || (count == 0 ? !everyone : arrived < count)) return;
    std::uint32_t set_count = 0;
    bool all = true;
    for (const std::uint32_t t : waiting) {
      const bool p = states_[t].values.back() != 0;
      set_count += p ? 1 : 0;
      all = all && p;
    }
    for (const std::uint32_t t : waiting) {
      const Line& line = lines_[states_[t].place];
      if (line.opcode.find(".popc.") != std::string::npos) set(t, line.operands[0], set_count);
      if (line.opcode.find(".and.") != std::string::npos) set(t, line.operands[0], all ? 1 : 0);
      if (line.opcode.find(".or.") != std::string::npos)
        set(t, line.operands[0], set_count != 0 ? 1 : 0);
      let_go(t);
    }
    arrivals_[id].only.clear();
  }

  std::uint32_t threads_;
  std::mt19937_64 order_;
  std::vector<State> states_;
  std::vector<std::uint32_t> shared_;
  std::map<std::uint32_t, Arrivals> arrivals_;
  Memory* memory_ = nullptr;
  std::string wrong_;
};

}  // namespace demarc::emulate::test
