// Preloaded into a server: system calls on files below one folder fail, write less than asked, or end the
// process, at the n-th call since they were counted from. Which and how is in a file of control that is mapped,
// so that the test changes it while the process runs. The layout is repeated in faults.ts.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum call {
  CALL_WRITE,
  CALL_PWRITE,
  CALL_WRITEV,
  CALL_PWRITEV,
  CALL_FDATASYNC,
  CALL_FSYNC,
  CALL_RENAME,
  CALL_FTRUNCATE,
  CALL_FALLOCATE,
  CALL_CREATE,
  CALL_MMAP,
  CALL_MSYNC,
  CALL_COPY,
  CALL_COUNT
};

enum mode {
  /** Count only. */
  MODE_NONE,
  /** Fail with `error` before anything happens. */
  MODE_ERROR,
  /** Write half and say so. */
  MODE_SHORT,
  /** Write half, then fail with `error`. */
  MODE_TORN,
  /** Write half, then SIGKILL. */
  MODE_KILL,
  /** A sync that fails with `error` and drops what was written to the file since its last sync. */
  MODE_LOST,
  /** Every matching write is short with the probability `share` / 65536. */
  MODE_RANDOM
};

/** Offsets are those of faults.ts. */
struct control {
  _Atomic uint32_t mode;
  _Atomic uint32_t calls; /* a bit per enum call */
  _Atomic uint32_t first; /* the n-th matching call, from 1 */
  _Atomic uint32_t times; /* how many calls in a row */
  _Atomic uint32_t error;
  _Atomic uint32_t share;
  _Atomic uint32_t seed;
  _Atomic uint32_t matched;
  _Atomic uint32_t fired;
  _Atomic uint32_t counts[CALL_COUNT];
  char place[256]; /* the path of the last fault */
};

static struct control *control;
static char folder[PATH_MAX];
static size_t folder_length;
/** Of the process that was started, not of what it starts. */
static pid_t owner;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off64_t);
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);
static int (*real_rename)(const char *, const char *);
static int (*real_ftruncate)(int, off64_t);
static int (*real_fallocate)(int, int, off64_t, off64_t);
static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static void *(*real_mmap)(void *, size_t, int, int, int, off64_t);
static int (*real_msync)(void *, size_t, int);
static ssize_t (*real_sendfile)(int, int, off64_t *, size_t);
static ssize_t (*real_copy_file_range)(int, off64_t *, int, off64_t *, size_t, unsigned);

static void *next(const char *name) {
  return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void) {
  real_write = next("write");
  real_pwrite = next("pwrite64");
  real_writev = next("writev");
  real_pwritev = next("pwritev64");
  real_fdatasync = next("fdatasync");
  real_fsync = next("fsync");
  real_rename = next("rename");
  real_ftruncate = next("ftruncate64");
  real_fallocate = next("fallocate64");
  real_open = next("open64");
  real_openat = next("openat64");
  real_mmap = next("mmap64");
  real_msync = next("msync");
  real_sendfile = next("sendfile64");
  real_copy_file_range = next("copy_file_range");
  const char *path = getenv("FAULTS_CONTROL");
  const char *below = getenv("FAULTS_FOLDER");
  if (path == NULL || below == NULL || realpath(below, folder) == NULL) return;
  folder_length = strlen(folder);
  int file = real_open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *mapped = real_mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return;
  owner = getpid();
  control = mapped;
}

static int is_below(const char *path) {
  return strncmp(path, folder, folder_length) == 0 && path[folder_length] == '/';
}

/** The path of a descriptor below the folder; NULL for all others. */
static const char *path_of(int file, char *path) {
  if (control == NULL) return NULL;
  int saved = errno;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  errno = saved;
  if (length <= 0) return NULL;
  path[length] = 0;
  return is_below(path) ? path : NULL;
}

/** Counts the call; returns what is to happen to it. */
static enum mode decide(enum call call, const char *path) {
  if (path == NULL) return MODE_NONE;
  atomic_fetch_add(&control->counts[call], 1);
  uint32_t mode = atomic_load(&control->mode);
  if (mode == MODE_NONE || (atomic_load(&control->calls) >> call & 1) == 0) return MODE_NONE;
  uint32_t matched = atomic_fetch_add(&control->matched, 1) + 1;
  if (mode == MODE_RANDOM) {
    // A number for each call that depends on its place in the order of calls only.
    uint32_t mixed = (matched + atomic_load(&control->seed)) * 2654435761u;
    mixed ^= mixed >> 15;
    mixed *= 2246822519u;
    mixed ^= mixed >> 13;
    if ((mixed & 0xffff) >= atomic_load(&control->share)) return MODE_NONE;
  } else {
    uint32_t first = atomic_load(&control->first);
    if (matched < first || matched - first >= atomic_load(&control->times)) return MODE_NONE;
  }
  snprintf(control->place, sizeof control->place, "%s", path);
  atomic_fetch_add(&control->fired, 1);
  return mode;
}

static int fail(void) {
  errno = (int)atomic_load(&control->error);
  return -1;
}

static void end_process(void) {
  kill(owner, SIGKILL);
  pause();
}

