// What the program of subject.cpp does with signals.
#pragma once

#include <sys/types.h>

#include <string>

namespace subject {

// Ends this process where what it waits for does not come.
void wait_no_longer();
void block_signals();
void take_signal(const std::string& who);
// A child of a session of its own takes a signal as well; both know it before it is sent.
void send_to_parent_and_take(pid_t parent, int signal);
void die_in_child(int signal);
// Each until a server answers that has made SOCKET.ended and waits while SOCKET.hold is there.
// Another thread makes calls of the driver; says whether it goes on.
void die_beside_calls(int signal, const std::string& socket);
// The signal comes while its thread is inside a call that then ends; says whether it returns.
void die_in_a_call(int signal, const std::string& socket);
// In two threads, one after the other, of which the second gets another signal.
void die_twice(int signal, const std::string& socket, int second);
// Whatever file the process had open, its number is a socket's now. Another process says whether
// anything is sent there until this one has ended.
void take_numbers_of_files();

}  // namespace subject
