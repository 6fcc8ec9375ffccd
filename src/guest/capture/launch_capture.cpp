// Takes launches out of a program as its calls of the driver pass.
#include "capture/launch_capture.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "calls/call_answer.hpp"
#include "calls/own_calls.hpp"
#include "calls/relaxed_capture.hpp"
#include "demarc/base/rounding.hpp"
#include "demarc/base/symbols.hpp"
#include "demarc/fatbin/best_ptx.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/image.hpp"
#include "demarc/ptx/initialiser.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::cuda {
namespace {

// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
// _RANGE_START_ADDR and _RANGE_SIZE.
constexpr int attribute_major = 75;
constexpr int attribute_minor = 76;
constexpr int attribute_memory_type = 2;
constexpr std::uint32_t type_of_host = 1;
constexpr int attribute_range_start = 11;
constexpr int attribute_range_size = 12;
// Addresses in memory are followed where it has at most so many bytes: one question a word.
constexpr std::uint64_t max_followed_bytes = 1 << 20;
// Where the driver puts memory of cards: above the first page, below 2^49.
constexpr std::uint64_t least_card_address = 1 << 16;
constexpr std::uint64_t max_card_address = std::uint64_t{1} << 49U;

// The launch that this thread is inside of.
thread_local std::optional<CapturedLaunch> under_way;

// A name that a folder can have: of the kernel without its arguments.
std::string folder_name(const std::string& kernel) {
  constexpr std::size_t most = 60;
  std::string name = demangled(kernel);
  name = name.substr(0, name.find('('));
  name = name.substr(name.rfind(' ') + 1);
  for (char& one : name) {
    if (std::isalnum(static_cast<unsigned char>(one)) == 0) one = '_';
  }
  return name.substr(0, most);
}

// As the parameters of a kernel lie in one buffer.
Result<std::vector<std::vector<std::byte>>> out_of_buffer(const ptx::Function& function,
                                                          const std::byte* buffer,
                                                          std::size_t bytes) {
  std::vector<std::vector<std::byte>> arguments;
  std::size_t at = 0;
  for (const ptx::Variable& parameter : function.parameters) {
    const std::size_t alignment = parameter.alignment();
    at = round_up(at, alignment);
    if (at + parameter.byte_size() > bytes) {
      return check_failed("its arguments have only {} bytes, fewer than its parameters", bytes);
    }
    arguments.emplace_back(buffer + at, buffer + at + parameter.byte_size());
    at += parameter.byte_size();
  }
  return arguments;
}

// Whether a variable still holds what the text gives it. Addresses in it are the loader's, so that
// it cannot tell.
bool is_as_written(const ptx::Module& module, const ptx::Variable& variable,
                   const std::vector<std::byte>& content) {
  const auto image = ptx::initial_image(module, variable);
  if (!image) return false;
  if (!image->relocations.empty()) return true;
  std::vector<std::byte> written(content.size());
  std::memcpy(written.data(), image->bytes.data(), std::min(image->bytes.size(), written.size()));
  return written == content;
}

}  // namespace

LaunchCapture::Look LaunchCapture::look_of(const DriverCall& call) {
  if (call.does(does::loads_image)) return &LaunchCapture::load;
  if (call.does(does::loads_file)) return &LaunchCapture::load_file;
  static constexpr Row rows[] = {
      {DriverFunction::cuModuleUnload, &LaunchCapture::unload},
      {DriverFunction::cuLibraryUnload, &LaunchCapture::unload},
      {DriverFunction::cuLibraryGetModule, &LaunchCapture::module_of_library},
      {DriverFunction::cuModuleGetFunction, &LaunchCapture::find_kernel},
      {DriverFunction::cuLibraryGetKernel, &LaunchCapture::find_kernel},
      {DriverFunction::cuKernelGetFunction, &LaunchCapture::function_of_kernel},
      {DriverFunction::cuLaunchKernel, &LaunchCapture::launch<LaunchKernel>},
      {DriverFunction::cuLaunchCooperativeKernel, &LaunchCapture::launch<LaunchCooperative>},
      {DriverFunction::cuLaunchKernelEx, &LaunchCapture::launch_ex},
  };
  const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                 [&](const Row& one) { return one.function == call.function(); });
  return row == std::end(rows) ? nullptr : row->look;
}

