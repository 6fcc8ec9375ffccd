// What a card reads from textures and surfaces, to be compared with the emulator.
//   nvcc -arch=sm_90 -o fetches fetches.cu && ./fetches FOLDER
// writes into FOLDER, of each case, a launch file (with fetches.ptx beside it, by nvcc -ptx) and
// NAME.card, what its outputs hold after the kernel has run on the card. `./fetches FOLDER
// launches` needs no card and writes no NAME.card. What an H200 wrote is kept in
// tests/emulate/textures.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define THREAD const unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void fetch_1d(float4* out, const float4* at, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex1D<float4>(t, at[i].x);
}
extern "C" __global__ void fetch_2d(float4* out, const float4* at, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex2D<float4>(t, at[i].x, at[i].y);
}
extern "C" __global__ void fetch_2d_words(uint4* out, const float4* at, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex2D<uint4>(t, at[i].x, at[i].y);
}
extern "C" __global__ void fetch_3d(float4* out, const float4* at, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex3D<float4>(t, at[i].x, at[i].y, at[i].z);
}
extern "C" __global__ void fetch_1d_layered(float4* out, const float4* at, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex1DLayered<float4>(t, at[i].x, static_cast<int>(i % 4) - 1);
}
extern "C" __global__ void fetch_2d_layered(float4* out, const float4* at, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex2DLayered<float4>(t, at[i].x, at[i].y, static_cast<int>(i % 4) - 1);
}
extern "C" __global__ void gather_2d(float4* out, const float4* at, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex2Dgather<float4>(t, at[i].x, at[i].y, 0);
}
extern "C" __global__ void fetch_linear(float4* out, const float4*, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex1Dfetch<float4>(t, static_cast<int>(i) - 4);
}
extern "C" __global__ void fetch_linear_words(uint4* out, const float4*, cudaTextureObject_t t) {
  THREAD;
  out[i] = tex1Dfetch<uint4>(t, static_cast<int>(i) - 4);
}
// Without nvcc's help: whole texels of an array.
extern "C" __global__ void fetch_texels_2d(uint4* out, const float4*, cudaTextureObject_t t) {
  THREAD;
  asm volatile("tex.2d.v4.u32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
               : "=r"(out[i].x), "=r"(out[i].y), "=r"(out[i].z), "=r"(out[i].w)
               : "l"(t), "r"(static_cast<int>(i % 8) - 2), "r"(static_cast<int>(i / 8) - 2));
}
extern "C" __global__ void sizes_2d(uint4* out, const float4*, cudaTextureObject_t t) {
  THREAD;
  asm volatile("txq.width.b32 %0, [%2]; txq.height.b32 %1, [%2];"
               : "=r"(out[i].x), "=r"(out[i].y)
               : "l"(t));
}
extern "C" __global__ void read_zero(uint4* out, const float4*, cudaSurfaceObject_t s) {
  THREAD;
  out[i].x = surf2Dread<unsigned>(s, (static_cast<int>(i % 8) - 2) * 4, static_cast<int>(i / 8) - 2,
                                  cudaBoundaryModeZero);
}
extern "C" __global__ void read_clamp(uint4* out, const float4*, cudaSurfaceObject_t s) {
  THREAD;
  const uint2 read = surf2Dread<uint2>(s, (static_cast<int>(i % 8) - 2) * 8,
                                       static_cast<int>(i / 8) - 2, cudaBoundaryModeClamp);
  out[i] = make_uint4(read.x, read.y, 0, 0);
}
extern "C" __global__ void write_zero(uint4*, const float4*, cudaSurfaceObject_t s) {
  THREAD;
  surf2Dwrite<unsigned>(1000 + i, s, (static_cast<int>(i % 8) - 2) * 4, static_cast<int>(i / 8) - 2,
                        cudaBoundaryModeZero);
}

