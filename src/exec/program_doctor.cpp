// Looks at the device code of a program's files, and judges what a tenant on a card makes of it.
#include "demarc/exec/program_doctor.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/symbols.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/driver/gpu.hpp"
#include "demarc/driver/in_child.hpp"
#include "demarc/fatbin/card_code.hpp"
#include "demarc/fatbin/linked.hpp"
#include "demarc/guest/code_files.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::cuda {
namespace {

namespace fs = std::filesystem;

constexpr double loader_seconds = 60;

struct KnownLibrary {
  std::string_view start;  // how the file's name begins
  std::string_view name;
  bool replaced = false;  // by libdemarc_blas.so, where machine code is refused
};
constexpr KnownLibrary known_libraries[] = {
    {"libcublasLt.", "cuBLASLt", true},
    {"libcublas.", "cuBLAS", true},
    {"libcudnn", "cuDNN"},
    {"libcufft", "cuFFT"},
    {"libcusparse.", "cuSPARSE"},
    {"libcusparseLt.", "cuSPARSELt"},
    {"libcusolver", "cuSOLVER"},
    {"libnccl.", "NCCL"},
    {"libcurand.", "cuRAND"},
};

struct KnownCompiler {
  std::string_view package;  // a Python package
  std::string_view needs;    // with a file whose name begins so; empty: with any files
  std::string_view library;  // or a library of the program that begins so
  bool gives_ptx;
  std::string_view what;
};
constexpr KnownCompiler known_compilers[] = {
    {"torch", "libtorch_cuda.", "libtorch_cuda.", false,
     "operators are machine code; torch.compile makes kernels of Triton"},
    {"triton", "", "libtriton.", false,
     "compiles to machine code while it runs; to PTX after demarc.torch.enable()"},
    {"jax", "xla_cuda_plugin.", "xla_cuda_plugin.", false,
     "XLA compiles kernels to machine code while it runs"},
    {"numba", "", "", true, "numba.cuda compiles kernels to PTX while it runs"},
    {"cupy", "", "", true, "compiles kernels while it runs; in a tenant NVRTC gives it PTX"},
    {"", "", "libnvrtc.", true, "compiles kernels while the program runs; in a tenant to PTX"},
};

struct VerdictRow {
  std::string_view words;
  std::string_view refusal;  // what stands with exit code 3
};
// By Verdict.
constexpr std::array<VerdictRow, 4> verdicts{{
    {"can be isolated", ""},
    {"in part", "the program can be isolated in part only"},
    {"cannot be isolated", "the program cannot be isolated on this card"},
    {"not known", "it is not known whether the program can be isolated"},
}};
const VerdictRow& row_of(Verdict verdict) {
  return verdicts.at(static_cast<std::size_t>(verdict));
}
// By FileState.
constexpr std::array<std::string_view, 5> state_words{"refused", "not checked", "replaced", "ok",
                                                      "no code"};

std::string name_of_file(const std::string& path) {
  return fs::path(path).filename().string();
}

KnownLibrary known_library(const std::string& name) {
  for (const KnownLibrary& library : known_libraries) {
    if (name.starts_with(library.start)) return library;
  }
  return {};
}

// Libraries that it needs, and those that it loads by name itself, as a static libcudart does.
bool names_cuda(std::string_view content) {
  return content.find("libcuda.so") != std::string_view::npos ||
         content.find("libcudart.so") != std::string_view::npos;
}

// What is said of a file stands beside its name.
std::string without_path(const std::string& message, const std::string& path) {
  return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : message;
}

std::uint64_t entries_in(std::string_view ptx) {
  std::uint64_t count = 0;
  constexpr std::string_view entry = ".entry";
  for (auto at = ptx.find(entry); at != std::string_view::npos; at = ptx.find(entry, at + 1))
    ++count;
  return count;
}

// Looks at one file after the other.
class CodeReader {
 public:
  CodeReader(const TenantCard& card, std::uint64_t max_ptx_bytes)
      : card_(card), max_ptx_bytes_(max_ptx_bytes) {}

  FileCode read(const ProgramFile& file) {
    FileCode code;
    code.file = file;
    const std::string name = name_of_file(file.path);
    code.library = known_library(name).name;
    if (const auto looked = look(code); !looked) {
      code.state = FileState::not_checked;
      code.why = without_path(looked.error().message, file.path);
      return code;
    }
    code.state = state_of(code);
    return code;
  }

  // Libraries of NVIDIA's that files need, with one that needs each.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& needed() const {
    return needed_;
  }

