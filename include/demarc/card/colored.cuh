// Coloured memory in device code: the addresses of a buffer that lies only in some colours of the
// memory. For nvcc and for host compilers; it needs no other header.
//
//   __global__ void scale(demarc::colored_span<float, 1> x, float a) {
//     for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < x.size(); i += gridDim.x *
//     blockDim.x)
//       x[i] *= a;
//   }
//
// With one mask, an access to an element far from the last one takes about 10 additional machine
// instructions (nvcc 13.0, sm_90). If colours are remainders (an H200), the span is a
// demarc::colored_span<float, demarc::remainders>; it takes about 30, three of them loads from
// small tables. Elements must not be wider than 16 bytes; x.vector(i) reads and writes 16 aligned
// bytes at a time.
#pragma once

#if defined(__CUDACC__)
#define DEMARC_COLORED_FUNCTION __host__ __device__ __forceinline__
#else
#define DEMARC_COLORED_FUNCTION inline
#endif

namespace demarc {

// Where byte `linear` of the colours lies: after zeros are inserted at the pivots, each pivot bit
// is chosen so that the parity under its mask is that of the colour. Masks lie below bit 32; each
// pivot, a bit of its mask, occurs in no other mask (color::Parities).
template <unsigned Masks>
struct colored_layout {
  unsigned long long base = 0;   // address of the arena
  unsigned long long first = 0;  // linear position of the buffer
  unsigned mask[Masks > 0 ? Masks : 1] = {};
  unsigned pivot[Masks > 0 ? Masks : 1] = {};   // bit number, ascending
  unsigned wanted[Masks > 0 ? Masks : 1] = {};  // 0 or 1

  DEMARC_COLORED_FUNCTION unsigned long long address(unsigned long long byte) const {
    unsigned long long v = first + byte;
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (unsigned i = 0; i < Masks; ++i) v += v & (~0ULL << pivot[i]);
    unsigned pivots = 0;
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (unsigned i = 0; i < Masks; ++i) {
      pivots |= ((ones(static_cast<unsigned>(v) & mask[i]) ^ wanted[i]) & 1U) << pivot[i];
    }
    return base + (v | pivots);
  }

 private:
  DEMARC_COLORED_FUNCTION static unsigned ones(unsigned word) {
#if defined(__CUDA_ARCH__)
    return static_cast<unsigned>(__popc(word));
#else
    return static_cast<unsigned>(__builtin_popcount(word));
#endif
  }
};

// In place of the number of masks: colours are runs of remainders.
inline constexpr unsigned remainders = ~0U;

// Where byte `linear` of a run of remainders lies: color::RemainderSteps, whose words these are.
// Filled in by ColoredBuffer::layout().
template <>
struct colored_layout<remainders> {
  unsigned long long base = 0;   // address of position 0
  unsigned long long first = 0;  // linear position of the buffer, from RemainderSteps::begin on
  unsigned long long table = 0;  // address of RemainderColoring::table()
  unsigned long long pages = 0;  // address of pages[0]
  unsigned chunk_shift = 0;
  unsigned page_shift = 0;
  unsigned pattern_bits = 0;
  unsigned end = 0;
  unsigned reciprocal = 0;
  unsigned reciprocal_shift = 0;
  unsigned skipped = 0;

  DEMARC_COLORED_FUNCTION unsigned long long address(unsigned long long byte) const {
    const unsigned long long linear = first + byte;
    const unsigned long long wanted = linear >> chunk_shift;
    const unsigned v = wanted < end ? static_cast<unsigned>(wanted) : end;
    const unsigned c = v + (high(v) >> reciprocal_shift) * skipped;
    const unsigned low = entry<unsigned char>(pages + (c >> page_shift)) ^
                         entry<unsigned short>(table + 2ULL * (c & 255U)) ^
                         entry<unsigned short>(table + 512 + 2ULL * (c >> 8U & 255U));
    const unsigned chunk = (c & (~0U << pattern_bits)) ^ low;
    const unsigned inside = static_cast<unsigned>(linear) & ((1U << chunk_shift) - 1);
    return base + (static_cast<unsigned long long>(chunk) << chunk_shift | inside);
  }

 private:
  DEMARC_COLORED_FUNCTION unsigned high(unsigned v) const {
    return static_cast<unsigned>(static_cast<unsigned long long>(v) * reciprocal >> 32U);
  }
  template <class T>
  DEMARC_COLORED_FUNCTION static unsigned entry(unsigned long long at) {
#if defined(__CUDA_ARCH__)
    return __ldg(reinterpret_cast<const T*>(at));
#else
    return *reinterpret_cast<const T*>(at);
#endif
  }
};

// A pointer to elements of T in the colours of its layout. Advancing it is an addition.
template <class T, unsigned Masks>
class colored_ptr {
  static_assert(sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0,
                "an element must not straddle two chunks");

 public:
  colored_ptr() = default;
  DEMARC_COLORED_FUNCTION explicit colored_ptr(const colored_layout<Masks>& layout)
      : layout_(layout) {}

  DEMARC_COLORED_FUNCTION T* get(unsigned long long i = 0) const {
    return reinterpret_cast<T*>(layout_.address(i * sizeof(T)));
  }
  DEMARC_COLORED_FUNCTION T& operator[](unsigned long long i) const { return *get(i); }
  DEMARC_COLORED_FUNCTION T& operator*() const { return *get(); }
  DEMARC_COLORED_FUNCTION colored_ptr operator+(long long elements) const {
    colored_ptr moved = *this;
    moved.layout_.first += static_cast<unsigned long long>(elements) * sizeof(T);
    return moved;
  }
  DEMARC_COLORED_FUNCTION const colored_layout<Masks>& layout() const { return layout_; }

 private:
  colored_layout<Masks> layout_;
};

template <class T, unsigned Masks>
class colored_span {
 public:
  colored_span() = default;
  DEMARC_COLORED_FUNCTION colored_span(const colored_layout<Masks>& layout, unsigned long long size)
      : data_(layout), size_(size) {}

  DEMARC_COLORED_FUNCTION T& operator[](unsigned long long i) const { return data_[i]; }
  DEMARC_COLORED_FUNCTION unsigned long long size() const { return size_; }
  DEMARC_COLORED_FUNCTION colored_ptr<T, Masks> data() const { return data_; }

  // The i-th 16 bytes, for V = uint4, float4 and the like.
  template <class V>
  DEMARC_COLORED_FUNCTION V& vector(unsigned long long i) const {
    static_assert(sizeof(V) == 16, "a vector has 16 bytes");
    return *reinterpret_cast<V*>(data_.layout().address(i * 16));
  }

 private:
  colored_ptr<T, Masks> data_;
  unsigned long long size_ = 0;
};

}  // namespace demarc