namespace {

constexpr int threads = 64;
constexpr unsigned output_bytes = threads * 16;

struct Case {
  const char* name;
  const void* kernel;
  const char* kernel_name;
  const char* shape;
  const char* type;
  int channels;
  int width, height, depth;  // depth: planes or layers
  const char* address;       // null: a surface, or linear memory
  bool filters, normalized, fractions;
};

#define KERNEL(name) reinterpret_cast<const void*>(&name), #name
const Case cases[] = {
    // clang-format off
    {"point-clamp",          KERNEL(fetch_1d),           "1d",         "f32", 1, 5, 1, 1, "clamp",  false, false, false},
    {"point-border",         KERNEL(fetch_1d),           "1d",         "f32", 4, 5, 1, 1, "border", false, false, false},
    {"point-wrap",           KERNEL(fetch_1d),           "1d",         "f32", 1, 5, 1, 1, "wrap",   false, true,  false},
    {"point-mirror",         KERNEL(fetch_1d),           "1d",         "f32", 1, 5, 1, 1, "mirror", false, true,  false},
    {"point-wrap-texels",    KERNEL(fetch_1d),           "1d",         "f32", 1, 5, 1, 1, "wrap",   false, false, false},
    {"linear-clamp",         KERNEL(fetch_1d),           "1d",         "f32", 1, 5, 1, 1, "clamp",  true,  false, false},
    {"linear-border",        KERNEL(fetch_1d),           "1d",         "f32", 1, 5, 1, 1, "border", true,  false, false},
    {"linear-wrap",          KERNEL(fetch_1d),           "1d",         "f32", 1, 5, 1, 1, "wrap",   true,  true,  false},
    {"linear-mirror",        KERNEL(fetch_1d),           "1d",         "f32", 1, 5, 1, 1, "mirror", true,  true,  false},
    {"linear-f16",           KERNEL(fetch_1d),           "1d",         "f16", 2, 5, 1, 1, "clamp",  true,  false, false},
    {"plane-point",          KERNEL(fetch_2d),           "2d",         "f32", 4, 4, 4, 1, "clamp",  false, false, false},
    {"plane-linear",         KERNEL(fetch_2d),           "2d",         "f32", 1, 4, 4, 1, "clamp",  true,  false, false},
    {"plane-linear-wrap",    KERNEL(fetch_2d),           "2d",         "f32", 2, 4, 4, 1, "wrap",   true,  true,  false},
    {"plane-u8-fractions",   KERNEL(fetch_2d),           "2d",         "u8",  4, 4, 4, 1, "clamp",  false, false, true},
    {"plane-u8-linear",      KERNEL(fetch_2d),           "2d",         "u8",  4, 4, 4, 1, "clamp",  true,  false, true},
    {"plane-i8-fractions",   KERNEL(fetch_2d),           "2d",         "i8",  2, 4, 4, 1, "border", false, false, true},
    {"plane-u16-linear",     KERNEL(fetch_2d),           "2d",         "u16", 1, 4, 4, 1, "clamp",  true,  false, true},
    {"plane-i16-fractions",  KERNEL(fetch_2d),           "2d",         "i16", 1, 4, 4, 1, "clamp",  false, false, true},
    {"plane-u8-words",       KERNEL(fetch_2d_words),     "2d",         "u8",  4, 4, 4, 1, "clamp",  false, false, false},
    {"plane-i16-words",      KERNEL(fetch_2d_words),     "2d",         "i16", 2, 4, 4, 1, "border", false, false, false},
    {"plane-u32-words",      KERNEL(fetch_2d_words),     "2d",         "u32", 1, 4, 4, 1, "clamp",  false, false, false},
    {"plane-texels",         KERNEL(fetch_texels_2d),    "2d",         "u32", 1, 4, 4, 1, "clamp",  false, false, false},
    {"plane-sizes",          KERNEL(sizes_2d),           "2d",         "f32", 1, 4, 3, 1, "clamp",  false, false, false},
    {"plane-gather",         KERNEL(gather_2d),          "2d",         "f32", 1, 4, 4, 1, "clamp",  false, false, false},
    {"plane-gather-border",  KERNEL(gather_2d),          "2d",         "f32", 1, 4, 4, 1, "border", false, false, false},
    {"solid-point",          KERNEL(fetch_3d),           "3d",         "f32", 1, 4, 3, 2, "clamp",  false, false, false},
    {"solid-linear",         KERNEL(fetch_3d),           "3d",         "f32", 1, 4, 3, 2, "border", true,  false, false},
    {"layers-1d",            KERNEL(fetch_1d_layered),   "1d-layered", "f32", 1, 5, 1, 2, "clamp",  false, false, false},
    {"layers-2d",            KERNEL(fetch_2d_layered),   "2d-layered", "f32", 1, 4, 4, 2, "clamp",  true,  false, false},
    {"memory-f32",           KERNEL(fetch_linear),       "linear",     "f32", 1, 20, 1, 1, nullptr, false, false, false},
    {"memory-u8",            KERNEL(fetch_linear_words), "linear",     "u8",  4, 20, 1, 1, nullptr, false, false, false},
    {"memory-i16-fractions", KERNEL(fetch_linear),       "linear",     "i16", 2, 20, 1, 1, nullptr, false, false, true},
    {"point-clamp-normalized", KERNEL(fetch_1d), "1d", "f32", 1, 5, 1, 1, "clamp", false, true, false},
    {"point-border-normalized", KERNEL(fetch_1d), "1d", "f32", 1, 5, 1, 1, "border", false, true, false},
    {"linear-clamp-normalized", KERNEL(fetch_1d), "1d", "f32", 1, 5, 1, 1, "clamp", true, true, false},
    {"linear-border-normalized", KERNEL(fetch_1d), "1d", "f32", 1, 5, 1, 1, "border", true, true, false},
    {"plane-linear-border", KERNEL(fetch_2d), "2d", "f32", 1, 4, 4, 1, "border", true, false, false},
    {"plane-f16-linear", KERNEL(fetch_2d), "2d", "f16", 4, 4, 4, 1, "mirror", true, true, false},
    {"plane-i8-linear", KERNEL(fetch_2d), "2d", "i8", 2, 4, 4, 1, "clamp", true, false, true},
    {"plane-i16-linear", KERNEL(fetch_2d), "2d", "i16", 2, 4, 4, 1, "clamp", true, false, true},
    {"plane-gather-fractions", KERNEL(gather_2d), "2d", "u8", 2, 4, 4, 1, "clamp", false, false, true},
    {"solid-u8-linear", KERNEL(fetch_3d), "3d", "u8", 4, 4, 3, 2, "wrap", true, true, true},
    {"surface-read-zero",    KERNEL(read_zero),          "2d",         "u32", 1, 4, 4, 1, nullptr,  false, false, false},
    {"surface-read-clamp",   KERNEL(read_clamp),         "2d",         "u32", 2, 4, 4, 1, nullptr,  false, false, false},
    {"surface-write-zero",   KERNEL(write_zero),         "2d",         "u32", 1, 4, 4, 1, nullptr,  false, false, false},
    // clang-format on
};

bool is(const char* text, const char* other) {
  return std::strcmp(text, other) == 0;
}
bool is_linear(const Case& c) {
  return is(c.shape, "linear");
}
bool is_surface(const Case& c) {
  return c.address == nullptr && !is_linear(c);
}
bool is_layered(const Case& c) {
  return std::strstr(c.shape, "layered") != nullptr;
}
unsigned dimensions_of(const Case& c) {
  return is_linear(c) ? 1 : static_cast<unsigned>(c.shape[0] - '0');
}
unsigned channel_bytes(const Case& c) {
  return is(c.type + 1, "8") ? 1 : is(c.type + 1, "16") ? 2 : 4;
}
unsigned texel_bytes(const Case& c) {
  return channel_bytes(c) * static_cast<unsigned>(c.channels);
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

std::vector<unsigned char> texels_of(const Case& c) {
  const auto count = static_cast<unsigned>(c.width * c.height * c.depth * c.channels);
  std::vector<unsigned char> bytes(count * channel_bytes(c));
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t mixed = (i + 1) * 2654435761U >> 7;
    std::uint32_t bits = mixed;
    if (is(c.type, "f32")) {
      const float value = static_cast<float>(mixed % 4096) / 16 - 100;
      std::memcpy(&bits, &value, 4);
    } else if (is(c.type, "f16")) {
      bits = (mixed & 0x83ffU) | (0x3400U + (i % 4) * 0x400U);  // finite, near 1
    }
    std::memcpy(bytes.data() + i * channel_bytes(c), &bits, channel_bytes(c));
  }
  return bytes;
}

// Along each dimension: from in front of it to behind it, quarters and steps finer than a weight.
std::vector<float> places_of(const Case& c) {
  std::vector<float> places(threads * 4);
  const int sizes[3] = {c.width, c.height, c.depth};
  for (int i = 0; i < threads; ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      const int step = axis == 0 ? i : (i * (axis * 6 + 5)) % threads;
      float at = -1.5F + static_cast<float>(step) * (static_cast<float>(sizes[axis]) + 3) / 64;
      if (i >= 48) at = 1 + static_cast<float>(i - 56) * (axis == 0 ? 1.0F / 1024 : 1.0F / 512);
      places[static_cast<std::size_t>(i * 4 + axis)] =
          c.normalized ? at / static_cast<float>(sizes[axis]) : at;
    }
  }
  return places;
}

