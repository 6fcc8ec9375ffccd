// Makes a launch ready on a GPU, runs it, and looks at what it computed.
#include "gpu/resident_launch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "demarc/base/hash.hpp"
#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/fused.hpp"
#include "demarc/ptx/grid_part.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t threads_of_an_sm = 2048;  // the most of any compute capability

double element_of(gpu::ScalarType type, const std::byte* at) {
  gpu::Scalar scalar{type, 0};
  std::memcpy(&scalar.bits, at, gpu::size_of(type));
  return gpu::to_double(scalar);
}

// The kernels of a launch, each once. `resident`: the threads of a persistent grid at most, 0 where
// grids are launched as they are.
std::vector<cuda::KernelUse> uses_of(const gpu::Launch& launch, bool fused,
                                     std::uint64_t resident) {
  std::vector<cuda::KernelUse> uses;
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    const std::string name = fused ? "demarc_fused" : kernel.kernel;
    auto use = std::find_if(uses.begin(), uses.end(),
                            [&](const cuda::KernelUse& one) { return one.kernel == name; });
    if (use == uses.end()) use = uses.insert(uses.end(), {name, resident, 1});
    if (resident == 0) {
      use->threads = std::max(use->threads, kernel.grid.count() * kernel.block.count());
    }
    use->block_threads =
        std::max(use->block_threads, static_cast<std::uint32_t>(kernel.block.count()));
  }
  return uses;
}

bool is_overlapped(Launches launches) {
  return launches == Launches::overlapped || launches == Launches::overlapped_graph;
}

// Kernels that can be launched in slices. A module that has others is not wrong, but the mode lacks
// it.
Result<ptx::Module> sliceable(const ptx::Module& module) {
  auto part = ptx::rewrite_grid_part(module);
  if (part) return part;
  return missing_capability("it cannot be cut into slices: {}", part.error().message);
}

// One step for each launch, in the form that a fused kernel reads.
Result<std::vector<ptx::FusedStep>> fused_steps(const gpu::Launch& launch,
                                                const ptx::Module& module,
                                                std::span<const std::uint64_t> addresses) {
  const auto kernels = module.kernels();
  std::vector<ptx::FusedStep> steps;
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const ptx::Function* f) {
      return f->name == kernel.kernel;
    });
    if (found == kernels.end()) {
      return invalid_input("{}: no kernel '{}'", launch.ptx, kernel.kernel);
    }
    if (kernel.block.count() % 32 != 0) {
      return missing_capability(
          "{}: blocks of {} threads cannot be fused; their size must be a multiple of 32",
          kernel.kernel, kernel.block.count());
    }
    DEMARC_TRY(const auto offsets, ptx::fused_offsets(**found));
    ptx::FusedStep step;
    step.kernel = static_cast<std::uint32_t>(found - kernels.begin());
    step.grid = {kernel.grid.x, kernel.grid.y, kernel.grid.z};
    step.block = {kernel.block.x, kernel.block.y, kernel.block.z};
    step.blocks = static_cast<std::uint32_t>(kernel.grid.count());
    for (std::size_t i = 0; i < kernel.arguments.size() && i < offsets.size(); ++i) {
      const auto bytes = gpu::pack_argument(kernel.arguments[i], addresses);
      std::memcpy(step.arguments.data() + offsets[i], bytes.data(), bytes.size());
    }
    steps.push_back(step);
  }
  return steps;
}

}  // namespace

ResidentLaunch::~ResidentLaunch() {
  if (graph_ != nullptr && !gpu_->stuck()) (void)gpu_->api().cuGraphExecDestroy(graph_);
}

Result<std::unique_ptr<ResidentLaunch>> ResidentLaunch::make(
    const cuda::GpuPointer& gpu, MemorySource& memory,
    std::shared_ptr<const SupportKernels> support, LoadedLaunch loaded, const LaunchForm& form,
    const cuda::Stream& stream) {
  auto self = std::unique_ptr<ResidentLaunch>(new ResidentLaunch(gpu, memory, std::move(support)));
  self->loaded_ = std::move(loaded);
  auto ready = self->make_ready(form, stream);
  // Memory that goes back to a pool is not written any more.
  auto idle = stream.wait();
  DEMARC_CHECK(ready);
  DEMARC_CHECK(idle);
  return self;
}

