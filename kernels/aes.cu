// AES-256 of blocks of 16 bytes in place (FIPS 197, electronic code book), one a thread; the S-box
// and the key schedule are read from memory. A word holds one column of the state, row 0 in its low
// byte.
#include "demarc_kernel.cuh"

constexpr int rounds = 14;

static __device__ __forceinline__ unsigned doubled(unsigned bytes) {
  return ((bytes & 0x7f7f7f7fu) << 1) ^ (((bytes >> 7) & 0x01010101u) * 0x1bu);
}

static __device__ __forceinline__ unsigned turned(unsigned word, int bits) {
  return (word >> bits) | (word << (32 - bits));
}

// Each byte of a column becomes 2, 3, 1, 1 times itself and those below it.
static __device__ __forceinline__ unsigned mixed(unsigned column) {
  const unsigned next = turned(column, 8);
  return doubled(column ^ next) ^ next ^ turned(column, 16) ^ turned(column, 24);
}

// Substituted bytes of four columns, shifted: row r comes from the column r to the right.
static __device__ __forceinline__ unsigned substituted(const unsigned char* box, unsigned c0,
                                                       unsigned c1, unsigned c2, unsigned c3) {
  return box[c0 & 255u] | box[(c1 >> 8) & 255u] << 8 | box[(c2 >> 16) & 255u] << 16 |
         static_cast<unsigned>(box[c3 >> 24]) << 24;
}

DEMARC_KERNEL aes256(uint4* data, const unsigned char* box, const unsigned* keys, int blocks) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= blocks) return;
  uint4 s = data[i];
  s = make_uint4(s.x ^ keys[0], s.y ^ keys[1], s.z ^ keys[2], s.w ^ keys[3]);
  for (int round = 1; round < rounds; ++round) {
    const unsigned* key = keys + 4 * round;
    s = make_uint4(mixed(substituted(box, s.x, s.y, s.z, s.w)) ^ key[0],
                   mixed(substituted(box, s.y, s.z, s.w, s.x)) ^ key[1],
                   mixed(substituted(box, s.z, s.w, s.x, s.y)) ^ key[2],
                   mixed(substituted(box, s.w, s.x, s.y, s.z)) ^ key[3]);
  }
  const unsigned* key = keys + 4 * rounds;
  data[i] = make_uint4(
      substituted(box, s.x, s.y, s.z, s.w) ^ key[0], substituted(box, s.y, s.z, s.w, s.x) ^ key[1],
      substituted(box, s.z, s.w, s.x, s.y) ^ key[2], substituted(box, s.w, s.x, s.y, s.z) ^ key[3]);
}
