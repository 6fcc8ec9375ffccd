// libdemarc_compilers.so: the compilers that programs carry in them, NVRTC and nvJitLink, give PTX
// where machine code is asked of them, so that what they made can be coloured when it is loaded.
// `demarc exec --tenant` puts it in front of a program (LD_PRELOAD). What it cannot change stays as
// it is, and is refused by its name when it is loaded: nothing depends on this library.
//
// NVRTC keeps the PTX of what it compiled to machine code. nvJitLink keeps no PTX, but a link of
// one input is that input: the driver links it all the same. Both are reached as symbols, which
// come from here first, or by dlsym(), which this library answers for them.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#define DEMARC_SHOWN extern "C" __attribute__((visibility("default")))
#define DEMARC_HIDDEN extern "C" __attribute__((visibility("hidden")))

DEMARC_HIDDEN void* (*demarc_real_dlsym)(void* handle, const char* name);
void* (*demarc_real_dlsym)(void* handle, const char* name) = nullptr;

namespace {

using Code = int;              // nvrtcResult, nvJitLinkResult; 0: no error
constexpr Code no_handle = 5;  // NVJITLINK_ERROR_INVALID_INPUT

void find_real_dlsym() {
  if (demarc_real_dlsym != nullptr) return;
  void* found = nullptr;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (found == nullptr) found = ::dlvsym(RTLD_NEXT, "dlsym", version);
  }
  demarc_real_dlsym = reinterpret_cast<void* (*)(void*, const char*)>(found);
}

// nvJitLink.h calls the functions of its own version.
constexpr const char* linker_versions[] = {"_13_0", "_12_9", "_12_8", "_12_6", "_12_5",
                                           "_12_4", "_12_3", "_12_2", "_12_1", "_12_0"};

// A function of the library that is played here: where dlsym() found it, else that of the library
// which the program is linked with.
struct Original {
  const char* name;
  void* place = nullptr;
  template <class Function>
  Function* get() {
    find_real_dlsym();
    if (place == nullptr) place = demarc_real_dlsym(RTLD_NEXT, name);
    for (const char* version : linker_versions) {
      if (place != nullptr) break;
      place = demarc_real_dlsym(RTLD_NEXT, (std::string("__") + name + version).c_str());
    }
    return reinterpret_cast<Function*>(place);
  }
};

// NVRTC.
using Program = void*;
using SizeOf = Code(Program program, std::size_t* bytes);
using TextOf = Code(Program program, char* text);
Original ptx_size{"nvrtcGetPTXSize"};
Original ptx_text{"nvrtcGetPTX"};
Original code_size{"nvrtcGetCUBINSize"};
Original code_text{"nvrtcGetCUBIN"};

// Where there is no PTX (link-time optimisation), the machine code that was asked for.
bool has_ptx(Program program) {
  std::size_t bytes = 0;
  auto* const size = ptx_size.get<SizeOf>();
  return size != nullptr && ptx_text.get<TextOf>() != nullptr && size(program, &bytes) == 0 &&
         bytes > 1;
}

// nvJitLink: what went into a link, as long as it is one text of PTX or one fat binary.
struct Link {
  std::string only;
  unsigned inputs = 0;
};
using Linker = void*;
using AddData = Code(Linker link, int type, const void* data, std::size_t bytes, const char* name);
using AddFile = Code(Linker link, int type, const char* path);
using CodeSize = Code(Linker link, std::size_t* bytes);
using CodeText = Code(Linker link, void* code);
using Destroy = Code(Linker* link);
Original add_data{"nvJitLinkAddData"};
Original add_file{"nvJitLinkAddFile"};
Original linked_size{"nvJitLinkGetLinkedCubinSize"};
Original linked_code{"nvJitLinkGetLinkedCubin"};
Original destroy_link{"nvJitLinkDestroy"};

class Links {
 public:
  void add(Linker link, int type, const void* data, std::size_t bytes) {
    constexpr int ptx = 2;
    constexpr int fat_binary = 4;
    const std::lock_guard lock(mutex_);
    Link& known = links_[link];
    ++known.inputs;
    if (known.inputs != 1 || data == nullptr || (type != ptx && type != fat_binary)) {
      known.only.clear();
      return;
    }
    known.only.assign(static_cast<const char*>(data), bytes);
    if (type == ptx && !known.only.ends_with('\0')) known.only.push_back('\0');
  }
  // Empty: the link is one of other things.
  std::string find(Linker link) {
    const std::lock_guard lock(mutex_);
    const auto known = links_.find(link);
    return known == links_.end() ? std::string() : known->second.only;
  }
  void forget(Linker link) {
    const std::lock_guard lock(mutex_);
    links_.erase(link);
  }
  static Links& get() {
    static auto* const links = new Links();  // as long as the process, whoever ends first
    return *links;
  }

 private:
  std::mutex mutex_;
  std::map<Linker, Link> links_;
};

}  // namespace

DEMARC_SHOWN Code nvrtcGetCUBINSize(Program program, std::size_t* bytes) {
  auto* const size = (has_ptx(program) ? ptx_size : code_size).get<SizeOf>();
  return size == nullptr ? no_handle : size(program, bytes);
}

DEMARC_SHOWN Code nvrtcGetCUBIN(Program program, char* code) {
  auto* const text = (has_ptx(program) ? ptx_text : code_text).get<TextOf>();
  return text == nullptr ? no_handle : text(program, code);
}

DEMARC_SHOWN Code nvJitLinkAddData(Linker link, int type, const void* data, std::size_t bytes,
                                   const char* name) {
  auto* const add = add_data.get<AddData>();
  if (add == nullptr) return no_handle;
  Links::get().add(link, type, data, bytes);
  return add(link, type, data, bytes, name);
}