Result<void> ResidentLaunch::make_ready(const LaunchForm& form, const cuda::Stream& stream) {
  DEMARC_CHECK(place_buffers());
  DEMARC_CHECK(load_kernels(form));
  DEMARC_CHECK(fill_buffers(stream));
  if (form.neighbour) return {};
  return find_written(stream);
}

Result<void> ResidentLaunch::place_buffers() {
  std::vector<std::uint64_t> addresses;
  for (const gpu::Buffer& buffer : loaded_.launch.buffers) {
    Buffer placed;
    placed.words = (buffer.bytes + 3) / 4;
    DEMARC_TRY(placed.placed, memory_->place(placed.words * 4));
    addresses.push_back(placed.placed->address());
    buffers_.push_back(std::move(placed));
  }
  DEMARC_TRY(result_, memory_->place(256));
  initial_ = std::move(loaded_.contents);
  if (initial_) return {};
  DEMARC_TRY(auto contents, gpu::initial_memory(loaded_.launch, addresses, gpu::Zeros::left_out));
  initial_ = std::make_shared<const gpu::Memory>(std::move(contents));
  return {};
}

Result<void> ResidentLaunch::fill_buffers(const cuda::Stream& stream) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    DEMARC_CHECK(fill(*buffers_[i].placed, i, stream));
  }
  return {};
}

bool ResidentLaunch::begins_as_zeros(std::size_t buffer) const {
  return loaded_.launch.buffers[buffer].fill.kind == gpu::FillKind::zero;
}

// The buffer's first content, and zeros up to the next whole word.
std::vector<std::uint32_t> ResidentLaunch::first_words(std::size_t buffer) const {
  std::vector<std::uint32_t> words(buffers_[buffer].words);
  const auto& content = initial_->at(buffer);
  if (!content.empty()) std::memcpy(words.data(), content.data(), content.size());
  return words;
}

// Zeros are made where they lie: a neighbour's memory may be larger than the host's.
Result<void> ResidentLaunch::fill(PlacedBuffer& to, std::size_t buffer,
                                  const cuda::Stream& stream) const {
  if (begins_as_zeros(buffer)) return support_->zero(stream, to, buffers_[buffer].words);
  const auto words = first_words(buffer);
  return to.upload(words.data(), words.size() * 4);
}

Result<void> ResidentLaunch::load_kernels(const LaunchForm& form) {
  const gpu::Launch& launch = loaded_.launch;
  const bool fused =
      form.launches == Launches::fused && launch.kernels.size() > 1 && !form.affine_sms;
  const bool overlapped = is_overlapped(form.launches);
  as_graph_ = form.launches == Launches::graph || form.launches == Launches::overlapped_graph;
  const bool stamped = form.stamps && !as_graph_;
  if (overlapped && gpu_->compute_capability().major < 9) {
    return missing_capability("{}: overlapped launches need compute capability 9.0", gpu_->name());
  }
  DEMARC_TRY(const auto original, ptx::parse_whole(loaded_.ptx, launch.ptx));
  ptx::Module code = original;
  if (form.affine_sms) {
    DEMARC_TRY(code, ptx::rewrite_affine(code));
  } else if (fused) {
    DEMARC_TRY(code, ptx::rewrite_fused(code));
  } else if (form.gives_way_to) {
    DEMARC_TRY(code, sliceable(code));
  }
  if (stamped || overlapped) {
    DEMARC_TRY(code, ptx::rewrite_timed(code, {stamped, overlapped}));
  }
  const std::uint64_t resident = form.affine_sms || fused ? gpu_->sm_count() * threads_of_an_sm : 0;
  DEMARC_TRY(auto program, memory_->load(code, uses_of(launch, fused, resident)));
  const cuda::Module& module = program->module();
  if (fused) {
    DEMARC_CHECK(add_fused(form, module, original));
  } else {
    for (const gpu::KernelLaunch& kernel : launch.kernels) {
      DEMARC_CHECK(add_kernel(form, module, kernel));
    }
  }
  modules_.push_back(std::move(program));
  if (!stamped) return {};
  const std::size_t bytes = stamped_runs * kernels_.size() * ptx::stamp_bytes;
  DEMARC_TRY(stamps_, memory_->place(bytes));
  const std::vector<std::byte> zeros(bytes);
  return stamps_->upload(zeros.data(), bytes);
}

