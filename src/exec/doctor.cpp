// Checks what exec, isolate and serve need of this machine, row by row, by trying it.
#include "demarc/exec/doctor.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/process.hpp"
#include "demarc/base/text.hpp"
#include "demarc/card/card.hpp"
#include "demarc/card/identify.hpp"
#include "demarc/card/mps_clients.hpp"
#include "demarc/card/proof.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/driver/driver_version.hpp"
#include "demarc/driver/in_child.hpp"
#include "demarc/exec/confine.hpp"
#include "demarc/partition/partition.hpp"
#include "supervisor.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t max_doctor_colors = 64;

struct RowKind {
  std::string_view name;
  std::string_view used_by;
  bool needed;
};

constexpr RowKind driver_row{"driver", "exec, isolate, serve", true};
constexpr RowKind card_row{"card", "exec, isolate, serve", true};
constexpr RowKind masks_row{"masks", "exec, isolate, serve", true};
constexpr RowKind partition_row{"partition", "exec, isolate, serve", true};
constexpr RowKind colors_row{"colours", "serve, exec --part K/N, isolate --modes mask+color", true};
constexpr RowKind topology_row{"topology", "topo, and verify inside MPS", false};
constexpr RowKind cache_row{"cache", "topo, to remember its measurements", false};
constexpr RowKind watch_row{"processes", "exec", true};
constexpr RowKind preload_row{"preload", "exec", true};
constexpr RowKind compilers_row{"compilers", "exec --tenant, exec --part K/N", true};
constexpr RowKind blas_row{"cuBLAS", "exec --tenant, exec --part K/N on a card without windows",
                           true};
constexpr RowKind mps_row{"MPS", "serve, isolate --modes mps", false};
constexpr RowKind nvcc_row{"nvcc", "PTX of CUDA sources of your own; Demarc runs neither", false};

Check row(const RowKind& kind, CheckState state, std::string found, std::string cure = {}) {
  return {std::string(kind.name),    state,      std::move(found), std::move(cure),
          std::string(kind.used_by), kind.needed};
}
Check works(const RowKind& kind, std::string found) {
  return row(kind, CheckState::works, std::move(found));
}
Check check_lacks(const RowKind& kind, std::string found, std::string cure) {
  return row(kind, CheckState::lacks, std::move(found), std::move(cure));
}
Check unknown_without(const RowKind& kind, const RowKind& base) {
  return row(kind, CheckState::unknown, fmt::format("not looked at without the {}", base.name));
}

Check masks_check(const Card& card) {
  const auto hook = card.hook();
  const auto masks = card.stream_masks();
  if (!hook || !masks) {
    return check_lacks(masks_row, (hook ? masks.error() : hook.error()).message,
                       "run demarc topo --refresh to look for the place in an unknown driver, or "
                       "install a driver that Demarc knows. isolate --modes green needs no masks");
  }
  const int version = card.gpu()->driver().cuda_version();
  return works(masks_row,
               fmt::format("CUDA {} keeps a stream's mask at offset {:#x}, {}; task descriptors "
                           "have version {}",
                           cuda_version_text(version), (*masks)->field().offset,
                           known_stream_field(version) ? "as is known" : "as topo has found",
                           (*hook)->layout()->name));
}

Check partition_check(const CardPointer& card) {
  const std::uint32_t tpcs = card->topology().tpc_count();
  const auto half = gpu::TpcSet::first((tpcs + 1) / 2);
  if (const auto proved = prove_partition(card, half); !proved) {
    return check_lacks(partition_row, proved.error().message,
                       "end all other programs on the card and try again; if the fault stays, it "
                       "is this driver's: isolate --modes green needs no masks");
  }
  return works(partition_row,
               fmt::format("launches of this process stay on TPCs {} of {}, seen from inside",
                           to_string(half), tpcs));
}

Check colors_check(const Gpu& gpu, const std::string& description) {
  const auto refused = [](const Error& error) {
    return check_lacks(
        colors_row, error.message,
        "run demarc probe memory -o FILE to measure a description, then give --description FILE");
  };
  const auto device = gpu::describe_card(gpu.name(), description);
  if (!device) return refused(device.error());
  std::vector<std::uint32_t> counts;
  for (std::uint32_t colors = 2; colors <= max_doctor_colors; ++colors) {
    const auto scheme = color::color_scheme(*device, colors);
    if (!scheme && counts.empty()) return refused(scheme.error());
    if (scheme && scheme->colors == colors) counts.push_back(colors);
  }
  const std::uint32_t slices =
      device->address_map ? device->address_map->slices : device->l2.slices;
  return works(colors_row, fmt::format("{}: by its description {} slices of L2; its memory can be "
                                       "divided into {} colours",
                                       device->name, slices, joined(counts, ", ")));
}

