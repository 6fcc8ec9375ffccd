// Tests what launch files may say, and that errors name the key and the remedy.
#include <gtest/gtest.h>

#include <cmath>

#include "demarc/launch/launch.hpp"

namespace demarc::gpu {
namespace {

constexpr std::string_view complete_file = R"json({
  "schema": "demarc.launch/1",
  "name": "sample",
  "summary": "one of everything",
  "source": "this test",
  "groups": ["a", "b"],
  "ptx": "k.ptx",
  "seed": 9,
  "parameters": { "n": 1000, "steps": 3, "bytes": "4*n" },
  "scales": { "large": { "n": 4000 } },
  "buffers": [
    { "name": "in", "bytes": "bytes", "element": "f32", "fill": "random", "low": -1, "high": 2 },
    { "name": "out", "bytes": "bytes", "element": "f32", "output": true },
    { "name": "places", "bytes": 16, "fill": { "pointers": "out", "stride": "2*n" } },
    { "name": "graph", "bytes": "8*n", "fill": { "generator": "graph_nodes", "nodes": "n", "degree": 2 } },
    { "name": "pattern", "bytes": 64, "element": "f32", "fill": [1.5, "n", -2] },
    { "name": "table", "bytes": 64, "fill": "@table.bin", "memory": "host" }
  ],
  "launches": [
    { "repeat": "i", "times": "steps", "launches": [
      { "kernel": "step", "grid": ["ceil_div(n, 256)", 2], "block": 256, "cluster": ["n/500", 2], "shared": "4*256", "registers": 40,
        "args": ["buf:in|out@i", "buf:out|in@i", "i32:n >> i"]
} ]
},
    { "kernel": "last", "grid": 1, "block": [8, 8], "args": ["buf:out+4*n-4", "f32:0.5", "f64:n"] }
  ],
  "check": {
  "reference" : "sample", "absolute" : 0.5, "relative" : 0.25
}
})json";

// `from` replaced by `to` in the complete file, which must then be refused with this message.
std::string refusal(std::string_view from, std::string_view to) {
  std::string text(complete_file);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto launch = parse_launch_json(text, "x.json");
  return launch ? "accepted" : launch.error().message;
}

TEST(LaunchFile, every_part_arrives) {
  const auto launch = parse_launch_json(complete_file, "x.json", "folder");
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->ptx, "folder/k.ptx");
  EXPECT_EQ(launch->seed, 9U);
  EXPECT_EQ(launch->groups, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(launch->buffers.size(), 6U);
  EXPECT_EQ(launch->buffers[0].bytes, 4000U);
  EXPECT_EQ(launch->buffers[0].fill.low, -1);
  EXPECT_TRUE(launch->buffers[1].output);
  EXPECT_TRUE(launch->buffers[5].host);
  EXPECT_FALSE(launch->buffers[0].host);
  EXPECT_EQ(launch->buffers[2].fill.target, 1U);
  EXPECT_EQ(launch->buffers[2].fill.stride, 2000U);
  EXPECT_EQ(launch->buffers[3].fill.parameters.at("nodes"), 1000);
  EXPECT_EQ(launch->buffers[4].fill.values, (std::vector<double>{1.5, 1000, -2}));
  EXPECT_EQ(launch->buffers[5].fill.file, "folder/table.bin");
  EXPECT_EQ(launch->check, (Check{"sample", 0.5, 0.25}));
  EXPECT_EQ(launch->kernels.front().registers, 40U);
  EXPECT_EQ(launch->kernels.back().registers, 0U);
  EXPECT_NE(refusal("\"registers\": 40", "\"registers\": 256").find(".registers"),
            std::string::npos);
}