Result<void> ResidentLaunch::add_kernel(const LaunchForm& form, const cuda::Module& module,
                                        const gpu::KernelLaunch& kernel) {
  DEMARC_TRY(auto function, module.function(kernel.kernel));
  cuda::LaunchShape shape = cuda::shape_of(kernel);
  shape.overlapped = is_overlapped(form.launches);
  DEMARC_CHECK(function.allow_dynamic_shared(shape.shared_bytes));
  std::vector<std::uint64_t> addresses;
  for (const Buffer& buffer : buffers_) addresses.push_back(buffer.placed->address());
  std::vector<std::vector<std::byte>> arguments;
  for (const gpu::Argument& argument : kernel.arguments) {
    arguments.push_back(gpu::pack_argument(argument, addresses));
  }
  kernels_.push_back({std::move(function), shape, std::move(arguments)});
  if (form.gives_way_to) return make_sliced(form, kernels_.back());
  if (!form.affine_sms) return {};
  return make_affine(form, gpu_->sm_count(), kernels_.back());
}

// The steps, and one launch of as many blocks as the part's SMs hold.
Result<void> ResidentLaunch::add_fused(const LaunchForm& form, const cuda::Module& module,
                                       const ptx::Module& original) {
  if (form.own_sms == 0) {
    return missing_capability(
        "fused launches wait for each other's blocks and need a part with SMs of its own");
  }
  const gpu::Launch& launch = loaded_.launch;
  std::vector<std::uint64_t> addresses;
  for (const Buffer& buffer : buffers_) addresses.push_back(buffer.placed->address());
  DEMARC_TRY(const auto steps, fused_steps(launch, original, addresses));
  DEMARC_TRY(auto function, module.function("demarc_fused"));
  cuda::LaunchShape shape;
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    shape.block[0] = std::max(shape.block[0], static_cast<std::uint32_t>(kernel.block.count()));
    shape.shared_bytes = std::max(shape.shared_bytes, kernel.dynamic_shared_bytes);
  }
  DEMARC_TRY(const auto resident, function.blocks_per_sm(shape.block[0], shape.shared_bytes));
  shape.grid[0] = std::max(resident, 1U) * form.own_sms;
  DEMARC_TRY(auto table, memory_->place(steps.size() * sizeof steps[0]));
  DEMARC_CHECK(table->upload(steps.data(), steps.size() * sizeof steps[0]));
  DEMARC_TRY(auto state, memory_->place(ptx::fused_state_bytes));
  const std::array<std::byte, ptx::fused_state_bytes> zeros{};
  DEMARC_CHECK(state->upload(zeros.data(), zeros.size()));
  const auto bytes_of = [](const auto& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  };
  kernels_.push_back(
      {std::move(function),
       shape,
       {bytes_of(table->address()), bytes_of(static_cast<std::uint32_t>(steps.size())),
        bytes_of(state->address())}});
  queues_.push_back(std::move(table));
  queues_.push_back(std::move(state));
  return {};
}

// The persistent grid and the parameters that rewrite_affine() added.
Result<void> ResidentLaunch::make_affine(const LaunchForm& form, std::uint32_t sms,
                                         Kernel& kernel) {
  ptx::AffineQueue queue;
  queue.sms = *form.affine_sms;
  DEMARC_TRY(auto placed, memory_->place(sizeof queue));
  DEMARC_CHECK(placed->upload(&queue, sizeof queue));
  const auto push = [&kernel](const auto& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    kernel.arguments.push_back(std::move(bytes));
  };
  push(placed->address());
  for (const std::uint32_t extent : kernel.shape.grid) push(extent);
  queues_.push_back(std::move(placed));
  const auto& block = kernel.shape.block;
  DEMARC_TRY(const auto resident, kernel.function.blocks_per_sm(block[0] * block[1] * block[2],
                                                                kernel.shape.shared_bytes));
  kernel.shape.grid[0] = std::max(resident, 1U) * sms;
  kernel.shape.grid[1] = kernel.shape.grid[2] = 1;
  return {};
}