// What was written since the last sync of a file, with what was there before: MODE_LOST puts it back, as the
// system may after it has failed to write a page: it takes the page for clean and reads it again.

struct unsynced {
  struct unsynced *next;
  dev_t device;
  ino_t inode;
  off64_t offset;
  off64_t file_bytes;
  size_t length;
  char before[];
};

static struct unsynced *unsynced;
static pthread_mutex_t unsynced_lock = PTHREAD_MUTEX_INITIALIZER;

static int is_tracking(void) {
  return control != NULL && atomic_load(&control->mode) == MODE_LOST;
}

static void remember(int file, off64_t offset, size_t length) {
  struct stat64 status;
  if (fstat64(file, &status) != 0) return;
  struct unsynced *entry = calloc(1, sizeof *entry + length);
  if (entry == NULL) return;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  int reader = real_open(link, O_RDONLY | O_CLOEXEC);
  if (reader >= 0) {
    ssize_t got = pread64(reader, entry->before, length, offset);
    (void)got; // The rest stays zero, which is what a longer file would have there.
    close(reader);
  }
  entry->device = status.st_dev;
  entry->inode = status.st_ino;
  entry->offset = offset;
  entry->file_bytes = status.st_size;
  entry->length = length;
  pthread_mutex_lock(&unsynced_lock);
  entry->next = unsynced;
  unsynced = entry;
  pthread_mutex_unlock(&unsynced_lock);
}

/** After a sync: forgets the writes of the file; puts back what was there, newest first, if they are lost. */
static void settle(int file, int are_lost) {
  struct stat64 status;
  if (fstat64(file, &status) != 0) return;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  int writer = are_lost ? real_open(link, O_RDWR | O_CLOEXEC) : -1;
  pthread_mutex_lock(&unsynced_lock);
  struct unsynced **place = &unsynced;
  while (*place != NULL) {
    struct unsynced *entry = *place;
    if (entry->device != status.st_dev || entry->inode != status.st_ino) {
      place = &entry->next;
      continue;
    }
    if (writer >= 0) {
      ssize_t put = real_pwrite(writer, entry->before, entry->length, entry->offset);
      (void)put; // The length of the file stays, as it would.
    }
    *place = entry->next;
    free(entry);
  }
  pthread_mutex_unlock(&unsynced_lock);
  if (writer >= 0) close(writer);
}

static void track(int file, const char *path, off64_t offset, size_t length) {
  if (path == NULL || !is_tracking()) return;
  int flags = fcntl(file, F_GETFL);
  if (flags < 0 || (flags & O_DSYNC) != 0) return;
  if (offset < 0) offset = (flags & O_APPEND) != 0 ? lseek64(file, 0, SEEK_END) : lseek64(file, 0, SEEK_CUR);
  if (offset >= 0) remember(file, offset, length);
}

/** How much of a faulty write reaches the file. */
static size_t part_of(size_t length) {
  return length / 2;
}

/** The end of a torn write. */
static ssize_t after_part(enum mode mode, ssize_t written) {
  if (mode == MODE_SHORT || mode == MODE_RANDOM) return written;
  if (mode == MODE_KILL) end_process();
  return fail();
}

static int is_torn(enum mode mode, size_t length) {
  if (mode == MODE_SHORT || mode == MODE_RANDOM) return length > 1;
  return mode == MODE_TORN || mode == MODE_KILL;
}

ssize_t write(int file, const void *bytes, size_t length) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  enum mode mode = decide(CALL_WRITE, path);
  track(file, path, -1, length);
  if (mode == MODE_ERROR) return fail();
  if (is_torn(mode, length)) return after_part(mode, real_write(file, bytes, part_of(length)));
  return real_write(file, bytes, length);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  enum mode mode = decide(CALL_PWRITE, path);
  track(file, path, offset, length);
  if (mode == MODE_ERROR) return fail();
  if (is_torn(mode, length)) return after_part(mode, real_pwrite(file, bytes, part_of(length), offset));
  return real_pwrite(file, bytes, length, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
  return pwrite64(file, bytes, length, offset);
}

static size_t length_of(const struct iovec *parts, int count) {
  size_t length = 0;
  for (int i = 0; i < count; i++) length += parts[i].iov_len;
  return length;
}

/** The first bytes of the parts, at an offset, or where the file is if that is negative. */
static ssize_t write_parts(int file, const struct iovec *parts, int count, off64_t offset, size_t length) {
  ssize_t written = 0;
  for (int i = 0; i < count && (size_t)written < length; i++) {
    size_t rest = length - (size_t)written;
    size_t part = parts[i].iov_len < rest ? parts[i].iov_len : rest;
    ssize_t put = offset < 0 ? real_write(file, parts[i].iov_base, part)
                             : real_pwrite(file, parts[i].iov_base, part, offset + written);
    if (put < 0) return written > 0 ? written : put;
    written += put;
  }
  return written;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  enum mode mode = decide(CALL_WRITEV, path);
  size_t length = path == NULL ? 0 : length_of(parts, count);
  track(file, path, -1, length);
  if (mode == MODE_ERROR) return fail();
  if (!is_torn(mode, length)) return real_writev(file, parts, count);
  return after_part(mode, write_parts(file, parts, count, -1, part_of(length)));
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  enum mode mode = decide(CALL_PWRITEV, path);
  size_t length = path == NULL ? 0 : length_of(parts, count);
  track(file, path, offset, length);
  if (mode == MODE_ERROR) return fail();
  if (!is_torn(mode, length)) return real_pwritev(file, parts, count, offset);
  return after_part(mode, write_parts(file, parts, count, offset, part_of(length)));
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
  return pwritev64(file, parts, count, offset);
}