void write(const std::string& path, const void* bytes, std::size_t size) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(bytes, 1, size, file) != size || std::fclose(file) != 0) {
    std::perror(path.c_str());
    std::exit(2);
  }
}

// As a launch file says it.
std::string content_of(const void* bytes, std::size_t size) {
  std::string text = "hex:";
  for (std::size_t i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(bytes)[i]);
    text += digits;
  }
  return text;
}

void write_launch(const std::string& folder, const Case& c) {
  std::string size = std::to_string(c.width);
  if (dimensions_of(c) > 1) size += ", " + std::to_string(c.height);
  if (dimensions_of(c) > 2 || is_layered(c)) size += ", " + std::to_string(c.depth);
  std::string image =
      std::string("\"buffer\": \"texels\", \"shape\": \"") + c.shape + "\", \"type\": \"" + c.type +
      "\", \"channels\": " + std::to_string(c.channels) + ", \"size\": [" + size + "]";
  if (c.address != nullptr) image += std::string(", \"address\": \"") + c.address + "\"";
  if (c.filters) image += ", \"filter\": \"linear\"";
  if (c.normalized) image += ", \"coordinates\": \"normalized\"";
  if (c.fractions) image += ", \"read\": \"normalized\"";
  const std::string name = c.name;
  const auto texels = texels_of(c);
  const std::string text =
      "{ \"schema\": \"demarc.launch/1\", \"name\": \"" + name +
      "\", \"ptx\": \"fetches.ptx\",\n  \"buffers\": [\n" +
      "    { \"name\": \"out\", \"bytes\": " + std::to_string(output_bytes) +
      ", \"output\": true },\n" +
      "    { \"name\": \"places\", \"bytes\": " + std::to_string(output_bytes) + ", \"fill\": \"" +
      content_of(places_of(c).data(), output_bytes) + "\" },\n" +
      "    { \"name\": \"texels\", \"bytes\": " + std::to_string(texels.size()) + ", \"fill\": \"" +
      content_of(texels.data(), texels.size()) +
      "\", \"output\": true } ],\n  \"launches\": [\n    { \"kernel\": \"" + c.kernel_name +
      "\", \"grid\": 1, \"block\": " + std::to_string(threads) +
      ",\n      \"args\": [\"buf:out\", \"buf:places\", { \"" +
      (is_surface(c) ? "surface" : "texture") + "\": { " + image + " } }] } ] }\n";
  write(folder + "/" + name + ".json", text.data(), text.size());
}