Check topology_check(const Gpu& gpu) {
  constexpr const char* cure =
      "demarc topo --refresh, outside MPS and with nothing else on the card";
  const auto facts = remembered_facts(gpu, {});
  if (!facts) return check_lacks(topology_row, facts.error().message, cure);
  const std::string file = facts_path(gpu, {});
  if (!*facts) {
    return check_lacks(topology_row,
                       fmt::format("nothing is remembered of this card in {}: each program that "
                                   "needs its topology measures it again",
                                   file),
                       cure);
  }
  return works(topology_row, fmt::format("{} has a topology of {} SMs", file,
                                         (*facts)->device.topology.sm_count()));
}

// Everything that needs the driver, in the process that calls.
std::vector<Check> look_at_card(const DoctorPlan& plan) {
  std::vector<Check> rows;
  const auto skip = [&rows](std::initializer_list<RowKind> kinds, const RowKind& base) {
    for (const RowKind& kind : kinds) rows.push_back(unknown_without(kind, base));
  };
  const auto driver = Driver::load();
  if (!driver) {
    rows.push_back(check_lacks(driver_row, driver.error().message,
                               "install NVIDIA's driver, give the container its GPUs, or name "
                               "libcuda.so.1 in DEMARC_LIBCUDA"));
    skip({card_row, masks_row, partition_row, colors_row, topology_row}, driver_row);
    return rows;
  }
  rows.push_back(works(driver_row, fmt::format("{}, driver {}, CUDA {}", (*driver)->origin(),
                                               (*driver)->driver_version(),
                                               cuda_version_text((*driver)->cuda_version()))));
  const auto gpu = Gpu::open(*driver, plan.device);
  const auto whole = gpu ? (*gpu)->check_whole() : Result<void>(tl::unexpected(gpu.error()));
  if (!whole) {
    rows.push_back(check_lacks(card_row, whole.error().message,
                               "a whole card that this process may use: nvidia-smi -L lists them, "
                               "--device names one"));
    skip({masks_row, partition_row, colors_row, topology_row}, card_row);
    return rows;
  }
  const GpuPointer card_gpu = *gpu;
  const auto capability = card_gpu->compute_capability();
  rows.push_back(works(
      card_row, fmt::format("{}, {}, {} SMs, compute capability {}.{}{}", card_gpu->name(),
                            card_gpu->uuid(), card_gpu->sm_count(), capability.major,
                            capability.minor, card_gpu->under_mps() ? ", a client of MPS" : "")));
  const Check topology = topology_check(*card_gpu);
  CardOptions options;
  options.remember = false;
  const auto card = Card::open(card_gpu, options);
  rows.push_back(
      card ? masks_check(**card)
           : check_lacks(masks_row, card.error().message,
                         "end all other programs on the card, then run demarc topo --refresh"));
  if (rows.back().state == CheckState::works) {
    rows.push_back(partition_check(*card));
  } else {
    skip({partition_row}, masks_row);
  }
  rows.push_back(colors_check(*card_gpu, plan.description));
  rows.push_back(topology);
  return rows;
}

Json to_json(const Check& check) {
  return Json{{"name", check.name}, {"state", to_string(check.state)}, {"found", check.found},
              {"cure", check.cure}, {"used_by", check.used_by},        {"needed", check.needed}};
}

// Whatever the driver does to the process that uses it.
std::vector<Check> look_at_card_in_child(const DoctorPlan& plan) {
  const auto answer = answer_of_child(
      [&plan]() -> ChildAnswer {
        Json rows = Json::array();
        for (const Check& check : look_at_card(plan)) {
          Json json = to_json(check);
          json["state"] = static_cast<int>(check.state);
          rows.push_back(std::move(json));
        }
        return {true, 0, json_text(rows)};
      },
      child_limit);
  if (!answer) {
    std::vector<Check> rows{
        check_lacks(driver_row, answer.error().message, "a driver that Demarc knows")};
    for (const RowKind& kind : {card_row, masks_row, partition_row, colors_row, topology_row}) {
      rows.push_back(unknown_without(kind, driver_row));
    }
    return rows;
  }
  std::vector<Check> rows;
  for (const Json& json : Json::parse(*answer)) {
    rows.push_back({json["name"], static_cast<CheckState>(json["state"].get<int>()), json["found"],
                    json["cure"], json["used_by"], json["needed"]});
  }
  return rows;
}

// Whether Card::open() could write what it has measured.
Check cache_check() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::absolute(facts_folder({}));
  fs::path there = folder;
  std::error_code ignored;
  while (!fs::exists(there, ignored) && there != there.root_path()) there = there.parent_path();
  if (const auto writable = check_writable(there / "demarc-doctor"); !writable) {
    return check_lacks(cache_row, fmt::format("{}: {}", folder.string(), writable.error().message),
                       "name a folder in DEMARC_CACHE");
  }
  return works(cache_row, folder.string());
}