void LaunchCapture::watch(const DriverCall& call) {
  if (OwnCalls::active() || call.rule() == Rule::unknown) return;
  const auto look = look_of(call);
  if (look == nullptr) return;
  const OwnCalls own;
  if (auto opened = open(); !opened) {
    fail(opened.error().message);
    return;
  }
  (this->*look)(call);
}

Result<void> LaunchCapture::open() {
  const std::lock_guard lock(mutex_);
  if (driver_ != nullptr) return {};
  DEMARC_TRY(driver_, Driver::load());
  return {};
}

// A program that loads code has a context current, or the driver has refused the call.
void LaunchCapture::keep_code(Handle handle, bool library, Result<ptx::Module> read) {
  auto code = std::make_shared<Code>();
  code->library = library;
  if (read) {
    code->module = std::make_shared<const ptx::Module>(std::move(*read));
  } else {
    code->without = read.error().message;
  }
  const std::lock_guard lock(mutex_);
  codes_[handle] = std::move(code);
}

Result<ptx::Module> LaunchCapture::read_code(const fatbin::Image& image,
                                             const std::string& name) const {
  const DriverApi& api = driver_->api();
  CuDevice device = 0;
  int major = 0;
  int minor = 0;
  DEMARC_CHECK(driver_->check(api.cuCtxGetDevice(&device), "which card is it?"));
  DEMARC_CHECK(driver_->check(api.cuDeviceGetAttribute(&major, attribute_major, device),
                              "which card is it?"));
  DEMARC_CHECK(driver_->check(api.cuDeviceGetAttribute(&minor, attribute_minor, device),
                              "which card is it?"));
  DEMARC_TRY(fatbin::PtxCode code,
             fatbin::best_ptx(image, static_cast<std::uint32_t>(major * 10 + minor), name));
  return ptx::parse_whole(std::move(code.text), name);
}

// The parameters of all functions that load code begin alike.
void LaunchCapture::load(const DriverCall& call) {
  if (!call.leaving() || call.result() != cu_success) return;
  const auto given = call.parameters<LoadCode>();
  const auto read = [&]() -> Result<ptx::Module> {
    const std::string name = "its code";
    DEMARC_TRY(const fatbin::Image image, fatbin::image_at(given.image, name));
    return read_code(image, name);
  };
  keep_code(*given.handle, call.function() == DriverFunction::cuLibraryLoadData, read());
}

void LaunchCapture::load_file(const DriverCall& call) {
  if (!call.leaving() || call.result() != cu_success) return;
  const auto given = call.parameters<LoadFile>();
  const auto read = [&]() -> Result<ptx::Module> {
    const std::string path = given.path;
    DEMARC_TRY(const fatbin::FileImages file, fatbin::read_loadable(path));
    return read_code(file.images.front().image, path);
  };
  keep_code(*given.handle, call.function() == DriverFunction::cuLibraryLoadFromFile, read());
}

void LaunchCapture::unload(const DriverCall& call) {
  if (call.leaving()) return;
  const Handle handle = call.parameters<UnloadCode>().handle;
  const std::lock_guard lock(mutex_);
  codes_.erase(handle);
  std::erase_if(kernels_, [&](const auto& one) { return one.second.handle == handle; });
}

void LaunchCapture::module_of_library(const DriverCall& call) {
  if (!call.leaving() || call.result() != cu_success) return;
  const auto given = call.parameters<GetModule>();
  const std::lock_guard lock(mutex_);
  const auto found = codes_.find(given.library);
  if (found == codes_.end()) return;
  // Variables of it are asked for by the module.
  auto code = std::make_shared<Code>(*found->second);
  code->library = false;
  codes_[*given.module] = std::move(code);
}

