// Random kernels of address arithmetic: bases that are computed in many ways, several accesses per
// base, loops that step through memory, branches, generic addresses. Every access keeps to a window
// of memory that the kernel is handed. What a kernel leaves there does not depend on where the
// window lies. The same seed gives the same kernel.
#pragma once

#include <fmt/format.h>

#include "random_text.hpp"

namespace demarc::emulate::colored {

class RandomProgram : private RandomText {
 public:
  static constexpr std::int64_t window_bytes = 16384;
  static constexpr std::uint32_t blocks = 2;
  static constexpr std::uint32_t threads = 32;  // per block: one warp, whose order is fixed
  static constexpr int max_statements = 24;

  // For fewer statements it is what these begin with.
  explicit RandomProgram(std::uint64_t seed, int statements = max_statements)
      : RandomText(seed), name_(fmt::format("k{}", seed)) {
    begin();
    for (int i = 0; i < statements; ++i) statement(0);
    end();
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  // Parameters: the address of the window; the address of a pointer to it; a number.
  [[nodiscard]] std::string text() const {
    return fmt::format(
        ".visible .entry {}(.param .u64 window, .param .u64 pointer, .param .u32 number)\n{{\n"
        ".reg .pred %p<{}>;\n.reg .b32 %r<{}>, %v<{}>;\n.reg .b64 %a<{}>, %w<{}>;\n{}{}ret;\n}}\n",
        name_, predicates_ + 1, words_ + 1, narrow_values, addresses_ + 1, wide_values,
        keeps_local_ ? ".local .align 16 .b8 own[64];\n" : "", code_);
  }

  // What the kernels of a module share.
  static std::string preamble() {
    std::string table = "1";
    std::string other = "2";
    for (std::uint32_t i = 1; i < table_words; ++i) {
      table += fmt::format(", {}", i * 40503U);
      other += fmt::format(", {}", i * 69069U + 7);
    }
    return fmt::format(R"(.version 8.3
.target sm_90
.address_size 64
.global .align 16 .b32 table[{0}] = {{{1}}};
.global .align 4 .b32 other[{0}] = {{{2}}};
.shared .align 16 .b8 tile[1024];
.func (.param .b32 result) fetch(.param .b64 address, .param .b32 index)
{{
.reg .b32 %r<3>; .reg .b64 %rd<3>;
ld.param.u64 %rd1, [address];
ld.param.u32 %r1, [index];
mad.wide.u32 %rd2, %r1, 4, %rd1;
ld.u32 %r2, [%rd2];
st.param.b32 [result], %r2;
ret;
}}
)",
                       table_words, table, other);
  }

 private:
  static constexpr std::uint32_t table_words = 64;
  static constexpr std::int64_t slot_bytes = 64;  // of a thread's results, at the window's end
  static constexpr std::int64_t usable = window_bytes - slot_bytes * blocks * threads;

  // The register holds the window's address and a number of bytes from low to high, a multiple of
  // `alignment`; with `shared_too`, in some threads the address of 16 bytes of shared memory.
  struct Base {
    int reg = 0;
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::int64_t alignment = 256;
    bool shared_too = false;
  };

  void begin() {
    keeps_local_ = chance(15);
    makes_shared_ = chance(30);
    if (chance(25)) {
      line("ld.param.u64 %a0, [pointer]");
      line("ld.global.u64 %a0, [%a0]");
    } else {
      line("ld.param.u64 %a0, [window]");
    }
    if (chance(50)) line("cvta.to.global.u64 %a0, %a0");
    line("mov.u32 %r0, %tid.x");
    line("mov.u32 %r1, %ctaid.x");
    line("mad.lo.s32 %r2, %r1, {}, %r0", threads);
    line("ld.param.u32 %r3, [number]");
    for (int i = 0; i < narrow_values; ++i) {
      line("mad.lo.s32 %v{}, %r2, {}, %r3", i, below(1U << 31U) | 1U);
    }
    for (int i = 0; i < wide_values; ++i) line("mul.wide.u32 %w{}, %v{}, %v{}", i, i, i + 4);
    bases_.push_back({});
    const int own = ++addresses_;
    line("mad.wide.u32 %a{}, %r2, 16, %a0", own);
    bases_.push_back({own, 0, std::int64_t{16} * (blocks * threads - 1), 16});
    if (makes_shared_) {
      line("st.shared.v4.u32 [tile+256], {{%v0, %v1, %v2, %v3}}");
      shared_ = ++addresses_;
      line("mov.u64 %a{}, tile", shared_);
      line("cvta.shared.u64 %a{0}, %a{0}", shared_);
      line("mad.wide.u32 %a{0}, %r0, 16, %a{0}", shared_);
      line("st.v4.u32 [%a{}], {{%v4, %v5, %v6, %v7}}", shared_);
    }
  }

