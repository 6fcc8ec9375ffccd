// Loads code of a program in its rewritten form and watches what is launched of it.
#include "calls/module_calls.hpp"

#include <algorithm>
#include <utility>

#include "calls/own_calls.hpp"
#include "calls/own_stream.hpp"
#include "calls/relaxed_capture.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/base/text.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/kernels.hpp"

namespace demarc::cuda {
namespace {

using Place = WindowCopies::Place;

// Of a library that a program loads.
struct LibraryOptions {
  std::vector<int> names;
  std::vector<void*> values;
};

// The rewritten text goes after the call, whatever the program promises of its own code: the driver
// has to copy it.
LibraryOptions without_promise(const LoadLibrary& given) {
  constexpr int binary_is_preserved = 1;  // CU_LIBRARY_BINARY_IS_PRESERVED
  const int* names = given.library_options;
  void* const* values = given.library_values;
  const unsigned count = names == nullptr ? 0 : given.library_count;
  LibraryOptions kept;
  for (unsigned i = 0; i < count; ++i) {
    if (names[i] == binary_is_preserved) continue;
    kept.names.push_back(names[i]);
    kept.values.push_back(values == nullptr ? nullptr : values[i]);
  }
  return kept;
}

// Of the driver's compiler: the program's own, and with `calm` another level of optimisation.
class JitOptions {
 public:
  JitOptions(unsigned count, int* names, void** values, bool calm)
      : given_count_(count), given_names_(names), given_values_(values) {
    if (!calm) return;
    for (unsigned i = 0; i < count; ++i) {
      if (names[i] == optimization_level) continue;
      names_.push_back(names[i]);
      places_.push_back(i);
      values_.push_back(values[i]);
    }
    names_.push_back(optimization_level);
    values_.push_back(reinterpret_cast<void*>(calm_level));  // NOLINT: as the driver takes numbers
  }
  // The driver writes into them what it has to say: sizes of logs, times.
  ~JitOptions() {
    for (std::size_t i = 0; i < places_.size(); ++i) given_values_[places_[i]] = values_[i];
  }
  JitOptions(const JitOptions&) = delete;
  JitOptions& operator=(const JitOptions&) = delete;

  unsigned count() { return own() ? static_cast<unsigned>(names_.size()) : given_count_; }
  int* names() { return own() ? names_.data() : given_names_; }
  void** values() { return own() ? values_.data() : given_values_; }

 private:
  static constexpr int optimization_level = 7;  // CU_JIT_OPTIMIZATION_LEVEL
  static constexpr std::uintptr_t calm_level = 1;
  [[nodiscard]] bool own() const { return !names_.empty(); }

