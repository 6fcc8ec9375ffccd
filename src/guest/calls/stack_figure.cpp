// Loads a kernel whose local variable no register can hold, and asks for its bytes.
#include "calls/stack_figure.hpp"

#include "calls/relaxed_capture.hpp"

namespace demarc::cuda {
namespace {

// Its indices are known when it runs.
constexpr const char* stack_kernel = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry demarc_stack(.param .u64 p)
{
  .local .align 16 .b8 stack[1024];
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 1020;
  cvt.u64.u32 %rd2, %r2;
  mov.u64 %rd3, stack;
  add.s64 %rd4, %rd3, %rd2;
  st.local.u32 [%rd4], %r1;
  ld.global.u32 %r2, [%rd1];
  and.b32 %r2, %r2, 1020;
  cvt.u64.u32 %rd2, %r2;
  add.s64 %rd5, %rd3, %rd2;
  ld.local.u32 %r3, [%rd5];
  st.global.u32 [%rd1], %r3;
  ret;
}
)";
}  // namespace

Result<void> check_stack_figure(const DriverApi& api) {
  const RelaxedStreamCapture relaxed(api);
  CuModule module = nullptr;
  CuFunction function = nullptr;
  int bytes = 0;
  CuResult code = api.cuModuleLoadData(&module, stack_kernel);
  if (code == cu_success) code = api.cuModuleGetFunction(&function, module, "demarc_stack");
  if (code == cu_success) code = api.cuFuncGetAttribute(&bytes, function_local_bytes, function);
  if (module != nullptr) api.cuModuleUnload(module);
  if (code == cu_success && bytes != 0) return {};
  return missing_capability(
      "this driver does not tell how much local memory a kernel takes: it says {} bytes of one "
      "that "
      "takes a kilobyte (error {}), so nothing shows which kernels leave the tenant's colours",
      bytes, code);
}

}  // namespace demarc::cuda