  // All data of each thread, where no other access reaches.
  void end() {
    const int at = ++addresses_;
    line("mad.wide.u32 %a{}, %r2, {}, %a0", at, slot_bytes);
    for (int i = 0; i < narrow_values; i += 4) {
      line("st.global.v4.b32 [%a{}+{}], {{%v{}, %v{}, %v{}, %v{}}}", at, usable + 4 * i, i, i + 1,
           i + 2, i + 3);
    }
    for (int i = 0; i < wide_values; ++i) {
      line("st.global.b64 [%a{}+{}], %w{}", at, usable + 4 * narrow_values + 8 * i, i);
    }
  }

  void statement(int depth) {
    const std::uint64_t kind = below(100);
    if (kind < 38) return access();
    if (kind < 62) return derive();
    if (kind < 67) return select();
    if (kind < 72) return step_under_guard();
    if (kind < 80) return depth < 2 ? loop(depth) : access();
    if (kind < 87) return depth < 2 ? branch(depth) : derive();
    if (kind < 90) return copy_to_shared();
    if (kind < 92) return call();
    if (kind < 94) return prefetch();
    if (kind < 96) return use_table();
    if (kind < 98) return keeps_local_ ? keep_locally() : access();
    return mix();
  }

  void mix() {
    line("{} %v{}, %v{}, %v{}",
         one_of<const char*, 4>({"add.s32", "xor.b32", "mul.lo.s32", "sub.s32"}), value(), value(),
         value());
  }

  const Base& any_base() { return bases_[below(bases_.size())]; }
  Base global_base() {
    for (;;) {
      const Base& base = any_base();
      if (!base.shared_too) return base;
    }
  }

  // A base at some distance from another.
  void derive() {
    const Base from = global_base();
    if (chance(20)) return move(from);
    const auto scale = one_of<std::int64_t, 12>({1, 2, 4, 4, 8, 8, 16, 12, 20, 32, 64, 256});
    const bool back = chance(30);
    const std::int64_t room = back ? from.low : usable - 16 - from.high;
    const std::int64_t most =
        std::min<std::int64_t>(room / scale, 1 + static_cast<std::int64_t>(below(255)));
    if (most < 1) return access();
    Base made{0, from.low - (back ? most * scale : 0), from.high + (back ? 0 : most * scale),
              std::min(from.alignment, scale & -scale)};
    const int by = index(most);
    made.reg = back ? subtract(from.reg, by, scale) : add(from.reg, by, scale);
    bases_.push_back(made);
  }

  void move(const Base& from) {
    const std::int64_t step = 1 + static_cast<std::int64_t>(below(600));
    const bool back = chance(40);
    if (back ? from.low < step : from.high + step > usable - 16) return access();
    Base made{++addresses_, from.low + (back ? -step : step), from.high + (back ? -step : step),
              std::min(from.alignment, step & -step)};
    if (chance(50)) {
      line("{} %a{}, %a{}, {}", back ? "sub.s64" : "add.u64", made.reg, from.reg, step);
    } else {
      line("add.s64 %a{}, %a{}, {}", made.reg, from.reg, back ? -step : step);
    }
    bases_.push_back(made);
  }

  void select() {
    const Base one = global_base();
    const bool with_shared = makes_shared_ && chance(60);
    const Base other = with_shared ? one : global_base();
    Base made{0, std::min(one.low, other.low), std::max(one.high, other.high),
              std::min(one.alignment, other.alignment), with_shared};
    if (with_shared) made.alignment = std::min<std::int64_t>(made.alignment, 16);
    const int p = predicate();
    made.reg = ++addresses_;
    line("selp.b64 %a{}, %a{}, %a{}, %p{}", made.reg, one.reg, with_shared ? shared_ : other.reg,
         p);
    bases_.push_back(made);
  }

  void step_under_guard() {
    const Base from = global_base();
    const std::int64_t step = std::int64_t{4} << below(6);
    if (from.high + step > usable - 16) return access();
    const int p = predicate();
    const Base made{++addresses_, from.low, from.high + step, std::min(from.alignment, step)};
    line("mov.u64 %a{}, %a{}", made.reg, from.reg);
    line("@%p{0} add.s64 %a{1}, %a{1}, {2}", p, made.reg, step);
    bases_.push_back(made);
  }

