// Loads code of a program in its rewritten form and watches what is launched of it.
#include "calls/module_calls.hpp"

#include <algorithm>
#include <utility>

#include "calls/own_calls.hpp"
#include "calls/own_stream.hpp"
#include "calls/relaxed_capture.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/kernels.hpp"

namespace demarc::cuda {
namespace {

using Side = WindowCopies::Side;

}  // namespace

CallAnswer ModuleCalls::load_module(const DriverCall& call) {
  const auto [handle, image] = call.parameters<LoadCode>();
  return load_from(handle, image, module_kind(means_.api, 0, nullptr, nullptr));
}

CallAnswer ModuleCalls::load_module_ex(const DriverCall& call) {
  const auto [handle, image, count, options, values] = call.parameters<LoadModuleEx>();
  return load_from(handle, image, module_kind(means_.api, count, options, values));
}

CallAnswer ModuleCalls::load_module_file(const DriverCall& call) {
  const auto [handle, path] = call.parameters<LoadFile>();
  return load_file(handle, path, module_kind(means_.api, 0, nullptr, nullptr));
}

CallAnswer ModuleCalls::load_library(const DriverCall& call) {
  const auto given = call.parameters<LoadLibrary>();
  return load_from(given.handle, given.image, library_kind(means_.api, given));
}

CallAnswer ModuleCalls::load_library_file(const DriverCall& call) {
  const auto given = call.parameters<LoadLibrary>();
  return load_file(given.handle, static_cast<const char*>(given.image),
                   library_kind(means_.api, given));
}

CallAnswer ModuleCalls::load_from(CodeHandle* handle, const void* image, const CodeKind& kind) {
  if (handle == nullptr || image == nullptr) return cu_error_invalid_value;
  const auto found = fatbin::image_at(image, "a module of the program");
  if (found) return load(handle, *found, kind);
  return notes_.refused("a module of the program", found.error().message);
}

CallAnswer ModuleCalls::load_file(CodeHandle* handle, const char* path, const CodeKind& kind) {
  if (handle == nullptr || path == nullptr) return cu_error_invalid_value;
  const auto file = fatbin::read_loadable(path);
  if (!file) return notes_.refused(path, file.error().message);
  return load(handle, file->images.front().image, kind);
}

bool ModuleCalls::has_machine_code(const fatbin::Image& image) const {
  const auto found = fatbin::has_machine_code(image, means_.target, "a module of the program");
  return found && *found;
}

CallAnswer ModuleCalls::load(CodeHandle* handle, const fatbin::Image& image, const CodeKind& kind) {
  if (means_.windows.always()) {
    const auto admitted = means_.windows.admit_code("--windows always");
    return admitted ? CallAnswer()
                    : notes_.refused("a module of the program", admitted.error().message);
  }
  // What is there need not be compiled, which takes a large library a minute.
  if (means_.windows.admitted() && has_machine_code(image) &&
      means_.windows.admit_code("the card runs its machine code, and the window is filled")) {
    return std::nullopt;
  }
  auto read = ColoredImage::read(image, means_.target, "a module of the program", means_.changes);
  if (!read) {
    const auto admitted = means_.windows.admit_code(read.error().message);
    if (admitted) return std::nullopt;
    return notes_.refused(image, Error{read.error().kind, admitted.error().message});
  }
  const OwnCalls own;
  const RelaxedStreamCapture relaxed(means_.api);
  const auto loaded = std::make_shared<Loaded>(std::move(*read));
  CodeHandle made = nullptr;
  CuResult code = load_contained(&made, *loaded, kind);
  if (code != cu_success) return code;
  // A module is loaded in one way, since its kernels may share variables.
  if (!loaded->image.refused().empty() &&
      means_.windows.admit_code(loaded->image.refused().begin()->second)) {
    kind.unload(made);
    return std::nullopt;
  }
  notes_.left_out(loaded->image);
  notes_.spilling(loaded->image);
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

CuResult ModuleCalls::find_spilling(const Loaded& loaded, const CodeKind& kind, Spilling& found) {
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
CuResult ModuleCalls::load_contained(CodeHandle* handle, Loaded& loaded, const CodeKind& kind) {
  const std::uint32_t allowed = means_.allowed_spills;
  bool calm = false;
  std::optional<Spilling> before;  // with all optimisation
  for (;;) {
    const auto text = loaded.image.text(means_.code);
    if (!text) return notes_.refused(loaded.image.name(), text.error().message);
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
      if (calm) notes_.calm(loaded.image, *before);
      return cu_success;
    }
    kind.unload(*handle);
    if (code != cu_success) return code;
  }
}

CuResult ModuleCalls::find_kernels(CodeHandle handle, Loaded& loaded, const CodeKind& kind) const {
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
CuResult ModuleCalls::place(CodeHandle handle, Loaded& loaded, const CodeKind& kind) {
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
    const Side to{Side::Kind::window, loaded.places.variables, block.bytes};
    const Side from{Side::Kind::host, reinterpret_cast<DevicePointer>(content.data()), block.bytes};
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
bool ModuleCalls::forget(CodeHandle handle) {
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
  const RelaxedStreamCapture relaxed(means_.api);
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
