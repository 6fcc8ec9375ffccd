// Tests how findings are put into words.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

TEST(Names, a_finding_shows_its_instruction_on_one_line_without_the_semicolon) {
  Finding finding;
  finding.kind = FindingKind::out_of_bounds;
  finding.line = 7;
  finding.kernel = "smooth";
  finding.detail = "why";
  for (const char* text : {"ld.global.f32 %f4, [%rd8];", "ld.global.f32\t%f4,\n\t[%rd8];",
                           "ld.global.f32  %f4, [%rd8]"}) {
    finding.instruction = text;
    EXPECT_EQ(describe(finding, "a.ptx"),
              "out-of-bounds access: a.ptx:7: ld.global.f32 %f4, [%rd8]; kernel smooth, block "
              "(0,0,0), thread (0,0,0): why");
  }
}

}  // namespace
}  // namespace demarc::emulate