  unsigned given_count_;
  int* given_names_;
  void** given_values_;
  std::vector<int> names_;
  std::vector<void*> values_;
  std::vector<unsigned> places_;  // of these in the program's
};

// "a, b and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t told = 8;
  const std::size_t shown = std::min(names.size(), told);
  const std::string text = joined(std::span(names).first(shown), ", ");
  return names.size() == shown ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

}  // namespace

ModuleCalls::Kind ModuleCalls::module_kind(unsigned count, int* options, void** values) const {
  const DriverApi& api = means_.api;
  return {[&api, count, options, values](Handle* handle, const char* text, bool calm) {
            CuModule module = nullptr;
            JitOptions own(count, options, values, calm);
            const CuResult code =
                api.cuModuleLoadDataEx(&module, text, own.count(), own.names(), own.values());
            *handle = module;
            return code;
          },
          [&api](Handle handle) {
            return api.cuModuleUnload(static_cast<CuModule>(const_cast<void*>(handle)));
          },
          [&api](CuFunction* function, Handle handle, const char* name) {
            return api.cuModuleGetFunction(function,
                                           static_cast<CuModule>(const_cast<void*>(handle)), name);
          },
          [&api](DevicePointer* address, Handle handle, const char* name) {
            return api.cuModuleGetGlobal_v2(address, nullptr,
                                            static_cast<CuModule>(const_cast<void*>(handle)), name);
          },
          [&api](int* bytes, CuFunction function) {
            return api.cuFuncGetAttribute(bytes, function_local_bytes, function);
          }};
}

// The driver lets a kernel of a library stand for its function of the current context where it is
// launched.
ModuleCalls::Kind ModuleCalls::library_kind(const LoadLibrary& given) const {
  const DriverApi& api = means_.api;
  return {[&api, given](Handle* handle, const char* text, bool calm) {
            CuLibrary library = nullptr;
            LibraryOptions kept = without_promise(given);
            JitOptions own(given.count, given.options, given.values, calm);
            const CuResult code = api.cuLibraryLoadData(
                &library, text, own.names(), own.values(), own.count(), kept.names.data(),
                kept.values.data(), static_cast<unsigned>(kept.names.size()));
            *handle = library;
            return code;
          },
          [&api](Handle handle) {
            return api.cuLibraryUnload(static_cast<CuLibrary>(const_cast<void*>(handle)));
          },
          [&api](CuFunction* function, Handle handle, const char* name) {
            CuKernel kernel = nullptr;
            const CuResult code = api.cuLibraryGetKernel(
                &kernel, static_cast<CuLibrary>(const_cast<void*>(handle)), name);
            *function = reinterpret_cast<CuFunction>(kernel);
            return code;
          },
          [&api](DevicePointer* address, Handle handle, const char* name) {
            return api.cuLibraryGetGlobal(address, nullptr,
                                          static_cast<CuLibrary>(const_cast<void*>(handle)), name);
          },
          // Of its attributes the driver tells for a function alone.
          [&api](int* bytes, CuFunction kernel) {
            CuFunction function = nullptr;
            if (api.cuKernelGetFunction == nullptr) return cu_error_not_supported;
            const CuResult code =
                api.cuKernelGetFunction(&function, reinterpret_cast<CuKernel>(kernel));
            return code == cu_success
                       ? api.cuFuncGetAttribute(bytes, function_local_bytes, function)
                       : code;
          },
          true};
}

CallAnswer ModuleCalls::load_module(const DriverCall& call) {
  const auto [handle, image] = call.parameters<LoadCode>();
  return load_from(handle, image, module_kind(0, nullptr, nullptr));
}

CallAnswer ModuleCalls::load_module_ex(const DriverCall& call) {
  const auto [handle, image, count, options, values] = call.parameters<LoadModuleEx>();
  return load_from(handle, image, module_kind(count, options, values));
}

CallAnswer ModuleCalls::load_module_file(const DriverCall& call) {
  const auto [handle, path] = call.parameters<LoadFile>();
  return load_file(handle, path, module_kind(0, nullptr, nullptr));
}

CallAnswer ModuleCalls::load_library(const DriverCall& call) {
  const auto given = call.parameters<LoadLibrary>();
  return load_from(given.handle, given.image, library_kind(given));
}

CallAnswer ModuleCalls::load_library_file(const DriverCall& call) {
  const auto given = call.parameters<LoadLibrary>();
  return load_file(given.handle, static_cast<const char*>(given.image), library_kind(given));
}

CuResult ModuleCalls::load_from(Handle* handle, const void* image, const Kind& kind) {
  if (handle == nullptr || image == nullptr) return cu_error_invalid_value;
  const auto found = fatbin::image_at(image, "a module of the program");
  if (found) return load(handle, *found, kind);
  return refuse_code("a module of the program", found.error().message);
}

CuResult ModuleCalls::load_file(Handle* handle, const char* path, const Kind& kind) {
  if (handle == nullptr || path == nullptr) return cu_error_invalid_value;
  const auto file = fatbin::read_loadable(path);
  if (!file) return refuse_code(path, file.error().message);
  return load(handle, file->images.front().image, kind);
}

CuResult ModuleCalls::load(Handle* handle, const fatbin::Image& image, const Kind& kind) {
  auto read = ColoredImage::read(image, means_.target, "a module of the program", means_.overlap);
  if (!read) return refuse_image(image, read.error());
  const OwnCalls own;
  const RelaxedCapture relaxed(means_.api);
  const auto loaded = std::make_shared<Loaded>(std::move(*read));
  Handle made = nullptr;
  CuResult code = load_contained(&made, *loaded, kind);
  if (code != cu_success) return code;
  note_refused(loaded->image);
  note_spilling(loaded->image);
  code = place(made, *loaded, kind);
  if (code != cu_success) {
    kind.unload(made);
    means_.memory.release(loaded->variables);
    return code;
  }
  loaded->library = kind.library;
  means_.api.cuCtxGetCurrent(&loaded->context);
  const std::unique_lock lock(mutex_);
  // The handles may have been those of a context that has gone.
  loaded_.insert_or_assign(made, loaded);
  for (const auto& [name, function] : loaded->kernels)
    functions_.insert_or_assign(function, known(loaded, name));
  *handle = made;
  return cu_success;
}

CuResult ModuleCalls::refuse_code(const std::string& name, const std::string& why) const {
  means_.tell(why);
  means_.record.counter(Recorded::refused_code, name, why).fetch_add(1);
  return cu_error_no_binary;
}

// By the names of its kernels where machine code is all that there is.
CuResult ModuleCalls::refuse_image(const fatbin::Image& image, const Error& error) const {
  const auto kernels = fatbin::machine_code_kernels(image, "a module of the program");
  if (error.kind != ErrorKind::missing_capability || !kernels || kernels->empty()) {
    return refuse_code("a module of the program", error.message);
  }
  for (const std::string& kernel : *kernels) {
    means_.record.counter(Recorded::refused_kernel, kernel, error.message).fetch_add(1);
  }
  means_.counters.left_out.fetch_add(kernels->size());
  means_.tell(fmt::format("{}; kernels: {}", error.message, some_of(*kernels)));
  return cu_error_no_binary;
}

void ModuleCalls::note_refused(const ColoredImage& image) const {
  for (const auto& [name, why] : image.refused()) {
    means_.tell(why);
    means_.record.counter(Recorded::refused_kernel, name, why).fetch_add(1);
  }
  means_.counters.left_out.fetch_add(image.refused().size());
}

void ModuleCalls::note_spilling(const ColoredImage& image) const {
  for (const auto& [name, bytes] : image.spilling()) {
    const auto why = fmt::format("{} bytes per thread", bytes);
    means_.tell(fmt::format(
        "{}: kernel '{}': ptxas keeps {} in local memory, which has no colour (--allow-spills)",
        image.name(), name, why));
    means_.record.counter(Recorded::spilling_kernel, name, why).fetch_add(1);
  }
}

CuResult ModuleCalls::find_spilling(const Loaded& loaded, const Kind& kind, Spilling& found) {
  for (const auto& [name, function] : loaded.kernels) {
    int bytes = 0;
    const CuResult code = kind.local_bytes(&bytes, function);
    if (code != cu_success) return code;
    if (bytes != 0) found.emplace(name, static_cast<std::uint32_t>(bytes));
  }
  return cu_success;
}

// Kernels that spill get more registers first, then the whole module less optimisation, if that
// helps one of them; what still spills is left out.
CuResult ModuleCalls::load_contained(Handle* handle, Loaded& loaded, const Kind& kind) {
  const std::uint32_t allowed = means_.allowed_spills;
  bool calm = false;
  std::optional<Spilling> before;  // with all optimisation
  for (;;) {
    const auto text = loaded.image.text(means_.code);
    if (!text) return refuse_code(loaded.image.name(), text.error().message);
    CuResult code = kind.load(handle, text->c_str(), calm);
    if (code != cu_success) return code;
    Spilling spilling;
    code = find_kernels(*handle, loaded, kind);
    if (code == cu_success) code = find_spilling(loaded, kind, spilling);
    bool again = false;
    for (const auto& [name, bytes] : spilling) {
      if (loaded.image.give_registers(name)) again = true;
    }
    const bool too_much = std::any_of(spilling.begin(), spilling.end(),
                                      [&](const auto& kernel) { return kernel.second > allowed; });
    if (!again && too_much && !before) {
      again = calm = true;
      before = spilling;
    } else if (!again) {
      if (calm && before->size() == spilling.size()) calm = false;
      for (const auto& [name, bytes] : spilling) {
        if (loaded.image.spills(name, bytes, allowed)) again = true;
      }
    }
    if (code == cu_success && !again) {
      if (calm) note_calm(loaded, *before);
      return cu_success;
    }
    kind.unload(*handle);
    if (code != cu_success) return code;
  }
}

void ModuleCalls::note_calm(const Loaded& loaded, const Spilling& before) const {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : before) names.push_back(name);
  means_.tell(
      fmt::format("{}: compiled with less optimisation, because some kernels would keep values in "
                  "local memory, which has no colour: {}",
                  loaded.image.name(), some_of(names)));
}

