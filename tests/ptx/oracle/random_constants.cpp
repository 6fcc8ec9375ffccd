// Makes random constant expressions of PTX, in each place where one may stand.
#include "random_constants.hpp"

#include <fmt/format.h>

namespace demarc::ptx::test {

std::string RandomConstants::integer_literal() {
  if (below(12) == 0) return "WARP_SZ";
  constexpr std::uint64_t edges[] = {
      0, 1, 2, 63, 64, 1ULL << 31, 1ULL << 32, ~0ULL >> 32, 1ULL << 63, ~0ULL >> 1, ~0ULL};
  const std::uint64_t value =
      below(3) == 0 ? edges[below(std::size(edges))] : random_() >> below(64);
  std::string text;
  switch (below(6)) {
    case 0:
      text = fmt::format("0x{:x}", value);
      break;
    case 1:
      text = fmt::format("0{:o}", value);
      break;
    case 2:
      text = fmt::format("0b{:b}", value);
      break;
    default:
      text = fmt::format("{}", value);
  }
  return below(5) == 0 ? text + "U" : text;
}

std::string RandomConstants::floating_literal() {
  switch (below(4)) {
    case 0:
      return fmt::format("0d{:016X}", random_());
    case 1:
      return fmt::format("{}.", below(9));
    case 2:
      return fmt::format("{}.{}e{}", below(10), below(1000), static_cast<int>(below(80)) - 40);
    default:
      return fmt::format("{}.{}", below(100), below(100000));
  }
}

std::string RandomConstants::floating(unsigned depth) {
  if (depth == 0 || below(4) == 0) return floating_literal();
  switch (below(6)) {
    case 0:
      return "(" + floating(depth - 1) + ")";
    case 1:
      return one_of({"+", "-"}) + " " + floating(depth - 1);
    default:
      return floating(depth - 1) + one_of({" + ", " - ", " * ", " / "}) + floating(depth - 1);
  }
}

std::string RandomConstants::integer(unsigned depth) {
  if (depth == 0 || below(5) == 0) return integer_literal();
  switch (below(12)) {
    case 0:
      return "(" + integer(depth - 1) + ")";
    case 1:
    case 2:
      return one_of({"+", "-", "~", "!"}) + integer(depth - 1);
    case 3:
      return one_of({"(.s64)", "(.u64)"}) + integer(depth - 1);
    case 4:
      return fmt::format("({} ? {} : {})", integer(depth - 1), integer(depth - 1),
                         integer(depth - 1));
    case 5:
      return "(" + floating(2) + one_of({" == ", " != ", " < ", " > ", " <= ", " >= "}) +
             floating(2) + ")";
    case 6:
    case 7:
      return integer(depth - 1) +
             one_of({" == ", " != ", " < ", " > ", " <= ", " >= ", " && ", " || "}) +
             integer(depth - 1);
    default:
      return integer(depth - 1) +
             one_of({" + ", " - ", " * ", " / ", " % ", " & ", " | ", " ^ ", " << ", " >> "}) +
             integer(depth - 1);
  }
}

std::string RandomConstants::statement() {
  switch (below(11)) {
    case 0:
      return fmt::format("mov.u32 %r1, {}; st.global.b32 [%rd1], %r1;", integer(4));
    case 1:
      return fmt::format("mov.s16 %h1, {}; st.global.b16 [%rd1], %h1;", integer(4));
    case 2:
      return fmt::format("mov.f64 %d1, {}; st.global.f64 [%rd1], %d1;", floating(4));
    case 3:
      return fmt::format("mov.f32 %f1, {}; st.global.f32 [%rd1], %f1;", floating(4));
    case 4:
      return fmt::format("mov.b64 %rd2, {}; st.global.b64 [%rd1], %rd2;", floating(3));
    case 5:
      return fmt::format("ld.global.b32 %r1, [%rd1+{}]; st.global.b32 [%rd1], %r1;", integer(3));
    case 6:
      return fmt::format("mov.pred %p1, {}; selp.b32 %r1, 1, 2, %p1; st.global.b32 [%rd1], %r1;",
                         integer(3));
    case 7:
      return fmt::format("st.global.v2.b64 [%rd1], {{{}, {}}};", integer(3), integer(3));
    case 8:
      return fmt::format("mov.u64 %rd2, place+{}; st.global.b64 [%rd1], %rd2;", integer(3));
    default:
      return fmt::format("mov.b64 %rd2, {}; st.global.b64 [%rd1], %rd2;", integer(4));
  }
}

std::string RandomConstants::initialiser(const std::string& type) {
  if (type[0] == 'f')
    return below(6) == 0 ? fmt::format("0f{:08X}", random_() >> 32U) : floating(3);
  return type[0] == 'b' && below(3) == 0 ? floating(3) : integer(3);
}

std::string RandomConstants::mistake() {
  switch (below(7)) {
    case 0:
      return integer(2) + one_of({" + ", " < ", " && ", " % "}) + floating(1);
    case 1:
      return "(" + integer(2) + one_of({") / ", ") % "}) + "(" + integer_literal() + " & 0)";
    case 2:
      return one_of({"~", "!", "(.s64)", "(.u64)"}) + floating_literal();
    case 3:
      return floating(1) + one_of({" % ", " & ", " || ", " << "}) + floating(1);
    case 4:
      return "1 ? " + floating(1) + " : " + floating(1);
    case 5:
      return integer(1) + " %" + integer_literal();
    default:
      return one_of({"-0f3F800000", "1.0 + 0f3F800000", "0f3F800000 < 1.0", "(.u32)1", "1.5 / -0.0",
                     "1e400", "1e-310", "0x", "09", "1u", "0b2", "99999999999999999999"});
  }
}

std::string constants_module(const std::string& variables, const std::string& statements) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 8 .b8 "
         "place[64];\n" +
         variables +
         ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .b16 "
         "%h<2>;\n"
         ".reg .f32 %f<2>; .reg .f64 %d<2>; .reg .pred %p<2>;\nld.param.u64 %rd1, [p];\n" +
         statements + "ret;\n}\n";
}

}  // namespace demarc::ptx::test
