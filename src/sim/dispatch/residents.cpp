#include "dispatch/residents.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace demarc::sim {
namespace {

struct AdvanceArgs {
  float* work;
  const std::uint32_t* count;
  const float* step;
  std::uint32_t n_sms;
  std::uint32_t stride;
  CompletionHit* hits;
};

std::size_t advance_plain(const AdvanceArgs& a) {
  std::size_t hits = 0;
  for (std::uint32_t sm = 0; sm < a.n_sms; ++sm) {
    const float step = a.step[sm];
    for (std::uint32_t lane = 0; lane < a.count[sm]; lane += Residents::lanes) {
      float* work = a.work + std::size_t{sm} * a.stride + lane;
      std::uint32_t mask = 0;
      for (std::uint32_t i = 0; i < Residents::lanes; ++i) {
        work[i] -= step;
        mask |= static_cast<std::uint32_t>(work[i] <= 0.0F) << i;
      }
      a.hits[hits] = {sm, lane, mask};
      hits += mask != 0 ? 1U : 0U;
    }
  }
  return hits;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) std::size_t advance_avx2(const AdvanceArgs& a) {
  std::size_t hits = 0;
  const __m256 zero = _mm256_setzero_ps();
  for (std::uint32_t sm = 0; sm < a.n_sms; ++sm) {
    const __m256 step = _mm256_broadcast_ss(a.step + sm);
    float* work = a.work + std::size_t{sm} * a.stride;
    for (std::uint32_t lane = 0; lane < a.count[sm]; lane += Residents::lanes) {
      const __m256 left = _mm256_sub_ps(_mm256_loadu_ps(work + lane), step);
      _mm256_storeu_ps(work + lane, left);
      const auto mask =
          static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(left, zero, _CMP_LE_OQ)));
      a.hits[hits] = {sm, lane, mask};
      hits += mask != 0 ? 1U : 0U;
    }
  }
  return hits;
}

__attribute__((target("avx2"))) void steps_avx2(const float* sm_cost, float memory_cost,
                                                float* step, std::size_t count) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 memory = _mm256_set1_ps(memory_cost);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 cost = _mm256_add_ps(_mm256_loadu_ps(sm_cost + i), memory);
    _mm256_storeu_ps(step + i, _mm256_div_ps(one, _mm256_add_ps(one, cost)));
  }
  for (; i < count; ++i) step[i] = 1.0F / (1.0F + (sm_cost[i] + memory_cost));
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

}  // namespace

Residents::Residents(std::uint32_t n_sms)
    : n_sms_(n_sms),
      work_(std::size_t{n_sms} * stride_, nothing),
      group_(std::size_t{n_sms} * stride_),
      count_(n_sms),
      hits_(std::size_t{n_sms} + 1) {}

void Residents::widen() {
  const std::uint32_t wider = stride_ * 2;
  std::vector<float> work(std::size_t{n_sms_} * wider, nothing);
  std::vector<Group> group(std::size_t{n_sms_} * wider);
  for (std::size_t sm = 0; sm < n_sms_; ++sm) {
    for (std::size_t i = 0; i < count_[sm]; ++i) {
      work[sm * wider + i] = work_[sm * stride_ + i];
      group[sm * wider + i] = group_[sm * stride_ + i];
    }
  }
  work_ = std::move(work);
  group_ = std::move(group);
  stride_ = wider;
  hits_.resize(std::size_t{n_sms_} * (wider / lanes) + 1);
}

const std::vector<CompletionHit>& Residents::advance(const float* step, std::size_t& hit_count) {
  const AdvanceArgs args{work_.data(), count_.data(), step, n_sms_, stride_, hits_.data()};
#if defined(__x86_64__)
  hit_count = has_avx2() ? advance_avx2(args) : advance_plain(args);
#else
  hit_count = advance_plain(args);
#endif
  return hits_;
}

void compute_steps(const float* sm_cost, float memory_cost, float* step, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx2()) {
    steps_avx2(sm_cost, memory_cost, step, count);
    return;
  }
#endif
  for (std::size_t i = 0; i < count; ++i) step[i] = 1.0F / (1.0F + (sm_cost[i] + memory_cost));
}

}  // namespace demarc::sim