cudaChannelFormatDesc format_of(const Case& c) {
  const int bits = static_cast<int>(channel_bytes(c)) * 8;
  const int others = c.channels > 1 ? bits : 0;
  const int last = c.channels > 2 ? bits : 0;
  return cudaCreateChannelDesc(bits, others, last, last,
                               c.type[0] == 'f'   ? cudaChannelFormatKindFloat
                               : c.type[0] == 'u' ? cudaChannelFormatKindUnsigned
                                                  : cudaChannelFormatKindSigned);
}

cudaTextureAddressMode address_of(const Case& c) {
  if (c.address == nullptr || is(c.address, "clamp")) return cudaAddressModeClamp;
  return is(c.address, "wrap")     ? cudaAddressModeWrap
         : is(c.address, "mirror") ? cudaAddressModeMirror
                                   : cudaAddressModeBorder;
}

void run(const std::string& folder, const Case& c) {
  std::vector<unsigned char> texels = texels_of(c);
  const std::vector<float> places = places_of(c);
  void *out = nullptr, *at = nullptr, *memory = nullptr;
  check(cudaMalloc(&out, output_bytes), "cudaMalloc");
  check(cudaMalloc(&at, output_bytes), "cudaMalloc");
  check(cudaMemset(out, 0, output_bytes), "cudaMemset");
  check(cudaMemcpy(at, places.data(), output_bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  const cudaChannelFormatDesc format = format_of(c);
  cudaResourceDesc resource{};
  cudaArray_t array = nullptr;
  cudaMemcpy3DParms copy{};
  if (is_linear(c)) {
    check(cudaMalloc(&memory, texels.size()), "cudaMalloc");
    check(cudaMemcpy(memory, texels.data(), texels.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = memory;
    resource.res.linear.desc = format;
    resource.res.linear.sizeInBytes = texels.size();
  } else {
    const unsigned flags = (is_layered(c) ? cudaArrayLayered : 0U) |
                           (is_surface(c) ? cudaArraySurfaceLoadStore : 0U) |
                           (is(c.kernel_name, "gather_2d") ? cudaArrayTextureGather : 0U);
    const bool planes = dimensions_of(c) == 3 || is_layered(c);
    const cudaExtent extent =
        make_cudaExtent(static_cast<std::size_t>(c.width),
                        dimensions_of(c) > 1 ? static_cast<std::size_t>(c.height) : 0,
                        planes ? static_cast<std::size_t>(c.depth) : 0);
    check(cudaMalloc3DArray(&array, &format, extent, flags), "cudaMalloc3DArray");
    copy.srcPtr =
        make_cudaPitchedPtr(texels.data(), static_cast<std::size_t>(c.width) * texel_bytes(c),
                            static_cast<std::size_t>(c.width), static_cast<std::size_t>(c.height));
    copy.dstArray = array;
    copy.extent =
        make_cudaExtent(static_cast<std::size_t>(c.width), static_cast<std::size_t>(c.height),
                        static_cast<std::size_t>(c.depth));
    copy.kind = cudaMemcpyHostToDevice;
    check(cudaMemcpy3D(&copy), "cudaMemcpy3D");
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
  }
  unsigned long long handle = 0;
  if (is_surface(c)) {
    check(cudaCreateSurfaceObject(&handle, &resource), "cudaCreateSurfaceObject");
  } else {
    cudaTextureDesc reading{};
    // Of a dimension that the shape does not have, a border would weigh on the sum of a filter.
    for (unsigned i = 0; i < dimensions_of(c); ++i) reading.addressMode[i] = address_of(c);
    reading.filterMode = c.filters ? cudaFilterModeLinear : cudaFilterModePoint;
    reading.readMode = c.fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    reading.normalizedCoords = c.normalized ? 1 : 0;
    check(cudaCreateTextureObject(&handle, &resource, &reading, nullptr),
          "cudaCreateTextureObject");
  }
  void* arguments[] = {&out, &at, &handle};
  check(cudaLaunchKernel(c.kernel, dim3(1), dim3(threads), arguments, 0, nullptr), c.name);
  check(cudaDeviceSynchronize(), c.name);
  std::vector<unsigned char> after(output_bytes);
  check(cudaMemcpy(after.data(), out, output_bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (array != nullptr) {
    std::swap(copy.srcPtr, copy.dstPtr);
    copy.srcArray = array;
    copy.dstArray = nullptr;
    copy.kind = cudaMemcpyDeviceToHost;
    check(cudaMemcpy3D(&copy), "cudaMemcpy3D");
  }
  after.insert(after.end(), texels.begin(), texels.end());
  write(folder + "/" + c.name + ".card", after.data(), after.size());
  if (is_surface(c))
    check(cudaDestroySurfaceObject(handle), "cudaDestroySurfaceObject");
  else
    check(cudaDestroyTextureObject(handle), "cudaDestroyTextureObject");
  check(cudaFreeArray(array), "cudaFreeArray");
  for (void* place : {out, at, memory}) check(cudaFree(place), "cudaFree");
}

}  // namespace

int main(int count, char** words) {
  const bool launches_alone = count == 3 && is(words[2], "launches");
  if (count != 2 && !launches_alone) {
    std::fprintf(stderr, "usage: fetches FOLDER [launches]\n");
    return 1;
  }
  const std::string folder = words[1];
  for (const Case& c : cases) {
    write_launch(folder, c);
    if (!launches_alone) run(folder, c);
  }
  return 0;
}