// Starts a program as exec does, which does nothing.
Check watch_check() {
  const auto seen = []() -> Result<void> {
    DEMARC_CHECK(refuse_inside());
    DEMARC_TRY(Supervisor supervisor, Supervisor::start({}, {{"true"}, {}}));
    supervisor.wait();
    return {};
  }();
  if (seen) return works(watch_row, "the kernel shows which processes reach the GPU");
  return check_lacks(
      watch_row, seen.error().message,
      "Linux 5.9 or later, outside of a container that filters seccomp itself, and outside "
      "of another demarc exec");
}

struct Loaded {
  bool whole = false;
  std::array<char, 400> because{};
};

// In a process that ends after it: nothing of the library stays in this one.
Result<void> load_library(const std::string& path) {
  DEMARC_TRY(const Loaded loaded, in_child<Loaded>([&path]() -> Result<Loaded> {
               Loaded found;
               found.whole = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
               if (found.whole) return found;
               const char* because = ::dlerror();
               std::snprintf(found.because.data(), found.because.size(), "%s",
                             because == nullptr ? path.c_str() : because);
               return found;
             }));
  if (loaded.whole) return {};
  return missing_capability("{}", loaded.because.data());
}

Check library_check(const RowKind& kind, const Result<std::string>& path) {
  constexpr const char* cure =
      "install all of Demarc: its libraries belong beside the program or into ../lib";
  if (!path) return check_lacks(kind, path.error().message, cure);
  if (const auto loaded = load_library(*path); !loaded) {
    return check_lacks(kind, loaded.error().message, cure);
  }
  return works(kind, *path);
}

Check mps_check() {
  if (mps_daemon_runs()) {
    return works(mps_row, fmt::format("a daemon has its pipes in {}", mps_pipe_folder()));
  }
  const std::string control = find_program(mps_control);
  if (!control.empty()) return works(mps_row, fmt::format("{} starts a daemon", control));
  return check_lacks(
      mps_row,
      fmt::format("no daemon has its pipes in {}, and there is no {} in PATH: tenants take "
                  "turns on the card",
                  mps_pipe_folder(), mps_control),
      fmt::format(
          "{} comes with NVIDIA's driver; some distributions have it in a package of its own",
          mps_control));
}

Check nvcc_check() {
  const std::string nvcc = find_program("nvcc");
  const std::string ptxas = find_program("ptxas");
  const std::string found = fmt::format("nvcc: {}; ptxas: {}", nvcc.empty() ? "not in PATH" : nvcc,
                                        ptxas.empty() ? "not in PATH" : ptxas);
  if (!nvcc.empty() && !ptxas.empty()) return works(nvcc_row, found);
  return check_lacks(
      nvcc_row, found,
      "install a CUDA toolkit and put its folder bin into PATH; clang makes PTX, too");
}

}  // namespace

std::string to_string(CheckState state) {
  constexpr std::array<std::string_view, 3> words{"works", "does not", "unknown"};
  return std::string(words.at(static_cast<std::size_t>(state)));
}

std::vector<Check> look_at_machine(const DoctorPlan& plan) {
  const Check watched = watch_check();
  std::vector<Check> rows = look_at_card_in_child(plan);
  rows.push_back(cache_check());
  rows.push_back(watched);
  const auto preload = find_preload(plan.preload);
  rows.push_back(library_check(preload_row, preload));
  rows.push_back(preload ? library_check(compilers_row, find_compilers(*preload))
                         : unknown_without(compilers_row, preload_row));
  rows.push_back(preload ? library_check(blas_row, find_blas(*preload))
                         : unknown_without(blas_row, preload_row));
  rows.push_back(mps_check());
  rows.push_back(nvcc_check());
  return rows;
}

Result<void> check_confines(const std::vector<Check>& checks) {
  std::string missing;
  for (const Check& check : checks) {
    if (!check.needed || check.state != CheckState::lacks) continue;
    append(missing, "{}{} (for {})", missing.empty() ? "" : "; ", check.name, check.used_by);
  }
  if (missing.empty()) return {};
  return missing_capability("this machine lacks: {}", missing);
}

std::string checks_to_text(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    append(text, "{:9} {:9}  {}\n", check.name, to_string(check.state), check.found);
    if (check.state == CheckState::works) continue;
    append(text, "{:21}{}: {}\n", "", check.needed ? "needed by" : "used by", check.used_by);
    if (!check.cure.empty()) append(text, "{:21}to make it work: {}\n", "", check.cure);
  }
  return text;
}

std::string checks_to_json(const std::vector<Check>& checks, const std::string& device) {
  Json rows = Json::array();
  for (const Check& check : checks) rows.push_back(to_json(check));
  return json_text(Json{{"schema", "demarc.doctor/1"},
                        {"device", device},
                        {"confines", check_confines(checks).has_value()},
                        {"checks", std::move(rows)}},
                   2) +
         "\n";
}

}  // namespace demarc::cuda
