// Asks NVRTC and nvJitLink for machine code, of a library that it is linked with or opens, and says
// what they gave: each argument is a step.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
int nvrtcGetCUBINSize(const char* program, std::size_t* bytes);
int nvrtcGetCUBIN(const char* program, char* code);
int __nvJitLinkCreate_13_0(void** link, unsigned count, const char** options);          // NOLINT
int __nvJitLinkComplete_13_0(void* link);                                               // NOLINT
int __nvJitLinkAddData_13_0(void* link, int type, const void* data, std::size_t bytes,  // NOLINT
                            const char* name);
int __nvJitLinkAddFile_13_0(void* link, int type, const char* path);     // NOLINT
int __nvJitLinkGetLinkedCubinSize_13_0(void* link, std::size_t* bytes);  // NOLINT
int __nvJitLinkGetLinkedCubin_13_0(void* link, void* code);              // NOLINT
int __nvJitLinkDestroy_13_0(void** link);                                // NOLINT
int fake_links_alive();
}

namespace {

constexpr int ptx = 2;
constexpr int link_time = 3;

const std::string text =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";

void say(const char* of, const std::vector<char>& code) {
  const std::string given(code.begin(), code.end());
  const char* what = given.starts_with(
                         "\x7f"
                         "ELF")
                         ? "machine code"
                     : given.find(".version") == std::string::npos ? "something else"
                     : given.ends_with('\0')                       ? "PTX"
                                                                   : "PTX without an end";
  std::printf("%s: %s\n", of, what);
}

struct Nvrtc {
  decltype(&nvrtcGetCUBINSize) size;
  decltype(&nvrtcGetCUBIN) code;
  void ask(const char* of, const char* program) const {
    std::size_t bytes = 0;
    if (size(program, &bytes) != 0) std::puts("no size");
    std::vector<char> given(bytes);
    if (code(program, given.data()) != 0) std::puts("no code");
    say(of, given);
  }
};

struct Linker {
  decltype(&__nvJitLinkCreate_13_0) create;
  decltype(&__nvJitLinkComplete_13_0) complete;
  decltype(&__nvJitLinkAddData_13_0) add;
  decltype(&__nvJitLinkAddFile_13_0) add_file;
  decltype(&__nvJitLinkGetLinkedCubinSize_13_0) size;
  decltype(&__nvJitLinkGetLinkedCubin_13_0) code;
  decltype(&__nvJitLinkDestroy_13_0) destroy;
  void ask(const char* of, void* link) const {
    std::size_t bytes = 0;
    if (size(link, &bytes) != 0) std::puts("no size");
    std::vector<char> given(bytes);
    if (code(link, given.data()) != 0) std::puts("no code");
    say(of, given);
  }
};

void ask_all(const Nvrtc& nvrtc, const Linker& linker) {
  nvrtc.ask("nvrtc", text.c_str());
  nvrtc.ask("nvrtc without PTX", "");
  constexpr int fat_binary = 4;
  const auto add = [&](void* link, int type) {
    linker.add(link, type, text.data(), text.size(), "k");
  };
  void* links[4] = {};
  const char* option = "-arch=sm_90";
  for (void*& link : links) linker.create(&link, 1, &option);
  add(links[0], ptx);
  linker.ask("one text", links[0]);
  add(links[0], ptx);
  linker.ask("two texts", links[0]);
  add(links[1], link_time);
  linker.ask("other input", links[1]);
  add(links[2], fat_binary);
  linker.ask("a fat binary", links[2]);
  add(links[3], ptx);
  linker.add_file(links[3], ptx, "k.ptx");
  linker.ask("a text and a file", links[3]);
  for (void*& link : links) {
    linker.destroy(&link);
    if (link != nullptr) std::puts("not destroyed");
  }
}

struct Input {
  int type;
  const char* data;
  const char* name;
};

// A link for link-time optimisation, of these inputs.
void ask_optimised(const Linker& linker, const char* of, const std::vector<Input>& inputs,
                   std::vector<const char*> options = {"-arch=sm_90", "-lto"}) {
  void* link = nullptr;
  linker.create(&link, static_cast<unsigned>(options.size()), options.data());
  for (const auto& [type, data, name] : inputs) linker.add(link, type, data, 8, name);
  if (linker.complete(link) != 0) std::puts("not complete");
  linker.ask(of, link);
  linker.destroy(&link);
}

void ask_all_optimised(const Linker& linker, int (*alive)()) {
  const Input one{link_time, "bitcode", "a"};
  ask_optimised(linker, "one input", {one});
  ask_optimised(linker, "two inputs", {one, {link_time, "bitcode", "b"}});
  ask_optimised(linker, "and a text", {one, {ptx, "a text", "b"}});
  ask_optimised(linker, "one that is not taken", {one, {link_time, "bitcode", "not for PTX"}});
  ask_optimised(linker, "one that gives no PTX", {one, {link_time, "no PTX", "b"}});
  ask_optimised(linker, "without the option", {one}, {"-arch=sm_90"});
  std::printf("%d links are left\n", alive());
}

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

Linker linker_of(void* library, const std::string& before, const std::string& behind) {
  const auto name = [&](const char* of) { return before + "nvJitLink" + of + behind; };
  return {symbol<decltype(Linker::create)>(library, name("Create").c_str()),
          symbol<decltype(Linker::complete)>(library, name("Complete").c_str()),
          symbol<decltype(Linker::add)>(library, name("AddData").c_str()),
          symbol<decltype(Linker::add_file)>(library, name("AddFile").c_str()),
          symbol<decltype(Linker::size)>(library, name("GetLinkedCubinSize").c_str()),
          symbol<decltype(Linker::code)>(library, name("GetLinkedCubin").c_str()),
          symbol<decltype(Linker::destroy)>(library, name("Destroy").c_str())};
}

void ask_opened(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::puts(::dlerror());
    return;
  }
  const Linker linker = linker_of(library, "__", "_13_0");
  ask_all({symbol<decltype(Nvrtc::size)>(library, "nvrtcGetCUBINSize"),
           symbol<decltype(Nvrtc::code)>(library, "nvrtcGetCUBIN")},
          linker);
  ask_all_optimised(linker, symbol<int (*)()>(library, "fake_links_alive"));
}

