// libdemarc_compilers.so: the compilers inside programs, NVRTC and nvJitLink, give PTX when a
// program asks them for machine code, so that their code can be coloured when it is loaded. `demarc
// exec --tenant` puts it in front of a program (LD_PRELOAD). What it cannot change stays as it is,
// and is refused by name when it is loaded. So nothing depends on this library.
//
// NVRTC keeps the PTX of what it compiled to machine code. nvJitLink keeps no PTX. But a link of
// one input is that input, which the driver links anyway. A link of inputs for link-time
// optimisation gets a twin that links the same inputs to PTX. Programs reach both compilers as
// symbols, which this library provides first, or by dlsym(), which it answers. So it also leads
// programs that find cuBLAS by dlsym() to libdemarc_blas.so.
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// The functions that are played here, and two more that they need.
enum Function : unsigned {
  code_size,
  code_text,
  create_link,
  add_data,
  add_file,
  complete_link,
  linked_size,
  linked_code,
  destroy_link,
  played_functions,
  ptx_size = played_functions,
  ptx_text,
  linked_ptx_size,
  linked_ptx,
  functions
};
constexpr const char* names[functions] = {"nvrtcGetCUBINSize",
                                          "nvrtcGetCUBIN",
                                          "nvJitLinkCreate",
                                          "nvJitLinkAddData",
                                          "nvJitLinkAddFile",
                                          "nvJitLinkComplete",
                                          "nvJitLinkGetLinkedCubinSize",
                                          "nvJitLinkGetLinkedCubin",
                                          "nvJitLinkDestroy",
                                          "nvrtcGetPTXSize",
                                          "nvrtcGetPTX",
                                          "nvJitLinkGetLinkedPtxSize",
                                          "nvJitLinkGetLinkedPtx"};
// Which others a function needs that is played in its place.
struct Need {
  Function played;
  Function other;
};
constexpr Need needs[] = {{code_size, ptx_size},       {code_size, ptx_text},
                          {code_text, ptx_size},       {code_text, ptx_text},
                          {create_link, destroy_link}, {complete_link, linked_ptx_size},
                          {complete_link, linked_ptx}};

// A process may have several compilers, of several versions: each has functions of its own here.
// The first stands for those that the program is linked with.
struct Library {
  const void* base = nullptr;
  void* real[functions] = {};
};
constexpr unsigned max_libraries = 8;
Library libraries[max_libraries];
std::mutex libraries_mutex;

void* find(void* handle, Function function) {
  void* found = demarc_real_dlsym(handle, names[function]);
  for (const char* version : linker_versions) {
    if (found != nullptr) break;
    found = demarc_real_dlsym(handle, (std::string("__") + names[function] + version).c_str());
  }
  return found;
}

// A function of the library that is played.
template <unsigned Slot, class Type>
Type* real(Function function) {
  void*& place = libraries[Slot].real[function];
  if (place == nullptr && Slot == 0) {
    find_real_dlsym();
    place = find(RTLD_NEXT, function);
  }
  return reinterpret_cast<Type*>(place);
}

// NVRTC.
using Program = void*;
using SizeOf = Code(Program program, std::size_t* bytes);
using TextOf = Code(Program program, char* text);

// Where there is no PTX (link-time optimisation), the machine code that was asked for.
template <unsigned Slot>
bool has_ptx(Program program) {
  std::size_t bytes = 0;
  auto* const size = real<Slot, SizeOf>(ptx_size);
  return size != nullptr && real<Slot, TextOf>(ptx_text) != nullptr && size(program, &bytes) == 0 &&
         bytes > 1;
}

// nvJitLink: what went into a link, as long as it is one text of PTX or one fat binary, or what its
// twin made.
using Linker = void*;
struct Link {
  std::string only;
  unsigned inputs = 0;
  Linker twin = nullptr;
};
enum InputType : int { ptx_input = 2, link_time_input = 3, fat_binary_input = 4 };
using Create = Code(Linker* link, std::uint32_t count, const char** options);
using Complete = Code(Linker link);
using AddData = Code(Linker link, int type, const void* data, std::size_t bytes, const char* name);
using AddFile = Code(Linker link, int type, const char* path);
using CodeSize = Code(Linker link, std::size_t* bytes);
using CodeText = Code(Linker link, void* code);
using Destroy = Code(Linker* link);

