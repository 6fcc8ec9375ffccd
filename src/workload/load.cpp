// Loads the launch that a user names, with its PTX, and checks that both fit together.
#include "demarc/workload/load.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "demarc/base/symbols.hpp"
#include "demarc/launch/content_file.hpp"
#include "demarc/ptx/named_variables.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::workload {
namespace {

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%';
}

Result<gpu::Launch> launch_of(const LaunchRequest& request) {
  const bool has_file = !request.launch_file.empty();
  if (has_file && (request.text_given || !request.text.ptx.empty())) {
    return invalid_input(
        "--launch {} already has kernel, grid, block and arguments; leave out the PTX file, "
        "--kernel, --grid, --block, --cluster, --args and --shared",
        request.launch_file);
  }
  if (!has_file && request.text.ptx.empty()) {
    return invalid_input("a PTX file, bundled:NAME or --launch FILE.json was expected");
  }
  const std::string& source = has_file ? request.launch_file : request.text.ptx;
  const auto bundled = gpu::bundled_name(source);
  if (bundled && (has_file || !request.text_given)) return instance(*bundled, request.options);
  if (has_file) return gpu::read_launch(source, request.options);
  if (!request.options.scale.empty() || !request.options.parameters.empty()) {
    return invalid_input("--scale and --param belong to launch files; {} is a PTX module", source);
  }
  return gpu::parse_launch(request.text);
}

// Which buffer: as the user wrote it, where it stands among the arguments.
std::string name_of_buffer(const gpu::Launch& launch, std::size_t index) {
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      const auto use = gpu::used_buffer(launch, kernel.arguments[i]);
      if (use && use->buffer == index)
        return fmt::format("argument {} (buffer '{}')", i + 1, launch.buffers[index].name);
    }
  }
  return fmt::format("buffer '{}'", launch.buffers[index].name);
}

Result<std::optional<std::uint64_t>> measured(const std::string& file, gpu::ScalarType element,
                                              const std::string& where) {
  auto bytes = gpu::content_bytes(file, element);
  if (!bytes) return invalid_input("{}: {}", where, bytes.error().message);
  return bytes;
}

// Files of contents, before anything is computed: not all that use a launch read them.
Result<void> check_fills(const gpu::Launch& launch) {
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const gpu::Buffer& buffer = launch.buffers[i];
    if (buffer.fill.kind != gpu::FillKind::file) continue;
    const std::string where = name_of_buffer(launch, i);
    DEMARC_TRY(const auto bytes, measured(buffer.fill.file, buffer.element, where));
    if (bytes && *bytes > buffer.bytes) {
      return invalid_input("{}: {} holds {} bytes, more than the buffer's {}", where,
                           buffer.fill.file, *bytes, buffer.bytes);
    }
  }
  return {};
}

Result<void> check_expected(const gpu::Launch& launch) {
  for (const auto& [index, file] : launch.check.files) {
    const gpu::Buffer& buffer = launch.buffers[index];
    const std::string where = fmt::format("check of '{}'", buffer.name);
    DEMARC_TRY(const auto bytes, measured(file, buffer.element, where));
    if (bytes && *bytes != buffer.bytes) {
      return invalid_input("{}: {} holds {} bytes, but the buffer has {}", where, file, *bytes,
                           buffer.bytes);
    }
  }
  return {};
}

Result<void> choose_kernels(LoadedLaunch& loaded) {
  const auto entries = entry_names(loaded.ptx);
  std::map<std::string, std::string> chosen;  // a launch may run one kernel a million times
  for (gpu::KernelLaunch& kernel : loaded.launch.kernels) {
    if (entries.empty())
      return invalid_input("{}: it has no entry, so there is nothing to run", loaded.ptx_name);
    if (kernel.kernel.empty() && entries.size() == 1) kernel.kernel = entries.front();
    if (kernel.kernel.empty()) {
      return invalid_input("{}: --kernel was expected; its entries are: {}", loaded.ptx_name,
                           symbol_list(entries));
    }
    std::string& name = chosen[kernel.kernel];
    if (name.empty()) {
      const auto index = find_symbol(entries, kernel.kernel, {"entry", "entries"});
      if (!index) return invalid_input("{}: {}", loaded.ptx_name, index.error().message);
      name = entries[*index];
    }
    kernel.kernel = name;
  }
  return {};
}

Result<void> add_variables(gpu::Launch& launch, const std::vector<std::string>& texts) {
  std::set<std::string> given;
  for (const std::string& text : texts) {
    DEMARC_TRY(gpu::Buffer variable, gpu::parse_variable(text));
    if (!given.insert(variable.name).second)
      return invalid_input("--variable {}: '{}' is given twice", text, variable.name);
    auto& all = launch.variables;
    const auto known = std::find_if(all.begin(), all.end(), [&](const gpu::Buffer& other) {
      return other.name == variable.name;
    });
    if (known == all.end()) {
      all.push_back(std::move(variable));
    } else {
      *known = std::move(variable);
    }
  }
  return {};
}

