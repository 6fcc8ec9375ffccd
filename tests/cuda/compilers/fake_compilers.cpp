// Plays NVRTC and nvJitLink. A program of NVRTC's is the PTX that it compiles to; of an empty one
// there is machine code alone. What nvJitLink has linked is machine code.
#include <cstddef>
#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
constexpr char machine_code[] =
    "\x7f"
    "ELF of a cubin";

int texts_given = 0;

int give(const char* text, std::size_t bytes, char* to) {
  std::memcpy(to, text, bytes);
  return 0;
}
}  // namespace

FAKE int nvrtcGetPTXSize(const char* program, std::size_t* bytes) {
  *bytes = std::strlen(program) + 1;
  return 0;
}
FAKE int nvrtcGetPTX(const char* program, char* text) {
  ++texts_given;
  return give(program, std::strlen(program) + 1, text);
}
FAKE int fake_texts_given() {
  return texts_given;
}
FAKE int nvrtcGetCUBINSize(const char*, std::size_t* bytes) {
  *bytes = sizeof machine_code;
  return 0;
}
FAKE int nvrtcGetCUBIN(const char*, char* code) {
  return give(machine_code, sizeof machine_code, code);
}
FAKE int __nvJitLinkAddData_13_0(void*, int, const void*, std::size_t, const char*) {  // NOLINT
  return 0;
}
FAKE int __nvJitLinkAddFile_13_0(void*, int, const char*) {  // NOLINT
  return 0;
}
FAKE int __nvJitLinkGetLinkedCubinSize_13_0(void*, std::size_t* bytes) {  // NOLINT
  *bytes = sizeof machine_code;
  return 0;
}
FAKE int __nvJitLinkGetLinkedCubin_13_0(void*, char* code) {  // NOLINT
  return give(machine_code, sizeof machine_code, code);
}
FAKE int __nvJitLinkDestroy_13_0(void** link) {  // NOLINT
  *link = nullptr;
  return 0;
}
