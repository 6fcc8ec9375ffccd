// Back ends whose driver or card does not do what it should: each stream is refused, with the
// reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "conformance.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using test::part_of;
using testing::HasSubstr;

// A card behind a driver some of whose functions are the test's.
template <class Change>
CardPointer card_behind(Change change, const fake::FakeConfig& config = fake::small_gpu()) {
  test::configure(config);
  DriverApi api = test::fake_driver()->api();
  change(api);
  CardOptions options;
  options.cache_folder = test::fresh_folder("backend").string();
  options.use_masks = false;
  const auto gpu = Gpu::open(Driver::from_table(api, "changed").value(), 0).value();
  return Card::open(gpu, options).value();
}

template <class Change>
Error green_error(Change change) {
  const auto backend = make_backend(card_behind(change), Mode::green);
  return backend ? Error{ErrorKind::check_failed, "was made"} : backend.error();
}

// Contexts that confine nothing: their streams are like any other.
int green_alive = 0;
int green_made = 0;
CuResult green_answer = cu_success;  // to the call that a test lets fail

void give_plain_contexts(DriverApi& api) {
  green_alive = 0;
  green_made = 0;
  api.cuGreenCtxCreate = [](CuGreenContext* context, CuResourceDesc, CuDevice, unsigned) {
    *context = reinterpret_cast<CuGreenContext>(&green_alive);
    ++green_alive;
    ++green_made;
    return cu_success;
  };
  api.cuGreenCtxDestroy = [](CuGreenContext) {
    --green_alive;
    return cu_success;
  };
  api.cuGreenCtxStreamCreate = [](CuStream* stream, CuGreenContext, unsigned flags, int priority) {
    return test::fake_driver()->api().cuStreamCreateWithPriority(stream, flags, priority);
  };
}

TEST(GreenRefusal, a_driver_that_lacks_one_of_the_functions_has_no_green_contexts) {
  const auto lacks = [](auto DriverApi::*function) {
    const Error error = green_error([&](DriverApi& api) { api.*function = nullptr; });
    EXPECT_EQ(error.kind, ErrorKind::missing_capability);
    EXPECT_THAT(error.message, HasSubstr("this driver has no green contexts"));
  };
  lacks(&DriverApi::cuGreenCtxCreate);
  lacks(&DriverApi::cuDeviceGetDevResource);
  lacks(&DriverApi::cuDevSmResourceSplitByCount);
  lacks(&DriverApi::cuDevResourceGenerateDesc);
  lacks(&DriverApi::cuGreenCtxStreamCreate);
  lacks(&DriverApi::cuGreenCtxDestroy);
}

TEST(GreenRefusal, every_call_that_fails_is_named) {
  green_answer = 2;
  const auto says = [](const char* words, auto change) {
    const Error error = green_error([&](DriverApi& api) {
      give_plain_contexts(api);
      change(api);
    });
    EXPECT_EQ(error.kind, ErrorKind::missing_capability) << words;
    EXPECT_THAT(error.message, HasSubstr(words));
    EXPECT_EQ(green_alive, 0) << "a context is left behind";
  };
  says("cannot read the SM resource", [](DriverApi& api) {
    api.cuDeviceGetDevResource = [](CuDevice, CuDeviceResource*, int) { return green_answer; };
  });
  const auto split = [](DriverApi& api) {
    api.cuDevSmResourceSplitByCount = [](CuDeviceResource*, unsigned*, const CuDeviceResource*,
                                         CuDeviceResource*, unsigned,
                                         unsigned) { return green_answer; };
  };
  says("cannot split the SMs into groups of two", split);
  const auto describe = [](DriverApi& api) {
    api.cuDevResourceGenerateDesc = [](CuResourceDesc*, CuDeviceResource*, unsigned) {
      return green_answer;
    };
  };
  says("cannot describe a green context", describe);
  const auto create = [](DriverApi& api) {
    api.cuGreenCtxCreate = [](CuGreenContext*, CuResourceDesc, CuDevice, unsigned) {
      return green_answer;
    };
  };
  says("cannot create a green context", create);
  says("cannot create a stream of a green context", [](DriverApi& api) {
    api.cuGreenCtxStreamCreate = [](CuStream*, CuGreenContext, unsigned, int) {
      return green_answer;
    };
  });
  green_answer = cu_error_invalid_value;
  says("Fake GPU: the driver does not split the SMs into groups of two", split);
  green_answer = cu_error_not_supported;
  says("refuses green contexts in this process", create);
}

TEST(GreenRefusal, a_tpc_that_the_driver_gives_no_group_of_is_refused) {
  const auto card = card_behind([](DriverApi& api) {
    api.cuDevSmResourceSplitByCount = [](CuDeviceResource*, unsigned* groups,
                                         const CuDeviceResource*, CuDeviceResource*, unsigned,
                                         unsigned) {
      *groups = 0;
      return cu_success;
    };
  });
  const auto stream = make_backend(card, Mode::green).value()->open(part_of({3}));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(stream.error().message, HasSubstr("no group of SMs for TPC 3"));
}

