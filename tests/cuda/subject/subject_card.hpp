// What the program of subject.cpp does on the card, by functions of the driver that it looks up.
#pragma once

#include <dlfcn.h>

#include <string>

namespace subject {

inline std::string driver_path;  // NOLINTBEGIN: of this small program alone
inline std::string log_path;
inline void* context = nullptr;  // NOLINTEND: of the card

// Adds a line to the log.
void note(const std::string& line);

// -1: the driver has no such function.
template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  void* driver = ::dlopen(driver_path.c_str(), RTLD_NOW);
  const auto function =
      driver == nullptr ? nullptr : reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name));
  return function == nullptr ? -1 : function(arguments...);
}

void make_context();
void take_host_memory();
// For a module with a __managed__ variable.
void load_managed();
// For a module whose kernels launch kernels.
void load_launching();
// For the driver: a launch with thread-block clusters.
void launch_cluster(unsigned blocks);
void* launch();  // the kernel
void launch(void* function);
// For so many blocks that must run at once: by the function of that name, and with an attribute.
void launch_cooperatively(unsigned blocks);
void launch_with_cooperation(unsigned blocks);
// By no function of the driver that a callback tells of.
void launch_untold();
// As a program does that wants out: the driver's callbacks of launches are switched off, by a table
// that it got before there was a hook.
void take_callback_table();
void switch_hook_off();
// Another driver of this process, at a path, or the same file in another namespace of the linker's:
// it makes a context.
void start_second_driver(const std::string& path);
void start_driver_in_namespace();
// 16384 numbers go to the card, each gets 5 more there, and they come back.
std::string counted(const char* image = nullptr);
// A launch that adds 5 to each of so many numbers.
int count_on(unsigned long long memory, std::size_t count);
// The same with what a compiler in the program, NVRTC in this library, gives as machine code.
std::string counted_as_compiled_by(const std::string& path);
// A launch of that kernel after the program has set what it adds.
int counted_by(unsigned added);
// The same of a module for a card that this one is not, and of a kernel that no call has shown.
int counted_for_a_newer_card();
int counted_spilling();
int counted_unseen();
// The same with all arguments in a buffer of so many bytes, without arguments, with so much shared
// memory, on words that are not there, on memory that cannot be read, while a stream captures, and
// as a cooperative launch.
int counted_from_buffer(std::size_t bytes);
int counted_without_arguments();
int counted_with_shared(unsigned bytes);
int counted_nowhere();
int counted_in_unreadable_memory();
int counted_beside_a_capture();
int counted_cooperatively();
// For a module that is loaded with options, of one that is loaded as a fat binary, of a module and
// of a library that the driver reads from this file, and of a library whose program has set what
// the kernel adds: of its kernel, of the function that the driver gives for it, or of that function
// of the library's module.
int counted_after_options();
int counted_of_fat_binary();
int counted_from_file(const std::string& path);
int counted_from_library_file(const std::string& path);
enum class LaunchedAs { kernel, function, function_of_module };
int counted_by_library(unsigned added, LaunchedAs as);
// A launch of a kernel that the stand-in knows by its name and that its module's PTX does not have.
int launched_what_ptx_lacks();
// A launch of a kernel that reads a texture.
int fetched();
// A kernel that finds its memory through a structure and through so many bytes of other memory.
std::string followed(std::size_t bytes = 8);
// A launch of that kernel on pinned host memory.
int counted_in_host_memory();
// A product of halves by cuBLAS's functions, where some library has them: "right", or what is
// wrong.
std::string multiplied();
// Whether a kernel is found of which the stand-in keeps 8 bytes per thread in local memory.
int find_spilling();
// A graph of a kernel with local variables, twice.
std::string replayed();
// That kernel, launched.
int kept();
// What libdemarc_preload.so says of this program, in one line.
std::string tenant_report();
// 16384 numbers whose handle goes to this file, or which another process has put there; that kernel
// on them; and what they are if so much was added to them.
int share(const std::string& path);
int borrow(const std::string& path);
int count_on_shared();
std::string read_shared(unsigned added);
// cuIpcCloseMemHandle, and cuMemFree.
int give_shared_back();
int free_shared();
// Where all colours lie: the window's address, which is known, times the number of the two colours.
void look_into_the_arena();
// As a profiler does: the driver's callbacks have one subscriber a process.
void subscribe_first();

// What the launches above are made of: code that is loaded, a kernel of it, memory for 64 words of
// the card, and a launch of 64 threads, on such words.
void* loaded_module(const char* text);
void* kernel_of(void* module, const char* name);
unsigned long long memory_for_words();
int launch_with(void* function, void** arguments, void** extra = nullptr, unsigned shared = 0);
int launch_on_words(void* function);

}  // namespace subject