// Buffers whose digest a run changes get a copy to be restored from. Two runs from fresh inputs
// tell whether the outputs repeat to the bit.
Result<void> ResidentLaunch::find_written(const cuda::Stream& stream) {
  std::vector<std::uint64_t> before;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    DEMARC_TRY(const std::uint64_t d, digest(stream, i));
    if (d != digest_of(first_words(i), static_cast<std::uint32_t>(i))) {
      return check_failed("buffer '{}' of '{}' does not read back as it was written",
                          loaded_.launch.buffers[i].name, loaded_.launch.name);
    }
    before.push_back(d);
  }
  DEMARC_CHECK(enqueue(stream));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    DEMARC_TRY(const std::uint64_t after, digest(stream, i));
    if (after == before[i] && !loaded_.launch.buffers[i].output) continue;
    DEMARC_TRY(buffers_[i].pristine, memory_->place(buffers_[i].words * 4));
    DEMARC_CHECK(fill(*buffers_[i].pristine, i, stream));
  }
  DEMARC_TRY(const std::uint64_t first, output_digest(stream));
  DEMARC_CHECK(restore(stream));
  DEMARC_CHECK(enqueue(stream));
  DEMARC_TRY(const std::uint64_t second, output_digest(stream));
  exact_ = first == second;
  if (!exact_) {
    DEMARC_TRY(expected_, read_outputs());
  }
  initial_.reset();
  written_known_ = true;
  return {};
}

Result<void> ResidentLaunch::enqueue(const cuda::Stream& stream, std::uint32_t run) const {
  if (!as_graph_) return enqueue_kernels(stream, run);
  if (graph_ == nullptr) {
    DEMARC_CHECK(capture(stream));
  }
  return gpu_->check(gpu_->api().cuGraphLaunch(graph_, stream.handle()), "cannot launch a graph");
}

Result<void> ResidentLaunch::capture(const cuda::Stream& stream) const {
  const cuda::DriverApi& api = gpu_->api();
  if (api.cuStreamBeginCapture_v2 == nullptr || api.cuGraphInstantiateWithFlags == nullptr) {
    return missing_capability("{}: the driver has no graphs", gpu_->name());
  }
  DEMARC_CHECK(
      gpu_->check(api.cuStreamBeginCapture_v2(stream.handle(), cuda::cu_capture_thread_local),
                  "cannot capture a graph"));
  const auto enqueued = enqueue_kernels(stream, 0);
  cuda::CuGraph graph = nullptr;
  DEMARC_CHECK(gpu_->check(api.cuStreamEndCapture(stream.handle(), &graph), "capturing a graph"));
  auto made = enqueued ? gpu_->check(api.cuGraphInstantiateWithFlags(&graph_, graph, 0),
                                     "cannot make a graph ready")
                       : enqueued;
  (void)api.cuGraphDestroy(graph);
  return made;
}

Result<void> ResidentLaunch::enqueue_kernels(const cuda::Stream& stream, std::uint32_t run) const {
  std::size_t place = std::size_t{run} * kernels_.size();
  for (const Kernel& kernel : kernels_) {
    std::vector<void*> pointers;
    for (const std::vector<std::byte>& argument : kernel.arguments) {
      pointers.push_back(const_cast<std::byte*>(argument.data()));
    }
    std::uint64_t stamp = stamps_ ? stamps_->address() + place * ptx::stamp_bytes : 0;
    pointers.push_back(&stamp);  // read only by kernels that take stamps
    ++place;
    DEMARC_CHECK(kernel.slice_blocks != 0
                     ? enqueue_slices(stream, kernel, std::move(pointers))
                     : cuda::launch_raw(stream, kernel.function, kernel.shape, pointers.data()));
  }
  return {};
}