 private:
  Result<void> look(FileCode& code) {
    const std::string& path = code.file.path;
    DEMARC_TRY(std::string content, read_file(path));
    if (!content.starts_with("\x7f"
                             "ELF") ||
        path.ends_with(".cubin")) {
      DEMARC_TRY(const auto file, fatbin::images_of(std::move(content), path));
      return count(file.images, code);
    }
    DEMARC_TRY(const fatbin::Linked linked, fatbin::linked_of(content, path));
    for (const std::string& library : linked.needed) {
      if (!known_library(library).name.empty()) needed_.emplace_back(library, path);
    }
    code.uses_cuda = names_cuda(content);
    DEMARC_TRY(auto images, fatbin::images_of_program(content, path));
    DEMARC_TRY(auto others, fatbin::images_among_data(content, path, images));
    images.insert(images.end(), std::make_move_iterator(others.begin()),
                  std::make_move_iterator(others.end()));
    return count(images, code);
  }

  Result<void> count(const std::vector<fatbin::FileImage>& images, FileCode& code) {
    DEMARC_TRY(const auto codes, fatbin::card_codes(images, card_.capability.number()));
    for (const fatbin::CardCode& one : codes) {
      using Kind = fatbin::CardCodeKind;
      if (one.kind != Kind::none) ++code.images;
      if (one.kind == Kind::other_cards) ++code.other_images;
      if (one.kind == Kind::for_linking) ++code.link_images;
      if (one.kind == Kind::unknown) ++code.unknown_images;
      code.machine_kernels += one.kernels.size();
      if (one.kind != Kind::ptx) continue;
      const auto tried = try_ptx(one.ptx, code);
      if (!tried && code.unknown_images++ == 0) code.why = tried.error().message;
    }
    return {};
  }

  // As a tenant's process reads it when the program loads it.
  Result<void> try_ptx(const std::string& text, FileCode& code) {
    tried_bytes_ += text.size();
    if (tried_bytes_ > max_ptx_bytes_) {
      code.untried_kernels += entries_in(text);
      return {};
    }
    DEMARC_TRY(const ptx::Module module, ptx::parse_whole(text, "its PTX"));
    DEMARC_TRY(const auto needs, ptx::find_colored_needs(module));
    for (const ptx::ColoredKernel& kernel : needs.kernels) {
      if (kernel.accepted()) {
        ++code.ptx_kernels;
        continue;
      }
      if (code.unfit_kernels++ > 0) continue;
      code.why_unfit =
          fmt::format("{}, in {}", kernel.refusals.front().reason, demangled(kernel.name));
    }
    return {};
  }

  FileState state_of(FileCode& code) const {
    const bool windows = card_.windows.has_value();
    if (code.machine_kernels + code.unfit_kernels > 0 && !windows) {
      return known_library(name_of_file(code.file.path)).replaced ? FileState::replaced
                                                                  : FileState::refused;
    }
    code.why = why_not_checked(code, windows);
    if (!code.why.empty()) return FileState::not_checked;
    const bool any = code.ptx_kernels + code.untried_kernels + code.machine_kernels +
                         code.unfit_kernels + code.link_images >
                     0;
    return any ? FileState::ok : FileState::no_code;
  }

  // Empty: all of it is known.
  static std::string why_not_checked(const FileCode& code, bool windows) {
    if (!code.why.empty()) return code.why;  // PTX cannot be parsed
    if (code.unknown_images > 0) {
      return fmt::format("{} of {} images are of a kind that is not known", code.unknown_images,
                         code.images);
    }
    // In windows it does not matter what becomes of them.
    if (windows) return {};
    if (code.link_images > 0) {
      return fmt::format("{} of {} images are linked while it runs", code.link_images, code.images);
    }
    if (code.untried_kernels > 0) return "the program has too much PTX to try all of it";
    return {};
  }

  const TenantCard& card_;
  std::uint64_t max_ptx_bytes_;
  std::uint64_t tried_bytes_ = 0;
  std::vector<std::pair<std::string, std::string>> needed_;
};

void sort_files(std::vector<FileCode>& files) {
  std::stable_sort(files.begin(), files.end(), [](const FileCode& a, const FileCode& b) {
    const auto key = [](const FileCode& file) {
      return std::make_tuple(file.state, ~(file.machine_kernels + file.unfit_kernels),
                             ~file.ptx_kernels);
    };
    return key(a) < key(b);
  });
}

