// The ranks of an MPI job behind a table of functions (mpi_table.hpp): a library of its own, which
// the program loads when mpirun has started it.
#include <mpi.h>

#include <list>
#include <string>

#include "mpi_table.hpp"

namespace {

constexpr int tag = 1;

// A message that MPI may not be done with.
struct Pending {
  MPI_Request request = MPI_REQUEST_NULL;
  std::string bytes;
};
std::list<Pending>& sent() {
  static std::list<Pending> messages;
  return messages;
}
MPI_Status& found() {
  static MPI_Status status;
  return status;
}

void forget_what_is_sent() {
  for (auto at = sent().begin(); at != sent().end();) {
    int done = 0;
    MPI_Test(&at->request, &done, MPI_STATUS_IGNORE);
    at = done != 0 ? sent().erase(at) : std::next(at);
  }
}

int start() {
  int provided = 0;
  return MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS ? 0 : 1;
}

unsigned rank() {
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  return static_cast<unsigned>(number);
}

unsigned size() {
  int number = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  return static_cast<unsigned>(number);
}

int send(unsigned to, const char* bytes, std::size_t count) {
  forget_what_is_sent();
  Pending& message = sent().emplace_back();
  message.bytes.assign(bytes, count);
  const int code = MPI_Isend(message.bytes.data(), static_cast<int>(count), MPI_CHAR,
                             static_cast<int>(to), tag, MPI_COMM_WORLD, &message.request);
  return code == MPI_SUCCESS ? 0 : 1;
}

long probe(unsigned* from) {
  forget_what_is_sent();
  int there = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &found());
  if (there == 0) return -1;
  int count = 0;
  MPI_Get_count(&found(), MPI_CHAR, &count);
  *from = static_cast<unsigned>(found().MPI_SOURCE);
  return count;
}

void read(char* bytes, std::size_t count) {
  MPI_Recv(bytes, static_cast<int>(count), MPI_CHAR, found().MPI_SOURCE, tag, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

void abandon(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

void end() {
  for (Pending& message : sent()) MPI_Wait(&message.request, MPI_STATUS_IGNORE);
  sent().clear();
  MPI_Finalize();
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const demarc::sweep::MpiTable demarc_mpi_table_1 = {start, rank, size, send, probe, read, abandon, end};
