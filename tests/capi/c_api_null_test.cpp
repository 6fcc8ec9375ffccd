// The C interface refuses NULL by the name of the argument.
#include "demarc/demarc.h"
#include "shared_library.hpp"

namespace demarc::cuda {
namespace {

// Each pointer that a function needs, left out alone.
void nulls_through_c() {
  void* lib = library("libdemarc.so");
  const auto refuses = [&](int code, const char* argument) {
    demand(code == 1, std::string(argument) + " may be NULL");
    const std::string said = SYMBOL(lib, demarc_error)();
    demand(said == "the argument '" + std::string(argument) + "' is NULL", said);
  };
  refuses(SYMBOL(lib, demarc_open)(0, nullptr), "card");
  refuses(SYMBOL(lib, demarc_open_observer)(0, nullptr), "card");
  SYMBOL(lib, demarc_close)(nullptr);
  for (const char* count :
       {"demarc_tpc_count", "demarc_sm_count", "demarc_gpc_count", "demarc_sync_domain_count"}) {
    DEMAND(symbol<std::uint32_t(const demarc_card*)>(lib, count)(nullptr) == 0);
    refuses(1, "card");
  }
  demarc_card* card = nullptr;
  DEMAND(SYMBOL(lib, demarc_open)(0, &card) == 0);
  std::uint32_t number = 0;
  std::int32_t side = 0;
  std::uint64_t large = 0;
  const demarc_tpcs tpcs = {{1, 0}};
  refuses(SYMBOL(lib, demarc_gpc_of_tpc)(nullptr, 0, &number), "card");
  refuses(SYMBOL(lib, demarc_gpc_of_tpc)(card, 0, nullptr), "gpc");
  refuses(SYMBOL(lib, demarc_side_of_tpc)(nullptr, 0, &side), "card");
  refuses(SYMBOL(lib, demarc_side_of_tpc)(card, 0, nullptr), "side");
  refuses(SYMBOL(lib, demarc_sms_of_tpc)(nullptr, 0, &number, 1, &number), "card");
  refuses(SYMBOL(lib, demarc_sms_of_tpc)(card, 0, nullptr, 1, &number), "sms");
  refuses(SYMBOL(lib, demarc_sms_of_tpc)(card, 0, &number, 1, nullptr), "count");
  refuses(SYMBOL(lib, demarc_set_process_mask)(nullptr, &tpcs), "card");
  refuses(SYMBOL(lib, demarc_set_stream_mask)(nullptr, nullptr, &tpcs), "card");
  refuses(SYMBOL(lib, demarc_set_stream_sync_domain)(nullptr, nullptr, 0), "card");
  refuses(SYMBOL(lib, demarc_set_next_mask)(nullptr, &tpcs), "card");
  refuses(SYMBOL(lib, demarc_check_cluster)(nullptr, &tpcs, 1, 1), "card");
  refuses(SYMBOL(lib, demarc_check_cluster)(card, nullptr, 1, 1), "tpcs");
  refuses(SYMBOL(lib, demarc_count_outside)(nullptr, nullptr, &tpcs, &large), "card");
  refuses(SYMBOL(lib, demarc_count_outside)(card, nullptr, nullptr, &large), "tpcs");
  refuses(SYMBOL(lib, demarc_count_outside)(card, nullptr, &tpcs, nullptr), "blocks_outside");
  const std::uint64_t masks[] = {0xc4000};
  const demarc_share share = {1, 0};
  demarc_pool* pool = nullptr;
  const auto described = SYMBOL(lib, demarc_pool_create_described);
  refuses(described(nullptr, nullptr, 2, 1 << 20, &share, 1, &pool), "card");
  refuses(described(card, nullptr, 2, 1 << 20, nullptr, 1, &pool), "shares");
  refuses(described(card, nullptr, 2, 1 << 20, &share, 1, nullptr), "pool");
  const auto create = SYMBOL(lib, demarc_pool_create);
  refuses(create(nullptr, masks, 1, 16 << 20, &share, 1, &pool), "card");
  refuses(create(card, nullptr, 1, 16 << 20, &share, 1, &pool), "masks");
  refuses(create(card, masks, 1, 16 << 20, nullptr, 1, &pool), "shares");
  refuses(create(card, masks, 1, 16 << 20, &share, 1, nullptr), "pool");
  DEMAND(create(card, masks, 1, 16 << 20, &share, 1, &pool) == 0);
  demarc_usage usage;
  refuses(SYMBOL(lib, demarc_pool_usage)(nullptr, 0, &usage), "pool");
  refuses(SYMBOL(lib, demarc_pool_usage)(pool, 0, nullptr), "usage");
  demarc_buffer* buffer = nullptr;
  refuses(SYMBOL(lib, demarc_buffer_create)(nullptr, 0, 4096, &buffer), "pool");
  refuses(SYMBOL(lib, demarc_buffer_create)(pool, 0, 4096, nullptr), "buffer");
  DEMAND(SYMBOL(lib, demarc_buffer_create)(pool, 0, 4096, &buffer) == 0);
  refuses(SYMBOL(lib, demarc_buffer_upload)(nullptr, &usage, 8, 0), "buffer");
  refuses(SYMBOL(lib, demarc_buffer_upload)(buffer, nullptr, 8, 0), "source");
  refuses(SYMBOL(lib, demarc_buffer_download)(nullptr, &usage, 8, 0), "buffer");
  refuses(SYMBOL(lib, demarc_buffer_download)(buffer, nullptr, 8, 0), "target");
  refuses(SYMBOL(lib, demarc_buffer_address)(nullptr, 0, &large, nullptr), "buffer");
  refuses(SYMBOL(lib, demarc_buffer_address)(buffer, 0, nullptr, nullptr), "address");
  demarc_layout layout;
  demarc_remainder_layout remainder;
  demarc_audit audit;
  refuses(SYMBOL(lib, demarc_buffer_layout)(nullptr, &layout), "buffer");
  refuses(SYMBOL(lib, demarc_buffer_layout)(buffer, nullptr), "layout");
  refuses(SYMBOL(lib, demarc_buffer_remainder_layout)(nullptr, &remainder), "buffer");
  refuses(SYMBOL(lib, demarc_buffer_remainder_layout)(buffer, nullptr), "layout");
  refuses(SYMBOL(lib, demarc_buffer_audit)(nullptr, &audit), "buffer");
  refuses(SYMBOL(lib, demarc_buffer_audit)(buffer, nullptr), "audit");
  SYMBOL(lib, demarc_buffer_destroy)(buffer);
  SYMBOL(lib, demarc_buffer_destroy)(nullptr);
  SYMBOL(lib, demarc_pool_destroy)(pool);
  SYMBOL(lib, demarc_pool_destroy)(nullptr);
  SYMBOL(lib, demarc_close)(card);
}

TEST_F(SharedLibraries, null_is_refused_by_name_through_the_c_interface) {
  EXPECT_EXIT((nulls_through_c(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace demarc::cuda
