// What of an instruction is followed, and what is not.
#include "follow/translate.hpp"

#include <gtest/gtest.h>

#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

std::string source_text(const Source3& source) {
  switch (source.kind) {
    case Source3::Kind::slot:
      return "slot" + (source.value == 0 ? "" : fmt::format("+{}", source.value));
    case Source3::Kind::constant:
      return fmt::format("{:#x}", source.value);
    case Source3::Kind::special:
      return fmt::format("{}", ptx::info(source.special).name);
    case Source3::Kind::none:
      break;
  }
  return "-";
}

LeafValues leaves() {
  LeafValues leaves;
  const std::uint64_t pointer = 0x1122334455667788;
  const std::int32_t number = -2;
  leaves.parameters.resize(2);
  const auto* first = reinterpret_cast<const std::byte*>(&pointer);
  const auto* second = reinterpret_cast<const std::byte*>(&number);
  leaves.parameters[0].assign(first, first + sizeof pointer);
  leaves.parameters[1].assign(second, second + sizeof number);
  return leaves;
}

// "9/32>64 signed: slot, 0x4, -": operation, bits, bits of the result, and the sources.
std::string translated(const std::string& instruction) {
  const ptx::Module module = module_of(instruction + ";\n", one_pointer);
  const ptx::Function& function = module.functions.front();
  const SliceOperation found =
      translate_instruction(module, function, function.body.instructions.front(), leaves());
  if (found.shape.operation == Operation::poison) return "not followed";
  std::string text =
      fmt::format("{}/{}>{}{}:", static_cast<int>(found.shape.operation), found.shape.bits,
                  found.shape.result_bits, found.shape.is_signed ? " signed" : "");
  for (const Source3& source : found.sources) text += " " + source_text(source);
  return text;
}

std::string shaped(Operation operation, const std::string& rest) {
  return fmt::format("{}/{}", static_cast<int>(operation), rest);
}

TEST(Translate, integer_instructions_are_followed_with_their_type) {
  using enum Operation;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mov.u32 %r1, %r2", shaped(copy, "32>32: slot - -")},
      {"mov.u32 %r1, %tid.x", shaped(copy, "32>32: %tid - -")},
      {"mov.b64 %rd1, 12", shaped(copy, "64>64: 0xc - -")},
      {"cvta.to.global.u64 %rd1, %rd2", shaped(copy, "64>64: slot - -")},
      {"add.s32 %r1, %r2, -1", shaped(add, "32>32 signed: slot 0xffffffffffffffff -")},
      {"sub.u64 %rd1, %rd2, %rd3", shaped(subtract, "64>64: slot slot -")},
      {"mul.lo.u32 %r1, %r2, %r3", shaped(multiply, "32>32: slot slot -")},
      {"mul.hi.s32 %r1, %r2, %r3", shaped(multiply_high, "32>32 signed: slot slot -")},
      {"mul.wide.s32 %rd1, %r2, 4", shaped(multiply_wide, "32>64 signed: slot 0x4 -")},
      {"mad.lo.s32 %r1, %r2, %r3, %r4", shaped(multiply_add, "32>32 signed: slot slot slot")},
      {"mad.wide.u32 %rd1, %r2, 4, %rd2", shaped(multiply_add_wide, "32>64: slot 0x4 slot")},
      {"div.u32 %r1, %r2, %r3", shaped(divide, "32>32: slot slot -")},
      {"rem.s32 %r1, %r2, %r3", shaped(remainder, "32>32 signed: slot slot -")},
      {"abs.s32 %r1, %r2", shaped(absolute, "32>32 signed: slot - -")},
      {"neg.s32 %r1, %r2", shaped(negate, "32>32 signed: slot - -")},
      {"min.u32 %r1, %r2, %r3", shaped(minimum, "32>32: slot slot -")},
      {"max.s32 %r1, %r2, %r3", shaped(maximum, "32>32 signed: slot slot -")},
      {"bfe.u32 %r1, %r2, 3, 5", shaped(extract, "32>32: slot 0x3 0x5")},
      {"and.b32 %r1, %r2, %r3", shaped(bit_and, "32>32: slot slot -")},
      {"and.pred %p1, %p2, %p3", shaped(bit_and, "1>1: slot slot -")},
      {"or.b32 %r1, %r2, %r3", shaped(bit_or, "32>32: slot slot -")},
      {"xor.b64 %rd1, %rd2, %rd3", shaped(bit_xor, "64>64: slot slot -")},
      {"not.b32 %r1, %r2", shaped(bit_not, "32>32: slot - -")},
      {"shl.b32 %r1, %r2, 5", shaped(shift_left, "32>32: slot 0x5 -")},
      {"shr.s32 %r1, %r2, 5", shaped(shift_right, "32>32 signed: slot 0x5 -")},
      {"shf.l.wrap.b32 %r1, %r2, %r3, 5", shaped(funnel_left, "32>32: slot slot 0x5")},
      {"shf.r.wrap.b32 %r1, %r2, %r3, 5", shaped(funnel_right, "32>32: slot slot 0x5")},
      {"selp.b32 %r1, %r2, %r3, %p1", shaped(select, "32>32: slot slot slot")},
      {"cvt.u64.s32 %rd1, %r1", shaped(convert, "32>64 signed: slot - -")},
      {"cvt.u32.u64 %r1, %rd1", shaped(convert, "64>32: slot - -")},
      {"setp.eq.s32 %p1, %r1, %r2", shaped(equal, "32>1 signed: slot slot -")},
      {"setp.ne.b32 %p1, %r1, 0", shaped(not_equal, "32>1: slot 0x0 -")},
      {"setp.lt.s32 %p1, %r1, 7", shaped(less, "32>1 signed: slot 0x7 -")},
      {"setp.le.u32 %p1, %r1, 7", shaped(less_equal, "32>1: slot 0x7 -")},
      {"setp.gt.s64 %p1, %rd1, 7", shaped(greater, "64>1 signed: slot 0x7 -")},
      {"setp.ge.u32 %p1, %r1, 7", shaped(greater_equal, "32>1: slot 0x7 -")},
      {"setp.lo.u32 %p1, %r1, 7", shaped(less, "32>1: slot 0x7 -")},
      {"setp.ls.u32 %p1, %r1, 7", shaped(less_equal, "32>1: slot 0x7 -")},
      {"setp.hi.u32 %p1, %r1, 7", shaped(greater, "32>1: slot 0x7 -")},
      {"setp.hs.u32 %p1, %r1, 7", shaped(greater_equal, "32>1: slot 0x7 -")},
  };
  for (const auto& [instruction, expected] : cases) {
    EXPECT_EQ(translated(instruction), expected) << instruction;
  }
}

