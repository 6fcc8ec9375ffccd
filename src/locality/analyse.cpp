// Analyses a launch by closed forms, and by the emulator where these do not suffice.
#include "demarc/locality/analyse.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "demarc/emulate/placement.hpp"
#include "demarc/ptx/address_tree.hpp"
#include "demarc/ptx/def_use.hpp"
#include "demarc/ptx/ir.hpp"
#include "follow/emulated.hpp"
#include "follow/expression.hpp"
#include "follow/row_executor.hpp"
#include "follow/slice.hpp"
#include "maps/places.hpp"
#include "predict/advice.hpp"

namespace demarc::locality {
namespace {

Result<const ptx::Function*> kernel_function(const ptx::Module& module, const std::string& name) {
  for (const ptx::Function* kernel : module.kernels())
    if (kernel->name == name) return kernel;
  std::string known;
  for (const ptx::Function* kernel : module.kernels())
    known += (known.empty() ? "" : ", ") + std::string(kernel->name);
  return invalid_input("{} has no kernel '{}'; it has: {}", module.source_name, name, known);
}

struct Symbolic {
  ClosedForm form;
  bool calls_functions = false;
  std::vector<std::string> not_followed;  // "k.ptx:44: ldx.global.f32 %f1, [%rd8];"
  std::vector<std::string> prefetches;
  // Lies outside of the buffers or is not aligned: index into the accesses.
  std::optional<std::uint16_t> misplaced;
};

// From the first byte to behind the last, in ascending order: the buffers, and the variables of the
// module.
using Extents = std::map<std::uint64_t, std::uint64_t>;

Extents extents_of(const ptx::Module& module, const std::vector<std::uint64_t>& variables,
                   const gpu::Launch& launch, const std::vector<std::uint64_t>& buffers) {
  Extents extents;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (variables[i] != 0) extents[variables[i]] = variables[i] + module.variables[i].byte_size();
  for (std::size_t i = 0; i < buffers.size(); ++i)
    extents[buffers[i]] = buffers[i] + launch.buffers[i].bytes;
  return extents;
}

// The first access of the runs that the emulator has to judge: some thread's address is in no
// buffer and no variable, or no multiple of the size.
std::optional<std::uint16_t> misplaced_access(const AccessRuns& runs, const Extents& extents) {
  constexpr std::uint64_t no_address = std::numeric_limits<std::uint64_t>::max();
  const auto inside = [&](std::uint64_t low, std::uint64_t end) {
    const auto above = extents.upper_bound(low);
    return above != extents.begin() && end <= std::prev(above)->second;
  };
  for (const Run& run : runs.runs) {
    const std::uint64_t bytes = runs.accesses[run.access].bytes;
    const auto stride = static_cast<std::uint64_t>(run.stride);
    if (bytes == 0) continue;
    if (run.address % bytes != 0 || (run.count > 1 && stride % bytes != 0)) return run.access;
    const Loop& loop = runs.loop_of(run);
    const auto trip = static_cast<std::uint64_t>(loop.stride);
    if (loop.trips > 1 && trip % bytes != 0) return run.access;
    const AddressSpan span = span_of(runs, run);
    if (span.high <= no_address - bytes && inside(span.low, span.high + bytes)) continue;
    for (std::uint32_t t = 0; t < loop.trips; ++t)
      for (std::uint32_t k = 0; k < run.count; ++k)
        if (const std::uint64_t at = run.address + trip * t + stride * k; !inside(at, at + bytes))
          return run.access;
  }
  return std::nullopt;
}

RowLimits row_limits(const gpu::KernelLaunch& kernel, const Effort& effort) {
  RowLimits limits;
  limits.all = effort.row_operations;
  constexpr std::uint64_t least = 256;  // operations that get some way into a kernel
  const std::uint64_t rows = kernel.grid.count() * kernel.block.y * kernel.block.z;
  if (effort.beginning) {
    limits.a_row = std::max(least, effort.row_operations / std::max<std::uint64_t>(rows, 1));
  } else {
    limits.max_of_row = effort.max_of_row;
    limits.max_words_of_row = 4 * effort.max_of_row;
  }
  // The end of a basic block counts as an operation, too, and need not be an instruction.
  if (effort.instruction_limit < limits.max_of_path / 2)
    limits.max_of_path = 2 * effort.instruction_limit;
  return limits;
}

// Each row of threads is followed and kept by itself.
Result<void> check_size(const gpu::KernelLaunch& kernel) {
  constexpr std::uint64_t max_rows = std::uint64_t{1} << 24U;
  const std::uint64_t of_block = std::uint64_t{kernel.block.y} * kernel.block.z;
  if (kernel.grid.count() <= max_rows / of_block) return {};
  return invalid_input(
      "kernel '{}': {} blocks with {} rows of threads each; locality is found for launches of at "
      "most {} rows",
      kernel.kernel, kernel.grid.count(), of_block, max_rows);
}

Result<Symbolic> follow_kernel(const ptx::Module& module, const gpu::Launch& launch,
                               const gpu::KernelLaunch& kernel, const Effort& effort,
                               const Progress& progress) {
  DEMARC_TRY(const ptx::Function* function, kernel_function(module, kernel.kernel));
  if (kernel.block.count() > 1024)
    return invalid_input("kernel '{}': {} threads per block; at most 1024 are possible",
                         kernel.kernel, kernel.block.count());
  if (function->directive("blocksareclusters") != nullptr) {
    return invalid_input(
        "{}:{}: kernel '{}' is launched in a grid of clusters (.blocksareclusters); locality is "
        "found for grids of blocks",
        module.source_name, function->line, kernel.kernel);
  }
  if (!effort.beginning) DEMARC_CHECK(check_size(kernel));
  if (kernel.arguments.size() != function->parameters.size())
    return invalid_input("kernel '{}' takes {} arguments, but the launch gives {}", kernel.kernel,
                         function->parameters.size(), kernel.arguments.size());
  const std::vector<std::uint64_t> addresses = gpu::default_addresses(launch);
  LeafValues leaves;
  leaves.variables = emulate::global_variable_addresses(module);
  for (const gpu::Argument& argument : kernel.arguments)
    leaves.parameters.push_back(gpu::pack_argument(argument, addresses));

  const ptx::Cfg cfg(function->body);
  const Slice slice = slice_kernel(module, *function, cfg, leaves);
  if (slice.accesses.size() >= 0xffff)
    return invalid_input("kernel '{}' has {} memory instructions, more than 65534", kernel.kernel,
                         slice.accesses.size());
  Symbolic result;
  result.calls_functions = slice.calls_functions;
  const auto named = [&](std::uint32_t i) {
    const ptx::Instruction& instruction = function->body.instructions[i];
    return fmt::format("{}:{}: {}", module.source_name, instruction.line,
                       module.text_of(instruction));
  };
  for (const std::uint32_t i : slice.not_followed) result.not_followed.push_back(named(i));
  for (const std::uint32_t i : slice.prefetches) result.prefetches.push_back(named(i));
  result.form = follow_rows(slice, kernel.grid, kernel.block, row_limits(kernel, effort), progress);
  result.misplaced =
      misplaced_access(result.form.runs, extents_of(module, leaves.variables, launch, addresses));

  const ptx::DefUse def_use(function->body, cfg);
  for (std::size_t a = 0; a < slice.accesses.size(); ++a) {
    Access& access = result.form.runs.accesses[a];
    access.expression = address_expression(
        module, *function, ptx::trace_address(*function, def_use, access.index, {20'000}));
    access.access_class = !result.form.closed[a] ? AccessClass::data_dependent
                          : slice.in_loop[a]     ? AccessClass::loop_affine
                          : slice.guarded[a]     ? AccessClass::guarded_affine
                                                 : AccessClass::affine;
  }
  return result;
}

// Drops accesses that have no runs.
void keep(AccessRuns& runs, const std::vector<bool>& kept_accesses) {
  std::vector<std::uint16_t> number(runs.accesses.size(), 0);
  std::vector<Access> kept;
  for (std::size_t a = 0; a < runs.accesses.size(); ++a) {
    if (!kept_accesses[a]) continue;
    number[a] = static_cast<std::uint16_t>(kept.size());
    kept.push_back(runs.accesses[a]);
  }
  runs.accesses = std::move(kept);
  for (Run& run : runs.runs) run.access = number[run.access];
}

// Accesses through generic addresses that never led to global memory are none of ours.
void drop_silent_generic(AccessRuns& runs) {
  std::vector<bool> kept(runs.accesses.size());
  for (std::size_t a = 0; a < kept.size(); ++a) kept[a] = runs.accesses[a].space != "generic";
  for (const Run& run : runs.runs) kept[run.access] = true;
  keep(runs, kept);
}

// Closed accesses keep their closed forms; the others come from the emulator.
AccessRuns merged_runs(AccessRuns symbolic, const std::vector<bool>& closed, AccessRuns emulated) {
  AccessRuns result;
  result.grid = symbolic.grid;
  result.block = symbolic.block;
  result.accesses = std::move(emulated.accesses);
  std::erase_if(emulated.runs, [&closed](const Run& run) {
    return run.access < closed.size() && closed[run.access];
  });
  result.runs.resize(symbolic.runs.size() + emulated.runs.size());
  std::merge(symbolic.runs.begin(), symbolic.runs.end(), emulated.runs.begin(), emulated.runs.end(),
             result.runs.begin(), [](const Run& a, const Run& b) { return a.block < b.block; });
  // The two count steps differently: trips first, then the order of the text.
  const auto steps = static_cast<std::uint32_t>(result.accesses.size());
  result.loops = std::move(symbolic.loops);
  for (Loop& loop : result.loops) loop.steps = steps;
  for (Run& run : result.runs) run.step = run.request * steps + run.access;
  return result;
}

struct Gathered {
  Collected collected;
  std::size_t kernel_launch = 0;
};

std::string named(const ptx::Module& module, const Access& access) {
  return fmt::format("{}:{}: {}", module.source_name, access.line, access.instruction);
}

// The first access of the kind, of any where none is given, that has no closed form.
const Access* open_access(const Symbolic& symbolic, std::optional<AccessKind> kind) {
  const std::vector<Access>& accesses = symbolic.form.runs.accesses;
  for (std::size_t a = 0; a < accesses.size(); ++a)
    if (!symbolic.form.closed[a] && (!kind || accesses[a].kind == *kind)) return &accesses[a];
  return nullptr;
}

// --method symbolic asks for closed forms or an error: the error.
Error no_closed_form(const ptx::Module& module, const std::string& kernel, const Symbolic& symbolic,
                     std::optional<AccessKind> kind) {
  constexpr const char* way_out = "leave out --method symbolic to have the kernel emulated";
  if (symbolic.calls_functions)
    return {ErrorKind::invalid_input,
            fmt::format("kernel '{}' calls functions; {}", kernel, way_out)};
  if (symbolic.form.too_long)
    return {ErrorKind::invalid_input,
            fmt::format("kernel '{}': its threads execute too much to be followed one by one, and "
                        "it has no closed form; {}",
                        kernel, way_out)};
  if (const Access* open = open_access(symbolic, kind); open != nullptr)
    return {ErrorKind::invalid_input,
            fmt::format("{}: it depends on loaded data and has no closed form; {}",
                        named(module, *open), way_out)};
  return {ErrorKind::invalid_input,
          fmt::format("{}: may touch global memory and has no closed form; {}",
                      symbolic.not_followed.front(), way_out)};
}

void note_left_out(const Symbolic& symbolic, const std::string& reason, Collected& collected) {
  collected.left_out = static_cast<std::uint32_t>(symbolic.not_followed.size());
  for (const std::string& instruction : symbolic.not_followed)
    collected.notes.push_back(
        fmt::format("left out, may touch global memory and is not covered: {}", instruction));
  collected.notes.push_back(fmt::format(
      "{} of the kernel's instructions left out; the emulator: {}", collected.left_out, reason));
}

// The closed forms alone, without what has none.
void keep_closed(const ptx::Module& module, Symbolic& symbolic, const std::string& reason,
                 Collected& collected) {
  for (std::size_t a = 0; a < symbolic.form.closed.size(); ++a) {
    if (symbolic.form.closed[a]) continue;
    ++collected.left_out;
    collected.notes.push_back(fmt::format(
        "left out, {}: {}",
        symbolic.form.too_long ? "executed too often to be followed" : "depends on loaded data",
        named(module, symbolic.form.runs.accesses[a])));
  }
  if (!reason.empty()) collected.notes.push_back("the emulator: " + reason);
  keep(symbolic.form.runs, symbolic.form.closed);
  collected.runs = std::move(symbolic.form.runs);
}

// For a run that tells nothing about the accesses that are asked for, in words of the trace.
constexpr std::uint64_t max_words_beside = std::uint64_t{1} << 25U;

// `candidates`: launches of one kernel, largest first where none was asked for. `kind`: of the
// accesses that have to be known; all where there is none.
Result<Gathered> gather_runs(const ptx::Module& module, const gpu::Launch& launch,
                             std::vector<std::size_t> candidates, Force force,
                             std::optional<AccessKind> kind, unsigned threads, Effort effort,
                             const Progress& progress) {
  DEMARC_TRY(Symbolic symbolic,
             follow_kernel(module, launch, launch.kernels[candidates.front()], effort, progress));
  // Rows that take longer than most may never end, which the emulator finds out.
  if (force != Force::emulated && symbolic.form.too_long) {
    std::vector<std::size_t> in_order = candidates;
    std::sort(in_order.begin(), in_order.end());
    const auto ends = emulate_runs(module, launch, in_order, symbolic.form.runs.accesses, threads,
                                   effort, progress);
    const bool hangs = !ends && ends.error().kind == ErrorKind::check_failed;
    if (hangs && force == Force::automatic) return tl::unexpected(ends.error());
    if (!hangs) {
      effort.max_of_row = Effort::any_row;
      DEMARC_TRY(symbolic, follow_kernel(module, launch, launch.kernels[candidates.front()], effort,
                                         progress));
    }
  }
  Gathered result;
  Collected& collected = result.collected;
  result.kernel_launch = candidates.front();
  for (const std::string& instruction : symbolic.prefetches)
    collected.notes.push_back("a prefetch, which is not counted: " + instruction);
  const std::vector<bool>& closed = symbolic.form.closed;
  const bool all_listed_closed =
      !symbolic.calls_functions && open_access(symbolic, std::nullopt) == nullptr;
  const bool all_closed = all_listed_closed && symbolic.not_followed.empty();
  const bool enough_closed = !symbolic.calls_functions && symbolic.not_followed.empty() &&
                             open_access(symbolic, kind) == nullptr;
  if (force != Force::emulated && all_closed && !symbolic.misplaced) {
    collected.cut = symbolic.form.cut;
    collected.runs = std::move(symbolic.form.runs);
    return result;
  }
  if (force == Force::symbolic && !enough_closed)
    return tl::unexpected(
        no_closed_form(module, launch.kernels[candidates.front()].kernel, symbolic, kind));
  if (force == Force::symbolic && !symbolic.misplaced) {
    keep_closed(module, symbolic, "", collected);
    return result;
  }
  if (symbolic.form.cut)
    return missing_capability(
        "{}, and it is too long to be emulated",
        symbolic.misplaced ? "an address outside of the buffers or not aligned: " +
                                 named(module, symbolic.form.runs.accesses[*symbolic.misplaced])
                           : "its addresses have no closed form");
  // All kernels up to the one that is wanted run in the emulator.
  for (std::size_t k = 0; k <= *std::max_element(candidates.begin(), candidates.end()); ++k)
    if (!effort.beginning) DEMARC_CHECK(check_size(launch.kernels[k]));
  std::vector<Access> accesses = symbolic.form.runs.accesses;
  for (std::size_t a = 0; a < accesses.size(); ++a)
    accesses[a].source =
        force != Force::emulated && closed[a] ? Source::symbolic : Source::emulated;
  std::sort(candidates.begin(), candidates.end());
  // The emulator finds out whether threads end that closed forms were too long for.
  const bool may_hang = force == Force::automatic && symbolic.form.too_long;
  if (force != Force::emulated && enough_closed && !may_hang)
    effort.trace_words = std::min(effort.trace_words, max_words_beside);
  auto attempt = emulate_runs(module, launch, candidates, accesses, threads, effort, progress);
  if (!attempt && may_hang && attempt.error().kind == ErrorKind::check_failed)
    return tl::unexpected(attempt.error());
  if (attempt)
    collected.findings = std::move(attempt->findings);
  else if (symbolic.misplaced)
    collected.findings.push_back("an address outside of the buffers or not aligned: " +
                                 named(module, symbolic.form.runs.accesses[*symbolic.misplaced]));
  if (!attempt && attempt.error().kind == ErrorKind::invalid_input && force == Force::automatic &&
      all_listed_closed && !symbolic.not_followed.empty() && !symbolic.misplaced) {
    note_left_out(symbolic, attempt.error().message, collected);
    collected.runs = std::move(symbolic.form.runs);
    return result;
  }
  if (force == Force::symbolic ||
      (force == Force::automatic && enough_closed && (all_closed || !attempt))) {
    keep_closed(module, symbolic, attempt ? "" : attempt.error().message, collected);
    return result;
  }
  DEMARC_TRY(EmulatedRuns emulated, std::move(attempt));
  const bool any_closed = std::find(closed.begin(), closed.end(), true) != closed.end();
  if (force == Force::automatic && any_closed) {
    if (emulated.kernel_launch != result.kernel_launch) {
      DEMARC_TRY(symbolic, follow_kernel(module, launch, launch.kernels[emulated.kernel_launch],
                                         effort, progress));
    }
    collected.method = Method::mixed;
    collected.runs =
        merged_runs(std::move(symbolic.form.runs), symbolic.form.closed, std::move(emulated.runs));
  } else {
    collected.method = Method::emulated;
    collected.runs = std::move(emulated.runs);
  }
  result.kernel_launch = emulated.kernel_launch;
  drop_silent_generic(collected.runs);
  return result;
}

// The launches of the kernel to analyse: the one asked for, else all, the largest first.
Result<std::vector<std::size_t>> candidate_launches(const gpu::Launch& launch,
                                                    const Options& options) {
  std::string kernel = options.kernel;
  if (kernel.empty()) {
    // The kernel with the most threads in one launch; the first of equals.
    std::uint64_t most = 0;
    for (const gpu::KernelLaunch& one : launch.kernels) {
      const std::uint64_t threads = one.grid.count() * one.block.count();
      if (threads > most) {
        most = threads;
        kernel = one.kernel;
      }
    }
  }
  std::vector<std::size_t> found;
  for (std::size_t k = 0; k < launch.kernels.size(); ++k)
    if (launch.kernels[k].kernel == kernel) found.push_back(k);
  if (found.empty()) return invalid_input("the launch runs no kernel '{}'", kernel);
  if (options.instance != Options{}.instance) {
    if (static_cast<std::size_t>(options.instance) >= found.size())
      return invalid_input("--instance {}: kernel '{}' is launched {} times, counted from 0",
                           options.instance, kernel, found.size());
    return std::vector<std::size_t>{found[static_cast<std::size_t>(options.instance)]};
  }
  std::stable_sort(found.begin(), found.end(), [&launch](std::size_t a, std::size_t b) {
    const auto threads = [&launch](std::size_t k) {
      return launch.kernels[k].grid.count() * launch.kernels[k].block.count();
    };
    return threads(a) > threads(b);
  });
  return found;
}

}  // namespace

const char* to_string(Method method) {
  switch (method) {
    case Method::symbolic:
      return "symbolic";
    case Method::emulated:
      return "emulated";
    case Method::mixed:
      return "mixed";
  }
  return "symbolic";
}

Result<Collected> collect_runs(const ptx::Module& module, const gpu::Launch& launch,
                               std::size_t kernel_launch, Force force, unsigned threads,
                               const Progress& progress, const Effort& effort) {
  if (kernel_launch >= launch.kernels.size())
    return invalid_input("the launch has {} kernels, none with index {}", launch.kernels.size(),
                         kernel_launch);
  DEMARC_TRY(Gathered gathered, gather_runs(module, launch, {kernel_launch}, force, std::nullopt,
                                            threads, effort, progress));
  return std::move(gathered.collected);
}

Result<Analysis> analyse(const ptx::Module& module, const gpu::Launch& launch,
                         const Options& options) {
  DEMARC_TRY(const std::vector<std::size_t> candidates, candidate_launches(launch, options));
  Effort effort;
  effort.instruction_limit = options.instruction_limit;
  DEMARC_TRY(Gathered gathered, gather_runs(module, launch, candidates, options.force, options.kind,
                                            options.threads, effort, options.progress));
  const gpu::KernelLaunch& kernel = launch.kernels[gathered.kernel_launch];
  Analysis analysis;
  analysis.kernel = kernel.kernel;
  analysis.grid = kernel.grid;
  analysis.block = kernel.block;
  analysis.granularity = options.granularity;
  analysis.count = options.count;
  analysis.kind = options.kind;
  analysis.method = gathered.collected.method;
  analysis.notes = std::move(gathered.collected.notes);
  analysis.left_out = gathered.collected.left_out;
  analysis.findings = std::move(gathered.collected.findings);
  for (std::size_t k = 0; k < gathered.kernel_launch; ++k)
    if (launch.kernels[k].kernel == kernel.kernel) ++analysis.instance;
  analysis.all = std::move(gathered.collected.runs);
  report_progress(options.progress, 0.7, "requests");
  count_requests(analysis.all);
  report_progress(options.progress, 0.75, "map between blocks");
  const AccessRuns chosen = only(analysis.all, options.kind);
  analysis.inter = inter_map(chosen, options.granularity, options.count, options.max_cells);
  report_progress(options.progress, 0.9, "map between threads");
  analysis.intra = intra_map(chosen, options.granularity, options.count);
  report_progress(options.progress, 1, "maps");
  analysis.advice = advice_for(analysis);
  DEMARC_TRY(const ptx::Function* function, kernel_function(module, kernel.kernel));
  analysis.trees_json = ptx::trees_to_json(module, *function);
  for (const Access& access : analysis.all.accesses)
    if (access.texels)
      analysis.notes.push_back(fmt::format(
          "each texel counts as a request, in plain order; a card keeps the texels of an array in "
          "an order of its own, so its sectors, lines, pages and hit rates differ: {}",
          named(module, access)));
  for (const Access& access : analysis.all.accesses)
    if (access.executed == 0)
      analysis.notes.push_back(fmt::format("line {}: never executed by this launch: {}",
                                           access.line, access.instruction));
  return analysis;
}

std::uint32_t shared_bytes_of(const ptx::Module& module, const gpu::KernelLaunch& kernel) {
  std::uint64_t bytes = kernel.dynamic_shared_bytes;
  const auto add = [&bytes](const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables)
      if (variable.space == ptx::StateSpace::shared && !variable.is_repeated)
        bytes += variable.byte_size();
  };
  if (const ptx::Function* function = module.find_function(kernel.kernel))
    add(function->body.variables);
  add(module.variables);
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace demarc::locality