TEST(LaunchFile, repeats_unroll_in_order_with_their_counter) {
  const auto launch = parse_launch_json(complete_file, "x.json");
  ASSERT_TRUE(launch) << launch.error().message;
  ASSERT_EQ(launch->kernels.size(), 4U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const KernelLaunch& kernel = launch->kernels[i];
    EXPECT_EQ(kernel.grid, (Dim3{4, 2, 1}));
    EXPECT_EQ(kernel.cluster, (Dim3{2, 2, 1}));
    EXPECT_EQ(kernel.dynamic_shared_bytes, 1024U);
    const std::vector<Argument> expected{BufferUse{i % 2, 0}, BufferUse{(i + 1) % 2, 0},
                                         Scalar{ScalarType::i32, 1000U >> i}};
    EXPECT_EQ(kernel.arguments, expected) << i;
  }
  const std::vector<Argument> last{BufferUse{1, 3996}, make_scalar(ScalarType::f32, 0.5),
                                   make_scalar(ScalarType::f64, 1000.0)};
  EXPECT_EQ(launch->kernels[3].arguments, last);
  EXPECT_FALSE(launch->kernels[3].cluster);
}

TEST(LaunchFile, a_scale_and_the_callers_parameters_replace_the_defaults) {
  const auto large =
      parse_launch_json(complete_file, "x.json", {}, {.scale = "large", .parameters = {}});
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(large->buffers[0].bytes, 16000U);
  const auto own = parse_launch_json(complete_file, "x.json", {},
                                     {.scale = "large", .parameters = {{"n", 500}}});
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->buffers[0].bytes, 2000U);
  EXPECT_EQ(parse_launch_json(complete_file, "x.json", {}, {.scale = "huge", .parameters = {}})
                .error()
                .message,
            "x.json.scales: there is no scale 'huge'; known are: large");
  EXPECT_EQ(parse_launch_json(complete_file, "x.json", {}, {.scale = "", .parameters = {{"m", 1}}})
                .error()
                .message,
            "x.json: the file has no parameter 'm'; it has: bytes, n, steps");
}

TEST(LaunchFile, errors_name_the_key_and_the_remedy) {
  EXPECT_EQ(refusal("demarc.launch/1", "demarc.launch/2"),
            "x.json.schema: 'demarc.launch/1' was expected, found 'demarc.launch/2'");
  EXPECT_EQ(refusal(R"("block": 256)", R"("block": 2048)"),
            "x.json: kernel 0 ('step'): a block of 2048x1x1 threads; a GPU takes at most 1024 "
            "threads, and 64 in z");
  EXPECT_EQ(refusal(R"(["n/500", 2])", "[2, 9]"),
            "x.json: kernel 0 ('step'): a cluster of 2x9x1 blocks; a GPU takes 1 to 16");
  EXPECT_EQ(refusal(R"(["n/500", 2])", "[4294967295, 4294967295, 4]"),
            "x.json: kernel 0 ('step'): a cluster of 4294967295x4294967295x4 blocks; a GPU takes 1 "
            "to 16");
  EXPECT_EQ(refusal(R"(["n/500", 2])", "0"),
            "x.json.launches[0].launches[0].cluster: 0 is not within 1 .. 4294967295");
  EXPECT_EQ(refusal("buf:in|out@i", "buf:inn|out@i"),
            "x.json.launches[0].launches[0].args[0]: there is no buffer 'inn'; known are: in, out, "
            "places, graph, "
            "pattern, table");
  EXPECT_EQ(refusal(R"("repeat": "i")", R"("repeat": "n")"),
            "x.json.launches[0].repeat: 'n' is already a parameter");
  EXPECT_EQ(refusal("i32:n >> i", "n"),
            "x.json.launches[0].launches[0].args[2]: 'n': expected TYPE:VALUE, as in i32:n, "
            "f32:1.5 or buf:NAME");
  EXPECT_EQ(refusal("i32:n >> i", "i8:n"),
            "x.json.launches[0].launches[0].args[2]: 1000 does not fit i8");
  EXPECT_EQ(refusal("+4*n-4", "+5*n"),
            "x.json: kernel 3 ('last'): offset 5000 into buffer 'out' of 4000 bytes");
  EXPECT_EQ(refusal(R"("bytes": 16)", R"("bytes": 0)"),
            "x.json.buffers[2].bytes: 0 is not within 1 .. 70368744177664");
  EXPECT_EQ(refusal(R"("name": "out")", R"("name": "in")"),
            "x.json.buffers[1]: two buffers have the name 'in'");
  EXPECT_EQ(refusal(R"("output": true)", R"("outputs": true)"),
            "x.json.buffers[1]: unknown key 'outputs'");
  EXPECT_EQ(refusal(R"("times": "steps")", R"("times": "1000000*steps")"),
            "x.json.launches[0].times: 3000000 is not within 0 .. 1000000");
}