  // A base that goes on with each trip. What is derived within is forgotten behind it.
  void loop(int depth) {
    const Base from = global_base();
    const auto most = static_cast<std::int64_t>(1 + below(5));
    const std::int64_t size = std::int64_t{1} << below(9);
    const bool back = from.low >= size * most && chance(40);
    if (!back && from.high + size * most > usable - 16) return access();
    const int trips = ++words_;
    if (chance(50)) {
      line("and.b32 %r{}, %v{}, {}", trips, value(),
           std::bit_floor(static_cast<std::uint64_t>(most)) - 1);
      line("add.s32 %r{0}, %r{0}, 1", trips);
    } else {
      line("mov.u32 %r{}, {}", trips, most);
    }
    const int count = ++words_;
    line("mov.u32 %r{}, 0", count);
    const Base moving{++addresses_, from.low - (back ? size * most : 0),
                      from.high + (back ? 0 : size * most), std::min(from.alignment, size)};
    line("mov.u64 %a{}, %a{}", moving.reg, from.reg);
    const int label = ++labels_;
    code_ += fmt::format("$L{}:\n", label);
    const std::size_t outside = bases_.size();
    bases_.push_back(moving);
    bases_.push_back(moving);  // more often than others
    for (std::uint64_t i = 1 + below(4); i > 0; --i) statement(depth + 1);
    bases_.resize(outside);
    line("add.s64 %a{0}, %a{0}, {1}", moving.reg, back ? -size : size);
    line("add.s32 %r{0}, %r{0}, 1", count);
    const int p = ++predicates_;
    line("setp.lt.u32 %p{}, %r{}, %r{}", p, count, trips);
    line("@%p{} bra $L{}", p, label);
  }

  void branch(int depth) {
    const int p = predicate();
    const int label = ++labels_;
    line("@{}%p{} bra $L{}", chance(50) ? "!" : "", p, label);
    const std::size_t outside = bases_.size();
    for (std::uint64_t i = 1 + below(3); i > 0; --i) statement(depth + 1);
    bases_.resize(outside);
    code_ += fmt::format("$L{}:\n", label);
  }