class Links {
 public:
  void add(Linker link, int type, const void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Link& known = links_[link];
    ++known.inputs;
    if (known.inputs != 1 || data == nullptr || (type != ptx_input && type != fat_binary_input)) {
      known.only.clear();
      return;
    }
    known.only.assign(static_cast<const char*>(data), bytes);
    if (type == ptx_input && !known.only.ends_with('\0')) known.only.push_back('\0');
  }
  void set_twin(Linker link, Linker twin) {
    const std::lock_guard lock(mutex_);
    links_[link].twin = twin;
  }
  Linker twin(Linker link) {
    const std::lock_guard lock(mutex_);
    const auto known = links_.find(link);
    return known == links_.end() ? nullptr : known->second.twin;
  }
  // The link has none any more: whose it is now ends it.
  Linker take_twin(Linker link) {
    const std::lock_guard lock(mutex_);
    const auto known = links_.find(link);
    return known == links_.end() ? nullptr : std::exchange(known->second.twin, nullptr);
  }
  void set_text(Linker link, std::string text) {
    const std::lock_guard lock(mutex_);
    links_[link].only = std::move(text);
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
    static auto* const links = new Links();  // as long as the process
    return *links;
  }

 private:
  std::mutex mutex_;
  std::map<Linker, Link> links_;
};