void LaunchCapture::find_kernel(const DriverCall& call) {
  if (!call.leaving() || call.result() != cu_success) return;
  const auto given = call.parameters<GetKernel>();
  const std::lock_guard lock(mutex_);
  const auto found = codes_.find(given.handle);
  if (found == codes_.end()) return;
  kernels_[*given.kernel] = {found->second, given.handle, given.name};
}

void LaunchCapture::function_of_kernel(const DriverCall& call) {
  if (!call.leaving() || call.result() != cu_success) return;
  const auto given = call.parameters<GetFunction>();
  const std::lock_guard lock(mutex_);
  const auto found = kernels_.find(given.kernel);
  if (found == kernels_.end()) return;
  const Kernel kernel = found->second;
  kernels_[*given.function] = kernel;
}

template <class Parameters>
void LaunchCapture::launch(const DriverCall& call) {
  const auto given = call.parameters<Parameters>();
  void** extra = nullptr;
  if constexpr (requires { given.extra; }) extra = given.extra;
  around(call, given.function,
         {{given.grid_x, given.grid_y, given.grid_z},
          {given.block_x, given.block_y, given.block_z},
          given.shared_bytes,
          stream_of(call, given),
          {given.arguments, extra},
          std::nullopt});
}

void LaunchCapture::launch_ex(const DriverCall& call) {
  const auto [config, function, arguments, extra] = call.parameters<LaunchKernelEx>();
  if (config == nullptr) return;
  const auto& [grid, block, shared_bytes, stream, attributes, count] = *config;
  std::optional<gpu::Dim3> cluster;
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i].id != CuLaunchAttribute::cluster_dimension) continue;
    const auto& [x, y, z] = attributes[i].value.cluster;
    cluster = gpu::Dim3{x, y, z};
  }
  around(call, function,
         {{grid[0], grid[1], grid[2]},
          {block[0], block[1], block[2]},
          shared_bytes,
          meant_stream(call, stream),
          {arguments, extra},
          cluster});
}

void LaunchCapture::around(const DriverCall& call, CuFunction function, const Shape& shape) {
  if (call.leaving()) {
    if (!under_way) return;
    CapturedLaunch captured = std::move(*under_way);
    under_way.reset();
    if (call.result() != cu_success) {
      passed_over(captured.kernel, "the driver refused the launch");
      return;
    }
    const RelaxedStreamCapture relaxed(driver_->api());
    auto done = after(captured);
    if (done) done = write(captured);
    if (!done) left(captured.kernel, done.error().message);
    return;
  }
  under_way.reset();
  const auto kernel = [&]() -> std::optional<Kernel> {
    const std::lock_guard lock(mutex_);
    const auto found = kernels_.find(function);
    return found == kernels_.end() ? std::nullopt : std::optional(found->second);
  }();
  if (!kernel) {
    note_unknown(function);
    return;
  }
  if (!wanted(*kernel)) return;
  const RelaxedStreamCapture relaxed(driver_->api());
  int becomes_node = 0;
  const DriverApi& api = driver_->api();
  if (api.cuStreamIsCapturing != nullptr &&
      api.cuStreamIsCapturing(shape.stream, &becomes_node) == cu_success && becomes_node != 0) {
    passed_over(kernel->name,
                "it becomes a node of a graph, and the memory of the node is not known yet");
    return;
  }
  auto captured = before(*kernel, shape);
  if (captured) {
    under_way = std::move(*captured);
  } else {
    left(kernel->name, captured.error().message);
  }
}

// Counts it, too.
bool LaunchCapture::wanted(const Kernel& kernel) {
  const std::lock_guard lock(mutex_);
  if (launched_.insert(kernel.name).second) {
    log_.add(LaunchCaptureLog::Kind::launched, kernel.name);
  }
  if (!is_named(kernel.name)) return false;
  Count& count = counts_[kernel.name];
  if (count.seen++ < plan_.skip || count.chosen == plan_.launches) return false;
  ++count.chosen;
  return true;
}