std::string values_file(const std::string& element, const std::string& rest,
                        const std::string& argument = "f32:nan") {
  return R"({"schema": "demarc.launch/1", "ptx": "k.ptx", "buffers": [{"name": "b", "bytes": 16,
    "element": ")" +
         element + "\"," + rest +
         R"(}], "launches": [{"kernel": "k", "grid": 1, "block": 1, "args": [")" + argument +
         "\"]}]}";
}

TEST(LaunchFile, limits_are_where_they_are_said_to_be) {
  EXPECT_EQ(refusal(R"("seed": 9)", R"("seed": 0)"), "accepted");
  EXPECT_EQ(refusal(R"("seed": 9)", R"("seed": -1)"),
            "x.json.seed: -1 is not within 0 .. 9223372036854775807");
  EXPECT_EQ(parse_launch_json(values_file("f32", R"("fill": "zero")"), "x.json")->seed, 1U);
  EXPECT_EQ(refusal(R"("times": "steps")", R"("times": 0)"), "accepted");
  EXPECT_EQ(refusal(R"("times": "steps")", R"("times": "0-1")"),
            "x.json.launches[0].times: -1 is not within 0 .. 1000000");
  EXPECT_EQ(refusal(R"("block": [8, 8])", R"("block": [8, 8, 1])"), "accepted");
  EXPECT_NE(refusal(R"("block": [8, 8])", R"("block": [8, 8, 1, 1])"), "accepted");
  EXPECT_NE(refusal(R"("block": [8, 8])", R"("block": [])"), "accepted");
  EXPECT_NE(refusal(R"("block": [8, 8])", R"("block": [8, 0])"), "accepted");
  EXPECT_EQ(refusal(R"("block": [8, 8])", R"("block": [1, 1, 64])"), "accepted");
  EXPECT_NE(refusal(R"("block": [8, 8])", R"("block": [1, 1, 65])"), "accepted");
  EXPECT_EQ(refusal(R"("block": [8, 8])", R"("block": [1024])"), "accepted");
  EXPECT_NE(refusal(R"("block": [8, 8])", R"("block": [1025])"), "accepted");
  EXPECT_EQ(refusal(R"("grid": 1,)", R"("grid": [2147483647, 65535, 65535],)"), "accepted");
  EXPECT_NE(refusal(R"("grid": 1,)", R"("grid": [2147483648],)"), "accepted");
  EXPECT_NE(refusal(R"("grid": 1,)", R"("grid": [1, 65536],)"), "accepted");
  EXPECT_NE(refusal(R"("grid": 1,)", R"("grid": [1, 1, 65536],)"), "accepted");
  EXPECT_EQ(refusal(R"("shared": "4*256")", R"("shared": 232448)"), "accepted");
  EXPECT_NE(refusal(R"("shared": "4*256")", R"("shared": 232449)"), "accepted");
  EXPECT_EQ(refusal("+4*n-4", "+4*n"), "accepted") << "one behind the end is no access yet";
  EXPECT_NE(refusal("+4*n-4", "+4*n+1"), "accepted");
  EXPECT_EQ(refusal(R"("bytes": 16)", R"("bytes": 1)"), "accepted");
}

TEST(LaunchFile, memory_is_that_of_the_device_or_of_the_host) {
  EXPECT_EQ(refusal(R"("memory": "host")", R"("memory": "disk")"),
            "x.json.buffers[5].memory: 'disk' is neither device nor host");
  EXPECT_EQ(refusal(R"("memory": "host")", R"("memory": "device")"), "accepted");
}

