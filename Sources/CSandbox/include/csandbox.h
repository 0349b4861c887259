// Processes that work on hostile bytes and have no access to files, the network or other processes. Linux only;
// elsewhere every function fails.
//
// The server starts this program a second time as the zygote: a process with one thread that has never seen a hostile
// byte. For each request the zygote forks a helper, which costs less than a millisecond, and reports its end. A helper
// has one socket and one shared mapping.
//
//   Server: csandbox_zygote_spawn, csandbox_channel_create, csandbox_zygote_fork, csandbox_send, csandbox_receive ...
//   Zygote: csandbox_zygote_serve, which returns in each helper only
//   Helper: csandbox_enter, then csandbox_receive, csandbox_send ...
//
// Lifetimes: helpers die with the zygote, and the zygote ends when the server's end of its control socket closes, so
// that no process outlives the server.

#ifndef CSANDBOX_H
#define CSANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  CSANDBOX_CONTROL = 3,           ///< The zygote's end of the control socket.
  CSANDBOX_MAX_HELPERS = 1024,    ///< Helpers of a zygote that exist at the same time.
  CSANDBOX_FILE_BYTES = 16 << 20, ///< The size to which a helper can extend a file, unless the server changes it.
};

/// Returns whether this build has a system call filter, without which no helper starts.
bool csandbox_is_supported(void);

/// Writes the version of the library for system call filters, as in "2.5.4". Returns false if there is none.
bool csandbox_library_version(char *text, size_t capacity);

// MARK: Sockets that preserve message boundaries

enum {
  CSANDBOX_CLOSED = -1, ///< The other end is closed, or the socket failed.
  CSANDBOX_TIMED_OUT = -2,
};

/// Sends a message of at least one byte with an optional descriptor, -1 for none. Returns false if the other end is
/// closed.
bool csandbox_send(int socket, const void *bytes, size_t count, int descriptor);

/// Sends as csandbox_send does, without waiting. Returns 0, CSANDBOX_CLOSED, or CSANDBOX_TIMED_OUT if the other end has
/// not received enough of what was sent before.
int csandbox_send_now(int socket, const void *bytes, size_t count, int descriptor);

/// Receives a message and the descriptor sent with it, -1 if there is none. `descriptor` may be NULL, which discards
/// it. A timeout of -1 waits for any time. Returns the size of the message, CSANDBOX_CLOSED or CSANDBOX_TIMED_OUT.
ssize_t csandbox_receive(int socket, void *bytes, size_t capacity, int *descriptor, int timeout_ms);

/// Waits for a message on one of two sockets. Returns a mask: 1 for `first`, 2 for `second`, 0 after the timeout. A
/// closed socket counts as a message.
int csandbox_wait(int first, int second, int timeout_ms);

// MARK: The channel between the server and one helper

/// Both ends of a channel. Descriptors are -1 when closed.
typedef struct csandbox_channel {
  uint8_t *shared; ///< The server's mapping of the shared memory; zeroed.
  size_t byte_count;
  int socket;        ///< The server's end: requests and responses.
  int files;         ///< The server's end: requests for temporary files, a size each, answered by a descriptor.
  int helper_socket; ///< The helper's ends, to be passed to csandbox_zygote_fork.
  int helper_files;
  int helper_memory;
} csandbox_channel;

/// Creates a channel with `byte_count` bytes of shared memory, whose size neither side can change. Returns false and
/// sets errno on failure.
bool csandbox_channel_create(size_t byte_count, csandbox_channel *channel);

/// Closes a descriptor; -1 has no effect.
void csandbox_close(int descriptor);

/// Closes what is open of a channel, and unmaps its memory.
void csandbox_channel_destroy(csandbox_channel *channel);

/// Returns the size of a page of memory in bytes.
size_t csandbox_page_size(void);

/// Returns shared memory to the system, for both sides; its bytes become 0. `bytes` is aligned to pages.
void csandbox_discard(uint8_t *bytes, size_t count);

/// Sets or reads the number at the beginning of shared memory, initially 0. The server only sets it: a helper can
/// overwrite it.
void csandbox_flag_set(uint8_t *shared, uint32_t value);
uint32_t csandbox_flag_get(const uint8_t *shared);

// MARK: Files without names

/// Creates a file without a name in a directory. Returns its descriptor, or -1.
int csandbox_file_create(const char *directory);

/// Gives such a file a name. Returns false if that failed.
bool csandbox_file_name(int file, const char *path);

// MARK: The zygote

typedef struct csandbox_zygote {
  pid_t pid;
  int control; ///< The server's end of the control socket.
} csandbox_zygote;

/// Starts a program as the zygote, with none of the server's signals, with no descriptor that is closed on exec, and of
/// the environment only with the variables that libraries, fonts and results depend on. `arguments` ends with NULL.
/// Returns 0 or an error number.
int csandbox_zygote_spawn(const char *path, char *const arguments[], csandbox_zygote *zygote);