template <unsigned Slot>
struct Played {
  static Code size_of_code(Program program, std::size_t* bytes) {
    auto* const size = real<Slot, SizeOf>(has_ptx<Slot>(program) ? ptx_size : code_size);
    return size == nullptr ? no_handle : size(program, bytes);
  }
  static Code text_of_code(Program program, char* code) {
    auto* const text = real<Slot, TextOf>(has_ptx<Slot>(program) ? ptx_text : code_text);
    return text == nullptr ? no_handle : text(program, code);
  }
  static void end(Linker twin) {
    auto* const destroy = real<Slot, Destroy>(destroy_link);
    if (twin != nullptr && destroy != nullptr) destroy(&twin);
  }
  static Code create(Linker* link, std::uint32_t count, const char** options) {
    auto* const create = real<Slot, Create>(create_link);
    if (create == nullptr) return no_handle;
    const Code code = create(link, count, options);
    if (code != 0 || link == nullptr || options == nullptr) return code;
    Links::get().forget(*link);
    std::vector<const char*> with_ptx(options, options + count);
    const auto has = [&](std::string_view option) {
      return std::find(with_ptx.begin(), with_ptx.end(), option) != with_ptx.end();
    };
    if (!has("-lto") || has("-ptx")) return code;
    with_ptx.push_back("-ptx");
    Linker twin = nullptr;
    if (create(&twin, count + 1, with_ptx.data()) == 0) Links::get().set_twin(*link, twin);
    return code;
  }
  static Code add(Linker link, int type, const void* data, std::size_t bytes, const char* name) {
    auto* const add = real<Slot, AddData>(add_data);
    if (add == nullptr) return no_handle;
    Links::get().add(link, type, data, bytes);
    // Other inputs would be missing in the twin's PTX.
    Linker twin = Links::get().twin(link);
    if (twin != nullptr && (type != link_time_input || add(twin, type, data, bytes, name) != 0)) {
      end(Links::get().take_twin(link));
    }
    return add(link, type, data, bytes, name);
  }
  static Code add_of(Linker link, int type, const char* path) {
    auto* const add = real<Slot, AddFile>(add_file);
    if (add == nullptr) return no_handle;
    Links::get().add(link, type, nullptr, 0);
    end(Links::get().take_twin(link));
    return add(link, type, path);
  }
  static Code complete(Linker link) {
    auto* const complete = real<Slot, Complete>(complete_link);
    if (complete == nullptr) return no_handle;
    const Code code = complete(link);
    const Linker twin = Links::get().take_twin(link);
    if (twin == nullptr) return code;
    auto* const size = real<Slot, CodeSize>(linked_ptx_size);
    auto* const text = real<Slot, CodeText>(linked_ptx);
    std::size_t bytes = 0;
    if (code == 0 && size != nullptr && text != nullptr && complete(twin) == 0 &&
        size(twin, &bytes) == 0 && bytes > 1) {
      std::string made(bytes, '\0');
      if (text(twin, made.data()) == 0) {
        if (!made.ends_with('\0')) made.push_back('\0');
        Links::get().set_text(link, std::move(made));
      }
    }
    end(twin);
    return code;
  }
  static Code size_of_link(Linker link, std::size_t* bytes) {
    const std::string only = Links::get().find(link);
    if (!only.empty() && bytes != nullptr) {
      *bytes = only.size();
      return 0;
    }
    auto* const size = real<Slot, CodeSize>(linked_size);
    return size == nullptr ? no_handle : size(link, bytes);
  }
  static Code text_of_link(Linker link, void* code) {
    const std::string only = Links::get().find(link);
    if (!only.empty() && code != nullptr) {
      std::memcpy(code, only.data(), only.size());
      return 0;
    }
    auto* const text = real<Slot, CodeText>(linked_code);
    return text == nullptr ? no_handle : text(link, code);
  }
  static Code destroy(Linker* link) {
    if (link != nullptr) {
      end(Links::get().take_twin(*link));
      Links::get().forget(*link);
    }
    auto* const destroy = real<Slot, Destroy>(destroy_link);
    return destroy == nullptr ? no_handle : destroy(link);
  }
  static void* function(unsigned number) {
    void* const all[played_functions] = {
        reinterpret_cast<void*>(&size_of_code), reinterpret_cast<void*>(&text_of_code),
        reinterpret_cast<void*>(&create),       reinterpret_cast<void*>(&add),
        reinterpret_cast<void*>(&add_of),       reinterpret_cast<void*>(&complete),
        reinterpret_cast<void*>(&size_of_link), reinterpret_cast<void*>(&text_of_link),
        reinterpret_cast<void*>(&destroy)};
    return all[number];
  }
};
using FunctionOf = void*(unsigned number);
constexpr FunctionOf* function_of[max_libraries] = {
    &Played<0>::function, &Played<1>::function, &Played<2>::function, &Played<3>::function,
    &Played<4>::function, &Played<5>::function, &Played<6>::function, &Played<7>::function};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are NVIDIA's
DEMARC_SHOWN Code nvrtcGetCUBINSize(Program program, std::size_t* bytes) {
  return Played<0>::size_of_code(program, bytes);
}
DEMARC_SHOWN Code nvrtcGetCUBIN(Program program, char* code) {
  return Played<0>::text_of_code(program, code);
}
DEMARC_SHOWN Code nvJitLinkCreate(Linker* link, std::uint32_t count, const char** options) {
  return Played<0>::create(link, count, options);
}
DEMARC_SHOWN Code nvJitLinkComplete(Linker link) {
  return Played<0>::complete(link);
}
DEMARC_SHOWN Code nvJitLinkAddData(Linker link, int type, const void* data, std::size_t bytes,
                                   const char* name) {
  return Played<0>::add(link, type, data, bytes, name);
}
DEMARC_SHOWN Code nvJitLinkAddFile(Linker link, int type, const char* path) {
  return Played<0>::add_of(link, type, path);
}
DEMARC_SHOWN Code nvJitLinkGetLinkedCubinSize(Linker link, std::size_t* bytes) {
  return Played<0>::size_of_link(link, bytes);
}
DEMARC_SHOWN Code nvJitLinkGetLinkedCubin(Linker link, void* code) {
  return Played<0>::text_of_link(link, code);
}
DEMARC_SHOWN Code nvJitLinkDestroy(Linker* link) {
  return Played<0>::destroy(link);
}

