// Kernels that read textures and reach surfaces, and launches that give them.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "harness.hpp"

namespace demarc::emulate::test {

// Thread t: %rd2 is the address of its 16 bytes of the output; %f1 to %f3 and %r3 to %r5 are its
// three coordinates, which lie in the second buffer; %rd4 is the handle.
inline std::string image_kernel(const std::string& body) {
  return fmt::format(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 spots, .param .u64 image)
{{
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<30>;
.reg .f32 %f<9>;
.reg .b64 %rd<30>;
ld.param.u64 %rd1, [out];
ld.param.u64 %rd3, [spots];
ld.param.u64 %rd4, [image];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 16;
add.s64 %rd2, %rd1, %rd2;
mad.wide.u32 %rd3, %r1, 16, %rd3;
ld.global.f32 %f1, [%rd3];
ld.global.f32 %f2, [%rd3+4];
ld.global.f32 %f3, [%rd3+8];
mov.b32 %r3, %f1;
mov.b32 %r4, %f2;
mov.b32 %r5, %f3;
mov.b32 %r6, 0;
{}
ret;
}}
)",
                     body);
}

inline const std::string store_floats = "\nst.global.v4.f32 [%rd2], {%f4, %f5, %f6, %f7};";
inline const std::string store_words = "\nst.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13};";

inline std::string fetch_floats(const std::string& mnemonic, const std::string& coordinates) {
  return image_kernel(mnemonic + " {%f4, %f5, %f6, %f7}, [%rd4, {" + coordinates + "}];" +
                      store_floats);
}
inline std::string fetch_words(const std::string& mnemonic, const std::string& coordinates) {
  return image_kernel(mnemonic + " {%r10, %r11, %r12, %r13}, [%rd4, {" + coordinates + "}];" +
                      store_words);
}

struct Place {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
};
inline Place at(float x, float y = 0, float z = 0) {
  return {std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(y),
          std::bit_cast<std::uint32_t>(z)};
}
inline Place at_texel(std::int32_t x, std::int32_t y = 0, std::int32_t z = 0) {
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
          static_cast<std::uint32_t>(z)};
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Buffers: what each thread writes, its place, and the texels.
inline gpu::Launch image_launch(const std::vector<Place>& spots, const gpu::Image& image,
                                const std::vector<std::byte>& texels) {
  const auto threads = static_cast<std::uint32_t>(spots.size());
  gpu::Launch launch = launch_of(1, threads, std::uint64_t{16} * threads);
  std::vector<std::uint32_t> words;
  for (const Place& place : spots) words.insert(words.end(), {place.x, place.y, place.z, 0});
  for (const auto& content : {bytes_of(words), texels}) {
    gpu::Buffer buffer;
    buffer.bytes = content.size();
    buffer.fill.kind = gpu::FillKind::bytes;
    buffer.fill.bytes = content;
    launch.buffers.push_back(buffer);
  }
  gpu::Image placed = image;
  placed.buffer = 2;
  if (placed.pitch == 0) placed.pitch = placed.row_bytes();
  launch.images.push_back(placed);
  launch.kernels[0].arguments.emplace_back(gpu::BufferUse{1, 0});
  launch.kernels[0].arguments.emplace_back(gpu::ImageUse{0});
  return launch;
}

struct ImageRun {
  std::vector<std::uint32_t> words;  // four of each thread
  std::vector<std::byte> texels;     // afterwards

  [[nodiscard]] std::vector<float> floats(std::size_t channel = 0) const {
    std::vector<float> out;
    for (std::size_t i = channel; i < words.size(); i += 4)
      out.push_back(std::bit_cast<float>(words[i]));
    return out;
  }
  [[nodiscard]] std::vector<std::uint32_t> channel(std::size_t number) const {
    std::vector<std::uint32_t> out;
    for (std::size_t i = number; i < words.size(); i += 4) out.push_back(words[i]);
    return out;
  }
};