TEST(LaunchFile, a_buffer_may_say_where_it_lies) {
  EXPECT_EQ(refusal(R"("memory": "host")", R"("address": 256)"), "accepted");
  EXPECT_EQ(refusal(R"("memory": "host")", R"("address": 257)"),
            "x.json: buffer 'table': its address 0x101 is not a multiple of 256");
  EXPECT_NE(refusal(R"("memory": "host")", R"("address": 0)"), "accepted");
  Launch launch;
  for (const std::uint64_t address : {std::uint64_t{0}, default_base_address, std::uint64_t{0}}) {
    Buffer buffer;
    buffer.name = fmt::format("b{}", launch.buffers.size());
    buffer.bytes = 1000;
    buffer.address = address;
    launch.buffers.push_back(buffer);
  }
  EXPECT_TRUE(validate(launch));
  const auto addresses = default_addresses(launch);
  EXPECT_EQ(addresses,
            (std::vector<std::uint64_t>{default_base_address + 1280, default_base_address,
                                        default_base_address + 2560}));
  EXPECT_EQ(refuse_fixed_addresses(launch).error().message,
            "buffer 'b1' must lie at 0x700000000000, which no GPU can promise; only demarc emulate "
            "and demarc locality support fixed addresses");
  launch.buffers[2].address = default_base_address + 768;
  EXPECT_EQ(validate(launch).error().message,
            "buffers 'b1' and 'b2': they overlap, from 0x700000000300 on");
  launch.buffers[2].address = default_base_address;
  EXPECT_EQ(validate(launch).error().message, "two buffers have the same address");
  launch.buffers[1].address = 0;
  launch.buffers[2].address = 0;
  EXPECT_TRUE(refuse_fixed_addresses(launch));
}

TEST(LaunchFile, clusters_that_the_launch_sizes_are_refused_by_who_does_not_take_them) {
  auto launch = parse_launch_json(complete_file, "x.json").value();
  EXPECT_EQ(
      refuse_clusters(launch, "a study does").error().message,
      "kernel 'step': the launch gives the size of its clusters, which a study does not support");
  for (KernelLaunch& kernel : launch.kernels) kernel.cluster.reset();
  EXPECT_TRUE(refuse_clusters(launch, "a study does"));
}

TEST(LaunchFile, nan_and_infinity_can_be_given_as_values_and_arguments) {
  const auto launch = parse_launch_json(
      values_file("f32", R"("fill": ["nan", "-inf", "0f7f800000", 1])", "f64:-inf"), "x.json", {});
  ASSERT_TRUE(launch) << launch.error().message;
  const auto& values = launch->buffers[0].fill.values;
  ASSERT_EQ(values.size(), 4U);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], -HUGE_VAL);
  EXPECT_EQ(values[2], HUGE_VAL);
  EXPECT_EQ(std::get<Scalar>(launch->kernels[0].arguments[0]).bits, 0xfff0000000000000U);
}

TEST(LaunchFile, values_that_the_elements_cannot_have_are_refused) {
  const auto message = [](const std::string& element, const std::string& rest,
                          const std::string& argument = "f32:nan") {
    const auto launch = parse_launch_json(values_file(element, rest, argument), "x.json", {});
    return launch ? std::string("accepted") : launch.error().message;
  };
  const std::string cure = " is not a whole number of at most 2^62, which the elements need";
  EXPECT_EQ(message("i32", R"("fill": [1e30])"), "x.json.buffers[0].fill: 1e+30" + cure);
  EXPECT_EQ(message("i32", R"("fill": [1.5])"), "x.json.buffers[0].fill: 1.5" + cure);
  EXPECT_EQ(message("i32", R"("fill": [2.0])"), "accepted");
  EXPECT_NE(message("i32", R"("fill": ["nan"])"), "accepted");
  EXPECT_EQ(message("u8", R"("fill": "random", "high": 1e30)"),
            "x.json.buffers[0].high: 1e+30" + cure);
  EXPECT_EQ(message("u8", R"("fill": "random", "low": -1e30)"),
            "x.json.buffers[0].low: -1e+30" + cure);
  EXPECT_EQ(message("f32", R"("fill": "random", "high": 1e30)"), "accepted");
  EXPECT_EQ(message("f32", R"("fill": [18446744073709551615])"),
            "x.json.buffers[0].fill: 18446744073709551615 is not below 2^63");
  EXPECT_EQ(message("f32", R"("fill": "zero")", "f32:1e39"),
            "x.json.launches[0].args[0]: 1e39 does not fit f32; infinity is written inf");
}

