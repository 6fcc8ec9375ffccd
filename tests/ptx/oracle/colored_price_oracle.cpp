// What colours add to the machine code of every bundled kernel and of Triton's modules: printed,
// and no more than the limits. A change that makes it less lowers them.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "colored_forms.hpp"
#include "compilers.hpp"
#include "demarc/base/files.hpp"
#include "demarc/ptx/parser.hpp"
#include "paths.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx::test {
namespace {

// A function's code is filled up to a multiple of eight instructions. Where fewer were added than
// none, ptxas writes out fewer trips of a loop.
struct Cost {
  double instructions = 0;      // added, per access
  std::uint32_t registers = 0;  // registers of the kernel with most
  std::uint64_t spilled_bytes = 0;
};
struct Price {
  const char* module;
  Cost parity;      // a half of an H100
  Cost remainders;  // a half of an H200, known when the module is rewritten
  Cost at_load;     // and set when it is loaded
};

// For the module `text`, made into `colored`.
Cost cost_of(const std::string& text, const std::string& colored, const std::string& what) {
  std::size_t accesses = 0;
  for (std::size_t at = colored.find(".reg .b64 %demarc_a"); at != std::string::npos;
       at = colored.find(".reg .b64 %demarc_a", at + 1)) {
    ++accesses;
  }
  EXPECT_NE(accesses, 0U) << what;
  const MachineCodeFigures before = machine_code_figures(text);
  const MachineCodeFigures after = machine_code_figures(colored);
  const double added =
      static_cast<double>(after.instructions) - static_cast<double>(before.instructions);
  const Cost cost{added / static_cast<double>(accesses), after.registers, after.spilled_bytes};
  fmt::print(
      "{:<30} {:>4} accesses, {:+.1f} instructions each, registers {} -> {}, spills {} -> {}\n",
      what, accesses, cost.instructions, before.registers, cost.registers, before.spilled_bytes,
      cost.spilled_bytes);
  return cost;
}

bool is_within(const Cost& cost, const Cost& most) {
  return cost.instructions <= most.instructions && cost.registers <= most.registers &&
         cost.spilled_bytes <= most.spilled_bytes;
}

std::string row_of(const Cost& cost) {
  const double rounded = std::ceil(cost.instructions * 10) / 10;
  const std::string spills = cost.spilled_bytes == 0 ? "" : fmt::format(", {}", cost.spilled_bytes);
  return fmt::format("{{{:.1f}, {}{}}}", rounded, cost.registers, spills);
}

void expect_price(const std::string& text, const Price& most) {
  const std::string name = most.module;
  const auto module = parse_whole(text, name);
  ASSERT_TRUE(module) << module.error().message;
  const auto by_parity = color::rewrite_parities(*module, {{0xc4000}, 1}, with_places);
  const auto known = color::rewrite_remainders(*module, remainders(), with_places);
  const auto later = color::rewrite_remainders(*module, color::RemainderShape{8, 13, 9}, at_load);
  for (const auto* made : {&by_parity, &known, &later}) {
    ASSERT_TRUE(*made) << made->error().message;
    const auto accepted = check_accepted((*made)->kernels, name);
    ASSERT_TRUE(accepted) << accepted.error().message;
  }
  const Cost parity = cost_of(text, *by_parity->module.text, name + " parity");
  const Cost remainder = cost_of(text, *known->module.text, name + " remainders");
  const Cost loaded = cost_of(text, *later->module.text, name + " at load");
  EXPECT_TRUE(is_within(parity, most.parity) && is_within(remainder, most.remainders) &&
              is_within(loaded, most.at_load))
      << fmt::format("{{\"{}\", {}, {}, {}}},\n", name, row_of(parity), row_of(remainder),
                     row_of(loaded));
}

// clang-format off
constexpr Price triton_prices[] = {
    {"attention_sm80", {5.0, 228}, {17.7, 252}, {18.7, 254}},
    {"attention_sm90", {5.0, 192}, {17.4, 168}, {18.4, 176}},
    {"dropout_sm80", {4.5, 40}, {20.0, 48}, {21.0, 48}},
    {"fp8_scale_sm100", {4.5, 32}, {19.5, 32}, {20.0, 42}},
    {"fp8_scale_sm90", {4.5, 32}, {19.5, 32}, {20.0, 32}},
    {"histogram_sm100", {5.0, 18}, {19.0, 32}, {20.0, 32}},
    {"matmul_sm90", {5.1, 255, 664}, {17.6, 255, 740}, {18.7, 255, 760}},
    {"softmax_sm75", {5.0, 32}, {19.0, 40}, {20.0, 40}},
};

// As nvcc makes them.
constexpr Price bundled_prices[] = {
    {"aes", {5.6, 32}, {16.0, 32}, {16.6, 40}},
    {"backprop", {2.4, 30}, {9.6, 32}, {10.8, 32}},
    {"bfs", {5.0, 26}, {16.5, 32}, {17.5, 40}},
    {"bitonic", {3.4, 28}, {10.7, 28}, {11.4, 28}},
    {"cfd", {4.9, 54}, {19.4, 54}, {21.1, 52}},
    {"conv2d", {6.4, 26}, {15.2, 32}, {16.0, 32}},
    {"convsep", {4.7, 32}, {16.0, 38}, {16.3, 32}},
    {"fft", {2.0, 48}, {17.5, 44}, {16.5, 54}},
    {"fir", {-20.3, 32}, {-9.4, 40}, {-7.2, 40}},
    {"fwt", {3.2, 20}, {12.0, 32}, {13.6, 32}},
    {"gauge", {5.6, 32}, {19.1, 32}, {19.9, 40}},
    {"gaussian", {4.0, 18}, {15.2, 32}, {16.0, 32}},
    {"histogram", {4.0, 15}, {24.0, 21}, {24.0, 26}},
    {"hotspot", {5.4, 21}, {21.4, 29}, {21.4, 29}},
    {"kmeans", {-3.2, 26}, {7.1, 32}, {8.7, 40}},
    {"leukocyte", {7.1, 32}, {24.0, 32}, {24.5, 32}},
    {"matmul", {-4.6, 34}, {6.4, 52}, {8.0, 44}},
    {"maxpool", {-7.1, 32}, {2.7, 32}, {4.5, 32}},
    {"nbody", {5.4, 32}, {21.4, 32}, {24.0, 32}},
    {"nn", {4.0, 11}, {20.0, 16}, {24.0, 16}},
    {"reduction", {4.0, 14}, {24.0, 21}, {24.0, 26}},
    {"relu", {4.0, 10}, {20.0, 20}, {20.0, 22}},
    {"scalarprod", {-4.3, 32}, {10.2, 32}, {11.7, 32}},
    {"scan", {5.4, 16}, {21.4, 24}, {24.0, 24}},
    {"sparse", {-8.3, 30}, {4.5, 32}, {5.8, 32}},
    {"stencil", {6.0, 32}, {18.8, 40}, {20.2, 40}},
    {"stencil9", {3.5, 32}, {16.0, 40}, {16.9, 42}},
    {"stress", {0.0, 32}, {13.4, 32}, {14.9, 32}},
    {"transpose", {5.5, 40}, {21.5, 40}, {23.0, 38}},
    {"vecadd", {5.4, 14}, {18.7, 26}, {21.4, 28}},
};
// clang-format on

// Code of older targets as the driver compiles it for the cards that have colours.
std::string for_these_cards(std::string text) {
  constexpr std::string_view named = ".target sm_";
  const std::size_t at = text.find(named) + named.size();
  if (const std::string number = text.substr(at, 2); number == "75" || number == "80") {
    text.replace(at, 2, "90");
  }
  return text;
}

// The names of the files with PTX in a folder, without what is behind the full stop.
std::set<std::string> ptx_names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".ptx") names.insert(entry.path().stem());
  }
  return names;
}