// Found by a way that is not watched, as by the enumeration of a library's kernels.
void LaunchCapture::note_unknown(CuFunction function) {
  const DriverApi& api = driver_->api();
  const char* name = nullptr;
  const bool named =
      (api.cuFuncGetName != nullptr && api.cuFuncGetName(&name, function) == cu_success) ||
      (api.cuKernelGetName != nullptr &&
       api.cuKernelGetName(&name, reinterpret_cast<CuKernel>(function)) == cu_success);
  const std::string kernel = named && name != nullptr ? name : "a kernel without a name";
  if (plan_.kernels.empty() || is_named(kernel)) {
    left(kernel, "it comes from code whose loading Demarc did not see");
  }
}

bool LaunchCapture::is_named(const std::string& kernel) const {
  return plan_.kernels.empty() ||
         std::any_of(plan_.kernels.begin(), plan_.kernels.end(), [&](const std::string& name) {
           return find_symbol(std::span(&kernel, 1), name, {"kernel", "kernels"}).has_value();
         });
}

Result<CapturedLaunch> LaunchCapture::before(const Kernel& kernel, const Shape& shape) {
  const DriverApi& api = driver_->api();
  if (kernel.code->module == nullptr) return missing_capability("{}", kernel.code->without);
  const ptx::Function* function = kernel.code->module->find_function(kernel.name);
  if (function == nullptr) return missing_capability("its PTX has no such kernel");
  DEMARC_CHECK(refuse_opaque_arguments(*kernel.code->module, *function));
  DEMARC_CHECK(driver_->check(api.cuCtxSynchronize(), "the work in front of it does not end"));
  CapturedLaunch captured;
  captured.module = kernel.code->module;
  captured.kernel = kernel.name;
  captured.grid = shape.grid;
  captured.block = shape.block;
  captured.cluster = shape.cluster;
  captured.shared_bytes = shape.shared_bytes;
  DEMARC_CHECK(take_arguments(*function, shape, captured));
  DEMARC_CHECK(take_memory(captured));
  DEMARC_CHECK(take_variables(kernel, captured));
  return captured;
}

Result<void> LaunchCapture::take_arguments(const ptx::Function& function, const Shape& shape,
                                           CapturedLaunch& captured) const {
  const auto buffer = shape.arguments.buffer();
  if (!buffer.empty()) {
    DEMARC_TRY(captured.arguments, out_of_buffer(function, buffer.data(), buffer.size()));
    return {};
  }
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    if (shape.arguments.each == nullptr) return check_failed("it was given no arguments");
    const auto* bytes = static_cast<const std::byte*>(shape.arguments.each[i]);
    captured.arguments.emplace_back(bytes, bytes + function.parameters[i].byte_size());
  }
  return {};
}

std::optional<LaunchCapture::Allocation> LaunchCapture::allocation_at(std::uint64_t address) const {
  const DriverApi& api = driver_->api();
  if (address < least_card_address || address >= max_card_address) return std::nullopt;
  if (api.cuPointerGetAttribute == nullptr) return std::nullopt;
  std::uint32_t type = 0;
  Allocation found;
  const bool known =
      api.cuPointerGetAttribute(&type, attribute_memory_type, address) == cu_success &&
      api.cuPointerGetAttribute(&found.address, attribute_range_start, address) == cu_success &&
      api.cuPointerGetAttribute(&found.bytes, attribute_range_size, address) == cu_success;
  if (!known || found.bytes == 0) return std::nullopt;
  found.host = type == type_of_host;
  return found;
}

Result<std::vector<std::byte>> LaunchCapture::content_of(const Allocation& allocation) const {
  std::vector<std::byte> content(allocation.bytes);
  if (allocation.host) {
    std::memcpy(content.data(), reinterpret_cast<const void*>(allocation.address),  // NOLINT
                content.size());
    return content;
  }
  DEMARC_CHECK(driver_->check(
      driver_->api().cuMemcpyDtoH_v2(content.data(), allocation.address, content.size()),
      "its memory cannot be read"));
  return content;
}