inline ImageRun run_image(const std::string& text, const gpu::Launch& launch) {
  const auto outcome = run_text(text, launch);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message) << text;
  if (!outcome) return {};
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  ImageRun run;
  run.words.resize(outcome->buffers[0].size() / 4);
  std::memcpy(run.words.data(), outcome->buffers[0].data(), run.words.size() * 4);
  run.texels = outcome->buffers[2];
  return run;
}

inline std::string image_finding(const std::string& text, const gpu::Launch& launch) {
  const auto outcome = run_text(text, launch);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  if (!outcome || outcome->findings.size() != 1) return "no finding, or several";
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::trap);
  return outcome->findings[0].detail;
}

// Texels 10, 20, 30, … of f32 in as many dimensions as sizes are given.
inline gpu::Image float_image(gpu::ImageShape shape, std::array<std::uint32_t, 3> size,
                              const gpu::Sampling& sampling, std::uint32_t layers = 1) {
  gpu::Image image;
  image.shape = shape;
  image.size = size;
  image.layers = layers;
  image.sampling = sampling;
  return image;
}
inline std::vector<std::byte> tens(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 10 * static_cast<float>(i + 1);
  return bytes_of(values);
}

// Every form that the emulator runs, for ptxas.
inline std::vector<std::string> image_forms() {
  std::vector<std::string> forms;
  const std::string layered = "%r3, %f2";
  for (const std::string& geometry :
       {std::string("1d|%f1"), std::string("2d|%f1, %f2"), std::string("3d|%f1, %f2, %f3, %f3"),
        "a1d|" + layered, std::string("a2d|%r3, %f1, %f2, %f2")}) {
    const std::size_t bar = geometry.find('|');
    const std::string name = geometry.substr(0, bar);
    const std::string spots = geometry.substr(bar + 1);
    forms.push_back(fetch_floats("tex." + name + ".v4.f32.f32", spots));
    forms.push_back(fetch_words("tex." + name + ".v4.u32.f32", spots));
    if (name.find("2d") != std::string::npos)
      forms.push_back(fetch_floats("tld4.b." + name + ".v4.f32.f32", spots));
  }
  forms.push_back(fetch_floats("tex.1d.v4.f32.s32", "%r3"));
  forms.push_back(fetch_words("tex.2d.v4.s32.s32", "%r3, %r4"));
  forms.push_back(fetch_words("tex.3d.v4.s32.s32", "%r3, %r4, %r5, %r5"));
  for (const std::string place : {"1d|%r3", "2d|%r3, %r4", "3d|%r3, %r4, %r5, %r5", "a1d|%r4, %r3",
                                  "a2d|%r5, %r3, %r4, %r4"}) {
    const std::size_t bar = place.find('|');
    const std::string name = place.substr(0, bar);
    const std::string spots = "[%rd4, {" + place.substr(bar + 1) + "}]";
    forms.push_back(image_kernel("suld.b." + name + ".b8.trap {%h1}, " + spots + ";"));
    forms.push_back(image_kernel("suld.b." + name + ".v2.b16.clamp {%h1, %h2}, " + spots + ";"));
    forms.push_back(
        image_kernel("sust.b." + name + ".v4.b32.zero " + spots + ", {%r6, %r6, %r6, %r6};"));
    forms.push_back(image_kernel("sust.b." + name + ".b64.trap " + spots + ", {%rd1};"));
    if (name[0] != 'a')
      forms.push_back(image_kernel("sured.b.add." + name + ".u32.clamp " + spots + ", %r6;"));
  }
  for (const std::string size : {"width", "height", "depth", "array_size"}) {
    if (size != "array_size") forms.push_back(image_kernel("suq." + size + ".b32 %r10, [%rd4];"));
    forms.push_back(image_kernel("txq." + size + ".b32 %r10, [%rd4];"));
  }
  return forms;
}

}  // namespace demarc::emulate::test