Result<std::vector<RunTime>> ResidentLaunch::run_times(std::uint32_t runs) const {
  std::vector<RunTime> out;
  if (!stamps_) return out;
  constexpr std::size_t words = ptx::stamp_bytes / 8;
  std::vector<std::uint64_t> all(runs * kernels_.size() * words);
  DEMARC_CHECK(stamps_->download(all.data(), all.size() * 8));
  for (std::uint32_t run = 0; run < runs; ++run) {
    RunTime time;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      const auto one =
          ptx::stamped_time(std::span(all).subspan((run * kernels_.size() + k) * words, words));
      if (k == 0) begin = one.begin_ns;
      end = std::max(end, one.end_ns);
      time.kernels_ns += static_cast<double>(one.end_ns) - static_cast<double>(one.begin_ns);
    }
    time.span_ns = static_cast<double>(end) - static_cast<double>(begin);
    out.push_back(time);
  }
  return out;
}

Result<void> ResidentLaunch::restore(const cuda::Stream& stream) const {
  for (const Buffer& buffer : buffers_) {
    if (!buffer.pristine) continue;
    DEMARC_CHECK(support_->copy(stream, *buffer.placed, *buffer.pristine, buffer.words));
  }
  return {};
}

Result<std::uint64_t> ResidentLaunch::digest(const cuda::Stream& stream, std::size_t buffer) {
  DEMARC_CHECK(stream.wait());
  std::uint64_t sum = 0;
  DEMARC_CHECK(result_->upload(&sum, sizeof sum));
  DEMARC_CHECK(support_->digest(stream, *buffers_[buffer].placed, buffers_[buffer].words, *result_,
                                static_cast<std::uint32_t>(buffer)));
  DEMARC_CHECK(stream.wait());
  DEMARC_CHECK(result_->download(&sum, sizeof sum));
  return sum;
}

Result<std::uint64_t> ResidentLaunch::output_digest(const cuda::Stream& stream) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].pristine) continue;
    DEMARC_TRY(const std::uint64_t one, digest(stream, i));
    all = hash_of(all, one);
  }
  return all;
}

Result<std::vector<std::vector<std::byte>>> ResidentLaunch::read_outputs() const {
  std::vector<std::vector<std::byte>> all;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    std::vector<std::byte> bytes;
    if (loaded_.launch.buffers[i].output) {
      bytes.resize(buffers_[i].words * 4);
      DEMARC_CHECK(buffers_[i].placed->download(bytes.data(), bytes.size()));
    }
    all.push_back(std::move(bytes));
  }
  return all;
}

// Where the outputs differ from `expected` by more than the launch's check allows.
Result<std::string> ResidentLaunch::difference(
    const std::vector<std::vector<std::byte>>& expected) {
  DEMARC_TRY(const auto seen, read_outputs());
  const gpu::Check& check = loaded_.launch.check;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const gpu::Buffer& buffer = loaded_.launch.buffers[i];
    const std::size_t size = gpu::size_of(buffer.element);
    for (std::size_t at = 0; at + size <= expected[i].size(); at += size) {
      const double x = element_of(buffer.element, seen[i].data() + at);
      const double y = element_of(buffer.element, expected[i].data() + at);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (std::abs(x - y) <= check.absolute + check.relative * std::abs(y)) continue;
      return fmt::format("element {} of '{}' is {}, but its first run gave {}", at / size,
                         buffer.name, x, y);
    }
  }
  return std::string();
}

Result<Outputs> ResidentLaunch::checked_run(const cuda::Stream& stream) {
  if (!written_known_) {
    DEMARC_CHECK(fill_buffers(stream));
    DEMARC_CHECK(find_written(stream));
  }
  DEMARC_CHECK(restore(stream));
  DEMARC_CHECK(enqueue(stream));
  Outputs out;
  out.exact = exact_;
  DEMARC_TRY(out.digest, output_digest(stream));
  if (!exact_) {
    DEMARC_TRY(out.mismatch, difference(expected_));
  }
  return out;
}

}  // namespace demarc::study