TEST(LaneRefusal, a_context_that_does_not_confine_is_found_out_and_given_back) {
  const auto card = card_behind(&give_plain_contexts);
  {
    const auto backend = make_backend(card, Mode::green).value();
    const auto stream = backend->open(part_of({0, 1}));
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().kind, ErrorKind::check_failed);
    EXPECT_EQ(stream.error().message,
              "partition 'part' does not hold: 80 of 96 probe blocks ran outside its TPCs 0-1 (24 "
              "SMs used, 4 allowed)");
  }
  EXPECT_EQ(green_alive, 0);
}

// Blocks, threads and cycles that a group is looked at with, and its stream is proved with.
TEST(GreenContexts, are_looked_at_with_blocks_that_reach_both_sms) {
  struct Look {
    unsigned blocks, threads;
    std::uint64_t cycles;
    bool operator==(const Look&) const = default;
  };
  static std::vector<Look> looks;
  static bool looking = false;
  static unsigned room_for_groups = 0;
  const auto card = card_behind([](DriverApi& api) {
    give_plain_contexts(api);
    api.cuDevSmResourceSplitByCount = [](CuDeviceResource* result, unsigned* groups,
                                         const CuDeviceResource* from, CuDeviceResource* rest,
                                         unsigned flags, unsigned least) {
      room_for_groups = *groups;
      return test::fake_driver()->api().cuDevSmResourceSplitByCount(result, groups, from, rest,
                                                                    flags, least);
    };
    api.cuLaunchKernel = [](CuFunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CuStream stream,
                            void** arguments, void** extra) {
      if (looking) {
        looks.push_back({x * y * z, bx * by * bz, 0});
        std::memcpy(&looks.back().cycles, arguments[2], sizeof looks.back().cycles);
      }
      return test::fake_driver()->api().cuLaunchKernel(function, x, y, z, bx, by, bz, shared,
                                                       stream, arguments, extra);
    };
  });
  looks.clear();
  looking = true;
  const auto backend = make_backend(card, Mode::green).value();
  EXPECT_EQ(room_for_groups, 256U);
  EXPECT_EQ(looks, std::vector<Look>(12, Look{64, 64, 5000}));
  looks.clear();
  EXPECT_TRUE(backend->open(part_of(gpu::TpcSet::first(12))));
  looking = false;
  EXPECT_EQ(looks, std::vector<Look>(1, Look{96, 64, 2000}));
}

TEST(GreenContexts, are_made_once_per_group_and_go_after_their_streams_unless_the_card_is_stuck) {
  static int streams_gone_late = 0;
  streams_gone_late = 0;
  const auto card = card_behind([](DriverApi& api) {
    give_plain_contexts(api);
    api.cuStreamDestroy_v2 = [](CuStream stream) {
      if (green_alive == 0) ++streams_gone_late;
      return test::fake_driver()->api().cuStreamDestroy_v2(stream);
    };
  });
  const auto backend = make_backend(card, Mode::green).value();
  EXPECT_EQ(green_made, 12);
  EXPECT_EQ(green_alive, 0) << "each is looked at once";
  EXPECT_EQ(streams_gone_late, 0);
  auto stream = backend->open(part_of(gpu::TpcSet::first(12))).value();
  EXPECT_EQ(green_alive, 1);
  stream.reset();
  EXPECT_EQ(green_alive, 0);
  EXPECT_EQ(streams_gone_late, 0);
  stream = backend->open(part_of(gpu::TpcSet::first(12))).value();
  card->gpu()->set_stuck();
  stream.reset();
  EXPECT_EQ(green_alive, 1) << "a call on it might never return";
}

// As in a client of MPS whose share the driver does not show.
TEST(LaneRefusal, a_stream_that_should_reach_every_sm_and_does_not_is_refused) {
  fake::FakeConfig config = fake::small_gpu();
  const auto card = card_behind([](DriverApi&) {}, config);
  config.client = 0xc3;
  config.client_hidden = true;
  test::configure(config);
  const auto stream = make_backend(card, Mode::none).value()->open(part_of({0}));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(stream.error().message,
            "mode none: a stream that nothing confines ran on 8 of 24 SMs only");
}

TEST(LaneRefusal, a_mask_that_the_card_ignores_is_found_out) {
  fake::FakeConfig config = fake::small_gpu();
  config.obey_masks = false;
  const auto card = test::fake_card(config).value();
  const auto stream = make_backend(card, Mode::mask).value()->open(part_of({0, 1}));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(stream.error().message, HasSubstr("does not hold"));
}

TEST(LaneRefusal, a_card_whose_masks_are_refused_has_no_mask_lanes) {
  const auto card = test::fake_card(fake::small_gpu(), false).value();
  EXPECT_THAT(make_backend(card, Mode::mask).error().message,
              HasSubstr("opened without support for masks"));
}