void ask_linked() {
  const Linker linker{&__nvJitLinkCreate_13_0,
                      &__nvJitLinkComplete_13_0,
                      &__nvJitLinkAddData_13_0,
                      &__nvJitLinkAddFile_13_0,
                      &__nvJitLinkGetLinkedCubinSize_13_0,
                      &__nvJitLinkGetLinkedCubin_13_0,
                      &__nvJitLinkDestroy_13_0};
  ask_all({&nvrtcGetCUBINSize, &nvrtcGetCUBIN}, linker);
  ask_all_optimised(linker, &fake_links_alive);
}

// For two libraries: each says how often it was asked for PTX, which the other does not count.
void ask_both(const std::string& paths) {
  const std::size_t equals = paths.find('=');
  void* libraries[] = {::dlopen(paths.substr(0, equals).c_str(), RTLD_NOW | RTLD_LOCAL),
                       ::dlopen(paths.substr(equals + 1).c_str(), RTLD_NOW | RTLD_LOCAL)};
  Nvrtc nvrtc[2];
  for (int i = 0; i < 2; ++i) {
    nvrtc[i] = {symbol<decltype(Nvrtc::size)>(libraries[i], "nvrtcGetCUBINSize"),
                symbol<decltype(Nvrtc::code)>(libraries[i], "nvrtcGetCUBIN")};
  }
  for (const int i : {0, 1, 0}) {
    std::size_t bytes = 0;
    nvrtc[i].size(text.c_str(), &bytes);
    std::vector<char> given(bytes);
    nvrtc[i].code(text.c_str(), given.data());
    const int asked = symbol<int (*)()>(libraries[i], "fake_texts_given")();
    say(((i == 0 ? "first " : "second ") + std::to_string(asked)).c_str(), given);
  }
}

void compile(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const auto create =
      symbol<int (*)(const char**, const char*, const char*, int, const char**, const char**)>(
          library, "nvrtcCreateProgram");
  const auto make = symbol<int (*)(const char*, int, const char**)>(library, "nvrtcCompileProgram");
  const char* program = nullptr;
  const char* option = "--gpu-architecture=sm_90";
  if (create(&program, "extern \"C\" __global__ void k(float* a) { a[threadIdx.x] = 1; }", "k.cu",
             0, nullptr, nullptr) != 0 ||
      make(program, 1, &option) != 0) {
    std::puts("not compiled");
    return;
  }
  Nvrtc{symbol<decltype(Nvrtc::size)>(library, "nvrtcGetCUBINSize"),
        symbol<decltype(Nvrtc::code)>(library, "nvrtcGetCUBIN")}
      .ask("compiled", program);
}

