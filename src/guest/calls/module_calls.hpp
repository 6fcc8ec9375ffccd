// Modules of a coloured program: what it loads is rewritten first, so that every kernel that it can
// launch keeps to the window. Code that has no PTX, and kernels that cannot be rewritten, are not
// loaded; their names are told.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "calls/call_answer.hpp"
#include "calls/code_kind.hpp"
#include "calls/code_notes.hpp"
#include "calls/colored_image.hpp"
#include "calls/kernel_arguments.hpp"
#include "calls/local_users.hpp"
#include "calls/memory_calls.hpp"
#include "calls/window_code.hpp"
#include "calls/window_copies.hpp"
#include "demarc/driver/launch_counters.hpp"
#include "demarc/fatbin/image.hpp"
#include "demarc/guest/colored_code.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

class ModuleCalls {
 public:
  // All that is referred to outlives the object.
  struct Means {
    const DriverApi& api;
    const ColoredCode& code;
    MemoryCalls& memory;
    const WindowCopies& copies;
    LocalUsers& locals;
    WindowCode& windows;
    std::uint32_t target = 0;  // 90 for compute capability 9.0
    ColoredCounters& counters;
    ProgramRecord& record;
    // A line for the user about what was refused.
    std::function<void(const std::string& line)> tell;
    KernelChanges changes = {};
    std::uint32_t allowed_spills = 0;  // bytes per thread
    // Whether the program has pinned host memory; null: never.
    const std::atomic<bool>* host_memory = nullptr;
  };
  explicit ModuleCalls(Means means)
      : means_(std::move(means)), notes_(means_.counters, means_.record, means_.tell) {}
  ModuleCalls(const ModuleCalls&) = delete;
  ModuleCalls& operator=(const ModuleCalls&) = delete;

  static std::span<const CallRow<ModuleCalls>> rows();

  // For a kernel that is to be a node of a graph; by its second handle where the first is null.
  CallAnswer judge_node(CuFunction function, CuKernel kernel, const KernelArguments& arguments);

 private:
  // For a kernel.
  struct Facts {
    std::vector<KernelParameter> parameters;
    std::atomic<std::atomic<std::uint64_t>*> launches{nullptr};  // null before the first one
  };
  struct Loaded {
    explicit Loaded(ColoredImage code) : image(std::move(code)) {}
    ColoredImage image;
    bool library = false;         // its kernels stand for functions of several contexts,
    CuContext context = nullptr;  // of which this one knows the places
    std::map<std::string, CuFunction> kernels;  // those that were accepted
    std::map<std::string, Facts> facts;         // of these
    ptx::ColoredPlaces places;
    DevicePointer variables = 0;  // allocations; 0: none
    DevicePointer local = 0;
    DevicePointer constants = 0;         // where the driver put `demarc_colors`
    LocalUsers::ModuleOrder users;       // `local` is theirs
    std::atomic<bool> in_graphs{false};  // a graph may have kernels of it
  };
  // A function that can be launched.
  struct Known {
    std::shared_ptr<Loaded> module;  // null: it was not loaded here
    const std::string* name = nullptr;
    Facts* facts = nullptr;
    explicit operator bool() const { return module != nullptr; }
  };
  // What a kernel is launched with.
  struct Launch {
    CuFunction function = nullptr;
    CuLaunchConfig config;  // in the stream that is meant
    KernelArguments arguments;
    bool cooperative = false;
  };

  CallAnswer load_module(const DriverCall& call);
  CallAnswer load_module_ex(const DriverCall& call);
  CallAnswer load_module_file(const DriverCall& call);
  CallAnswer load_library(const DriverCall& call);
  CallAnswer load_library_file(const DriverCall& call);
  CallAnswer unload(const DriverCall& call);
  CallAnswer variable(const DriverCall& call);
  template <class Parameters>
  CallAnswer launch(const DriverCall& call);
  CallAnswer launch_ex(const DriverCall& call);
  template <class Parameters>
  CallAnswer node(const DriverCall& call);

  // Nothing: the driver loads the code as it is.
  CallAnswer load_from(CodeHandle* handle, const void* image, const CodeKind& kind);
  CallAnswer load_file(CodeHandle* handle, const char* path, const CodeKind& kind);
  CallAnswer load(CodeHandle* handle, const fatbin::Image& image, const CodeKind& kind);
  [[nodiscard]] bool has_machine_code(const fatbin::Image& image) const;
  // Until the driver keeps nothing of a kernel in local memory of its own.
  CuResult load_contained(CodeHandle* handle, Loaded& loaded, const CodeKind& kind);
  [[nodiscard]] static CuResult find_spilling(const Loaded& loaded, const CodeKind& kind,
                                              Spilling& found);
  [[nodiscard]] CuResult find_kernels(CodeHandle handle, Loaded& loaded,
                                      const CodeKind& kind) const;
  [[nodiscard]] CuResult place(CodeHandle handle, Loaded& loaded, const CodeKind& kind);
  [[nodiscard]] CuResult write_constants(const Loaded& loaded) const;
  // `wait` waits until no kernel uses the room that there is.
  [[nodiscard]] CuResult make_room(Loaded& loaded, std::uint64_t threads,
                                   const LocalUsers::Work& wait);
  void note_capture(Loaded& loaded, CuStream stream) const;
  bool forget(CodeHandle handle);
  [[nodiscard]] Known find(CuFunction function);
  [[nodiscard]] CallAnswer refused_arguments(const Known& kernel,
                                             const KernelArguments& arguments) const;
  [[nodiscard]] CallAnswer refused_context(const Loaded& loaded) const;
  [[nodiscard]] static Known known(const std::shared_ptr<Loaded>& module,
                                   const std::string& kernel);
  void count_launch(const Known& kernel) const;
  CallAnswer judge(const Launch& launch);
  [[nodiscard]] CuResult launch_apart(const Launch& launch) const;
  [[nodiscard]] CuResult launch_with_attributes(const Launch& launch, bool overlap) const;
  [[nodiscard]] bool may_overlap(const Launch& launch) const;

  Means means_;
  CodeNotes notes_;
  std::shared_mutex mutex_;  // of the tables
  std::unordered_map<CodeHandle, std::shared_ptr<Loaded>> loaded_;
  std::unordered_map<CuFunction, Known> functions_;
};

}  // namespace demarc::cuda
