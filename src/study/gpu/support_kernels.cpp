// The kernels that every lane has beside its workload, and their digest computed on the host.
#include "gpu/support_kernels.hpp"

#include "demarc/base/hash.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::study {
namespace {

constexpr std::uint32_t support_blocks = 512;
constexpr std::uint32_t support_threads = 256;

cuda::LaunchShape support_shape() {
  return cuda::LaunchShape::line(support_blocks, support_threads);
}

}  // namespace

const char* support_kernels_ptx() {
  return R"(.version 7.0
.target sm_60
.address_size 64

.visible .entry demarc_zero(.param .u64 p_data, .param .u64 p_words)
{
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [p_data];
	ld.param.u64 %rd2, [p_words];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mov.u32 %r4, %nctaid.x;
	mad.lo.u32 %r5, %r1, %r2, %r3;
	mul.lo.u32 %r6, %r4, %r2;
	cvt.u64.u32 %rd3, %r5;
	cvt.u64.u32 %rd4, %r6;
	mov.u32 %r7, 0;
zero_next:
	setp.ge.u64 %p1, %rd3, %rd2;
	@%p1 bra zero_done;
	shl.b64 %rd5, %rd3, 2;
	add.u64 %rd6, %rd1, %rd5;
	st.global.u32 [%rd6], %r7;
	add.u64 %rd3, %rd3, %rd4;
	bra zero_next;
zero_done:
	ret;
}

.visible .entry demarc_copy(.param .u64 p_target, .param .u64 p_source, .param .u64 p_words)
{
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<12>;
	ld.param.u64 %rd1, [p_target];
	ld.param.u64 %rd2, [p_source];
	ld.param.u64 %rd3, [p_words];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mov.u32 %r4, %nctaid.x;
	mad.lo.u32 %r5, %r1, %r2, %r3;
	mul.lo.u32 %r6, %r4, %r2;
	cvt.u64.u32 %rd4, %r5;
	cvt.u64.u32 %rd5, %r6;
copy_next:
	setp.ge.u64 %p1, %rd4, %rd3;
	@%p1 bra copy_done;
	shl.b64 %rd6, %rd4, 2;
	add.u64 %rd7, %rd2, %rd6;
	add.u64 %rd8, %rd1, %rd6;
	ld.global.u32 %r7, [%rd7];
	st.global.u32 [%rd8], %r7;
	add.u64 %rd4, %rd4, %rd5;
	bra copy_next;
copy_done:
	ret;
}

.visible .entry demarc_digest(.param .u64 p_data, .param .u64 p_words, .param .u64 p_result,
                              .param .u32 p_salt)
{
	.reg .pred %p<2>;
	.reg .b32 %r<10>;
	.reg .b64 %rd<20>;
	ld.param.u64 %rd1, [p_data];
	ld.param.u64 %rd2, [p_words];
	ld.param.u64 %rd3, [p_result];
	ld.param.u32 %r8, [p_salt];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mov.u32 %r4, %nctaid.x;
	mad.lo.u32 %r5, %r1, %r2, %r3;
	mul.lo.u32 %r6, %r4, %r2;
	cvt.u64.u32 %rd4, %r5;
	cvt.u64.u32 %rd5, %r6;
	cvt.u64.u32 %rd12, %r8;
	mov.u64 %rd6, 0;
digest_next:
	setp.ge.u64 %p1, %rd4, %rd2;
	@%p1 bra digest_done;
	shl.b64 %rd7, %rd4, 2;
	add.u64 %rd7, %rd1, %rd7;
	ld.global.u32 %r7, [%rd7];
	cvt.u64.u32 %rd8, %r7;
	mul.lo.u64 %rd9, %rd4, 0x9E3779B97F4A7C15;
	add.u64 %rd8, %rd8, %rd9;
	add.u64 %rd8, %rd8, %rd12;
	shr.u64 %rd10, %rd8, 30;
	xor.b64 %rd8, %rd8, %rd10;
	mul.lo.u64 %rd8, %rd8, 0xBF58476D1CE4E5B9;
	shr.u64 %rd10, %rd8, 27;
	xor.b64 %rd8, %rd8, %rd10;
	mul.lo.u64 %rd8, %rd8, 0x94D049BB133111EB;
	shr.u64 %rd10, %rd8, 31;
	xor.b64 %rd8, %rd8, %rd10;
	add.u64 %rd6, %rd6, %rd8;
	add.u64 %rd4, %rd4, %rd5;
	bra digest_next;
digest_done:
	red.global.add.u64 [%rd3], %rd6;
	ret;
}
)";
}

std::uint64_t digest_word(std::uint64_t index, std::uint32_t word, std::uint32_t salt) {
  return stirred(word + index * 0x9e3779b97f4a7c15U + salt);
}

std::uint64_t digest_of(std::span<const std::uint32_t> words, std::uint32_t salt) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i) sum += digest_word(i, words[i], salt);
  return sum;
}

Result<SupportKernels> SupportKernels::load(const MemorySource& memory) {
  constexpr std::uint64_t threads = std::uint64_t{support_blocks} * support_threads;
  const cuda::KernelUse uses[] = {{"demarc_zero", threads, support_threads},
                                  {"demarc_copy", threads, support_threads},
                                  {"demarc_digest", threads, support_threads}};
  DEMARC_TRY(const auto code, ptx::parse_whole(support_kernels_ptx(), "support kernels"));
  DEMARC_TRY(auto program, memory.load(code, uses));
  DEMARC_TRY(auto zero, program->module().function("demarc_zero"));
  DEMARC_TRY(auto copy, program->module().function("demarc_copy"));
  DEMARC_TRY(auto digest, program->module().function("demarc_digest"));
  return SupportKernels(std::move(program), std::move(zero), std::move(copy), std::move(digest));
}

Result<void> SupportKernels::zero(const cuda::Stream& stream, const PlacedBuffer& data,
                                  std::uint64_t words) const {
  return cuda::launch(stream, zero_, support_shape(), data.address(), words);
}

Result<void> SupportKernels::copy(const cuda::Stream& stream, const PlacedBuffer& target,
                                  const PlacedBuffer& source, std::uint64_t words) const {
  return cuda::launch(stream, copy_, support_shape(), target.address(), source.address(), words);
}

Result<void> SupportKernels::digest(const cuda::Stream& stream, const PlacedBuffer& data,
                                    std::uint64_t words, const PlacedBuffer& result,
                                    std::uint32_t salt) const {
  return cuda::launch(stream, digest_, support_shape(), data.address(), words, result.address(),
                      salt);
}

}  // namespace demarc::study
