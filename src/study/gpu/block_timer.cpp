// Launches kernels that hold their SM, and reads what they noted.
#include "gpu/block_timer.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "demarc/card/masks.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::study {
namespace {

constexpr std::uint32_t hold_threads = 1024;
constexpr std::uint64_t record_words = 3;  // SM, beginning, end

// Each block waits until `nanoseconds` have passed since it began; thread 0 of block b writes
// record b.
constexpr const char* hold_ptx = R"(.version 7.0
.target sm_60
.address_size 64

.visible .entry demarc_hold(.param .u64 p_records, .param .u64 p_nanoseconds)
{
	.reg .pred %p<3>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<12>;
	mov.u64 %rd1, %globaltimer;
	ld.param.u64 %rd2, [p_records];
	ld.param.u64 %rd3, [p_nanoseconds];
	cvta.to.global.u64 %rd2, %rd2;
	mov.u32 %r1, %tid.x;
hold_on:
	mov.u64 %rd4, %globaltimer;
	sub.u64 %rd5, %rd4, %rd1;
	setp.lt.u64 %p1, %rd5, %rd3;
	@%p1 bra hold_on;
	setp.ne.u32 %p2, %r1, 0;
	@%p2 bra hold_done;
	mov.u32 %r2, %ctaid.x;
	mul.wide.u32 %rd6, %r2, 24;
	add.u64 %rd7, %rd2, %rd6;
	mov.u32 %r3, %smid;
	cvt.u64.u32 %rd8, %r3;
	st.global.u64 [%rd7], %rd8;
	st.global.u64 [%rd7+8], %rd1;
	st.global.u64 [%rd7+16], %rd4;
hold_done:
	ret;
}
)";

// What holds every stream back until all launches are enqueued: one block on the card's own stream.
constexpr std::uint64_t gate_ns = 3'000'000;

void read_records(const std::vector<std::uint64_t>& records, BlockRun& run) {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::size_t at = 0;
  for (; at + record_words < records.size(); at += record_words) {  // the gate's comes last
    first = std::min(first, records[at + 1]);
  }
  at = 0;
  for (std::uint32_t k = 0; k < run.kernels.size(); ++k) {
    for (std::uint32_t block = 0; block < run.kernels[k].blocks; ++block, at += record_words) {
      run.blocks.push_back({k, block, gpu::SmIndex(records[at]),
                            static_cast<double>(records[at + 1] - first) / 1e3,
                            static_cast<double>(records[at + 2] - first) / 1e3});
    }
  }
}

}  // namespace

Result<BlockTimer> BlockTimer::make(const cuda::CardPointer& card) {
  DEMARC_TRY(auto module, cuda::Module::load(card->gpu(), hold_ptx, "block timer"));
  DEMARC_TRY(auto hold, module.function("demarc_hold"));
  return BlockTimer(card, std::move(module), std::move(hold));
}

Result<BlockRun> BlockTimer::run(std::string name, std::vector<PlannedKernel> planned) const {
  const cuda::GpuPointer& gpu = card_->gpu();
  BlockRun run;
  run.name = std::move(name);
  std::uint64_t blocks = 1;  // the gate's record comes last
  std::map<std::uint32_t, cuda::Stream> streams;
  for (PlannedKernel& one : planned) {
    if (one.tpcs) one.kernel.sms = gpu::sms_of(card_->topology(), *one.tpcs);
    blocks += one.kernel.blocks;
    run.kernels.push_back(one.kernel);
    if (streams.contains(one.kernel.stream)) continue;
    DEMARC_TRY(auto stream, cuda::Stream::create(gpu, one.kernel.priority));
    streams.emplace(one.kernel.stream, std::move(stream));
  }
  DEMARC_TRY(const auto records, cuda::DeviceBuffer::allocate(gpu, blocks * record_words * 8));
  DEMARC_TRY(const auto gate_open, cuda::Event::create(gpu));
  DEMARC_CHECK(cuda::launch(card_->stream(), hold_, cuda::LaunchShape::line(1, 32),
                            records.address() + (blocks - 1) * record_words * 8, gate_ns));
  DEMARC_CHECK(gate_open.record(card_->stream()));
  for (const auto& [number, stream] : streams) {
    DEMARC_CHECK(
        gpu->check(gpu->api().cuStreamWaitEvent(stream.handle(), gate_open.handle(), 0), "a gate"));
  }
  std::uint64_t at = records.address();
  for (const PlannedKernel& one : planned) {
    std::optional<cuda::NextMask> mask;
    if (one.tpcs) {
      DEMARC_TRY(auto next, cuda::NextMask::set(card_, *one.tpcs));
      mask.emplace(std::move(next));
    }
    DEMARC_CHECK(cuda::launch(streams.at(one.kernel.stream), hold_,
                              cuda::LaunchShape::line(one.kernel.blocks, hold_threads), at,
                              static_cast<std::uint64_t>(one.kernel.hold_us * 1e3)));
    at += one.kernel.blocks * record_words * 8;
  }
  for (const auto& [number, stream] : streams) {
    DEMARC_CHECK(stream.wait());
  }
  DEMARC_CHECK(card_->stream().wait());
  DEMARC_TRY(const auto words, records.read<std::uint64_t>(blocks * record_words));
  read_records(words, run);
  run.holds = faults_of(run).empty();
  return run;
}

}  // namespace demarc::study