// Where numbers name no SM only their count is compared.
TEST(LaneProofs, of_renumbered_sms_count_them_where_no_register_names_them) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  for (const bool named : {true, false}) {
    config.linker = named ? fake::Linker::works : fake::Linker::refuses;
    const auto card = test::fake_card(config).value();
    ASSERT_TRUE(card->virtual_sms());
    const auto stream = make_backend(card, Mode::mask).value()->open(part_of({4, 5}));
    ASSERT_TRUE(stream) << stream.error().message;
    EXPECT_EQ((*stream)->proof()->sms,
              named ? test::sm_list({8, 9, 10, 11}) : test::sm_list({0, 1, 2, 3}));
    EXPECT_EQ((*stream)->proof()->outside, 0U);
  }
  EXPECT_FALSE((StreamProof{96, 0, test::sm_list({0, 1, 2}), 2}.holds()));
  EXPECT_FALSE((StreamProof{96, 1, test::sm_list({0, 1}), 2}.holds()));
}

// A stream that runs elsewhere is not excused by the number of its SMs.
TEST(LaneProofs, of_renumbered_sms_find_wrong_ones) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  const auto card = test::fake_card(config).value();
  config.shift_masks = 1;
  test::configure(config);
  const auto stream = make_backend(card, Mode::mask).value()->open(part_of({4, 5}));
  ASSERT_FALSE(stream);
  EXPECT_THAT(stream.error().message, HasSubstr("does not hold"));
}

TEST(AffinityRefusal, where_kernels_cannot_know_their_sm_there_are_no_affine_lanes) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  const auto renumbered = test::fake_card(config, false).value();
  const auto refused = make_backend(renumbered, Mode::affinity);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("MPS renumbers SMs"));
}

// What a kernel looks its SM up in has 256 bits.
TEST(AffinityRefusal, sms_beyond_the_table_of_the_kernel_are_refused) {
  static int shown = 0;
  const auto backend_of = [](int sms) {
    shown = sms;
    const auto card = card_behind([](DriverApi& api) {
      api.cuDeviceGetAttribute = [](int* value, int attribute, CuDevice device) {
        const CuResult code =
            test::fake_driver()->api().cuDeviceGetAttribute(value, attribute, device);
        if (attribute == attribute_sm_count) *value = shown;
        return code;
      };
    });
    return make_backend(card, Mode::affinity);
  };
  EXPECT_TRUE(backend_of(256));
  const auto refused = backend_of(258);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("258 SMs are more than 256"));
}

// SMs beyond the first word of the table, which has one of 64 bits each.
TEST(AffineLanes, reach_sms_beyond_the_6_4_th) {
  fake::FakeConfig config = fake::small_gpu();
  config.tpcs = 80;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    config.gpc[t] = t / 10;
    config.bit[t] = t / 10 * 9 + t % 10;
    config.side[t] = t % 2;
  }
  static int threads_of_block = 0;
  const auto card = card_behind(
      [](DriverApi& api) {
        api.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CuFunction, int threads,
                                                             std::size_t shared) {
          threads_of_block = threads;
          *blocks = shared == 0 ? 3 : 0;
          return cu_success;
        };
      },
      config);
  const auto stream = make_backend(card, Mode::affinity).value()->open(part_of({31, 32, 63, 64}));
  ASSERT_TRUE(stream) << stream.error().message;
  EXPECT_EQ((*stream)->proof()->sms, test::sm_list({62, 63, 64, 65, 126, 127, 128, 129}));
  EXPECT_EQ((*stream)->proof()->outside, 0U);
  EXPECT_EQ(threads_of_block, 64);
}

TEST(AffinityRefusal, a_partition_of_tpcs_that_the_card_has_not_is_refused) {
  const auto card = test::fake_card(fake::small_gpu(), false).value();
  const auto stream = make_backend(card, Mode::affinity).value()->open(part_of({100}));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(stream.error().message, HasSubstr("partition 'part' has no TPC on this card"));
}

// Memory that is handed out holds zeros, which name an SM.
TEST(AffinityRefusal, blocks_that_never_ran_are_noticed) {
  static bool lost = false;
  lost = false;
  const auto card = card_behind([](DriverApi& api) {
    api.cuMemAlloc_v2 = [](DevicePointer* address, std::size_t bytes) {
      const CuResult code = test::fake_driver()->api().cuMemAlloc_v2(address, bytes);
      if (code == cu_success) std::memset(reinterpret_cast<void*>(*address), 0, bytes);  // NOLINT
      return code;
    };
    api.cuLaunchKernel = [](CuFunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CuStream stream,
                            void** arguments, void** extra) {
      if (lost) return cu_success;
      return test::fake_driver()->api().cuLaunchKernel(function, x, y, z, bx, by, bz, shared,
                                                       stream, arguments, extra);
    };
    api.cuLaunchKernelEx = [](const CuLaunchConfig* config, CuFunction function, void** arguments,
                              void** extra) {
      if (lost) return cu_success;
      return test::fake_driver()->api().cuLaunchKernelEx(config, function, arguments, extra);
    };
  });
  const auto backend = make_backend(card, Mode::affinity).value();
  EXPECT_TRUE(backend->open(part_of({0})));
  lost = true;
  const auto stream = backend->open(part_of({0}));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(stream.error().message, HasSubstr("a block of the persistent kernel never ran"));
}

}  // namespace
}  // namespace demarc::cuda