// Libraries of packages find each other in ways of their own. The loader is asked for those of
// NVIDIA's that are not among the files yet.
void add_needed(const CodeReader& reader, ProgramFiles& program) {
  std::set<std::string> there;
  for (const ProgramFile& file : program.files) there.insert(name_of_file(file.path));
  std::set<std::string> asked;
  for (const auto& [library, by] : reader.needed()) {
    if (there.contains(library) || !asked.insert(by).second) continue;
    if (program.loader.empty()) {
      program.unchecked.push_back({library, fmt::format("{} needs it", name_of_file(by))});
      continue;
    }
    for (std::string& found : libraries_of(program.loader, by, loader_seconds, program.unchecked)) {
      if (there.insert(name_of_file(found)).second) program.files.push_back({std::move(found), {}});
    }
  }
}

void drop_repeated(std::vector<Unchecked>& unchecked) {
  std::set<std::string> seen;
  std::erase_if(unchecked, [&](const Unchecked& one) { return !seen.insert(one.what).second; });
}

std::vector<RuntimeCompiler> compilers_of(const ProgramFiles& program) {
  const auto has = [&program](std::string_view start, bool of_packages) {
    return std::any_of(program.files.begin(), program.files.end(), [&](const ProgramFile& file) {
      return (of_packages || file.package.empty()) && name_of_file(file.path).starts_with(start);
    });
  };
  std::vector<RuntimeCompiler> found;
  for (const KnownCompiler& known : known_compilers) {
    if (std::find(program.packages.begin(), program.packages.end(), known.package) !=
        program.packages.end()) {
      if (has(known.needs, true))
        found.push_back({std::string(known.package), known.gives_ptx, std::string(known.what)});
    } else if (!known.library.empty() && has(known.library, false)) {
      // Packages of NVIDIA's bring libraries that may stay unused.
      const std::string_view name = known.library.substr(0, known.library.size() - 1);
      found.push_back({std::string(name), known.gives_ptx, std::string(known.what)});
    }
  }
  return found;
}

struct Sums {
  bool ptx = false;
  bool machine = false;
  bool replaced = false;
  bool open = false;  // something was not checked
  bool uses_cuda = false;
};

Sums sums_of(const ProgramFindings& findings) {
  Sums sums;
  sums.open = !findings.program.unchecked.empty();
  for (const FileCode& file : findings.files) {
    if (file.state == FileState::replaced) {
      sums.replaced = true;
      continue;
    }
    const bool refused = file.state == FileState::refused;
    const bool linked = file.link_images > 0;
    const bool untried = file.untried_kernels > 0;
    sums.ptx = sums.ptx || file.ptx_kernels > 0;
    sums.machine = sums.machine || file.machine_kernels + file.unfit_kernels > 0;
    sums.open = sums.open || file.state == FileState::not_checked ||
                (refused && (linked || untried || file.unknown_images > 0));
    // As it is, whatever it would be without windows.
    if (findings.card.windows && (linked || untried)) sums.machine = true;
    sums.uses_cuda = sums.uses_cuda || file.uses_cuda;
  }
  for (const RuntimeCompiler& compiler : findings.compilers)
    (compiler.gives_ptx ? sums.ptx : sums.machine) = true;
  return sums;
}

void judge(ProgramFindings& findings) {
  const TenantCard& card = findings.card;
  const Sums sums = sums_of(findings);
  const auto say = [&findings](Verdict verdict, std::string because) {
    findings.verdict = verdict;
    findings.because = std::move(because);
  };
  if (!card.has_colors) {
    return say(Verdict::cannot,
               fmt::format("The memory of this card cannot be divided, so only its SMs can: {}.",
                           card.why_no_colors));
  }
  const std::string of_cublas =
      sums.replaced ? " In the place of cuBLAS, libdemarc_blas.so computes products and vectors of "
                      "real numbers in the tenant's colours; what it lacks is refused by name."
                    : "";
  if (sums.machine && !card.windows) {
    const std::string end = fmt::format(
        " This card has no windows, because {}. What is launched from there is refused by name "
        "before it runs.{}",
        card.why_no_windows, of_cublas);
    if (sums.ptx || sums.open || sums.replaced) {
      return say(
          Verdict::in_part,
          "Kernels with PTX run in the tenant's colours, but some code is machine code." + end);
    }
    return say(Verdict::cannot,
               "All of its code is machine code." + end + " Its SMs alone can be divided.");
  }
  if (sums.open) {
    return say(Verdict::not_known,
               "Some of it could not be looked at, and may contain code that is refused.");
  }
  if (sums.replaced) {
    return say(Verdict::in_part, "Its kernels with PTX run in the tenant's colours." + of_cublas);
  }
  if (sums.machine) {
    return say(Verdict::isolated,
               fmt::format("Machine code runs in windows, and kernels with PTX by arithmetic: this "
                           "card has {} colours that change every {} bytes.",
                           card.windows->colors, card.windows->granule));
  }
  if (sums.ptx) {
    return say(Verdict::isolated,
               "All of its kernels have PTX that Demarc rewrites, so they run in the tenant's "
               "colours.");
  }
  say(Verdict::not_known,
      sums.uses_cuda
          ? "It uses CUDA, but none of its files has device code for this card: it makes or loads "
            "its code while it runs."
          : "None of its files has device code for this card, and none is linked with CUDA.");
}

}  // namespace