TEST(LaunchFile, nested_empty_repeats_end_in_an_error_and_not_in_a_hang) {
  constexpr std::string_view text =
      R"json({"schema": "demarc.launch/1", "ptx": "k.ptx", "buffers": [], "launches": [
    {"repeat": "a", "times": 1000000, "launches": [{"repeat": "b", "times": 1000000, "launches": []}]}]})json";
  EXPECT_EQ(parse_launch_json(text, "x.json").error().message,
            "x.json.launches[0].launches[0]: more than 1000000 repetitions in one launch");
}

TEST(LaunchFile, a_structure_is_given_as_bytes) {
  std::string text(complete_file);
  text.replace(text.find("f32:0.5"), 7, "hex:00ff");
  const auto launch = parse_launch_json(text, "x.json");
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->kernels.back().arguments[1],
            (Argument{ByteArgument{{std::byte{0}, std::byte{0xff}}}}));
  EXPECT_EQ(refusal("f32:0.5", "hex:0"),
            "x.json.launches[1].args[1]: 'hex:' takes pairs of hexadecimal digits, as in hex:00ff");
}

// The complete file with this member before its launches.
std::string with_variables(const std::string& list) {
  return "\"variables\": " + list + ", \"launches\"";
}

TEST(LaunchFile, variables_of_the_module_have_the_contents_that_buffers_have) {
  std::string text(complete_file);
  const std::string list = R"([{"name": "taps", "element": "f32", "fill": [0.5, "n"]},
    {"name": "bytes", "fill": "hex:0a0b"}, {"name": "file", "fill": "@taps.npy"},
    {"name": "where", "fill": {"pointers": "out", "stride": 0}}])";
  text.replace(text.find("\"launches\""), 10, with_variables(list));
  const auto launch = parse_launch_json(text, "x.json", "folder");
  ASSERT_TRUE(launch) << launch.error().message;
  ASSERT_EQ(launch->variables.size(), 4U);
  const std::vector<std::uint64_t> addresses(launch->buffers.size(), 4096);
  float taps[3];
  ASSERT_TRUE(fill_variable(*launch, 0, addresses, std::as_writable_bytes(std::span(taps))));
  EXPECT_EQ(std::vector<float>(taps, taps + 3), (std::vector<float>{0.5F, 1000, 0.5F}));
  EXPECT_EQ(launch->variables[2].fill.file, "folder/taps.npy");
  std::uint64_t pointer = 0;
  ASSERT_TRUE(fill_variable(*launch, 3, addresses, std::as_writable_bytes(std::span(&pointer, 1))));
  EXPECT_EQ(pointer, 4096U);
  std::vector<std::byte> three(3);
  EXPECT_EQ(fill_variable(*launch, 1, addresses, three).error().message,
            "variable 'bytes': 2 bytes are given, 3 were expected");
}

TEST(LaunchFile, variables_that_are_wrong_are_refused) {
  Launch launch;
  launch.variables.resize(1);
  launch.variables[0].name = "where";
  launch.variables[0].fill.kind = FillKind::pointers;
  EXPECT_EQ(validate(launch).error().message, "variable 'where': it points into buffer 0 of 0");
  EXPECT_EQ(refusal("\"launches\"", with_variables(R"([{"name": "a"}, {"name": "a"}])")),
            "x.json: variable 'a': it is given twice");
  EXPECT_EQ(refusal("\"launches\"", with_variables(R"([{"name": "a", "bytes": 4}])")),
            "x.json.variables[0]: unknown key 'bytes'");
  EXPECT_EQ(refusal("\"launches\"", with_variables(R"([{"name": "a", "fill": "hex:"}])")),
            "x.json.variables[0].fill: 'hex:' takes at least one pair of digits");
  EXPECT_EQ(refusal("\"launches\"", with_variables("7")),
            "x.json.variables: an array was expected, found number");
}