// All that its arguments have addresses of, and what small memory of these has.
Result<void> LaunchCapture::take_memory(CapturedLaunch& captured) const {
  std::map<std::uint64_t, CapturedMemory> taken;
  std::uint64_t bytes_taken = 0;
  std::vector<std::uint64_t> open;
  const auto note = [&](std::uint64_t word) { open.push_back(word); };
  for (const auto& argument : captured.arguments) for_each_word(argument, note);
  while (!open.empty()) {
    const auto found = allocation_at(open.back());
    open.pop_back();
    if (!found || taken.contains(found->address)) continue;
    bytes_taken += found->bytes;
    if (bytes_taken > plan_.max_bytes) {
      return missing_capability(
          "its memory has {} bytes or more, but at most {} are taken; give --most", bytes_taken,
          plan_.max_bytes);
    }
    DEMARC_TRY(auto content, content_of(*found));
    if (content.size() <= max_followed_bytes) for_each_word(content, note);
    taken.emplace(found->address,
                  CapturedMemory{found->address, found->host, std::move(content), {}});
  }
  for (auto& [address, memory] : taken) captured.memory.push_back(std::move(memory));
  return {};
}

// Those that the program has set: the others the kernel's text sets itself.
Result<void> LaunchCapture::take_variables(const Kernel& kernel, CapturedLaunch& captured) const {
  const DriverApi& api = driver_->api();
  for (const ptx::Variable& variable : captured.module->variables) {
    if (variable.space != ptx::StateSpace::global && variable.space != ptx::StateSpace::constant) {
      continue;
    }
    const std::string name(variable.name);
    DevicePointer address = 0;
    std::size_t bytes = 0;
    auto* handle = const_cast<void*>(kernel.handle);
    const CuResult code =
        kernel.code->library
            ? api.cuLibraryGetGlobal(&address, &bytes, static_cast<CuLibrary>(handle), name.c_str())
            : api.cuModuleGetGlobal_v2(&address, &bytes, static_cast<CuModule>(handle),
                                       name.c_str());
    if (code != cu_success || bytes == 0) continue;
    DEMARC_TRY(auto content, content_of({address, bytes, false}));
    if (is_as_written(*captured.module, variable, content)) continue;
    captured.variables.push_back({name, std::move(content)});
  }
  return {};
}

Result<void> LaunchCapture::after(CapturedLaunch& captured) {
  DEMARC_CHECK(driver_->check(driver_->api().cuCtxSynchronize(), "it does not end well"));
  for (CapturedMemory& memory : captured.memory) {
    DEMARC_TRY(memory.after, content_of({memory.address, memory.before.size(), memory.host}));
  }
  return {};
}

// Under a name that ends in .part until it is whole.
Result<void> LaunchCapture::write(const CapturedLaunch& captured) {
  const std::string name = folder_name(captured.kernel);
  std::filesystem::path folder;
  for (int number = 1;; ++number) {
    folder = plan_.folder / fmt::format("{}-{}", name, number);
    if (std::filesystem::exists(folder)) continue;
    const std::filesystem::path part = folder.string() + capture_part;
    if (::mkdir(part.c_str(), 0755) == 0) break;
    if (errno != EEXIST) return invalid_input("{}: cannot be made", part.string());
  }
  const std::filesystem::path part = folder.string() + capture_part;
  std::error_code failed;
  auto written = write_captured(captured, part);
  if (written) {
    std::filesystem::rename(part, folder, failed);
    if (failed) written = invalid_input("{}: {}", folder.string(), failed.message());
  }
  if (!written) {
    std::filesystem::remove_all(part, failed);
    return written;
  }
  log_.add(LaunchCaptureLog::Kind::captured, (folder / "launch.json").string());
  return {};
}

void LaunchCapture::passed_over(const std::string& kernel, const std::string& why) {
  left(kernel, why);
  const std::lock_guard lock(mutex_);
  --counts_[kernel].chosen;
}

void LaunchCapture::left(const std::string& kernel, const std::string& why) {
  const std::string line = demangled(kernel) + ": " + why;
  const std::lock_guard lock(mutex_);
  if (told_.insert(line).second) log_.add(LaunchCaptureLog::Kind::left, line);
}

}  // namespace demarc::cuda
