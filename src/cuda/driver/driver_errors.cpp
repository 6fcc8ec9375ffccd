// The table of the driver's errors (CUresult): numbers as in cuda.h of CUDA 13.0.
#include "driver/driver_errors.hpp"

#include <algorithm>
#include <iterator>

namespace demarc::cuda {
namespace {

struct Row {
  CuResult code;
  ErrorKind kind;
};

constexpr ErrorKind wrong = ErrorKind::invalid_input;
constexpr ErrorKind lacks = ErrorKind::missing_capability;

// What is not in it failed: faults of the card, of a kernel and of MPS, and what nobody knows yet.
// clang-format off
constexpr Row error_rows[] = {
    {1, wrong},     // invalid value
    {2, lacks},     // out of memory
    {34, lacks},    // a stub library stands where the driver should
    {36, lacks},    // the call needs a newer driver
    {46, lacks},    // the device is in use or prohibited
    {100, lacks},   // no device
    {101, lacks},   // no such device
    {102, lacks},   // the device is not licensed
    {200, wrong},   // invalid image of a module
    {209, lacks},   // no code for this GPU
    {218, wrong},   // invalid PTX
    {221, lacks},   // no PTX compiler
    {222, lacks},   // PTX of a newer version
    {223, lacks},   // PTX compilation is switched off
    {224, lacks},   // unsupported execution affinity
    {225, lacks},   // unsupported device-side synchronisation
    {500, wrong},   // named symbol not found
    {701, lacks},   // out of launch resources
    {720, lacks},   // a cooperative launch that does not fit
    {800, lacks},   // not permitted
    {801, lacks},   // not supported
    {802, lacks},   // the system is not ready
    {803, lacks},   // driver and kernel module do not fit
    {804, lacks},   // no forward compatibility on this device
    {811, lacks},   // no dynamic parallelism
    {812, lacks},   // dynamic parallelism of another version
    {912, wrong},   // a cluster that no GPC can host
    {914, lacks},   // SMs cannot be divided so: configuration
    {915, lacks},   // SMs cannot be divided so: type
};
// clang-format on

}  // namespace

ErrorKind kind_of(CuResult code) {
  const auto* row = std::find_if(std::begin(error_rows), std::end(error_rows),
                                 [code](const Row& known) { return known.code == code; });
  return row == std::end(error_rows) ? ErrorKind::check_failed : row->kind;
}

}  // namespace demarc::cuda