TEST(LaunchFile, a_check_against_files_has_one_for_every_output) {
  const std::string reference = "\"reference\" : \"sample\"";
  const auto with_file = [&](const std::string& file, bool second_output) {
    std::string text(complete_file);
    text.replace(text.find(reference), reference.size(), "\"file\": " + file);
    if (second_output)
      text.replace(text.find("\"bytes\": 16,"), 12, "\"bytes\": 16, \"output\": true,");
    const auto launch = parse_launch_json(text, "x.json", "folder");
    if (!launch) return launch.error().message;
    std::string all;
    for (const auto& [buffer, name] : launch->check.files)
      all += fmt::format("{} {};", buffer, name);
    return all;
  };
  EXPECT_EQ(with_file("\"o.npy\"", false), "1 folder/o.npy;");
  EXPECT_EQ(with_file(R"({"out": "o.npy"})", false), "1 folder/o.npy;");
  EXPECT_EQ(with_file(R"({"out": "o.npy", "places": "p.bin"})", true),
            "1 folder/o.npy;2 folder/p.bin;");
  EXPECT_EQ(
      with_file("\"o.npy\"", true),
      "x.json.check.file: {\"OUTPUT\": \"FILE\", …} was expected; the outputs are: out, places");
  EXPECT_EQ(with_file("7", false),
            "x.json.check.file: the name of a file was expected; the outputs are: out");
  EXPECT_EQ(with_file(R"({"out": "o.npy"})", true),
            "x.json.check.file: there is no file for the output 'places'");
  EXPECT_EQ(with_file(R"({"out": "o.npy", "in": "i.npy"})", false),
            "x.json.check.file: 'in' is not an output; the outputs are: out");
  EXPECT_EQ(with_file(R"({"out": 7})", false),
            "x.json.check.file.out: the name of a file was expected");
  EXPECT_EQ(with_file(R"({"ou": "o.npy"})", false).substr(0, 47),
            "x.json.check.file: there is no buffer 'ou'; kno");
  EXPECT_EQ(refusal(reference, reference + ", \"file\": \"o.npy\""),
            "x.json.check: 'reference' and 'file' exclude each other");
  std::string none(complete_file);
  none.replace(none.find(", \"output\": true"), 16, "");
  none.replace(none.find(reference), reference.size(), "\"file\": \"o.npy\"");
  EXPECT_EQ(
      parse_launch_json(none, "x.json").error().message,
      "x.json.check.file: no buffer is an output; add \"output\": true to the buffers to compare");
}

TEST(LaunchChecks, the_arguments_of_a_kernel_have_a_limit_together) {
  Launch launch;
  launch.kernels.resize(1);
  launch.kernels[0].kernel = "k";
  launch.kernels[0].arguments = {ByteArgument{std::vector<std::byte>(32760)},
                                 Scalar{ScalarType::u32, 1}};
  EXPECT_TRUE(validate(launch));
  launch.kernels[0].arguments.emplace_back(Scalar{ScalarType::u8, 1});
  EXPECT_THAT(validate(launch).error().message,
              HasSubstr("kernel 0 ('k'): 32765 bytes of arguments; a kernel takes at most 32764"));
  launch.kernels[0].arguments = {BufferUse{0, 0}};
  EXPECT_THAT(validate(launch).error().message, HasSubstr("buffer 0 of 0"));
  launch.buffers.resize(1);
  launch.buffers[0].bytes = 8;
  EXPECT_TRUE(validate(launch));
  launch.buffers[0].fill.kind = FillKind::pointers;
  launch.buffers[0].fill.target = 1;
  EXPECT_THAT(validate(launch).error().message, HasSubstr("it points into buffer 1 of 1"));
  launch.buffers[0].fill = {};
  launch.buffers[0].bytes = (std::uint64_t{1} << 46U) + 1;
  EXPECT_THAT(validate(launch).error().message, HasSubstr("bytes are above 2^46"));
  launch.buffers[0].bytes -= 1;
  EXPECT_TRUE(validate(launch));
  launch.buffers[0].bytes = 0;
  EXPECT_THAT(validate(launch).error().message, HasSubstr("at least one byte"));
}

}  // namespace
}  // namespace demarc::gpu