DEMARC_SHOWN Code nvJitLinkAddFile(Linker link, int type, const char* path) {
  auto* const add = add_file.get<AddFile>();
  if (add == nullptr) return no_handle;
  Links::get().add(link, type, nullptr, 0);
  return add(link, type, path);
}

DEMARC_SHOWN Code nvJitLinkGetLinkedCubinSize(Linker link, std::size_t* bytes) {
  const std::string only = Links::get().find(link);
  if (!only.empty() && bytes != nullptr) {
    *bytes = only.size();
    return 0;
  }
  auto* const size = linked_size.get<CodeSize>();
  return size == nullptr ? no_handle : size(link, bytes);
}

DEMARC_SHOWN Code nvJitLinkGetLinkedCubin(Linker link, void* code) {
  const std::string only = Links::get().find(link);
  if (!only.empty() && code != nullptr) {
    std::memcpy(code, only.data(), only.size());
    return 0;
  }
  auto* const text = linked_code.get<CodeText>();
  return text == nullptr ? no_handle : text(link, code);
}

DEMARC_SHOWN Code nvJitLinkDestroy(Linker* link) {
  if (link != nullptr) Links::get().forget(*link);
  auto* const destroy = destroy_link.get<Destroy>();
  return destroy == nullptr ? no_handle : destroy(link);
}

// As linker_versions has them.
#define DEMARC_VERSION(name, version, ...) \
  DEMARC_SHOWN Code __##name##_##version(__VA_ARGS__) __attribute__((alias(#name))); /* NOLINT */
#define DEMARC_VERSIONS(name, ...)        \
  DEMARC_VERSION(name, 12_0, __VA_ARGS__) \
  DEMARC_VERSION(name, 12_1, __VA_ARGS__) \
  DEMARC_VERSION(name, 12_2, __VA_ARGS__) \
  DEMARC_VERSION(name, 12_3, __VA_ARGS__) \
  DEMARC_VERSION(name, 12_4, __VA_ARGS__) \
  DEMARC_VERSION(name, 12_5, __VA_ARGS__) \
  DEMARC_VERSION(name, 12_6, __VA_ARGS__) \
  DEMARC_VERSION(name, 12_8, __VA_ARGS__) \
  DEMARC_VERSION(name, 12_9, __VA_ARGS__) \
  DEMARC_VERSION(name, 13_0, __VA_ARGS__)
DEMARC_VERSIONS(nvJitLinkAddData, Linker, int, const void*, std::size_t, const char*)
DEMARC_VERSIONS(nvJitLinkAddFile, Linker, int, const char*)
DEMARC_VERSIONS(nvJitLinkGetLinkedCubinSize, Linker, std::size_t*)
DEMARC_VERSIONS(nvJitLinkGetLinkedCubin, Linker, void*)
DEMARC_VERSIONS(nvJitLinkDestroy, Linker*)

namespace {

struct Played {
  Original* original;
  void* here;
};
const Played played[] = {
    {&code_size, reinterpret_cast<void*>(&nvrtcGetCUBINSize)},
    {&code_text, reinterpret_cast<void*>(&nvrtcGetCUBIN)},
    {&add_data, reinterpret_cast<void*>(&nvJitLinkAddData)},
    {&add_file, reinterpret_cast<void*>(&nvJitLinkAddFile)},
    {&linked_size, reinterpret_cast<void*>(&nvJitLinkGetLinkedCubinSize)},
    {&linked_code, reinterpret_cast<void*>(&nvJitLinkGetLinkedCubin)},
    {&destroy_link, reinterpret_cast<void*>(&nvJitLinkDestroy)},
};

// Without a function of any library: sanitizers ask for theirs by dlsym(), before any can be
// called.
bool begins_with(const char* text, const char* beginning) {
  while (*beginning != '\0' && *text == *beginning) ++text, ++beginning;
  return *beginning == '\0';
}
bool may_be_played(const char* name) {
  return begins_with(name, "nvrtc") || begins_with(name, "nvJitLink") ||
         begins_with(name, "__nvJitLink");
}

// "__nvJitLinkAddData_13_0" is nvJitLinkAddData.
std::string_view without_version(std::string_view name) {
  if (!name.starts_with("__nvJitLink")) return name;
  name.remove_prefix(2);
  return name.substr(0, name.find('_'));
}

}  // namespace

// What dlsym(handle, name) gives in the place of a function that is played here; null: what it ever
// gives.
DEMARC_HIDDEN void* demarc_played(void* handle, const char* name) {
  find_real_dlsym();
  if (name == nullptr || handle == RTLD_NEXT || !may_be_played(name)) return nullptr;
  const std::string_view base = without_version(name);
  for (const Played& one : played) {
    if (base != one.original->name) continue;
    void* const real = demarc_real_dlsym(handle, name);
    if (real == nullptr || real == one.here) return real;
    one.original->place = real;
    if (one.original == &code_size || one.original == &code_text) {
      ptx_size.place = demarc_real_dlsym(handle, ptx_size.name);
      ptx_text.place = demarc_real_dlsym(handle, ptx_text.name);
    }
    return one.here;
  }
  return nullptr;
}

// dlsym() looks at the place that calls it, so all other calls go on to it as if they had not been
// here.
#if defined(__x86_64__)
__asm__(R"(
	.text
	.globl	dlsym
	.type	dlsym, @function
dlsym:
	endbr64
	push	%rdi
	push	%rsi
	sub	$8, %rsp
	call	demarc_played
	add	$8, %rsp
	pop	%rsi
	pop	%rdi
	test	%rax, %rax
	jne	1f
	mov	demarc_real_dlsym(%rip), %rax
	jmp	*%rax
1:	ret
	.size	dlsym, .-dlsym
)");
#endif