TenantCard tenant_card(const gpu::Device& device) {
  TenantCard card;
  card.name = device.name;
  card.capability = device.compute_capability;
  card.memory_bytes = device.dram.size_bytes;
  card.sms = device.topology.sm_count();
  const auto halves = color::color_scheme(device, 2);
  card.has_colors = halves.has_value();
  if (!halves) {
    card.why_no_colors = halves.error().message;
    return card;
  }
  if (const auto windows = color::page_colors(device)) {
    card.windows = *windows;
  } else {
    card.why_no_windows = windows.error().message;
  }
  return card;
}

Result<TenantCard> tenant_card(std::uint32_t index, const std::string& description) {
  DEMARC_TRY(const std::string told,
             answer_of_child(
                 [index]() -> ChildAnswer {
                   const auto failed = [](const Error& error) {
                     return ChildAnswer{false, static_cast<int>(error.kind), error.message};
                   };
                   const auto driver = Driver::load();
                   if (!driver) return failed(driver.error());
                   const auto gpu = Gpu::find(*driver, index);
                   if (!gpu) return failed(gpu.error());
                   if (const auto whole = (*gpu)->check_whole(); !whole)
                     return failed(whole.error());
                   const auto capability = (*gpu)->compute_capability();
                   return {true, 0,
                           json_text(Json{{"name", (*gpu)->name()},
                                          {"major", capability.major},
                                          {"minor", capability.minor},
                                          {"bytes", (*gpu)->total_bytes()},
                                          {"sms", (*gpu)->sm_count()}})};
                 },
                 child_limit));
  const Json json = own_json(told);
  const std::string name = json["name"];
  TenantCard card;
  const auto device = gpu::describe_card(name, description);
  if (device) {
    card = tenant_card(*device);
  } else if (!description.empty()) {
    return tl::unexpected(device.error());
  } else {
    card.why_no_colors = device.error().message;
  }
  card.name = name;
  card.capability = {json["major"], json["minor"]};
  card.memory_bytes = json["bytes"];
  card.sms = json["sms"];
  if (index != 0) card.options = {"--device", fmt::format("cuda:{}", index)};
  card.description = description;
  return card;
}

ProgramFindings look_at_program(ProgramFiles program, TenantCard card, const Progress& progress,
                                std::uint64_t max_ptx_bytes) {
  ProgramFindings findings;
  findings.card = std::move(card);
  findings.program = std::move(program);
  CodeReader reader(findings.card, max_ptx_bytes);
  std::vector<ProgramFile>& files = findings.program.files;
  bool uses_driver = false;
  for (std::size_t i = 0; i < files.size(); ++i) {
    // What libraries need is asked for once all of them are known.
    report_progress(progress, static_cast<double>(i) / static_cast<double>(files.size()),
                    name_of_file(files[i].path));
    if (is_of_the_driver(files[i].path)) {
      uses_driver = true;
    } else {
      findings.files.push_back(reader.read(files[i]));
    }
    if (i + 1 == files.size()) add_needed(reader, findings.program);
  }
  report_progress(progress, 1, "");
  if (uses_driver && !findings.files.empty()) findings.files.front().uses_cuda = true;
  drop_repeated(findings.program.unchecked);
  findings.compilers = compilers_of(findings.program);
  sort_files(findings.files);
  judge(findings);
  return findings;
}

Result<void> check_isolated(const ProgramFindings& findings) {
  if (findings.verdict == Verdict::isolated) return {};
  return check_failed("{}", row_of(findings.verdict).refusal);
}

std::string_view to_string(Verdict verdict) {
  return row_of(verdict).words;
}

std::string_view to_string(FileState state) {
  return state_words.at(static_cast<std::size_t>(state));
}

}  // namespace demarc::cuda