template <std::size_t count>
std::set<std::string> names_of(const Price (&prices)[count]) {
  std::set<std::string> names;
  for (const Price& price : prices) names.insert(price.module);
  return names;
}

TEST(ColoredPrice, of_triton_s_modules_is_within_its_limits) {
  const auto folder = demarc::test::source_dir() / "tests" / "ptx" / "corpus" / "triton";
  for (const std::string& name : ptx_names_in(folder)) {
    Price most{name.c_str(), {}, {}, {}};
    for (const Price& price : triton_prices) {
      if (name == price.module) most = price;
    }
    expect_price(for_these_cards(read_file(folder / (name + ".ptx")).value()), most);
  }
  EXPECT_EQ(names_of(triton_prices), ptx_names_in(folder));
}

TEST(ColoredPrice, of_every_bundled_kernel_is_within_its_limits) {
  const auto folder = demarc::test::source_dir() / "kernels" / "ptx";
  for (const std::string& name : ptx_names_in(folder)) {
    Price most{name.c_str(), {}, {}, {}};
    for (const Price& price : bundled_prices) {
      if (name == price.module) most = price;
    }
    expect_price(for_these_cards(read_file(folder / (name + ".ptx")).value()), most);
  }
  EXPECT_EQ(names_of(bundled_prices), ptx_names_in(folder));
}