/** Of calls that have no parts: whether they fail. */
static int is_failed(enum call call, const char *path) {
  enum mode mode = decide(call, path);
  if (mode == MODE_KILL) end_process();
  return mode == MODE_ERROR || mode == MODE_TORN || mode == MODE_LOST;
}

static int sync_file(enum call call, int file, int (*sync)(int)) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  int failed = is_failed(call, path);
  if (path != NULL && is_tracking()) settle(file, failed);
  return failed ? fail() : sync(file);
}

int fdatasync(int file) {
  return sync_file(CALL_FDATASYNC, file, real_fdatasync);
}

int fsync(int file) {
  return sync_file(CALL_FSYNC, file, real_fsync);
}

int rename(const char *from, const char *to) {
  char buffer[PATH_MAX];
  const char *path = control != NULL && realpath(from, buffer) != NULL && is_below(buffer) ? buffer : NULL;
  return is_failed(CALL_RENAME, path) ? fail() : real_rename(from, to);
}

int ftruncate64(int file, off64_t length) {
  char buffer[PATH_MAX];
  return is_failed(CALL_FTRUNCATE, path_of(file, buffer)) ? fail() : real_ftruncate(file, length);
}

int ftruncate(int file, off_t length) {
  return ftruncate64(file, length);
}

int fallocate64(int file, int mode, off64_t offset, off64_t length) {
  char buffer[PATH_MAX];
  if (is_failed(CALL_FALLOCATE, path_of(file, buffer))) return fail();
  return real_fallocate(file, mode, offset, length);
}

int fallocate(int file, int mode, off_t offset, off_t length) {
  return fallocate64(file, mode, offset, length);
}

static int open_file(int folder_file, const char *name, int flags, mode_t mode) {
  char buffer[PATH_MAX];
  const char *path = NULL;
  if (control != NULL && (flags & O_CREAT) != 0 && name[0] == '/') {
    snprintf(buffer, sizeof buffer, "%s", name);
    if (is_below(buffer)) path = buffer;
  }
  if (is_failed(CALL_CREATE, path)) return fail();
  return real_openat(folder_file, name, flags, mode);
}

#define OPEN_MODE(flags)                                 \
  mode_t mode = 0;                                       \
  if (((flags) & (O_CREAT | __O_TMPFILE)) != 0) {        \
    va_list rest;                                        \
    va_start(rest, flags);                               \
    mode = va_arg(rest, mode_t);                         \
    va_end(rest);                                        \
  }

int open64(const char *name, int flags, ...) {
  OPEN_MODE(flags)
  return open_file(AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...) {
  OPEN_MODE(flags)
  return open_file(AT_FDCWD, name, flags, mode);
}

int openat64(int folder_file, const char *name, int flags, ...) {
  OPEN_MODE(flags)
  return open_file(folder_file, name, flags, mode);
}

int openat(int folder_file, const char *name, int flags, ...) {
  OPEN_MODE(flags)
  return open_file(folder_file, name, flags, mode);
}

void *mmap64(void *address, size_t length, int protection, int flags, int file, off64_t offset) {
  char buffer[PATH_MAX];
  // Loaders map files before this library has begun.
  if (real_mmap == NULL) return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
  const char *path = (flags & MAP_ANONYMOUS) != 0 ? NULL : path_of(file, buffer);
  if (!is_failed(CALL_MMAP, path)) return real_mmap(address, length, protection, flags, file, offset);
  fail();
  return MAP_FAILED;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
  return mmap64(address, length, protection, flags, file, offset);
}

int msync(void *address, size_t length, int flags) {
  return real_msync(address, length, flags);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t length) {
  char buffer[PATH_MAX];
  const char *path = path_of(to, buffer);
  enum mode mode = decide(CALL_COPY, path);
  if (mode == MODE_ERROR) return fail();
  if (!is_torn(mode, length)) return real_sendfile(to, from, offset, length);
  return after_part(mode, real_sendfile(to, from, offset, part_of(length)));
}

ssize_t sendfile(int to, int from, off_t *offset, size_t length) {
  return sendfile64(to, from, offset, length);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
  char buffer[PATH_MAX];
  const char *path = path_of(to, buffer);
  enum mode mode = decide(CALL_COPY, path);
  if (mode == MODE_ERROR) return fail();
  if (!is_torn(mode, length)) return real_copy_file_range(from, from_at, to, to_at, length, flags);
  return after_part(mode, real_copy_file_range(from, from_at, to, to_at, part_of(length), flags));
}