void link(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const Linker linker = linker_of(library, "", "");
  void* made = nullptr;
  const char* option = "-arch=sm_90";
  if (linker.create(&made, 1, &option) != 0 ||
      linker.add(made, ptx, text.c_str(), text.size() + 1, "k") != 0 ||
      linker.complete(made) != 0) {
    std::puts("not linked");
    return;
  }
  linker.ask("linked", made);
  linker.destroy(&made);
}

// Code for link-time optimisation of NVRTC's.
std::vector<char> bitcode(void* library, const char* source) {
  const auto create =
      symbol<int (*)(const char**, const char*, const char*, int, const char**, const char**)>(
          library, "nvrtcCreateProgram");
  const auto make = symbol<int (*)(const char*, int, const char**)>(library, "nvrtcCompileProgram");
  const auto size = symbol<int (*)(const char*, std::size_t*)>(library, "nvrtcGetLTOIRSize");
  const auto code = symbol<int (*)(const char*, char*)>(library, "nvrtcGetLTOIR");
  const char* program = nullptr;
  const char* options[] = {"--gpu-architecture=compute_90", "-dlto", "-rdc=true"};
  std::size_t bytes = 0;
  if (create(&program, source, "k.cu", 0, nullptr, nullptr) != 0 ||
      make(program, 3, options) != 0 || size(program, &bytes) != 0) {
    return {};
  }
  std::vector<char> given(bytes);
  return code(program, given.data()) == 0 ? given : std::vector<char>();
}

// Two inputs of which one calls the other, by NVRTC=nvJitLink.
void link_optimised(const std::string& paths) {
  const std::size_t equals = paths.find('=');
  void* nvrtc = ::dlopen(paths.substr(0, equals).c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto kernel = bitcode(nvrtc,
                              "extern __device__ float f(float);"
                              "extern \"C\" __global__ void k(float* a) { a[0] = f(a[1]); }");
  const auto function = bitcode(nvrtc, "__device__ float f(float x) { return 2 * x; }");
  const Linker linker =
      linker_of(::dlopen(paths.substr(equals + 1).c_str(), RTLD_NOW | RTLD_LOCAL), "", "");
  const char* options[] = {"-arch=sm_90", "-lto"};
  void* made = nullptr;
  if (linker.create(&made, 2, options) != 0 ||
      linker.add(made, link_time, kernel.data(), kernel.size(), "kernel") != 0 ||
      linker.add(made, link_time, function.data(), function.size(), "function") != 0 ||
      linker.complete(made) != 0) {
    std::puts("not linked");
    return;
  }
  linker.ask("optimised", made);
  linker.destroy(&made);
}

// Whose functions of cuBLAS a program gets that opens the library itself.
void find_blas(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  for (const char* name :
       {"cublasCreate_v2", "cublasStrsm_v2", "cublasGetStatusName", "cublasNone"}) {
    void* const function = ::dlsym(library, name);
    Dl_info info = {};
    const bool found = function != nullptr && ::dladdr(function, &info) != 0;
    const char* const base = found ? std::strrchr(info.dli_fname, '/') : nullptr;
    std::printf("%s: %s\n", name, base == nullptr ? "none" : base + 1);
  }
}

// That of cuBLAS, as the program that is linked with it is told.
void tell_version() {
  using GetVersion = int(void* handle, int* version);
  auto* const get = reinterpret_cast<GetVersion*>(::dlsym(RTLD_DEFAULT, "cublasGetVersion_v2"));
  int version = 0;
  if (get != nullptr) get(nullptr, &version);
  std::printf("version %d\n", version);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string step = argv[i];
    const std::size_t equals = step.find('=');
    const std::string path = equals == std::string::npos ? "" : step.substr(equals + 1);
    if (step == "linked") ask_linked();
    if (step.starts_with("opened=")) ask_opened(path.c_str());
    if (step.starts_with("both=")) ask_both(path);
    if (step.starts_with("blas=")) find_blas(path.c_str());
    if (step == "version") tell_version();
    if (step.starts_with("compile=")) compile(path.c_str());
    if (step.starts_with("link=")) link(path.c_str());
    if (step.starts_with("optimise=")) link_optimised(path);
    // Who looks for the next function of a name is not kept from it.
    if (step == "next") std::puts(::dlsym(RTLD_NEXT, "malloc") != nullptr ? "next" : "no next");
    if (step == "none")
      std::puts(::dlsym(RTLD_DEFAULT, "no_such_function") == nullptr ? "none" : "some");
  }
  return 0;
}