  // "[%a3+-8]" for so many bytes at a distance from the base.
  std::string place(const Base& base, std::int64_t bytes) {
    std::int64_t least = -std::min<std::int64_t>(base.low, chance(20) ? 4096 : 128);
    std::int64_t most = std::min<std::int64_t>(usable - base.high - bytes, chance(20) ? 4096 : 128);
    if (base.shared_too) {
      least = 0;
      most = std::min<std::int64_t>(most, 16 - bytes);
    }
    const std::int64_t first = -(-least / bytes);
    const std::int64_t last = most / bytes;
    const std::int64_t offset =
        bytes *
        (first + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(last - first + 1))));
    if (offset == 0 && chance(70)) return fmt::format("[%a{}]", base.reg);
    return fmt::format("[%a{}+{}]", base.reg, offset);
  }

  void access() {
    const Base base = any_base();
    const std::uint64_t kind = below(100);
    if (kind < 18 && base.alignment >= 4) return atomic(base, kind < 11);
    const auto most = std::min<std::int64_t>(base.alignment, 16);
    std::int64_t size = std::min<std::int64_t>(std::int64_t{1} << below(4), most);
    std::int64_t width = std::int64_t{1} << below(3);
    while (size * width > most) width /= 2;
    const char sign = one_of<char, 3>({'u', 's', 'b'});
    const std::string vector = width == 1 ? "" : fmt::format(".v{}", width);
    const bool generic = base.shared_too || chance(25);
    const std::string at = place(base, size * width);
    const std::string data = values(size, width);
    const bool loads = kind < 60;
    const std::string mnemonic =
        loads ? load(generic, base.shared_too) : store(generic, base.shared_too);
    line("{}{}{}.{}{} {}, {}", guard(), mnemonic, vector, sign, 8 * size, loads ? data : at,
         loads ? at : data);
  }

  std::string load(bool generic, bool plain) {
    if (plain) return "ld";
    if (generic) return one_of<const char*, 3>({"ld", "ld.ca", "ld.volatile"});
    return one_of<const char*, 10>({"ld.global", "ld.global", "ld.global.nc", "ld.global.ca",
                                    "ld.global.cg", "ld.global.L1::evict_last",
                                    "ld.volatile.global", "ld.relaxed.gpu.global", "ld.weak.global",
                                    "ld.global.L2::128B"});
  }
  std::string store(bool generic, bool plain) {
    if (plain) return "st";
    if (generic) return one_of<const char*, 3>({"st", "st.wb", "st.volatile"});
    return one_of<const char*, 7>({"st.global", "st.global", "st.global.wb", "st.global.cs",
                                   "st.volatile.global", "st.relaxed.gpu.global",
                                   "st.global.L1::evict_first"});
  }

  void atomic(const Base& base, bool has_result) {
    const bool is_wide = base.alignment >= 8 && chance(30);
    const char name = is_wide ? 'w' : 'v';
    const auto value_of = [&] { return fmt::format("%{}{}", name, is_wide ? wide() : value()); };
    const std::string space = base.shared_too || chance(25) ? "" : ".global";
    const std::string operation =
        has_result ? one_of<const char*, 6>({"add.u", "min.u", "max.s", "xor.b", "exch.b", "cas.b"})
                   : one_of<const char*, 4>({"add.u", "max.u", "or.b", "and.b"});
    const int bits = is_wide ? 64 : 32;
    const std::string at = place(base, bits / 8);
    const std::string begin =
        fmt::format("{}{}{}.{}{} ", guard(), has_result ? "atom" : "red", space, operation, bits);
    const std::string result = has_result ? value_of() + ", " : "";
    line("{}{}{}, {}{}", begin, result, at, value_of(),
         operation == "cas.b" ? ", " + value_of() : "");
  }

  void copy_to_shared() {
    const Base base = global_base();
    const auto most = std::min<std::int64_t>(base.alignment, 16);
    if (most < 4) return access();
    const auto bytes = std::min<std::int64_t>(std::int64_t{4} << below(3), most);
    const int at = ++words_;
    line("mov.u32 %r{}, tile", at);
    line("mad.lo.u32 %r{0}, %r0, 16, %r{0}", at);
    line("cp.async.{}.shared.global [%r{}+512], {}, {}", bytes == 16 && chance(50) ? "cg" : "ca",
         at, place(base, bytes), bytes);
    line("cp.async.wait_all");
    line("ld.shared.u32 %v{}, [%r{}+512]", value(), at);
  }

  void call() {
    const Base base = global_base();
    if (base.alignment < 4) return access();
    const int by = index(std::min<std::int64_t>((usable - 4 - base.high) / 4, 63));
    line(
        "{{ .param .b64 a; .param .b32 i; .param .b32 r; st.param.b64 [a], %a{}; st.param.b32 [i], "
        "%r{}; call.uni (r), fetch, (a, i); ld.param.b32 %v{}, [r]",
        base.reg, by, value());
    code_ += "}\n";
  }

  void prefetch() { line("prefetch.global.L2 {}", place(global_base(), 1)); }

  void use_table() {
    const int by = index(table_words - 2);
    const int at = ++addresses_;
    line("mov.u64 %a{}, {}{}", at, one_of<const char*, 2>({"table", "other"}),
         chance(50) ? "+4" : "");
    line("mad.wide.u32 %a{0}, %r{1}, 4, %a{0}", at, by);
    if (chance(25)) line("{}st.global.u32 [%a{}], %v{}", guard(), at, value());
    line("ld.global.u32 %v{}, [%a{}]", value(), at);
    if (chance(25)) line("red.global.add.u32 [other+{}], %v{}", 4 * below(table_words), value());
  }

  void keep_locally() {
    const int at = ++addresses_;
    const int by = index(15);
    line("mov.u64 %a{}, own", at);
    line("mad.wide.u32 %a{0}, %r{1}, 4, %a{0}", at, by);
    line("st.local.u32 [%a{}], %v{}", at, value());
    if (chance(50)) {
      line("cvta.local.u64 %a{0}, %a{0}", at);
      line("ld.u32 %v{}, [%a{}]", value(), at);
    } else {
      line("ld.local.u32 %v{}, [%a{}]", value(), at);
    }
  }

  std::string name_;
  std::vector<Base> bases_;
  bool keeps_local_ = false;
  bool makes_shared_ = false;
  int shared_ = 0;  // the register with the thread's address in shared memory
  int labels_ = 0;
};

}  // namespace demarc::emulate::colored