// As linker_versions has them.
#define DEMARC_LINKER_VERSION(name, version, ...) \
  DEMARC_SHOWN Code __##name##_##version(__VA_ARGS__) __attribute__((alias(#name))); /* NOLINT */
#define DEMARC_LINKER_VERSIONS(name, ...)        \
  DEMARC_LINKER_VERSION(name, 12_0, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 12_1, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 12_2, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 12_3, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 12_4, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 12_5, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 12_6, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 12_8, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 12_9, __VA_ARGS__) \
  DEMARC_LINKER_VERSION(name, 13_0, __VA_ARGS__)
DEMARC_LINKER_VERSIONS(nvJitLinkCreate, Linker*, std::uint32_t, const char**)
DEMARC_LINKER_VERSIONS(nvJitLinkComplete, Linker)
DEMARC_LINKER_VERSIONS(nvJitLinkAddData, Linker, int, const void*, std::size_t, const char*)
DEMARC_LINKER_VERSIONS(nvJitLinkAddFile, Linker, int, const char*)
DEMARC_LINKER_VERSIONS(nvJitLinkGetLinkedCubinSize, Linker, std::size_t*)
DEMARC_LINKER_VERSIONS(nvJitLinkGetLinkedCubin, Linker, void*)
DEMARC_LINKER_VERSIONS(nvJitLinkDestroy, Linker*)
// NOLINTEND(readability-identifier-naming)

namespace {

// Where a library's functions are kept; max_libraries: there is no room.
unsigned slot_of(const void* base) {
  for (unsigned slot = 1; slot < max_libraries; ++slot) {
    if (libraries[slot].base == nullptr) libraries[slot].base = base;
    if (libraries[slot].base == base) return slot;
  }
  return max_libraries;
}

// For the library that has the function `found`, by name, of dlsym(handle, name).
void* played_by(unsigned function, void* handle, void* found) {
  Dl_info of_this = {};
  Dl_info of_that = {};
  if (::dladdr(reinterpret_cast<void*>(&nvrtcGetCUBIN), &of_this) == 0 ||
      ::dladdr(found, &of_that) == 0 || of_this.dli_fbase == of_that.dli_fbase) {
    return found;
  }
  const std::lock_guard lock(libraries_mutex);
  const unsigned slot = slot_of(of_that.dli_fbase);
  if (slot == max_libraries) return found;
  libraries[slot].real[function] = found;
  for (const auto& [played, other] : needs) {
    if (played == function) libraries[slot].real[other] = find(handle, other);
  }
  return function_of[slot](function);
}

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

namespace {

// libdemarc_blas.so, where it is in front of the program, has these functions for those that open
// NVIDIA's library themselves.
void* blas_function(void* handle, const char* name) {
  using Find = void*(const char* name);
  auto* const find_function =
      reinterpret_cast<Find*>(demarc_real_dlsym(RTLD_DEFAULT, "demarc_blas_function"));
  if (find_function == nullptr || demarc_real_dlsym(handle, name) == nullptr) return nullptr;
  return find_function(name);
}

}  // namespace

// What dlsym(handle, name) gives in the place of a function that is played here; null: what it ever
// gives.
DEMARC_HIDDEN void* demarc_played(void* handle, const char* name) {
  find_real_dlsym();
  if (name == nullptr || handle == RTLD_NEXT) return nullptr;
  if (begins_with(name, "cublas")) {
    // All libraries are searched in their order, in which that one is first.
    return handle == RTLD_DEFAULT ? nullptr : blas_function(handle, name);
  }
  if (!may_be_played(name)) return nullptr;
  const std::string_view base = without_version(name);
  for (unsigned function = 0; function < played_functions; ++function) {
    if (base != names[function]) continue;
    void* const found = demarc_real_dlsym(handle, name);
    return found == nullptr ? nullptr : played_by(function, handle, found);
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