/// Ends the zygote and all of its helpers, and reaps it.
void csandbox_zygote_destroy(csandbox_zygote *zygote);

enum csandbox_zygote_state { CSANDBOX_RUNS = 0, CSANDBOX_IS_STOPPED = 1, CSANDBOX_HAS_ENDED = 2 };

/// Returns the csandbox_zygote_state that the system reports, without waiting. An end stays to be reaped.
int csandbox_zygote_state_now(const csandbox_zygote *zygote);

/// Continues a stopped zygote.
void csandbox_zygote_continue(const csandbox_zygote *zygote);

/// A report of the zygote on a helper.
typedef struct csandbox_event {
  uint32_t kind; ///< csandbox_event_kind
  uint32_t id;
  int32_t pid;
  int32_t status;      ///< When ended: the wait status. When not started: the error number, or 0.
  uint64_t data_bytes; ///< When started: the private memory that every helper has at its start.
} csandbox_event;

enum csandbox_event_kind { CSANDBOX_STARTED = 1, CSANDBOX_ENDED = 2, CSANDBOX_NOT_STARTED = 3 };

/// Requests a helper called `id` with the helper's ends of `channel`, and closes these ends. Returns false if the
/// zygote has ended.
bool csandbox_zygote_fork(const csandbox_zygote *zygote, uint32_t id, csandbox_channel *channel);

/// Kills a helper if it is alive, and lets the zygote reap it. Until then its process id is not used again.
bool csandbox_zygote_discard(const csandbox_zygote *zygote, uint32_t id);

/// Receives the next event. Returns 1; 0 after the timeout; CSANDBOX_CLOSED if the zygote has ended.
int csandbox_zygote_next(const csandbox_zygote *zygote, csandbox_event *event, int timeout_ms);

// MARK: Limits of a helper, set by the server

/// Sets the CPU time in seconds after which the system ends the process; 0 for no limit. Returns false if the process
/// does not exist.
bool csandbox_limit_cpu_time(pid_t pid, uint64_t seconds);

/// Sets the private memory in bytes beyond which the system refuses memory to the process; 0 for no limit. Returns
/// false if the process does not exist.
bool csandbox_limit_data(pid_t pid, uint64_t byte_count);

/// Sets the size in bytes beyond which the process cannot extend a file; initially CSANDBOX_FILE_BYTES. Returns false
/// if the process does not exist.
bool csandbox_limit_file_size(pid_t pid, uint64_t byte_count);

/// Returns the CPU time in nanoseconds that all threads of a process have used; 0 if it does not exist.
uint64_t csandbox_cpu_time(pid_t pid);

/// Returns that time and the nanoseconds for which the first thread was ready and waited for a processor, where the
/// system counts them; 0 if the process does not exist.
uint64_t csandbox_active_time(pid_t pid);

/// Returns whether a wait status is that of a signal, and which.
bool csandbox_was_signaled(int32_t status, int *signal);

// MARK: The helper

/// The helper's ends of its channel.
typedef struct csandbox_helper {
  uint8_t *shared;
  size_t byte_count;
  int socket;
  int files;
} csandbox_helper;

/// Prepares the calling process as the zygote: before it starts threads and before it loads anything hostile. Closes
/// every descriptor but the control socket, and takes namespaces of its own where that is allowed.
void csandbox_zygote_prepare(void);

/// Serves the server's requests. Returns in each forked helper; ends the process when the server has closed the control
/// socket.
void csandbox_zygote_serve(csandbox_helper *helper);

/// Defenses that a system may not offer. The system call filter is enough without them.
enum csandbox_defense {
  CSANDBOX_NAMESPACES = 1,
  CSANDBOX_LANDLOCK = 2,
};

/// Gives up everything that a helper does not need: files, network, processes, privileges. Sets `missing` to a mask of
/// the defenses that this system does not offer. Returns false if a limit or the system call filter is refused.
bool csandbox_enter(uint32_t *missing);

/// The statuses with which a helper exits by itself.
enum csandbox_exit_status {
  CSANDBOX_EXIT_NO_SANDBOX = 2, ///< csandbox_enter failed.
  CSANDBOX_EXIT_NO_MEMORY = 3,  ///< It crashed when it had reached its memory limit.
};

/// Ends the process at once, without the exit handlers of libraries.
_Noreturn void csandbox_exit(int status);

// MARK: Attempts that the sandbox must refuse, for tests

/// Returns the name of an attempt; NULL behind the last.
const char *csandbox_attempt_name(size_t index);

/// Tries something that a helper must not be able to do. Returns 0 if it succeeded, else an error number.
int csandbox_attempt(size_t index);

#endif