// Gives variables the module's names; files must fit.
Result<void> choose_variables(LoadedLaunch& loaded) {
  if (loaded.launch.variables.empty()) return {};
  DEMARC_TRY(const ptx::Module module, ptx::parse_whole(loaded.ptx, loaded.ptx_name));
  std::vector<std::string> names;
  for (const ptx::Variable& variable : module.variables) {
    const bool stands = !variable.is_repeated && module.find_memory(variable.name) != nullptr;
    if (stands) names.emplace_back(variable.name);
  }
  for (gpu::Buffer& variable : loaded.launch.variables) {
    const auto index = find_symbol(names, variable.name, {"variable", "variables"});
    if (!index) return invalid_input("{}: {}", loaded.ptx_name, index.error().message);
    variable.name = names[*index];
    if (variable.fill.kind != gpu::FillKind::file) continue;
    const std::string where = fmt::format("variable '{}'", variable.name);
    const std::uint64_t room = module.find_memory(variable.name)->byte_size();
    DEMARC_TRY(const auto bytes, measured(variable.fill.file, variable.element, where));
    if (bytes && *bytes > room) {
      return invalid_input("{}: {} holds {} bytes, more than the variable's {}", where,
                           variable.fill.file, *bytes, room);
    }
  }
  return gpu::validate(loaded.launch);  // two names may have meant one
}

}  // namespace

std::vector<std::string> entry_names(std::string_view ptx) {
  constexpr std::string_view directive = ".entry";
  std::vector<std::string> names;
  for (auto at = ptx.find(directive); at != std::string_view::npos;
       at = ptx.find(directive, at + 1)) {
    const auto line = ptx.rfind('\n', at) + 1;  // npos + 1 == 0: the first line
    if (ptx.substr(line, at - line).find("//") != std::string_view::npos) continue;
    auto begin = at + directive.size();
    while (begin < ptx.size() && (ptx[begin] == ' ' || ptx[begin] == '\t' || ptx[begin] == '\n'))
      ++begin;
    auto end = begin;
    while (end < ptx.size() && is_name_character(ptx[end])) ++end;
    if (end > begin && begin > at + directive.size())
      names.emplace_back(ptx.substr(begin, end - begin));
  }
  return names;
}

Result<std::string> kernel_of(const gpu::Launch& launch, std::string_view name) {
  std::set<std::string> known;
  for (const gpu::KernelLaunch& one : launch.kernels) known.insert(one.kernel);
  const std::vector<std::string> kernels(known.begin(), known.end());
  const auto index = find_symbol(kernels, name, {"kernel", "kernels"});
  if (!index) return invalid_input("--kernel {}: {}", name, index.error().message);
  return kernels[*index];
}

Result<void> keep_kernel(gpu::Launch& launch, std::string_view name) {
  DEMARC_TRY(const std::string kernel, kernel_of(launch, name));
  const std::size_t before = launch.kernels.size();
  std::erase_if(launch.kernels, [&](const gpu::KernelLaunch& one) { return one.kernel != kernel; });
  if (launch.kernels.size() < before) launch.check = {};
  return {};
}

std::vector<UnsetConstant> unset_constants(const ptx::Module& module, const gpu::Launch& launch) {
  std::set<std::string_view> set;
  for (const gpu::Buffer& variable : launch.variables) set.insert(variable.name);
  const auto is_unset = [&](const ptx::Variable& variable) {
    return variable.space == ptx::StateSpace::constant && variable.initialiser.empty() &&
           !set.contains(variable.name);
  };
  // Most modules have none, and need not be looked through.
  if (std::none_of(module.variables.begin(), module.variables.end(), is_unset)) return {};
  std::vector<UnsetConstant> unset;
  std::set<std::string_view> seen;
  for (const gpu::KernelLaunch& one : launch.kernels) {
    const ptx::Function* const kernel = module.find_function(one.kernel);
    if (kernel == nullptr || !seen.insert(kernel->name).second) continue;
    for (const ptx::Variable* const variable : ptx::named_variables(module, *kernel)) {
      if (is_unset(*variable)) unset.push_back({one.kernel, std::string(variable->name)});
    }
  }
  return unset;
}

Result<LoadedLaunch> load_launch(const LaunchRequest& request) {
  LoadedLaunch loaded;
  DEMARC_TRY(loaded.launch, launch_of(request));
  if (request.seed_given) loaded.launch.seed = request.text.seed;
  loaded.ptx_name = loaded.launch.ptx;
  if (request.target_given && !gpu::bundled_name(loaded.ptx_name)) {
    return invalid_input(
        "--sm {} chooses among bundled modules, but {} is a PTX file with its own .target",
        request.target, loaded.ptx_name);
  }
  DEMARC_CHECK(add_variables(loaded.launch, request.variables));
  DEMARC_CHECK(check_fills(loaded.launch));
  DEMARC_CHECK(check_expected(loaded.launch));
  DEMARC_TRY(loaded.ptx, ptx_text(loaded.launch, request.target));
  if (const auto text = ptx::check_is_text(loaded.ptx, loaded.ptx_name); !text)
    return invalid_input("{}: {}", loaded.ptx_name, text.error().message);
  DEMARC_CHECK(choose_kernels(loaded));
  DEMARC_CHECK(choose_variables(loaded));
  return loaded;
}

}  // namespace demarc::workload