CuResult ModuleCalls::find_kernels(Handle handle, Loaded& loaded, const Kind& kind) const {
  loaded.kernels.clear();
  for (const std::string& name : loaded.image.kernels()) {
    CuFunction function = nullptr;
    const CuResult code = kind.function(&function, handle, name.c_str());
    if (code != cu_success) return code;
    loaded.kernels.emplace(name, function);
    loaded.facts[name].parameters = loaded.image.parameters(name);
  }
  return cu_success;
}

// Variables get their first contents, the module learns where all lies.
CuResult ModuleCalls::place(Handle handle, Loaded& loaded, const Kind& kind) {
  const ptx::ColoredBlock& block = loaded.image.needs().variables;
  if (block.bytes != 0) {
    const auto made = means_.memory.allocate(block.bytes + block.alignment);
    if (!made) {
      means_.tell(made.error().message);
      return cu_error_out_of_memory;
    }
    loaded.variables = *made;
    loaded.places.variables = round_up(*made, block.alignment);
    auto content = block.content(loaded.places.variables);
    content.resize(block.bytes);  // what is named without a value is zero
    const Place to{Place::Kind::window, loaded.places.variables, block.bytes};
    const Place from{Place::Kind::host, reinterpret_cast<DevicePointer>(content.data()),
                     block.bytes};
    const OwnStream stream(means_.api);
    CuResult code = stream.error();
    if (code == cu_success) {
      code = means_.copies.copy(to, from, {block.bytes, 1}, stream.get());
    }
    if (code == cu_success) code = means_.api.cuStreamSynchronize(stream.get());
    if (code != cu_success) return code;
  }
  if (loaded.kernels.empty()) return cu_success;
  const CuResult code = kind.variable(&loaded.constants, handle, ptx::colored_constants_name);
  return code == cu_success ? write_constants(loaded) : code;
}

