// Plays NVRTC and nvJitLink. A program of NVRTC's is the PTX that it compiles to; of an empty one
// there is machine code alone. What nvJitLink has linked is machine code.
#include <cstddef>
#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
constexpr char machine_code[] =
    "\x7f"
    "ELF of a cubin";

constexpr char linked_text[] = ".version 8.0 of a link";

int texts_given = 0;
int links_alive = 0;

int give(const char* text, std::size_t bytes, char* to) {
  std::memcpy(to, text, bytes);
  return 0;
}
}  // namespace

// Two of cuBLAS's functions, and two without a handle.
FAKE int cublasCreate_v2(void**) {
  return 1;
}
FAKE int cublasStrsm_v2(void*) {
  return 1;
}
FAKE const char* cublasGetStatusName(int) {
  return "";
}
// 12.4.5
FAKE int cublasGetProperty(int type, int* value) {
  constexpr int numbers[] = {12, 4, 5};
  *value = numbers[type];
  return 0;
}

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
// A link that makes PTX, of inputs that it takes, and of one which it cannot complete.
struct FakeLink {
  bool makes_ptx = false;
  bool completes = true;
};
FAKE int __nvJitLinkCreate_13_0(FakeLink** link, unsigned count, const char** options) {  // NOLINT
  *link = new FakeLink();
  for (unsigned i = 0; i < count; ++i) {
    if (std::strcmp(options[i], "-ptx") == 0) (*link)->makes_ptx = true;
  }
  ++links_alive;
  return 0;
}
FAKE int __nvJitLinkAddData_13_0(FakeLink* link, int, const void* data, std::size_t,  // NOLINT
                                 const char* name) {
  if (std::strcmp(name, "not for PTX") == 0 && link->makes_ptx) return 4;
  if (std::strcmp(static_cast<const char*>(data), "no PTX") == 0) link->completes = false;
  return 0;
}
FAKE int __nvJitLinkAddFile_13_0(void*, int, const char*) {  // NOLINT
  return 0;
}
FAKE int __nvJitLinkComplete_13_0(FakeLink* link) {  // NOLINT
  return link->makes_ptx && !link->completes ? 6 : 0;
}
FAKE int __nvJitLinkGetLinkedPtxSize_13_0(FakeLink* link, std::size_t* bytes) {  // NOLINT
  *bytes = sizeof linked_text - 1;
  return link->makes_ptx ? 0 : 2;
}
FAKE int __nvJitLinkGetLinkedPtx_13_0(FakeLink*, char* text) {  // NOLINT
  return give(linked_text, sizeof linked_text - 1, text);
}
FAKE int fake_links_alive() {
  return links_alive;
}
FAKE int __nvJitLinkGetLinkedCubinSize_13_0(void*, std::size_t* bytes) {  // NOLINT
  *bytes = sizeof machine_code;
  return 0;
}
FAKE int __nvJitLinkGetLinkedCubin_13_0(void*, char* code) {  // NOLINT
  return give(machine_code, sizeof machine_code, code);
}
FAKE int __nvJitLinkDestroy_13_0(FakeLink** link) {  // NOLINT
  delete *link;
  *link = nullptr;
  --links_alive;
  return 0;
}