TEST(Translate, parameters_are_followed_as_far_as_the_launch_has_their_bytes) {
  const std::string constant = shaped(Operation::copy, "64>64: ");
  EXPECT_EQ(translated("ld.param.u64 %rd1, [p0]"), constant + "0x1122334455667788 - -");
  EXPECT_EQ(translated("ld.param.u32 %r1, [p0+4]"), constant + "0x11223344 - -");
  EXPECT_EQ(translated("ld.param.f32 %f1, [p0]"), constant + "0x55667788 - -");
  EXPECT_EQ(translated("ld.param.u32 %r1, [p1]"), constant + "0xfffffffe - -");
  EXPECT_EQ(translated("ld.param.s32 %r1, [p1]"), constant + "0xfffffffffffffffe - -");
  EXPECT_EQ(translated("ld.param.u64 %rd1, [p0+4]"), "not followed");
  EXPECT_EQ(translated("ld.param.u64 %rd1, [p1]"), "not followed");
}

TEST(Translate, everything_else_is_not_followed) {
  for (const char* instruction :
       {"add.f32 %f1, %f2, %f3", "mul24.lo.u32 %r1, %r2, %r3", "add.sat.s32 %r1, %r2, %r3",
        "cvt.sat.s32.s64 %r1, %rd1", "cvt.rni.s32.f32 %r1, %f1", "cvt.rn.f32.s32 %f1, %r1",
        "mad.hi.s32 %r1, %r2, %r3, %r4", "setp.lt.and.s32 %p1, %r1, %r2, %p2",
        "setp.lt.f32 %p1, %f1, %f2", "shf.l.clamp.b32 %r1, %r2, %r3, %r4",
        "lop3.b32 %r1, %r2, %r3, %r4, 0x80", "popc.b32 %r1, %r2", "ld.global.u32 %r1, [%rd1]",
        "mov.b64 {%r1, %r2}, %rd1", "mov.f32 %f1, 0f3F800000"}) {
    EXPECT_EQ(translated(instruction), "not followed") << instruction;
  }
}

}  // namespace
}  // namespace demarc::locality