CuResult ModuleCalls::write_constants(const Loaded& loaded) const {
  const auto constants = means_.code.constants(loaded.places);
  const OwnStream stream(means_.api);
  if (stream.error() != cu_success) return stream.error();
  const CuResult code = means_.api.cuMemcpyHtoDAsync_v2(loaded.constants, constants.data(),
                                                        constants.size(), stream.get());
  return code == cu_success ? means_.api.cuStreamSynchronize(stream.get()) : code;
}

// What has nodes in graphs finds the new block as well: kernels read where it lies when they run.
CuResult ModuleCalls::make_room(Loaded& loaded, std::uint64_t threads,
                                const LocalUsers::Work& wait) {
  if (threads <= loaded.places.local_threads) return cu_success;
  const ptx::ColoredNeeds& needs = loaded.image.needs();
  if (const CuResult code = wait(); code != cu_success) return code;
  means_.memory.release(std::exchange(loaded.local, 0));
  loaded.places.local_threads = 0;
  const auto made = means_.memory.allocate(needs.local_bytes * threads + needs.local_alignment);
  if (!made) {
    means_.tell(fmt::format("{}: local variables of {} threads, {} bytes each: {}",
                            loaded.image.name(), threads, needs.local_bytes, made.error().message));
    return cu_error_out_of_memory;
  }
  loaded.local = *made;
  loaded.places.local = round_up(*made, needs.local_alignment);
  loaded.places.local_threads = threads;
  return write_constants(loaded);
}

// A graph that has a kernel of it may be launched again: what the driver put in the place of the
// code, or of the constants by which it finds its colours, would be run and read.
CallAnswer ModuleCalls::unload(const DriverCall& call) {
  return forget(call.parameters<UnloadCode>().handle) ? std::nullopt : CallAnswer(cu_success);
}

// False: it stays.
bool ModuleCalls::forget(Handle handle) {
  std::shared_ptr<Loaded> gone;
  {
    const std::unique_lock lock(mutex_);
    const auto found = loaded_.find(handle);
    if (found == loaded_.end()) return true;
    gone = found->second;
    if (gone->in_graphs.load()) return false;
    loaded_.erase(found);
    std::erase_if(functions_, [&](const auto& one) { return one.second.module == gone; });
  }
  // Without the lock: what is waited for may itself wait for a launch of another thread. Memory
  // that may still be used stays taken.
  const OwnCalls own;
  const RelaxedCapture relaxed(means_.api);
  if (means_.api.cuCtxSynchronize() == cu_success) {
    for (const DevicePointer address : {gone->variables, gone->local}) {
      means_.memory.release(address);
    }
  }
  means_.locals.forget(gone->users);
  return true;
}

CallAnswer ModuleCalls::variable(const DriverCall& call) {
  const auto given = call.parameters<GetVariable>();
  const char* name = given.name;
  if (name == nullptr) return std::nullopt;
  // By what it says every kernel of the module finds its colours.
  if (name == std::string_view(ptx::colored_constants_name)) return cu_error_not_found;
  const std::shared_lock lock(mutex_);
  const auto found = loaded_.find(given.handle);
  if (found == loaded_.end()) return std::nullopt;
  const auto& variables = found->second->image.needs().variables.variables;
  const auto placed = std::find_if(variables.begin(), variables.end(),
                                   [&](const auto& one) { return one.name == name; });
  if (placed == variables.end()) return std::nullopt;
  if (given.address != nullptr) *given.address = found->second->places.variables + placed->offset;
  if (given.bytes != nullptr) *given.bytes = placed->bytes;
  return cu_success;
}

}  // namespace demarc::cuda