// For an H100; the colours of both masks are the same price.
TEST(ColoredPrice, of_quarters_by_parities_is_seven_instructions) {
  const auto file = demarc::test::source_dir() / "kernels" / "ptx" / "cfd.ptx";
  const std::string text = for_these_cards(read_file(file).value());
  const auto module = parse_whole(text, "cfd.ptx").value();
  for (std::uint32_t color = 0; color < 4; ++color) {
    const auto made = color::rewrite_parities(module, {{0x18a000, 0xc4000}, color}, with_places);
    EXPECT_LE(cost_of(text, *made->module.text, fmt::format("cfd quarter {}", color)).instructions,
              7.1);
  }
}

// Pages of both constants lie in groups of two.
TEST(ColoredPrice, of_pages_in_groups_is_two_instructions_more) {
  const auto file = demarc::test::source_dir() / "kernels" / "ptx" / "cfd.ptx";
  const std::string text = for_these_cards(read_file(file).value());
  const auto module = parse_whole(text, "cfd.ptx").value();
  const auto cost = [&](const color::Parities& parities, const char* what) {
    const auto made = color::rewrite_parities(module, parities, with_places);
    return cost_of(text, *made->module.text, what).instructions;
  };
  const double groups = cost({{0x2c4000}, 1, {21}}, "cfd in groups of two pages");
  EXPECT_LE(groups, 7.0);
  EXPECT_LE(groups - cost({{0xc4000}, 1}, "cfd on pages of one constant"), 2.1);
}

TEST(ColoredPrice, of_quotients_that_need_no_shift_is_less_by_an_instruction) {
  const auto file = demarc::test::source_dir() / "kernels" / "ptx" / "cfd.ptx";
  const auto module = parse_whole(for_these_cards(read_file(file).value()), "cfd.ptx").value();
  const auto instructions = [&](color::RemainderShape shape) {
    return machine_code_figures(*color::rewrite_remainders(module, shape, at_load)->module.text)
        .instructions;
  };
  constexpr std::uint64_t accesses = 46;
  EXPECT_LE(instructions({8, 13, 9, false}) + accesses * 4 / 5, instructions({8, 13, 9}));
}

// What ColoredKernel::shared_accesses counts on.
TEST(ColoredPrice, of_accesses_with_one_address_is_paid_once) {
  const auto cost_of_eight = [](int apart, const color::RemainderAddressing* remainders,
                                std::uint64_t shared) {
    std::string text =
        ".version 8.3\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;\n"
        "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %rd1, %r1, 64, %rd1;\n";
    for (int i = 0; i < 8; ++i) {
      text += fmt::format("ld.volatile.global.u32 %r2, [%rd1+{}];\nadd.u32 %r1, %r1, %r2;\n",
                          i * apart);
    }
    text += "st.volatile.global.u32 [%rd1], %r1;\nret;\n}\n";
    const auto module = parse_whole(text, "eight.ptx").value();
    ColoredOptions options = with_places;
    options.counts_shared = true;
    const auto made = remainders == nullptr
                          ? color::rewrite_parities(module, {{0xc4000}, 1}, options)
                          : color::rewrite_remainders(module, *remainders, options);
    EXPECT_EQ(made->kernels[0].accesses, 9U);
    EXPECT_EQ(made->kernels[0].shared_accesses, shared);
    return machine_code_figures(*made->module.text).instructions -
           machine_code_figures(text).instructions;
  };
  const color::RemainderAddressing by_remainders = remainders();
  EXPECT_LE(cost_of_eight(0, nullptr, 8), 8U);
  EXPECT_LE(cost_of_eight(0, &by_remainders, 8), 24U);
  // Neighbours.
  EXPECT_LE(cost_of_eight(4, nullptr, 7), 32U);
  EXPECT_LE(cost_of_eight(4, &by_remainders, 7), 64U);
  // Each on its own.
  EXPECT_GE(cost_of_eight(1 << 14, nullptr, 1), 40U);
  EXPECT_GE(cost_of_eight(256, &by_remainders, 1), 80U);
}

}  // namespace
}  // namespace demarc::ptx::test
