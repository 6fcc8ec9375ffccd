// Kernels in PTX that several tests run on the stand-in driver.
#pragma once

#include <string>

namespace demarc::test {

// b[i] = 3 a[i] + i, i < n
inline constexpr const char* scale_entry = R"(
.visible .entry scale(.param .u64 a, .param .u64 b, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.u32 %r6, [%rd4];
  mad.lo.u32 %r7, %r6, 3, %r5;
  st.global.u32 [%rd5], %r7;
done:
  ret;
}
)";

// c[i] = b[i] + b[n - 1 - i], i < n
inline constexpr const char* fold_entry = R"(
.visible .entry fold(.param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [b];
  ld.param.u64 %rd2, [c];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  sub.u32 %r6, %r1, %r5;
  sub.u32 %r6, %r6, 1;
  mul.wide.u32 %rd3, %r5, 4;
  mul.wide.u32 %rd4, %r6, 4;
  add.u64 %rd5, %rd1, %rd3;
  add.u64 %rd6, %rd1, %rd4;
  add.u64 %rd7, %rd2, %rd3;
  ld.global.u32 %r7, [%rd5];
  ld.global.u32 %r8, [%rd6];
  add.u32 %r9, %r7, %r8;
  st.global.u32 [%rd7], %r9;
done:
  ret;
}
)";

// The text of a module that holds these entries.
template <class... Entries>
std::string small_module(const Entries&... entries) {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n";
  (text.append(entries), ...);
  return text;
}

}  // namespace demarc::test
